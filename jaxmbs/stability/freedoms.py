"""The motions that the constraints allow, described by independent coordinates and others that follow them."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.model import Mode, Model, ModelError
from jaxmbs.model.errors import unknown
from jaxmbs.model.parameters import is_traced
from jaxmbs.stability.rows import Rows


class Partition(NamedTuple):
    """Positions in x of the coordinates that the rows J x = c leave independent, (n,), and of the dependent ones, (r,).

    size: smallest pivot divided by the largest, near 0 if J x = c can hardly be solved for the dependent coordinates.
    """

    independent: Any
    dependent: Any
    size: Any

    def basis(self, J: Any) -> Any:
        """(len(x), n): the change of x per unit of each independent coordinate."""
        columns = jnp.eye(J.shape[1], dtype=J.dtype)[:, self.independent]
        return columns + self.follow(J, -J @ columns)

    def follow(self, J: Any, target: Any) -> Any:
        """The x (len(x), k) with J x = target (rows, k) whose independent coordinates are zero."""
        columns = jnp.eye(J.shape[1], dtype=J.dtype)[:, self.dependent]
        return columns @ (jnp.linalg.pinv(J @ columns) @ target)


def partition(J: Any, rank: int, kept: Any) -> Partition:
    """Chooses `rank` dependent coordinates by complete pivoting, none of them in the mask `kept`."""
    J, n = jax.lax.stop_gradient(J), J.shape[1]
    largest, least = jnp.zeros((), J.dtype), jnp.asarray(jnp.inf, J.dtype)

    def step(_: Any, x: Any) -> Any:
        J, free, largest, least = x
        sizes = jnp.where(free, jnp.abs(J), -1.0)
        at = jnp.argmax(sizes)
        i, j = at // n, at % n
        pivot = J[i, j]
        rest = J - jnp.outer(J[:, j], J[i] / jnp.where(pivot == 0, 1.0, pivot))
        size = jnp.abs(pivot)
        return rest.at[i].set(0.0), free.at[j].set(False), jnp.maximum(largest, size), jnp.minimum(least, size)

    free = ~jnp.asarray(kept, bool)
    followed = free
    if rank:
        _, followed, largest, least = jax.lax.fori_loop(0, rank, step, (J, free, largest, least))
    else:
        largest = least = jnp.ones((), J.dtype)
    depends = free & ~followed
    order = jnp.argsort(depends, stable=True)  # the independent ones first, each group in its order
    return Partition(order[: n - rank], order[n - rank :], least / jnp.where(largest > 0, largest, 1.0))


class Counts(NamedTuple):
    """Numbers that determine the shapes of the result: degrees of freedom of displacement and of velocity, which differ by
    the nonholonomic rows."""

    displacements: int
    velocities: int


def count(model: Model, found: Rows, independent: tuple[int, ...] | None, where: str) -> Counts:
    """The degrees of freedom, from the rank of the constraint rows if their values are known; if they are traced, from
    the number of the speeds named in `independent` or, without these, of the rows."""
    nv, own = model.nv, found.holonomic
    if not is_traced(found.J):
        J = np.asarray(found.J)
        ranks = [_rank(J[own]), _rank(J)]
    elif independent is not None:
        ranks = [nv - len(independent) - int((~own).sum()), nv - len(independent)]
    elif model.structure.redundant:
        raise ModelError(
            f"{where}: some constraints of model {model.name!r} depend on others, and how many cannot be determined "
            "inside jit or vmap; name the independent speeds with independent=[...]"
        )
    else:
        ranks = [int(own.sum()), len(own)]
    counts = Counts(*(nv - r for r in ranks))
    if counts.velocities <= 0:
        raise ModelError(
            f"{where}: the constraints of model {model.name!r} leave no degree of freedom; nothing can move or vibrate"
        )
    if independent is not None and len(independent) != counts.velocities:
        raise ModelError(
            f"{where}: independent names {len(independent)} speeds, but the constraints leave {counts.velocities} "
            "independent"
        )
    return counts


def _rank(J: np.ndarray) -> int:
    if not min(J.shape):
        return 0
    sizes = np.linalg.svd(J, compute_uv=False)
    return int((sizes > float(np.finfo(J.dtype).eps) ** 0.5 * max(sizes[0], 1e-300)).sum())


def positions(model: Model, names: Any, where: str) -> tuple[int, ...]:
    """Positions in v of the named speeds ("hinge.angle_rate"), or of all speeds of a named joint ("hinge")."""
    speeds = [c.name for c in model.speeds]
    out: list[int] = []
    for name in [names] if isinstance(names, str) else names:
        if name in model.joint_names:
            own = model.v_slice(name)
            out += range(own.start, own.stop)
        elif name in speeds:
            out.append(speeds.index(name))
        else:
            raise unknown("speed or joint", name, (*speeds, *model.joint_names), where)
    return tuple(dict.fromkeys(out))


def locked(mode: Mode | None, where: str) -> tuple[int, ...]:
    """Positions in v of the speeds that a mode locks. Raises ModelError if the locks are traced."""
    if mode is None or mode.lock is None:
        return ()
    if is_traced(mode.lock):
        raise ModelError(
            f"{where}: the locks of the mode are traced, but they set the number of degrees of freedom; use fixed=[...]"
        )
    return tuple(np.flatnonzero(np.asarray(mode.lock)).tolist())
