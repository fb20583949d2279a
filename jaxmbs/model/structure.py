"""The static part of a model: tree, joint types, elements, names and parameter patterns."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from jaxmbs.model.constraints.base import Constraint
from jaxmbs.model.constraints.functions import FunctionConstraint
from jaxmbs.model.control.controller import Controller
from jaxmbs.model.control.sensors import Sensor
from jaxmbs.model.errors import unknown
from jaxmbs.model.events.base import Action, Condition, Delay
from jaxmbs.model.fields import Element
from jaxmbs.model.flexible_bodies.internal import no_motion
from jaxmbs.model.forces.base import WORLD, Force
from jaxmbs.model.forces.sampled_force import SampledForce
from jaxmbs.model.joints.base import Joint
from jaxmbs.model.parameters import Parameter
from jaxmbs.model.visuals import Visual


@dataclass(frozen=True)
class TreeJoint:
    """The inward joint of one body; `parent` is the index of the parent body, -1 for the world.

    hinge: for a releasable joint, which is a Free joint, the joint that it acts as until its release, with its axis along z.
    """

    name: str
    body: str
    parent: int
    joint: Joint
    hinge: Joint | None = None

    @property
    def locked(self) -> tuple[bool, ...]:
        """For each degree of freedom, whether it is locked at the start of a run because the hinge does not have it."""
        kept = range(self.joint.nv) if self.hinge is None else self.hinge.within_free or ()
        return tuple(k not in kept for k in range(self.joint.nv))


@dataclass(frozen=True)
class ForceElement:
    name: str
    element: Force


@dataclass(frozen=True)
class LoopJoint:
    """A cut joint between frames a and b; `kept`: indices of its rows that do not depend on others by structure."""

    name: str
    joint: Joint
    body_a: str
    body_b: str
    kept: tuple[int, ...]


@dataclass(frozen=True)
class ConstraintElement:
    name: str
    element: Constraint | FunctionConstraint


@dataclass(frozen=True)
class SensorElement:
    name: str
    element: Sensor


@dataclass(frozen=True)
class ControllerElement:
    """A controller by its name; fixed: what it is apart from its numbers."""

    name: str
    fixed: Controller


@dataclass(frozen=True)
class Event:
    """The actions `then`, which happen when the condition `when` becomes true. after: the event that arms this one;
    repeat: whether it happens every time; waits: whether it is armed only from a given time on."""

    name: str
    when: Condition
    then: tuple[Action, ...]
    after: str | None
    repeat: bool
    waits: bool = False

    def prefix(self, action: Action) -> str:
        """Prefix of the names of an action's numbers: the event, and the joint if another action shares field names."""
        others = {n for a in self.then if a is not action for n in a.numbers}
        joint = getattr(action, "joint", "")
        return f"{self.name}.{joint}" if joint and others & set(action.numbers) else self.name


class _Content:
    """An object that all structures of the same content share; it exists as long as one of them does."""


_contents: weakref.WeakValueDictionary[tuple[object, ...], _Content] = weakref.WeakValueDictionary()
_lock = threading.RLock()


@dataclass(frozen=True, eq=False)
class Structure:
    """Everything that decides what is compiled. Equal structures share compiled functions.

    Every call of a compiled function compares structures. Their contents are therefore compared only once, and
    structures of the same content then have the same `_content`.
    """

    name: str
    links: tuple[TreeJoint, ...]
    forces: tuple[ForceElement, ...]
    parameters: tuple[Parameter, ...]
    loops: tuple[LoopJoint, ...] = ()
    constraints: tuple[ConstraintElement, ...] = ()
    events: tuple[Event, ...] = ()
    held: tuple[str, ...] = ()  # joints that are locked at the start of a run
    off: tuple[str, ...] = ()  # force elements and constraints that do not act at the start of a run
    redundant: bool = False  # constraints depend, or may depend, on one another wherever they are satisfied
    visuals: tuple[Visual, ...] = ()
    singular: bool = False  # without its constraints, some motion of the tree moves no mass
    sensors: tuple[SensorElement, ...] = ()
    controllers: tuple[ControllerElement, ...] = ()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Structure) and self._content is other._content)

    def __hash__(self) -> int:
        return hash(self._content)

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: `_content` says nothing in another process."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def _content(self) -> _Content:
        elements = (self.links, self.forces, self.loops, self.constraints, self.events, self.sensors, self.controllers)
        key = (
            self.name, *elements, self.parameters, self.held, self.off, self.redundant, self.singular, self.visuals,
        )  # fmt: skip
        with _lock:
            return _contents.setdefault(key, _Content())

    @cached_property
    def with_all_rows(self) -> Structure:
        """The structure with every row of every cut joint."""
        loops = tuple(replace(x, kept=tuple(range(x.joint.constraints))) for x in self.loops)
        return self if loops == self.loops else replace(self, loops=loops)

    @cached_property
    def table(self) -> dict[str, tuple[Parameter, int]]:
        """Parameter and offset of its first component in `Model.numbers`, by name."""
        out, offset = {}, 0
        for p in self.parameters:
            out[p.name] = (p, offset)
            offset += p.free_count
        return out

    @cached_property
    def states(self) -> tuple[Parameter, ...]:
        """The parameters that change during a run, in their order there."""
        return tuple(p for p in self.parameters if p.is_state)

    @cached_property
    def delayed(self) -> frozenset[str]:
        """The force elements with a delay (`Mechanism.add_force`), each with an event of its name."""
        return frozenset(e.name for e in self.events if isinstance(e.when, Delay))

    @cached_property
    def clocks(self) -> tuple[tuple[str, float], ...]:
        """(name, period [s]) of everything that samples: the sensors with a period of their own, the force elements that
        sample, then the controllers."""
        own = ((x.name, x.element.period) for x in self.sensors)
        measuring = tuple((name, period) for name, period in own if period is not None)
        acting = tuple((f.name, f.element.period) for f in self.forces if isinstance(f.element, SampledForce))
        return measuring + acting + tuple((x.name, x.fixed.period) for x in self.controllers)

    @cached_property
    def elements(self) -> dict[str, Element]:
        """Joints, cut joints, force elements, constraints, sensors and controllers with declared fields, by name."""
        found: list[tuple[str, object]] = [(x.name, x.joint) for x in (*self.links, *self.loops)]
        found += [(x.name, x.element) for x in (*self.forces, *self.constraints, *self.sensors)]
        found += [(x.name, x.fixed) for x in self.controllers]
        return {name: x for name, x in found if isinstance(x, Element)}

    @cached_property
    def demanding(self) -> dict[str, tuple[str, Element]]:
        """{parameter: (prefix of the names, element)} for the numbers that an element, a condition or an action checks
        in combination."""
        found = list(self.elements.items())
        for e in self.events:
            found += [(e.name, e.when), *((e.prefix(action), action) for action in e.then)]
        demands = [(name, x) for name, x in found if type(x).requirements is not Element.requirements]
        return {f"{name}.{path}": (name, x) for name, x in demands for path in x.numbers}

    @cached_property
    def body_index(self) -> dict[str, int]:
        return {WORLD: -1} | {link.body: i for i, link in enumerate(self.links)}

    @cached_property
    def joint_index(self) -> dict[str, int]:
        return {link.name: i for i, link in enumerate(self.links)}

    @cached_property
    def q_slices(self) -> tuple[slice, ...]:
        return _slices(link.joint.nq for link in self.links)

    @cached_property
    def v_slices(self) -> tuple[slice, ...]:
        return _slices(link.joint.nv for link in self.links)

    @cached_property
    def motion_q(self) -> tuple[slice, ...]:
        """For each link, the part of q on which its motion relative to its parent depends."""
        return tuple(self.q_slices[x.parent if x.joint.follows else i] for i, x in enumerate(self.links))

    @cached_property
    def motion_v(self) -> tuple[slice, ...]:
        """For each link, the part of v along the columns S of its motion relative to its parent."""
        return tuple(self.v_slices[x.parent if x.joint.follows else i] for i, x in enumerate(self.links))

    @cached_property
    def flexible(self) -> bool:
        """Whether there are flexible bodies."""
        return bool(self.modes_of)

    @cached_property
    def modes_of(self) -> dict[str, int]:
        """{flexible body: index of the link that carries its modes}."""
        return {self.links[x.parent].body: i for i, x in enumerate(self.links) if x.joint.elastic}

    @cached_property
    def fixed_by_modes(self) -> frozenset[str]:
        """The parameters of flexible bodies that cannot be changed alone: their shape integrals would no longer fit."""
        return frozenset(f"{body}.{field}" for body in self.modes_of for field in ("mass", "com", "inertia"))

    @cached_property
    def nq(self) -> int:
        return sum(link.joint.nq for link in self.links)

    @cached_property
    def nv(self) -> int:
        return sum(link.joint.nv for link in self.links)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        out: list[list[int]] = [[] for _ in self.links]
        for i, link in enumerate(self.links):
            if link.parent >= 0:
                out[link.parent].append(i)
        return tuple(map(tuple, out))

    @property
    def constrained(self) -> bool:
        """Whether there are loops or constraints in addition to the tree."""
        return bool(self.loops or self.constraints)

    @cached_property
    def rheonomic(self) -> bool:
        """Whether any joint depends explicitly on time."""
        return any(x.joint.rheonomic for x in self.links) or any(x.joint.rheonomic_rows for x in self.loops)

    @cached_property
    def loop_by_name(self) -> dict[str, LoopJoint]:
        return {loop.name: loop for loop in self.loops}

    def find_body(self, name: str, where: str = "") -> int:
        if name not in self.body_index:
            raise unknown("body", name, self.body_index, where)
        return self.body_index[name]

    def find_joint(self, name: str, where: str = "") -> int:
        if name not in self.joint_index:
            raise unknown("joint", name, self.joint_index, where)
        return self.joint_index[name]

    def inward(self, i: int) -> Iterator[int]:
        """Link i (-1: the world) and all links between it and the world, inwards."""
        while i >= 0:
            yield i
            i = self.links[i].parent

    def root_of(self, i: int) -> int:
        """The first link on the way from the world to link i."""
        return list(self.inward(i))[-1]

    def find_moving(self, name: str, where: str) -> int:
        """The index of a joint that has a motion of its own."""
        i = self.find_joint(name, where)
        if self.links[i].joint.follows:
            raise no_motion(where, name, self.links[self.links[i].parent].name)
        return i


def _slices(sizes: Iterable[int]) -> tuple[slice, ...]:
    out, start = [], 0
    for size in sizes:
        out.append(slice(start, start + size))
        start += size
    return tuple(out)
