"""What `explain` returns, and its text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class RowProgram:
    """A function of one instance within a program of JAX, and what runs it for all rows.

    name: of the function; ".tangents" and ".cotangents" follow where it is differentiated, and ".values" precedes
    ".tangents" if both are computed. rows: number of instances of a call; in a `shard_map`, of all devices together. calls:
    how often it is called, a body of `scan` once for each iteration, every branch of a `cond` as if it were taken; None in a
    `while_loop`. runs: "machine code" on a CPU, "PTX" on an NVIDIA GPU, or "jax.vmap". reason: why it is no kernel, or not
    one call of a kernel; else empty.

    For each row: arithmetic, divisions (with roots) and transcendental (sines, powers, logarithms and the like) are numbers
    of scalar operations, as often as loops do them, a `while_loop` of a row as if it made eight iterations; loops: numbers
    of iterations, a loop before those inside it, and the largest number where it is an operand, as in an eager `simulate`;
    bytes_in, bytes_out: of its own operands and its results; bytes_kept: what loops stack, such as the checkpoints of
    reverse mode. For a function that `jax.vmap` runs, all these are 0, apart from bytes_in and bytes_out where it is not
    left to JAX as it is.

    >>> double = mbs.rows(lambda x: 2 * x)
    >>> [program] = mbs.explain(jax.vmap(double), np.arange(3.0)).programs
    >>> print(program.rows, program.calls, program.arithmetic, program.bytes_in)
    3 1 1 8
    """

    name: str
    rows: int
    calls: int | None
    runs: str
    reason: str = ""
    arithmetic: int = 0
    divisions: int = 0
    transcendental: int = 0
    loops: tuple[int, ...] = ()
    bytes_in: int = 0
    bytes_out: int = 0
    bytes_kept: int = 0

    def __repr__(self) -> str:
        often = "in a while_loop" if self.calls is None else "once" if self.calls == 1 else f"{self.calls:,} times"
        several = " in several calls" if self.reason and self.runs == "machine code" else ""
        because = f", because {self.reason}" if self.reason else ""
        head = f"{self.name}: {self.runs}{several}, {_many(self.rows, 'row')}, called {often}{because}"
        each = "\n        ".join(self._each())
        return f"{head}\n    for each row: {each}" if each else head

    def _each(self) -> Iterator[str]:
        if self.runs != "jax.vmap":
            counts = _many(self.arithmetic, "arithmetic operation"), _many(self.divisions, "division or root")
            yield ", ".join([*counts, _many(self.transcendental, "transcendental function")])
        moved = [f"{_many(self.bytes_in, 'byte')} in", f"{self.bytes_out:,} out"]
        moved += [f"{self.bytes_kept:,} kept by loops"] * bool(self.bytes_kept)
        loops = [f"loops of {', '.join(f'{n:,}' for n in self.loops)} iterations"] * bool(self.loops)
        if self.bytes_in or self.bytes_out:
            yield "; ".join([*loops, ", ".join(moved)])


@dataclass(frozen=True, repr=False)
class Explanation:
    """What `explain` found; printed, it is a short text.

    programs: the row programs, each different one once. equations: how many other equations there are, which XLA
    compiles, each counted once. kept: bytes that `jax.vjp` keeps between forwards and back, for derivatives in all
    floating-point arguments; None if there is no reverse mode, and irreversible then says why. kept_arguments: how many
    of these bytes are arguments of the function.

    >>> double = mbs.rows(lambda x: 2 * x)
    >>> print(mbs.explain(jax.vmap(double), np.arange(3.0)).equations)
    0
    """

    programs: tuple[RowProgram, ...]
    equations: int
    kept: int | None
    kept_arguments: int = 0
    irreversible: str = ""

    def __repr__(self) -> str:
        return "\n".join([*map(repr, self.programs), *self._rest()])

    def _rest(self) -> Iterator[str]:
        others = _many(self.equations, "equation")
        yield f"{others} outside row programs" if self.programs else f"{others}, no row program"
        if self.kept is None:
            yield f"no reverse mode: {self.irreversible}"
            return
        sizes = {program.rows for program in self.programs}
        rows = sizes.pop() if len(sizes) == 1 else 1
        each = f", {self.kept / rows:,.0f} for each of {rows:,} rows" if rows > 1 else ""
        own = f"; {self.kept_arguments:,} of them are arguments" if self.kept else ""
        yield f"reverse mode keeps {_many(self.kept, 'byte')}{each}{own}"


def _many(n: int, what: str) -> str:
    """The number of things, with the plural of each word that is a noun of its own."""
    return f"{n:,} {what if n == 1 else what.replace(' or ', 's or ') + 's'}"
