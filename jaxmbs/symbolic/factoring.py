"""Reduces the operations of a set of sums of products by common parts and common factors, found greedily.

A polynomial is {cube: coefficient}; a cube is a sorted tuple of literals with repetition; negative literals are
constants, and a cube has at most one of them. The divisor that saves the most operations is extracted repeatedly: a sum
of two cubes (which is both common subexpression and common factor) or a product of two literals, as in the fast-extract
algorithm of logic synthesis (Rajski and Vasudevamurthy).
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

from jaxmbs.symbolic.constants import Number, quotient

Cube = tuple[int, ...]
Polynomial = dict[Cube, Number]
Key = tuple  # ("+", r1, r2, ratio) or ("*", a, b)


def operations(p: Polynomial) -> tuple[int, int]:
    """(additions, multiplications) of a polynomial."""
    return max(len(p) - 1, 0), sum(_products(cube, c) for cube, c in p.items())


def _products(cube: Cube, c: Number) -> int:
    if not cube:
        return 0
    return len(cube) - 1 + (c not in (1, -1) and cube[0] >= 0)  # a rational factor is absorbed by a constant


def cost(polynomials: dict[int, Polynomial]) -> int:
    return sum(sum(operations(p)) for p in polynomials.values())


def split(a: Cube, b: Cube) -> tuple[Cube, Cube, Cube]:
    """(common part, rest of a, rest of b)."""
    common, ra, rb = [], [], []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            common.append(a[i])
            i, j = i + 1, j + 1
        elif a[i] < b[j]:
            ra.append(a[i])
            i += 1
        else:
            rb.append(b[j])
            j += 1
    return tuple(common), (*ra, *a[i:]), (*rb, *b[j:])


class Extraction:
    """Extracts divisors from a copy of the polynomials {literal: polynomial}. `run` returns the copy, to which every
    divisor is added as a new polynomial."""

    def __init__(self, polynomials: dict[int, Polynomial], new_literal: Callable[[], int], seed: int = 0):
        self.polynomials = {k: dict(p) for k, p in polynomials.items()}
        self.new_literal = new_literal
        self._where: dict[Key, dict[tuple, None]] = {}  # occurrences of a divisor
        self._keys: dict[tuple[int, Cube], set[tuple[Key, tuple]]] = {}  # divisors that a cube takes part in
        self._heap: list[tuple[int, float, Key]] = []
        self._order: dict[Key, float] = {}
        self._dice = random.Random(seed) if seed else None  # breaks ties
        self._touched: set[Key] = set()
        for k, p in self.polynomials.items():
            done: list[Cube] = []
            for cube in p:
                self._enter(k, cube, done)
                done.append(cube)

    def run(self) -> dict[int, Polynomial]:
        while True:
            for key in self._touched:
                value = self._value(key)
                if value > 0:
                    heapq.heappush(self._heap, (-value, self._order[key], key))
            self._touched.clear()
            while self._heap:
                value, _, key = heapq.heappop(self._heap)
                now = self._value(key)
                if now == -value:
                    break
                if now > 0:
                    heapq.heappush(self._heap, (-now, self._order[key], key))
            else:
                return self.polynomials
            (self._take_sum if key[0] == "+" else self._take_product)(key)

    # bookkeeping

    def _enter(self, k: int, cube: Cube, others: list[Cube]) -> None:
        p = self.polynomials[k]
        for other in others:
            base, ra, rb = split(other, cube)
            a, b = (other, ra), (cube, rb)
            if (len(rb), rb) < (len(ra), ra):
                a, b = b, a
            key = ("+", a[1], b[1], quotient(p[b[0]], p[a[0]]))
            self._note(key, (k, a[0], b[0], base))
        for i, x in enumerate(cube):
            if i and cube[i - 1] == x and (i < 2 or cube[i - 2] == x):
                continue
            seen = set()
            for y in cube[i + 1 :]:
                if y not in seen:
                    seen.add(y)
                    self._note(("*", x, y), (k, cube))
        if p[cube] not in (1, -1) and cube and cube[0] >= 0:
            for x in set(cube):
                self._note(("*", abs(p[cube]), (x,)), (k, cube))

    def _note(self, key: Key, occurrence: tuple) -> None:
        self._where.setdefault(key, {})[occurrence] = None
        self._order.setdefault(key, self._dice.random() if self._dice else len(self._order))
        self._touched.add(key)
        for cube in occurrence[1:3] if key[0] == "+" else occurrence[1:2]:
            self._keys.setdefault((occurrence[0], cube), set()).add((key, occurrence))

    def _remove(self, k: int, cube: Cube) -> Number:
        for key, occurrence in self._keys.pop((k, cube), ()):
            where = self._where[key]
            if occurrence in where:
                del where[occurrence]
                self._touched.add(key)
        return self.polynomials[k].pop(cube)

    def _add(self, k: int, cube: Cube, c: Number) -> None:
        p = self.polynomials[k]
        if cube in p:
            c = c + self._remove(k, cube)
        if c:
            others = list(p)
            p[cube] = c
            self._enter(k, cube, others)

    # values

    def _value(self, key: Key) -> int:
        where = self._where.get(key)
        if not where:
            return 0
        if key[0] == "*":
            if isinstance(key[2], tuple):
                return len(where) - 1
            return sum(_multiplicity(cube, key[1], key[2]) for _, cube in where) - 1
        _, ra, rb, ratio = key
        saved, used, owned = 0, set(), False
        for k, a, b, base in where:
            if (k, a) in used or (k, b) in used:
                continue
            used |= {(k, a), (k, b)}
            p = self.polynomials[k]
            left = (*base, 0)
            saved += 1 + _products(a, p[a]) + _products(b, p[b]) - _products(left, p[a])
            owned = owned or (not base and len(p) == 2 and p[a] == 1)
        own = 1 + _products(ra, 1) + _products(rb, ratio)
        return saved - own

    def _take_sum(self, key: Key) -> None:
        _, ra, rb, ratio = key
        where = list(self._where[key])
        literal = next((k for k, a, b, base in where
                        if not base and len(self.polynomials[k]) == 2 and self.polynomials[k][a] == 1), None)  # fmt: skip
        new = literal is None
        if new:
            literal = self.new_literal()
        for k, a, b, base in where:
            p = self.polynomials[k]
            if k == literal or a not in p or b not in p:
                continue
            c = self._remove(k, a)
            self._remove(k, b)
            self._add(k, tuple(sorted((*base, literal))), c)
        if new:
            self.polynomials[literal] = {}
            self._add(literal, ra, 1)
            self._add(literal, rb, ratio)

    def _take_product(self, key: Key) -> None:
        _, x, y = key
        where = list(self._where[key])
        literal = self.new_literal()
        for k, cube in where:
            if cube not in self.polynomials[k]:
                continue
            c = self._remove(k, cube)
            rest = list(cube)
            if isinstance(y, tuple):
                rest.remove(y[0])
                rest.append(literal)
                c = 1 if c > 0 else -1
            else:
                while _multiplicity(tuple(rest), x, y):
                    rest.remove(x)
                    rest.remove(y)
                    rest.append(literal)
            self._add(k, tuple(sorted(rest)), c)
        self.polynomials[literal] = {}
        if isinstance(y, tuple):
            self._add(literal, y, x)
        else:
            self._add(literal, tuple(sorted((x, y))), 1)


def _multiplicity(cube: Cube, x: int, y: int) -> int:
    return cube.count(x) // 2 if x == y else min(cube.count(x), cube.count(y))
