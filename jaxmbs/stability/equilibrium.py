"""Equilibrium: configurations at which all forces balance, on the manifold of loops and constraints.

From the guess, the mechanism follows the overdamped motion A dq/ds = forces, with the mass matrix A, in implicit steps
that grow as the forces vanish (pseudo-transient continuation). Far from equilibrium this goes downhill and cannot
circle; near equilibrium it is Newton's method, with the multipliers among the unknowns. The result is differentiated
by the implicit function theorem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics import integrate, mass_matrix
from jaxmbs.dynamics.state.calling import compiles_itself, require_model, state_dtype, vector
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode, Model
from jaxmbs.model.functions import check_arguments
from jaxmbs.model.given import Coordinates, GeneralizedForces, Law, Number
from jaxmbs.model.shapes import Float, Int
from jaxmbs.simulate import Status
from jaxmbs.simulate.manifold import normalised
from jaxmbs.stability.freedoms import locked, positions
from jaxmbs.stability.loads import Load, balance, number, saddle, sizes, stiffness
from jaxmbs.stability.rows import rows

STEPS = 500
FIRST = 0.3  # [rad, m] length of the first step
LARGEST = 0.5  # [rad] largest change of a rotational coordinate in one step
NEAR = 0.1  # [rad, m] only steps up to this length may go uphill, to an unstable equilibrium
OPEN = 1e-3  # [m, rad] loops with larger gaps are closed before the search goes on


class Equilibrium(NamedTuple):
    """An equilibrium configuration: q (nq,); multipliers (rows + held,) [N, N m]; status: int32; residual (nv,).

    multipliers: those of the constraints, in the order of `constraint_rows`, then the generalized forces along the held
    degrees of freedom; residual: unbalanced generalized forces; status: OK, UNBALANCED, UNREACHABLE or NOT_FINITE.

    >>> q, multipliers, status, residual = mbs.equilibrium(mbs.library.double_pendulum().build(), [1.0, -2.0])
    >>> print(q.round(6) + 0.0, mbs.Status(int(status)).name)
    [0. 0.] OK
    """

    q: Float[jax.Array, " nq"]
    multipliers: Float[jax.Array, " rows"]
    status: Int[jax.Array, ""]
    residual: Float[jax.Array, " nv"]


def equilibrium(
    model: Model,
    q_guess: Coordinates,
    tau: GeneralizedForces | Law | None = None,
    fixed: Iterable[str] = (),
    *,
    t: Number = 0.0,
    mode: Mode | None = None,
) -> Equilibrium:
    """The equilibrium under gravity, the force elements and tau: (q, multipliers, status, residual), an `Equilibrium`.

    q_guess (nq,), whose loops may be open; tau: None, (nv,), or a function (model, t, q, v) -> (nv,) at v = 0. fixed:
    names of joints that are held at the guess; the generalized forces that hold them are the last multipliers, in the
    order of the names, followed by those of the locks of `mode`. Far from equilibrium the search goes downhill; from a
    guess close to an unstable equilibrium it ends there: use `modes` to find out whether the result is stable. Where
    there is a whole family of equilibria (a wheel on a plane), the result is one near the guess. Derivatives are
    implicit, in both modes and of any order (at an isolated equilibrium). In a batch, each sample has its own status.
    Raises ModelError for wrong shapes and names.

    >>> model = mbs.library.beam(5, length=2.0, mass=3.0, stiffness=50.0, gravity=(0, 0, -9.81)).build()
    >>> q, _, status, _ = mbs.equilibrium(model, model.neutral())
    >>> tip = mbs.body_poses(model, q).position[-1]
    >>> print(mbs.Status(int(status)).name, tip.round(2))
    OK [ 1.73  0.   -0.47]
    """
    require_model(model, "equilibrium")
    names = tuple([fixed] if isinstance(fixed, str) else fixed)
    for name in names:
        model.structure.find_moving(name, "equilibrium(fixed=...)")
    dtype = state_dtype(q_guess)
    q = vector(model, "q", q_guess, model.nq, dtype)
    law = tau if callable(tau) else None
    if law is not None:
        check_arguments(law, "equilibrium: tau")
    tau = None if callable(tau) or tau is None else vector(model, "tau", tau, model.nv, dtype)
    return _equilibrium(model, q, tau, t, mode, law=law, names=names, locked=locked(mode, "equilibrium"))


@compiles_itself("law", "names", "locked")
def _equilibrium(
    model: Model,
    q: Any,
    tau: Any,
    t: Any,
    mode: Mode | None,
    *,
    law: Callable[..., Any] | None,
    names: tuple[str, ...],
    locked: tuple[int, ...],
) -> Equilibrium:
    held = positions(model, names, "equilibrium") + locked
    load = Load(tau, law, t, mode)
    fixed = np.zeros(model.nq, bool)
    for name in names:
        fixed[model.q_slice(name)] = True
    tree = Tree(model, q.dtype)
    start = tree.vector(normalised(tree, q if tree.rolled else list(q)))
    end = jax.lax.stop_gradient(sunk(model, start, load, held))
    q, multipliers = implicit(model, jnp.where(fixed, start, end.q), end.multipliers, load, held)
    return Equilibrium(q, multipliers, end.status, end.force)


class Sinking(NamedTuple):
    """The state of the search: q, multipliers; step: length of the next step in the pseudo-time s; force (nv,): unbalanced
    generalized forces; fresh: whether the multipliers are still to be found; count: number of steps; done; status."""

    q: Any
    multipliers: Any
    step: Any
    force: Any
    fresh: Any
    count: Any
    done: Any
    status: Any


def sunk(model: Model, q: Any, load: Load, held: tuple[int, ...]) -> Sinking:
    """Pseudo-transient continuation from q (nq,) to equilibrium."""
    nv, dtype = model.nv, q.dtype
    eps = float(jnp.finfo(dtype).eps)
    angular = np.array([c.unit.startswith("rad") for c in model.speeds], bool)
    count = number(model, q, load, held)

    def onwards(x: Sinking) -> Sinking:
        K, found = stiffness(model, x.q, x.multipliers, load, held)
        A, J = mass_matrix(model, x.q, t=load.t, mode=load.mode), found.rows.J
        gap = jnp.max(jnp.abs(found.gap), initial=0.0)
        closing = gap > OPEN
        # once loops have been closed, the multipliers are those that leave the least force; then they follow from the steps
        best = jnp.linalg.pinv(J.T) @ found.force
        force = jnp.where(x.fresh, found.force - J.T @ best, found.force)
        pull = jnp.max(jnp.abs(jnp.linalg.pinv(A) @ force), initial=0.0)
        step = jnp.where(x.step > 0, x.step, FIRST / jnp.where(pull > 0, pull, 1.0))

        S, unit = saddle(jnp.where(closing, A, K + A / step), J)
        change = jnp.linalg.pinv(S) @ -jnp.concatenate([jnp.where(closing, 0.0, force / unit), found.gap])
        dx, more = change[:nv], change[nv:] * unit
        turn, most = (jnp.max(jnp.abs(jnp.where(of, dx, 0.0)), initial=0.0) for of in (angular, True))
        part = jnp.minimum(1.0, LARGEST / jnp.where(turn > 0, turn, 1.0))
        # no long step goes uphill; the pseudo-time step grows only after short ones
        uphill = (force @ dx > 0) & (most > NEAR)
        factor = jnp.where(uphill, 0.2, jnp.where(most > LARGEST, 0.5, jnp.where(most > LARGEST / 2, 1.0, 5.0)))
        size, finite = sizes(K, found, x.multipliers), jnp.isfinite(jnp.sum(force) + jnp.sum(dx))
        done = ~x.fresh & jnp.all(jnp.abs(force) <= 10 * eps * size) & (gap <= 10 * eps)
        done |= ~finite | (x.count >= STEPS)
        sinks = ~closing & ~x.fresh
        status = Status.of(
            (~finite, Status.NOT_FINITE),
            (~(gap <= eps**0.5), Status.UNREACHABLE),
            (~jnp.all(jnp.abs(force) <= eps ** (2 / 3) * size), Status.UNBALANCED),
        )
        goes = closing | (sinks & ~uphill)
        following = jnp.where(sinks & ~uphill, x.multipliers + part * more, x.multipliers)
        following = jnp.where(closing, jnp.zeros_like(best), jnp.where(x.fresh, best, following))
        return Sinking(
            jnp.where(goes & ~done, integrate(model, x.q, part * dx), x.q),
            jnp.where(done, x.multipliers, following),
            jnp.where(sinks, step * factor, x.step),
            force,
            closing, x.count + 1, done, status,
        )  # fmt: skip

    none = jnp.zeros((), jnp.int32)
    yes, no = jnp.asarray(True), jnp.asarray(False)
    start = Sinking(q, jnp.zeros(count, dtype), jnp.zeros((), dtype), jnp.zeros(nv, dtype), yes, none, no, none)
    return jax.lax.while_loop(lambda x: ~x.done, onwards, start)


def implicit(model: Model, q: Any, multipliers: Any, load: Load, held: tuple[int, ...]) -> tuple[Any, Any]:
    """The same equilibrium, with derivatives with respect to everything that it depends on."""
    nv, unit = model.nv, 1 + jnp.max(jnp.abs(multipliers), initial=0.0)
    known = rows(model, q, jnp.zeros(nv, q.dtype), load.t, load.mode, held)
    closes = known.holonomic & (np.arange(len(known.holonomic)) < len(known.holonomic) - len(held))
    J = jax.lax.stop_gradient(known.J)

    def equations(x: Any) -> Any:
        found = balance(model, integrate(model, q, x[:nv]), x[nv:] * unit, load, held)
        # held coordinates do not move, and nonholonomic rows restrict displacements, so that wheels roll
        return jnp.concatenate([found.force / unit, jnp.where(closes, found.gap, J @ x[:nv])])

    def slope(g: Any, y: Any) -> Any:
        return jnp.linalg.pinv(jax.jacfwd(g)(jnp.zeros_like(y))) @ y

    start = jnp.concatenate([jnp.zeros(nv, q.dtype), multipliers / unit])
    x = jax.lax.custom_root(equations, start, lambda f, x: x, slope)
    return integrate(model, q, x[:nv]), x[nv:] * unit
