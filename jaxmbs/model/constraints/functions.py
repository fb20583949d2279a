"""Constraints that users write as functions, differentiated by JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxmbs.model.functions import check_arguments


@dataclass(frozen=True)
class FunctionConstraint:
    """Base: fn(model, t, q, v) -> (rows,), zero when the constraint holds; written with jax.numpy.

    ModelError, when it is first evaluated, for a result of another shape, or one that is no such function of v.
    """

    fn: Callable[..., Any]

    def __post_init__(self) -> None:
        check_arguments(self.fn, f"{type(self).__name__}: fn")


@dataclass(frozen=True)
class Holonomic(FunctionConstraint):
    """Constraint on the configuration: fn depends on q and t only; rheonomic if it uses t."""


@dataclass(frozen=True)
class Nonholonomic(FunctionConstraint):
    """Constraint affine in the velocities, a0(q, t) + sum a_k(q, t) v_k = 0 [Y 3.6.1]."""
