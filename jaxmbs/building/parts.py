"""The parts of a mechanism by name, and checks that everything they refer to exists and fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jaxmbs.building.ordering import Placed, tree_order
from jaxmbs.model.bodies import Body, Closure
from jaxmbs.model.constraints import Constraint
from jaxmbs.model.control import Controller, Sensor
from jaxmbs.model.errors import ModelError, unknown
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import Element, declared
from jaxmbs.model.flexible_bodies.internal import no_motion
from jaxmbs.model.forces.base import Force
from jaxmbs.model.forces.surroundings import ALWAYS
from jaxmbs.model.joints.base import Joint
from jaxmbs.model.structure import WORLD, ConstraintElement, Event, LoopJoint, TreeJoint
from jaxmbs.model.visuals import Visual

_SURROUNDING = {  # by role: what is missing, with the remedy
    "atmosphere": "an atmosphere; add one with set_environment(atmosphere=mbs.StandardAtmosphere())",
    "planet": "a planet; add one with set_environment(planet=mbs.Earth())",
}


@dataclass(frozen=True)
class Parts:
    """Everything added to a mechanism under construction, in the order of adding; every check raises ModelError."""

    bodies: dict[str, Body] = field(default_factory=dict)
    joints: dict[str, Placed] = field(default_factory=dict)
    forces: dict[str, Force] = field(default_factory=dict)
    loops: dict[str, LoopJoint] = field(default_factory=dict)
    constraints: dict[str, ConstraintElement] = field(default_factory=dict)
    events: dict[str, Event] = field(default_factory=dict)
    sensors: dict[str, Sensor] = field(default_factory=dict)
    controllers: dict[str, Controller] = field(default_factory=dict)

    def links(self) -> tuple[TreeJoint, ...]:
        """Inward joints in regular order: parents before children, otherwise in the order of the bodies [Y 1.1]."""
        inward: dict[str, str] = {}
        for name, hinge in ((name, placed.at) for name, placed in self.joints.items()):
            self._check_bodies(hinge, f"joint {name!r}")
            if hinge.child in inward:
                raise ModelError(
                    f"body {hinge.child!r} is the child of two joints, {inward[hinge.child]!r} and {name!r}; "
                    f"a body has only one tree joint; close the loop with close_loop({name!r}, ...) instead"
                )
            inward[hinge.child] = name
        for body in self.bodies:
            if body not in inward:
                raise ModelError(
                    f"body {body!r} is not the child of any joint; add one with add_joint(..., child={body!r}), "
                    "mbs.Free() with the world as parent if it moves freely"
                )
        links = tree_order(list(self.bodies), {body: (name, self.joints[name]) for body, name in inward.items()})
        for link in links:
            _check_flexible(link, links)
        return links

    def joints_as_given(self) -> dict[str, Joint]:
        """All joints and cut joints by name, a releasable one as it was given."""
        found = {name: placed.hinge or placed.joint for name, placed in self.joints.items()}
        return found | {name: loop.joint for name, loop in self.loops.items()}

    def check(
        self,
        where: str,
        held: Iterable[str],
        off: Iterable[str],
        visuals: Iterable[Visual],
        states: Mapping[str, int],
    ) -> None:
        """Check the names to which force elements, loops, constraints, events, sensors and controllers refer, and those in
        the `held` joints, `off` elements and `visuals` of the mechanism. where: what messages call the mechanism; states:
        of how many numbers each state consists."""
        for name, force in self.forces.items():
            self._check_force(force, f"force {name!r}")
        self._check_environment()
        for name, loop in self.loops.items():
            self._check_bodies(Closure(loop.body_a, loop.body_b), f"loop {name!r}")
        for name, constraint in self.constraints.items():
            if isinstance(constraint.element, Constraint):
                self._check_constraint(constraint.element, f"constraint {name!r}")
        for name, event in self.events.items():
            self._check_event(event, states, f"event {name!r}")
        for name, sensor in self.sensors.items():
            self._check_bodies(sensor, f"sensor {name!r}")
            for joint in sensor.joints:
                self._check_joint(getattr(sensor, joint), f"sensor {name!r}")
        for name, controller in self.controllers.items():
            for read in controller.reads:
                if read not in self.sensors:
                    raise unknown("sensor", read, self.sensors, f"controller {name!r}: reads")
            own = {read: self.sensors[read] for read in controller.reads}
            controller.check_readings(f"controller {name!r}: reads", own, self.joints_as_given())
        for joint in held:
            self._check_joint(joint, f"{where}: held")
            self._check_moves(joint, f"{where}: held")
        for name in off:
            self._check_switched(name, f"{where}: off")
        for visual in visuals:
            self._check_bodies(visual, "visual")

    def _check_force(self, element: Force, where: str) -> None:
        self._check_bodies(element, where)
        if len(element.bodies) == 2 and len({getattr(element, f) for f in element.bodies}) == 1:
            body = getattr(element, element.bodies[0])
            raise ModelError(f"{where}: both ends are on {body!r}; give two different bodies")
        for name in element.joints:
            joint = getattr(element, name)
            if joint not in self.joints and joint not in self.loops:
                raise unknown("joint", joint, [*self.joints, *self.loops], f"{where}: {name}")
            hinge = (self.joints[joint] if joint in self.joints else self.loops[joint]).joint
            if joint in self.loops and not hinge.is_measured:
                raise ModelError(
                    f"{where}: cut joint {joint!r} is {hinge.type_name}, for which coordinates are not defined; use "
                    "Bushing between its two bodies"
                )
            if element.freedoms not in (None, hinge.nv):
                raise ModelError(
                    f"{where}: joint {joint!r} is {hinge.type_name} with {hinge.nv} degrees of freedom; a "
                    f"{type(element).__name__} acts on a joint with {element.freedoms}; use Bushing between the two bodies"
                )
            if hinge.nv == 0:
                raise ModelError(f"{where}: joint {joint!r} is fixed; it has no motion to act on")

    def _check_environment(self) -> None:
        """Check that there is one element of each role, and an atmosphere for elements that are in the air."""
        roles: dict[str, str] = {}
        for name, force in self.forces.items():
            if force.role and force.role in roles:
                raise ModelError(f"force {name!r} is a second {force.role}, after {roles[force.role]!r}; leave one out")
            roles[force.role] = name
        for name, force in self.forces.items():
            if force.in_air and "atmosphere" not in roles:
                raise ModelError(f"force {name!r}: {type(force).__name__} needs {_SURROUNDING['atmosphere']}")

    def _check_constraint(self, element: Constraint, where: str) -> None:
        self._check_bodies(element, where)
        ends = [getattr(element, f) for f in element.bodies]
        if len(ends) > len(set(ends)):
            raise ModelError(f"{where}: both ends are on {ends[0]!r}; give two different bodies")
        joints = list(element.named_joints.values())
        if joints and ends:
            raise ModelError(
                f"{where}: {type(element).__name__} has fields for bodies and for joints; use one kind only"
            )
        for k, name in enumerate(joints):
            self._check_joint(name, where)
            joint = self.joints[name].joint
            if name in joints[:k]:
                raise ModelError(f"{where}: joint {name!r} is named twice; name different joints")
            if (joint.nq, joint.nv) != (1, 1):
                raise ModelError(
                    f"{where}: joint {name!r} is {joint.type_name} with {joint.nv} degrees of freedom; a "
                    f"{type(element).__name__} is between joints with one coordinate; use Holonomic(fn)"
                )

    def _check_event(self, event: Event, states: Mapping[str, int], where: str) -> None:
        for part in (event.when, *event.then):
            self._check_bodies(part, where)
            for name in part.joints:
                self._check_joint(getattr(part, name), f"{where}: {type(part).__name__}")
        for needed in event.when.needs():
            if not any(isinstance(f, needed) for f in self.forces.values()):
                raise ModelError(f"{where}: {type(event.when).__name__} needs {_SURROUNDING[needed.role]}")
        try:
            event.when.check(self, states)
        except ModelError as error:
            raise ModelError(f"{where}: {error}") from None
        for action in event.then:
            for key in action.joints:
                self._check_moves(getattr(action, key), f"{where}: {type(action).__name__}")
            if action.switch() is not None:
                self._check_switched(getattr(action, "name", ""), f"{where}: {type(action).__name__}")
        if event.after is not None and (event.after not in self.events or event.after == event.name):
            raise unknown("event", event.after, [n for n in self.events if n != event.name], f"{where}: after")

    def _check_bodies(self, element: Element, where: str) -> None:
        for d in declared(type(element)):
            body = getattr(element, d.name)
            if d.kind in (Kind.BODY, Kind.BODY_OR_WORLD) and not (body is None and d.default is None):
                known = [*self.bodies, *([WORLD] if d.kind is Kind.BODY_OR_WORLD else [])]
                if body not in known:
                    raise unknown("body", body, known, f"{where}: {d.name}")

    def _check_joint(self, name: str, where: str) -> None:
        if name not in self.joints:
            raise unknown("joint", name, self.joints, where)

    def _check_moves(self, name: str, where: str) -> None:
        placed = self.joints[name]
        if placed.joint.follows:
            modes = next(k for k, x in self.joints.items() if x.at.child == placed.at.parent)
            raise no_motion(where, name, modes)

    def _check_switched(self, name: str, where: str) -> None:
        switched = [*self.forces, *self.loops, *self.constraints]
        if name not in switched:
            raise unknown("force element or constraint", name, switched, where)
        if name in self.forces and self.forces[name].role:
            raise ModelError(f"{where}: {ALWAYS.format(name=name)}")


def _check_flexible(link: TreeJoint, links: Sequence[TreeJoint]) -> None:
    """Check that the parts of a flexible body are attached to one another, and nothing else to its modes."""
    where, joint = f"joint {link.name!r}", link.joint
    parent = links[link.parent] if link.parent >= 0 else None
    if joint.elastic and parent is None:
        raise ModelError(f"{where}: modes belong to a body, not to the world; add the body with add_flexible_body")
    beside = [x.name for x in links if x.joint.elastic and x.parent == link.parent and x is not link]
    if joint.elastic and beside:
        raise ModelError(
            f"{where}: its body has the modes of {beside[0]!r} already; a flexible body has one set of modes"
        )
    if parent is None or not parent.joint.elastic:
        if joint.follows:
            raise ModelError(f"{where}: {joint.type_name} is for nodes of flexible bodies; use add_flexible_body")
    elif not joint.follows:
        raise ModelError(
            f"{where}: body {parent.body!r} carries the modes of {parent.name!r} and nothing else; attach the joint to body "
            f"{links[parent.parent].body!r}, its frame, or to one of its nodes"
        )
    elif getattr(joint, "modes", 0) != parent.joint.nv:
        raise ModelError(f"{where}: {getattr(joint, 'modes', 0)} modes, but {parent.name!r} has {parent.joint.nv}")
