"""What every force element answers, and the scene it acts in."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.spatial.scalar import Scalar

Numbers = Mapping[str, Any]


class Scene(Protocol):
    """State of the mechanism as force elements see it. World axes unless said otherwise."""

    t: Scalar

    def point(self, body: str, local: Vector3) -> Vector3:
        """World position [m] of a point given in body axes."""
        ...

    def velocity(self, body: str, local: Vector3) -> Vector3:
        """World velocity [m/s] of that point."""
        ...

    def rotation(self, body: str) -> Matrix3:
        """Rotation from body to world axes."""
        ...

    def angular(self, body: str) -> Vector3:
        """Angular velocity [rad/s] in world axes."""
        ...

    def coordinates(self, joint: str) -> Sequence[Scalar]: ...

    def rates(self, joint: str) -> Sequence[Scalar]: ...

    def all_rates(self) -> Sequence[Scalar]:
        """v of the whole mechanism."""
        ...

    def masses(self) -> Sequence[tuple[str, Scalar, Vector3]]:
        """(body, mass, centre of mass in body axes) of every body that has mass."""
        ...

    def evaluate(self, fn: Any) -> list[Scalar]:
        """The values of a user's fn(model, q, v, t)."""
        ...


class Loads(Protocol):
    """Where an element puts its action."""

    def force(self, body: str, force: Vector3, at: Vector3) -> None:
        """A force [N] in world axes at a point in body axes."""
        ...

    def moment(self, body: str, moment: Vector3) -> None:
        """A moment [N m] in world axes."""
        ...

    def joint(self, joint: str, values: Sequence[Scalar]) -> None:
        """Generalized forces on the joint's degrees of freedom."""
        ...

    def generalized(self, values: Sequence[Scalar]) -> None:
        """Generalized forces on all nv degrees of freedom."""
        ...


@dataclass(frozen=True)
class Force:
    """Base of the force elements. `numbers` are the fields that become parameters of the model.

    Kinds of numbers: "scalar"; "positive" (not negative); "vector" (3,); "unit" (3,); "list" (n,); "pose"; "nested".
    """

    numbers: ClassVar[Mapping[str, str]] = {}
    bodies: ClassVar[tuple[str, ...]] = ()  # fields that name a body or the world
    joints: ClassVar[tuple[str, ...]] = ()  # fields that name a joint

    def structural(self) -> Force:
        """The element without its numbers: what belongs to the static structure."""
        empty = {f: getattr(self, f).structural() if kind == "nested" else None for f, kind in self.numbers.items()}
        return dataclasses.replace(self, **empty)

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        """Put the element's action into `loads`."""
        raise NotImplementedError

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        """Stored energy [J]."""
        return 0

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        """Power [W] of the part of the action that has no potential."""
        return 0


def local_point(scene: Scene, body: str, x_W: Vector3) -> Vector3:
    """The world point x_W in the axes and from the origin of `body`."""
    return scene.rotation(body).T @ (x_W - scene.point(body, Vector3(0, 0, 0)))
