"""The public names, available as `jaxmbs.dynamics.NAME`."""

from jaxmbs.dynamics.literature import *  # noqa: F403
from jaxmbs.dynamics.mechanics import *  # noqa: F403
