"""The builder: bodies, joints and force elements by name, checked when built."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaxmbs.model.constraints import Constraint, FunctionConstraint, cuts, freedoms
from jaxmbs.model.errors import ModelError, unknown
from jaxmbs.model.forces.base import Force
from jaxmbs.model.joints.base import Fixed, Joint
from jaxmbs.model.model import Model
from jaxmbs.model.parameters import Parameter, concrete_components, pattern_of
from jaxmbs.model.pose import Pose
from jaxmbs.model.redundancy import warn_of_redundancy, without_dependent_rows
from jaxmbs.model.structure import WORLD, ConstraintElement, ForceElement, LoopJoint, Structure, TreeJoint
from jaxmbs.model.validation import check_moves_mass

_HERE = Pose()


@dataclass(frozen=True)
class _Body:
    mass: list[float]
    com: list[float]
    inertia: list[float]


@dataclass(frozen=True)
class _Hinge:
    joint: Joint
    parent: str
    child: str


class Mechanism:
    """A mechanism under construction. Elements may be added in any order; `build` checks the whole.

    gravity: uniform acceleration (3,) [m/s²] in world axes. Every error is a ModelError that names the element,
    its value and the remedy.
    """

    def __init__(self, name: str, gravity: Any = (0.0, 0.0, 0.0)):
        self.name = str(name)
        self._numbers: dict[str, tuple[str, list[float]]] = {}
        self._bodies: dict[str, _Body] = {}
        self._joints: dict[str, _Hinge] = {}
        self._forces: dict[str, Force] = {}
        self._loops: dict[str, LoopJoint] = {}
        self._constraints: dict[str, ConstraintElement] = {}
        self._number("gravity", "vector", gravity)

    def add_body(
        self, name: str, mass: float = 0.0, com: Any = (0.0, 0.0, 0.0), inertia: Any = (0.0, 0.0, 0.0)
    ) -> None:
        """Add a rigid body.

        mass [kg]; com (3,): centre of mass in the body frame [m]; inertia [kg m²]: three principal moments or a 3x3
        matrix, about the centre of mass along the body's axes. A body may be massless where others hang on it.
        """
        where = f"body {name!r}"
        self._new(name, self._bodies, "body")
        self._bodies[name] = _Body(
            self._number(f"{name}.mass", "positive", mass, f"{where}: mass"),
            self._number(f"{name}.com", "vector", com, f"{where}: com"),
            self._number(f"{name}.inertia", "inertia", inertia, f"{where}: inertia"),
        )

    def add_joint(
        self, name: str, joint: Joint, parent: str, child: str, parent_pose: Pose = Pose(), child_pose: Pose = Pose()
    ) -> None:
        """Hang the body `child` on the body `parent` (or "world").

        parent_pose, child_pose: the joint frame in the parent's and in the child's body frame; they coincide at q = 0.
        """
        where = f"joint {name!r}"
        self._new(name, self._joints, "joint")
        if not isinstance(joint, Joint):
            hint = (
                f"; pass {joint.__name__}(...)" if isinstance(joint, type) else "; pass one such as Revolute(axis=...)"
            )
            raise ModelError(f"{where}: {joint!r} is not a joint{hint}")
        if parent == child:
            raise ModelError(f"{where}: parent and child are both {parent!r}; a joint connects two bodies")
        if child == WORLD:
            raise ModelError(f"{where}: the child is the world; swap parent and child")
        for field, kind in joint.numbers.items():
            self._number(f"{name}.{field}", kind, getattr(joint, field), f"{where}: {field}")
        self._pose(f"{name}.parent_pose", parent_pose, f"{where}: parent_pose")
        self._pose(f"{name}.child_pose", child_pose, f"{where}: child_pose")
        self._joints[name] = _Hinge(joint.structural(), parent, child)

    def add_force(self, name: str, element: Force) -> None:
        """Add a force element; its numbers become parameters "<name>.<field>"."""
        where = f"force {name!r}"
        self._new(name, self._forces, "force element")
        if not isinstance(element, Force):
            hint = f"; pass {element.__name__}(...)" if isinstance(element, type) else ""
            raise ModelError(f"{where}: {element!r} is not a force element{hint}")
        for path, kind, value in _numbers_of(element):
            if kind == "pose":
                self._pose(f"{name}.{path}", value, f"{where}: {path}")
            else:
                self._number(f"{name}.{path}", kind, value, f"{where}: {path}")
        self._check_profile(name, element)
        self._forces[name] = element.structural()

    def close_loop(
        self, name: str, joint: Joint, body_a: str, body_b: str, pose_a: Pose = _HERE, pose_b: Pose = _HERE
    ) -> None:
        """Close a loop by a cut joint of any type between two bodies, or a body and the world [Y 3.6].

        pose_a, pose_b: the joint frame in the frames of body_a and body_b; a is the parent's side.
        """
        where = f"loop {name!r}"
        self._new(name, self._joints | self._loops | self._constraints, "loop")
        if not isinstance(joint, Joint):
            raise ModelError(f"{where}: {joint!r} is not a joint; pass one such as Spherical()")
        if body_a == body_b:
            raise ModelError(f"{where}: both ends are on {body_a!r}; a loop connects two bodies")
        try:
            rows = cuts.count(joint)
        except ModelError as error:
            raise ModelError(f"{where}: {error}") from None
        for field, kind in joint.numbers.items():
            self._number(f"{name}.{field}", kind, getattr(joint, field), f"{where}: {field}")
        self._pose(f"{name}.pose_a", pose_a, f"{where}: pose_a")
        self._pose(f"{name}.pose_b", pose_b, f"{where}: pose_b")
        self._loops[name] = LoopJoint(name, joint.structural(), body_a, body_b, tuple(range(rows)))

    def add_constraint(self, name: str, element: Constraint | FunctionConstraint) -> None:
        """Add a constraint: KnifeEdge, RollingDisc, Holonomic or Nonholonomic."""
        where = f"constraint {name!r}"
        self._new(name, self._joints | self._loops | self._constraints, "constraint")
        if isinstance(element, FunctionConstraint):
            self._constraints[name] = ConstraintElement(name, element)
            return
        if not isinstance(element, Constraint):
            hint = f"; pass {element.__name__}(...)" if isinstance(element, type) else ""
            raise ModelError(f"{where}: {element!r} is not a constraint{hint}")
        for path, kind, value in _numbers_of(element):
            self._number(f"{name}.{path}", kind, value, f"{where}: {path}")
        self._constraints[name] = ConstraintElement(name, element.structural())

    def build(self) -> Model:
        """Check the mechanism and return its Model. Starts no JAX backend.

        Warns (ModelWarning), with names, of loops whose constraints depend on one another.
        """
        if not self._bodies:
            raise ModelError(f"mechanism {self.name!r} has no bodies; add one with add_body")
        links = self._links()
        forces = tuple(ForceElement(name, self._checked_force(name, f)) for name, f in self._forces.items())
        parameters = tuple(Parameter(name, kind, pattern_of(kind, c)) for name, (kind, c) in self._numbers.items())
        numbers = [
            v
            for p in parameters
            for v, pinned in zip(self._numbers[p.name][1], p.pattern, strict=True)
            if pinned is None
        ]
        structure = Structure(
            self.name, links, forces, parameters, self._checked_loops(), tuple(self._constraints.values())
        )
        model = Model(np.asarray(numbers, float), {}, structure)
        try:
            check_moves_mass(model)
        except ModelError:
            if not model.constraint_names:
                raise
            model = replace(model, structure=replace(structure, singular=True))
        model = without_dependent_rows(model)
        warn_of_redundancy(model)
        return model

    def _checked_loops(self) -> tuple[LoopJoint, ...]:
        known = [*self._bodies, WORLD]
        for name, loop in self._loops.items():
            for side, body in (("body_a", loop.body_a), ("body_b", loop.body_b)):
                if body not in known:
                    raise unknown("body", body, known, f"loop {name!r}: {side}")
        for name, constraint in self._constraints.items():
            if isinstance(constraint.element, Constraint):
                for field in constraint.element.bodies:
                    body = getattr(constraint.element, field)
                    if body not in self._bodies:
                        raise unknown("body", body, self._bodies, f"constraint {name!r}: {field}")
        return tuple(self._loops.values())

    def _new(self, name: str, known: dict[str, Any], kind: str) -> None:
        if not isinstance(name, str) or not name:
            raise ModelError(f"{kind}: the name {name!r} is not a non-empty string")
        if kind == "body" and name == WORLD:
            raise ModelError("body 'world': the world is there already; choose another name")
        if name in known:
            raise ModelError(f"{kind} {name!r} was added twice; names of one kind must differ")

    def _number(self, name: str, kind: str, value: Any, where: str | None = None) -> list[float]:
        c = concrete_components(kind, value, where or name)
        if name in self._numbers:
            raise ModelError(f"parameter {name!r} exists already; give the elements different names")
        self._numbers[name] = (kind, c)
        return c

    def _pose(self, name: str, pose: Any, where: str) -> None:
        if not isinstance(pose, Pose):
            raise ModelError(f"{where}: {pose!r} is not a pose; pass Pose(position=..., rotation=...)")
        self._number(f"{name}.position", "vector", pose.position, f"{where}.position")
        self._number(f"{name}.rotation", "rotation", pose.rotation, f"{where}.rotation")

    def _check_profile(self, name: str, element: Force) -> None:
        if "times" in element.numbers:
            times, values = (self._numbers[f"{name}.{f}"][1] for f in ("times", "values"))
            if len(times) != len(values):
                raise ModelError(
                    f"force {name!r}: {len(times)} times but {len(values)} values; give one value per time"
                )
            if any(b <= a for a, b in itertools.pairwise(times)):
                raise ModelError(f"force {name!r}: times {times} must increase")

    def _checked_force(self, name: str, element: Force) -> Force:
        where = f"force {name!r}"
        for field in element.bodies:
            body = getattr(element, field)
            if body is not None and body != WORLD and body not in self._bodies:
                raise unknown("body", body, [*self._bodies, WORLD], f"{where}: {field}")
        if len(element.bodies) == 2 and len({getattr(element, f) for f in element.bodies}) == 1:
            body = getattr(element, element.bodies[0])
            raise ModelError(f"{where}: both ends are on {body!r}; an element between two bodies needs two")
        for field in element.joints:
            joint = getattr(element, field)
            if joint not in self._joints and joint not in self._loops:
                raise unknown("joint", joint, [*self._joints, *self._loops], f"{where}: {field}")
            hinge = (self._joints[joint] if joint in self._joints else self._loops[joint]).joint
            if joint in self._loops and not isinstance(hinge, (*freedoms.SERVED, Fixed)):
                raise ModelError(
                    f"{where}: cut joint {joint!r} is {type(hinge).__name__}, whose coordinates are not known; use "
                    "Bushing between its two bodies"
                )
            if type(element).__name__ == "TorsionSpring" and hinge.nq != 1:
                raise ModelError(
                    f"{where}: joint {joint!r} is {type(hinge).__name__} with {hinge.nv} degrees of freedom; a "
                    "TorsionSpring acts on a joint with one; use Bushing between the two bodies"
                )
            if hinge.nv == 0:
                raise ModelError(f"{where}: joint {joint!r} is fixed; it has no motion to act on")
        return element

    def _links(self) -> tuple[TreeJoint, ...]:
        """Inward joints in regular order: parents before children, otherwise as the bodies were added [Y 1.1]."""
        inward: dict[str, str] = {}
        for name, hinge in self._joints.items():
            for side, body in (("parent", hinge.parent), ("child", hinge.child)):
                if body != WORLD and body not in self._bodies:
                    raise unknown("body", body, [*self._bodies, WORLD], f"joint {name!r}: {side}")
            if hinge.child in inward:
                raise ModelError(
                    f"body {hinge.child!r} is the child of two joints, {inward[hinge.child]!r} and {name!r}; "
                    f"a body hangs on one tree joint; close the loop with close_loop({name!r}, ...) instead"
                )
            inward[hinge.child] = name
        for body in self._bodies:
            if body not in inward:
                raise ModelError(
                    f"body {body!r} hangs on no joint; add_joint(..., child={body!r}), with mbs.Free() on the world if "
                    "it moves freely"
                )
        rank = {body: i for i, body in enumerate(self._bodies)}
        hanging: dict[str, list[str]] = {}
        for body, name in inward.items():
            hanging.setdefault(self._joints[name].parent, []).append(body)
        ready = [rank[b] for b in hanging.get(WORLD, [])]
        heapq.heapify(ready)
        bodies, index, links = list(self._bodies), {WORLD: -1}, []
        while ready:
            body = bodies[heapq.heappop(ready)]
            hinge = self._joints[inward[body]]
            index[body] = len(links)
            links.append(TreeJoint(inward[body], body, index[hinge.parent], hinge.joint))
            for child in hanging.get(body, []):
                heapq.heappush(ready, rank[child])
        missing = [b for b in bodies if b not in index]
        if missing:
            raise ModelError(
                f"bodies {missing} hang on one another but not on the world; hang one of them on the world "
                "(mbs.Free() if it moves freely) and close loops with close_loop"
            )
        return tuple(links)


def _numbers_of(element: Any, prefix: str = "") -> Iterator[tuple[str, str, Any]]:
    """(path, kind, value) of every number of an element, nested ones included."""
    for field, kind in element.numbers.items():
        value = getattr(element, field)
        if kind == "nested":
            yield from _numbers_of(value, f"{prefix}{field}.")
        else:
            yield f"{prefix}{field}", kind, value
