"""The constraints of a mechanism at one state: Jacobian, drift, residuals [Y 3.194-3.198]."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.constrained import couplings, functions
from jaxmbs.dynamics.constrained.order import plan_of
from jaxmbs.dynamics.constrained.row_groups import RowGroups, row_groups
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.frames import Frame, ends, frame_on, relative
from jaxmbs.dynamics.state.kinematics import LinkMotion, world_placements
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Model
from jaxmbs.model.constraints import Coupling, FunctionConstraint
from jaxmbs.model.rows import Row
from jaxmbs.model.structure import WORLD, ConstraintElement
from jaxmbs.spatial import IDENTITY, ZERO_MOTION, Force, Motion, Transform, kernel
from jaxmbs.spatial.components import components
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, total, where


@components
class Constraints:
    """All rows: J a + drift = 0, J v + free = 0 and, for holonomic rows, residual = 0.

    J: one tuple (nv) per row; free: velocity along the row at v = 0 (rheonomic constraints); residual: the number 0 for
    nonholonomic rows; holonomic: 1 or 0 per row.
    """

    J: tuple[tuple[Scalar, ...], ...]
    drift: tuple[Scalar, ...]
    free: tuple[Scalar, ...]
    residual: tuple[Scalar, ...]
    holonomic: tuple[int, ...]


def tree_of(model: Model, dtype: Any) -> Tree:
    """The tree in the layout that suits the constraints: for loops (`Tree.rolled`) if there is a plan of elimination
    (`order`), otherwise link by link, because the constraint rows are then written out in components."""
    plan = plan_of(model.structure)
    return Tree(model, dtype, unrolled=len(model.structure.links) if plan is None else 0)


def constraints(state: State) -> Any:
    """The rows of all cut joints and constraint elements, in the order of model.constraint_names.

    `Constraints`, or `RowGroups` for a rolled tree. The rows of a constraint that the mode switches off are zero.
    """
    if state.tree.rolled:
        plan = plan_of(state.tree.structure)
        assert plan is not None
        return row_groups(state, plan)
    kinematics, groups = _Kinematics(state), []
    for c in kinematics.connections():
        if isinstance(c, Connection):
            groups.append([kinematics.row(row, c) for row in c.rows])
        elif isinstance(c.element, Coupling):
            groups.append(couplings.rows(state, c.name, c.element))
        else:
            groups.append(functions.rows(state, c))
    if state.holds is not None:
        groups = [[_switched(row, state.holds[k]) for row in group] for k, group in enumerate(groups)]
    rows = [row for group in groups for row in group]
    return Constraints(*(tuple(row[k] for row in rows) for k in range(5)))


class Connection(NamedTuple):
    """A cut joint, or a constraint between two bodies or a body and the world, at one state.

    a, b: (link, frame) of each side; X, V, drift: placement, velocity and acceleration at dv/dt = 0 of b relative to
    a, in axes of b; rows: its constraint rows.
    """

    name: str
    a: tuple[int, Drifting]
    b: tuple[int, Drifting]
    X: Transform
    V: Motion
    drift: Motion
    rows: tuple[Row, ...]

    def on_links(self, wrench: Force) -> dict[int, Force]:
        """{link: wrench in link axes} of a wrench on b, given at b in the axes of b, and of its reaction on a."""
        (i, a), (j, b) = self.a, self.b
        on_a = a.frame.in_link.force_to_parent(self.X.force_to_parent(-wrench))
        on_b = b.frame.in_link.force_to_parent(wrench)
        return {link: F for link, F in ((i, on_a), (j, on_b)) if link >= 0}


def connections(state: State) -> list[Connection | ConstraintElement]:
    """All constraints, in the order of model.constraint_names."""
    return _Kinematics(state).connections()


def velocities(state: State, found: Any) -> Any:
    """The velocity J v + free along every row, which is zero if the constraint holds."""
    if isinstance(found, RowGroups):
        return found.rate
    return tuple(_velocity(row, free, tuple(state.v)) for row, free in zip(found.J, found.free, strict=True))


@kernel
def _velocity(row: tuple[Scalar, ...], free: Scalar, v: tuple[Scalar, ...]) -> Scalar:
    return free + total(*(x * y for x, y in zip(row, v, strict=True)))


def power(found: Any, multipliers: Any) -> Scalar:
    """Power [W] of rheonomic constraints on the mechanism; structurally zero if there are none."""
    return 0 if isinstance(found, RowGroups) else _power(found, tuple(multipliers))


@kernel
def _power(found: Constraints, multipliers: tuple[Scalar, ...]) -> Scalar:
    return total(*(-free * x for free, x in zip(found.free, multipliers, strict=True)))


def residuals(state: State, found: Any) -> Any:
    """The residual of every holonomic row, in m or rad, and the velocity along every other row, in m/s or rad/s."""
    if isinstance(found, RowGroups):
        return jnp.where(found.holonomic, found.residual, found.rate)
    rates = velocities(state, found)
    return [g if on else rate for g, rate, on in zip(found.residual, rates, found.holonomic, strict=True)]


def row_counts(state: State) -> list[int]:
    """Number of rows of every constraint, in the order of model.constraint_names."""
    s = state.tree.structure
    out = [len(loop.kept) for loop in s.loops]
    for c in s.constraints:
        e = c.element
        out.append(functions.count(state, c) if isinstance(e, FunctionConstraint) else e.count)
    return out


@kernel
def _cut_rows(joint: Any, numbers: Any, X: Transform, V: Motion, t: Scalar) -> tuple[Row, ...]:
    return joint.rows(numbers, X, V, t)


@kernel
def _element_rows(element: Any, numbers: Any, X: Transform, V: Motion) -> tuple[Row, ...]:
    return element.rows(numbers, X, V)


@components
class Drifting:
    """A frame on a body with its acceleration at dv/dt = 0, in its axes."""

    frame: Frame
    drift: Motion


@kernel
def _relative(a: Drifting, b: Drifting) -> tuple[Transform, Motion, Motion]:
    """Placement, velocity and acceleration at dv/dt = 0 of b relative to a, in axes of b."""
    X, V, carried = relative(a.frame, b.frame)
    return X, V, b.drift + X.motion_to_child(a.drift) * -1 + V.cross(carried)


@kernel
def _evaluate(row: Row, V: Motion, drift: Motion) -> tuple[Scalar, Scalar]:
    """(acceleration at dv/dt = 0, velocity) along the row."""
    return drift @ row.wrench + V @ row.turning + row.rate_change, V @ row.wrench + row.rate


@kernel
def _seen(in_link: Transform, W: Transform, V: Motion, A: Motion) -> Drifting:
    return Drifting(frame_on(in_link, W, V), in_link.motion_to_child(A))


class _Kinematics:
    """Frames on bodies, and the generalized forces of wrenches on them."""

    def __init__(self, state: State):
        self.state, tree = state, state.tree
        self.motions = tree.per_link(state.motions)
        self.placements = tree.per_link(world_placements(tree, state.motions))

        def outward(joint: Any, A: Motion, m: LinkMotion) -> tuple[Motion, Motion]:
            A = m.X.motion_to_child(A) + m.c
            return A, A

        self.drifts = tree.per_link(tree.outward(outward, state.motions, ZERO_MOTION))

    def frame(self, body: str, pose: Transform) -> tuple[int, Drifting]:
        """(link, frame) of a pose on a body."""
        tree = self.state.tree
        i = tree.structure.find_body(body)
        if i < 0:
            return i, Drifting(Frame(pose, pose, ZERO_MOTION), ZERO_MOTION)
        in_link = tree.body_in_link[i] @ pose
        return i, _seen(in_link, self.placements[i], self.motions[i].V, self.drifts[i])

    def connections(self) -> list[Connection | ConstraintElement]:
        s, values, out = self.state.tree.structure, self.state.tree.values, []
        for loop in s.loops:
            a, b = (self.frame(body, pose) for body, pose in ends(self.state.tree, loop))
            X, V, drift = _relative(a[1], b[1])
            rows = _cut_rows(loop.joint, values.of(loop.name, loop.joint.numbers), X, V, self.state.t)
            out.append(Connection(loop.name, a, b, X, V, drift, tuple(rows[k] for k in loop.kept)))
        for constraint in s.constraints:
            e = constraint.element
            if isinstance(e, (FunctionConstraint, Coupling)):
                out.append(constraint)
                continue
            own, *carrier = (getattr(e, f) for f in e.bodies)
            a, b = self.frame(carrier[0] if carrier else WORLD, IDENTITY), self.frame(own, IDENTITY)
            X, V, drift = _relative(a[1], b[1])
            rows = _element_rows(e, values.of(constraint.name, e.numbers), X, V)
            out.append(Connection(constraint.name, a, b, X, V, drift, rows))
        return out

    def row(self, row: Row, c: Connection) -> tuple[Any, ...]:
        """(J, drift, free, residual, holonomic) of one row."""
        s = self.state.tree.structure
        column: dict[int, Scalar] = {}
        for i, F in c.on_links(row.wrench).items():
            self._spread(column, i, F)
        J = tuple(column.get(k, ZERO) for k in range(s.nv))
        at_rest, rate = _evaluate(row, c.V, c.drift)
        own = rate
        for k, x in column.items():
            own -= x * self.state.v[k]
        free = own if s.rheonomic else ZERO
        return J, at_rest, free, ZERO if row.residual is None else row.residual, int(row.residual is not None)

    def _spread(self, column: dict[int, Scalar], i: int, F: Force) -> None:
        """Add the generalized forces of the wrench F on link i to the column."""
        s = self.state.tree.structure
        while i >= 0:
            for k, x in enumerate((S @ F for S in self.motions[i].S), s.v_slices[i].start):
                column[k] = column.get(k, ZERO) + x
            F, i = self.motions[i].X.force_to_parent(F), s.links[i].parent


def _switched(row: tuple[Any, ...], on: Any) -> tuple[Any, ...]:
    return (*jax.tree_util.tree_map(lambda x: where(on, x, 0.0), row[:4]), row[4])
