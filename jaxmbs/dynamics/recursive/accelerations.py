"""Accelerations of a tree by the recursion that suits the device."""

from __future__ import annotations

from typing import Any

from jaxmbs.dynamics.recursive import aba, divide_and_conquer
from jaxmbs.dynamics.state import State


def accelerations(state: State, tau: Any, prescribed: Any = None) -> Any:
    """Accelerations (nv,), in the form of `Tree.flat`; the arguments are those of `aba.forward_dynamics`."""
    recursion = divide_and_conquer if divide_and_conquer.preferred(state.tree.model) else aba
    return recursion.forward_dynamics(state, tau, prescribed)
