"""Rewrites sums as another sum plus the missing terms.

H_11 = H_21 + I_c2 + constant, for example, is found by comparing sums with all their parts expanded and then covering
the missing terms with other existing sums. Constants cost nothing: if a difference needs new constants, they are added.
"""

from __future__ import annotations

from typing import Any

from jaxmbs.symbolic.constants import Constant, Number, quotient
from jaxmbs.symbolic.factoring import Cube, Polynomial, operations
from jaxmbs.symbolic.formulas import Formulas

LONGEST = 60  # largest number of terms of a sum that is compared
# (largest number of all terms, how many candidates for the first, second, ... part are followed up)
WIDTHS = ((130, (12, 4, 3, 2, 1)), (300, (4, 2, 1, 1)), (450, (2, 1)))
Linear = dict[Cube, Any]  # literals that are not constants -> coefficient


def rewrite(formulas: Formulas) -> bool:
    """Rewrite the sums that become cheaper, and return whether there were any."""
    search = _Search(formulas)
    return bool(search.widths) and any([search.improve(k) for k in list(formulas.sums)])


class _Search:
    def __init__(self, formulas: Formulas):
        self.formulas, self.sums = formulas, formulas.sums
        self.uses = formulas.uses()
        size = sum(map(len, self.sums.values()))
        self.widths = next((widths for limit, widths in WIDTHS if size <= limit), ())
        self.linear: dict[int, Linear] = {}
        self.scaled: dict[tuple[int, Number], Linear] = {}
        self.users: dict[Cube, set[int]] = {}
        for k in self.sums if self.widths else ():
            for key in self.expanded(k):
                if key:
                    self.users.setdefault(key, set()).add(k)

    def expanded(self, k: int) -> Linear:
        """The terms of sum k, in which the sums that it adds are replaced with their own terms."""
        if k not in self.linear:
            out: Linear = {}
            for cube, c in self.sums[k].items():
                constant = next((x for x in cube if self.formulas.is_constant(x)), None)
                motion = tuple(x for x in cube if x != constant)
                value = c if constant is None else c * self.formulas.literals[constant][1]
                inner = self.expanded(motion[0]) if len(motion) == 1 and motion[0] in self.sums else {motion: 1}
                if len(inner) > LONGEST:
                    inner = {motion: 1}
                for key, d in inner.items():
                    _accumulate(out, key, value * d)
            self.linear[k] = out
        return self.linear[k]

    def negative(self, j: int, ratio: Number) -> Linear:
        """The expanded sum j times -ratio."""
        if (j, ratio) not in self.scaled:
            self.scaled[j, ratio] = {key: c * -ratio for key, c in self.expanded(j).items()}
        return self.scaled[j, ratio]

    def improve(self, k: int) -> bool:
        own = sum(operations(self.sums[k]))
        target = self.expanded(k)
        if own < 2 or len(target) > LONGEST:
            return False
        blocked = self.dependents_of(k) | {k}
        near = sorted({j for key in target for j in self.users.get(key, ())} - blocked)
        price, parts, rest = self._covered(target, near, self.widths)
        if price >= own or any((j,) in rest for j in parts):
            return False
        found: Polynomial = {(j,): ratio for j, ratio in parts.items()}
        for key, c in rest.items():
            r, constant = self.formulas.constant(c)
            if r:
                found[tuple(sorted(key if constant is None else (*key, constant)))] = r
        self.sums[k] = found
        self.uses = self.formulas.uses()
        return True

    def dependents_of(self, k: int) -> set[int]:
        """Literals whose formulas need literal k."""
        out, stack = set(), [k]
        while stack:
            for j in self.uses.get(stack.pop(), ()):
                if j not in out:
                    out.add(j)
                    stack.append(j)
        return out

    def _covered(self, rest: Linear, near: list[int], widths: tuple[int, ...]) -> tuple[int, dict[int, Number], Linear]:
        """(price, parts, remaining terms) of the cheapest way found to write the terms `rest` with existing sums."""
        best = (sum(_price(key, c) for key, c in rest.items()) - 1, {}, rest)
        choices = []
        for j in near:
            for ratio in _ratios(rest, self.expanded(j)):
                own = 1 + (ratio not in (1, -1))
                gain = _gain(rest, self.negative(j, ratio)) - own
                if gain > 0:
                    choices.append((-gain, j, ratio, own))
        choices.sort(key=lambda x: x[:2])
        for _, j, ratio, own in choices[: widths[0] if widths else 0]:
            left = dict(rest)
            for key, c in self.negative(j, ratio).items():
                _accumulate(left, key, c)
            price, parts, last = self._covered(left, [i for i in near if i != j], widths[1:])
            if price + own < best[0]:
                best = (price + own, {j: ratio} | parts, last)
        return best


def _accumulate(out: Linear, key: Cube, c: Any) -> None:
    total = out.get(key, 0) + c
    if isinstance(total, Constant) or total:
        out[key] = total
    else:
        out.pop(key, None)


def _gain(p: Linear, q: Linear) -> int:
    """Operations of the terms p minus those of the terms p + q."""
    gain = 0
    for key, c in q.items():
        if key in p:
            gain += _price(key, p[key])
            c = p[key] + c
        if isinstance(c, Constant) or c:
            gain -= _price(key, c)
    return gain


def _price(key: Cube, c: Any) -> int:
    """Operations of one term and of adding it."""
    return len(key) + (isinstance(c, Constant) or c not in (1, -1)) if key else 1


def _rational(a: Any, b: Any) -> Number | None:
    """a / b if that is a rational number, else None."""
    if isinstance(a, Constant) and isinstance(b, Constant):
        (x, a), (y, b) = a.primitive(), b.primitive()
        return quotient(x, y) if a == b else None
    if isinstance(a, Constant) or isinstance(b, Constant):
        return None
    return quotient(a, b)


def _ratios(p: Linear, q: Linear) -> list[Number]:
    found = [_rational(p[key], q[key]) for key in p if key and key in q]
    return list(dict.fromkeys(r for r in found if r is not None))
