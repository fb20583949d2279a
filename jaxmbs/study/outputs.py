"""Outputs: quantities of the motion, folded over time to one number per sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from pydantic import Field

from jaxmbs.io.tables import Direction, Name, Positive, Table, Vector
from jaxmbs.spatial import Vector3, kernel

if TYPE_CHECKING:
    from jaxmbs.model import Model
    from jaxmbs.model.forces.base import Scene

Scalar = Any
Reduction = Literal["final", "min", "max", "time_of_min", "time_of_max", "time_out"]
ORIGIN = (0.0, 0.0, 0.0)


class Output(Table):
    """Base of the outputs. reduce: what is kept of the history; unit: the one reports show (default SI)."""

    reduce: Reduction = "final"
    unit: str | None = None

    def quantity(self, joint_types: Mapping[str, str]) -> str:
        """What the history measures, given the type of every joint."""
        raise NotImplementedError

    def measures(self, joint_types: Mapping[str, str]) -> str:
        """What the output measures: the history's quantity, or a time."""
        return "time" if self.reduce.startswith("time") else self.quantity(joint_types)

    def bodies(self) -> Iterator[tuple[str, str]]:
        """(key, body) of every body that the output names."""
        yield from ((k, getattr(self, k)) for k in type(self).model_fields if k.startswith("body"))

    def joints(self) -> Iterator[str]:
        """Every joint that the output names."""
        yield from ()

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        """Value now, and whether it is defined now."""
        raise NotImplementedError

    def start(self) -> tuple[Any, Any]:
        """State of the fold before the first time: value, time."""
        return {"min": np.inf, "time_of_min": np.inf, "max": -np.inf, "time_of_max": -np.inf}.get(
            self.reduce, np.nan
        ), np.nan

    def fold(self, state: tuple[Any, Any], measured: tuple[Scalar, Scalar], t: Scalar) -> tuple[Any, Any]:
        """State with the present moment taken in."""
        best, when = state
        value, defined = jnp.asarray(measured[0], best.dtype), measured[1]
        t = jnp.asarray(t, best.dtype)
        if self.reduce == "final":
            return jnp.where(defined, value, jnp.nan), when
        if self.reduce == "time_out":
            return best, jnp.where(defined | ~jnp.isnan(when), when, t)
        # ~(a >= b) instead of a < b: a value that is not a number must not pass unseen
        better = defined & (~(value >= best) if self.reduce.endswith("min") else ~(value <= best))
        return jnp.where(better, value, best), jnp.where(better, t, when)

    def result(self, state: tuple[Any, Any]) -> Scalar:
        """The output, in SI; not a number where it was never defined."""
        best, when = state
        return when if self.reduce.startswith("time") else jnp.where(jnp.isinf(best), jnp.nan, best)


class Rim(Table):
    """A circle fixed to a body: centre [m], axis, radius [m]."""

    body: Name
    center: Vector
    axis: Direction
    radius: Positive


class Shell(Table):
    """The inner side of a cylinder fixed to a body: centre of its base [m], axis towards the open end, sizes [m]."""

    body: Name
    base: Vector
    axis: Direction
    radius: Positive
    length: Positive


class RimClearance(Output):
    """Gap [m] between a rim and the inner side of a cylindrical shell, negative once they would touch.

    A point of the rim counts while it lies within the shell's length; the gap is the smallest over the points that
    count, and undefined once none does. reduce = "time_out" gives that moment.
    """

    type: Literal["rim_clearance"]
    rim: Rim
    shell: Shell
    reduce: Reduction = "min"

    def quantity(self, joint_types: Mapping[str, str]) -> str:
        return "length"

    def bodies(self) -> Iterator[tuple[str, str]]:
        yield from (("rim.body", self.rim.body), ("shell.body", self.shell.body))

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        rim, shell = self.rim, self.shell
        to_shell, from_rim = scene.rotation(shell.body).T, scene.rotation(rim.body)
        across, along = (Vector3.of((e * rim.radius).tolist()) for e in normals(rim.axis))
        center = scene.point(rim.body, Vector3.of(rim.center)) - scene.point(shell.body, Vector3.of(shell.base))
        u, w = (turned(to_shell, turned(from_rim, e)) for e in (across, along))
        return _gap(turned(to_shell, center), u, w, Vector3.of(shell.axis), shell.radius, shell.length)


def _gap(
    center: Vector3, e1: Vector3, e2: Vector3, axis: Vector3, radius: Scalar, length: Scalar
) -> tuple[Scalar, Scalar]:
    """Gap of the circle center + e1 cos + e2 sin in a shell from the origin along `axis`, and whether it is inside.

    The point farthest from the axis is the farthest of the whole circle, or where the circle leaves the shell.
    """
    z0, z1, z2 = axis @ center, axis @ e1, axis @ e2
    d, u, w = center - axis * z0, e1 - axis * z1, e2 - axis * z2
    dd, du, dw, uu, uw, ww = d @ d, d @ u, d @ w, u @ u, u @ w, w @ w

    def square(c: Scalar, s: Scalar) -> Scalar:
        return dd + 2 * (du * c + dw * s) + uu * c * c + 2 * uw * c * s + ww * s * s

    # maximising a convex function on a circle: its gradient's direction never lowers it. The smallest eigenvalue is
    # taken off, which changes the function by a constant only and leaves little to iterate while the tilt is small.
    # Two starts, towards the offset of the axes and along the ellipse's long axis: between them one is near
    half = (uu - ww) / 2
    root = jnp.sqrt(half * half + uw * uw)
    least = (uu + ww) / 2 - root
    x, y = jnp.where(half > 0, half + root, uw), jnp.where(half > 0, uw, root - half)
    side = jnp.where(x * du + y * dw < 0, -1.0, 1.0)
    points = []
    for c, s in (_unit(du, dw), _unit(side * x, side * y)):
        for _ in range(3):
            c, s = _unit(du + (uu - least) * c + uw * s, dw + uw * c + (ww - least) * s)
        z = z0 + z1 * c + z2 * s
        points.append((square(c, s), (z >= 0) & (z <= length)))
    tilt = jnp.sqrt(z1 * z1 + z2 * z2)
    x, y = _unit(z1, z2)
    for end in (0.0, length):
        k = (end - z0) / jnp.where(tilt > 0, tilt, 1.0)
        crosses = (jnp.abs(k) < 1) & (tilt > 0)
        h = jnp.sqrt(jnp.where(crosses, 1 - k * k, 0.0))
        points += [(square(k * x - h * y, k * y + h * x), crosses), (square(k * x + h * y, k * y - h * x), crosses)]

    far, inside = jnp.zeros_like(dd), jnp.zeros_like(points[0][1])
    for distance, here in points:
        far, inside = jnp.where(here & (distance > far), distance, far), inside | here
    # a state that is not finite is nowhere: let it show instead of counting as "out"
    broken = ~jnp.isfinite(z0 + dd)
    return jnp.where(broken, jnp.nan, radius - jnp.sqrt(far)), inside | broken


def _unit(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """(x, y) made a unit vector; (1, 0) for the zero vector."""
    square = x * x + y * y
    scale = 1 / jnp.sqrt(jnp.where(square > 0, square, 1.0))
    return jnp.where(square > 0, x * scale, 1.0), y * scale


class AngularRate(Output):
    """Angular rate of a body [rad/s]: total, or its part transverse to or along an axis fixed in the body.

    relative_to: another body (default: space)."""

    type: Literal["angular_rate"]
    body: Name
    part: Literal["total", "transverse", "axial"] = "total"
    axis: Direction = (1.0, 0.0, 0.0)
    relative_to: Name = "world"

    def quantity(self, joint_types: Mapping[str, str]) -> str:
        return "angular rate"

    def bodies(self) -> Iterator[tuple[str, str]]:
        yield from (("body", self.body), ("relative_to", self.relative_to))

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        rate = scene.angular(self.body)
        if self.relative_to != "world":
            rate = rate - scene.angular(self.relative_to)
        if self.part == "total":
            return rate.norm(), True
        axis = turned(scene.rotation(self.body), Vector3.of(self.axis))
        spin = axis @ rate
        return (spin if self.part == "axial" else (rate - axis * spin).norm()), True


class _Pair(Output):
    """Two points; direction (in axes of body_a): the component along it, else the length of the vector."""

    body_a: Name
    body_b: Name
    point_a: Vector = ORIGIN
    point_b: Vector = ORIGIN
    direction: Direction | None = None

    def _part(self, scene: Scene, vector: Vector3) -> Scalar:
        if self.direction is None:
            return vector.norm()
        return turned(scene.rotation(self.body_a), Vector3.of(self.direction)) @ vector


class Distance(_Pair):
    """From a point of body_a to a point of body_b [m]."""

    type: Literal["distance"]

    def quantity(self, joint_types: Mapping[str, str]) -> str:
        return "length"

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        a, b = Vector3.of(self.point_a), Vector3.of(self.point_b)
        return self._part(scene, scene.point(self.body_b, b) - scene.point(self.body_a, a)), True


class RelativeVelocity(_Pair):
    """Velocity of a point of body_b less that of a point of body_a, both seen from space [m/s]."""

    type: Literal["relative_velocity"]

    def quantity(self, joint_types: Mapping[str, str]) -> str:
        return "velocity"

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        a, b = Vector3.of(self.point_a), Vector3.of(self.point_b)
        return self._part(scene, scene.velocity(self.body_b, b) - scene.velocity(self.body_a, a)), True


class _Joint(Output):
    """One component of a joint's q or v, counted from 0 in the order of the joint's coordinates."""

    joint: Name
    component: Annotated[int, Field(strict=True, ge=0)] = 0

    def joints(self) -> Iterator[str]:
        yield self.joint


class JointPosition(_Joint):
    """A coordinate of a joint."""

    type: Literal["joint_position"]

    def quantity(self, joint_types: Mapping[str, str]) -> str:
        return coordinate_quantities(joint_types[self.joint])[self.component]

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        return scene.joints[self.joint][0][self.component], True


class JointVelocity(_Joint):
    """A velocity of a joint."""

    type: Literal["joint_velocity"]

    def quantity(self, joint_types: Mapping[str, str]) -> str:
        return rate_quantities(joint_types[self.joint])[self.component]

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        return scene.joints[self.joint][1][self.component], True


AnyOutput = Annotated[
    RimClearance | AngularRate | Distance | RelativeVelocity | JointPosition | JointVelocity,
    Field(discriminator="type"),
]

_RATES_OF = {"length": "velocity", "angle": "angular rate", "number": "number"}
_COORDINATES = {
    "Revolute": ("angle",), "Prismatic": ("length",), "Helical": ("angle",), "Cylindrical": ("angle", "length"),
    "Universal": ("angle", "angle"), "Planar": ("length", "length", "angle"), "Spherical": ("number",) * 4,
    "Free": ("length",) * 3 + ("number",) * 4,
}  # fmt: skip
_RATES = {"Spherical": ("angular rate",) * 3, "Free": ("angular rate",) * 3 + ("velocity",) * 3}


def coordinate_quantities(joint_type: str) -> tuple[str, ...]:
    """What the components of a joint's q measure."""
    return _COORDINATES.get(joint_type, ())


def rate_quantities(joint_type: str) -> tuple[str, ...]:
    """What the components of a joint's v measure."""
    return _RATES.get(joint_type) or tuple(_RATES_OF[c] for c in coordinate_quantities(joint_type))


def type_of(output: Output) -> str:
    """The output's `type` in the file."""
    return str(getattr(output, "type", ""))


def turned(rotation: Any, vector: Vector3) -> Vector3:
    """rotation @ vector."""
    return rotation @ vector


def normals(direction: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors orthogonal to the unit vector `direction` and to each other."""
    d = np.asarray(direction, float)
    first = np.cross(d, np.eye(3)[np.argmin(np.abs(d))])
    first /= np.linalg.norm(first)
    return first, np.cross(d, first)


def folded(outputs: Mapping[str, Output], dtype: Any) -> tuple[Any, Callable[..., Any]]:
    """(carry0, fn) for simulate's fold: all outputs, taken from one pass over the bodies per time."""

    def fn(carry: Any, model: Model, t: Any, q: Any, v: Any) -> Any:
        found = measured(outputs, model, t, q, v)
        return {name: output.fold(carry[name], found[name], t) for name, output in outputs.items()}

    return _start(outputs, dtype), fn


def folded_history(outputs: Mapping[str, Output], t: Any, found: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
    """The outputs from what was `measured` at the times t (T,)."""

    def step(carry: Any, x: Any) -> tuple[Any, None]:
        t, now = x
        return {name: output.fold(carry[name], now[name], t) for name, output in outputs.items()}, None

    carry, _ = jax.lax.scan(step, _start(outputs, t.dtype), (t, dict(found)))
    return {name: output.result(carry[name]) for name, output in outputs.items()}


def _start(outputs: Mapping[str, Output], dtype: Any) -> dict[str, tuple[Any, Any]]:
    return {name: tuple(jnp.asarray(x, dtype) for x in output.start()) for name, output in outputs.items()}  # type: ignore[misc]


@kernel
def _measure(output: Output, scene: Scene) -> tuple[Scalar, Scalar]:
    return output.measure(scene)


def measured(outputs: Mapping[str, Output], model: Model, t: Any, q: Any, v: Any) -> dict[str, tuple[Scalar, Scalar]]:
    """What every output measures now, in SI, and whether it is defined.

    Outputs that differ only in what they keep share the computation.
    """
    from jaxmbs.dynamics.state.kinematics import link_motions
    from jaxmbs.dynamics.state.scene import TreeScene
    from jaxmbs.dynamics.state.tree import Tree
    from jaxmbs.model.forces.base import Scene

    tree = Tree(model, q.dtype)
    state = TreeScene(tree, link_motions(tree, q, v, t), q, v, t)

    def seen(output: Output) -> Scene:
        bodies = {b: state.body(b) for _, b in output.bodies() if b != "world"}
        joints: Any = {j: state.joint(j) for j in output.joints()}
        return Scene(t, bodies, joints, {}, (), ())

    shared: dict[str, tuple[Scalar, Scalar]] = {}
    found = {}
    for name, output in outputs.items():
        same = output.model_dump_json(exclude={"reduce", "unit"})
        if same not in shared:
            shared[same] = _measure(output, seen(output))
        found[name] = shared[same]
    return found
