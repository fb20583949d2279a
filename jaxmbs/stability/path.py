"""Equilibria as a parameter changes, followed through folds, with the stability of each point (pseudo-arclength).

The parameter is one of the unknowns; the length along the path is given instead, so that a point where the parameter
reverses (a snap-through) is like any other. At a branching (buckling of a perfect column) the path goes straight on;
the least stiffness passes through zero there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.building import set as with_values
from jaxmbs.dynamics import integrate, mass_matrix
from jaxmbs.dynamics.state.calling import compiles_itself, require_model, state_dtype, vector
from jaxmbs.model import Mode, Model, ModelError
from jaxmbs.model.functions import check_arguments
from jaxmbs.model.given import Coordinates, GeneralizedForces, Law, Number, Vector
from jaxmbs.model.model import get
from jaxmbs.model.parameters import is_traced
from jaxmbs.model.shapes import Float, Int
from jaxmbs.simulate import Status
from jaxmbs.simulate.locating import chosen
from jaxmbs.stability.freedoms import locked, positions
from jaxmbs.stability.loads import Load, balance, number, sizes
from jaxmbs.stability.rows import Rows

ITERATIONS = 8  # of Newton's method before a step is halved
HALVINGS = 12
CLOSE = 1e-6  # fraction of the parameter's range within which its end counts as reached
Changed = Callable[[Model, Any], Model]


class EquilibriumPath(NamedTuple):
    """Equilibria along a path: value (rows,) of the parameter; q (rows, nq); multipliers (rows, k).

    stiffness (rows,): the least eigenvalue of the stiffness relative to the mass [1/s²], over motions that the constraints
    allow; negative: unstable; where it changes its sign, the path folds or branches. unstable (rows,): number of unstable
    directions. status (rows,): int32; OK, UNBALANCED where the path was lost, or NOT_RUN beyond its end. In rows that are
    not OK, the numbers are NaN and unstable is -1.

    >>> model = mbs.library.beam(8, stiffness=10.0, mass=1.0).build()
    >>> path = mbs.equilibrium_path(model, model.neutral(), "gravity", [0, 0, -9.81], start=[0, 0, 0], rows=50)
    >>> sagging = path.status == mbs.Status.OK
    >>> print(bool((path.stiffness[sagging] > 0).all()), path.value[sagging][-1].round(2) + 0.0)
    True [ 0.    0.   -9.81]
    """

    value: Float[jax.Array, "rows ..."]
    q: Float[jax.Array, "rows nq"]
    multipliers: Float[jax.Array, "rows k"]
    stiffness: Float[jax.Array, " rows"]
    unstable: Int[jax.Array, " rows"]
    status: Int[jax.Array, " rows"]


def equilibrium_path(
    model: Model,
    q: Coordinates,
    parameter: str | Changed,
    stop: Number | Vector,
    start: Number | Vector | None = None,
    *,
    tau: GeneralizedForces | Law | None = None,
    fixed: Iterable[str] = (),
    rows: int = 100,
    step: float = 0.05,
    t: Number = 0.0,
    mode: Mode | None = None,
) -> EquilibriumPath:
    """Follow equilibria from q (nq,) while a parameter goes from start to stop, through folds: an `EquilibriumPath`.

    parameter: its name ("strut.stiffness", "gravity"), or a function (model, value) -> model; start, stop: its values,
    start None for the current one. The path ends where the parameter leaves the range between them, or after `rows`
    points. step: length of the path from row to row, in which one radian or metre of a coordinate and the whole range
    of the parameter each count as 1; it is shortened where the path bends. tau (nv,) or (model, t, q, v) -> (nv,),
    fixed: as for `equilibrium`. stiffness and unstable do not show whether forces that follow the motion cause flutter:
    use `modes` for this. Works under jit and vmap; the results have no derivatives: for a single point, `equilibrium`
    has them. Raises ModelError for wrong names and shapes.

    >>> mech = mbs.library.double_pendulum()
    >>> for joint in ("shoulder", "elbow"):
    ...     mech.add_force(f"coil_{joint}", mbs.JointSpring(joint, stiffness=10.0))
    >>> upright = mbs.equilibrium_path(mech.build(), [0.0, 0.0], "gravity", [0, 0, 9.81], start=[0, 0, 0], rows=60)
    >>> print(upright.unstable[:21].tolist())  # it buckles where m g l is 0.293 times the springs' stiffness: g = 2.93
    [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    """
    require_model(model, "equilibrium_path")
    held = positions(model, fixed, "equilibrium_path(fixed=...)") + locked(mode, "equilibrium_path")
    dtype = state_dtype(q)
    q = vector(model, "q", q, model.nq, dtype)
    if isinstance(parameter, str):
        now = get(model, parameter)
    elif start is None:
        raise ModelError(
            "equilibrium_path: with a function of the parameter pass start, the value at which the path begins"
        )
    else:
        now = start
    first = jnp.asarray(now if start is None else start, dtype)
    last = jnp.asarray(stop, dtype)
    if first.shape != last.shape:
        raise ModelError(f"equilibrium_path: stop has shape {last.shape}; the parameter has {first.shape}")
    if not any(map(is_traced, (first, last))) and bool(jnp.all(first == last)):
        raise ModelError(f"equilibrium_path: start and stop are both {stop!r}; the parameter must change")
    if step <= 0 or rows < 1:
        raise ModelError(f"equilibrium_path: step is {step!r}, rows {rows!r}; both must be positive")
    law = tau if callable(tau) else None
    if law is not None:
        check_arguments(law, "equilibrium_path: tau")
    tau = None if callable(tau) or tau is None else vector(model, "tau", tau, model.nv, dtype)
    given = (model, q, first, last, tau, t, mode, step)
    found = _path(*given, law=law, held=held, parameter=parameter, count=rows)
    return jax.tree_util.tree_map(jax.lax.stop_gradient, found)


class _Point(NamedTuple):
    q: Any
    multipliers: Any
    s: Any  # position of the parameter in its range, 0 to 1


class _Attempt(NamedTuple):
    base: _Point
    tangent: Any  # (nv + rows + 1,)
    h: Any  # length of the step that is tried
    trial: _Point
    normal: Any  # coefficients of the equation that fixes where on the path the trial is
    iteration: Any
    halvings: Any
    ended: Any
    met: Any
    row: Any  # (point, stiffness, unstable) of the last point that met the equations


@compiles_itself("law", "held", "parameter", "count")
def _path(
    model: Model, q: Any, first: Any, last: Any, tau: Any, t: Any, mode: Any, step: Any, *,
    law: Any, held: tuple[int, ...], parameter: str | Changed, count: int,
) -> EquilibriumPath:  # fmt: skip
    model, q, first, last, tau = jax.lax.stop_gradient((model, q, first, last, tau))
    nv, dtype, load = model.nv, q.dtype, Load(tau, law, t, mode)
    eps = float(jnp.finfo(dtype).eps)

    def at(s: Any) -> Model:
        value = first + s * (last - first)
        return with_values(model, {parameter: value}) if isinstance(parameter, str) else parameter(model, value)

    def evaluated(point: _Point) -> tuple[Any, ...]:
        """Residual of the equations, their Jacobian with respect to (displacement, multipliers, s), unit of the forces,
        whether the equations are met, (least stiffness, number of unstable directions)."""
        kinds: list[np.ndarray] = []

        def equations(x: Any) -> Any:
            found = balance(at(point.s + x[nv]), integrate(model, point.q, x[:nv]), point.multipliers, load, held)
            kinds.append(found.rows.holonomic)
            numbers = found.rows._replace(holonomic=None)
            return jnp.concatenate([found.force, found.gap]), (found._replace(rows=numbers))

        slopes, found = jax.jacfwd(equations, has_aux=True)(jnp.zeros(nv + 1, dtype))
        own: Rows = found.rows
        J, K = own.J, slopes[:nv, :nv]
        closes = jnp.asarray(kinds[0] & (np.arange(len(kinds[0])) < len(kinds[0]) - len(held)))
        unit = 1 + jnp.max(jnp.abs(K), initial=0.0)
        by_s = jnp.concatenate([slopes[:nv, nv] / unit, jnp.where(closes, slopes[nv:, nv], 0.0)])
        above = jnp.concatenate([K / unit, -J.T], 1)
        below = jnp.concatenate([J, jnp.zeros((J.shape[0], J.shape[0]), dtype)], 1)
        jacobian = jnp.concatenate([jnp.concatenate([above, below]), by_s[:, None]], 1)
        residual = jnp.concatenate([found.force / unit, found.gap])
        bound = eps ** (2 / 3) * sizes(K, found, point.multipliers)
        met = jnp.all(jnp.abs(found.force) <= bound) & (jnp.max(jnp.abs(found.gap), initial=0.0) <= eps ** (2 / 3))
        A = mass_matrix(at(point.s), point.q, t=t, mode=mode)
        return residual, jacobian, unit, met, _stiffness(A, K, J)

    rows = number(model, q, load, held)
    along = jnp.concatenate([jnp.ones(nv, dtype), jnp.zeros(rows, dtype), jnp.ones(1, dtype)])  # what counts as length
    only = jnp.zeros(nv + rows + 1, dtype).at[-1].set(1.0)

    def moved(point: _Point, x: Any, unit: Any) -> _Point:
        return _Point(integrate(model, point.q, x[:nv]), point.multipliers + x[nv:-1] * unit, point.s + x[-1])

    def attempt(x: _Attempt) -> _Attempt:
        residual, jacobian, unit, met, (least, unstable) = evaluated(x.trial)
        whole = jnp.concatenate([jacobian, x.normal[None]])
        inverse = jnp.linalg.pinv(whole)
        change = inverse @ jnp.concatenate([-residual, jnp.zeros(1, dtype)])
        fine = jnp.all(jnp.isfinite(change)) & (jnp.linalg.norm(change * along) <= jnp.maximum(x.h, 1e-3) * 2)
        first_row = x.h == 0
        fine |= first_row & jnp.all(jnp.isfinite(change))
        met &= fine
        lost = ~met & (~fine | (x.iteration >= jnp.where(first_row, 5 * ITERATIONS, ITERATIONS)))
        following = inverse @ only.at[-1].set(1.0)
        following = following / jnp.linalg.norm(following * along) * jnp.where(along > 0, 1.0, unit)
        # after a failed trial, a shorter one from the same base
        h = jnp.where(lost, x.h / 2, x.h)
        again = _stepped(x.base, x.tangent, h)
        nearer = moved(x.trial, change, unit)
        trial = chosen(lost, again[0], chosen(met, x.trial, nearer))
        row = chosen(met, (nearer, least, unstable), x.row)
        return _Attempt(
            x.base, jnp.where(met, following * jnp.where(first_row, jnp.where(following[-1] < 0, -1, 1), 1), x.tangent),
            h, trial, jnp.where(lost, again[1], x.normal), jnp.where(lost, 0, x.iteration + 1),
            x.halvings + lost, x.ended | (lost & (first_row | (x.halvings >= HALVINGS))), met, row,
        )  # fmt: skip

    def _stepped(base: _Point, tangent: Any, h: Any) -> tuple[_Point, Any]:
        """The point at a length h along the tangent, at most at the end of the parameter's range, and the coefficients
        of the equation that fixes it: it prescribes the parameter at the end of the range, else the length."""
        s = base.s + h * tangent[-1]
        end = jnp.where(tangent[-1] > 0, 1.0, 0.0).astype(dtype)
        beyond = jnp.where(tangent[-1] > 0, s >= 1, s <= 0)
        part = jnp.where(beyond, (end - base.s) / jnp.where(tangent[-1] == 0, 1.0, tangent[-1]), h)
        scaled = tangent * part
        point = _Point(
            integrate(model, base.q, scaled[:nv]),
            base.multipliers + scaled[nv:-1],
            jnp.where(beyond, end, base.s + scaled[-1]),
        )
        return point, jnp.where(beyond, only, tangent * along)

    def next_row(x: _Attempt, k: Any) -> tuple[_Attempt, Any]:
        start = x._replace(iteration=jnp.zeros((), jnp.int32), halvings=jnp.zeros((), jnp.int32), met=x.ended)
        over = x.ended
        x = jax.lax.while_loop(lambda x: ~x.met & ~x.ended, attempt, start)
        point, least, unstable = x.row
        status = jnp.where(over, Status.NOT_RUN, jnp.where(x.met, Status.OK, Status.UNBALANCED)).astype(jnp.int32)
        nan = jnp.where(over | ~x.met, jnp.nan, 0.0).astype(dtype)
        value = first + point.s * (last - first)
        kept = EquilibriumPath(
            value + nan,
            point.q + nan,
            point.multipliers + nan,
            least + nan,
            jnp.where(jnp.isnan(nan), -1, unstable),
            status,
        )
        h = jnp.minimum(jnp.where(x.h == 0, step, x.h * jnp.where(x.iteration <= 4, 1.5, 1.0)), step).astype(dtype)
        trial, normal = _stepped(point, x.tangent, h)
        arrived = (k > 0) & ((point.s >= 1 - CLOSE) | (point.s <= CLOSE))
        return x._replace(base=point, h=h, trial=trial, normal=normal, ended=x.ended | arrived | ~x.met), kept

    zero, none = jnp.zeros((), dtype), jnp.zeros((), jnp.int32)
    no = jnp.asarray(False)
    point = _Point(q, jnp.zeros(rows, dtype), zero)
    x = _Attempt(point, only, zero, point, only, none, none, no, no, (point, zero, none))
    _, kept = jax.lax.scan(next_row, x, jnp.arange(count))
    return kept


def _stiffness(A: Any, K: Any, J: Any) -> tuple[Any, Any]:
    """(least eigenvalue of K relative to A on J x = 0, number of negative ones)."""
    L = jnp.linalg.cholesky(A)
    scaled = jax.scipy.linalg.solve_triangular(L, K, lower=True)
    scaled = jax.scipy.linalg.solve_triangular(L, scaled.T, lower=True)
    across = jax.scipy.linalg.solve_triangular(L, J.T, lower=True)
    P = jnp.eye(A.shape[0], dtype=A.dtype) - across @ jnp.linalg.pinv(across)
    scaled = P @ (scaled + scaled.T) @ P / 2
    size = 1 + jnp.max(jnp.sum(jnp.abs(scaled), axis=1), initial=0.0)
    values = jnp.linalg.eigvalsh(scaled + 2 * size * (jnp.eye(A.shape[0], dtype=A.dtype) - P))
    rounding = len(values) * float(jnp.finfo(A.dtype).eps) * size
    return values[0], jnp.sum(values < -rounding).astype(jnp.int32)
