"""The symplectic method: the action over each step is stationary, written in momenta."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.recursive import aba, energies, rnea
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.state import Inertial
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode
from jaxmbs.model.joints import Joint
from jaxmbs.model.structure import Structure
from jaxmbs.simulate.loops import Packing
from jaxmbs.simulate.manifold import normalised
from jaxmbs.simulate.steppers.base import Flow, Phase, Stepper, Trial, arrays
from jaxmbs.simulate.steppers.charts import INVERSE_DERIVATIVE, Map, no_group, series
from jaxmbs.spatial import Vector3, from_quaternion, kernel, turned
from jaxmbs.spatial.known import ONE, ZERO
from jaxmbs.spatial.scalar import Scalar, total

TERMS = 11  # of the series below: exact to rounding for rotations below half a radian a step
DERIVATIVE = tuple(1 / math.factorial(k + 1) for k in range(TERMS))
EXPONENTIAL = tuple(1 / math.factorial(k) for k in range(TERMS + 1))


@dataclass(frozen=True)
class Variational(Stepper):
    """The variational midpoint rule on the group of motions [Marsden, West 2001]: order 2, symplectic, symmetric.

    The energy of a conservative mechanism stays within a band over any number of steps, and the momenta of symmetries
    are conserved to rounding. Dissipation and driving forces act at the midpoint; states of elements follow the implicit
    midpoint rule. iterations: of Broyden's method per step, each of two evaluations; they suffice to rounding if the step
    is below about a tenth of the shortest period and of the shortest time constant of a state.
    Models with loops, constraints or joints that move as functions of time are refused with a ModelError.

    >>> model = mbs.library.double_pendulum().build()
    >>> run = mbs.simulate(model, [2.0, 0.0], [0.0, 0.0], 20.0, dt=0.01, method="symplectic")
    >>> bool(np.ptp(run.energy_error[1000:]) < 1.5 * np.ptp(run.energy_error[:1000]))
    True
    """

    iterations: int = 8

    @property
    def order(self) -> int:
        return 2

    def obstacle(self, structure: Structure) -> str | None:
        if structure.constrained:
            return "it is for trees only; use another method for loops and constraints"
        if structure.rheonomic:
            return "it does not support joints whose motion depends on time; use another method"
        return no_group(structure)

    def step(self, flow: Flow, phase: Phase, t: Scalar, h: Scalar, mode: Mode | None, estimate: bool) -> Trial:
        tree, nv = flow.tree.remembering(phase.states), flow.tree.structure.nv
        q, v, work, states = phase._replace(states=arrays(phase.states, tree.dtype))
        packing = Packing(states)
        middle = t + h / 2
        p = _momentum(tree, q, v)

        def changed(factor: Any, rates: Any) -> Any:
            return jax.tree_util.tree_map(lambda x, r: x + factor * r, states, rates)

        def acting(w: Any, rates: Any) -> tuple[Any, Any, Phase, State]:
            """(momentum, its rate, slope, state) at the midpoint of the step with the rates w and those of the states."""
            here = _moved(tree, q, _times(h / 2, w))
            own = changed(h / 2, rates)
            slope, state = flow.derivative(Phase(here, _body(tree, here, w), work, own), middle, mode)
            along = tuple(_arrays(tree, x) for x in (slope.q, slope.v, slope.states))
            at = (here, state.v, own)
            momentum, change = jax.jvp(lambda q, v, x: _momentum(tree.remembering(x), q, v), at, along)
            return momentum, change, slope, state

        def lacking(x: jax.Array) -> jax.Array:
            """For x, the rates w of a step and of the states: the momentum at the start of the step minus the given one,
            converted to a velocity, and the rates of the states minus those at the midpoint; w itself for a locked degree
            of freedom, so that its rate becomes zero."""
            w, rates = x[:nv], packing.apart(x[nv:])
            parts = _flat(tree, w)
            momentum, change, slope, state = acting(parts, rates)
            missing = jax.tree_util.tree_map(lambda x, y: x - y, _at_ends(tree, 0, h, parts, momentum, change), p)
            found = _velocity(state.tree, state.q, missing, mode)
            found = tree.vector(_world(tree, state.q, found))
            if state.lock is not None:
                found = jnp.where(state.lock, w, found)
            return jnp.concatenate([found, x[nv:] - packing.together(slope.states)]) if states else found

        start = tree.vector(_world(tree, q, v))
        if states:
            start = jnp.concatenate([start, packing.together(flow.derivative(phase, t, mode)[0].states)])
        x = root(lacking, start, self.iterations)
        w, rates = _flat(tree, x[:nv]), packing.apart(x[nv:])
        momentum, change, slope, _ = acting(w, rates)
        end, final = normalised(tree, _moved(tree, q, _times(h, w))), changed(h, rates)
        v = _velocity(tree.remembering(final), end, _at_ends(tree, 1, h, w, momentum, change), mode)
        kinetic = jnp.asarray(energies.kinetic(State(tree, phase.q, phase.v, t, mode)), tree.dtype)
        return Trial(Phase(end, v, work + h * slope.work, final), kinetic, None)


# The rates w of a step are those of the joints, except for the linear velocity of a free body: it is in axes of the
# parent, so that the centre of mass moves in a straight line. The functions below therefore treat the motions of a free
# body as the product of the groups of rotations and displacements, not as the group of screws.


def _momentum(tree: Tree, q: Any, v: Any) -> Any:
    """The momenta A(q) v, in the components that belong to the rates w (see above)."""
    return _world(tree, q, rnea.inverse_dynamics(Inertial(tree, q, _times(0.0, v)), v))


def _velocity(tree: Tree, q: Any, p: Any, mode: Mode | None) -> Any:
    """v with A(q) v = p for the degrees of freedom that are not locked, zero for the others; p: as from `_momentum`."""
    lock = None if mode is None or mode.lock is None else Mode(mode.lock, None, None)
    return _arrays(tree, aba.forward_dynamics(Inertial(tree, q, _times(0.0, p), 0.0, lock), _body(tree, q, p)))


def _world(tree: Tree, q: Any, x: Any) -> Any:
    """Rates or momenta x, in which the linear parts of free bodies are transformed to axes of the parent."""
    return _linear(tree, lambda R, y: R @ y, q, x)


def _body(tree: Tree, q: Any, x: Any) -> Any:
    return _linear(tree, lambda R, y: R.T @ y, q, x)


def _linear(tree: Tree, rotate: Any, q: Any, x: Any) -> Any:
    s, out = tree.structure, []
    for b, coordinates, part in zip(tree.blocks, tree.split(q, s.q_slices), tree.split(x, s.v_slices), strict=True):
        if b.joint.free:
            turned_part = rotate(from_quaternion(coordinates[3:7]), Vector3.of(part[3:]))
            part = (*part[:3], *turned_part)
        out.append(part)
    return _arrays(tree, tree.flat(out))


def _moved(tree: Tree, q: Any, w: Any) -> Any:
    s, out = tree.structure, []
    for b, coordinates, part in zip(tree.blocks, tree.split(q, s.q_slices), tree.split(w, s.v_slices), strict=True):
        if b.joint.free:
            shifted = (x + y for x, y in zip(coordinates[:3], part[3:], strict=True))
            out.append((*shifted, *turned(coordinates[3:7], Vector3.of(part[:3]))))
        else:
            out.append(b.joint.moved(coordinates, part))
    return tree.flat(out)


def _at_ends(tree: Tree, end: int, h: Scalar, w: Any, momentum: Any, change: Any) -> Any:
    """The momentum at the start (end = 0: -D1 of the discrete action) or at the end (1: D2) of a step."""
    slices = tree.structure.v_slices
    parts = zip(tree.blocks, *(tree.split(x, slices) for x in (w, momentum, change)), strict=True)
    return _arrays(tree, tree.flat([_at_end(b.joint, end, h, *(tuple(x) for x in part)) for b, *part in parts]))


@kernel
def _at_end(joint: Joint, end: Any, h: Scalar, w: Any, momentum: Any, change: Any) -> tuple[Scalar, ...]:
    """`_at_ends` for one joint. The force is the rate of the momentum (`change`) minus the part due to the motion of
    its axes; half of the force acts before the midpoint, half after it."""
    sign = 1 if end else -1
    if not joint.gives("bracket"):
        return tuple(m + sign * 0.5 * (h * c) for m, c in zip(momentum, change, strict=True))
    back = _carried(joint, [-(h * x) for x in w])
    half = _carried(joint, [-0.5 * (h * x) for x in w])
    force = tuple(c - x for c, x in zip(change, _carried(joint, w)(momentum), strict=True))
    pushed = series(DERIVATIVE, half, force)
    middle = tuple(m + 0.5 * (h * f) for m, f in zip(momentum, pushed, strict=True))
    if end:
        return series(INVERSE_DERIVATIVE, back, middle)
    before = series(INVERSE_DERIVATIVE, _carried(joint, [h * x for x in w]), middle)
    return tuple(x - h * y for x, y in zip(before, series(EXPONENTIAL, half, force), strict=True))


def _carried(joint: Joint, x: Sequence[Scalar]) -> Map:
    """The transpose of ad_x, for forces and momenta."""
    units = [[ONE if i == j else ZERO for i in range(joint.nv)] for j in range(joint.nv)]
    columns = [_bracket(joint, x, unit) for unit in units]
    return lambda y: tuple(total(*(a * b for a, b in zip(column, y, strict=True))) for column in columns)


def _bracket(joint: Joint, a: Sequence[Scalar], b: Sequence[Scalar]) -> tuple[Scalar, ...]:
    return (*Vector3.of(a[:3]).cross(Vector3.of(b[:3])), ZERO, ZERO, ZERO) if joint.free else joint.bracket(a, b)


def root(fn: Callable[[jax.Array], jax.Array], w: jax.Array, iterations: int) -> jax.Array:
    """A zero of fn by Broyden's method, starting from w, for fn with a Jacobian near the identity; its derivative is
    that of the implicit function theorem, in forward and reverse mode."""

    def iteration(x: Any, _: Any) -> tuple[Any, None]:
        w, z, inverse = x
        s = -inverse @ z
        new = fn(w + s)
        turned, left = inverse @ (new - z), s @ inverse
        size = left @ (new - z)
        small = s @ s <= (64 * jnp.finfo(w.dtype).eps) ** 2 * (w @ w)  # then new - z is only rounding
        inverse = inverse + jnp.where(small, 0.0, 1 / jnp.where(small, 1.0, size)) * jnp.outer(s - turned, left)
        return (w + s, new, inverse), None

    def solve(f: Any, w: jax.Array) -> jax.Array:
        (w, z, inverse), _ = jax.lax.scan(iteration, (w, f(w), jnp.eye(len(w), dtype=w.dtype)), None, length=iterations)
        return w - inverse @ z

    def tangent_solve(g: Any, y: jax.Array) -> jax.Array:
        return jnp.linalg.solve(jax.jacobian(g)(y), y)

    return jax.lax.custom_root(fn, w, solve, tangent_solve)


def _times(factor: Any, x: Any) -> Any:
    return jax.tree_util.tree_map(lambda y: factor * y, x)


def _flat(tree: Tree, x: jax.Array) -> Any:
    return x if tree.rolled else list(x)


def _arrays(tree: Tree, x: Any) -> Any:
    return jax.tree_util.tree_map(lambda y: jnp.asarray(y, tree.dtype), x)
