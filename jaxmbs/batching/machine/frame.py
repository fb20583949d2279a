"""Slots of a frame for the numbers of a kernel; a slot is reused once its number has been read for the last time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jaxmbs.batching.machine.code import Code, Copy, Fetch, Keep, Piece, Turns

_LINE = 64  # bytes: the largest alignment


def reads(node: Any) -> list[Any]:
    """Names of the numbers that a node reads from slots."""
    if isinstance(node, Piece):
        return [x for x in node.reads if not isinstance(x, np.generic)]
    if isinstance(node, Keep):
        return [x for x in node.given if not isinstance(x, np.generic)]
    if isinstance(node, Turns):
        return [] if node.count is None or isinstance(node.count, np.generic) else [node.count]
    return [x for x, _ in node.pairs if not isinstance(x, np.generic)] if isinstance(node, Copy) else []


def writes(node: Any) -> list[Any]:
    """Names of the numbers that a node writes to slots."""
    if isinstance(node, Piece):
        return list(node.chunk.results)
    if isinstance(node, Fetch):
        return [(node.source, k) for k in node.wanted]
    return [x for _, x in node.pairs] if isinstance(node, Copy) else []


def slots(code: Code, bytes_of: Callable[[Any], int]) -> tuple[dict[Any, int], int]:
    """Byte offset of every name, and the size of the frame; bytes_of(name): size of the slot of a name, a power of two."""
    first: dict[Any, int] = {}
    last: dict[Any, int] = {}
    ends: list[tuple[int, int]] = []

    def walk(nodes: list[Any], at: int) -> int:
        for node in nodes:
            if isinstance(node, Turns):
                last.update((x, at) for x in reads(node))
                begin = at
                at = walk(node.body, at + 1) + 1
                ends.append((begin, at))
            else:
                for x in reads(node):
                    last[x] = at
                for x in writes(node):
                    first.setdefault(x, at)
                    last[x] = max(last.get(x, at), at)
                at += 1
        return at

    end = walk(code.body, 1)
    for begin, stop in ends:  # inner loops before outer ones: a number from before a loop is needed until the loop ends
        for x, at in last.items():
            if begin < at < stop and first.get(x, 0) < begin:
                last[x] = stop
    for fetch in code.once:
        for x in writes(fetch):
            first[x], last[x] = 0, end
    return _assigned(first, last, bytes_of)


def _assigned(
    first: dict[Any, int], last: dict[Any, int], bytes_of: Callable[[Any], int]
) -> tuple[dict[Any, int], int]:
    offsets: dict[Any, int] = {}
    free: dict[int, list[int]] = {}
    ending: dict[int, list[Any]] = {}
    size = 0
    for x, done in last.items():
        ending.setdefault(done, []).append(x)
    times = iter(sorted(ending))
    upcoming = next(times, None)
    for x in sorted(first, key=first.__getitem__):
        while upcoming is not None and upcoming < first[x]:
            for y in ending[upcoming]:
                free.setdefault(bytes_of(y), []).append(offsets[y])
            upcoming = next(times, None)
        n = bytes_of(x)
        if free.get(n):
            offsets[x] = free[n].pop()
        else:
            even = -(-size // min(n, _LINE)) * min(n, _LINE)
            offsets[x], size = even, even + n
    return offsets, size


def all_nodes(nodes: list[Any]) -> Iterator[Any]:
    """The nodes, including those within loops."""
    for node in nodes:
        yield node
        if isinstance(node, Turns):
            yield from all_nodes(node.body)
