"""Base of the outputs that are computed once for a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp

from jaxmbs.model.fields import element
from jaxmbs.model.joints import Joint
from jaxmbs.study.outputs.base import Scalar
from jaxmbs.study.outputs.of_state import OfState

if TYPE_CHECKING:
    from jaxmbs.dynamics.state.scene import TreeScene
    from jaxmbs.model import Mode, Model
    from jaxmbs.simulate.log import Events


@element
class OfRun(OfState):
    """Base of the outputs that are computed once for a run, from its start and its events. once: why there is nothing to
    reduce over time."""

    abstract: ClassVar[bool] = True
    once: ClassVar[str] = "it is computed once for a run"

    def of_run(self, model: Model, q: Any, v: Any, events: Events) -> Scalar:
        """Value in SI, NaN where it is not defined. q (nq,), v (nv,): at the start."""
        raise NotImplementedError

    def incomplete(self, joints: Mapping[str, Joint]) -> Iterator[tuple[str, str]]:
        if self.windowed:
            yield "from" if self.from_ is not None else "until", f"{self.once}; leave this out"
        if self.reduce != "final":
            yield "reduce", f"{self.once}; leave this out"

    def of_state(self, state: TreeScene, model: Model, mode: Mode | None) -> tuple[Scalar, Scalar]:
        return jnp.nan, False
