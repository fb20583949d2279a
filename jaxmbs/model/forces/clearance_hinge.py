"""Pin of a hinge in a hole with clearance."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number, Vector
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import Scalar, safe_divide, vanishes, where


@element
class ClearanceHinge(Force):
    """A pin of body_b in a hole of body_a with radial clearance, instead of a joint: the pin is free until it touches.

    The eccentricity e is the distance of the pin's point from the axis of the hole. Where it is larger than the clearance,
    the hole pushes the pin back by stiffness (e - clearance) + damping times the rate of e, and never pulls. Along the axis
    there is no force. Two of them at the ends of a pin resist its tilting. A pin that rattles for long needs a `tolerance`
    or short steps, because only its first few contacts are located exactly.

    >>> mech = mbs.Mechanism("hinge", gravity=(0.0, 0.0, -10.0))
    >>> mech.add_body("door", mass=2.0, inertia=(0.1, 0.1, 0.1))
    >>> upright = mbs.Pose(rotation=mbs.rotation((1, 0, 0), np.pi / 2))
    >>> mech.add_joint("free", mbs.Planar(), "world", "door", parent_pose=upright)
    >>> pin = mbs.ClearanceHinge("world", "door", axis=(0, 1, 0), clearance=1e-3, stiffness=1e6, damping=2e3)
    >>> mech.add_force("pin", pin)
    >>> run = mbs.simulate(mech.build(), np.zeros(3), np.zeros(3), t_end=0.5, dt=1e-3)
    >>> print(f"{mbs.body_poses(mech.build(), run.q[-1])['door'].position[2]:.6f}")  # -(1 mm + 20 N / 1e6 N/m)
    -0.001020
    """

    pairwise: ClassVar[bool] = True
    trials: ClassVar[int] = 32
    body_a: str = field(Kind.BODY_OR_WORLD, "", "body with the hole")
    body_b: str = field(Kind.BODY_OR_WORLD, "", "body with the pin")
    point_a: Vector = field(Kind.VECTOR, "m", "centre of the hole, in axes of body_a", default=(0.0, 0.0, 0.0))
    point_b: Vector = field(Kind.VECTOR, "m", "centre of the pin, in axes of body_b", default=(0.0, 0.0, 0.0))
    axis: Vector = field(Kind.DIRECTION, "", "axis of the hole, in axes of body_a", default=(0.0, 0.0, 1.0))
    clearance: Number = field(Kind.NOT_NEGATIVE, "m", "radius of the hole less that of the pin", default=0.0)
    stiffness: Number = field(Kind.NOT_NEGATIVE, "N/m", "force per depth of the contact", default=0.0)
    damping: Number = field(Kind.NOT_NEGATIVE, "N s/m", "force per rate of the eccentricity", default=0.0)

    def _contact(self, p: Numbers, scene: Scene) -> tuple[Scalar, Scalar, Vector3, Vector3]:
        """Depth, its rate, outward direction in world axes, and the point on body_a at which the pin is."""
        u = scene.rotation(self.body_a) @ p["axis"]
        x_b = scene.point(self.body_b, p["point_b"])
        d = x_b - scene.point(self.body_a, p["point_a"])
        r = d - u * (u @ d)
        e = r.norm()
        outward = Vector3(*(safe_divide(c, e) for c in r))
        on_a = scene.local_point(self.body_a, x_b)
        rate = outward @ (scene.velocity(self.body_b, p["point_b"]) - scene.velocity(self.body_a, on_a))
        return e - p["clearance"], rate, outward, on_a

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar | None], ...]:
        """Where the pin touches, and where the damper would pull."""
        depth, rate, _, _ = self._contact(p, scene)
        touches = ((depth, rate),)
        if vanishes(p["damping"]):
            return touches
        return *touches, (p["stiffness"] * depth + p["damping"] * rate, None)

    def _push(self, p: Numbers, scene: Scene) -> tuple[Scalar, Scalar]:
        """(of the spring, of spring and damper)."""
        depth, rate, _, _ = self._contact(p, scene)
        touches, *pushes = self.sides(p, scene)
        spring = where(touches, p["stiffness"] * depth, 0.0)
        if not pushes:
            return spring, spring
        return spring, where(touches, where(pushes[0], p["stiffness"] * depth + p["damping"] * rate, 0.0), 0.0)

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        _, _, outward, on_a = self._contact(p, scene)
        push = outward * self._push(p, scene)[1]
        loads.force(self.body_b, -push, p["point_b"])
        loads.force(self.body_a, push, on_a)

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        depth = self._contact(p, scene)[0]
        return where(depth > 0, 0.5 * p["stiffness"] * (depth * depth), 0.0)

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        spring, whole = self._push(p, scene)
        return (spring - whole) * self._contact(p, scene)[1]
