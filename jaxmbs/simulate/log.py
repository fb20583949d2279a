"""The log of a run: which events happened, when, how much energy was lost, and whether their locks closed."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.model import Model, ModelError
from jaxmbs.model.shapes import Bool, Float, Int

REPEATED = 16  # how often a repeating event may happen by default
MOST = 100_000  # largest number of repetitions that a run may be given


def checked_events(max_events: Any, model: Model) -> int:
    """How often a repeating event may happen. Raises ModelError for an invalid number and if the model has no such event."""
    if max_events is None:
        return REPEATED
    if isinstance(max_events, bool) or not isinstance(max_events, (int, np.integer)) or not 1 <= max_events <= MOST:
        raise ModelError(f"simulate: max_events is {max_events!r}; pass a whole number from 1 to {MOST:,}, or None")
    if not any(e.repeat or any(hasattr(a, "rest_rate") for a in e.then) for e in model.structure.events):
        raise ModelError(
            "simulate: max_events limits how often an event may repeat, but no event of this model repeats; leave it out"
        )
    return int(max_events)


class Events(NamedTuple):
    """Events of one instance in the order in which they happened, with room for k.

    time (k,) [s], the end of the run where unused; index (k,): into model.event_names, -1 where unused;
    energy_lost (k,) [J]: the drop of the energy at the event (negative where a switch added energy); rebounded (k,):
    whether a joint rebounded, so that the locks of the event did not close yet (`Lock` with a restitution).

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_event("end", when=mbs.Time(0.05), then=mbs.Finish())
    >>> mbs.simulate(mech.build(), [0.5, 0.0], [0.0, 0.0], t_end=0.1, dt=0.01, save_every=None).events.time.tolist()
    [0.05]
    """

    time: Float[jax.Array, " k"]
    index: Int[jax.Array, " k"]  # pyright: ignore[reportIncompatibleMethodOverride]
    energy_lost: Float[jax.Array, " k"]
    rebounded: Bool[jax.Array, " k"]

    @staticmethod
    def none(k: int, t_end: float, dtype: Any) -> Events:
        """A log with k unused places."""
        unused = jnp.full(k, -1, jnp.int32)
        return Events(jnp.full(k, t_end, dtype), unused, jnp.zeros(k, dtype), jnp.zeros(k, bool))


def entered(log: Events, place: Any, t: Any, event: Any, lost: Any, rebounded: Any) -> Events:
    """The log with one more event; place (k,): mask of its place; rebounded: None if nothing in the model rebounds."""
    return Events(
        jnp.where(place, t, log.time),
        jnp.where(place, event, log.index),
        jnp.where(place, lost, log.energy_lost),
        log.rebounded if rebounded is None else jnp.where(place, rebounded, log.rebounded),
    )


def with_loss(log: Events, place: Any, lost: Any) -> Events:
    """The log after an impact: its loss of energy is added to that of its event. place (k,): mask of the event's place,
    False everywhere without an impact."""
    return log._replace(energy_lost=log.energy_lost + jnp.where(place, lost, 0.0))
