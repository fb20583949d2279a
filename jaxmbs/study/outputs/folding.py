"""Outputs over a motion: measured at every time, and reduced to one number each.

The dynamics are imported when a motion is measured, so that a study can be read and described without them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.state.kinematics import link_motions
from jaxmbs.dynamics.state.scene import TreeScene
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import names_in
from jaxmbs.model.forces.base import WORLD, Scene
from jaxmbs.simulate.mode_changes import jumps
from jaxmbs.simulate.run_state import AFTER_JUMP, ON_GRID
from jaxmbs.spatial.known import bare
from jaxmbs.study.outputs.base import INSTANTS, AtEvent, Output, Scalar
from jaxmbs.study.outputs.min_over import Combined
from jaxmbs.study.outputs.of_run import OfRun
from jaxmbs.study.outputs.of_state import OfState
from jaxmbs.study.outputs.reductions import EXTREMES

if TYPE_CHECKING:
    from jaxmbs.model import Mode, Model
    from jaxmbs.study.problem.criteria import Criterion

Measured = tuple[Any, ...]  # the value in SI, whether it is defined, and the instant if it is not the present one
TIME = "t"  # the time, in a condition
EVENT_COUNTS, EVENT_TIMES = "event_counts", "event_times"  # per sample: how often each event happened, and when first
MEMORY = "memory"  # in the carry: what outputs remember of earlier times, by their class
BODIES = (Kind.BODY, Kind.BODY_OR_WORLD)
AT_START = "at_start"  # per sample: which outputs stayed at their first value


def folded(outputs: Mapping[str, Output], dtype: Any) -> tuple[Any, Callable[..., Any]]:
    """(carry0, fn) for the `fold` of simulate: all outputs, from one pass over the bodies at each time."""

    def with_events(carry: Any, model: Model, t: Any, q: Any, v: Any, mode: Any, event: Any) -> Any:
        found, least, memory = _measured(outputs, model, t, q, v, mode, carry)
        on_grid = _folded(outputs, carry, found, least, t)

        def one(name: str, o: Output) -> Any:
            # just after an event, only windows that begin with it and values found between two times are updated
            here = (event == ON_GRID) | ((event == AFTER_JUMP) & o.waits(carry[name])) | (name in least)
            for k in _ending(model):
                here |= event == k
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
        found, least, memory = _measured(outputs, model, t, q, v, mode, carry)
        return _folded(outputs, carry, found, least, t) | memory

    events = at_events(outputs) or _takers(outputs)
    return _start(outputs, dtype), with_events if events else with_mode if needs_mode(outputs) else fn


def _ending(model: Model) -> list[int]:
    """The events at whose instant a run ends, because they finish it and no velocity jumps."""
    s = model.structure
    return [k for k, e in enumerate(s.events) if any(a.finishes for a in e.then) and not jumps(s, e)]


def at_events(outputs: Mapping[str, Output]) -> bool:
    """Whether some outputs are taken at events, which a history on the grid does not contain."""
    return any(isinstance(getattr(o, key), AtEvent) for o in outputs.values() for key in INSTANTS)


def needs_mode(outputs: Mapping[str, Output]) -> bool:
    """Whether some outputs depend on what is locked and switched on."""
    return any(isinstance(o, OfState) and o.needs_mode for o in outputs.values())


def at_their_start(outputs: Mapping[str, Output]) -> tuple[str, ...]:
    """Outputs for which a run records whether they stay at their first value: extremes that count from the start."""
    found = ((n, o) for n, o in outputs.items() if not isinstance(o, OfRun))
    return tuple(n for n, o in found if o.reduce in EXTREMES and o.from_ is None)


def _changed(outputs: Mapping[str, Output], output: Output, model: Model, event: str) -> bool:
    """Whether an output may have another value just after an event: because velocities jump, or because of what the
    event switches."""
    own = [outputs[of] for of in output.of] if isinstance(output, Combined) else [output]
    events = {e.name: e for e in model.structure.events}
    return jumps(model.structure, events[event]) or any(isinstance(o, OfState) and o.needs_mode for o in own)


def results_of(outputs: Mapping[str, Output], carry: Any, events: Any, model: Model, q: Any, v: Any) -> dict[str, Any]:
    """The outputs of a motion that started at (q, v): results of the fold, and those that are computed once."""
    return {
        name: o.of_run(model, q, v, events) if isinstance(o, OfRun) else o.result(carry[name])
        for name, o in outputs.items()
    }


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


def _folded(
    outputs: Mapping[str, Output], carry: Any, found: Mapping[str, Measured], least: Mapping[str, Measured], t: Any
) -> dict[str, Any]:
    def one(name: str, o: Output) -> Any:
        if isinstance(o.when, AtEvent):
            return carry[name]
        value, defined, *instant = least[name] if name in least else found[name]
        return o.fold(carry[name], (value, defined), instant[0] if instant else t, _margins(o, found, t))

    return {name: one(name, o) for name, o in outputs.items()}


def _margins(o: Output, found: Mapping[str, Measured], t: Any) -> Any:
    """Margin of `when`, or for a window those of `from` and `until`; None for an event, and where nothing is given."""
    of = [None if isinstance(x, AtEvent) else _margin(x, found, t) for x in (o.when, o.from_, o.until)]
    return tuple(of[1:]) if o.windowed else of[0]


def _margin(when: Criterion | None, found: Mapping[str, Measured], t: Any) -> Any:
    """Margin of a condition: negative until it holds, NaN where it is not defined."""
    if when is None:
        return None
    value, defined = (t, True) if when.output == TIME else found[when.output]
    value = jnp.abs(value) if when.absolute else value
    sides = [bound - value if sign[0] == "<" else value - bound for sign, bound in when.bounds]
    return jnp.where(defined, functools.reduce(jnp.minimum, sides), jnp.nan)


def _start(outputs: Mapping[str, Output], dtype: Any) -> dict[str, Any]:
    folds: dict[str, Any] = {
        name: tuple(jnp.asarray(x, dtype) for x in output.start()) for name, output in outputs.items()
    }
    takers = _takers(outputs)
    kinds = {kind: [outputs[n] for n in names if n in takers] for kind, names in _by_kind(outputs).items()}
    memory = {k.__name__: jax.tree.map(lambda x: jnp.asarray(x, dtype), k.memory(x)) for k, x in kinds.items() if x}
    return folds | ({MEMORY: memory} if memory else {})


def _takers(outputs: Mapping[str, Output]) -> dict[str, list[str]]:
    """{the first output with a history: the names of the outputs that are made of the history}, for those whose least value
    can be found between two times."""
    first = _firsts(outputs)
    found: dict[str, list[str]] = {}
    for name, o in outputs.items():
        for of in o.of if isinstance(o, Combined) else (name,):
            if of in first and type(outputs[of]).memory([]) is not None and _of_least(o):
                found.setdefault(first[of], []).append(name)
    return found


def _firsts(outputs: Mapping[str, Output]) -> dict[str, str]:
    """For each output that is not made of others, the first one with the same history."""
    by_history: dict[Output, str] = {}
    return {n: by_history.setdefault(_history(o), n) for n, o in outputs.items() if not isinstance(o, Combined)}


def _by_kind(outputs: Mapping[str, Output]) -> dict[type[Output], list[str]]:
    """The first output with each history, by class."""
    found: dict[type[Output], list[str]] = {}
    for name in dict.fromkeys(_firsts(outputs).values()):
        found.setdefault(type(outputs[name]), []).append(name)
    return found


def _at_present(outputs: Mapping[str, Output], takers: Mapping[str, list[str]]) -> set[str]:
    """The outputs whose value is needed at every time: all but the takers of least values, those in conditions, and those
    of which these are made."""
    first, served = _firsts(outputs), {name for names in takers.values() for name in names}
    conditions = {x.output for o in outputs.values() for key in INSTANTS if hasattr(x := getattr(o, key), "output")}
    found = ({*outputs} - served) | (conditions - {TIME})
    made = [(name, of) for name, o in outputs.items() if isinstance(o, Combined) for of in o.of]
    return found | {of for name, of in made if name in found or first[of] not in takers}


def _of_least(output: Output) -> bool:
    return output.reduce in ("min", "time_of_min") and not output.windowed


def _history(output: Output) -> Output:
    """The output without what it makes of the history."""
    return replace(output, reduce="final", unit=None, limit=None, when=None, from_=None, until=None)


def _combined(o: Combined, of: Sequence[Measured], t: Any) -> Measured:
    """(value, defined, instant) of an output that is made of others."""
    value, defined = o.combined([(x[0], x[1]) for x in of])
    for own, on, *instant in of:
        t = jnp.where(on & (own == value), instant[0], t) if instant else t
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
) -> tuple[dict[str, Measured], dict[str, Measured], dict[str, Any]]:
    """For a fold with this carry: what the outputs measure at the present time, where that matters; of the others, the least
    value since the last time and its instant; and the new memories, as a part of the carry. Empty carry: for `measured`."""
    tree = Tree(model, q.dtype)
    state = TreeScene(tree, link_motions(tree, q, v, t), q, v, t)

    scenes: dict[Any, Scene] = {}  # one for all outputs that look at the same

    def seen(output: Output) -> Scene:
        named = [dict.fromkeys(n for _, n in names_in(output, *kinds)) for kinds in (BODIES, (Kind.JOINT,))]
        key = tuple(map(tuple, named))
        if key not in scenes:
            bodies = {b: state.body(b) for b in named[0] if b != WORLD}
            joints: Any = {j: state.joint(j) for j in named[1]}
            scenes[key] = Scene(t, bodies, joints, {}, (), ())
        return scenes[key]

    takers, memory = _takers(outputs) if MEMORY in carry else {}, dict(carry.get(MEMORY, {}))
    asked, first = _at_present(outputs, takers), _firsts(outputs)
    wanted = {first[name] for name in asked if name in first}
    present: dict[str, Measured] = {}  # by the first output with the history
    since: dict[str, Measured] = {}
    for kind, names in _by_kind(outputs).items():
        now = [name for name in names if name in wanted]
        some = [name for name in names if name in takers]
        group = [_history(outputs[name]) for name in (*now, *some)]
        if issubclass(kind, OfState):
            values: Any = [output.of_state(state, model, mode) for output in group]  # type: ignore[attr-defined]
        else:
            most = (functools.reduce(jnp.maximum, [carry[x][0] for x in takers[name]]) for name in some)
            recalling = dict(enumerate(most, len(now)))
            key = kind.__name__
            values, new = kind.measure_all(group, [seen(o) for o in group], recalling, memory.get(key))
            memory |= {key: new} if some else {}
        values = [tuple(map(bare, value)) for value in values]
        present |= dict(zip(now, values, strict=False))
        since |= dict(zip(some, values[len(now) :], strict=True))
    found = {n: present[first[n]] for n in asked if n in first}
    found |= {
        n: o.combined([found[x] for x in o.of]) for n, o in outputs.items() if isinstance(o, Combined) and n in asked
    }
    least: dict[str, Measured] = {}
    for name in dict.fromkeys(x for names in takers.values() for x in names):
        o = outputs[name]
        of = o.of if isinstance(o, Combined) else (name,)
        each = [since[first[x]] if first[x] in since else found[x] for x in of]
        least[name] = _combined(o, each, t) if isinstance(o, Combined) else each[0]
    return {name: found[name] for name in outputs if name in asked}, least, {MEMORY: memory} if memory else {}
