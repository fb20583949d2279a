"""Dispersions in words: descriptions by the library, and the comments in the study file."""

from __future__ import annotations

import re
from pathlib import Path

from jaxmbs.model.fields import type_name
from jaxmbs.study.distributions.base import Distribution, Lognormal, Normal, TruncatedNormal, Uniform
from jaxmbs.study.distributions.tables import Discrete, Empirical, Mixture
from jaxmbs.study.sampling.dispersions import Dispersion


def said(x: object) -> str:
    """A number, or several separated by commas, as text."""
    return ", ".join(f"{v:g}" for v in x) if isinstance(x, tuple) else f"{x:g}"


def described(d: Dispersion) -> str:
    """The distribution in words, in the file's unit."""
    t, unit = d.table, f" {d.table.unit}" if d.table.unit else ""

    if isinstance(t, Discrete):
        weights = f", weights {said(t.weights)}" if t.weights else ""
        text = f"one of {said(t.values)}{unit}{weights}"
    elif isinstance(t, Empirical):
        between = ", and between them" if t.between else ", whole rows" if t.whole_rows else ""
        text = f"measured: {', '.join(t.columns)} of {Path(t.file).name}{unit}{between}"
    elif isinstance(t, Mixture):
        text = f"mixture{unit}: " + "; ".join(f"{p.weight:g} of {_plain(p.of)}" for p in t.parts)
    else:
        text = _plain(t, unit)
    return (
        text
        + (", common" if t.common else "")
        + (", known on the day" if t.known else "")
        + (f", same draws as all of {t.draw}" if t.draw else "")
    )


def _plain(t: Distribution, unit: str = "") -> str:
    """Describes a distribution with a formula, or one of a user's class."""
    if isinstance(t, Uniform):
        text = f"uniform, {said(t.low)} to {said(t.high)}{unit}"
    elif isinstance(t, Lognormal):
        median = f", median {said(t.median)}{unit}" if t.median is not None else ""
        text = f"lognormal, sigma {said(t.sigma)}{median}"
    elif not isinstance(t, (Normal, TruncatedNormal)):  # a user's distribution
        own = {k: getattr(t, k) for k in type(t).model_fields if k not in (*Distribution.model_fields, "distribution")}
        values = (f"{k} {said(x) if isinstance(x, float) else x}" for k, x in own.items())
        text = ", ".join([type_name(type(t)), *values]) + unit
    else:
        mean = f"mean {said(t.mean)}, " if t.mean is not None else ""
        width = f"covariance {[list(row) for row in t.covariance]}" if isinstance(t, Normal) and t.covariance else ""
        text = f"{t.distribution.replace('_', ' ')}, {mean}{width or f'std {said(t.std)}'}{unit}"
        if isinstance(t, TruncatedNormal):
            text += "".join(f", {k} {said(x)}" for k, x in (("low", t.low), ("high", t.high)) if x is not None)
    return text


_HEADER = re.compile(r"""^\s*\[dispersions\.(?:"([^"]+)"|'([^']+)'|([\w\-]+))\]\s*(#.*)?$""")


def said_in_the_file(content: bytes) -> dict[str, str]:
    """The comments at the ends of the lines in each dispersion's table, which may state where its numbers come from."""
    found: dict[str, list[str]] = {}
    name = None
    for line in content.decode(errors="replace").splitlines():
        header = _HEADER.match(line)
        if header or line.lstrip().startswith("["):
            name = next(filter(None, header.groups()[:3]), None) if header else None
        comment = re.search(r"""^(?:[^"'#]|"[^"]*"|'[^']*')*#\s*(.*)$""", line)
        if name and comment and not line.lstrip().startswith("# -") and not line.lstrip().startswith("#"):
            found.setdefault(name, []).append(comment[1].strip())
    return {name: "; ".join(dict.fromkeys(x)) for name, x in found.items()}
