"""Records loops: the body of a scan or a `while_loop` is a program of its own, and every number that it carries is an array
(rows,)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from jaxmbs.batching.counted import counted_scan
from jaxmbs.batching.execution import Setting
from jaxmbs.batching.machine.segments import execute
from jaxmbs.batching.recorded import Loop, Recording, Step
from jaxmbs.batching.scalars import Entry, Source, dtype_of, entries, is_known, numbers, single

if TYPE_CHECKING:
    from jaxmbs.batching.recording import Recorder

USUAL = 8  # iterations of a `while_loop`, for estimates of its work


@dataclass(eq=False, slots=True)
class Counted(Source):
    """The mask of the iterations that count, of a loop whose number of iterations all rows share (`counted`)."""

    eqn: Any = None
    count: Any = None


class _Body:
    """The program of one iteration, with the first members of `Loop`.

    closed: the iteration as a function of `fixed`, values from outside that stay the same; of what it carries, which has
    the values `start` before the loop; and of the values `each`, of which the arrays `turns` differ between iterations.
    """

    def __init__(
        self, recorder: Recorder, closed: Any, fixed: Sequence[Any], start: Sequence[Any], each: Sequence[Any] = (),
        turns: Sequence[Source] = (),
    ):  # fmt: skip
        self.outside: list[Any] = []
        self.inside: list[Source] = []
        given = [self._captured(x) for x in fixed]
        turning = {y for x, y in zip(fixed, given, strict=True) if isinstance(x, Source) and x in recorder.turning}
        avals = closed.in_avals[len(given) : len(given) + len(start)]
        self.start = [single(e) for x in start for e in entries(x).reshape(-1)]
        self.dtypes = [a.dtype for a in avals for _ in range(math.prod(a.shape))]
        self.carried, self.after = ([Source((), t, True) for t in self.dtypes] for _ in range(2))
        self.program = recorder.body(closed, [*given, *arranged(self.carried, avals), *each], turning.union(turns))
        self._move_out(recorder.program)
        ends = self.program.outputs[: len(start)]
        self.program.outputs[: len(start)] = [single(e) for x in ends for e in entries(x).reshape(-1)]

    def _captured(self, x: Any) -> Any:
        """What stands within the loop for a value from outside."""
        if isinstance(x, Source):
            inner: Any = Source(x.shape, x.dtype, x.rows, x.value)
            self.outside.append(x)
            self.inside.append(inner)
            return inner
        inner = x.copy()
        for k, e in np.ndenumerate(x):
            if not isinstance(e, np.generic):
                source = Source((), dtype_of(e), True)
                inner[k] = Entry(source, 0)
                self.outside.append(single(e))
                self.inside.append(source)
        return inner

    def _move_out(self, around: Recording) -> None:
        """Steps that are the same for all rows and in all iterations come before the loop: they are, for instance,
        transposes of large matrices."""
        before: dict[Source, Any] = dict(zip(self.inside, self.outside, strict=True))
        rest: list[Any] = []

        def fixed(x: Any) -> bool:
            return x in before if isinstance(x, Source) else is_known(x)

        for item in self.program.items:
            if not isinstance(item, Step) or not item.shared or not all(map(fixed, item.inputs)):
                rest.append(item)
                continue
            outputs = [Source(y.shape, y.dtype, False) for y in item.outputs]
            given = [before[x] if isinstance(x, Source) else x for x in item.inputs]
            around.items.append(Step(item.run, given, outputs, True, item.name))
            before.update(zip(item.outputs, outputs, strict=True))
            self.inside += item.outputs
            self.outside += outputs
        self.program.items = rest

    def run(self, setting: Setting, args: Sequence[Any], turns: Sequence[Source] = ()) -> tuple[Any, Any, list[Any]]:
        """(the first carry, function (carry, turns) -> outputs, the rest of `args`), from `args`: the arrays of `outside`,
        of `start`, and others."""
        n, m = len(self.outside), len(self.outside) + len(self.start)
        fixed = dict(zip(self.inside, args[:n], strict=True))
        begin = tuple(
            jnp.broadcast_to(jnp.asarray(x, t), (setting.rows,)) for x, t in zip(args[n:m], self.dtypes, strict=True)
        )

        def turn(carry: Any, xs: Any) -> list[Any]:
            given = dict(zip((*self.carried, *turns), (*carry, *xs), strict=True))
            return execute(self.program, {**fixed, **given}, setting)

        return begin, turn, list(args[m:])


def repetition(recorder: Recorder, eqn: Any, inputs: list[Any]) -> list[Any]:
    """A `while_loop`, as a loop that also carries whether a row needs another iteration; a row that does not keeps its
    numbers."""
    p = eqn.params
    a, b = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    inputs = [recorder.settled(x) for x in inputs]
    condition, body = map(core.jaxpr_as_fun, (p["cond_jaxpr"], p["body_jaxpr"]))

    def turn(*x: Any) -> Any:
        carry, going = x[b:-1], x[-1]
        new = [jnp.where(going, y, z) for y, z in zip(body(*x[a:b], *carry), carry, strict=True)]
        return [*new, going & condition(*x[:a], *new)[0]]

    closed = jax.make_jaxpr(turn)(*(v.aval for v in eqn.invars), jax.ShapeDtypeStruct((), bool))
    (begins,) = recorder.interpret(p["cond_jaxpr"].jaxpr, p["cond_jaxpr"].consts, [*inputs[:a], *inputs[b:]])
    of = _Body(recorder, closed, inputs[:b], [*inputs[b:], recorder.settled(begins)])

    def run(setting: Setting, *args: Any) -> Sequence[Any]:
        begin, outputs, _ = of.run(setting, args)
        return jax.lax.while_loop(lambda carry: jnp.any(carry[-1]), lambda carry: tuple(outputs(carry, ())), begin)

    loop = Loop(
        of.program, of.outside, of.inside, of.start, of.carried, of.after, [], [], [], USUAL, False,
        going=len(of.carried) - 1,
    )  # fmt: skip
    inputs = [*of.outside, *of.start]
    recorder.program.items.append(Step(run, inputs, list(of.after), of.program.fused, eqn.primitive.name, loop))
    return arranged(of.after, [v.aval for v in eqn.outvars])


def scan(recorder: Recorder, eqn: Any, inputs: list[Any]) -> list[Any]:
    """A scan."""
    p, (a, size) = eqn.params, sizes_of_scan(eqn)
    b = a + size
    masks = [x for x in inputs[b:] if isinstance(x, Counted)]
    mask = masks[0] if masks and not p["reverse"] else None  # further ones become arrays
    inputs = [x if k >= b and x is mask else recorder.settled(x) for k, x in enumerate(inputs)]
    xs = [x for x in inputs[b:] if x is not mask]
    axes = [x.rows if isinstance(x, Source) else not is_known(x) for x in xs]
    along = [v.aval for v, x in zip(p["jaxpr"].jaxpr.invars[b:], inputs[b:], strict=True) if x is not mask]
    turns = [Source(aval.shape, aval.dtype, on) for aval, on in zip(along, axes, strict=True)]
    rest = iter(turns)
    each = [numbers(True) if x is mask else next(rest) for x in inputs[b:]]
    count = [] if mask is None else [single(entries(mask.count).item())]
    of = _Body(recorder, p["jaxpr"], inputs[:a], inputs[a:b], each, turns)
    n = len(of.carried)
    keys = [_key(x) for x in of.program.outputs[n:]]  # derivatives stack some numbers twice: each is stored once
    of.program.outputs[n:] = dict(zip(keys, of.program.outputs[n:], strict=True)).values()

    def run(setting: Setting, *args: Any) -> Sequence[Any]:
        begin, outputs, left = of.run(setting, args, turns)
        given = [jnp.moveaxis(x, 1, 0) if on else x for x, on in zip(left, axes, strict=False)]

        def turn(carry: Any, x: Any) -> Any:
            out = outputs(carry, x)
            return tuple(out[:n]), out[n:]

        if count:
            end, ys = counted_scan(turn, begin, given, p["length"], jnp.ravel(left[-1])[0])
        else:
            end, ys = jax.lax.scan(turn, begin, given, p["length"], p["reverse"], p["unroll"])
        return [*end, *(jnp.moveaxis(y, 0, 1) for y in ys)]

    whole = {key: Source(v.aval.shape, v.aval.dtype, True) for key, v in zip(keys, eqn.outvars[size:], strict=True)}
    ys = list(whole.values())
    loop = Loop(
        of.program, of.outside, of.inside, of.start, of.carried, of.after, xs, turns, ys, p["length"], p["reverse"],
        count=count[0] if count else None,
    )  # fmt: skip
    inputs = [*of.outside, *of.start, *xs, *count]
    recorder.program.items.append(Step(run, inputs, [*of.after, *ys], of.program.fused, eqn.primitive.name, loop))
    if recorder.stacked is not None:
        recorder.stacked.update(ys)
    return [*arranged(of.after, [v.aval for v in eqn.outvars[:size]]), *(whole[key] for key in keys)]


def arranged(sources: Sequence[Source], avals: Sequence[Any]) -> list[Any]:
    """Arranges scalars, given one after another, as values of these shapes."""
    rest, out = iter(sources), []
    for aval in avals:
        x = np.empty(math.prod(aval.shape), object)
        x[:] = [Entry(next(rest), 0) for _ in range(x.size)]
        out.append(x.reshape(aval.shape) if x.size else empty(aval))
    return out


def empty(aval: Any) -> Source:
    """The value of an array without numbers."""
    return Source(aval.shape, aval.dtype, False, np.zeros(aval.shape, aval.dtype))


def _key(x: Any) -> Any:
    """A dictionary key that is equal for values that are the same."""
    if isinstance(x, Source):
        return x
    return x.shape, *((e.dtype.char, e.tobytes()) if isinstance(e, np.generic) else e for e in x.reshape(-1))


def sizes_of_scan(eqn: Any) -> tuple[int, int]:
    """How many constants and how many carried arrays a scan has; up to JAX 0.10 its parameters contain them."""
    p = eqn.params
    if "num_carry" in p:
        return p["num_consts"], p["num_carry"]
    constants, carried, _ = p["ft_in"].update(eqn.invars).unpack()
    return len(list(constants)), len(list(carried))
