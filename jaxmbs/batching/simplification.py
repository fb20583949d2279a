"""Creates operations: constants are computed at once, signs move to where they cost nothing, and equal operations are
done once.

Results are those of the operations as written, to the last bit, except for the sign of a zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmbs.batching.scalars import Operation
from jaxmbs.batching.zeros import Guarded, Guards

_FOLDED: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "sqrt": np.sqrt,
    "sin": np.sin, "cos": np.cos, "abs": np.abs, "max": np.maximum, "min": np.minimum, "eq": np.equal, "ne": np.not_equal,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "convert_element_type": np.asarray,
}  # fmt: skip


_LINEAR = frozenset(["add", "sub", "mul", "div", "neg", "add_any"])


class Simplifier:
    """Creates the operations of one program and adds them to its items."""

    def __init__(self, items: list[Any]):
        self.items = items
        self.made: dict[Any, Operation] = {}
        self.part = 0  # `part` of the next operations
        self.guards = Guards()

    def __call__(self, primitive: Any, operands: Sequence[Any], dtype: Any, params: Any = None) -> Any:
        """The result of a primitive for these operands."""
        if not any(isinstance(x, Guarded) for x in operands):
            return self._plain(primitive, operands, dtype, params)
        if primitive.name not in _LINEAR or (primitive.name == "div" and isinstance(operands[1], Guarded)):
            return self._plain(primitive, [self.settled(x) for x in operands], dtype, params)
        mask = 0
        for x in operands:
            mask |= x.guards if isinstance(x, Guarded) else 0
        result = self._plain(primitive, [x.number if isinstance(x, Guarded) else x for x in operands], dtype, params)
        return self._guarded(result, mask)

    def _guarded(self, x: Any, mask: int) -> Any:
        if isinstance(x, Guarded):
            return Guarded(x.number, x.guards | mask)
        return x if isinstance(x, np.generic) and np.isnan(x) else Guarded(x, mask)

    def settled(self, x: Any) -> Any:
        """The number itself, with 0 x added for its guards x."""
        if not isinstance(x, Guarded):
            return x
        guards = self.guards.fewest(x.guards)
        dtype = self.guards.dtypes[guards[0]]
        zero = dtype.type(0)
        total = None
        for y in guards:
            term = self._made(lax.mul_p, [y, zero], dtype, {})
            total = term if total is None else self._made(lax.add_p, [total, term], dtype, {})
        return total if _is(x.number, 0) else self._made(lax.add_p, [x.number, total], dtype, {})

    def _plain(self, primitive: Any, operands: Sequence[Any], dtype: Any, params: Any = None) -> Any:
        dtype = np.dtype(dtype)
        if primitive.name == "add_any":
            primitive = lax.add_p
        if primitive.name in ("add", "sub", "mul", "div", "neg"):
            params = {}  # they have no effect here, and equal operations must look the same
        if all(isinstance(x, np.generic) for x in operands):
            found = folded(primitive.name, operands, dtype)
            if found is not None:
                return found[()]
        shortened = self._shortened(primitive.name, operands, dtype)
        return self._made(primitive, operands, dtype, params or {}) if shortened is None else shortened

    def _shortened(self, name: str, operands: Sequence[Any], dtype: np.dtype) -> Any:
        """The same number from fewer operations; None if there is no shorter way."""
        if name == "neg":
            return _negated(operands[0])
        if name == "select_n" and isinstance(operands[0], np.generic):
            return operands[1 + int(operands[0])]
        if name in ("and", "or") and dtype.kind == "b":
            return _decided(name == "or", *operands)
        if name not in ("mul", "add", "sub", "div") or not np.issubdtype(dtype, np.floating):
            return None
        a, b = operands
        if name == "mul":
            if _is(a, 0) or _is(b, 0):
                x = b if _is(a, 0) else a
                self.guards.dtypes[x] = dtype
                return Guarded(dtype.type(0), self.guards.bit(x))
            if _is(a, 1) or _is(b, 1):
                return b if _is(a, 1) else a
        if (name == "add" and _is(a, 0)) or (name in ("add", "sub") and _is(b, 0)):
            return b if name == "add" and _is(a, 0) else a
        minus_a, minus_b = _negated(a), _negated(b)
        if name == "mul" or name == "div":
            if minus_a is None and minus_b is None:
                return None
            primitive = lax.mul_p if name == "mul" else lax.div_p
            product = self(primitive, [a if minus_a is None else minus_a, b if minus_b is None else minus_b], dtype)
            return product if minus_a is not None and minus_b is not None else self(lax.neg_p, [product], dtype)
        if minus_b is not None:
            return self(lax.sub_p if name == "add" else lax.add_p, [a, minus_b], dtype)
        if minus_a is not None and name == "add":
            return self(lax.sub_p, [b, minus_a], dtype)
        return None

    def _made(self, primitive: Any, operands: Sequence[Any], dtype: np.dtype, params: dict[str, Any]) -> Operation:
        """The operation, the same object whenever the operands are the same."""
        names = [(x.dtype.char, x.tobytes()) if isinstance(x, np.generic) else x for x in operands]
        if primitive.name in ("add", "mul"):
            names.sort(key=hash)
        key = (primitive.name, tuple(names), dtype.char, str(params) if params else "")
        if key not in self.made:
            self.made[key] = Operation(primitive, tuple(operands), params, dtype, self.part)
            self.items.append(self.made[key])
        return self.made[key]


def folded(name: str, operands: Sequence[Any], dtype: Any) -> np.ndarray | None:
    """The result of an operation on constants; None if NumPy does not have the operation or differs from XLA."""
    fn = _FOLDED.get(name)
    given = [np.asarray(x).dtype for x in operands]
    if name == "div" and not np.issubdtype(dtype, np.floating):
        return None
    if name == "convert_element_type" and np.issubdtype(dtype, np.integer) and jnp.issubdtype(given[0], jnp.inexact):
        return None  # NumPy and XLA differ where a number is out of range
    with np.errstate(all="ignore"):
        return None if fn is None else np.asarray(fn(*operands)).astype(dtype)


def _is(x: Any, number: int) -> bool:
    return isinstance(x, np.generic) and x == number


def _decided(either: bool, a: Any, b: Any) -> Any:
    """a | b (either) or a & b if one of them is known, else None."""
    known, other = (a, b) if isinstance(a, np.generic) else (b, a)
    if not isinstance(known, np.generic):
        return None
    return known if bool(known) is either else other


def _negated(x: Any) -> Any:
    """y if x is -y, else None."""
    return x.operands[0] if isinstance(x, Operation) and x.primitive.name == "neg" else None
