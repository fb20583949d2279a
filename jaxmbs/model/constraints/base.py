"""What every constraint element answers: between a body and the world, or between joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxmbs.model.fields import Element, element
from jaxmbs.model.rows import Row
from jaxmbs.spatial import Motion, Transform


@element
class Constraint(Element):
    """Base of the constraints between a frame of one body, its first field of a body, and one of its second, or of
    the world, or between joints."""

    count: ClassVar[int] = 0  # rows

    def rows(self, p: Mapping[str, Any], X: Transform, V: Motion) -> tuple[Row, ...]:
        """The rows for the frame placed at X in the other's, moving with V relative to it (in its own axes)."""
        raise NotImplementedError
