"""Aerodynamic forces and moments on a body."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import Element, element, field
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.forces.surroundings import flow
from jaxmbs.model.given import Number, Rows, Vector
from jaxmbs.spatial import ZERO3, Vector3
from jaxmbs.spatial.known import ZERO, known
from jaxmbs.spatial.scalar import Scalar, safe_divide, safe_sqrt, total, vanishes, where

AXES = ("mach", "alpha", "beta", "distance")
FORCES = ("axial", "side", "normal", "drag", "lift", "roll", "pitch", "yaw")
NONE, TABLE = (0.0,), "coefficients."


@element
class Coefficients(Element):
    """Aerodynamic coefficients over Mach number, angle of attack, sideslip, and distance from another body.

    Each is one number, or a table with a number for every combination of the breakpoints, in the order mach, alpha, beta,
    distance: the breakpoints of the first of these vary slowest. Coefficients are linear between breakpoints, and outside
    they keep the values at the ends. If `smooth`, they are cubic in every axis, and their derivatives are continuous:
    Hermite polynomials, whose slope at a breakpoint is that of the parabola through it and its neighbours, and zero at the
    ends. Between two breakpoints they may then exceed the values at both.

    In body axes, x forward, y to the right, z down: axial force against x, side force along y, normal force against z; drag
    against the velocity relative to the air, lift across it, in the plane of x and z and upwards where the angle of attack
    is small; moments about x, y, z. The damping coefficients multiply rate length/(2 speed).

    >>> table = mbs.Coefficients(mach=(0.0, 0.8, 1.2), drag=(0.3, 0.35, 0.6))
    """

    mach: Vector = field(Kind.LIST, "", "Mach numbers of the tables, increasing", default=NONE)
    alpha: Vector = field(Kind.LIST, "rad", "angles of attack of the tables, increasing", default=NONE)
    beta: Vector = field(Kind.LIST, "rad", "sideslips of the tables, increasing", default=NONE)
    distance: Vector = field(Kind.LIST, "m", "distances of the tables, increasing", default=NONE)
    axial: Vector = field(Kind.LIST, "", "axial force, against x", default=NONE)
    side: Vector = field(Kind.LIST, "", "side force, along y", default=NONE)
    normal: Vector = field(Kind.LIST, "", "normal force, against z", default=NONE)
    drag: Vector = field(Kind.LIST, "", "drag", default=NONE)
    lift: Vector = field(Kind.LIST, "", "lift", default=NONE)
    roll: Vector = field(Kind.LIST, "", "moment about x", default=NONE)
    pitch: Vector = field(Kind.LIST, "", "moment about y", default=NONE)
    yaw: Vector = field(Kind.LIST, "", "moment about z", default=NONE)
    roll_damping: Vector = field(Kind.LIST, "", "moment about x per rate of roll, usually negative", default=NONE)
    pitch_damping: Vector = field(Kind.LIST, "", "moment about y per rate of pitch, usually negative", default=NONE)
    yaw_damping: Vector = field(Kind.LIST, "", "moment about z per rate of yaw, usually negative", default=NONE)
    smooth: bool = field(Kind.FLAG, "", "cubic between breakpoints, with continuous derivatives", default=False)

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        sizes = {axis: p[axis].shape[-1] for axis in AXES}
        whole = int(np.prod(list(sizes.values())))
        for name in TABLES:
            if p[name].shape[-1] not in (1, whole):
                raise ModelError(
                    f"{name}: {p[name].shape[-1]} numbers; pass one, or {whole} for the breakpoints "
                    + " x ".join(f"{n} {axis}" for axis, n in sizes.items() if n > 1)
                )
        rules = {f"{a}: the breakpoints must increase": (p[a][..., 1:] > p[a][..., :-1]).all(-1) for a in AXES}
        for axis, most in (("alpha", np.pi), ("beta", np.pi / 2)):
            said = f"{axis}: angles are in radians, between {-most:.4f} and {most:.4f}"
            rules[said] = (abs(p[axis]) <= most + 1e-6).all(-1)
        return rules


TABLES = (*FORCES, "roll_damping", "pitch_damping", "yaw_damping")


@element
class Aerodynamics(Force):
    """Aerodynamic force and moment on a body, at its reference point, from dynamic pressure, Mach number and the angles of
    the air relative to the body, in the atmosphere and the wind of the environment.

    Each component of the force is dynamic pressure * area * (coefficients * force_multiplier + increment), and each
    component of the moment is dynamic pressure * area * length * (coefficient * moment_multiplier + increment). The three
    numbers of force_increment belong to axial, side and normal, those of moment_increment to roll, pitch and yaw; damping is
    multiplied by moment_multiplier, too. attitude: the axes in which the coefficients are given, x forward and z down, in
    the body's frame. relative_to: another body, for the interference of bodies that separate: the axis `distance` of the
    tables is the distance between the origins of both bodies. Tables have corners at their breakpoints, which runs do not
    locate: use short steps or a tolerance there. The angle of attack goes from -pi to pi: give both ends the same values if
    the body may fly backwards.

    >>> mech = mbs.Mechanism("ball", gravity=(0, 0, -9.81))
    >>> mech.add_point_mass("ball", 0.5)
    >>> mech.set_environment(atmosphere=mbs.ExponentialAtmosphere())
    >>> mech.add_force("air", mbs.Aerodynamics("ball", area=0.01, coefficients=mbs.Coefficients(drag=(0.47,))))
    >>> run = mbs.simulate(mech.build(), [0.0, 0.0, 3000.0], [0.0, 0.0, 0.0], t_end=60.0, dt=0.01)
    >>> print(run.q[-1, 2].round(-1), run.v[-1, 2].round(1))  # near its terminal velocity
    410.0 -42.5
    """

    body: str = field(Kind.BODY, "", "body on which it acts")
    area: Number = field(Kind.NOT_NEGATIVE, "m2", "reference area", kw_only=True)
    length: Number = field(Kind.POSITIVE, "m", "reference length of moments and damping", default=1.0, kw_only=True)
    coefficients: Coefficients = field(
        Kind.PART, "", "tables of coefficients", default=Coefficients(), of=Coefficients, kw_only=True
    )
    reference: Vector = field(
        Kind.VECTOR, "m", "point at which it acts, in body axes", default=(0.0, 0.0, 0.0), kw_only=True
    )
    attitude: Vector | Rows = field(
        Kind.ROTATION, "", "axes of the coefficients, in the body's frame", default=(1.0, 0.0, 0.0, 0.0), kw_only=True
    )
    relative_to: str | None = field(Kind.BODY, "", "body from which distances are measured", default=None, kw_only=True)
    force_multiplier: Number = field(Kind.NUMBER, "", "factor of all coefficients of forces", default=1.0, kw_only=True)
    moment_multiplier: Number = field(
        Kind.NUMBER, "", "factor of all coefficients of moments", default=1.0, kw_only=True
    )
    force_increment: Vector = field(
        Kind.VECTOR, "", "added to the coefficients axial, side, normal", default=(0.0, 0.0, 0.0), kw_only=True
    )
    moment_increment: Vector = field(
        Kind.VECTOR, "", "added to the coefficients roll, pitch, yaw", default=(0.0, 0.0, 0.0), kw_only=True
    )
    in_air: ClassVar[bool] = True

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        own = {k.removeprefix(TABLE): x for k, x in p.items() if k.startswith(TABLE)}
        if (own["distance"].shape[-1] > 1) is (self.relative_to is None):
            raise ModelError(
                "relative_to names the body from which the tables' `distance` is measured: give both, or neither; "
                f"there are {own['distance'].shape[-1]} distances, and relative_to is {self.relative_to!r}"
            )
        return self.coefficients.requirements(own)

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        force, moment, _, _ = self._action(p, scene)
        loads.force(self.body, force, p["reference"])
        loads.moment(self.body, moment)

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        force, moment, velocity, angular = self._action(p, scene)
        return force @ velocity + moment @ angular

    def _action(self, p: Numbers, scene: Scene) -> tuple[Vector3, Vector3, Vector3, Vector3]:
        """(force, moment, velocity of the reference point, angular velocity), in world axes."""
        air, R = scene.air, scene.rotation(self.body) @ p["attitude"]
        seen = flow(scene, self.body, p["reference"], R, air)
        forward, speed = seen.forward, seen.speed
        across = safe_sqrt(forward.x * forward.x + forward.z * forward.z)
        at = {"mach": seen.mach, "alpha": seen.alpha, "beta": seen.beta, "distance": self._distance(scene)}
        c = self._found(p, at)
        load = 0.5 * air.density * p["area"]
        pressure, rates = load * (speed * speed), R.T @ seen.angular
        upward = Vector3(safe_divide(forward.z, across), ZERO, -safe_divide(forward.x, across))
        body = Vector3(-c["axial"], c["side"], -c["normal"]) - forward * c["drag"] + upward * c["lift"]
        more = p["force_increment"]
        body = body * p["force_multiplier"] + Vector3(-more.x, more.y, -more.z)
        turn = Vector3(c["roll"], c["pitch"], c["yaw"]) * p["moment_multiplier"] + p["moment_increment"]
        damping = load * speed * p["length"] * p["length"] * 0.5 * p["moment_multiplier"]
        damped = Vector3(c["roll_damping"] * rates.x, c["pitch_damping"] * rates.y, c["yaw_damping"] * rates.z)
        force, moment = R @ (body * pressure), R @ (turn * (pressure * p["length"]) + damped * damping)
        return force, moment, seen.velocity, seen.angular

    def _distance(self, scene: Scene) -> Scalar:
        if self.relative_to is None:
            return ZERO
        return (scene.point(self.body, ZERO3) - scene.point(self.relative_to, ZERO3)).norm()

    def _found(self, p: Numbers, at: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """The coefficients at a state of the flow."""
        rule = _smooth_shares if self.coefficients.smooth else _shares
        shares = [rule(at[axis], p[TABLE + axis]) for axis in AXES]
        return {name: _interpolated(p[TABLE + name], shares) for name in TABLES}


def _shares(x: Scalar, points: Sequence[Scalar]) -> list[Scalar]:
    """The weight of each breakpoint at x: the sum of the values there with these weights is piecewise linear."""
    n = len(points)
    if n == 1:
        return [known(1.0)]
    begun = [x >= point for point in points]
    left, right = points[:2]
    for k in range(1, n - 1):  # the interval of x, which begins at a breakpoint: slopes there are those to its right
        left, right = where(begun[k], points[k], left), where(begun[k], points[k + 1], right)
    # one division for all intervals
    part = where(begun[0], where(begun[-1], 1.0, (x - left) / (right - left)), 0.0)
    inside = [True, *begun[1:-1], False]  # whether x is in this interval or beyond it; the last has no interval
    shares = []
    for k in range(n):
        ends = part if k == 0 or inside[k - 1] is True else where(inside[k - 1], part, 0.0)
        begins = 1.0 - part if k + 1 == n or inside[k + 1] is False else where(inside[k + 1], 0.0, 1.0 - part)
        shares.append(begins if k == 0 else where(inside[k], begins, ends))
    return shares


def _smooth_shares(x: Scalar, points: Sequence[Scalar]) -> list[Scalar]:
    """The weight of each breakpoint at x: the sum of the values there with these weights is Hermite's cubic."""
    n = len(points)
    shares: list[Scalar] = [known(1.0), *[ZERO] * (n - 1)]
    width = [b - a for a, b in itertools.pairwise(points)]
    slopes: list[Scalar] = [ZERO] * n  # the weight of the slope at each breakpoint
    for k, h in enumerate(width):
        u = where(x >= points[k], where(x >= points[k + 1], 1.0, (x - points[k]) / h), 0.0)
        risen = u * u * (3.0 - 2.0 * u)
        shares[k], shares[k + 1] = shares[k] - risen, shares[k + 1] + risen
        slopes[k] = slopes[k] + h * (u * ((1.0 - u) * (1.0 - u)))
        slopes[k + 1] = slopes[k + 1] - h * (u * u * (1.0 - u))
    for k in range(1, n - 1):  # the slope at a breakpoint is that of the parabola through it and its neighbours
        before, after = width[k - 1], width[k]
        part = slopes[k] / (before + after)
        left, right = part * (after / before), part * (before / after)
        shares[k - 1], shares[k], shares[k + 1] = (
            shares[k - 1] - left,
            shares[k] + (left - right),
            shares[k + 1] + right,
        )
    return shares


def _interpolated(values: Sequence[Scalar], shares: Sequence[Sequence[Scalar]]) -> Scalar:
    if len(values) == 1:
        return values[0]
    if all(map(vanishes, values)):
        return ZERO
    for own in reversed(shares):
        n = len(own)
        values = [
            total(*(s * v for s, v in zip(own, values[k : k + n], strict=True))) for k in range(0, len(values), n)
        ]
    return values[0]
