"""A user-defined joint, a nut on a lead screw whose pitch grows along the screw: python examples/variable_screw.py

The class below contains everything that the library knows about the joint. `motion` alone is enough for trees; with the
other methods the joint can also close loops and carry springs as a cut joint. A TOML file uses it as
`type = "variable_screw"` with `modules = ["variable_screw.py"]`, and is read only if the reader trusts it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxmbs.elements import Coordinate, Joint, JointMotion, Kind, Row, element, equations, field
from jaxmbs.spatial import ZERO3, Force, Motion, Transform, Vector3, about_axis


@element
class VariableScrew(Joint):
    """Screw about an axis whose pitch grows with the angle: displacement = pitch q + growth q²/2. q: angle [rad]."""

    axis: Any = field(Kind.DIRECTION, "", "axis in the joint frame", default=(0.0, 0.0, 1.0))
    pitch: Any = field(Kind.NUMBER, "m/rad", "displacement per angle at q = 0", default=0.0)
    growth: Any = field(Kind.NUMBER, "m/rad2", "how the pitch grows with the angle", default=0.0)
    nq = 1
    nv = 1
    turning_axis = "axis"

    def motion(self, p, q, v, t):
        a, (angle,), (rate,) = p["axis"], q, v
        displacement, slope = _advance(p, angle)
        S = Motion(a, a * slope)
        bias = Motion(ZERO3, a * (p["growth"] * (rate * rate)))
        return JointMotion(Transform(about_axis(a, angle), a * displacement), (S,), S * rate, bias)

    def coordinates(self):
        return (Coordinate("angle", "rad"),)

    def coordinates_of(self, p, X):
        return (equations.angle_about(p["axis"], X),)

    def duals(self, p, X):
        return (Force(p["axis"], ZERO3),)

    def equations(self, p):
        a = p["axis"]
        return equations.Points(equations.perpendicular(a)), equations.Parallel(a), Advance(a, p)


@dataclass(frozen=True)
class Advance(equations.Equations):
    """Constraint rows: the displacement along the axis follows from the angle, which is between -pi and pi."""

    axis: Vector3
    p: Any

    def rows(self, X, V, turn):
        a = self.axis
        displacement, slope = _advance(self.p, equations.angle_about(a, X))
        wrench, turning = Force(a * -slope, a), Force(a * -(self.p["growth"] * (a @ V.angular)), ZERO3)
        return [Row(wrench, turning, a @ X.position - displacement)]


def _advance(p, angle):
    """Displacement and pitch at an angle."""
    return angle * (p["pitch"] + 0.5 * (p["growth"] * angle)), p["pitch"] + p["growth"] * angle


def lead_screw():
    """A nut of 0.5 kg that falls along a vertical screw, slowed by its rotational inertia."""
    import jaxmbs as mbs

    mech = mbs.Mechanism("lead screw", gravity=(0.0, 0.0, -9.81))
    mech.add_body("nut", mass=0.5, inertia=(1e-3, 1e-3, 2e-3))
    mech.add_joint("screw", VariableScrew(pitch=0.02, growth=0.001), "world", "nut")
    return mech


def main(t_end: float = 1.0) -> float:
    """Let the nut fall; returns the largest energy error [J]."""
    import numpy as np

    import jaxmbs as mbs

    model = lead_screw().build()
    solution = mbs.simulate(model, model.neutral(), np.zeros(1), t_end=t_end, dt=1e-3)
    print(f"after {t_end} s: {float(solution.q[-1, 0]):.3f} rad, {float(solution.v[-1, 0]):.3f} rad/s")
    return float(np.abs(solution.energy_error).max())


if __name__ == "__main__":
    import jax

    jax.config.update("jax_enable_x64", True)
    print(f"largest energy error {main():.1e} J")
