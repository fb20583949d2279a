"""Distributions of a study file other than those with a formula: values with weights, measured data, mixtures."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from jaxmbs.io.columns import columns
from jaxmbs.io.tables import Numbers, Positive, Table, stated
from jaxmbs.study.distributions.base import (
    Components,
    Distribution,
    Lognormal,
    Normal,
    TruncatedNormal,
    Uniform,
    named,
    said,
)
from jaxmbs.study.distributions.laws import Law, Line, Mixed, Steps

_FEWEST = 2  # least number of measured values, and of parts of a mixture


class Discrete(Distribution):
    """One of several values, each with its weight."""

    distribution: Literal["discrete"] = named()
    values: Numbers = stated("list of numbers", "the values")
    weights: Numbers | None = stated(
        "list of numbers", "how often each occurs; all equally often by default", default=None
    )

    def components(self, neutral: np.ndarray, factor: float) -> Components:
        shares = _shares("weights", self.weights or (1.0,) * len(self.values), len(self.values))
        order = np.argsort(self.values, kind="stable")
        law = Steps(np.asarray(self.values)[order] * factor, shares[order])
        return Components.of_laws([law] * len(neutral))

    def in_words(self, unit: str = "") -> str:
        weights = f", weights {said(self.weights)}" if self.weights else ""
        return f"one of {said(self.values)}{unit}{weights}"


class Empirical(Distribution):
    """Measured values: columns of a CSV file next to the study, with a header line."""

    distribution: Literal["empirical"] = named()
    file: str = stated("file name", "CSV file beside this one, with names in its first line")
    columns: list[str] = stated(
        "list of names", "one column; or one for each component, and rows of the file are drawn whole"
    )
    between: bool = stated(
        "true or false", "whether to draw numbers between the measured ones too, every gap equally often", default=False
    )

    @property
    def whole_rows(self) -> bool:
        """Whether the numbers of one row are drawn together: one random number for all of them."""
        return len(self.columns) > 1 or bool(self.draw)

    def components(self, neutral: np.ndarray, factor: float) -> Components:
        k = len(neutral)
        if len(self.columns) not in (1, k):
            raise ValueError(
                f"columns = {self.columns} names {len(self.columns)}, but the target has {k} components; name {k}, or "
                "one"
            )
        if self.between and self.whole_rows:
            raise ValueError("between = true cannot be combined with rows that are drawn whole; leave out `between`")
        data = [x * factor for x in _measured(Path(self.file), self.columns)]
        m = len(data[0])
        laws: list[Law] = (
            [Steps(x, np.full(m, 1 / m)) for x in data]
            if self.whole_rows
            else [Line(np.sort(x)) if self.between else Steps(np.sort(x), np.full(m, 1 / m)) for x in data]
        )
        return Components.of_laws(laws * (k // len(laws)))

    def in_words(self, unit: str = "") -> str:
        between = ", and between them" if self.between else ", whole rows" if self.whole_rows else ""
        return f"measured: {', '.join(self.columns)} of {Path(self.file).name}{unit}{between}"


class Part(Table):
    """One distribution of a mixture."""

    weight: Positive = stated("number > 0", "how often the part is drawn, relative to the others")
    of: Annotated[Normal | TruncatedNormal | Uniform | Lognormal, Field(discriminator="distribution")] = stated(
        "table", "its distribution"
    )


class Mixture(Distribution):
    """Draws from one of several distributions, chosen at random: parts of different lots, or sound and weak parts."""

    distribution: Literal["mixture"] = named()
    parts: list[Part] = stated("list of tables", "the distributions, each with its weight")

    def components(self, neutral: np.ndarray, factor: float) -> Components:
        if len(self.parts) < _FEWEST:
            raise ValueError("parts has fewer than two distributions; write a table for each")
        for part in self.parts:
            own = part.of.model_fields_set & set(Distribution.model_fields) | part.of.model_fields_set & {"covariance"}
            if own:
                raise ValueError(f"`{min(own)}` of a part is a key of the mixture; write it beside `parts`")
        shares = _shares("weight", tuple(p.weight for p in self.parts), len(self.parts))
        rows = [part.of.components(neutral, factor) for part in self.parts]
        return Components.of_laws(
            [Mixed(Components.join([r.variate(i) for r in rows]), shares) for i in range(len(neutral))]
        )

    def in_words(self, unit: str = "") -> str:
        return f"mixture{unit}: " + "; ".join(f"{p.weight:g} of {p.of.in_words()}" for p in self.parts)


def any_distribution(known: Iterable[type]) -> Any:
    """Type annotation of a distribution's table: one of the distributions among the `known` classes."""
    found = [c for c in known if issubclass(c, Distribution) and c is not Distribution]
    return Annotated[functools.reduce(operator.or_, found), Field(discriminator="distribution")]


def _measured(path: Path, names: list[str]) -> list[np.ndarray]:
    """Columns of a CSV file. Raises ValueError with the line and the remedy."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f'file = "{path.name}" cannot be read from the folder of the study: {error}') from None
    return columns(content, path.name, names, fewest=_FEWEST)


def _shares(key: str, weights: tuple[float, ...], count: int) -> np.ndarray:
    shares = np.asarray(weights, float)
    if len(shares) != count:
        raise ValueError(f"{key} has {len(shares)} numbers, but there are {count} values; give one for each")
    if np.any(shares < 0) or not shares.sum() > 0:
        raise ValueError(f"{key} = {list(weights)}: weights must be zero or more, and not all zero")
    return shares / shares.sum()
