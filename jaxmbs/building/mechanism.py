"""The builder: bodies, joints and force elements by name, checked when built."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from jaxmbs.building.built import built
from jaxmbs.building.numbers import require, stored
from jaxmbs.building.ordering import Placed
from jaxmbs.building.parts import Parts
from jaxmbs.model.bodies import Body, Closure, Hinge, Surroundings
from jaxmbs.model.constraints import Constraint, FunctionConstraint
from jaxmbs.model.control import Controller, Sensor
from jaxmbs.model.errors import ModelError
from jaxmbs.model.events import Action, Arming, Condition, Enable
from jaxmbs.model.events.base import Delay
from jaxmbs.model.fields import Declared, Element, check_places, declared
from jaxmbs.model.flexible_bodies import Part
from jaxmbs.model.flexible_bodies.elements import flexible_body
from jaxmbs.model.forces import AirMotion, Atmosphere, Planet
from jaxmbs.model.forces.base import Force
from jaxmbs.model.forces.surroundings import ALWAYS
from jaxmbs.model.given import Number, Rows, Vector
from jaxmbs.model.joints.base import Joint
from jaxmbs.model.joints.prismatic import Prismatic
from jaxmbs.model.joints.releasable import released
from jaxmbs.model.model import Model
from jaxmbs.model.parameters import is_traced
from jaxmbs.model.pose import Pose
from jaxmbs.model.solids import Solid
from jaxmbs.model.structure import (
    WORLD,
    ConstraintElement,
    Event,
    LoopJoint,
)  # fmt: skip
from jaxmbs.model.visuals import Visual, visuals_of

E = TypeVar("E", bound=Element)
P = ParamSpec("P")


def _whole(add: Callable[Concatenate[Mechanism, P], None]) -> Callable[Concatenate[Mechanism, P], None]:
    """Decorator: if `add` raises an error, it leaves nothing behind, so that a corrected element can be added again."""

    @functools.wraps(add)
    def added(mech: Mechanism, *args: P.args, **kwargs: P.kwargs) -> None:
        kept = [(held, len(held)) for held in (*vars(mech._parts).values(), mech._numbers)]
        try:
            add(mech, *args, **kwargs)
        except BaseException:
            for held, count in kept:
                while len(held) > count:
                    held.popitem()  # the last one added
            raise

    return added


class Mechanism:
    """A mechanism under construction. Elements may be added in any order; `build` checks the whole.

    name: of the model; gravity: uniform acceleration (3,) [m/s²] in world axes; held: joints that are locked until an
    event releases them; off: force elements, loops and constraints that do not act until an event enables them. A run
    begins in the phase that held and off define; every event begins another phase. Every error is a ModelError that names
    the element, its value and the remedy.

    >>> mech = mbs.Mechanism("pendulum", gravity=(0, 0, -9.81))
    >>> mech.add_body("link", mass=2.0, com=(0, 0, -0.5), inertia=(0.2, 0.2, 0.01))
    >>> mech.add_joint("hinge", mbs.Revolute(axis=(0, 1, 0)), parent="world", child="link")
    >>> mech.build()
    <Model 'pendulum': 1 body (link), nq = 1, nv = 1>
    """

    def __init__(
        self, name: str, gravity: Vector = Surroundings.gravity, held: Iterable[str] = (), off: Iterable[str] = ()
    ):
        self.name = str(name)
        self._held = (held,) if isinstance(held, str) else tuple(held)
        self._off = (off,) if isinstance(off, str) else tuple(off)
        self._parts = Parts()
        self._numbers: dict[str, tuple[Declared, list[float]]] = {}
        self._visuals: list[Visual] = []
        self._take(Surroundings(gravity))

    @_whole
    def add_body(
        self, name: str, mass: Number = Body.mass, com: Vector = Body.com, inertia: Vector | Rows = Body.inertia
    ) -> None:
        """Add a rigid body.

        name: the name by which other elements refer to it; mass [kg]; com (3,): centre of mass in the body frame [m];
        inertia [kg m²]: three principal moments or a 3x3 matrix, about the centre of mass along the body's axes. A body may
        be massless if it carries other bodies.
        """
        self._new(name, self._parts.bodies, "body")
        self._parts.bodies[name] = self._take(Body(mass, com, inertia), "body", name)

    @_whole
    def add_joint(
        self,
        name: str,
        joint: Joint,
        parent: str,
        child: str,
        parent_pose: Pose = Hinge.parent_pose,
        child_pose: Pose = Hinge.child_pose,
        releasable: bool = Hinge.releasable,
        armature: Number = Hinge.armature,
    ) -> None:
        """Attach the body `child` to the body `parent` (or "world") by a joint such as Revolute(axis), called `name`.

        parent_pose, child_pose: the joint frame in the parent's and in the child's body frame; the two coincide at q = 0.
        releasable: the joint becomes a Free joint and has the coordinates of one; its z axis is the axis of the given
        joint. Runs lock all its degrees of freedom except those of the given joint, until the action `Release(name)`
        ends these locks. armature [kg m², kg]: inertia that the rotor of a geared drive adds to the joint's diagonal
        entries of the mass matrix; it has no other effect.
        """
        where = f"joint {name!r}"
        self._new(name, self._parts.joints, "joint")
        require(where, joint, Joint, "a joint", "; pass one such as Revolute(axis=...)")
        if parent == child:
            raise ModelError(f"{where}: parent and child are both {parent!r}; a joint connects two bodies")
        if child == WORLD:
            raise ModelError(f"{where}: the child is the world; swap parent and child")
        if joint.elastic and not (parent_pose.is_identity and child_pose.is_identity):
            raise ModelError(f"{where}: {joint.type_name} has no poses: both frames are that of the body")
        hinge = None
        if releasable:
            if armature:
                raise ModelError(
                    f"{where}: a releasable joint cannot have armature; leave out either releasable=True or armature"
                )
            joint, hinge, parent_pose, child_pose = released(where, joint, parent_pose, child_pose)
        at = Hinge(parent, child, parent_pose, child_pose, releasable, armature)
        self._parts.joints[name] = Placed(self._take(joint, "joint", name), self._take(at, "joint", name), hinge)

    @_whole
    def add_point_mass(
        self, name: str, mass: Number, parent: str = WORLD, parent_pose: Pose = Hinge.parent_pose
    ) -> None:
        """Add the body `name`, a point mass [kg] that moves in three directions relative to the body `parent` and does not
        rotate relative to it.

        Its coordinates x, y, z [m] are along the axes of the frame parent_pose of the parent, in which it is at the origin
        at q = 0. They are the joints "<name>_x", "<name>_y", "<name>_z", slides one after the other, with the massless
        bodies "<name>_on_x" and "<name>_on_y" between them.

        >>> mech = mbs.Mechanism("ball on a spring", gravity=(0, 0, -9.81))
        >>> mech.add_point_mass("ball", 0.5)
        >>> mech.add_force("spring", mbs.LinearSpring("world", "ball", stiffness=20.0))
        >>> mech.build().joint_names
        ('ball_x', 'ball_y', 'ball_z')
        """
        on = [parent, f"{name}_on_x", f"{name}_on_y", name]
        for body in on[1:]:
            self.add_body(body, mass if body == name else 0.0)
        for k, axis in enumerate("xyz"):
            direction = tuple(float(i == k) for i in range(3))
            pose = parent_pose if k == 0 else Hinge.parent_pose
            self.add_joint(f"{name}_{axis}", Prismatic(direction), on[k], on[k + 1], parent_pose=pose)

    @_whole
    def add_flexible_body(
        self,
        name: str,
        part: Part,
        damping: Number | Vector = 0.01,
        damping_matrix: Rows | np.ndarray | None = None,
        order: int = 1,
    ) -> None:
        """Add a body that deforms by small amounts about its floating frame, the frame of the body `name`.

        part: its modes and shape integrals, such as `Part.beam(...)`; damping: of each mode, as a fraction of critical
        damping, one number or one for each mode; damping_matrix (n, n) [1/s]: further damping between modes, None for none;
        order: 1 takes the inertia of the deformed body to first order in the modal coordinates, 2 also to second order.

        The modal coordinates are those of the joint `name`, "<name>.mode[k]"; v contains their rates. Each node of the
        part is a massless body "<name>_<node>" that moves with the deformed body; joints, force elements, constraints and
        shapes attach there, or to the body `name` itself, whose frame does not move relative to the undeformed body. The
        body "<name>_modes" between them is internal: nothing else is attached to it. Frequencies and damping are the
        parameters "<name>.frequency" [Hz] and "<name>.damping"; "<name>.participation" is a factor on how much all modes
        take part in the motion of the body.

        Displacements should remain small, a tenth of the length of the body at most. Forces along a beam change its bending
        stiffness only with `Part.beam(foreshortening=True)`: without it, the stiffening of a beam that spins fast is left
        out. This stiffening raises the lowest frequency by 2 % if the beam spins at 0.2 of that frequency; a study warns of
        bodies that spin faster at the start.

        >>> mech = mbs.Mechanism("boom", gravity=(0, 0, -9.81))
        >>> part = mbs.Part.beam(length=2.0, mass=1.5, bending=(40.0, 90.0), torsion=10.0, modes=2)
        >>> mech.add_flexible_body("boom", part, damping=0.005)
        >>> mech.add_joint("root", mbs.Revolute((0, 0, 1)), "world", "boom")
        >>> mech.build().coordinates[1].name
        'boom.mode[0]'
        """
        made = flexible_body(name, part, damping, damping_matrix, order)
        for body, given in made.bodies.items():
            self.add_body(body, *given)
        for joint, (element, parent, child, pose) in made.joints.items():
            self.add_joint(joint, element, parent, child, pose)
        self.add_force(name, made.stiffness)

    @_whole
    def add_force(self, name: str, element: Force, delay: Number | None = None) -> None:
        """Add a force element; its numbers become parameters "<name>.<field>". Some elements, such as Slosh, add bodies and
        joints of their own, which are named after them.

        delay [s]: the time before which the element does not act in a run; None for an element that always acts. A delay,
        even of zero, becomes the parameter "<name>.delay": the element is `off` at first, and an event that has its name
        enables it; functions outside a run compute with it unless their `mode` says otherwise. An element that has a field
        `delay` of its own, such as Pusher, takes the number as this field.

        >>> mech = mbs.library.double_pendulum()
        >>> mech.add_force("coil", mbs.JointSpring("elbow", stiffness=5.0), delay=0.2)
        >>> print(mbs.get(mech.build(), "coil.delay"))
        0.2
        """
        where = f"force {name!r}"
        self._new(name, self._parts.forces, "force element")
        require(where, element, Force, "a force element")
        check_places(element, f"{where}: ")
        own = [d for d in declared(type(element)) if d.name == "delay"]
        if delay is not None and own:
            taken: Any = element
            if own[0].required or not np.array_equal(taken.delay, own[0].default):
                kind = type(element).__name__
                raise ModelError(
                    f"{where}: {kind} has a delay of its own, {taken.delay!r}; leave out the one of add_force"
                )
            element, delay = replace(taken, delay=delay), None
        self._parts.forces[name] = self._take(element.added(self, name), "force", name)
        if delay is not None:
            self._delay(name, element, delay)

    def _delay(self, name: str, element: Force, delay: Number) -> None:
        """Let an event switch a force element on."""
        where = f"force {name!r}"
        if element.role:
            raise ModelError(f"{where}: {ALWAYS.format(name=name)}; leave out its delay")
        if name in self._parts.events:
            raise ModelError(f"{where}: its delay is an event of the same name, which exists; rename one of the two")
        event = Event(name, Delay(delay), (Enable(name),), None, False)
        self._parts.events[name] = replace(event, when=self._take(event.when, "force", name))

    @_whole
    def set_environment(
        self, *, atmosphere: Atmosphere | None = None, wind: AirMotion | None = None, planet: Planet | None = None
    ) -> None:
        """Set what surrounds the bodies: the air, its motion relative to the ground, and the planet.

        atmosphere: StandardAtmosphere(), ExponentialAtmosphere(...) or TabulatedAtmosphere(...); wind: Wind(...); planet:
        Earth(), or Planet(...), which attracts every body, so that `gravity` must be zero. They are force elements called
        "atmosphere", "wind" and "planet", whose numbers are parameters: "atmosphere.density_factor". Elements such as
        Aerodynamics use them. Without a planet the ground is the plane z = 0, z is the height, x the east and y the north.
        Raises ModelError for an element of another kind, or one that is there already.

        >>> mech = mbs.Mechanism("rocket")
        >>> mech.set_environment(atmosphere=mbs.StandardAtmosphere(), wind=mbs.Wind(east=(10.0,)), planet=mbs.Earth())
        """
        given = {"atmosphere": atmosphere, "wind": wind, "planet": planet}
        for role, part in given.items():
            if part is not None and (not isinstance(part, Force) or part.role != role):
                hint = f"; pass {part.__name__}(...)" if isinstance(part, type) or callable(part) else ""
                said = f"{role} is {part!r}, which is not an environment element of this kind{hint}"
                raise ModelError(f"set_environment: {said}")
            if part is not None and role in self._parts.forces:
                raise ModelError(f"set_environment: there is a force element {role!r} already")
        for role, part in given.items():
            if part is not None:
                self.add_force(role, part)

    @_whole
    def close_loop(
        self,
        name: str,
        joint: Joint,
        body_a: str,
        body_b: str,
        pose_a: Pose = Closure.pose_a,
        pose_b: Pose = Closure.pose_b,
    ) -> None:
        """Close a loop with a cut joint between two bodies, or between a body and the world [Y 3.6].

        name: of the loop, whose numbers become parameters "<name>.<field>"; joint: of any type that has constraint
        equations; pose_a, pose_b: the joint frame in the frames of body_a and body_b; a is the parent side.
        """
        where = f"loop {name!r}"
        self._new(name, self._parts.joints | self._parts.loops | self._parts.constraints, "loop")
        require(where, joint, Joint, "a joint", "; pass one such as Spherical()")
        if body_a == body_b:
            raise ModelError(f"{where}: both ends are on {body_a!r}; a loop connects two bodies")
        if not joint.closes_loops:
            raise ModelError(f"{where}: {joint.lacks('equations')}")
        kept = self._take(joint, "loop", name)
        self._take(Closure(body_a, body_b, pose_a, pose_b), "loop", name)
        self._parts.loops[name] = LoopJoint(name, kept, body_a, body_b, tuple(range(joint.constraints)))

    @_whole
    def add_constraint(self, name: str, element: Constraint | FunctionConstraint) -> None:
        """Add a constraint element: Rod, KnifeEdge, RollingDisc, Coupling, Holonomic, Nonholonomic or a user-defined one.

        Its numbers become parameters "<name>.<field>". Raises ModelError for anything else.
        """
        where = f"constraint {name!r}"
        self._new(name, self._parts.joints | self._parts.loops | self._parts.constraints, "constraint")
        require(where, element, (Constraint, FunctionConstraint), "a constraint")
        self._parts.constraints[name] = ConstraintElement(name, self._take(element, "constraint", name))

    @_whole
    def add_sensor(self, name: str, sensor: Sensor) -> None:
        """Add a sensor for controllers to read, such as Imu(body); its numbers become parameters "<name>.<field>"."""
        self._new(name, self._parts.sensors, "sensor")
        require(f"sensor {name!r}", sensor, Sensor, "a sensor", "; pass one such as Encoder(joint)")
        self._parts.sensors[name] = self._take(sensor, "sensor", name)

    @_whole
    def add_controller(self, name: str, controller: Controller) -> None:
        """Add a controller that samples. "<name>.offset", "<name>.delay" and the numbers in its `parameters` become
        parameters of the model, and so does its own state, "<name>.state", as one list of numbers."""
        self._new(name, self._parts.controllers, "controller")
        require(f"controller {name!r}", controller, Controller, "a controller", "; pass Controller(fn, period)")
        controller.check_law(f"controller {name!r}")
        self._parts.controllers[name] = self._take(controller, "controller", name)
        if (memory := controller.memory) is not None:
            self._take(memory, "controller", name)

    @_whole
    def add_event(
        self,
        name: str,
        when: Condition,
        then: Action | Sequence[Action] = (),
        *,
        after: str | None = None,
        repeat: bool = False,
        armed_from: float | None = None,
    ) -> None:
        """Add an event: the actions `then` happen at the instant at which the condition `when` becomes true in a run.

        after: name of the event that arms it (None: armed from the start); repeat: whether it happens every time, not only
        the first; armed_from: time [s] before which it does not happen. A condition that is already true when its event is
        armed must first become false and then true again, except Time. The numbers of all these become parameters
        "<name>.<field>", or "<name>.<joint>.<field>" where two actions have a field of the same name.

        >>> mech = mbs.library.double_pendulum()
        >>> mech.add_event("latch", when=mbs.JointReaches("elbow", 0.0), then=mbs.Lock("elbow"))
        >>> mech.build().event_names
        ('latch',)
        """
        where = f"event {name!r}"
        if name in self._parts.events and isinstance(self._parts.events[name].when, Delay):
            raise ModelError(f"{where}: the delay of force {name!r} is an event of this name; choose another name")
        self._new(name, self._parts.events, "event")
        if not isinstance(when, Condition):
            raise ModelError(f"{where}: when={when!r} is not a condition; pass one such as Time(1.0)")
        actions: tuple[Any, ...] = tuple(then) if isinstance(then, (list, tuple)) else (then,)
        for action in actions:
            if not isinstance(action, Action):
                raise ModelError(f"{where}: then={action!r} is not an action; pass one such as Lock(joint)")
            if repeat and action.strikes and _is_zero(getattr(action, "restitution", None)):
                raise ModelError(
                    f"{where}: a joint that bounces without restitution stays on its stop, so that the event cannot "
                    "repeat; pass restitution=..., hold the joint with Lock(joint), or use a Contact"
                )
        event = Event(name, when, actions, after, repeat, armed_from is not None)
        if armed_from is not None:
            self._take(Arming(armed_from), "event", name)
        kept = self._take(when, "event", name), tuple(self._take(a, "event", event.prefix(a)) for a in actions)
        self._parts.events[name] = replace(event, when=kept[0], then=kept[1])

    def add_visual(
        self,
        body: str,
        shape: str | Solid,
        size: Vector = Visual.size,
        pose: Pose = Visual.pose,
        color: str = Visual.color,
        file: str = Visual.file,
        vertices: Rows | np.ndarray | None = Visual.vertices,
        triangles: Rows | np.ndarray | None = Visual.triangles,
    ) -> None:
        """Give a body, or the world, a shape for pictures: a solid such as `Mesh("stage.stl")` or `Box((1, 1, 2))`, or the
        name of a shape: "box", "cylinder", "cone", "sphere", "pipe", "nozzle" (hollow, narrower at its upper end),
        "half_pipe", "half_nozzle" (the half y > 0 of these) or "mesh".

        The shape is about the origin of its pose in the body's frame; round shapes have their axis along z. color:
        "#rrggbb". A shape that is given by name fills the box `size` (3,) [m]; a "mesh" has a `file`, or vertices (n, 3) and
        triangles (m, 3), with `size` as its scale. A file is read when it is drawn; one that cannot be read causes a
        ModelWarning then. Bodies without a shape are drawn as the ellipsoids of their inertia.

        >>> mech = mbs.library.double_pendulum()
        >>> mech.add_visual("upper", "cylinder", size=(0.1, 0.1, 1.0), pose=mbs.Pose((0, 0, -0.5)), color="#3b82f6")
        >>> mech.add_visual("lower", mbs.Capsule(radius=0.05, length=1.0), pose=mbs.Pose((0, 0, -0.5)))
        >>> mech.build()
        <Model 'double pendulum': 2 bodies (upper, lower), nq = 2, nv = 2>
        """
        try:
            given: Any = (body, shape, size, pose, color, file, vertices, triangles)
            self._visuals += visuals_of(Visual(*given))
        except ModelError as error:
            raise ModelError(f"visual of {body!r}: {error}") from None

    def build(self) -> Model:
        """Check the mechanism and return its Model. Does not start a JAX backend.

        Warns (ModelWarning) about constraints that depend on one another, about a mechanism that cannot move, and about
        force elements with a delay whose bodies nothing holds until then. The warnings name the elements.
        """
        return built(self.name, self._parts, self._numbers, self._held, self._off, self._visuals)

    def _new(self, name: str, known: dict[str, Any], kind: str) -> None:
        if not isinstance(name, str) or not name:
            raise ModelError(f"{kind}: the name {name!r} is not a non-empty string")
        if kind == "body" and name == WORLD:
            raise ModelError("body 'world': this name belongs to the world; choose another name")
        if name in known:
            raise ModelError(f"{kind} {name!r} was added twice; names of one kind must differ")

    def _take(self, element: E, what: str = "", name: str = "") -> E:
        """See `stored`."""
        return stored(element, self._numbers, what, name)


def _is_zero(x: Any) -> bool:
    return not is_traced(x) and np.array_equal(x, 0)
