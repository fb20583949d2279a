"""Elements that push: spring pushers, thrusters, user functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.functions import check_arguments
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import Scalar, add, div, maximum, mul, sub, tanh, total, where

FRICTION_SPEED = 1e-2  # [m/s] over which guide friction changes sign


@dataclass(frozen=True)
class Pusher(Force):
    """One-sided spring pusher of a separation system, mounted on body_a, pushing body_b.

    The extension is s = direction . (p_b - p_a) with direction (unit) in axes of body_a; p_a, p_b are point_a
    and point_b (3,) [m]. While s < stroke [m] and from t >= delay [s] on, it pushes body_b at p_b along the
    direction with preload - stiffness s [N, N/m], less the Coulomb friction [N] of the rod in its guide, and
    never pulls; the reaction acts on body_a along the same line. friction changes sign smoothly over 0.01 m/s.
    """

    body_a: str
    body_b: str
    point_a: Any
    point_b: Any
    direction: Any
    stiffness: Any
    preload: Any
    stroke: Any
    delay: Any = 0.0
    friction: Any = 0.0
    numbers: ClassVar[Mapping[str, str]] = {
        "point_a": "vector", "point_b": "vector", "direction": "unit", "stiffness": "positive",
        "preload": "positive", "stroke": "positive", "delay": "scalar", "friction": "positive",
    }  # fmt: skip
    bodies: ClassVar[tuple[str, ...]] = ("body_a", "body_b")

    def _push(self, p: Numbers, scene: Scene) -> tuple[Scalar, Scalar, Scalar, Vector3, Vector3]:
        """Spring force, actual force, extension rate, direction in world axes, point of action on body_a."""
        direction = scene.rotation(self.body_a) @ p["direction"]
        x_b = scene.point(self.body_b, p["point_b"])
        on_a = scene.local_point(self.body_a, x_b)
        s = self._extension(p, scene)
        rate = direction @ (scene.velocity(self.body_b, p["point_b"]) - scene.velocity(self.body_a, on_a))
        spring = maximum(sub(p["preload"], mul(p["stiffness"], s)), 0.0)
        spring = where(s < p["stroke"], spring, 0.0)
        rubbed = spring
        if not (isinstance(p["friction"], (int, float)) and p["friction"] == 0):
            rubbed = maximum(sub(spring, mul(p["friction"], tanh(div(rate, FRICTION_SPEED)))), 0.0)
            rubbed = where(spring > 0, rubbed, 0.0)
        actual = rubbed
        if not (isinstance(p["delay"], (int, float)) and p["delay"] == 0):
            actual = where(scene.t >= p["delay"], rubbed, 0.0)
        return spring, actual, rate, direction, on_a

    def _extension(self, p: Numbers, scene: Scene) -> Scalar:
        d = scene.point(self.body_b, p["point_b"]) - scene.point(self.body_a, p["point_a"])
        return (scene.rotation(self.body_a) @ p["direction"]) @ d

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        _, actual, _, direction, on_a = self._push(p, scene)
        loads.force(self.body_b, direction * actual, p["point_b"])
        loads.force(self.body_a, direction * mul(-1, actual), on_a)

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        """Energy [J] that the spring would still give up to the end of its stroke."""
        s, k, preload = self._extension(p, scene), p["stiffness"], p["preload"]
        # the push ends at the stroke or where the force vanishes
        reach = where(sub(preload, mul(k, p["stroke"])) > 0, p["stroke"], preload / where(k > 0, k, 1.0))
        left = sub(reach, s)
        mean = sub(preload, mul(mul(0.5, k), add(reach, s)))
        return where(left > 0, mul(left, mean), 0.0)

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        spring, actual, rate, _, _ = self._push(p, scene)
        return mul(sub(actual, spring), rate)


@dataclass(frozen=True)
class Thruster(Force):
    """Force along a direction fixed in a body, with a time profile.

    point (3,) [m] and direction (unit) in body axes; the force is thrust [N] times the piecewise linear profile
    through (times [s], values), held at both ends.
    """

    body: str
    point: Any = (0.0, 0.0, 0.0)
    direction: Any = (0.0, 0.0, 1.0)
    thrust: Any = 0.0
    times: Any = (0.0,)
    values: Any = (1.0,)
    numbers: ClassVar[Mapping[str, str]] = {
        "point": "vector", "direction": "unit", "thrust": "scalar", "times": "list", "values": "list"
    }  # fmt: skip
    bodies: ClassVar[tuple[str, ...]] = ("body",)

    def _force(self, p: Numbers, scene: Scene) -> Vector3:
        level = mul(p["thrust"], piecewise_linear(scene.t, p["times"], p["values"]))
        return scene.rotation(self.body) @ p["direction"] * level

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        loads.force(self.body, self._force(p, scene), p["point"])

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        return self._force(p, scene) @ scene.velocity(self.body, p["point"])


def piecewise_linear(t: Scalar, times: tuple[Scalar, ...], values: tuple[Scalar, ...]) -> Scalar:
    """Value at t of the broken line through the points, constant before the first and after the last."""
    result = values[0]
    for t0, t1, v0, v1 in zip(times, times[1:], values, values[1:], strict=False):
        part = div(sub(t, t0), sub(t1, t0))
        part = where(part > 0, where(part < 1, part, 1.0), 0.0)
        result = add(result, mul(part, sub(v1, v0)))
    return result


@dataclass(frozen=True)
class External(Force):
    """A user's force. fn(model, t, q, v) returns generalized forces (nv,), or, when a body is named,
    (moment, force) (6,) in world axes, acting at `point` (3,) [m] in body axes."""

    fn: Callable[..., Any]
    body: str | None = None
    point: Any = (0.0, 0.0, 0.0)
    numbers: ClassVar[Mapping[str, str]] = {"point": "vector"}
    bodies: ClassVar[tuple[str, ...]] = ("body",)

    def __post_init__(self) -> None:
        check_arguments(self.fn, "External: fn")

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        values = scene.external
        if self.body is None:
            loads.generalized(values)
            return
        loads.moment(self.body, Vector3.of(values[:3]))
        loads.force(self.body, Vector3.of(values[3:]), p["point"])

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        values = scene.external
        if self.body is None:
            return total(*(mul(f, v) for f, v in zip(values, scene.all_rates, strict=True)))
        moment, force = Vector3.of(values[:3]), Vector3.of(values[3:])
        return add(moment @ scene.angular(self.body), force @ scene.velocity(self.body, p["point"]))
