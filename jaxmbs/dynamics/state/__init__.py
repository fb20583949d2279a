"""The state of a tree: its layout, motion and loads, and the compilation of public functions."""

from jaxmbs.dynamics.state.state import State as State
from jaxmbs.dynamics.state.tree import Tree as Tree
