"""Numbers recognised as small rational combinations of products of given masses and lengths.

A number is known for several sets of the given values, not only for the nominal set, so that a combination that fits
all of them to rounding is not a coincidence.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

LARGEST_DENOMINATOR = 12
AGREE = 1e-8  # relative difference that counts as rounding


@dataclass(frozen=True)
class Given:
    """Given numbers, which stay fixed: names, powers of (kg, m), and values (sets, names), the nominal values first."""

    names: tuple[str, ...]
    powers: tuple[tuple[int, int], ...]
    values: np.ndarray


@dataclass(frozen=True)
class Recognised:
    """A number in words, and its nominal value; exact: whether it was recognised."""

    text: str
    value: float
    exact: bool


def recognised(samples: np.ndarray, powers: tuple[int, int] | None, given: Given) -> Recognised:
    """Recognise a number by its values (sets,) at all sets of given numbers; powers: of kg and m in it (None: unknown)."""
    value = float(samples[0])
    size = np.abs(samples).max()
    if size == 0:
        return Recognised("0", 0.0, True)
    products = _products(powers, given)
    for count in (1, 2):
        if count == 2 and len(products) > 400:
            break
        found = _combination(samples, products, count)
        if found:
            text = " + ".join(_term(f, products[k][0]) for f, k in found).replace("+ -", "- ")
            exact = sum(float(f) * products[k][1][0] for f, k in found)
            return Recognised(text, float(exact), True)
    return Recognised(f"{value:.10g}", value, False)


def _combination(
    samples: np.ndarray, products: Sequence[tuple[str, np.ndarray]], count: int
) -> list[tuple[Fraction, int]] | None:
    """[(factor, index of the product)] of the first combination of `count` products that fits all samples, or None."""
    size = np.abs(samples).max()
    if not products:
        return None
    columns = np.array([p for _, p in products])
    if count == 1:
        factors = samples[0] / columns[:, 0]
        misses = np.abs(factors[:, None] * columns - samples[None, :]).max(axis=1)
        for k in np.flatnonzero(misses <= AGREE * size):
            f = _rational(float(factors[k]))
            if f is not None:
                return [(f, int(k))]
        return None
    first, second = np.triu_indices(len(products), 1)
    a, b = columns[first], columns[second]
    aa, ab, bb = (a * a).sum(1), (a * b).sum(1), (b * b).sum(1)
    determinant = aa * bb - ab**2
    determinant[determinant <= 1e-9 * aa * bb] = np.inf
    at, bt = a @ samples, b @ samples
    f, g = (bb * at - ab * bt) / determinant, (aa * bt - ab * at) / determinant
    misses = np.abs(f[:, None] * a + g[:, None] * b - samples[None, :]).max(axis=1)
    for k in np.flatnonzero(misses <= AGREE * size):
        fractions = _rational(float(f[k])), _rational(float(g[k]))
        if fractions[0] is not None and fractions[1] is not None:
            return [(fractions[0], int(first[k])), (fractions[1], int(second[k]))]
    return None


def _rational(x: float) -> Fraction | None:
    f = Fraction(x).limit_denominator(LARGEST_DENOMINATOR)
    return f if f != 0 and abs(float(f) - x) <= AGREE * abs(x) else None


def _products(powers: tuple[int, int] | None, given: Given) -> list[tuple[str, np.ndarray]]:
    """Products of given numbers that have these powers of kg and m: (words, values (sets,)), the simplest first."""
    one = [("", np.ones(len(given.values)))]
    if powers is None:
        return one
    kg, m = powers
    masses = [(n, given.values[:, k]) for k, n in enumerate(given.names) if given.powers[k] == (1, 0)]
    lengths = [(n, given.values[:, k]) for k, n in enumerate(given.names) if given.powers[k] == (0, 1)]
    if kg not in (0, 1) or abs(m) > 2:
        return one
    by_length = {
        0: [*one, *((f"{a} / {b}", x / y) for (a, x), (b, y) in itertools.permutations(lengths, 2))],
        1: lengths,
        2: [
            (f"{a}²" if a == b else f"{a} {b}", x * y)
            for (a, x), (b, y) in itertools.combinations_with_replacement(lengths, 2)
        ],
        -1: [(f"1/{a}", 1 / x) for a, x in lengths],
        -2: [(f"1/{a}²", 1 / x**2) for a, x in lengths],
    }[m]
    if kg == 0:
        return by_length
    return [(f"{a} {b}".strip(), x * y) for a, x in masses for b, y in by_length]


def _term(factor: Fraction, words: str) -> str:
    if not words:
        return str(factor)
    if abs(factor) == 1:
        return words if factor > 0 else f"-{words}"
    return f"{factor} {words}"
