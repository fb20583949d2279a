"""Criteria: sentences like "clearance > 0.02 m"."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jaxmbs.io.errors import choices
from jaxmbs.study.units import Unit, unit

_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_FORM = re.compile(
    r"\s*(?P<name>[A-Za-z_][\w\- ]*?)\s*(?P<sign><=|>=|<|>)"
    r"\s*(?P<number>[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?)\s*(?P<unit>.*?)\s*"
)


@dataclass(frozen=True)
class Criterion:
    """output `sign` bound, the bound in SI; `text` is what the file says, `unit` the unit it was written in."""

    text: str
    output: str
    sign: str
    bound: float
    unit: Unit

    def met(self, values: np.ndarray) -> np.ndarray:
        """(n,) bool for (n,) values in SI. A value that is not a number does not meet any criterion."""
        with np.errstate(invalid="ignore"):
            return _COMPARE[self.sign](values, self.bound)


def parse(text: str, quantities: Mapping[str, str]) -> Criterion:
    """Criterion of a sentence, given the quantity that each output measures ({"clearance": "length"}).

    Spaces and hyphens in the output's name count as underscores. Raises ValueError with the remedy.
    """
    form = _FORM.fullmatch(text)
    if form is None:
        raise ValueError(f'"{text}" is not a criterion; write NAME < NUMBER UNIT, as in "clearance > 0.02 m"')
    name = re.sub(r"[\s\-]+", "_", form["name"])
    if name not in quantities:
        raise ValueError(f'"{text}": there is no output "{form["name"]}"; {choices(name, quantities, "outputs")}')
    try:
        measure = unit(form["unit"], quantities[name])
    except ValueError as error:
        if not form["unit"]:
            error = ValueError(f"the unit is missing ({quantities[name]}), {str(error).split('; ')[-1]}")
        raise ValueError(f'"{text}": {error}') from None
    return Criterion(" ".join(text.split()), name, form["sign"], float(form["number"]) * measure.factor, measure)
