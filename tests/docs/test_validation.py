"""The table of what results are compared with says what the tests demand, and the draft of the paper has it."""

import ast
import re

import pytest

from docs import layout, validation
from tests.pages import ROOT


def statements(row):
    """The code of the function that a row names, without comments and layout."""
    tree = ast.parse((ROOT / "tests" / row.file).read_text(encoding="utf-8"))
    (found,) = (x for x in tree.body if isinstance(x, ast.FunctionDef) and x.name == row.function)
    return [ast.unparse(x) for x in ast.walk(found) if isinstance(x, ast.stmt)]


@pytest.mark.parametrize("row", validation.ROWS, ids=lambda r: r.case)
def test_the_tests_demand_what_the_table_says(row):
    assert ast.unparse(ast.parse(row.demanded)) in statements(row), f"{row.file}: {row.function} demands something else"
    assert row.agreement.count("{}") == len(row.bounds) and all(x in row.demanded for x in row.bounds)


def test_a_bound_that_changed_is_noticed():
    row = validation.ROWS[0]
    assert ast.unparse(ast.parse(row.demanded.replace("1e-10", "1e-9"))) not in statements(row)


def test_the_paper_has_the_table_as_it_is_now():
    text = validation.PAPER.read_text(encoding="utf-8")
    assert validation.rewritten(text) == text, "write it again: python -m docs.validation"
    with pytest.raises(ValueError, match="the table belongs between"):
        validation.rewritten("no place")


def test_the_paper_has_the_speeds_of_the_manual():
    text = " ".join(validation.PAPER.read_text(encoding="utf-8").split())
    said = re.search(r"batch of ([\d,]+),.*? takes (\S+) ns .*? Pinocchio takes (\S+) ns and MuJoCo (\S+) ns", text)
    rows = [x.strip("| ").split(" | ") for x in (ROOT / "docs/performance.md").read_text(encoding="utf-8").splitlines()]
    (row,) = (x for x in rows if x[:4] == ["forward dynamics", "arm7", "float64", said[1]])
    peers = [re.search(rf"(?:^|, ){name} (\S+) \(", row[5])[1] for name in ("Pinocchio", "MuJoCo")]
    assert [said[2], said[3], said[4]] == [row[4], *peers]


def test_every_reference_of_the_paper_exists_and_is_used():
    text = validation.PAPER.read_text(encoding="utf-8")
    known = re.findall(
        r"^@\w+\{(\w+),", validation.PAPER.with_name("paper.bib").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(known) == len(set(known)) and set(re.findall(r"@(\w+)", text)) == set(known)


def test_the_paper_is_no_page_of_the_site():
    """Its citations are for another program."""
    assert "docs/paper/paper.md" not in layout.written()
