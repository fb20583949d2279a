"""What is locked and what is switched on, per instance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Mode:
    """Locks and switches of a mechanism of variable structure: a pytree of boolean arrays, made by `Model.mode`.

    lock: (nv,), degrees of freedom whose acceleration is prescribed (zero if nothing else is), so that they keep the rate
    they have: `impact` brings them to rest, `simulate` refuses locks that move at the start; force: (number of force
    elements,), those that act; constraint: (number of loops and constraints,), those that hold, loops first.

    >>> model = mbs.library.double_pendulum().build()
    >>> model.mode(lock="elbow").lock.tolist()
    [False, True]
    """

    lock: Any
    force: Any
    constraint: Any
