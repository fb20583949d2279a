"""Recording of a function of one row as a program, and its execution for all rows.

A recorded program is a list of items. Numbers inside it are `Operation`s on scalars (additions, sines, comparisons ...),
which wait until a step needs them; a `Step` is anything else (a loop, a factorization, a call), run on arrays of all rows.
Small arrays are taken apart into their entries, so that slicing, stacking and small matrix products cost nothing.
A value of the program is a `Source` or an object array of numbers, entries and operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from jaxmbs.model.parameters import is_traced
from jaxmbs.rows.arrays import RULES
from jaxmbs.rows.kernels import evaluate
from jaxmbs.rows.scalars import ELEMENTWISE, Entry, Operation, Source, array_of, entries, is_known, is_shared, numbers

LARGEST = 1024  # entries of an array that is still taken apart
_CALLS = {
    "pjit": "jaxpr", "jit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr", "checkpoint": "jaxpr", "remat2": "jaxpr",
}  # fmt: skip
_FOLDED: dict[str, Callable[..., Any]] = {
    "add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "abs": np.abs, "max": np.maximum, "min": np.minimum, "eq": np.equal,
    "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "convert_element_type": np.asarray,
}  # fmt: skip
_SHORTENED = ("mul", "add", "add_any", "sub")  # by a constant 0 or 1: what derivatives are full of


@dataclass(eq=False)
class Step:
    """Something that is run on whole arrays: run(rows, *inputs) -> an array for each output."""

    run: Callable[..., Sequence[Any]]
    inputs: list[Any]
    outputs: list[Source]
    fused: bool  # it is the same for all rows, or a loop of scalar operations
    loop: bool = False


@dataclass(eq=False)
class Program:
    """The recorded items in order, and the outputs."""

    items: list[Step | Operation] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)

    @property
    def fused(self) -> bool:
        return all(item.fused for item in self.items if isinstance(item, Step))

    def plan(self) -> tuple[list[Step], dict[Operation, int], set[Operation]]:
        """Steps whose results are used, the step (by number) before which each operation must be done, and the
        operations whose values leave their kernel."""
        steps: list[Step] = []  # from the last to the first
        alive: set[Source] = set()
        due: dict[Operation, int] = {}  # counted from the end: 0 is the outputs
        leaving: set[Operation] = set()

        def need(x: Any, when: int) -> None:
            if isinstance(x, Source):
                alive.add(x)
                return
            for e in x.reshape(-1):
                if isinstance(e, Entry):
                    alive.add(e.source)
                elif isinstance(e, Operation):
                    due[e] = max(due.get(e, 0), when)
                    leaving.add(e)

        for x in self.outputs:
            need(x, 0)
        for item in reversed(self.items):
            if isinstance(item, Step):
                if alive.intersection(item.outputs):
                    steps.append(item)
                    for x in item.inputs:
                        need(x, len(steps))
            elif item in due:
                for e in item.operands:
                    if isinstance(e, Entry):
                        alive.add(e.source)
                    elif isinstance(e, Operation):
                        due[e] = max(due.get(e, 0), due[item])
        for item, when in due.items():
            for e in item.operands:
                if isinstance(e, Operation) and due[e] != when:
                    leaving.add(e)
        return steps[::-1], {o: len(steps) - k for o, k in due.items()}, leaving


def over_rows(fn: Callable[..., Any], in_axes: Any = 0) -> Callable[..., Any]:
    """What jax.vmap(fn, in_axes) returns, by a program of scalars.

    Equal to rounding; but a product with a constant zero is zero, also where the other factor is infinite or no number.
    """

    def run(*args: Any) -> Any:
        flat, axes, treedef = flat_axes(args, in_axes)
        flat = [jnp.asarray(x) if a is None else jnp.moveaxis(x, a, 0) for x, a in zip(flat, axes, strict=True)]
        rows = next(x.shape[0] for x, a in zip(flat, axes, strict=True) if a is not None)
        return RowProgram(lambda *x: fn(*treedef.unflatten(x)), flat, [a is not None for a in axes])(flat, rows)

    return run


class RowProgram:
    """The program of fn(*arrays), where the arrays that are `mapped` have the rows on their first axis.

    It is called with such arrays and the number of rows, which need not be that of the example it was recorded from.
    """

    def __init__(self, fn: Callable[..., Any], example: Sequence[Any], mapped: Sequence[bool]):
        shapes = [x.shape[1:] if m else x.shape for x, m in zip(example, mapped, strict=True)]
        self.sources = [Source(s, x.dtype, m) for s, x, m in zip(shapes, example, mapped, strict=True)]
        one = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in self.sources]
        closed, shape = jax.make_jaxpr(fn, return_shape=True)(*one)
        self.treedef = jax.tree_util.tree_structure(shape)
        self.program = record(closed, self.sources)

    @property
    def fused(self) -> bool:
        """Whether nothing but scalar operations and loops of them depends on the row."""
        return self.program.fused

    @property
    def loops(self) -> bool:
        """Whether there is a loop in it, so that a call does much on few rows."""
        return any(item.loop for item in self.program.items if isinstance(item, Step))

    def __call__(self, arrays: Sequence[Any], rows: int) -> Any:
        out = execute(self.program, dict(zip(self.sources, arrays, strict=True)), rows)
        return jax.tree_util.tree_unflatten(self.treedef, out)


def flat_axes(args: tuple[Any, ...], in_axes: Any) -> tuple[list[Any], list[int | None], Any]:
    """Leaves of the arguments, the axis of each and their tree, with in_axes broadcast as in vmap."""
    flat, treedef = jax.tree_util.tree_flatten(args)
    if isinstance(in_axes, (int, type(None))):
        return flat, [in_axes] * len(flat), treedef
    axes: list[int | None] = []
    for argument, axis in zip(args, tuple(in_axes), strict=True):
        spread = jax.tree_util.tree_map(
            lambda a, part: [a] * len(jax.tree_util.tree_leaves(part)), axis, argument, is_leaf=lambda a: a is None
        )
        axes += jax.tree_util.tree_leaves(spread, is_leaf=lambda a: a is None)
    return flat, axes, treedef


def record(closed: Any, inputs: Sequence[Any]) -> Program:
    """The program of a closed jaxpr for inputs that are values."""
    program = Program()
    program.outputs = _Recorder(program).interpret(closed.jaxpr, closed.consts, inputs)
    return program


def execute(program: Program, given: dict[Source, Any], rows: int) -> list[Any]:
    """The outputs for all rows, from the arrays of the inputs."""
    steps, due, leaving = program.plan()
    run = _Execution(given, rows)
    waiting: list[list[Operation]] = [[] for _ in range(len(steps) + 1)]
    for item in program.items:
        if isinstance(item, Operation) and item in due:
            waiting[due[item]].append(item)
    for step, operations in zip(steps, waiting, strict=False):
        run.operations(operations, leaving)
        arrays = step.run(rows, *[run.array(x) for x in step.inputs])
        run.known.update(zip(step.outputs, arrays, strict=True))
    run.operations(waiting[-1], leaving)
    return [run.batched(x) for x in program.outputs]


class _Execution:
    """Arrays and columns that are known so far."""

    def __init__(self, given: dict[Source, Any], rows: int):
        self.known, self.rows = dict(given), rows
        self.columns: dict[Any, Any] = {}

    def operations(self, operations: list[Operation], leaving: set[Operation]) -> None:
        if operations:
            wanted = leaving.intersection(operations)
            self.columns.update(evaluate(operations, wanted, self.operand, self.rows))

    def source(self, x: Source) -> Any:
        return x.value if x.value is not None else self.known[x]

    def operand(self, e: Any) -> Any:
        """What a kernel reads: one number of every row (rows,), or one that all rows share ()."""
        return self.source(e.source).reshape(-1)[e.k] if is_shared(e) else self.column(e)

    def column(self, e: Any) -> Any:
        """One number of every row, (rows,)."""
        if isinstance(e, np.generic):
            return jnp.broadcast_to(jnp.asarray(e), (self.rows,))
        if e not in self.columns:
            array = self.source(e.source)
            if e.source.rows:
                self.columns[e] = array.reshape(self.rows, -1)[:, e.k]
            else:
                self.columns[e] = jnp.broadcast_to(array.reshape(-1)[e.k], (self.rows,))
        return self.columns[e]

    def array(self, x: Any) -> Any:
        """An input of a step: with rows unless it is constant or shared."""
        if isinstance(x, Source):
            return self.source(x)
        return array_of(x, x.reshape(-1)[0].dtype) if is_known(x) else self.batched(x)

    def batched(self, x: Any) -> Any:
        """A value for every row, (rows, *shape)."""
        if isinstance(x, Source):
            array = self.source(x)
            return array if x.rows else jnp.broadcast_to(array, (self.rows, *x.shape))
        if x.ndim == 0:
            return self.column(x.item())
        whole = _whole(x)
        if whole is not None:
            return self.batched(whole)
        return jnp.stack([self.column(e) for e in x.reshape(-1)], axis=1).reshape(self.rows, *x.shape)


def _whole(x: np.ndarray) -> Source | None:
    """The source whose entries, all and in order, an array consists of."""
    first = x.reshape(-1)[0]
    if isinstance(first, Entry) and first.source.shape == x.shape:
        whole = all(isinstance(e, Entry) and e.source is first.source and e.k == k for k, e in enumerate(x.reshape(-1)))
        return first.source if whole else None
    return None


class _Recorder:
    """Interprets jaxprs, appending to one program."""

    def __init__(self, program: Program):
        self.program = program

    def interpret(self, jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        known: dict[Any, Any] = {v: _constant(c) for v, c in zip(jaxpr.constvars, consts, strict=True)}
        known.update(zip(jaxpr.invars, inputs, strict=True))

        def read(v: Any) -> Any:
            if isinstance(v, core.Literal):
                aval: Any = v.aval
                return numbers(np.asarray(v.val, aval.dtype))
            return known[v]

        for eqn in jaxpr.eqns:
            known.update(zip(eqn.outvars, self.equation(eqn, [read(v) for v in eqn.invars]), strict=True))
        return [read(v) for v in jaxpr.outvars]

    def equation(self, eqn: Any, inputs: list[Any]) -> list[Any]:
        name = eqn.primitive.name
        if name in _CALLS:
            inner = eqn.params[_CALLS[name]]
            return self.interpret(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), inputs)
        if name == "scan" and eqn.params["length"] > 0 and self.can_scan(eqn, inputs):
            return self.scan(eqn, inputs)
        if all(not isinstance(x, Source) and is_known(x) for x in inputs) and not eqn.effects and _small(eqn, inputs):
            return self.known(eqn, inputs)
        if any(not isinstance(x, Source) or x.rows for x in inputs) and _small(eqn, inputs):
            if name in ELEMENTWISE:
                return [self.elementwise(eqn, [entries(x) for x in inputs])]
            found = RULES[name](self.scalar, [entries(x) for x in inputs], eqn) if name in RULES else None
            if found is not None:
                return found
        return self.step(eqn, inputs)

    def known(self, eqn: Any, inputs: list[Any]) -> list[Any]:
        """An equation of constants, computed now, so that its zeros and ones can shorten what follows."""
        given = [array_of(x, v.aval.dtype) for x, v in zip(inputs, eqn.invars, strict=True)]
        folded = _folded(eqn.primitive.name, given, eqn.outvars[0].aval.dtype)
        if folded is not None:
            return [numbers(folded)]
        with jax.ensure_compile_time_eval():
            out = eqn.primitive.bind(*given, **eqn.params)
        return [numbers(x) for x in (out if eqn.primitive.multiple_results else [out])]

    def elementwise(self, eqn: Any, operands: list[np.ndarray]) -> np.ndarray:
        aval = eqn.outvars[0].aval
        spread = [np.broadcast_to(x, aval.shape).reshape(-1) for x in operands]
        params = {**eqn.params, "sharding": None} if "sharding" in eqn.params else eqn.params
        out = np.empty(math.prod(aval.shape), object)
        out[:] = [self.scalar(eqn.primitive, x, aval.dtype, params) for x in zip(*spread, strict=True)]
        return out.reshape(aval.shape)

    def scalar(self, primitive: Any, operands: Sequence[Any], dtype: Any, params: Any = None) -> Any:
        """One operation; what depends on constants alone is computed at once where NumPy has it."""
        name, dtype = primitive.name, np.dtype(dtype)
        if all(isinstance(x, np.generic) for x in operands):
            folded = _folded(name, operands, dtype)
            if folded is not None:
                return folded[()]
        elif name in _SHORTENED:
            a, b = operands
            if name == "mul" and (_is(a, 0) or _is(b, 0)):
                return dtype.type(0)
            if (name == "mul" and _is(a, 1)) or (name in ("add", "add_any") and _is(a, 0)):
                return b
            if (name == "mul" and _is(b, 1)) or (name != "mul" and _is(b, 0)):
                return a
        operation = Operation(primitive, tuple(operands), params or {}, dtype)
        self.program.items.append(operation)
        return operation

    def step(self, eqn: Any, inputs: list[Any]) -> list[Any]:
        """An equation that is left as it is and mapped over the rows."""
        axes = [0 if (x.rows if isinstance(x, Source) else not is_known(x)) else None for x in inputs]
        mapped = any(a == 0 for a in axes)
        outputs = [Source(v.aval.shape, v.aval.dtype, mapped) for v in eqn.outvars]

        def one(*x: Any) -> Sequence[Any]:
            out = eqn.primitive.bind(*x, **eqn.params)
            return out if eqn.primitive.multiple_results else [out]

        def run(rows: int, *args: Any) -> Sequence[Any]:
            return jax.vmap(one, in_axes=axes)(*args) if mapped else one(*args)

        self.program.items.append(Step(run, inputs, outputs, not mapped))
        return list(outputs)

    def can_scan(self, eqn: Any, inputs: list[Any]) -> bool:
        carry = eqn.outvars[: eqn.params["num_carry"]]
        return all(_divisible(v.aval.shape) and not _is_key(v.aval) for v in carry) and any(
            not isinstance(x, Source) or x.rows for x in inputs
        )

    def scan(self, eqn: Any, inputs: list[Any]) -> list[Any]:
        """A loop: its body is a program of its own, and every number that it carries an array (rows,)."""
        p = eqn.params
        body, a, b = p["jaxpr"], p["num_consts"], p["num_consts"] + p["num_carry"]
        variables = body.jaxpr.invars
        outside: list[Any] = []  # what the body takes from outside, as values out here ...
        inside: list[Source] = []  # ... and in there
        consts = []
        for x in inputs[:a]:
            if isinstance(x, Source):
                inner: Any = Source(x.shape, x.dtype, x.rows, x.value)
                outside.append(x)
                inside.append(inner)
            else:
                inner = x.copy()
                for k, e in np.ndenumerate(x):
                    if not isinstance(e, np.generic):
                        source = Source((), None, True)
                        inner[k] = Entry(source, 0)
                        outside.append(_single(e))
                        inside.append(source)
            consts.append(inner)
        start = [_single(e) for x in inputs[a:b] for e in entries(x).reshape(-1)]
        dtypes = [v.aval.dtype for v in variables[a:b] for _ in range(math.prod(v.aval.shape))]
        carried = [Source((), t, True) for t in dtypes]
        xs = inputs[b:]
        axes = [x.rows if isinstance(x, Source) else not is_known(x) for x in xs]
        turns = [Source(v.aval.shape, v.aval.dtype, on) for v, on in zip(variables[b:], axes, strict=True)]
        program = record(body, [*consts, *_arranged(carried, [v.aval.shape for v in variables[a:b]]), *turns])
        ends = [_single(e) for x in program.outputs[: b - a] for e in entries(x).reshape(-1)]
        program.outputs = [*ends, *program.outputs[b - a :]]

        def run(rows: int, *args: Any) -> Sequence[Any]:
            n, m = len(outside), len(outside) + len(start)
            fixed = dict(zip(inside, args[:n], strict=True))
            begin = tuple(jnp.broadcast_to(jnp.asarray(x, t), (rows,)) for x, t in zip(args[n:m], dtypes, strict=True))
            along = [jnp.moveaxis(x, 1, 0) if on else x for x, on in zip(args[m:], axes, strict=True)]

            def turn(state: Any, x: Any) -> Any:
                given = {**fixed, **dict(zip(carried, state, strict=True)), **dict(zip(turns, x, strict=True))}
                out = execute(program, given, rows)
                return tuple(out[: len(state)]), out[len(state) :]

            end, ys = jax.lax.scan(turn, begin, along, p["length"], p["reverse"], p["unroll"])
            return [*end, *(jnp.moveaxis(y, 0, 1) for y in ys)]

        after = [Source((), t, True) for t in dtypes]
        ys = [Source(v.aval.shape, v.aval.dtype, True) for v in eqn.outvars[b - a :]]
        self.program.items.append(Step(run, [*outside, *start, *xs], [*after, *ys], program.fused, True))
        return [*_arranged(after, [v.aval.shape for v in eqn.outvars[: b - a]]), *ys]


def _folded(name: str, operands: Sequence[Any], dtype: Any) -> np.ndarray | None:
    """The result of an operation on constants, where NumPy has the operation."""
    whole = not np.issubdtype(dtype, np.floating)
    fn = _FOLDED.get(name) if not (name == "div" and whole) else None
    with np.errstate(all="ignore"):
        return None if fn is None else np.asarray(fn(*operands)).astype(dtype)


def _is(x: Any, number: int) -> bool:
    return isinstance(x, np.generic) and x == number


def _single(e: Any) -> np.ndarray:
    out = np.empty((), object)
    out[()] = e
    return out


def _arranged(sources: Sequence[Source], shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    """Scalars given one after another as object arrays of these shapes."""
    rest, out = iter(sources), []
    for shape in shapes:
        x = np.empty(math.prod(shape), object)
        x[:] = [Entry(next(rest), 0) for _ in range(x.size)]
        out.append(x.reshape(shape))
    return out


def _constant(x: Any) -> Any:
    """A constant of a jaxpr: its numbers, or an array that all rows share if it is large or of a surrounding trace."""
    if is_traced(x) or _is_key(x) or not _divisible(np.shape(x)):
        return Source(np.shape(x), x.dtype, False, x)
    return numbers(x)


def _divisible(shape: tuple[int, ...]) -> bool:
    return 0 < math.prod(shape) <= LARGEST


def _is_key(x: Any) -> bool:
    """Whether an array holds keys of random numbers, which are no numbers."""
    return jnp.issubdtype(x.dtype, jax.dtypes.extended)


def _small(eqn: Any, inputs: Sequence[Any]) -> bool:
    """Whether an equation can be done on entries."""
    avals = [v.aval for v in (*eqn.outvars, *eqn.invars)]
    return all(_divisible(a.shape) and not _is_key(a) for a in avals)
