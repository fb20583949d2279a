"""The loads on a mechanism, and the part of them that the constraints do not balance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics import integrate, inverse_dynamics
from jaxmbs.model import Mode, Model
from jaxmbs.model.functions import evaluated
from jaxmbs.stability.rows import Rows, rows

Law = Callable[..., Any] | None


class Load(NamedTuple):
    """Generalized forces tau (nv,) or None, or a law (model, t, q, v) in their place, at time t and in a mode."""

    tau: Any
    law: Law
    t: Any
    mode: Mode | None

    def given(self, model: Model, q: Any, v: Any) -> Any:
        """tau (nv,) at a state, or None if there is none."""
        if self.law is None:
            return self.tau
        return evaluated(self.law, "tau", (model.nv,), q.dtype, model, jnp.asarray(self.t, q.dtype), q, v)

    def missing(self, model: Model, q: Any, v: Any, a: Any) -> jax.Array:
        """A a + bias - tau (nv,), which the constraint forces must supply."""
        needed = inverse_dynamics(model, q, v, a, t=self.t, mode=self.mode)
        given = self.given(model, q, v)
        return needed if given is None else needed - given


class Balance(NamedTuple):
    """The balance at a configuration at rest. force (nv,): unbalanced generalized forces; gap (rows,): residuals of the
    constraint rows; rows: these rows."""

    force: Any
    gap: Any
    rows: Rows


def balance(model: Model, q: Any, multipliers: Any, load: Load, held: tuple[int, ...]) -> Balance:
    """bias - tau - Jᵀ multipliers, and the residuals of the rows, at q (nq,) and at rest."""
    still = jnp.zeros(model.nv, q.dtype)
    here = rows(model, q, still, load.t, load.mode, held)
    return Balance(load.missing(model, q, still, still) - here.J.T @ multipliers, here.residual, here)


def number(model: Model, q: Any, load: Load, held: tuple[int, ...]) -> int:
    """The number of constraint rows, including those of held degrees of freedom."""
    still = jnp.zeros(model.nv, q.dtype)
    return jax.eval_shape(lambda q: rows(model, q, still, load.t, load.mode, held).residual, q).shape[0]


def stiffness(model: Model, q: Any, multipliers: Any, load: Load, held: tuple[int, ...]) -> tuple[Any, Balance]:
    """(K (nv, nv), the balance). K is the change of the unbalanced forces per displacement of q, at given multipliers."""

    kinds = []  # which rows are holonomic: stored here, since it must not become a traced result

    def force(dx: Any) -> Any:
        found = balance(model, integrate(model, q, dx), multipliers, load, held)
        kinds.append(found.rows.holonomic)
        return found.force, (found.force, found.gap, found.rows._replace(holonomic=None))

    K, (here, gap, arrays) = jax.jacfwd(force, has_aux=True)(jnp.zeros(model.nv, q.dtype))
    return K, Balance(here, gap, arrays._replace(holonomic=kinds[0]))


def saddle(K: Any, J: Any) -> tuple[Any, Any]:
    """([K / size, -Jᵀ; J, 0], size), with size the largest entry of K. The multipliers are then divided by size, too."""
    size = jnp.max(jnp.abs(K), initial=0.0)
    size = jax.lax.stop_gradient(jnp.where(size > 0, size, 1.0))
    none = jnp.zeros((J.shape[0], J.shape[0]), K.dtype)
    return jnp.block([[K / size, -J.T], [J, none]]), size


def sizes(K: Any, found: Balance, multipliers: Any) -> Any:
    """The sizes (nv,) of the forces along every degree of freedom, including those that a displacement of 1 rad or m
    causes."""
    J = found.rows.J
    size = jnp.sum(jnp.abs(K), axis=1) + jnp.abs(J.T) @ jnp.abs(multipliers) + jnp.abs(found.force + J.T @ multipliers)
    return size + 1e-3 * jnp.max(size, initial=0.0)
