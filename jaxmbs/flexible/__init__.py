"""Parts for flexible bodies: beams, and finite-element models reduced to a few modes."""

from typing import TYPE_CHECKING

from jaxmbs.lazy import lazy as _lazy

if TYPE_CHECKING:
    from jaxmbs.flexible.public import *  # noqa: F403

_lazy(__name__)
