"""The metric of a large mechanism, by the recursion of `fronts` instead of matrices: the work is linear in its size."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from jaxmbs.dynamics.constrained import fronts
from jaxmbs.dynamics.constrained.base import Metric
from jaxmbs.dynamics.constrained.groups import forces_of, rates_of
from jaxmbs.dynamics.recursive import rnea
from jaxmbs.dynamics.state.forest import folding_scan
from jaxmbs.dynamics.state.kinematics import LinkMotion
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import ZERO_FORCE, ZERO_MOTION, Force, Motion
from jaxmbs.spatial.linear import arrays_of, change
from jaxmbs.spatial.scalar import is_number

if TYPE_CHECKING:
    from jaxmbs.dynamics.constrained.row_groups import RowGroups

Pair = tuple[jax.Array, jax.Array]  # a (nv,) or forces; multipliers or rates (m,)


class SparseMetric(Metric):
    """The equations with the rows of `row_groups`, with arrays as arguments and results."""

    def __init__(self, found: RowGroups, prescribed: Any = None):
        state = found.state
        tree, plan = state.tree, found.plan
        self.tree, self.plan, self.groups, self.prescribed = tree, plan, found.forest, prescribed
        self.lock = state.lock
        still = [LinkMotion(m.X, m.S, ZERO_MOTION, ZERO_MOTION, ()) for m in state.motions]
        self.data = (still, tree.links, found.ends, self.lock)
        s = tree.structure
        self.held = jax.tree_util.tree_map(_held, self.data)
        self.factors = self._factorized(None)
        self.steps = 4 if s.redundant else 2

    def _factorized(self, alike: float | None) -> fronts.Factors:
        redundant = self.tree.structure.redundant
        motions, links, ends, lock = self.held
        return fronts.factorized(self.tree, self.plan, motions, links, self.groups, ends, lock, redundant, alike)

    def closest(self, force: Any, target: Any) -> Pair:
        force = jnp.zeros(self.tree.structure.nv, self.tree.dtype) if force is None else force
        given = jnp.zeros_like(force)
        if self.lock is not None and self.prescribed is not None:
            given = jnp.where(self.lock, jnp.asarray(self.prescribed), 0.0)
            carried = self._multiplied(self.data, (given, jnp.zeros_like(target)), False)
            force, target = force - carried[0], target - carried[1]
        if self.lock is not None:
            force = jnp.where(self.lock, 0.0, force)
        a, multipliers = _solution(
            self._solved, self._multiplied, (self.factors, self.held), self.data, (force, target)
        )
        return a + given, multipliers

    def least_norm(self, multipliers: jax.Array) -> jax.Array:
        right = jnp.zeros_like(multipliers), self._transposed(self.data, multipliers)
        return _solution(self._least, self._normal, (self.factors, self._alike, self.held), self.data, right)[0]

    @functools.cached_property
    def _alike(self) -> fronts.Factors:
        """Factors with all pivots raised by the same amount, so that the proximal method stays in the range of J."""
        eps = float(jnp.finfo(self.tree.dtype).eps)
        return self._factorized(eps**0.4)

    def _least(self, given: Any, right: Pair) -> Pair:
        """(lambda, w) of right = (b, p): the lambda nearest to b with Jᵀ lambda = p, and lambda = b + J w."""
        factors, alike, held = given
        b, p = right
        force, none = self._transposed(held, b) - p, jnp.zeros_like(b)
        _, own = self._proximal((alike, held), force, none, 8)
        rest = force + self._transposed(held, own)  # not zero if convergence is slow, as for nearly dependent rows
        own = own + self._proximal((factors, held), rest, none, self.steps)[1]
        return b + own, self._proximal((factors, held), jnp.zeros_like(p), own, self.steps)[0]

    def _normal(self, data: Any, x: Pair) -> Pair:
        """(lambda - J w, Jᵀ lambda): the equations of `least_norm`."""
        multipliers, w = x
        return multipliers - self._multiplied(data, (w, jnp.zeros_like(multipliers)))[1], self._transposed(
            data, multipliers
        )

    def _transposed(self, data: Any, multipliers: jax.Array) -> jax.Array:
        """Jᵀ multipliers, with zeros for the locked degrees of freedom."""
        nothing = jnp.zeros(self.tree.structure.nv, self.tree.dtype)
        return -self._multiplied(data, (nothing, multipliers))[0]

    def conditioning(self) -> tuple[Any, Any]:
        """From the pivots in the order of elimination."""
        eps = float(jnp.finfo(self.tree.dtype).eps)
        return fronts.conditioning(self.factors, eps, self.tree.structure.redundant)

    def _solved(self, given: Any, right: Pair) -> Pair:
        return self._proximal(given, *right, self.steps)

    def _proximal(self, given: Any, force: jax.Array, target: jax.Array, steps: int) -> Pair:
        """(a, lambda) by the correction steps of `saddle`."""

        factors, held = given

        def step(x: Any, first: jax.Array) -> tuple[Any, None]:
            a, multipliers, A = x
            missing = target - rates_of(self.groups, held[2], self.plan, self.tree, A, a)
            da, change, dA = fronts.solve(self.tree, self.plan, factors, first * force, missing)
            return (a + da, multipliers + change, [x + y for x, y in zip(A, dA, strict=True)]), None

        still = [ZERO_MOTION] * len(self.tree.blocks)
        start = (jnp.zeros_like(force), jnp.zeros_like(target), still)
        first = jnp.zeros(steps, force.dtype).at[0].set(1.0)
        (a, multipliers, _), _ = folding_scan(step, start, first, steps, False, self.tree.dtype)
        return a, multipliers

    def _multiplied(self, data: Any, x: Pair, masked: bool = True) -> Pair:
        """(A a - Jᵀ lambda, J a); masked: locked degrees of freedom do not move, and their equations return a."""
        motions, links, ends, lock = data
        a, multipliers = x
        tree, s = self.tree, self.tree.structure
        moving = jnp.where(lock, 0.0, a) if masked and lock is not None else a
        parts = tree.split(moving, s.v_slices)

        def outward(joint: Joint, A: Motion, d: Any) -> tuple[Motion, Motion]:
            A = rnea.accelerate(d[0], A, d[1])
            return A, A

        A = tree.outward(outward, list(zip(motions, parts, strict=True)), ZERO_MOTION)
        wrenches, along = forces_of(self.groups, ends, self.plan, tree, multipliers)

        def inward(joint: Joint, carried: tuple[Force], d: Any) -> tuple[tuple[Force], Any]:
            m, link, A, applied, rates = d
            own = link.inertia @ A - applied + carried[0]
            return (m.X.force_to_parent(own),), tuple(
                S @ own + link.armature * x for S, x in zip(m.S, rates, strict=True)
            )

        rows, _ = tree.inward(inward, list(zip(motions, links, A, wrenches, parts, strict=True)), (ZERO_FORCE,))
        force = tree.vector(tree.flat(rows)) - along
        if masked and lock is not None:
            force = jnp.where(lock, a, force)
        return force, rates_of(self.groups, ends, self.plan, tree, A, moving)


def _held(x: Any) -> Any:
    return x if is_number(x) else jax.lax.stop_gradient(x)


def _solution(
    solve: Callable[[Any, Pair], Pair], multiply: Callable[[Any, Pair], Pair], factors: Any, data: Any, right: Pair
) -> Pair:
    """x = solve(factors, right), differentiated as the solution of multiply(data, x) = right, to any order, in forward
    and reverse mode. `solve` and `multiply` must not close over traced values, which no longer exist at that time."""
    found, whole = arrays_of((factors, data))

    @jax.custom_jvp
    def solution(right: Pair, *arrays: Any) -> Pair:
        return solve(whole(arrays)[0], right)

    def rule(given: Sequence[Any], tangents: Sequence[Any]) -> tuple[Pair, Pair]:
        right, *arrays = given
        x = solution(right, *arrays)
        rest = tuple(
            jnp.zeros_like(y) if isinstance(t, SymbolicZero) else t for y, t in zip(right, tangents[0], strict=True)
        )
        moved = change(lambda arrays: multiply(whole(arrays)[1], x), arrays, tangents[1:])
        if moved is not None:
            rest = tuple(a - b for a, b in zip(rest, moved, strict=True))
        return x, _solution(solve, multiply, *whole(arrays), right=rest)  # pyright: ignore[reportArgumentType]

    solution.defjvp(rule, symbolic_zeros=True)
    return solution(right, *found)
