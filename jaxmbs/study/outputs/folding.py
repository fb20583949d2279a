"""Outputs over a motion: measured at every time, and reduced to one number each.

The dynamics are imported when a motion is measured, so that a study can be read and described without them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import names_in
from jaxmbs.model.forces.base import WORLD, Scene
from jaxmbs.simulate.mode_changes import jumps
from jaxmbs.simulate.run_state import AFTER_JUMP, ON_GRID
from jaxmbs.spatial.known import bare
from jaxmbs.study.outputs.base import INSTANTS, AtEvent, Output, Scalar
from jaxmbs.study.outputs.event_time import EventTime
from jaxmbs.study.outputs.largest_real_part import LargestRealPart
from jaxmbs.study.outputs.min_over import Combined
from jaxmbs.study.outputs.of_state import OfState
from jaxmbs.study.outputs.reductions import EXTREMES

if TYPE_CHECKING:
    from jaxmbs.model import Mode, Model
    from jaxmbs.study.problem.criteria import Criterion

TIME = "t"  # the time, in a condition
EVENT_COUNTS, EVENT_TIMES = "event_counts", "event_times"  # per sample: how often each event happened, and when first
MEMORY = "memory"  # in the carry: what outputs remember of earlier times, by name
AT_START = "at_start"  # per sample: which outputs stayed at their first value


def folded(outputs: Mapping[str, Output], dtype: Any) -> tuple[Any, Callable[..., Any]]:
    """(carry0, fn) for the `fold` of simulate: all outputs, from one pass over the bodies at each time."""

    between = _between(outputs)

    def with_events(carry: Any, model: Model, t: Any, q: Any, v: Any, mode: Any, event: Any) -> Any:
        found, memory = _measured(outputs, model, t, q, v, mode, carry)
        on_grid = _folded(outputs, carry, found, t)

        def one(name: str, o: Output) -> Any:
            # just after an event, only windows that begin with it are updated, and what is found between two times
            here = (event == ON_GRID) | ((event == AFTER_JUMP) & o.waits(carry[name])) | (name in between)
            new = jax.tree.map(lambda new, old: jnp.where(here, new, old), on_grid[name], carry[name])
            named = {key: x for key in INSTANTS if isinstance(x := getattr(o, key), AtEvent)}
            if not named:
                return new
            now = {key: jnp.asarray(False) for key in INSTANTS}
            now |= {key: event == model.event_names.index(x.event) for key, x in named.items()}
            changes = "from_" in named and _changed(outputs, o, model, named["from_"].event)
            caught = o.at_event(carry[name], found[name], t, now, changes, _margins(o, found, t))
            return jax.tree.map(lambda new, old: jnp.where(event >= 0, new, old), caught, new)

        return {name: one(name, o) for name, o in outputs.items()} | memory

    def fn(carry: Any, model: Model, t: Any, q: Any, v: Any) -> Any:
        return with_mode(carry, model, t, q, v, None)

    def with_mode(carry: Any, model: Model, t: Any, q: Any, v: Any, mode: Any) -> Any:
        found, memory = _measured(outputs, model, t, q, v, mode, carry)
        return _folded(outputs, carry, found, t) | memory

    events = at_events(outputs) or between
    return _start(outputs, dtype), with_events if events else with_mode if needs_mode(outputs) else fn


def at_events(outputs: Mapping[str, Output]) -> bool:
    """Whether some outputs are taken at events, which a history on the grid does not contain."""
    return any(isinstance(getattr(o, key), AtEvent) for o in outputs.values() for key in INSTANTS)


def needs_mode(outputs: Mapping[str, Output]) -> bool:
    """Whether some outputs depend on what is locked and switched on."""
    return any(isinstance(o, OfState) and o.needs_mode for o in outputs.values())


def at_their_start(outputs: Mapping[str, Output]) -> tuple[str, ...]:
    """Outputs for which a run records whether they stay at their first value: extremes that count from the start."""
    apart = (EventTime, LargestRealPart)
    return tuple(n for n, o in outputs.items() if o.reduce in EXTREMES and o.from_ is None and not isinstance(o, apart))


def _changed(outputs: Mapping[str, Output], output: Output, model: Model, event: str) -> bool:
    """Whether an output may have another value just after an event: because velocities jump, or because of what the
    event switches."""
    own = [outputs[of] for of in output.of] if isinstance(output, Combined) else [output]
    events = {e.name: e for e in model.structure.events}
    return jumps(model.structure, events[event]) or any(isinstance(o, OfState) and o.needs_mode for o in own)


def results_of(outputs: Mapping[str, Output], carry: Any, events: Any, model: Model, q: Any, v: Any) -> dict[str, Any]:
    """The outputs of a motion that started at (q, v): results of the fold, times of events, and the outputs that are
    computed from the state at the start."""

    def one(name: str, o: Output) -> Any:
        if isinstance(o, EventTime):
            return o.of_events(events, model.event_names)
        return o.of_start(model, q, v) if isinstance(o, LargestRealPart) else o.result(carry[name])

    return {name: one(name, o) for name, o in outputs.items()}


def counted(events: Any, number: int) -> dict[str, Any]:
    """How often each event of a model happened (events,), and when first [s], NaN if it did not."""
    if not number:
        return {}
    here = [events.index == k for k in range(number)]
    first = jnp.stack([jnp.min(jnp.where(now, events.time, jnp.inf)) for now in here])
    counts = jnp.stack([jnp.sum(now, dtype=jnp.int32) for now in here])
    return {EVENT_COUNTS: counts, EVENT_TIMES: jnp.where(jnp.isinf(first), jnp.nan, first)}


def staying(outputs: Mapping[str, Output], carry: Any) -> dict[str, Any]:
    """(k,) for the outputs of `at_their_start`: whether each stayed at its first value."""
    names = at_their_start(outputs)
    return {AT_START: jnp.stack([outputs[n].stays(carry[n]) for n in names]).astype(jnp.int32)} if names else {}


def _folded(outputs: Mapping[str, Output], carry: Any, found: Mapping[str, tuple[Any, ...]], t: Any) -> dict[str, Any]:
    def one(name: str, o: Output) -> Any:
        if isinstance(o.when, AtEvent):
            return carry[name]
        *measured, instant = found[name] if len(found[name]) == 3 else (*found[name], t)
        return o.fold(carry[name], (measured[0], measured[1]), instant, _margins(o, found, t))

    return {name: one(name, o) for name, o in outputs.items()}


def _margins(o: Output, found: Mapping[str, tuple[Any, Any]], t: Any) -> Any:
    """Margin of `when`, or for a window those of `from` and `until`; None for an event, and where nothing is given."""
    of = [None if isinstance(x, AtEvent) else _margin(x, found, t) for x in (o.when, o.from_, o.until)]
    return tuple(of[1:]) if o.windowed else of[0]


def _margin(when: Criterion | None, found: Mapping[str, tuple[Any, Any]], t: Any) -> Any:
    """Margin of a condition: negative until it holds, NaN where it is not defined."""
    if when is None:
        return None
    value, defined = (t, True) if when.output == TIME else found[when.output][:2]
    value = jnp.abs(value) if when.absolute else value
    sides = [bound - value if sign[0] == "<" else value - bound for sign, bound in when.bounds]
    return jnp.where(defined, functools.reduce(jnp.minimum, sides), jnp.nan)


def _start(outputs: Mapping[str, Output], dtype: Any) -> dict[str, Any]:
    folds: dict[str, Any] = {
        name: tuple(jnp.asarray(x, dtype) for x in output.start()) for name, output in outputs.items()
    }
    memory = {
        name: jax.tree.map(lambda x: jnp.asarray(x, dtype), outputs[name].memory) for name in _remembering(outputs)
    }
    return folds | ({MEMORY: memory} if memory else {})


def _remembering(outputs: Mapping[str, Output]) -> list[str]:
    """Outputs that need not be measured at every time: of those with the same history the first, if only their least value
    matters."""
    used = {of for o in outputs.values() if isinstance(o, Combined) and not _of_least(o) for of in o.of}
    for o in outputs.values():
        used |= {x.output for key in INSTANTS if hasattr(x := getattr(o, key), "output")}
    groups: dict[Output, list[str]] = {}
    for name, o in outputs.items():
        groups.setdefault(_history(o), []).append(name)
    least = {n for n, o in outputs.items() if n not in used and o.memory is not None and _of_least(o)}
    return [names[0] for names in groups.values() if least.issuperset(names)]


def _between(outputs: Mapping[str, Output]) -> set[str]:
    """Outputs whose value is the least one since the last time."""
    histories = {_history(outputs[name]) for name in _remembering(outputs)}
    found = {name for name, o in outputs.items() if _history(o) in histories}
    return found | {n for n, o in outputs.items() if isinstance(o, Combined) and _of_least(o) and found & {*o.of}}


def _of_least(output: Output) -> bool:
    return output.reduce in ("min", "time_of_min") and not output.windowed


def _history(output: Output) -> Output:
    """The output without what it makes of the history."""
    return replace(output, reduce="final", unit=None, limit=None, when=None, from_=None, until=None)


def _combined(o: Combined, found: Mapping[str, tuple[Any, ...]], t: Any) -> tuple[Any, ...]:
    """(value, defined) or (value, defined, instant) of an output of others."""
    of = [found[name] for name in o.of]
    value, defined = o.combined([(x[0], x[1]) for x in of])
    if all(len(x) == 2 for x in of):
        return value, defined
    for x in of:
        if len(x) == 3:
            t = jnp.where(x[1] & (x[0] == value), x[2], t)
    return value, defined, t


def measured(
    outputs: Mapping[str, Output], model: Model, t: Any, q: Any, v: Any, mode: Mode | None = None
) -> dict[str, tuple[Scalar, Scalar]]:
    """What every output measures at the present time, in SI, and whether it is defined. mode: what is locked and
    switched on, if that matters.

    Outputs that differ only in their reduction share the computation.
    """
    return _measured(outputs, model, t, q, v, mode, {})[0]


def _measured(
    outputs: Mapping[str, Output], model: Model, t: Any, q: Any, v: Any, mode: Mode | None, carry: Mapping[str, Any]
) -> tuple[dict[str, tuple[Scalar, Scalar]], dict[str, Any]]:
    """The same for a fold with this carry, and the new memories as a part of the carry."""
    from jaxmbs.dynamics.state.kinematics import link_motions
    from jaxmbs.dynamics.state.scene import TreeScene
    from jaxmbs.dynamics.state.tree import Tree

    tree = Tree(model, q.dtype)
    state = TreeScene(tree, link_motions(tree, q, v, t), q, v, t)

    def seen(output: Output) -> Scene:
        bodies = {b: state.body(b) for _, b in names_in(output, Kind.BODY, Kind.BODY_OR_WORLD) if b != WORLD}
        joints: Any = {j: state.joint(j) for _, j in names_in(output, Kind.JOINT)}
        return Scene(t, bodies, joints, {}, (), ())

    found: dict[str, Any] = {}
    waiting: dict[type[Output], dict[Output, list[str]]] = {}
    for name, output in outputs.items():
        if not isinstance(output, Combined):
            waiting.setdefault(type(output), {}).setdefault(_history(output), []).append(name)
    memory = dict(carry.get(MEMORY, {}))
    for kind, group in waiting.items():
        first = [names[0] for names in group.values()]
        new: dict[int, Any] = {}
        if issubclass(kind, OfState):
            values = [output.of_state(state, model, mode) for output in group]  # type: ignore[attr-defined]
        else:
            recalled = {k: (memory[name], carry[name][0]) for k, name in enumerate(first) if name in memory}
            values, new = kind.measure_all(list(group), [seen(output) for output in group], recalled)
        memory |= {first[k]: x for k, x in new.items()}
        for names, value in zip(group.values(), values, strict=True):
            found |= dict.fromkeys(names, tuple(map(bare, value)))
    found |= {name: _combined(o, found, t) for name, o in outputs.items() if isinstance(o, Combined)}
    return {name: found[name] for name in outputs}, {MEMORY: memory} if memory else {}
