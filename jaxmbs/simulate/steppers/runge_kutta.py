"""Explicit Runge-Kutta methods, in the coordinates themselves or in local coordinates of the group of motions."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.recursive import energies
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode
from jaxmbs.model.errors import unknown
from jaxmbs.model.structure import Structure
from jaxmbs.simulate.loops import checkpointed
from jaxmbs.simulate.steppers.base import Flow, Phase, Stepper, Trial, along, arrays
from jaxmbs.simulate.steppers.charts import Ambient, Local, no_group
from jaxmbs.spatial.scalar import Scalar


@dataclass(frozen=True)
class Tableau:
    """Fractions c of the step, weights A of the earlier slopes, weights b of the step, and `errors`, one row of weights
    for each error estimate."""

    c: np.ndarray
    A: np.ndarray
    b: np.ndarray
    errors: np.ndarray
    order: int
    error_order: int | None

    @property
    def stages(self) -> int:
        """Number of stages of the step itself, without the one that only the error estimate needs."""
        return int(np.flatnonzero(self.b)[-1]) + 1


TABLEAUS = ("rk4", "dopri5", "dop853")


# [Dormand, Prince 1980]: fractions, weights of the earlier slopes, of the step, and of its error
DOPRI5 = (
    [0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1],
    [
        [],
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    ],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    [[-71 / 57600, 0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40]],
)


@functools.cache
def tableau(name: str) -> Tableau:
    """The coefficients of a method: "rk4" [Kutta 1901], "dopri5" [Dormand, Prince 1980], "dop853" [Hairer 1993] from
    SciPy."""
    if name == "rk4":
        A = np.diag([0.5, 0.5, 1.0], -1)
        return Tableau(np.array([0, 0.5, 0.5, 1]), A, np.array([1, 2, 2, 1]) / 6, np.zeros((0, 4)), 4, None)
    if name == "dopri5":  # SciPy has these as well, but its import takes half a second
        return _with_errors(*DOPRI5, order=5, error_order=4)
    from scipy.integrate import DOP853

    s, errors = DOP853.n_stages, [DOP853.E5, DOP853.E3]
    return _with_errors(DOP853.C[:s], DOP853.A[:s], DOP853.B, errors, DOP853.order, DOP853.error_estimator_order)


def _with_errors(c: Any, A: Any, b: Any, errors: Any, order: int, error_order: int) -> Tableau:
    """The tableau with the slope at the end of the step as one more stage, which the error estimate needs."""
    s = len(b)
    whole = np.zeros((s + 1, s + 1))
    for k, row in enumerate((*A, b)):
        whole[k, : len(row)] = row
    return Tableau(np.append(c, 1.0), whole, np.append(b, 0.0), np.array(errors), order, error_order)


@dataclass(frozen=True)
class RungeKutta(Stepper):
    """An explicit Runge-Kutta method by name: "rk4" (order 4), "dopri5" (5, error 4), "dop853" (8, errors 5 and 3).

    Quaternions are integrated as four numbers, which does not reduce the order, and normalised at the end of a step.
    Only "dopri5" and "dop853" estimate their error and so take a tolerance. Raises ModelError for another name.

    >>> model = mbs.library.double_pendulum().build()
    >>> run = mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], 1.0, dt=0.1, method=mbs.steppers.RungeKutta("dop853"))
    >>> bool(abs(run.energy_error[-1]) < 1e-6)
    True
    """

    name: str = "rk4"
    chart: ClassVar[Any] = Ambient

    def __post_init__(self) -> None:
        if self.name not in TABLEAUS:
            raise unknown("method", self.name, TABLEAUS, "a Runge-Kutta stepper")

    @property
    def order(self) -> int:
        return tableau(self.name).order

    @property
    def error_order(self) -> int | None:
        return tableau(self.name).error_order

    def amplification(self, z: complex) -> complex | None:
        table = tableau(self.name)
        s = table.stages
        return complex(1 + z * table.b[:s] @ np.linalg.solve(np.eye(s) - z * table.A[:s, :s], np.ones(s)))

    def impulses(self, tree: Tree) -> bool:
        return not (tree.structure.rheonomic or tree.rolled)

    def step(self, flow: Flow, phase: Phase, t: Scalar, h: Scalar, mode: Mode | None, estimate: bool) -> Trial:
        table, dtype = tableau(self.name), flow.tree.dtype
        stages = len(table.b) if estimate else table.stages
        back = max((i - int(np.flatnonzero(row)[0]) for i, row in enumerate(table.A[:stages]) if row.any()), default=0)
        # weights of earlier changes, the latest first
        rows = np.array([[table.A[i, i - 1 - m] if m < i else 0.0 for m in range(back)] for i in range(stages)])
        weights = np.vstack([table.b[:stages], table.errors[:, :stages] if estimate else np.zeros((0, stages))]).T
        chart = self.chart(flow, phase, mode)
        start = chart.start
        zero = flow.varied(jax.tree_util.tree_map(jnp.zeros_like, arrays(start, dtype)), start[:2])

        # an impact has the same slope at all stages, and the weights add up to one: with h = 1 the sum is the jump
        whole = h if flow.impulse is None else jnp.where(flow.impulse[0], 1.0, h)

        @checkpointed
        def change(here: Any, t: Any, h: Any) -> tuple[Any, Any]:
            slope, state = chart.field(here, t)
            # multiplied by h here: if h depends on events, its derivative then needs no stored sums over stages
            change = jax.tree_util.tree_map(lambda x: h * x, slope)
            return arrays(change, dtype), jnp.asarray(energies.kinetic(state), dtype)

        def stage(carry: Any, x: Any) -> tuple[Any, Any]:
            changes, totals = carry
            fraction, row, weight = x
            here = start
            for m, before in enumerate(changes):
                here = along(here, before, row[m])
            new, kinetic = change(here, t + fraction * h, whole)
            totals = tuple(along(total, new, weight[k]) for k, total in enumerate(totals))
            return ((new, *changes[:-1]), totals), kinetic

        given = tuple(jnp.asarray(x, dtype) for x in (table.c[:stages], rows, weights))
        carry = ((zero,) * back, (zero,) * weights.shape[1])
        (_, (mean, *lacking)), kinetic = jax.lax.scan(stage, carry, given)
        end = jax.tree_util.tree_map(jnp.add, start, mean)
        error = chart.error(end, _combined(lacking)) if estimate else None
        return Trial(chart.end(end), kinetic[0], error)


@dataclass(frozen=True)
class MuntheKaas(RungeKutta):
    """The methods of `RungeKutta` on the group of motions: each step is computed in exponential coordinates about its start,
    orientations as rotation vectors, free bodies as screws [Munthe-Kaas 1998].

    The steps preserve the length of quaternions; a free body whose velocity is constant in its own axes moves exactly
    along its screw.

    >>> mech = mbs.Mechanism("stone", gravity=(0.0, 0.0, 0.0))
    >>> mech.add_body("stone", mass=1.0, inertia=(0.1, 0.1, 0.1))
    >>> mech.add_joint("flight", mbs.Free(), "world", "stone")
    >>> model, v = mech.build(), [0.0, 0.0, 2.0, 0.0, 0.0, 1.0]
    >>> run = mbs.simulate(model, model.neutral(), v, 1.0, dt=0.5, method=mbs.steppers.MuntheKaas("rk4"))
    >>> bool(abs(run.q[-1, 3] - np.cos(1.0)) < 1e-14)
    True
    """

    chart: ClassVar[Any] = Local

    def obstacle(self, structure: Structure) -> str | None:
        return no_group(structure)


def _combined(estimates: list[Phase]) -> Phase:
    """The error estimate; two estimates, of orders 5 and 3, are combined entry by entry as in [Hairer, Norsett, Wanner,
    II.10]."""
    if len(estimates) == 1:
        return estimates[0]

    def weighed(e: Any, x: Any, y: Any) -> Any:
        size = jnp.sqrt(x * x + 0.01 * y * y)
        return e * jnp.abs(x) / jnp.where(size > 0, size, 1.0)

    return jax.tree_util.tree_map(weighed, estimates[0], *estimates)
