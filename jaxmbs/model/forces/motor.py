"""Rocket motor whose propellant is used up."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jaxmbs.model import profiles
from jaxmbs.model.errors import ModelError, ModelWarning
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field, state
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number, Rows, Vector
from jaxmbs.model.parameters import is_traced
from jaxmbs.spatial import RigidInertia, Symmetric3, Vector3
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, maximum, vanishes, where

if TYPE_CHECKING:
    from jaxmbs.building.mechanism import Mechanism

STANDARD_GRAVITY = 9.80665  # [m/s²] by which a specific impulse in seconds is multiplied
LOCATED = 1e-8  # [s] within which the end of the propellant is located, apart from the rounding of the time
NONE = (0.0,)
TABLES = {"coms": "propellant_com", "gyrations": "gyration"}  # each with the constant that it replaces


@element
class Motor(Force):
    """Rocket motor: thrust with a time profile, until its propellant is used up, and the mass that leaves the body.

    From the ignition on, the thrust is `thrust` times the piecewise linear profile through (times, values), held after its
    last time; a table of rows (time [s], force [N]) given as `thrust` becomes such a profile, with a thrust of 1 N. The mass
    flow is thrust / (9.80665 m/s² * specific impulse). The propellant is a mass on the body, with a centre of mass and radii
    of gyration about it. It adds to the body's own mass, also before ignition. When none is left, the thrust ends; the event
    action Disable ends it earlier.

    The centre of mass and the radii of gyration are constant, or piecewise linear in the propellant that is left: through
    the rows of `coms` and `gyrations` at the masses `left`, and constant below the first and above the last of these.

    The equations are those of the body with the propellant of the instant, plus thrust and the Coriolis forces of the gas
    that flows from the propellant to the nozzle [Thomson 1961, 8.6; Eke 1998]. With the mass flow f, nozzle at e,
    propellant m at c with radii of gyration k, and ' for a derivative by m, continuity gives the flow in the body the
    momentum P = f [e - (m c)'], and the inertia J of the propellant about the body's origin changes at the rate -f J'. The
    force is -2 w x P, and the moment about the origin, which damps rotation across the axis (jet damping), is
    f J' w - f e x (w x e), where J' w = c x (w x c) + k² w + m [c' x (w x c) + c x (w x c') + 2 k k' w]. Left out are the
    rate of P in the body, which is f_dot [e - (m c)'] + f² (m c)'', and the angular momentum of the flow about the origin:
    it is assumed that the flow is symmetric about an axis through the origin, and leaves at one point without swirl.

    >>> mech = mbs.Mechanism("rocket", gravity=(0.0, 0.0, 0.0))
    >>> mech.add_body("stage", mass=100.0, inertia=(10.0, 10.0, 1.0))
    >>> mech.add_joint("flight", mbs.Prismatic(axis=(0, 0, 1)), "world", "stage")
    >>> mech.add_force("motor", mbs.Motor("stage", thrust=1e4, specific_impulse=250.0, propellant=50.0))
    >>> run = mbs.simulate(mech.build(), [0.0], [0.0], t_end=15.0, dt=0.1)
    >>> print(run.states["motor.propellant"][-1], abs(run.v[-1, 0] - 250 * 9.80665 * np.log(1.5)) < 1e-3)
    0.0 True
    """

    source: ClassVar[bool] = True
    trials: ClassVar[int] = 24
    body: str = field(Kind.BODY, "", "body that it drives")
    point: Vector = field(Kind.VECTOR, "m", "centre of the nozzle's exit, in body axes", default=(0.0, 0.0, 0.0))
    axis: Vector = field(Kind.DIRECTION, "", "of the thrust, in body axes", default=(0.0, 0.0, 1.0))
    thrust: Number | Rows = field(Kind.NOT_NEGATIVE, "N", "force where the profile is 1", default=0.0)
    specific_impulse: Number = field(
        Kind.POSITIVE, "s", "thrust over the weight of the mass flow on Earth", default=280.0
    )
    propellant: Number = state("kg", "mass of the propellant that is left", default=0.0, kind=Kind.NOT_NEGATIVE)
    propellant_com: Vector = field(Kind.VECTOR, "m", "its centre of mass, in body axes", default=(0.0, 0.0, 0.0))
    gyration: Vector = field(
        Kind.NOT_NEGATIVE_VECTOR, "m", "its radii of gyration about the body's axes there", default=(0.0, 0.0, 0.0)
    )
    ignition: Number = field(Kind.NUMBER, "s", "time at which the profile begins", default=0.0)
    times: Vector = field(Kind.LIST, "s", "times of the profile after the ignition, increasing", default=(0.0,))
    values: Vector = field(Kind.LIST, "", "the profile at these times, not negative", default=(1.0,))
    left: Vector = field(
        Kind.LIST, "kg", "propellant at the rows of coms and gyrations, increasing", default=NONE, kw_only=True
    )
    coms: Vector = field(
        Kind.LIST, "m", "for each row, the centre of mass: 3 numbers; one zero for none", default=NONE, kw_only=True
    )
    gyrations: Vector = field(
        Kind.LIST, "m", "for each row, the radii of gyration: 3 numbers; one zero for none", default=NONE, kw_only=True
    )

    def __post_init__(self) -> None:
        if profiles.divide(self, "thrust", ("times", "values")):
            object.__setattr__(self, "thrust", 1.0)

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        backwards = "values must not be negative; for thrust the other way, add a motor with the opposite axis"
        rules = {**profiles.requirements(p), backwards: (p["values"] >= 0).all(-1)}
        n = p["left"].shape[-1]
        for table, constant in TABLES.items():
            size = p[table].shape[-1]
            if size not in (1, 3 * n):
                raise ModelError(f"{table} has {size} numbers, left has {n}; give 3 for each, row by row")
            if size > 1:
                said = f"{constant} and {table} are both given; leave one of them out"
                rules[said] = (p[constant] == 0).all(-1)
            else:
                said = f"{table} is one number that is not zero; give 3 for each of left, or leave it out"
                rules[said] = (p[table] == 0).all(-1)
        if n > 1 and all(p[table].shape[-1] == 1 for table in TABLES):
            raise ModelError(f"left has {n} numbers, and there is no table for them; give coms or gyrations as well")
        rules["left: the masses must not be negative, and must increase"] = (p["left"][..., :1] >= 0).all(-1) & (
            p["left"][..., 1:] > p["left"][..., :-1]
        ).all(-1)
        rules["gyrations: the radii must not be negative"] = (p["gyrations"] >= 0).all(-1)
        return rules

    def added(self, mech: Mechanism, name: str) -> Force:
        given = (self.thrust, self.propellant)
        if not any(map(is_traced, given)) and np.array_equal(given[1], 0) and np.any(np.asarray(given[0])):
            warnings.warn(
                f"force {name!r} has a thrust and no propellant, so that it does not push; pass propellant=..., or set "
                f"{name + '.propellant'!r} before a run; for a force that needs none, use Thruster",
                ModelWarning,
                stacklevel=3,
            )
        return self

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar | None], ...]:
        """The end of the propellant, then the rows of the tables. What remains afterwards is a rounding error: it makes no
        second corner, and it is not taken for propellant after a controller has set numbers of the motor."""
        left, above = p["propellant"], _above(p)
        if scene.sides:
            burns, *over = scene.sides[: 1 + len(above)]
            rate = where(burns, -self._flow(p, scene), 0.0)
            rows = ((where(burns, x, where(on, 1.0, -1.0)), rate) for x, on in zip(above, over, strict=True))
            return (where(burns, left, -1.0), rate), *rows
        rest = LOCATED + 8 * _rounding(left) * maximum(scene.t, -scene.t)
        end = left - rest * (p["thrust"] / (STANDARD_GRAVITY * p["specific_impulse"]))
        return (end, None), *((x, None) for x in above)

    def instants(self, p: Numbers) -> tuple[Scalar, ...]:
        """The times of the profile."""
        return tuple(p["ignition"] + t for t in p["times"])

    def _sides_of_motor(self, p: Numbers, scene: Scene) -> tuple[Scalar, tuple[Scalar, ...], tuple[Scalar, ...]]:
        """Whether propellant is left, which rows of the tables it exceeds, and which times of the profile have passed."""
        sides, end = self.sides(p, scene), 1 + len(_above(p))
        return sides[0], sides[1:end], sides[len(sides) - len(p["times"]) :]

    def _direction_of_thrust(self, p: Numbers) -> Vector3:
        """In body axes."""
        return p["axis"]

    def _thrust(self, p: Numbers, scene: Scene) -> Scalar:
        left, _, passed = self._sides_of_motor(p, scene)
        level = profiles.piecewise_linear(scene.t - p["ignition"], p["times"], p["values"], passed)
        return where(left, where(passed[0], p["thrust"] * level, 0.0), 0.0)

    def _flow(self, p: Numbers, scene: Scene) -> Scalar:
        """Mass [kg/s] that leaves."""
        return self._thrust(p, scene) / (STANDARD_GRAVITY * p["specific_impulse"])

    def rates(self, p: Numbers, scene: Scene) -> Mapping[str, Any]:
        return {"propellant": -self._flow(p, scene)}

    def masses(self, p: Numbers) -> Mapping[str, RigidInertia]:
        return self._masses(p, tuple(x >= 0 for x in _above(p)))

    def masses_on(self, p: Numbers, sides: Sequence[Scalar]) -> Mapping[str, RigidInertia] | None:
        rows = len(_above(p))
        return self._masses(p, tuple(sides[1 : 1 + rows])) if rows else None

    def _masses(self, p: Numbers, over: tuple[Scalar, ...]) -> Mapping[str, RigidInertia]:
        c, k = (Vector3(*(x for x, _ in _tabled(p, table, over))) for table in TABLES)
        about = Symmetric3.diagonal(*(p["propellant"] * (x * x) for x in k))
        return {self.body: RigidInertia.at_com(p["propellant"], c, about)}

    def _action(self, p: Numbers, scene: Scene) -> tuple[Vector3, Vector3]:
        """Force, and moment about the body's origin, in body axes."""
        e, f, m = p["point"], self._flow(p, scene), p["propellant"]
        _, over, _ = self._sides_of_motor(p, scene)
        centre, radii = (_tabled(p, table, over) for table in TABLES)
        c, moved = Vector3(*(x for x, _ in centre)), Vector3(*(m * x for _, x in centre))  # c and m c'
        w = scene.rotation(self.body).T @ scene.angular(self.body)
        force = self._direction_of_thrust(p) * self._thrust(p, scene)
        own = Vector3(*((k * k + 2 * (m * (k * slope))) * x for (k, slope), x in zip(radii, w, strict=True)))
        shifted = moved.cross(w.cross(c)) + c.cross(w.cross(moved))
        damping = e.cross(w.cross(e)) - c.cross(w.cross(c)) - own - shifted
        return force - w.cross(e - c - moved) * (2 * f), e.cross(force) - damping * f

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        force, moment = (scene.rotation(self.body) @ x for x in self._action(p, scene))
        loads.force(self.body, force, Vector3(0, 0, 0))
        loads.moment(self.body, moment)

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        force, moment = (scene.rotation(self.body) @ x for x in self._action(p, scene))
        return force @ scene.velocity(self.body, Vector3(0, 0, 0)) + moment @ scene.angular(self.body)


def _above(p: Numbers) -> tuple[Scalar, ...]:
    """By how much [kg] the propellant exceeds each row of the tables at which they have a corner. A corner is higher than
    its row by rounding, so that propellant which begins at a row is below it; at a row of zero it has ended."""
    if all(len(p[table]) == 1 for table in TABLES) or len(p["left"]) == 1:
        return ()
    m = p["propellant"]
    return tuple(m - x * (1 + 8 * _rounding(m)) for x in p["left"] if not vanishes(x))


def _rounding(x: Scalar) -> float:
    return float(np.finfo(getattr(x, "dtype", float)).eps)


def _tabled(p: Numbers, table: str, over: tuple[Scalar, ...]) -> tuple[tuple[Scalar, Scalar], ...]:
    """Each component of a table at the propellant that is left, and its slope; over: which corners it exceeds."""
    if len(p[table]) == 1:
        return tuple((x, ZERO) for x in p[TABLES[table]])
    rows = p["left"]
    over = (*[True] * (len(rows) - len(over)), *over)  # above a row of zero
    columns = [p[table][axis::3] for axis in range(3)]
    return tuple(
        (profiles.piecewise_linear(p["propellant"], rows, x, over), profiles.slope(rows, x, over)) for x in columns
    )
