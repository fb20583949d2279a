"""Controllers that act at instants and hold their commands in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import Element, element, field, state
from jaxmbs.model.functions import check_arguments
from jaxmbs.model.given import Number, Vector
from jaxmbs.model.parameters import is_traced

ORDER = ("model", "t", "q", "v", "state", "readings")


@element
class Sampled(Element):
    """When a controller samples first."""

    offset: Number = field(Kind.NUMBER, "s", "time of the first sample", default=0.0)


@element
class Remembered(Element):
    """The state of a controller as numbers in one list."""

    state: Vector = state("", "its own state", kind=Kind.LIST)


class Controller:
    """A controller that samples: at offset, offset + period, ... it reads, updates its state and sets its commands, which
    are held until the next sample.

    fn(model, t, q, v, state, readings) -> (state, commands), written with jax.numpy. model: with all states of elements
    and all commands as they are; state: a pytree of numbers as the one given here; readings: {name of a sensor: array}
    of those in `reads`. commands: one value for each parameter in `writes` ("wheel.torque"), as a tuple in their order or
    by name; a single one may be a plain value. The values of these parameters in the model hold until the first sample.
    All controllers that sample at the same instant see the motion before any of them acts. With a state of None, fn takes
    and returns none: fn(model, t, q, v, None, readings) -> (None, commands).

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("hold", mbs.TorsionSpring("elbow", stiffness=20.0, damping=1.0))
    >>> law = lambda model, t, q, v, state, readings: (state, -0.5 * q[0])
    >>> mech.add_controller("law", mbs.Controller(law, period=0.01, writes="hold.rest_angle"))
    >>> mech.build().controller_names
    ('law',)
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        period: float,
        *,
        offset: Number = 0.0,
        state: Any = None,
        reads: str | Sequence[str] = (),
        writes: str | Sequence[str] = (),
    ):
        check_arguments(fn, "Controller: fn", ORDER)
        if is_traced(period) or not np.isfinite(period) or period <= 0:
            raise ModelError(f"Controller: period is {period!r}; pass a positive number of seconds")
        self.fn, self.period, self.first = fn, float(period), Sampled(offset)
        self.reads = (reads,) if isinstance(reads, str) else tuple(reads)
        self.writes = (writes,) if isinstance(writes, str) else tuple(writes)
        leaves = jax.tree_util.tree_leaves(state)
        if any(not np.issubdtype(np.asarray(x).dtype, np.number) for x in leaves):
            raise ModelError("Controller: state has leaves that are not numbers; pass a pytree of numbers")
        flat, self.whole = ravel_pytree(jax.tree_util.tree_map(lambda x: jnp.asarray(x, float), state))
        self.memory = Remembered(tuple(np.asarray(flat).tolist())) if flat.size else None

    def updated(self, where: str, kinds: Mapping[str, tuple[int, ...]], state: Any, *seen: Any) -> tuple[Any, Any]:
        """(flat state or None, {parameter: value}) after a sample. where: beginning of messages; kinds: the shapes of the
        parameters in `writes`; seen: model, t, q, v, readings; state: flat, or None."""
        *now, readings = seen
        found = self.fn(*now, None if state is None else self.whole(state), readings)
        if not isinstance(found, tuple) or len(found) != 2:
            raise ModelError(f"{where}: fn returned {type(found).__name__}; return (state, commands)")
        new, commands = found
        if state is not None:
            flat, _ = ravel_pytree(new)
            if flat.shape != state.shape:
                raise ModelError(f"{where}: fn returned a state of {flat.size} numbers, but it began with {state.size}")
            new = flat
        return new, self._by_name(where, kinds, commands)

    def _by_name(self, where: str, kinds: Mapping[str, tuple[int, ...]], commands: Any) -> dict[str, Any]:
        if not isinstance(commands, Mapping):
            values = commands if isinstance(commands, (tuple, list)) else (commands,)
            if len(values) != len(self.writes):
                raise ModelError(
                    f"{where}: fn returned {len(values)} commands for {len(self.writes)} parameters ({list(self.writes)})"
                )
            commands = dict(zip(self.writes, values, strict=True))
        if set(commands) != set(self.writes):
            raise ModelError(f"{where}: fn returned commands for {sorted(commands)}; it writes {list(self.writes)}")
        out = {}
        for name in self.writes:
            value = jnp.asarray(commands[name])
            if value.shape != kinds[name]:
                raise ModelError(f"{where}: the command for {name!r} has shape {value.shape}; return {kinds[name]}")
            out[name] = value
        return out
