"""Formulations from the literature, and formulas written out.

Equations of motion from configuration matrices, augmented bodies and graph matrices, bond graphs, and the equations of a
mechanism as text, Python or C. They compute the same numbers as `mbs.forward_dynamics` and similar functions, but by
the formulas of a book or a paper, which their docstrings cite; the tests compare them with one another. For simulation
use the functions of `jaxmbs` itself, which are faster.
"""

import functools as _functools
import warnings as _warnings
from typing import Any as _Any

from jaxmbs.dynamics import joint_reactions as _joint_reactions
from jaxmbs.dynamics.literature import *  # noqa: F403
from jaxmbs.model.graph import Graph as Graph
from jaxmbs.model.graph import from_incidence as from_incidence
from jaxmbs.model.graph import graph_of as graph_of
from jaxmbs.model.graph import regular_numbering as regular_numbering
from jaxmbs.model.graph import spanning_tree as spanning_tree
from jaxmbs.symbolic import Operations as Operations
from jaxmbs.symbolic import WrittenOut as WrittenOut
from jaxmbs.symbolic import write_out as write_out


def __getattr__(name: str) -> _Any:
    if name != "hinge_reactions":
        raise AttributeError(f"module 'jaxmbs.textbook' has no attribute {name!r}")
    _warnings.warn(
        "hinge_reactions is deprecated; use mbs.joint_reactions with a method", DeprecationWarning, stacklevel=2
    )
    return _functools.partial(_joint_reactions, method="configuration")
