"""The bond graph of a mechanism: how energy passes between its bodies, joints and elements [K].

A body is a "1" node, whose flow is the velocity of its joint frame. A joint is a "0" node, whose effort is the wrench
that it transmits, and a "1" node, whose flow is its rates. A constraint is a "0" node, whose effort is its multipliers.
Transformers lead from body to joint (change of frame), from the rates to the joint (its motions S) and from a
constraint to the nodes on which it acts (its rows). In the axes of a body its inertia is an I-field with constant
coefficients; the rotation of these axes adds a gyrator, which takes up no power.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.bond_graph.elements import Bond, Vertex
from jaxmbs.dynamics.bond_graph.graph import BondGraph
from jaxmbs.dynamics.constrained.base import Constraints
from jaxmbs.dynamics.constrained.constraints import row_counts
from jaxmbs.dynamics.constrained.multipliers import constrained_dynamics
from jaxmbs.dynamics.constrained.public import constrained_state
from jaxmbs.dynamics.constrained.wrenches import acting
from jaxmbs.dynamics.recursive import aba
from jaxmbs.dynamics.recursive.rnea import accelerate
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.calling import compiles_itself, vector
from jaxmbs.dynamics.state.element_loads import element_loads
from jaxmbs.dynamics.state.kinematics import LinkMotion, world_placements
from jaxmbs.model import Mode, Model
from jaxmbs.model.given import Accelerations, Coordinates, GeneralizedForces, Number, Rates
from jaxmbs.model.refusals import refuse_armature, refuse_flexible
from jaxmbs.spatial import ZERO3, ZERO_MOTION, Force, Motion, Vector3, kernel
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, is_number, where


@compiles_itself()
def bond_graph(
    model: Model,
    q: Coordinates,
    v: Rates,
    a: Accelerations | None = None,
    tau: GeneralizedForces | None = None,
    *,
    t: Number = 0.0,
    mode: Mode | None = None,
) -> BondGraph:
    """Bond graph at q (nq,), v (nv,), a (nv,); without a, the accelerations are those of the motion under tau (nv,).

    Ids of nodes: "body:<name>" (flow: angular, linear velocity of the child joint frame in its axes), "joint:<name>"
    (effort: its whole wrench on the child in that frame), "rate:<joint>" (flow: its v), "constraint:<name>" (effort:
    its multipliers). Elements: "inertia:<body>" (I), "gyration:<body>" (MGY), "gravity:<body>" (Se), "tau:<joint>"
    (Se); the parts of a force element, "store:<name>" (C), "loss:<name>" (R) or "source:<name>" (Se); "motion:<joint>"
    (Sf: the prescribed motion of a rheonomic joint), "lock:<joint>" (Sf, with a mode; an open lock has no effort),
    "given:<constraint>" (Sf); transformers (MTF). The world is not a node, because it does no work. Bonds point where
    power counts as positive: out of sources, into I, C, R. The efforts at every node sum to zero if a is the
    acceleration of the motion [K 2]. Works under jit, vmap and grad. Raises ModelError for wrong shapes, flexible bodies
    and armature.

    >>> model = mbs.library.double_pendulum().build()
    >>> graph = mbs.textbook.bond_graph(model, [0.5, 0.0], [1.0, 0.0])
    >>> {name: round(float(power), 3) for name, power in graph.powers().items() if abs(power) > 1e-6}
    {'inertia:upper': -4.703, 'gravity:upper': 4.703, 'inertia:lower': -9.406, 'gravity:lower': 9.406}
    """
    refuse_flexible(model, "bond_graph")
    refuse_armature(model, "bond_graph", "set it to 0")
    state = constrained_state(model, q, v, t, mode, a, tau)
    tree = state.tree
    tau = None if tau is None else vector(model, "tau", tau, model.nv, tree.dtype)
    solved: Any = None if a is None else vector(model, "a", a, model.nv, tree.dtype)
    multipliers: Any = []
    found = None
    if tree.structure.constrained:
        own, multipliers, found = constrained_dynamics(state, tau, solved)
        solved = own if solved is None else solved
    elif solved is None:
        solved = aba.forward_dynamics(state, tau, None)
    return _Drawing(state).of(tree.vector(solved), tau, tree.vector(multipliers), found)


@kernel
def _through(m: LinkMotion, before: Motion, v: tuple[Scalar, ...], f: Force) -> tuple[Any, ...]:
    """For a joint that transmits f: the flows due to the parent link and to the rates, then the efforts on both."""
    own = ZERO_MOTION
    for S, rate in zip(m.S, v, strict=True):
        own = own + S * rate
    return m.X.motion_to_child(before), own, m.X.force_to_parent(f), tuple(S @ f for S in m.S)


def _vanishes(x: Any) -> bool:
    """Whether all components are structurally zero."""
    return all(is_number(c) and c == 0 for c in jax.tree_util.tree_leaves(x))


class _Drawing:
    """A bond graph under construction."""

    def __init__(self, state: State):
        self.state, self.tree, self.s = state, state.tree, state.tree.structure
        self.motions: list[LinkMotion] = self.tree.per_link(state.motions)
        self.vertices: dict[str, Vertex] = {}
        self.bonds: list[Bond] = []
        self.sums: dict[str, Any] = {}  # per node: incoming minus outgoing efforts
        self.flows: dict[str, jax.Array] = {}
        for i, link in enumerate(self.s.links):
            self._node("1", "body", link.body, self._array(self.motions[i].V.scalars()))
            if link.joint.nv:
                self._node("1", "rate", link.name, self._array(state.v[self.s.v_slices[i]]))

    def of(self, a: jax.Array, tau: Any, multipliers: jax.Array, found: Constraints | None) -> BondGraph:
        """Build the graph. When a joint is added, its wrench is the effort that is still missing at its body."""
        self._inertias(a)
        self._force_elements()
        if found is not None:
            self._constraints(multipliers, found)
        for i in reversed(range(len(self.s.links))):
            self._joint(i)
        for i, link in enumerate(self.s.links):
            if link.joint.nv:
                self._drives(i, tau)
        return BondGraph(tuple(self.bonds), tuple(self.vertices.values()), self.tree.model.name)

    def _inertias(self, a: jax.Array) -> None:
        placements = self.tree.per_link(world_placements(self.tree, self.state.motions))
        gravity, A = self.tree.values["gravity"], []
        for i, (link, m) in enumerate(zip(self.s.links, self.motions, strict=True)):
            before = A[link.parent] if link.parent >= 0 else ZERO_MOTION
            part = self.s.v_slices[i]
            A.append(accelerate(m, before, tuple(a[k] for k in range(part.start, part.stop))))
            body, numbers = f"body:{link.body}", self.tree.links[i]
            if _vanishes(numbers.inertia):
                continue
            effort, gyroscopic = numbers.inertia @ A[i], numbers.inertia.turning(m.V)
            self._takes(body, self._vertex("I", "inertia", link.body), effort.scalars())
            self._takes(body, self._vertex("MGY", "gyration", link.body), gyroscopic.scalars())
            if not _vanishes(gravity):
                weight = numbers.inertia @ Motion(ZERO3, placements[i].rotation.T @ gravity)
                self._gives(self._vertex("Se", "gravity", link.body), body, weight.scalars())

    def _force_elements(self) -> None:
        for role, kind, name, loads in element_loads(self.state):
            element = self._vertex(kind, role, name)
            for node, effort in loads.items():
                if kind == "Se":
                    self._gives(element, node, effort)
                else:
                    self._takes(node, element, [-x for x in effort])

    def _constraints(self, multipliers: jax.Array, found: Constraints) -> None:
        """Add the multipliers as efforts of flow sources; the flow is zero unless a rheonomic constraint gives it."""
        start = 0
        for name, count, rows in zip(
            self.tree.model.constraint_names, row_counts(self.state), acting(found), strict=True
        ):
            effort = multipliers[start : start + count]
            start += count
            constraint = self._node("0", "constraint", name, None)
            self._join(self._vertex("Sf", "given", name), constraint, effort, rows.flow)
            for node, matrix in rows.matrices.items():
                transformer = self._vertex("MTF", "row", f"{name}/{self.vertices[node].name}")
                self._join(constraint, transformer, effort, matrix @ self.flows[node])
                self._join(transformer, node, effort @ matrix, self.flows[node])

    def _joint(self, i: int) -> None:
        link, m = self.s.links[i], self.motions[i]
        body, wrench = f"body:{link.body}", -self.sums[f"body:{link.body}"]
        joint = self._node("0", "joint", link.name, None)
        self._join(joint, body, wrench, self.flows[body])
        before = self.motions[link.parent].V if link.parent >= 0 else ZERO_MOTION
        part = self.s.v_slices[i]
        f = Force(Vector3.of(list(wrench[:3])), Vector3.of(list(wrench[3:])))
        v = tuple(self.state.v[k] for k in range(part.start, part.stop))
        carried, own, handed, along = _through(m, before, v, f)
        if link.parent >= 0:
            parent, frame = f"body:{self.s.links[link.parent].body}", self._vertex("MTF", "frame", link.name)
            self._join(parent, frame, self._array(handed.scalars()), self.flows[parent])
            self._join(frame, joint, wrench, self._array(carried.scalars()))
        if link.joint.nv:
            rate, axes = f"rate:{link.name}", self._vertex("MTF", "axes", link.name)
            self._join(rate, axes, self._array(along), self.flows[rate])
            self._join(axes, joint, wrench, self._array(own.scalars()))
        if link.joint.rheonomic:
            q = [self.state.q[k] for k in range(self.s.q_slices[i].start, self.s.q_slices[i].stop)]
            alone = link.joint.motion(self.tree.links[i].numbers, q, [ZERO] * link.joint.nv, self.state.t).velocity
            self._join(self._vertex("Sf", "motion", link.name), joint, wrench, self._array(alone.scalars()))

    def _drives(self, i: int, tau: Any) -> None:
        name, part = self.s.links[i].name, self.s.v_slices[i]
        if tau is not None:
            self._gives(self._vertex("Se", "tau", name), f"rate:{name}", tau[part])
        if self.state.lock is not None:
            held = where(self.state.lock[part], -self.sums[f"rate:{name}"], 0.0)
            self._gives(self._vertex("Sf", "lock", name), f"rate:{name}", held)

    def _array(self, x: Any) -> jax.Array:
        return self.tree.vector(x if isinstance(x, jax.Array) else list(x))

    def _vertex(self, kind: str, role: str, name: str) -> str:
        self.vertices[f"{role}:{name}"] = Vertex(f"{role}:{name}", kind, name)
        return f"{role}:{name}"

    def _node(self, kind: str, role: str, name: str, flow: Any) -> str:
        node = self._vertex(kind, role, name)
        if flow is not None:
            self.flows[node], self.sums[node] = flow, jnp.zeros_like(flow)
        return node

    def _gives(self, element: str, node: str, effort: Any) -> None:
        self._join(element, node, effort, self.flows[node])

    def _takes(self, node: str, element: str, effort: Any) -> None:
        self._join(node, element, effort, self.flows[node])

    def _join(self, tail: str, head: str, effort: Any, flow: jax.Array) -> None:
        effort = self._array(effort)
        for node, inwards in ((tail, False), (head, True)):
            if self.vertices[node].kind == "1":
                self.sums[node] = self.sums[node] + effort if inwards else self.sums[node] - effort
        self.bonds.append(Bond(effort, flow, tail, head))
