"""Constraints that users write as functions, differentiated by JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxmbs.model.errors import ModelError


@dataclass(frozen=True)
class FunctionConstraint:
    """Base: fn(model, q, v, t) -> (rows,), zero when the constraint holds; written with jax.numpy."""

    fn: Callable[..., Any]

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise ModelError(f"{type(self).__name__}: fn is {self.fn!r}; pass a function fn(model, q, v, t)")


@dataclass(frozen=True)
class Holonomic(FunctionConstraint):
    """Constraint on the configuration: fn depends on q and t only; rheonomic if it uses t.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_constraint("ratio", mbs.Holonomic(lambda model, t, q, v: q[1] - 2 * q[0]))
    >>> mech.build().constraint_names
    ('ratio',)
    """


@dataclass(frozen=True)
class Nonholonomic(FunctionConstraint):
    """Constraint fn = 0 that is affine in the velocities, a0(q, t) + sum a_k(q, t) v_k = 0 [Y 3.6.1].

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_constraint("drive", mbs.Nonholonomic(lambda model, t, q, v: v[0] - jnp.sin(t)))
    >>> mech.build().constraint_names
    ('drive',)
    """
