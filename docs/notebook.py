"""Converts a page to a notebook: its code is in cells that can be run, and objects are shown as notebooks show them."""

from __future__ import annotations

import json
import re

FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```\n?', re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\([^)]+\)")
PRINTED = re.compile(r"^print\((\w+)\)$")


def notebook(page: str) -> str:
    """The notebook of a page, as the text of an .ipynb file.

    A cell that ends with `print(name)` shows the object instead. The output printed on the page is left out, because it
    appears when the cell is run. Commands and files become cells of IPython. Links become plain text.
    """
    cells, end = [], 0
    for m in FENCE.finditer(page):
        cells.append(_cell("markdown", page[end : m.start()]))
        cells.append(_cell("code", _code(*m.groups(default=""))))
        end = m.end()
    cells.append(_cell("markdown", page[end:]))
    kept = [{"id": f"cell-{k}", **c} for k, c in enumerate(c for c in cells if c["source"])]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": kept, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def _cell(kind: str, text: str) -> dict:
    text = (LINK.sub(r"\1", text) if kind == "markdown" else text).strip()
    own = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True), **own}


def _code(language: str, title: str, text: str) -> str:
    if title:
        return f"%%writefile {title}\n{text}"
    if language == "python":
        *lines, last = text.rstrip().splitlines()
        return "\n".join([*lines, PRINTED.sub(r"\1", last)])
    if language == "console":
        return "\n".join(f"!{line[2:]}" for line in text.splitlines() if line.startswith("$ jaxmbs "))
    return ""
