"""Windows: the part of a motion that counts, between two instants. These are events, or the instants when conditions
begin to hold, which are interpolated between grid times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbs.simulate.locating import chosen

Scalar = Any
State = tuple[Any, ...]
Fold = Callable[[State, tuple[Scalar, Scalar], Scalar], State]
# numbers of a window's state: the phase, the last time, and at that time the value and the margins of both conditions
SIZE = 5
BEFORE, INSIDE, AFTER, OPENED = 0.0, 1.0, 2.0, 3.0  # OPENED: inside since an event, with nothing measured after it yet


def start(inside: bool) -> State:
    """State before the first time. inside: whether the window is open from the start."""
    return INSIDE if inside else BEFORE, np.nan, np.nan, np.nan, np.nan


def fold(
    inner: Fold, state: State, measured: tuple[Scalar, Scalar], t: Scalar, begin: Any = None, end: Any = None
) -> State:
    """State with the present time included: the fold `inner` receives the part of the last step that lies in the
    window. begin, end: margins of the conditions, which hold once they are not negative; None if there is no
    condition."""
    phase, then, last, *margins = state[:SIZE]
    dtype = jnp.asarray(phase).dtype
    value, t = (jnp.asarray(x, dtype) for x in (measured[0], t))
    begin, end = (jnp.asarray(-1.0 if m is None else m, dtype) for m in (begin, end))
    kept = state[SIZE:]
    both = measured[1] & ~jnp.isnan(last)
    rise = jnp.where(both, value - last, 0.0)
    step = jnp.where(jnp.isnan(then), 0.0, t - then)

    def seen(share: Scalar) -> tuple[tuple[Scalar, Scalar], Scalar]:
        """The value at the instant that lies this share of the step back, and the instant."""
        return (value - share * rise, measured[1]), t - share * step

    opens, since = _crossed(begin, margins[0])
    closes, until = _crossed(end, margins[1])
    opens &= phase == BEFORE
    # if the condition that ends the window already holds where it begins, the window is empty
    held = jnp.where(jnp.isnan(margins[1]), end, end - since * (end - margins[1])) >= 0
    at_once = ((phase == INSIDE) & jnp.isnan(then)) | ((phase == OPENED) & (step == 0))
    none = (opens & held) | (at_once & (end >= 0))
    starts = (opens & ~none) | (phase == OPENED)
    counts = (starts | (phase == INSIDE)) & ~none

    first = chosen(opens, seen(since), seen(1.0))  # after an event: at its time, with the present value
    kept = chosen(starts, inner(kept, *first), kept)
    kept = chosen(counts, inner(kept, *chosen(closes, seen(until), seen(0.0))), kept)
    ends = (counts & closes) | none
    new = jnp.where(ends, AFTER, jnp.where(counts, INSIDE, phase))
    return new, t, jnp.where(measured[1], value, jnp.nan), begin, end, *kept


def at_event(
    inner: Fold, state: State, measured: tuple[Scalar, Scalar], t: Scalar, begins: Any, ends: Any, changes: bool,
    begin: Any = None, end: Any = None,
) -> State:  # fmt: skip
    """State with an event included. begins, ends: whether the window begins or ends with this event; measured, begin,
    end: as for `fold`, just before the event; changes: whether the measured value may jump at the event; a window
    that begins with it then begins with the value that the next `fold` receives."""
    phase, *rest = fold(inner, state, measured, t, begin, end)
    last, kept = tuple(rest[: SIZE - 1]), tuple(rest[SIZE - 1 :])
    opens = begins & (phase == BEFORE)
    held = jnp.asarray(False if end is None else end >= 0)  # the window is empty
    if changes:
        last = chosen(opens, (last[0], *[jnp.full_like(x, jnp.nan) for x in last[1:]]), last)
    else:
        kept = chosen(opens & ~held, inner(kept, measured, t), kept)
    phase = jnp.where(opens, jnp.where(held, AFTER, OPENED if changes else INSIDE), phase)
    return chosen(begins | ends, (jnp.where(ends, AFTER, phase), *last, *kept), state)


def _crossed(margin: Scalar, before: Scalar) -> tuple[Scalar, Scalar]:
    """Whether a condition holds, and for what share of the last step it has held."""
    rise = margin - before
    share = jnp.where(rise > 0, margin / jnp.where(rise > 0, rise, 1.0), 0.0)
    return margin >= 0, jnp.clip(share, 0.0, 1.0)
