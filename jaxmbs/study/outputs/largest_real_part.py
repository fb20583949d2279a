"""Stability as an output of a study: whether small motions about the start grow.

`jaxmbs.stability` is imported when the output is computed, so that a study can be read without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.joints import Joint
from jaxmbs.simulate.status import Status
from jaxmbs.study.outputs.base import Scalar
from jaxmbs.study.outputs.of_run import OfRun

if TYPE_CHECKING:
    from jaxmbs.model import Model
    from jaxmbs.simulate.log import Events


@element
class LargestRealPart(OfRun):
    """Largest real part of the eigenvalues [1/s] of the small motions about the state at the start; negative if stable.

    For oscillations without damping it is zero to within the rounding error; for coordinates on which nothing depends,
    to within the square root of that error. Undefined if the start is neither at rest nor in steady motion, or if no
    rest position was found.
    """

    once: ClassVar[str] = "it is computed at the start only"
    rest: bool = field(
        Kind.FLAG, "", "about the rest that is found from the start, in place of the start", default=False
    )

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return "growth rate"

    def unfit(self, model: Model) -> Iterator[tuple[str, str]]:
        if model.structure.redundant:
            yield (
                "type",
                "some constraints depend on others, so that the number of small motions is not known in advance",
            )
        if model.structure.events or model.structure.held:
            yield (
                "type",
                "small motions are defined only for a mechanism without events and held joints, which would change it",
            )

    def of_run(self, model: Model, q: Any, v: Any, events: Events) -> Scalar:
        from jaxmbs.stability import equilibrium, modes

        fine = jnp.asarray(True)
        if self.rest:
            q, _, status, _ = equilibrium(model, q)
            v, fine = jnp.zeros_like(v), status == Status.OK
        found = modes(model, q, v)
        return jnp.where(fine & (found.status == Status.OK), found.largest_real_part, jnp.nan)
