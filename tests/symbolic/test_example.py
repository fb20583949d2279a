"""The example runs and prints what it promises."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "examples" / "written_out.py"


def run(*args):
    spec = importlib.util.spec_from_file_location("written_out_example", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, module.main(*args)


@pytest.mark.slow
def test_formulas_of_the_arm(capsys):
    _, found = run(("three-link arm [T 3]",))
    text = capsys.readouterr().out
    assert r"\begin{align*}" in text and "void mass_matrix(const double q[3]" in text
    assert "9+ 6* 0/ = 15 + 5" in text
    assert found["three-link arm [T 3]", "mass_matrix"].total == 15


@pytest.mark.slow
def test_table(capsys):
    module, found = run()
    text = capsys.readouterr().out
    assert all(name in text for name in module.ROBOTS)
    for name, counts in module.RECURSIONS.items():
        assert all(found[name, w].total < n for w, n in zip(module.WHATS, counts, strict=True))
