"""Records a function of one row as a program.

Small arrays are taken apart into their entries, so that slicing and stacking cost nothing and small matrix products become
scalar operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from jaxmbs.batching.arrays import MOST_SHARED, RULES
from jaxmbs.batching.execution import Setting
from jaxmbs.batching.recorded import Joined, Product, Recording, Step
from jaxmbs.batching.recording_loops import Counted, empty, repetition, scan, sizes_of_scan
from jaxmbs.batching.scalars import (
    ELEMENTWISE,
    Operation,
    Source,
    array_of,
    entries,
    is_known,
    is_shared,
    is_traced,
    numbers,
)
from jaxmbs.batching.separable import LARGEST, is_key
from jaxmbs.batching.simplification import Simplifier, folded
from jaxmbs.batching.skipping import skipping
from jaxmbs.batching.whole import along_rows, parts_of
from jaxmbs.batching.zeros import Guarded

CALLS = {
    "pjit": "jaxpr", "jit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr", "checkpoint": "jaxpr", "remat2": "jaxpr", "eval_jaxpr": "call_jaxpr",  # in JAX 0.12
}  # fmt: skip


def record(
    closed: Any,
    inputs: Sequence[Any],
    serves: Callable[[Any], bool] | None = None,
    inside: bool = False,
    turning: frozenset[Source] = frozenset(),
) -> Recording:
    """The program of a closed jaxpr for values `inputs`; serves: see `Target`; inside: whether it is a loop body; turning:
    arrays that differ between the iterations of a loop."""
    program = Recording()
    recorder = Recorder(program, serves, inside, turning)
    program.outputs = [recorder.settled(x) for x in recorder.interpret(closed.jaxpr, closed.consts, inputs)]
    return program


class Recorder:
    """Interprets jaxprs, appending to one program."""

    def __init__(
        self, program: Recording, serves: Callable[[Any], bool] | None, inside: bool, turning: frozenset[Source]
    ):
        self.program, self.serves, self.turning = program, serves, turning
        # also take apart what all rows share, so that one kernel can hold the whole loop
        self.shared_too = serves is not None and inside
        # arrays that loops have stacked, and what becomes of them, stay whole: kernels have loops over their rows
        self.stacked: set[Source] | None = set() if serves is not None and not inside else None
        self.scalar = Simplifier(program.items)

    def settled(self, x: Any) -> Any:
        """The value as an array that exists when the program runs, without guards: for each guard x, 0 x is added to its
        number."""
        x = self.listed(x)
        if isinstance(x, Source) or not any(isinstance(e, Guarded) for e in x.reshape(-1)):
            return x
        out = np.empty(x.size, object)
        out[:] = [self.scalar.settled(e) for e in x.reshape(-1)]
        return out.reshape(x.shape)

    def listed(self, x: Any) -> Any:
        """The value; the mask of the iterations that count, which a loop does not need, becomes an array here."""
        return self.step(x.eqn, [x.count])[0] if isinstance(x, Counted) else x

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
        if name == "counted" and _is_common(inputs[0]):
            return [Counted(eqn.outvars[0].aval.shape, np.dtype(bool), False, eqn=eqn, count=inputs[0])]
        if name in CALLS:
            inner = eqn.params[CALLS[name]]
            self.scalar.part += 1
            out = self.interpret(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), inputs)
            self.scalar.part += 1
            return out
        if name != "scan":
            inputs = [self.listed(x) for x in inputs]
        if not eqn.effects and all(0 in v.aval.shape and not is_key(v.aval) for v in eqn.outvars):
            return [empty(v.aval) for v in eqn.outvars]
        if self.serves is not None and not self.serves(eqn):
            return self.step(eqn, inputs)
        if name == "cond" and (found := self.choice(eqn, inputs)) is not None:
            return found
        if name == "scan" and eqn.params["length"] > 0 and self.can_scan(eqn, inputs):
            return scan(self, eqn, inputs)
        if name == "while" and self.can_repeat(eqn, inputs):
            return repetition(self, eqn, inputs)
        if all(not isinstance(x, Source) and is_known(x) for x in inputs) and not eqn.effects and _small(eqn, inputs):
            return self.known(eqn, inputs)
        if (whole := self.whole(eqn, inputs)) is not None:
            return whole
        if name == "dot_general" and (product := self.product(eqn, inputs)) is not None:
            return self.step(eqn, inputs, product)
        if (self.shared_too or any(map(_has_rows, inputs))) and _small(eqn, inputs):
            if name in ELEMENTWISE:
                return [self.elementwise(eqn, [entries(x) for x in inputs])]
            found = RULES[name](self.scalar, [entries(x) for x in inputs], eqn) if name in RULES else None
            if found is not None:
                return found
        return self.step(eqn, inputs)

    def known(self, eqn: Any, inputs: list[Any]) -> list[Any]:
        """An equation of constants, evaluated now, so that its zeros and ones can simplify what follows."""
        given = [array_of(x, v.aval.dtype) for x, v in zip(inputs, eqn.invars, strict=True)]
        found = folded(eqn.primitive.name, given, eqn.outvars[0].aval.dtype)
        if found is not None:
            return [numbers(found)]
        with jax.ensure_compile_time_eval():
            out = eqn.primitive.bind(*given, **eqn.params)
        return [numbers(x) for x in (out if eqn.primitive.multiple_results else [out])]

    def whole(self, eqn: Any, inputs: list[Any]) -> list[Any] | None:
        """The results of an equation of arrays that loops have stacked, as arrays; None if it has to take them apart."""
        repeats = eqn.primitive.name == "broadcast_in_dim" and not _small(eqn, inputs) and any(map(_has_rows, inputs))
        if not self.stacked or not (repeats or any(isinstance(x, Source) and x in self.stacked for x in inputs)):
            return None
        if (parts := parts_of(eqn, inputs)) is not None:
            joined = Joined([(self.settled(x), first, count) for x, first, count in parts])
            out = self.step(eqn, inputs, joined=joined)
            self.stacked.update(out)
            return out
        if (found := along_rows(eqn, inputs)) is None:
            return None
        closed, operands = found
        out = self.interpret(closed.jaxpr, closed.consts, operands)
        step = self.program.items[-1]
        assert isinstance(step, Step)
        step.name = eqn.primitive.name
        return out

    def elementwise(self, eqn: Any, operands: list[np.ndarray]) -> np.ndarray:
        aval = eqn.outvars[0].aval
        spread = [np.broadcast_to(x, aval.shape).reshape(-1) for x in operands]
        params = {**eqn.params, "sharding": None} if "sharding" in eqn.params else eqn.params
        out = np.empty(math.prod(aval.shape), object)
        out[:] = [self.scalar(eqn.primitive, x, aval.dtype, params) for x in zip(*spread, strict=True)]
        return out.reshape(aval.shape)

    def product(self, eqn: Any, inputs: list[Any]) -> Product | None:
        """The product of a row's vector with a large matrix that all rows share, if the equation is one, in machine code."""
        (over, batch), dtype = eqn.params["dimension_numbers"], eqn.outvars[0].aval.dtype
        shapes = [v.aval.shape for v in eqn.invars]
        matrix = 0 if len(shapes[0]) == 2 else 1
        if self.serves is None or any(batch) or sorted(map(len, shapes)) != [1, 2] or len(over[0]) != 1:
            return None
        x, given = inputs[1 - matrix], inputs[matrix]
        if any(v.aval.dtype != dtype for v in eqn.invars) or dtype not in (jnp.float32, jnp.float64):
            return None
        if not _divisible(shapes[1 - matrix]) or not _divisible(eqn.outvars[0].aval.shape) or not _has_rows(x):
            return None
        if math.prod(shapes[matrix]) <= MOST_SHARED or (isinstance(given, Source) and given in self.turning):
            return None
        if not isinstance(given, Source) and is_known(given):
            given = Source(given.shape, dtype, False, array_of(given, dtype))
        if not isinstance(given, Source) or given.rows:
            return None
        width = shapes[matrix][1]
        return Product(entries(x), given, (width, 1) if over[matrix][0] == 0 else (1, width))

    def step(
        self, eqn: Any, inputs: list[Any], product: Product | None = None, joined: Joined | None = None
    ) -> list[Any]:
        """An equation that is left as it is becomes a step that is mapped over the rows. product, joined: what machine code
        computes instead, if it can."""
        inputs = [self.settled(x) for x in inputs]
        axes = [0 if (x.rows if isinstance(x, Source) else not is_known(x)) else None for x in inputs]
        mapped = any(a == 0 for a in axes)
        outputs = [Source(v.aval.shape, v.aval.dtype, mapped) for v in eqn.outvars]

        def one(*x: Any) -> Sequence[Any]:
            out = eqn.primitive.bind(*x, **eqn.params)
            return out if eqn.primitive.multiple_results else [out]

        def run(_: Setting, *args: Any) -> Sequence[Any]:
            return jax.vmap(one, in_axes=axes)(*args) if mapped else one(*args)

        if product is not None:
            product.x = self.settled(product.x)
        name = eqn.primitive.name
        self.program.items.append(Step(run, inputs, outputs, not mapped, name, product=product, joined=joined))
        return list(outputs)

    def choice(self, eqn: Any, inputs: list[Any]) -> list[Any] | None:
        """A cond whose index may differ between rows, evaluated as by jax.vmap: all branches, then a selection; in
        machine code, a costly branch is skipped by rows that do not need it (`skipping`).

        If the index is a constant, only its branch is evaluated. Returns None if this cannot be done on entries: with
        effects or large arrays, or if all rows share the index (unless shared values are taken apart, too).
        """
        branches = eqn.params["branches"]
        if eqn.effects or not _small(eqn, ()) or not (self.shared_too or _has_rows(inputs[0])):
            return None
        index = entries(inputs[0])[()]
        if isinstance(index, np.generic):
            chosen = branches[min(max(int(index), 0), len(branches) - 1)]
            return self.interpret(chosen.jaxpr, chosen.consts, inputs[1:])
        if self.shared_too and (closed := skipping(eqn)) is not None:  # only within a loop, since C source has none
            return self.interpret(closed.jaxpr, closed.consts, inputs)
        found = [[entries(x) for x in self.interpret(b.jaxpr, b.consts, inputs[1:])] for b in branches]
        out = []
        for v, *cases in zip(eqn.outvars, *found, strict=True):
            picked = np.empty(v.aval.size, object)
            flat = [case.reshape(-1) for case in cases]
            picked[:] = [self.picked(index, list(x), v.aval.dtype) for x in zip(*flat, strict=True)]
            out.append(picked.reshape(v.aval.shape))
        return out

    def picked(self, index: Any, cases: list[Any], dtype: Any) -> Any:
        """cases[index]."""
        chosen = cases[0]
        for k, case in enumerate(cases[1:], 1):
            later = self.scalar(jax.lax.ge_p, [index, np.int32(k)], np.dtype(bool), {})
            chosen = self.scalar(jax.lax.select_n_p, [later, chosen, case], dtype, {})
        return chosen

    def can_scan(self, eqn: Any, inputs: list[Any]) -> bool:
        carry = eqn.outvars[: sizes_of_scan(eqn)[1]]
        if sum(math.prod(v.aval.shape) for v in carry) > LARGEST:
            return False
        small = all(0 in v.aval.shape or (_divisible(v.aval.shape) and not is_key(v.aval)) for v in carry)
        return small and (self.shared_too or any(map(_has_rows, inputs)))

    def can_repeat(self, eqn: Any, inputs: list[Any]) -> bool:
        """Whether a `while_loop` can be a loop of scalar operations: in machine code, where rows may differ."""
        if self.serves is None or eqn.effects:
            return False
        small = all(_divisible(v.aval.shape) and not is_key(v.aval) for v in (*eqn.invars, *eqn.outvars))
        return small and (self.shared_too or any(map(_has_rows, inputs)))

    def body(self, closed: Any, inputs: Sequence[Any], turning: set[Source]) -> Recording:
        """The program of an iteration of a loop; turning: see `record`."""
        return record(closed, inputs, self.serves, True, frozenset(turning))


def _is_common(x: Any) -> bool:
    """Whether all rows share the numbers of a value, known or not."""
    if isinstance(x, Source):
        return not x.rows
    if isinstance(x, Operation):
        return all(map(_is_common, x.operands))
    return (
        all(map(_is_common, x.reshape(-1))) if isinstance(x, np.ndarray) else isinstance(x, np.generic) or is_shared(x)
    )


def _has_rows(x: Any) -> bool:
    return not isinstance(x, Source) or x.rows


def _constant(x: Any) -> Any:
    """A constant of a jaxpr: its numbers or, if it is large, traced or consists of random keys, a shared array."""
    if is_traced(x) or is_key(x) or not _divisible(np.shape(x)):
        return Source(np.shape(x), x.dtype, False, x)
    return numbers(x)


def _divisible(shape: tuple[int, ...]) -> bool:
    return 0 < math.prod(shape) <= LARGEST


def _small(eqn: Any, inputs: Sequence[Any]) -> bool:
    """Whether an equation can be done on entries."""
    avals = [v.aval for v in (*eqn.outvars, *eqn.invars)]
    return all(_divisible(a.shape) and not is_key(a) for a in avals)
