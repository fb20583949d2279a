"""Linearly implicit steps for stiff springs, contacts and dampers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.recursive import crba, energies
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode
from jaxmbs.model.structure import Structure
from jaxmbs.simulate.loops import Packing
from jaxmbs.simulate.steppers.base import Flow, Phase, Stepper, Trial, arrays
from jaxmbs.simulate.steppers.charts import Local, no_group
from jaxmbs.spatial.elimination import eliminated, solved
from jaxmbs.spatial.scalar import Scalar

LARGEST_UNROLLED = 12  # degrees of freedom; with more, code written out in components takes too long to compile

# Rodas5P [Steinebach 2023]: gamma; per stage, the weights of earlier increments in the state and in the equation, the
# fraction of the step and the weight of the derivative by time. The last two states add the previous increment.
GAMMA = 0.21193756319429014
_LAST = (-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946)
_STATE = (
    (),
    (3.0,),
    (2.849394379747939, 0.45842242204463923),
    (-6.954028509809101, 2.489845061869568, -10.358996098473584),
    (2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641),
    _LAST,
    (*_LAST, 1.0),
    (*_LAST, 1.0, 1.0),
)
_EQUATION = (
    (),
    (-14.155112264123755,),
    (-17.97296035885952, -2.859693295451294),
    (147.12150275711716, -1.41221402718213, 71.68940251302358),
    (165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306),
    (24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471),
    (30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783, -19.097331116725623, -28.087943162872662),
    (37.80277123390563, -3.2571969029072276, 112.26918849496327, 66.9347231244047, -40.06618937091002, -54.66780262877968,
     -9.48861652309627),
)  # fmt: skip
_FRACTION = (0.0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664, 1.0, 1.0, 1.0)
_BY_TIME = (GAMMA, -0.42387512638858027, -0.3384627126235924, 1.8046452872882734, 2.325825639765069, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Rosenbrock(Stepper):
    """Rodas5P: order 5, L-stable, with an embedded method of order 4. A step needs one exact Jacobian and one
    factorisation, and no iteration [Steinebach 2023].

    The method is for mechanisms with stiff elements and slow motions: the step is as long as the slow motion allows. A
    step takes eight evaluations and a Jacobian, which costs as much as about 2 nv evaluations; compilation takes longer
    than for explicit methods.

    >>> mech = mbs.Mechanism("stiff", gravity=(0.0, 0.0, -9.81))
    >>> mech.add_body("mass", mass=1.0, inertia=(0.1, 0.1, 0.1))
    >>> mech.add_joint("guide", mbs.Prismatic(axis=(0, 0, 1)), "world", "mass")
    >>> mech.add_force("pad", mbs.TorsionSpring("guide", stiffness=1e8, damping=1e5))
    >>> run = mbs.simulate(mech.build(), [0.0], [0.0], 1.0, dt=0.1, method=mbs.steppers.Rosenbrock())
    >>> print(run.q[-1])
    [-9.81e-08]
    """

    @property
    def order(self) -> int:
        return 5

    @property
    def error_order(self) -> int | None:
        return 4

    def obstacle(self, structure: Structure) -> str | None:
        return no_group(structure)

    def step(self, flow: Flow, phase: Phase, t: Scalar, h: Scalar, mode: Mode | None, estimate: bool) -> Trial:
        tree, dtype = flow.tree, flow.tree.dtype
        nv = tree.structure.nv
        chart = Local(flow, phase, mode)
        packing = Packing(arrays(phase.states, dtype))

        def together(x: Phase) -> jax.Array:
            parts = tree.vector(x.q), tree.vector(x.v), packing.together(x.states), x.work
            return jnp.concatenate([jnp.ravel(jnp.asarray(part, dtype)) for part in parts])

        def apart(y: jax.Array) -> Phase:
            return Phase(_flat(tree, y[:nv]), _flat(tree, y[nv : 2 * nv]), y[-1], packing.apart(y[2 * nv : -1]))

        first, work = together(chart.start), phase.work

        def field(y: jax.Array, t: Any) -> jax.Array:
            return together(chart.field(apart(y), t)[0])

        t = jnp.asarray(t, dtype)
        J = jax.jacfwd(lambda z: field(jnp.append(z[:-1], work), z[-1]))(jnp.append(first[:-1], t))
        solve = _linear(tree, phase, t, mode, J[:, :-1], h)
        by_time = h * h * J[:, -1]
        back = len(_STATE) - 1
        zeros = np.zeros((len(_STATE), back))
        state_rows, equation_rows = zeros.copy(), zeros.copy()
        for i, (a, c) in enumerate(zip(_STATE, _EQUATION, strict=True)):  # of earlier increments, the latest first
            state_rows[i, :i], equation_rows[i, :i] = a[::-1], c[::-1]

        def stage(before: tuple[Any, ...], x: Any) -> tuple[Any, Any]:
            fraction, in_time, row, other = x
            here = first + sum(row[m] * k for m, k in enumerate(before))
            right = h * field(here, t + fraction * h) + sum(other[m] * k for m, k in enumerate(before))
            k = solve(right + in_time * by_time)
            return (k, *before[:-1]), (here, k)

        given = tuple(jnp.asarray(x, dtype) for x in (_FRACTION, _BY_TIME, state_rows, equation_rows))
        (k, *_), (here, _) = jax.lax.scan(stage, (jnp.zeros_like(first),) * back, given)
        local, lacking = apart(here[-1] + k), apart(k)
        kinetic = jnp.asarray(energies.kinetic(State(tree.remembering(phase.states), phase.q, phase.v, t, mode)), dtype)
        return Trial(chart.end(local), kinetic, chart.error(local, lacking) if estimate else None)


def _flat(tree: Tree, x: jax.Array) -> Any:
    return x if tree.rolled else list(x)


def _linear(tree: Tree, phase: Phase, t: Any, mode: Mode | None, J: jax.Array, h: Scalar) -> Any:
    """A function solve(right) -> k for the linear equations (1/gamma - h J) k = right; k and right consist of the parts
    of theta, of v and the states of elements, and of work.

    theta is eliminated first: near theta = 0 its rate is v + [theta, v] / 2, so that its own part of J is one small
    block per joint. For a small tree, the remaining matrix is multiplied by the mass matrix, which makes it nearly
    symmetric and positive definite.
    """
    s, nv = tree.structure, tree.structure.nv
    n = J.shape[1]
    by_theta, by_v = J[nv:n, :nv], J[nv:n, nv:]
    own = J[:nv, :nv]
    # D = 1/gamma - h own, block diagonal
    inverse = jnp.zeros((nv, nv), tree.dtype)
    for link, part in zip(s.links, s.v_slices, strict=True):
        if link.joint.gives("bracket"):
            D = jnp.eye(link.joint.nv, dtype=tree.dtype) / GAMMA - h * own[part, part]
            inverse = inverse.at[part, part].set(_inverse(D))
        else:
            inverse = inverse.at[part, part].set(GAMMA * jnp.eye(link.joint.nv, dtype=tree.dtype))
    from_v = jnp.pad(by_theta @ inverse, ((0, 0), (0, n - 2 * nv)))  # theta does not depend on the states
    A = jnp.eye(n - nv, dtype=tree.dtype) / GAMMA - h * by_v - h * h * from_v
    if s.states or s.constrained or nv > LARGEST_UNROLLED or tree.rolled:
        factors = jax.scipy.linalg.lu_factor(A)

        def rest(b: jax.Array) -> jax.Array:
            return jax.scipy.linalg.lu_solve(factors, b)
    else:
        M = crba.mass_matrix(State(tree, phase.q, phase.v, t, mode))
        parts = eliminated(_rows(M @ A))

        def rest(b: jax.Array) -> jax.Array:
            return jnp.stack([jnp.asarray(x, tree.dtype) for x in solved(parts, tuple(M @ b))])

    def solve(right: jax.Array) -> jax.Array:
        first, second, third = right[:nv], right[nv:n], right[n]
        v = rest(second + h * by_theta @ (inverse @ first))
        theta = inverse @ (first + h * v[:nv])
        work = GAMMA * (third + h * (J[n, :nv] @ theta + J[n, nv:] @ v))
        return jnp.concatenate([theta, v, work[None]])

    return solve


def _inverse(D: jax.Array) -> jax.Array:
    n = D.shape[0]
    factors = eliminated(_rows(D))
    columns = [solved(factors, tuple(1 if i == k else 0 for i in range(n))) for k in range(n)]
    return jnp.stack([jnp.stack([jnp.asarray(x, D.dtype) for x in c]) for c in columns], axis=1)


def _rows(A: jax.Array) -> tuple[tuple[Scalar, ...], ...]:
    return tuple(tuple(row) for row in A)
