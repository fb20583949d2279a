"""Guards: functions of the motion that rise through zero when an event is due or a switching surface is met."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.constrained import wrenches
from jaxmbs.dynamics.recursive import aba, rnea
from jaxmbs.dynamics.state import State, memory
from jaxmbs.dynamics.state.loads import action, elements, force_on_first
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode, ModelError
from jaxmbs.model.forces.base import Numbers
from jaxmbs.model.functions import WithParameters, evaluated
from jaxmbs.model.joints.base import Joint, speeds_of
from jaxmbs.model.mode import Sides
from jaxmbs.model.structure import Structure
from jaxmbs.simulate.steppers.base import Flow, Phase
from jaxmbs.spatial import Matrix3, Motion, Transform, Vector3, from_quaternion
from jaxmbs.spatial.scalar import Scalar


def cornered(structure: Structure) -> bool:
    """Whether any force element has switching surfaces."""
    return any(f.element.cornered for f in structure.forces)


_ALONG_Z = {"axis": Vector3(0, 0, 1)}  # the numbers of the given joint of a releasable one


def _placement(q: Any) -> Transform:
    """The child's frame in the parent's, from the coordinates of a Free joint."""
    return Transform(from_quaternion(q[3:7]), Vector3.of(q[:3]))


class Instant:
    """The motion at one instant, as the conditions of events see it (`jaxmbs.model.events.base.Instant`)."""

    def __init__(self, state: State, tau: Any):
        self.state, self.tau, self.t = state, tau, state.t

    def _joint(self, name: str) -> tuple[Any, Any, Joint | None]:
        """(q, v) of a joint, and the given joint of one that is releasable, whose q and v are those of a Free joint."""
        s = self.state.tree.structure
        hinge = None if name in s.loop_by_name else s.links[s.find_joint(name)].hinge
        return *self.state.scene.joint(name), hinge

    def coordinates(self, joint: str) -> Any:
        q, _, hinge = self._joint(joint)
        return q if hinge is None else hinge.coordinates_of(_ALONG_Z, _placement(q))

    def rates(self, joint: str) -> Any:
        q, v, hinge = self._joint(joint)
        if hinge is None:
            return v
        return speeds_of(hinge, _ALONG_Z, _placement(q), Motion(Vector3.of(v[:3]), Vector3.of(v[3:])))

    def point(self, body: str, local: Vector3) -> Vector3:
        return self.state.scene.around(body).point(body, local)

    def rotation(self, body: str) -> Matrix3:
        return self.state.scene.around(body).rotation(body)

    def reaction(self, joint: str) -> tuple[Vector3, Vector3]:
        tree, i = self.state.tree, self.state.tree.structure.find_joint(joint)
        if tree.structure.constrained and tree.rolled:
            raise ModelError("a condition of an event asks for a reaction; its class needs `of_reactions = True`")
        if tree.structure.constrained:
            in_joints, _ = wrenches.reactions(self.state, self.tau, None)
        else:
            in_joints, _ = rnea.joint_wrenches(self.state, aba.forward_dynamics(self.state, self.tau))
        wrench = tree.per_link(in_joints)[i]
        return wrench.moment, wrench.force

    def force_of(self, name: str) -> Scalar:
        for own, element, numbers, seen, on in elements(self.state.scene, self.state.mode):
            if own == name:
                on_body, on_joint, on_all = action(element, numbers, seen)
                force = force_on_first(element, on_body, seen)
                along = (*(x for values in on_joint.values() for x in values), *on_all)
                parts = along if force is None else tuple(force)
                size = jnp.sqrt(
                    sum((jnp.asarray(x) ** 2 for x in parts), jnp.zeros((), self.state.tree.dtype)) + 1e-300
                )
                return jnp.where(on, size, 0.0)
        raise AssertionError(name)

    def evaluated(self, element: WithParameters, fn: Any, numbers: Numbers) -> Scalar:
        tree = self.state.tree
        fn = element.with_parameters(fn, numbers, tree.dtype)
        q, v = tree.vector(self.state.q), tree.vector(self.state.v)
        return evaluated(fn, "When: fn", (), tree.dtype, tree.model, self.t, q, v)


class Kinks(NamedTuple):
    """Switching surfaces. sides: the branches of the force elements; corners: (index of the element, index among its
    sides) of each; instants: the same and the time [s]."""

    sides: Sides
    corners: list[tuple[int, int]]
    instants: list[tuple[int, int, Any]]


class Guards:
    """All guards of a model: those of its events, and those of its force elements' switching surfaces (`corners`)."""

    def __init__(self, tree: Tree, force: Any):
        self.tree, self.force = tree, force
        self.events = tree.structure.events
        self.of_rates = any(e.when.of_rates for e in self.events)

    def kinks(self, t: Any, phase: Phase, mode: Mode) -> Kinks:
        """The switching surfaces of the force elements, and the side of each on which the element is now."""
        state = self._state(t, phase, replace(mode, sides=None))
        sides, corners, instants = [], [], []
        for k, (_, element, numbers, seen, _) in enumerate(elements(state.scene, state.mode)):
            sides.append(tuple(jnp.asarray(on) for on in element.sides(numbers, seen)))
            times = element.instants(numbers)
            first = len(sides[k]) - len(times)
            corners += [(k, j) for j in range(first)]
            instants += [(k, j, jnp.asarray(time, self.tree.dtype)) for j, time in enumerate(times, first)]
        return Kinks(Sides.packed(sides), corners, instants)

    def _state(self, t: Any, phase: Phase, mode: Mode) -> State:
        return State(self.tree.remembering(phase.states), phase.q, phase.v, t, mode)

    def values(self, t: Any, phase: Phase, mode: Mode) -> list[list[Any]]:
        """The guards of each event."""
        tau, state = self.force, self._state(t, phase, mode)
        if callable(tau):
            tau = tau(state.tree.model, t, self.tree.vector(phase.q), self.tree.vector(phase.v))
        instant = Instant(state, tau)
        found = [e.when.guards(state.tree.values.of(e.name, e.when.numbers), instant) for e in self.events]
        return [[jnp.asarray(g, self.tree.dtype) for g in guards] for guards in found]

    def with_rates(self, t: Any, phase: Phase, mode: Mode) -> tuple[list[list[Any]], list[list[Any]]]:
        """(the guards of each event, their rates along the motion)."""
        if not self.events:
            return [], []
        return self._along(lambda t, phase: self.values(t, phase, mode), self.of_rates, t, phase, mode)

    def _along(self, values: Any, of_rates: bool, t: Any, phase: Phase, mode: Mode) -> tuple[Any, Any]:
        """(values(t, phase), their rates along the motion); of_rates: whether the values may depend on v."""
        zero, dtype = jnp.zeros((), self.tree.dtype), self.tree.dtype
        phase = phase._replace(work=zero)
        if of_rates:
            slope, _ = Flow(self.tree, self.force).derivative(phase, t, mode)
        else:  # all conditions depend on the configuration and on states alone
            state = self._state(t, phase, mode)
            still = jax.tree_util.tree_map(jnp.zeros_like, phase.v)
            slope = Phase(self.tree.flat([m.rates for m in state.motions]), still, zero, memory.rates(state))
        slope = jax.tree_util.tree_map(lambda x: jnp.asarray(x, dtype), slope._replace(work=zero))
        return jax.jvp(values, (t, phase), (jnp.ones((), dtype), slope))

    def of_corners(self, t: Any, phase: Phase, mode: Mode) -> list[tuple[Any, Any]]:
        """(guard, its rate) of every corner; the guard is negative on the side given by the mode."""
        if mode.sides is None:
            return []

        def corners(t: Any, phase: Phase) -> list[tuple[Any, Any, Any]]:
            """For every corner: (whether the element is beyond the surface, its function, the rate of the function or
            None)."""
            found = elements(self._state(t, phase, mode).scene, mode)
            pairs = ((seen.sides, element.corners(numbers, seen)) for _, element, numbers, seen, _ in found)
            return [
                (on, jnp.asarray(g, self.tree.dtype), rate) for x in pairs for on, (g, rate) in zip(*x, strict=False)
            ]

        found = corners(t, phase)
        rates = [rate for _, _, rate in found]
        if any(rate is None for rate in rates):
            _, slopes = self._along(lambda *x: [g for _, g, _ in corners(*x)], True, t, phase, mode)
            rates = [slope if rate is None else rate for rate, slope in zip(rates, slopes, strict=True)]
        rates = [jnp.asarray(rate, self.tree.dtype) for rate in rates]
        signed = zip(found, rates, strict=True)
        return [(jnp.where(on, -g, g), jnp.where(on, -rate, rate)) for (on, g, _), rate in signed]
