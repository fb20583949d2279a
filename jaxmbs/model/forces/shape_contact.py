"""Smooth one-sided contact of two shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.geometry.features import Features
from jaxmbs.geometry.penetration import Surfaces, Touch, summed
from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces import touch
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number
from jaxmbs.model.pose import HERE, Pose
from jaxmbs.model.solid_pieces import pieces_of, without_files
from jaxmbs.model.solids import Solid
from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.spatial.known import bare
from jaxmbs.spatial.scalar import Scalar, is_number

if TYPE_CHECKING:
    from jaxmbs.building.mechanism import Mechanism

LAW = ("stiffness", "damping", "friction", "transition_velocity", "smoothing")


@element
class ShapeContact(Force):
    """Contact of two shapes, such as `mbs.Box(...)`, each on a body or on the world.

    Each corner of one shape that is in the other is pushed out through the nearest face, with the force of `Contact`:
    stiffness depth (1 + damping d(depth)/dt), which never pulls and rises smoothly within +-smoothing, and friction. The
    same holds for balls, and for the ends of capsules. A box that rests on a plane face has four points, each with the
    `stiffness`. Where an edge is deeper between its ends than at both of them, as where it crosses another edge, its deepest
    point counts, too; its share falls to zero as an end becomes as deep. Two edges of boxes that cross
    symmetrically at right angles push each other as one point does.

    Balls and capsules are exact, and so are cylinders and cones into which others go. Where a cylinder or a cone itself goes
    into a flat face, its circles are polygons of 32 corners: one that rolls has a ripple of half a percent of its radius.
    A `Panel` is replaced by flat ones, and a `Mesh` by the hulls of its convex pieces, within its `error`.

    Of several convex pieces, a point is pushed out of the one in which it is deepest, once. Faces that lie in another piece
    do not push. Corners and edges do not count where they lie in another piece, or on one that continues beyond them. Pieces
    side by side therefore act as one. Where a face lies in another piece only partly, and in notches, a point that is deep
    in both pieces may jump from one to the other. What is deeper than half of the other shape is pushed out on the far side:
    an output `Clearance` of the same shapes tells how far they overlap.

    Shapes whose edges lie flat across each other may have no corner in each other, such as a plate on two rails beyond which
    all its ends overhang: give a `spacing` that is less than the width of the rails. Runs do not end a step where the
    contact begins or ends: choose steps that are short compared with the natural period of the contact, or a `tolerance`;
    the balance of energy tells whether they are short enough.

    >>> mech = mbs.Mechanism("shelf", gravity=(0, 0, -10.0))
    >>> mech.add_body("box", mass=4.0, inertia=(0.1, 0.1, 0.1))
    >>> mech.add_joint("free", mbs.Free(), "world", "box")
    >>> shelf = mbs.Pose((0, 0, -0.05))
    >>> touch = mbs.ShapeContact("box", mbs.Box((0.4, 0.4, 0.4)), "world", mbs.Box((1, 1, 0.1)), pose_b=shelf, stiffness=1e4)
    >>> mech.add_force("touch", touch)
    >>> q = [0, 0, 0.199, 1, 0, 0, 0]  # 1 mm deep at four corners: the weight
    >>> print(mbs.element_forces(mech.build(), q, np.zeros(6))["touch"].wrenches[0].round(9) + 0.0)
    [ 0.  0.  0.  0.  0. 40.]
    """

    pairwise: ClassVar[bool] = True
    body_a: str = field(Kind.BODY_OR_WORLD, "", "body of the first shape")
    shape_a: Solid = field(Kind.FIXED_PART, "", "the first shape, a solid", of=Solid)
    body_b: str = field(Kind.BODY_OR_WORLD, "", "body of the second shape")
    shape_b: Solid = field(Kind.FIXED_PART, "", "the second shape", of=Solid)
    pose_a: Pose = field(Kind.PART, "", "the first shape in the frame of body_a", default=HERE, of=Pose)
    pose_b: Pose = field(Kind.PART, "", "the second shape in the frame of body_b", default=HERE, of=Pose)
    stiffness: Number = field(Kind.NOT_NEGATIVE, "N/m", "normal force per depth of each point", default=0.0)
    damping: Number = field(
        Kind.NOT_NEGATIVE, "s/m", "relative gain of the normal force per rate of the depth", default=0.0
    )
    friction: Number = field(Kind.NOT_NEGATIVE, "", "Coulomb coefficient", default=0.0)
    transition_velocity: Number = field(Kind.POSITIVE, "m/s", "over which friction is reached smoothly", default=1e-2)
    smoothing: Number = field(Kind.POSITIVE, "m", "over which the normal force rises smoothly", default=1e-4)
    spacing: float | None = field(
        Kind.LENGTH, "m", "edges that are longer are divided by further points; none: they are not",
        default=None,
    )  # fmt: skip

    def added(self, mech: Mechanism, name: str) -> ShapeContact:
        """The element with checked shapes that need no files."""
        if self.spacing is not None and not (isinstance(self.spacing, (int, float)) and 0 < self.spacing < np.inf):
            raise ModelError(
                f"force {name!r}: spacing is {self.spacing!r}; pass a length [m] of more than zero, or None"
            )
        shapes = {}
        for key in ("shape_a", "shape_b"):
            where, shape = f"force {name!r}: {key}", getattr(self, key)
            if not isinstance(shape, Solid):
                hint = f"; pass {shape.__name__}(...)" if isinstance(shape, type) else ""
                raise ModelError(f"{where} is {shape!r}, which is no solid such as mbs.Box(...){hint}")
            try:
                shapes[key] = without_files(shape)
                _features(shapes[key], self.spacing)
            except ModelError as error:
                raise ModelError(f"{where}: {error}") from None
        return replace(self, **shapes)

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        R_B, origin, *sums = self._sums(_wrench, p, scene)
        force, moment = R_B @ Vector3(*sums[:3]), R_B @ Vector3(*sums[3:])
        loads.force(self.body_a, force, scene.local_point(self.body_a, origin))
        loads.moment(self.body_a, moment)
        loads.force(self.body_b, -force, p["pose_b.position"])
        loads.moment(self.body_b, -moment)

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        return self._sums(_energy, p, scene)[2]

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        return self._sums(_power, p, scene)[2]

    def _sums(self, of: Callable[..., Any], p: Numbers, scene: Scene) -> Any:
        """R_WB of the second shape, its origin in the world, and sums over all places at which the shapes touch."""
        R_A = scene.rotation(self.body_a) @ p["pose_a.rotation"]
        R_B = scene.rotation(self.body_b) @ p["pose_b.rotation"]
        x_A, x_B = (scene.point(b, p[f"{e}.position"]) for b, e in ((self.body_a, "pose_a"), (self.body_b, "pose_b")))
        on_a = scene.local_point(self.body_a, x_B)
        velocity = scene.velocity(self.body_a, on_a) - scene.velocity(self.body_b, p["pose_b.position"])
        turning = scene.angular(self.body_a) - scene.angular(self.body_b)
        vectors = (R_B.T @ (x_A - x_B), R_B.T @ velocity, R_B.T @ turning)
        numbers = [*(R_B.T @ R_A), *(c for x in vectors for c in x), *(p[name] for name in LAW)]
        return R_B, x_B, *_evaluated(of, self.shape_a, self.shape_b, self.spacing, [bare(x) for x in numbers])


class Approach(NamedTuple):
    """Velocity [m/s] and angular velocity [rad/s] of the first shape relative to the second, in axes of the second, about
    its origin."""

    velocity: Vector3
    turning: Vector3

    def at(self, x: Touch) -> Vector3:
        """The velocity of what has the feature, relative to what it touches."""
        found = self.velocity + self.turning.cross(x.place.point)
        return found * jnp.where(x.second, -1.0, 1.0)


class Pressed(NamedTuple):
    """What a touch contributes. share: of the energy that counts at the place: 1 at a point; at an edge, it falls smoothly
    from 1 to 0 as an end becomes as deep as the deepest point. held: the normal force at rest along `normal`; gained, lost:
    what the change of the share adds to the conservative force at the place, along its `outward`, and takes from that at the
    end."""

    share: Scalar
    held: Scalar
    normal: Vector3
    gained: Scalar
    lost: Scalar

    @classmethod
    def of(cls, p: Numbers, x: Touch) -> Pressed:
        above = x.place.depth + p["smoothing"]
        edge = x.of_edge & (above > 0)
        above = jnp.where(edge, above, 1.0)
        y = jnp.clip((x.end.depth + p["smoothing"]) / above, 0.0, 1.0)
        share = jnp.where(edge, 1 - y * y * (3 - 2 * y), 1.0)
        lost = jnp.where(edge, _stored(p, x.place.depth) * (6 * y * (1 - y) / above), 0.0)
        length = jnp.sqrt(jnp.maximum(x.place.outward @ x.place.outward, 1e-30))
        held = touch.elastic(p, x.place.depth, *_sides(p, x.place.depth)) * share * length
        return cls(share, held, x.place.outward * (1 / length), lost * y, lost)


def _sides(p: Numbers, depth: Scalar) -> tuple[Scalar, Scalar]:
    return depth >= -p["smoothing"], depth >= p["smoothing"]


def _stored(p: Numbers, depth: Scalar) -> Scalar:
    return touch.stored(p, depth, *_sides(p, depth))


def _wrench(p: Numbers, motion: Approach, x: Touch) -> Sequence[Scalar]:
    """Force and moment on the first shape, about the origin of the second."""
    here = Pressed.of(p, x)
    force = touch.whole(p, here.held, here.normal, motion.at(x)) + x.place.outward * here.gained
    pull, sign = x.end.outward * -here.lost, jnp.where(x.second, -1.0, 1.0)
    moment = x.place.point.cross(force) + x.end.point.cross(pull)
    return *((force + pull) * sign), *(moment * sign)


def _energy(p: Numbers, motion: Approach, x: Touch) -> Sequence[Scalar]:
    return (_stored(p, x.place.depth) * Pressed.of(p, x).share,)


def _power(p: Numbers, motion: Approach, x: Touch) -> Sequence[Scalar]:
    here, relative = Pressed.of(p, x), motion.at(x)
    return ((touch.whole(p, here.held, here.normal, relative) - here.normal * here.held) @ relative,)


SIZES = {_wrench: 6, _energy: 1, _power: 1}


@functools.lru_cache(256)
def _features(shape: Solid, spacing: float | None) -> Features:
    return Features.of(pieces_of(shape), spacing)


@functools.lru_cache(256)
def _surfaces(a: Solid, b: Solid, spacing: float | None, dtype: Any) -> Surfaces:
    return Surfaces(_features(a, spacing), _features(b, spacing), dtype)


def _evaluated(of: Any, a: Solid, b: Solid, spacing: float | None, numbers: list[Any]) -> Sequence[Scalar]:
    arrays = [x for x in numbers if isinstance(x, jax.Array)]
    if arrays:
        dtype = jnp.result_type(*arrays)
        return _found(of, a, b, spacing, [jnp.asarray(x, dtype) for x in numbers])
    if not all(map(is_number, numbers)):
        raise ModelError("a ShapeContact has no formula; leave it out of what is written out")
    with jax.enable_x64(True):
        return tuple(map(float, _compiled(of, a, b, spacing, [np.float64(x) for x in numbers])))


def _found(of: Any, a: Solid, b: Solid, spacing: float | None, x: Sequence[Any]) -> Sequence[Scalar]:
    """x: rotation and position of the first shape in axes of the second, the velocity there of its point at the origin of
    the second and its angular velocity, relative to the second; then the numbers of the law."""
    R, position, velocity, turning = Matrix3(*x[:9]), *(Vector3(*x[k : k + 3]) for k in (9, 12, 15))
    p, motion = dict(zip(LAW, x[18:], strict=True)), Approach(velocity, turning)
    surfaces = _surfaces(a, b, spacing, np.dtype(x[0].dtype))
    return summed(surfaces, R, position, p["smoothing"], functools.partial(of, p, motion), SIZES[of])


_compiled = jax.jit(_found, static_argnums=(0, 1, 2, 3))
