"""Criteria: sentences such as "clearance > 0.02 m", "0 m < travel < 1 m", "|roll| < 3 deg in 99 %"."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jaxmbs.io.errors import choices
from jaxmbs.study.units import Unit, unit

_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_NAME = r"[A-Za-z_][\w\- ]*?"
_SHARE = rf"(?:\s+in\s+(?P<share>{NUMBER})\s*%(?:\s+of\s+(?:the\s+)?samples)?)?"
_ONE = re.compile(
    rf"\s*(?P<bar>\|?)\s*(?P<name>{_NAME})\s*(?P=bar)\s*(?P<sign><=|>=|<|>)"
    rf"\s*(?P<number>{NUMBER})\s*(?P<unit>.*?){_SHARE}\s*"
)
_TWO = re.compile(
    rf"\s*(?P<low>{NUMBER})\s*(?P<low_unit>[^<>=]*?)\s*(?P<low_sign><=|<)\s*(?P<name>{_NAME})\s*(?P<sign><=|<)"
    rf"\s*(?P<number>{NUMBER})\s*(?P<unit>.*?){_SHARE}\s*"
)
FORMS = 'NAME < NUMBER UNIT, NUMBER UNIT < NAME < NUMBER UNIT or |NAME| < NUMBER UNIT, as in "clearance > 0.02 m"'


@dataclass(frozen=True)
class Criterion:
    """Condition on an output: its value, or its magnitude if `absolute`, must satisfy every (sign, bound) of `bounds`,
    in SI.

    text: the sentence in the file; unit: the unit used in the sentence; share: the share of the samples that must meet
    the criterion.
    """

    text: str
    output: str
    bounds: tuple[tuple[str, float], ...]
    unit: Unit
    absolute: bool = False
    share: float = 1.0

    @property
    def sign(self) -> str:
        """The sign of the last bound: of the upper one if there are two."""
        return self.bounds[-1][0]

    @property
    def bound(self) -> float:
        """The last bound [SI]: the upper one if there are two."""
        return self.bounds[-1][1]

    @property
    def marks(self) -> tuple[tuple[str, float], ...]:
        """The (sign, bound) pairs in terms of the value itself: "|x| < 3" gives ("<", 3) and (">", -3)."""
        if not self.absolute:
            return self.bounds
        return tuple((s, side * b) for sign, b in self.bounds for side, s in ((1, sign), (-1, _MIRROR[sign])))

    def met(self, values: np.ndarray) -> np.ndarray:
        """(n,) bool: which of the values (n,), in SI, meet the criterion. A NaN does not meet any criterion."""
        return np.all([_COMPARE[sign](x, bound) for x, sign, bound in self._sides(values)], axis=0)

    def margin(self, values: np.ndarray) -> np.ndarray:
        """(n,) margin of each value [SI]: its distance from missing the criterion, negative if it misses it."""
        far = [(bound - x) if sign[0] == "<" else (x - bound) for x, sign, bound in self._sides(values)]
        return np.min(far, axis=0)

    def margin_slopes(self, values: np.ndarray, slopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(m,) margins of the values (m,), and (m, d) their derivatives, from the derivatives `slopes` (m, d) of the
        values. For each value, both are those of the bound with the smaller margin."""
        sides = [-1.0 if sign[0] == "<" else 1.0 for sign, _ in self.bounds]
        far = [sign * (x - bound) for sign, (x, _, bound) in zip(sides, self._sides(values), strict=True)]
        sign = np.take(sides, np.argmin(far, axis=0)) * (np.sign(values) if self.absolute else 1.0)
        return np.min(far, axis=0), sign[:, None] * slopes

    def _sides(self, values: np.ndarray) -> list[tuple[np.ndarray, str, float]]:
        x = np.abs(values) if self.absolute else np.asarray(values)
        return [(x, sign, bound) for sign, bound in self.bounds]


def parse(text: str, quantities: Mapping[str, str]) -> Criterion:
    """The criterion that a sentence states. quantities: what each output measures ({"clearance": "length"}).

    Spaces and hyphens in the output's name count as underscores. Raises ValueError with the remedy.
    """
    form, two = _ONE.fullmatch(text), _TWO.fullmatch(text)
    found = two or form
    if found is None:
        raise ValueError(f'"{text}" is not a criterion; write {FORMS}')
    name = re.sub(r"[\s\-]+", "_", found["name"].strip())
    if name not in quantities:
        raise ValueError(f'"{text}": there is no output "{found["name"]}"; {choices(name, quantities, "outputs")}')
    measure = _unit(text, found["unit"], quantities[name])
    bounds = ((found["sign"], float(found["number"]) * measure.factor),)
    if two:
        lower = _unit(text, two["low_unit"], quantities[name]) if two["low_unit"] else measure
        low = float(two["low"]) * lower.factor
        if low >= bounds[0][1]:
            raise ValueError(f'"{text}": no number lies between {two["low"]} and {two["number"]}; exchange them')
        bounds = ((_MIRROR[two["low_sign"]], low), *bounds)
    absolute = bool(form and not two and form["bar"])
    if absolute and bounds[0][1] < 0:
        raise ValueError(f'"{text}": an absolute value is never negative; give a bound of zero or more')
    share = float(found["share"]) / 100 if found["share"] else 1.0
    if not 0 < share <= 1:
        raise ValueError(f'"{text}": the share of {found["share"]} % must be more than 0 % and at most 100 %')
    return Criterion(" ".join(text.split()), name, bounds, measure, absolute, share)


def _unit(text: str, name: str, quantity: str) -> Unit:
    try:
        return unit(name, quantity)
    except ValueError as error:
        if not name:
            error = ValueError(f"the unit is missing ({quantity}), {str(error).split('; ')[-1]}")
        raise ValueError(f'"{text}": {error}') from None
