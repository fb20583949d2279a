"""Reading mechanisms from files and writing them to files."""

from typing import TYPE_CHECKING

from jaxmbs.lazy import lazy as _lazy

if TYPE_CHECKING:
    from jaxmbs.io.public import *  # noqa: F403

_lazy(__name__, "save")
