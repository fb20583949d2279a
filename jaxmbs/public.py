"""The public names of the package, available as `jaxmbs.NAME`."""

import warnings as _warnings
from typing import Any as _Any

from jaxmbs import absolute as absolute
from jaxmbs import design as design
from jaxmbs import library as library
from jaxmbs import study as study
from jaxmbs import textbook as textbook
from jaxmbs.batching import Explanation as Explanation
from jaxmbs.batching import RowProgram as RowProgram
from jaxmbs.batching import explain as explain
from jaxmbs.batching import jit as jit
from jaxmbs.batching import rows as rows
from jaxmbs.batching import use_all_cores as use_all_cores
from jaxmbs.building import Mechanism as Mechanism
from jaxmbs.building import free as free
from jaxmbs.building import set as set
from jaxmbs.building import vary as vary
from jaxmbs.dynamics.mechanics import *  # noqa: F403
from jaxmbs.exporting import export as export
from jaxmbs.exporting import save_ephemeris as save_ephemeris
from jaxmbs.io.formats import *  # noqa: F403
from jaxmbs.model.constraints.public import *  # noqa: F403
from jaxmbs.model.control.public import *  # noqa: F403
from jaxmbs.model.events.public import *  # noqa: F403
from jaxmbs.model.forces.public import *  # noqa: F403
from jaxmbs.model.joints.public import *  # noqa: F403
from jaxmbs.model.public import *  # noqa: F403
from jaxmbs.simulate import steppers as steppers
from jaxmbs.simulate.public import *  # noqa: F403
from jaxmbs.stability.public import *  # noqa: F403
from jaxmbs.view import Viewer as Viewer
from jaxmbs.view import animate as animate
from jaxmbs.view import draw as draw
from jaxmbs.view import view as view


def __getattr__(name: str) -> _Any:
    """Return, with a warning, a name that has moved to `jaxmbs.textbook`."""
    if name.startswith("_") or name not in (*vars(textbook), "hinge_reactions"):
        raise AttributeError(f"module 'jaxmbs' has no attribute {name!r}")
    _warnings.warn(f"mbs.{name} is deprecated; use mbs.textbook.{name}", DeprecationWarning, stacklevel=3)
    return getattr(textbook, name)
