"""Base class of the force elements, the scene in which they act, and the loads that they apply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from jaxmbs.model.fields import Element, element
from jaxmbs.spatial import IDENTITY3, ZERO3, Matrix3, Motion, RigidInertia, Transform, Vector3
from jaxmbs.spatial import Force as Wrench
from jaxmbs.spatial.components import components
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar

if TYPE_CHECKING:
    from jaxmbs.building.mechanism import Mechanism

Numbers = Mapping[str, Any]
WORLD = "world"


@components
class BodyState:
    """State of a body and of its link. placement: link frame in the world; velocity: twist of the link frame, in its
    own axes; body: placement of the body frame in the link frame."""

    placement: Transform
    velocity: Motion
    body: Transform


@components
class Scene:
    """The state of the mechanism as one element sees it, in world axes unless stated otherwise.

    t [s]; bodies: {name: BodyState}; joints: {name: (q, v)}; masses: {body: (mass, centre of mass in body axes)} for
    elements that act on all bodies; external: values of a user-defined function; all_rates: v, for the power of these
    values; sides: see `Force.sides`; air: the `Air` at the reference point of an element that is in it; inertias: {body:
    inertia about the centre of mass, in body axes} for elements that act on every inertia.
    """

    t: Scalar
    bodies: dict[str, BodyState]
    joints: Mapping[str, tuple[Sequence[Scalar], Sequence[Scalar]]]
    masses: dict[str, tuple[Scalar, Vector3]]
    external: Sequence[Scalar]
    all_rates: Sequence[Scalar]
    sides: Sequence[Scalar] = ()
    air: Any = ()
    inertias: Any = ()

    def in_link(self, body: str, local: Vector3) -> Vector3:
        """A point of the body frame, in the link's frame."""
        return self.bodies[body].body.point(local)

    def point(self, body: str, local: Vector3) -> Vector3:
        """Position [m] in the world of a point given in body axes."""
        return local if body == WORLD else self.bodies[body].placement.point(self.in_link(body, local))

    def velocity(self, body: str, local: Vector3) -> Vector3:
        """Velocity [m/s] in world axes of a point given in body axes."""
        if body == WORLD:
            return ZERO3
        V = self.bodies[body].velocity
        return self.bodies[body].placement.rotation @ (V.linear + V.angular.cross(self.in_link(body, local)))

    def rotation(self, body: str) -> Matrix3:
        """Rotation from body to world axes."""
        return IDENTITY3 if body == WORLD else self.bodies[body].placement.rotation @ self.bodies[body].body.rotation

    def angular(self, body: str) -> Vector3:
        """Angular velocity [rad/s] of a body in world axes."""
        return ZERO3 if body == WORLD else self.bodies[body].placement.rotation @ self.bodies[body].velocity.angular

    def coordinates(self, joint: str) -> Sequence[Scalar]:
        return self.joints[joint][0]

    def rates(self, joint: str) -> Sequence[Scalar]:
        return self.joints[joint][1]

    def local_point(self, body: str, x_W: Vector3) -> Vector3:
        """The world point x_W in the frame of `body`."""
        return self.rotation(body).T @ (x_W - self.point(body, ZERO3))


class Loads:
    """The loads that an element applies: wrenches in link axes, generalized forces by joint or on all coordinates."""

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
        """Add a torque [N m] in world axes."""
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
    """Base of the force elements: a class with declared fields, the loads that it applies, its energy and its power."""

    pairwise: ClassVar[bool] = False  # acts between its bodies, by their relative places and velocities alone
    on_every_mass: ClassVar[bool] = False  # acts on all bodies that have mass
    on_every_inertia: ClassVar[bool] = False  # takes their inertias, too
    in_air: ClassVar[bool] = False  # takes the air at the point `reference` of its body
    role: ClassVar[str] = ""  # what it is in the environment: "atmosphere", "wind", "planet"
    on_whole_state: ClassVar[bool] = False  # has `values`, which are a function of all coordinates and rates
    source: ClassVar[bool] = False  # its power without potential comes from outside and is no loss
    takes: ClassVar[bool] = False  # its mass or inertia is part of that of the first body it names
    freedoms: ClassVar[int | None] = None  # degrees of freedom that its joint must have; None: at least one
    trials: ClassVar[int] = 0  # trial steps that a run reserves for locating each of its corners

    def added(self, mech: Mechanism, name: str) -> Force:
        """The element, after adding the bodies and joints that it needs to the mechanism."""
        return self

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        """Add the wrenches and generalized forces of the element to `loads`."""
        raise NotImplementedError

    def gravitation(self, p: Numbers, t: Scalar, x: Vector3) -> Vector3 | None:
        """Acceleration [m/s²] that the element gives to anything at the point x [m], in world axes; None: the element is not
        gravity. A body in free fall does not feel it, and accelerometers do not show it."""
        return None

    def external_values(
        self, where: str, sides: Sequence[Scalar], numbers: Numbers, dtype: Any, *state: Any
    ) -> tuple[Scalar, ...]:
        """`Scene.external` of an element `on_whole_state`, at a state (model, t, q, v), of this dtype; numbers: those of the
        element; sides: see `Force.sides`; where: the beginning of error messages."""
        return ()

    def apply_stored(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        """Add the part of the loads that follows from the potential: usually the whole, because the scene is at rest."""
        self.apply(p, scene, loads)

    @property
    def cornered(self) -> bool:
        """Whether the force may have corners or instants at which it is not smooth."""
        return type(self).corners is not Force.corners or type(self).instants is not Force.instants

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar | None], ...]:
        """Functions of the state, each with its rate along the motion. Their zeros are the switching surfaces: the
        force is not smooth there, and runs end a step. If a rate is None, the run computes it, using the accelerations;
        the function may then depend on velocities."""
        return ()

    def instants(self, p: Numbers) -> tuple[Scalar, ...]:
        """Times [s] at which the force is not smooth; runs end a step there."""
        return ()

    def sides(self, p: Numbers, scene: Scene) -> tuple[Scalar, ...]:
        """For each corner, then each instant, whether the element is beyond it: the function is not negative, or the
        time is reached. A run gives the sides and keeps them during a step; otherwise they are computed here."""
        if scene.sides:
            return tuple(scene.sides)
        return *(g >= 0 for g, _ in self.corners(p, scene)), *(scene.t >= t for t in self.instants(p))

    def rates(self, p: Numbers, scene: Scene) -> Mapping[str, Any]:
        """{state: its rate} for every declared state; p has the states as they are now."""
        return {}

    def masses(self, p: Numbers) -> Mapping[str, RigidInertia]:
        """{body: inertia in its axes, about its origin} of the mass that the element adds to bodies."""
        return {}

    def masses_on(self, p: Numbers, sides: Sequence[Scalar]) -> Mapping[str, RigidInertia] | None:
        """`masses` on the given `sides`, so that they are smooth within a step; None if they have no corners."""
        return None

    def spins(self, p: Numbers) -> Mapping[str, Vector3]:
        """{body: angular momentum [N m s] in its axes} of what turns inside the element, beyond that of the masses."""
        return {}

    def armatures(self, p: Numbers) -> Mapping[str, Scalar]:
        """{joint: inertia [kg m2 or kg] that the element adds along each of its degrees of freedom, as armature does}."""
        return {}

    @property
    def carries(self) -> bool:
        """Whether the element may add mass to bodies."""
        return type(self).masses is not Force.masses

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        """Stored energy [J]."""
        return ZERO

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        """Power [W] of the part of the force that has no potential."""
        return ZERO
