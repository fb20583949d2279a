"""What every force element answers, and the scene it acts in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from jaxmbs.model.fields import Element, element
from jaxmbs.spatial import IDENTITY3, ZERO3, Matrix3, Motion, Transform, Vector3
from jaxmbs.spatial import Force as Wrench
from jaxmbs.spatial.components import components
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar

Numbers = Mapping[str, Any]
WORLD = "world"


@components
class BodyState:
    """Link frame in the world, velocity of the link in its own axes, body frame in the link."""

    placement: Transform
    velocity: Motion
    body: Transform


@components
class Scene:
    """What one element sees of the mechanism. World axes unless said otherwise.

    t [s]; bodies: {name: BodyState}; joints: {name: (q, v)}; masses: {body: (mass, centre of mass in body axes)} for
    elements that act on all bodies; external: values of a user's function; all_rates: v, for the power of those.
    sides: see `Force.sides`.
    """

    t: Scalar
    bodies: dict[str, BodyState]
    joints: Mapping[str, tuple[Sequence[Scalar], Sequence[Scalar]]]
    masses: dict[str, tuple[Scalar, Vector3]]
    external: Sequence[Scalar]
    all_rates: Sequence[Scalar]
    sides: Sequence[Scalar] = ()

    def in_link(self, body: str, local: Vector3) -> Vector3:
        """A point of the body frame, in the link's frame."""
        return self.bodies[body].body.point(local)

    def point(self, body: str, local: Vector3) -> Vector3:
        """World position [m] of a point given in body axes."""
        return local if body == WORLD else self.bodies[body].placement.point(self.in_link(body, local))

    def velocity(self, body: str, local: Vector3) -> Vector3:
        """World velocity [m/s] of that point."""
        if body == WORLD:
            return ZERO3
        V = self.bodies[body].velocity
        return self.bodies[body].placement.rotation @ (V.linear + V.angular.cross(self.in_link(body, local)))

    def rotation(self, body: str) -> Matrix3:
        """Rotation from body to world axes."""
        return IDENTITY3 if body == WORLD else self.bodies[body].placement.rotation @ self.bodies[body].body.rotation

    def angular(self, body: str) -> Vector3:
        """Angular velocity [rad/s]."""
        return ZERO3 if body == WORLD else self.bodies[body].placement.rotation @ self.bodies[body].velocity.angular

    def coordinates(self, joint: str) -> Sequence[Scalar]:
        return self.joints[joint][0]

    def rates(self, joint: str) -> Sequence[Scalar]:
        return self.joints[joint][1]

    def local_point(self, body: str, x_W: Vector3) -> Vector3:
        """The world point x_W in the axes and from the origin of `body`."""
        return self.rotation(body).T @ (x_W - self.point(body, ZERO3))


class Loads:
    """Where an element puts its action: wrenches in link axes, generalized forces by joint or of all coordinates."""

    def __init__(self, scene: Scene):
        self.scene = scene
        self.on_body: dict[str, Wrench] = {}
        self.on_joint: dict[str, tuple[Scalar, ...]] = {}
        self.on_all: tuple[Scalar, ...] = ()

    def force(self, body: str, force: Vector3, at: Vector3) -> None:
        """Add a force [N] in world axes at a point in body axes."""
        if body != WORLD:
            f = self.scene.bodies[body].placement.rotation.T @ force
            self._add(body, Wrench(self.scene.in_link(body, at).cross(f), f))

    def moment(self, body: str, moment: Vector3) -> None:
        """Add a moment [N m] in world axes."""
        if body != WORLD:
            self._add(body, Wrench(self.scene.bodies[body].placement.rotation.T @ moment, ZERO3))

    def joint(self, joint: str, values: Sequence[Scalar]) -> None:
        """Add generalized forces on the joint's degrees of freedom."""
        self.on_joint[joint] = _sum(self.on_joint.get(joint), values)

    def generalized(self, values: Sequence[Scalar]) -> None:
        """Add generalized forces on all nv degrees of freedom."""
        self.on_all = _sum(self.on_all, values)

    def _add(self, body: str, wrench: Wrench) -> None:
        self.on_body[body] = self.on_body[body] + wrench if body in self.on_body else wrench


def _sum(before: Sequence[Scalar] | None, values: Sequence[Scalar]) -> tuple[Scalar, ...]:
    return tuple(x + y for x, y in zip(before, values, strict=True)) if before else tuple(values)


@element
class Force(Element):
    """Base of the force elements: a class with declared fields, an action, and what it stores and loses."""

    on_every_mass: ClassVar[bool] = False  # acts on all bodies that have mass
    source: ClassVar[bool] = False  # what has no potential brings energy in from outside, and is no loss
    freedoms: ClassVar[int | None] = None  # that the joint it acts on must have; None: at least one
    trials: ClassVar[int] = 0  # trial steps that a run sets aside for each of its corners

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        """Put the element's action into `loads`."""
        raise NotImplementedError

    @property
    def cornered(self) -> bool:
        """Whether the action may have corners or instants at which it is not smooth."""
        return type(self).corners is not Force.corners or type(self).instants is not Force.instants

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar | None], ...]:
        """Functions of the state, each with its rate along the motion: where one is zero the action is not smooth, and runs
        end a step. A run differentiates a function whose rate is None, with the accelerations; it may depend on rates."""
        return ()

    def instants(self, p: Numbers) -> tuple[Scalar, ...]:
        """Times [s] at which the action is not smooth; runs end a step there."""
        return ()

    def sides(self, p: Numbers, scene: Scene) -> tuple[Scalar, ...]:
        """Per corner and instant, whether the element is beyond it: as its function says, or a run, which keeps to a side
        while it tries a step."""
        if scene.sides:
            return tuple(scene.sides)
        return *(g >= 0 for g, _ in self.corners(p, scene)), *(scene.t >= t for t in self.instants(p))

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        """Stored energy [J]."""
        return ZERO

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        """Power [W] of the part of the action that has no potential."""
        return ZERO
