"""The text of a kernel in LLVM's language."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbs.batching.machine import exponentials, functions, host


class Module:
    """What all functions of a kernel share: the number of rows computed at once, and the functions that they call."""

    def __init__(self, lanes: int, processor: host.Processor | None = None):
        self.lanes, self.processor = lanes, processor or host.processor()
        self.parts: dict[str, str] = {}  # by name, so that each is included once

    def vector(self, dtype: np.dtype) -> str:
        return f"<{self.lanes} x {host.element(dtype)}>"

    def stored_vector(self, dtype: np.dtype) -> str:
        return f"<{self.lanes} x {host.stored(dtype)}>"

    def mark(self, dtype: np.dtype) -> str:
        """The suffix for a vector type in the names of LLVM's functions."""
        kind = "f" if dtype.kind == "f" and host.computes(dtype) else "i"
        return f"v{self.lanes}{kind}{1 if dtype.kind == 'b' else 8 * dtype.itemsize}"

    def splat(self, x: Any) -> str:
        """A number in every lane."""
        return f"splat ({host.element(np.dtype(x.dtype))} {host.literal(x)})"

    def __str__(self) -> str:
        return "\n".join([*self.parts.values(), '!0 = !{!"branch_weights", i32 1, i32 100000}'])


class Text:
    """The instructions of one function, in order."""

    def __init__(self, module: Module):
        self.module = module
        self.lines: list[str] = []
        self.count = 0
        self.angles: dict[str, tuple[str, str]] = {}
        self.vector, self.mark = module.vector, module.mark
        self.truth = module.vector(np.dtype(bool))

    def add(self, instruction: str) -> str:
        """Append an instruction; returns the name of its result."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def splat(self, x: Any) -> str:
        return self.module.splat(x)

    def splat_bits(self, dtype: np.dtype) -> str:
        """A number with all bits set, in every lane."""
        return f"splat ({host.element(dtype)} {'true' if dtype.kind == 'b' else -1})"

    def select(self, which: str, yes: str, no: str, dtype: np.dtype) -> str:
        t = self.vector(dtype)
        return self.add(f"select {self.truth} {which}, {t} {yes}, {t} {no}")

    def times(self, a: str, b: str, dtype: np.dtype) -> str:
        return self.add(f"{'fmul' if dtype.kind == 'f' else 'mul'} {self.vector(dtype)} {a}, {b}")

    def fused(self, a: str, b: str, c: str, dtype: np.dtype) -> str:
        """a b + c, rounded once if the processor can."""
        if not self.module.processor.fuses:
            return self.add(f"fadd {self.vector(dtype)} {self.times(a, b, dtype)}, {c}")
        return self.call("fma", dtype, [a, b, c])

    def minus(self, x: str, dtype: np.dtype) -> str:
        return self.add(f"fneg {self.vector(dtype)} {x}")

    def call(self, name: str, dtype: np.dtype, x: list[str], more: str = "") -> str:
        """Call one of LLVM's functions of vectors of one type; more: a last argument that is a scalar."""
        return self.call_named(f"llvm.{name}.{self.mark(dtype)}", dtype, [(dtype, a) for a in x], more)

    def call_named(self, name: str, result: np.dtype, x: list[tuple[np.dtype, str]], more: str = "") -> str:
        types = [self.vector(t) for t, _ in x] + more.split()[:1]
        self.module.parts[name] = f"declare {self.vector(result)} @{name}({', '.join(types)})"
        given = [f"{self.vector(t)} {a}" for t, a in x] + [more] * bool(more)
        return self.add(f"call {self.vector(result)} @{name}({', '.join(given)})")

    def declare(self, name: str, dtype: np.dtype, operands: int) -> None:
        full, t = f"llvm.{name}.{self.mark(dtype)}", self.vector(dtype)
        self.module.parts[full] = f"declare {t} @{full}({', '.join([t] * operands)})"

    def lanewise(self, name: str, dtype: np.dtype, x: list[str]) -> str:
        """Call a function of the C library for every lane."""
        symbol = self.needs_lanewise(name, dtype, len(x))
        t = self.vector(dtype)
        return self.add(f"call {t} @{symbol}({', '.join(f'{t} {a}' for a in x)})")

    def needs_lanewise(self, name: str, dtype: np.dtype, operands: int) -> str:
        symbol = f"each_{name}" + "f" * (dtype.itemsize == 4)
        if symbol not in self.module.parts:
            self.declare("fabs", dtype, 1)
            self.declare("copysign", dtype, 2)
            self.module.parts[symbol] = functions.lanewise(name, dtype, self.module, operands)
        return symbol

    def needs_any(self) -> str:
        """The name of LLVM's function that says whether a truth value is true in any lane."""
        name = f"llvm.vector.reduce.or.v{self.module.lanes}i1"
        self.module.parts[name] = f"declare i1 @{name}({self.truth})"
        return name

    def exponential(self, name: str, x: str, dtype: np.dtype) -> str:
        """One of `exponentials.FUNCTIONS` of x."""
        full, t = f"{name}_{self.mark(dtype)}", self.vector(dtype)
        if full not in self.module.parts:
            for called, operands in exponentials.CALLED.items():
                self.declare(called, dtype, operands)
            self.module.parts[full] = exponentials.exponential(name, dtype, self.module)
        return self.add(f"call {t} @{full}({t} {x})")

    def sine_and_cosine(self, x: str, dtype: np.dtype) -> tuple[str, str]:
        """Sine and cosine of x, computed only once for each angle."""
        if x not in self.angles:
            name = f"sine_and_cosine_{self.mark(dtype)}"
            if name not in self.module.parts:
                self.needs_lanewise("sin", dtype, 1)
                self.needs_lanewise("cos", dtype, 1)
                self.declare("fma", dtype, 3)
                self.module.parts[name] = functions.sine_and_cosine(dtype, self.module)
            t = self.vector(dtype)
            self.needs_any()
            pair = f"{{ {t}, {t} }}"
            both = self.add(f"call {pair} @{name}({t} {x})")
            self.angles[x] = (self.add(f"extractvalue {pair} {both}, 0"), self.add(f"extractvalue {pair} {both}, 1"))
        return self.angles[x]
