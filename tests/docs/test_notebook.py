"""Tutorials as notebooks: cells run one after another, and their last values have what a notebook shows."""

import ast
import json

import pytest

from docs.notebook import notebook
from tests.pages import ROOT


def cells(text, kind="code"):
    found = json.loads(text)
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5) and found["metadata"]["kernelspec"][
        "name"
    ] == "python3"
    assert len({c["id"] for c in found["cells"]}) == len(found["cells"])
    return ["".join(c["source"]) for c in found["cells"] if c["cell_type"] == kind]


def shown(cell, space):
    """What a cell shows: the value of its last line if that is an expression."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), space)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), space)


@pytest.mark.slow
def test_a_tutorial_runs_as_a_notebook(capsys):
    """Without a kernel; the model and the motion are shown in their own ways, errors and numbers are printed."""
    space, rich = {}, []
    for cell in cells(notebook((ROOT / "docs" / "tutorials" / "1-pendulum.md").read_text(encoding="utf-8"))):
        value = shown(cell, space)
        if value is not None:
            rich.append(value._repr_html_())
    assert len(rich) == 2 and "hinge: Revolute, 1" in rich[0] and "4001 rows" in rich[1] and "<svg" in rich[1]
    assert "is negative" in capsys.readouterr().out


def test_files_and_commands_become_cells():
    page = '# A [b](c.md)\n```toml title="a.toml"\n[x]\n```\n```console\n$ make x\n$ jaxmbs info a.toml\nsaid\n```\n'
    page += "```python\nx = 1\nprint(x)\n```\n```text\n1\n```\n![p](q.png)\n"
    text = notebook(page)
    assert cells(text) == ["%%writefile a.toml\n[x]", "!jaxmbs info a.toml", "x = 1\nx"]
    assert cells(text, "markdown") == ["# A b", "![p](q.png)"]
