"""Controllers that act at instants and hold their commands in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.model.control.needs import needs_of
from jaxmbs.model.control.sensors import Sensor, refuse_rate, seconds
from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import Element, declared, element, field, state
from jaxmbs.model.functions import WithParameters, check_arguments, evaluated, names_of
from jaxmbs.model.given import Number, Vector
from jaxmbs.model.parameters import is_traced

ORDER = ("model", "t", "q", "v", "state", "readings", "key")


@element
class Remembered(Element):
    """The state of a controller as numbers in one list."""

    state: Vector = state("", "its own state", kind=Kind.LIST)


@dataclass(frozen=True)
class Layout:
    """What the state of a controller is apart from its numbers: a pytree of arrays of these shapes."""

    tree: Any
    shapes: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return sum(map(math.prod, self.shapes))

    def __str__(self) -> str:
        return str(jax.tree_util.tree_unflatten(self.tree, self.shapes))

    @classmethod
    def of(cls, given: Any) -> Layout:
        leaves, tree = jax.tree_util.tree_flatten(given)
        return cls(tree, tuple(np.shape(x) for x in leaves))

    def flat(self, given: Any) -> Any:
        """The numbers of a state in one array."""
        leaves = jax.tree_util.tree_leaves(given)
        parts = [jnp.ravel(jnp.asarray(x)) for x in leaves if np.size(x)]  # machine code takes no empty arrays
        return jnp.concatenate(parts) if parts else jnp.zeros(0)

    def whole(self, numbers: jax.Array) -> Any:
        """The state with these numbers."""
        ends = np.cumsum([0, *map(math.prod, self.shapes)])
        parts = [numbers[a:b].reshape(shape) for a, b, shape in zip(ends, ends[1:], self.shapes, strict=False)]
        return jax.tree_util.tree_unflatten(self.tree, parts)


@element
class Waiting(Element):
    """The commands of a controller with a delay."""

    commands: Vector = state("", "the last commands, then 1 if they wait for the delay, otherwise 0", kind=Kind.LIST)


WAITING = declared(Waiting)[0]


@element
class Controller(WithParameters):
    """A controller that samples: at offset, offset + period, ... it reads, updates its state and sets its commands, which
    are held until the next sample.

    fn(model, t, q, v, state, readings, key) -> (state, commands), written with jax.numpy; it may leave out key, and may take
    one more argument, `parameters`: the numbers of that field, such as gains, with the period and the delay. model: the
    model with the states of all elements and all commands at this instant; state: a pytree of numbers like the one given
    here (a list of numbers becomes an array, and all numbers become floats), or None; readings: {name of a sensor: array} of
    those in `reads`; key: a key of jax.random, different at each sample, derived from that of `simulate`. commands: one
    value for each parameter in `writes` ("wheel.torque"), as a tuple in their order or by name; a single one may be a plain
    value. Until the first command, these parameters have their values in the model. Commands take effect after `delay`,
    which is shorter than the period; without a delay here, `mbs.set` cannot add one. All controllers that sample at the same
    instant see the motion before any of them acts. A command that its parameter cannot have, such as a negative stiffness,
    gives the status UNPHYSICAL.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("hold", mbs.TorsionSpring("elbow", stiffness=20.0, damping=1.0))
    >>> law = lambda model, t, q, v, state, readings: (state, -0.5 * q[0])
    >>> mech.add_controller("law", mbs.Controller(law, period=0.01, writes="hold.rest_angle"))
    >>> mech.build().controller_names
    ('law',)
    """

    fn: Callable[..., Any] = field(Kind.FUNCTION, "", "fn(model, t, q, v, state, readings, key)")
    period: float = field(Kind.PERIOD, "s", "time between two samples")
    offset: Number = field(Kind.NUMBER, "s", "time of the first sample", default=0.0, kw_only=True)
    delay: Number = field(
        Kind.NOT_NEGATIVE, "s", "time from a sample to its commands, below the period", default=0.0, kw_only=True
    )
    state: object = field(Kind.ARRAYS, "", "its state at the start, a pytree of numbers", default=None, kw_only=True)
    reads: str | Sequence[str] = field(Kind.NAMES, "", "the sensors that it reads", default=(), kw_only=True)
    writes: str | Sequence[str] = field(
        Kind.PARAMETERS, "", "the parameters of force elements that it sets", default=(), kw_only=True
    )

    def __new__(cls, *_: Any, **given: Any) -> Self:
        refuse_rate(cls, given)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        check_arguments(self.fn, "Controller: fn", ORDER if self.takes_key else ORDER[:-1])
        self.check_functions("Controller: fn", self.fn)
        object.__setattr__(self, "period", seconds(self.period, "Controller: period"))
        for name in ("reads", "writes"):
            given = getattr(self, name)
            listed = given if isinstance(given, (list, tuple)) else (given,)
            if not all(isinstance(x, str) for x in listed):
                raise ModelError(f"Controller: {name} is {given!r}; pass a name or a list of names")
            if len(set(listed)) < len(listed):
                raise ModelError(f"Controller: {name} is {given!r}; pass each name once")
            object.__setattr__(self, name, tuple(listed))
        if self.state is None and (needs := needs_of(self.fn)) and needs.state:
            object.__setattr__(self, "state", np.zeros(needs.state))
        leaves = [] if isinstance(self.state, Layout) else jax.tree_util.tree_leaves(self.state)
        if isinstance(self.state, (list, tuple)) and all(isinstance(x, (int, float)) for x in leaves):
            object.__setattr__(self, "state", np.asarray(self.state, float))
        if any(not is_traced(x) and np.asarray(x).dtype.kind not in "fiub" for x in leaves):
            raise ModelError("Controller: state has leaves that are not real numbers; pass a pytree of numbers")

    @property
    def takes_key(self) -> bool:
        """Whether fn takes a key."""
        return "key" in names_of(self.fn)

    def check_law(self, where: str) -> None:
        """Raise ModelError if a ready-made law lacks gains, is given gains that it does not know, or a state of another
        shape. where: beginning of the message."""
        if (needs := needs_of(self.fn)) is not None:
            shapes = [np.shape(x) for x in jax.tree_util.tree_leaves(self.state)]
            needs.check(where, dict(cast(Any, self.parameters)), shapes[0] if len(shapes) == 1 else None)

    def check_readings(self, where: str, sensors: Mapping[str, Sensor], joints: Mapping[str, Any]) -> None:
        """Raise ModelError if the sensors do not give what a ready-made law needs. where: what the message calls the
        controller; sensors: those in `reads`; joints: of the mechanism, by name."""
        if (needs := needs_of(self.fn)) is not None:
            needs.check_readings(where, sensors, joints)

    def requirements(self, p: Mapping[str, Any]) -> Mapping[str, Any]:
        own = {f"delay must be below the period, {self.period} s": p["delay"] < self.period}
        if (needs := needs_of(self.fn)) is None:
            return own
        lists = {name: p[name] if kind is Kind.LIST else p[name][..., None] for name, kind in self.numbers.items()}
        return {**own, **needs.requirements(lists)}

    @property
    def memory(self) -> Element | None:
        """The numbers of its state as an element; None if there are none."""
        if not Layout.of(self.state).size:
            return None
        leaves = jax.tree_util.tree_leaves(self.state)
        if any(map(is_traced, leaves)):
            raise ModelError("Controller: state is traced; pass plain numbers, and the traced ones to mbs.set")
        return Remembered(tuple(float(x) for leaf in leaves for x in np.ravel(leaf)))

    def structural(self) -> Self:
        kept = super().structural()
        return kept if isinstance(self.state, Layout) else replace(kept, state=Layout.of(self.state))

    def updated(
        self,
        where: str,
        shapes: Mapping[str, tuple[int, ...]],
        state: Any,
        numbers: Mapping[str, Any],
        dtype: Any,
        seen: Sequence[Any],
        key: Any,
    ) -> tuple[Any, dict[str, Any]]:
        """(flat state, {parameter: value}) after a sample. where: beginning of messages; shapes: of the parameters in
        `writes`; state: flat, None if it has no numbers; numbers: those of the controller; dtype: of all numbers; seen:
        model, t, q, v, readings; key: of the sample."""
        *now, readings = seen
        kept = cast(Layout, self.state)
        given = (*now, kept.whole(jnp.zeros(0, dtype) if state is None else state), readings)
        fn = self.with_parameters(self.fn, {**numbers, "period": self.period}, dtype, ("period", "delay"))
        try:
            found = fn(*given, key) if self.takes_key else fn(*given)
        except ModelError as error:
            raise ModelError(f"{where}: {error}") from None
        if not isinstance(found, tuple) or len(found) != 2:
            raise ModelError(f"{where}: fn returned {type(found).__name__}; return (state, commands)")
        new, commands = found
        if Layout.of(new) != kept:
            raise ModelError(
                f"{where}: fn returned a state with the shapes {Layout.of(new)}, but it began with {kept}; return (state, "
                "commands)"
            )
        flat = evaluated(lambda: kept.flat(new), f"{where}: fn", (kept.size,), dtype)
        return flat, self._by_name(where, shapes, commands, dtype)

    def _by_name(self, where: str, shapes: Mapping[str, tuple[int, ...]], commands: Any, dtype: Any) -> dict[str, Any]:
        if not isinstance(commands, Mapping):
            values = commands if isinstance(commands, (tuple, list)) else (commands,)
            if len(values) != len(self.writes):
                raise ModelError(
                    f"{where}: fn returned {len(values)} commands for {len(self.writes)} parameters ({list(self.writes)})"
                )
            commands = dict(zip(self.writes, values, strict=True))
        if set(commands) != set(self.writes):
            raise ModelError(f"{where}: fn returned commands for {sorted(commands)}; it writes {list(self.writes)}")
        return {
            name: evaluated(commands.get, f"{where}: fn, as its command for {name!r},", shapes[name], dtype, name)
            for name in self.writes
        }
