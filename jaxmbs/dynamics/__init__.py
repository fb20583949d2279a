"""Dynamics of trees: one algorithm per file, named as in the literature."""

from typing import TYPE_CHECKING

from jaxmbs.lazy import lazy as _lazy

if TYPE_CHECKING:
    from jaxmbs.dynamics.public import *  # noqa: F403

_lazy(__name__, "bond_graph")  # lazy: using one name of the package does not import the rest
