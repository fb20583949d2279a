"""Interface of the constraint elements: between two bodies or a body and the world, or between joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxmbs.model.fields import Element, element
from jaxmbs.model.rows import CoordinateRow, Row
from jaxmbs.spatial import Motion, Transform
from jaxmbs.spatial.scalar import Scalar


@element
class Constraint(Element):
    """Base of the constraints between two body frames, or a body frame and the world, or between joints.

    A constraint between bodies needs `rows`. The first field that names a body gives the first frame (frame b of `Row`),
    the second such field the second frame (frame a). If there is no second field, the second frame is the world. A
    constraint whose fields name joints, and no bodies, needs `coordinate_rows`. The joints are joints of the tree with one
    coordinate each.
    """

    count: ClassVar[int] = 0  # rows

    @property
    def named_joints(self) -> dict[str, str]:
        """{field: joint} of the joints on whose coordinates it acts."""
        return {f: getattr(self, f) for f in self.joints if getattr(self, f) is not None}

    def rows(self, p: Mapping[str, Any], X: Transform, V: Motion) -> tuple[Row, ...]:
        """The constraint rows. p: the numbers by field; X: placement of the first frame in the second; V: twist of the
        first frame relative to the second, in axes of the first."""
        raise NotImplementedError

    def coordinate_rows(
        self, p: Mapping[str, Any], q: Mapping[str, Scalar], v: Mapping[str, Scalar]
    ) -> tuple[CoordinateRow, ...]:
        """The constraint rows between joints. p: the numbers by field; q, v: coordinates and rates by the fields that name
        the joints, without fields that are None."""
        raise NotImplementedError
