"""What drives the links of a tree: generalized forces, and locks with prescribed accelerations."""

from __future__ import annotations

from jaxmbs.spatial.components import components
from jaxmbs.spatial.scalar import Scalar


@components
class Drive:
    """The drive of one link. tau: generalized forces, which include those of the force elements. lock, prescribed: the
    lock (None if it is never locked) and the prescribed acceleration of every degree of freedom; () without locks."""

    tau: tuple[Scalar, ...]
    lock: tuple[Scalar, ...]
    prescribed: tuple[Scalar, ...]
