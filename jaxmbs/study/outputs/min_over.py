"""The smallest of several outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax.numpy as jnp

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.joints import Joint
from jaxmbs.study.outputs.base import REDUCTION, REDUCTIONS, Output, Scalar


@element
class Combined(Output):
    """Base of the outputs that are computed from other outputs."""

    of: Sequence[str] = field(Kind.NAMES, "", "outputs whose minimum is taken; their own `reduce` does not matter")

    def combined(self, found: Sequence[tuple[Scalar, Scalar]]) -> tuple[Scalar, Scalar]:
        """Value and whether it is defined, from those of the other outputs."""
        raise NotImplementedError


@element
class MinOver(Combined):
    """The smallest, at every time, of several outputs that measure the same quantity, such as the clearances of several
    pairs of shapes."""

    of_quantity: str | None = field(Kind.TEXT, "", "what they measure; found by itself", default=None, kw_only=True)
    reduce: str = field(Kind.CHOICE, "", REDUCTION, default="min", choices=REDUCTIONS, kw_only=True)

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return self.of_quantity or "number"

    def combined(self, found: Sequence[tuple[Scalar, Scalar]]) -> tuple[Scalar, Scalar]:
        value, defined = jnp.inf, jnp.asarray(False)
        for x, on in found:
            taken = jnp.logical_not(x >= value)  # also a NaN, which shows in the result
            value = jnp.where(on & taken & ~jnp.isnan(value), x, value)
            defined = defined | on
        return value, defined
