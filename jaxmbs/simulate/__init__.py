"""Simulation in time: steppers, solutions, statuses."""

from typing import TYPE_CHECKING

from jaxmbs.lazy import lazy as _lazy

if TYPE_CHECKING:
    from jaxmbs.simulate.public import *  # noqa: F403

_lazy(__name__, "simulate")
