"""The cells of the acceptance matrix, what the default leaves of them, and that README.md has its current table."""

import itertools

import pytest

from tests.acceptance import CHECKS, README, ROWS, chosen, failures, setting, with_table
from tests.mechanisms import KINDS

SERVED = [(row, kind) for row in ROWS for kind in row.kinds]
REFUSED = [(row, kind) for row in ROWS for kind in row.without]
DEFAULT = [(*cell, check) for cell in SERVED for check in chosen(*cell)]
OTHERS = [(*cell, check) for cell in SERVED for check in CHECKS if check not in chosen(*cell)]


def over(cells):
    named = [
        pytest.param(row, kind, *more, id="-".join([row.name, kind, *sum(more, ())])) for row, kind, *more in cells
    ]
    return pytest.mark.parametrize(("row", "kind", *(["check"] if len(cells[0]) == 3 else [])), named)


@over(DEFAULT)
def test_cell(row, kind, check):
    assert failures(row, kind, *check) == []


@pytest.mark.slow
@over(OTHERS)
def test_rest_of_the_cell(row, kind, check):
    assert failures(row, kind, *check) == []


@pytest.mark.slow
@pytest.mark.interpreted
@over(DEFAULT)
def test_cell_that_is_not_compiled(row, kind, check):
    assert failures(row, kind, *check) == []


@over(REFUSED)
def test_refused_cell_is_refused(row, kind):
    model, _, states = setting(kind)
    with pytest.raises(ValueError, match=row.method):
        row.fn(model, *states[0])


def test_the_default_leaves_no_pair_out():
    """Every function meets every joint type that it serves; it, and every joint type, every mode in every dtype. Rows that
    take long do so with --slow."""
    whole = [row for row in ROWS if row.quick is None]
    assert {(row, kind) for row, kind, _ in DEFAULT if row in whole} == {cell for cell in SERVED if cell[0] in whole}
    assert {(row, check) for row, _, check in DEFAULT if row in whole} == set(itertools.product(whole, CHECKS))
    assert {(kind, check) for _, kind, check in DEFAULT} == set(itertools.product(KINDS, CHECKS))


def test_table_in_the_readme_is_current():
    text = README.read_text(encoding="utf-8")
    assert with_table(text) == text, "run python -m tests.acceptance"
