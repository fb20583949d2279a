"""The state of a tree: its layout, motion, loads, and how public functions are called."""

from jaxmbs.dynamics.state.state import State as State
from jaxmbs.dynamics.state.tree import Tree as Tree
