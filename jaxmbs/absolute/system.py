"""The Newton-Euler equations in absolute coordinates, index 1 [Y 2.49]: M X" = F + Q' lambda, Q X" = b.

Lambda has the sign of (2.45-2.46), the opposite of that in (2.49). Corrections to the printed source: the gyroscopic
term is minus omega x J omega; for a body i at rest, Q_i of (2.22) lacks the factor rho; the slider's line of (2.47) has
+ R_37 and lacks R_38 (the reaction of the eighth equation of 2.48).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.absolute.equations import Equation
from jaxmbs.model.shapes import Bool, Float


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class System:
    """The equations M X" = F + Q' lambda, Q X" = b in blocks; M, Q, F, b are the whole matrices.

    Bodies (n) in the order of model.body_names, each with k accelerations: k = 6 in space, (angular acceleration in
    body axes [rad/s²], acceleration of the centre of mass in world axes [m/s²]); k = 3 in a plane, (x", y", phi").

    inertia (n, k, k), force (n, k): M_i and F_i. Arcs (a): the tree joints, then the loops; near, far (a, k, k): Q of
    their second body (the child) and of their first body, one equation per row, padded with zero rows at the end; target
    (a, k): b; residual (a, k): deviation from the position constraints [m, rad]; on (a, k): which rows are active; ends:
    second and first body of every arc; counts: number of equations of every arc; singular: whether some M_i is
    structurally singular; redundant: whether some equations depend on others.

    >>> model = mbs.library.crank_slider().build()
    >>> s = mbs.absolute.system(model, [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], planar=True)
    >>> s.k, s.inertia.shape, s.counts
    (3, (3, 3, 3), (2, 2, 2, 2))
    """

    inertia: Float[jax.Array, "n k k"]
    force: Float[jax.Array, "n k"]
    near: Float[jax.Array, "a k k"]
    far: Float[jax.Array, "a k k"]
    target: Float[jax.Array, "a k"]
    residual: Float[jax.Array, "a k"]
    on: Bool[jax.Array, "a k"]
    ends: tuple[tuple[int, int], ...] = field(metadata={"static": True})
    counts: tuple[int, ...] = field(metadata={"static": True})
    singular: bool = field(metadata={"static": True})
    redundant: bool = field(metadata={"static": True})

    @property
    def k(self) -> int:
        """Number of accelerations per body: 6, or 3 in a plane."""
        return self.inertia.shape[1]

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """(arc, row within the arc) of every equation."""
        pairs = [(a, r) for a, count in enumerate(self.counts) for r in range(count)]
        table = np.asarray(pairs, int).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    @property
    def M(self) -> Float[jax.Array, "n*k n*k"]:
        """Mass matrix (k n, k n), block-diagonal [Y 2.9]."""
        n, k = len(self.inertia), self.k
        i = np.arange(n)
        return jnp.zeros((n, k, n, k), self.force.dtype).at[i, :, i, :].set(self.inertia).reshape(n * k, n * k)

    @property
    def Q(self) -> Float[jax.Array, "equations n*k"]:
        """Constraint matrix (equations, k n) [Y 2.22, 2.28, 2.43]."""
        n, k = len(self.inertia), self.k
        a, r = self.rows
        out = jnp.zeros((len(a), n + 1, k), self.force.dtype)
        for side, column in ((self.near, 0), (self.far, 1)):
            out = out.at[np.arange(len(a)), np.asarray(self.ends, int)[a, column]].add(side[a, r])
        return out[:, :n].reshape(len(a), n * k)

    @property
    def F(self) -> Float[jax.Array, " n*k"]:
        """(k n,): applied forces and torques minus the gyroscopic torques [Y 2.9]."""
        return self.force.reshape(-1)

    @property
    def b(self) -> Float[jax.Array, " equations"]:
        """(equations,): right-hand side of the constraint equations."""
        return self.target[self.rows]


class Rows:
    """Collects batches of equations into the blocks of the arcs."""

    def __init__(self, arcs: int, k: int, dtype: Any):
        self.near, self.far = (jnp.zeros((arcs, k, k), dtype) for _ in range(2))
        self.target, self.residual = (jnp.zeros((arcs, k), dtype) for _ in range(2))

    def put(self, arc: np.ndarray, row: np.ndarray, e: Equation) -> None:
        """Put the equations e, whose body i is the second body of the arc, at their arcs and rows."""
        self.near, self.far = self.near.at[arc, row].set(e.Q_i), self.far.at[arc, row].set(e.Q_j)
        self.target, self.residual = self.target.at[arc, row].set(e.b), self.residual.at[arc, row].set(e.residual)
