"""Interface of the constraint elements: between two bodies or a body and the world, or between joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxmbs.model.fields import Element, element
from jaxmbs.model.rows import Row
from jaxmbs.spatial import Motion, Transform


@element
class Constraint(Element):
    """Base of the constraints between two body frames, or a body frame and the world, or between joints.

    The bodies are those named by the first and the second body field; without a second field, the second is the world.
    """

    count: ClassVar[int] = 0  # rows

    def rows(self, p: Mapping[str, Any], X: Transform, V: Motion) -> tuple[Row, ...]:
        """The constraint rows. X: placement of the first frame in the second; V: twist of the first relative to the
        second, in axes of the first."""
        raise NotImplementedError
