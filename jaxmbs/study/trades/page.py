"""The page of a trade study: a table and pictures for every criterion and output."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from jaxmbs.study.reports.page_style import document, panel, picture, table_of_texts
from jaxmbs.study.trades import pictures
from jaxmbs.study.trades.terminal import failed_said, share_rows, value_rows

Axis = tuple[str, list[float]] | None


def page(found: dict[str, Any], axis: Axis = None) -> str:
    """The HTML text of the page. found: the trade study as plain data; axis: the parameter that alone distinguishes the
    designs and its number in each, if there is one: then the pictures are curves."""
    count = len(found["designs"])
    title = f"{escape(found['study'])}: trade study"
    lead = f"{count} designs, {found['samples']:,} samples of each with the same draws, seed {found['seed']}"
    parts = [
        f"<h1>{title}</h1><p class=lead>{lead}; baseline: {escape(found['baseline'])}</p>",
        *(f"<div class=banner>{escape(line)}</div>" for line in failed_said(found)),
        *(f"<p class=note>{escape(line[0].upper() + line[1:])}.</p>" for line in found["notes"]),
        "<h2>Designs, SI</h2>" + panel(_designs(found)),
        *(_criterion(c, axis) for c in found["criteria"]),
        *(_output(o, axis) for o in found["outputs"]),
    ]
    return document(title, "".join(parts))


def _designs(found: dict[str, Any]) -> str:
    names = list(dict.fromkeys(name for d in found["designs"] for name in d["values"]))
    rows = [(d["design"], *(_said(d["values"].get(name)) for name in names), d["folder"]) for d in found["designs"]]
    return table_of_texts(("design", *names, "folder"), rows)


def _said(x: Any) -> str:
    return "as in the study" if x is None else f"{x:.9g}" if isinstance(x, float) else str(x)


def _criterion(c: dict[str, Any], axis: Axis) -> str:
    share = [(100 * r["share"], 100 * r["low"], 100 * r["high"]) for r in c["designs"]]
    change = [tuple(100 * x for x in _change(r)) for r in c["designs"]]
    seen = _pictures(c, axis, (share, "met [%]"), (change, "difference [points]"))
    return f"<h2>{escape(c['text'])}</h2>{seen}{panel(table_of_texts(*share_rows(c)), 'long')}"


def _output(o: dict[str, Any], axis: Axis) -> str:
    unit = f" [{o['unit']}]" if o["unit"] else ""
    name = o["output"].replace("_", " ")
    values = [(r["median"], r["quantiles"]["0.05"], r["quantiles"]["0.95"]) for r in o["designs"]]
    seen = _pictures(
        o, axis, (values, f"median, 5 % to 95 %{unit}"), ([*map(_change, o["designs"])], f"mean difference{unit}")
    )
    return f"<h2>{escape(name)}</h2>{seen}{panel(table_of_texts(*value_rows(o)), 'long')}"


def _change(row: dict[str, Any]) -> tuple[float, ...]:
    """Difference from the baseline with the ends of its interval; zero for the baseline itself."""
    return tuple(row[k] for k in ("difference", "difference_low", "difference_high")) if "said" in row else (0.0,) * 3


def _pictures(x: dict[str, Any], axis: Axis, *shown: tuple[list[tuple[float, ...]], str]) -> str:
    names = [r["design"] for r in x["designs"]]
    made = [
        picture(
            pictures.curve(axis[1], axis[0], np.array(rows), label, zero=k > 0)
            if axis
            else pictures.dots(names, np.array(rows), label, zero=k > 0)
        )
        for k, (rows, label) in enumerate(shown)
    ]
    return f"<div class=grid>{''.join(made)}</div>"
