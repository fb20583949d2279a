"""Every cell of the acceptance matrix, and that its table in README.md is the current one."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.acceptance import README, ROWS, both_derivatives, failures, flat, setting, with_table
from tests.cases import relative
from tests.mechanisms import KINDS

CELLS = [(row, kind) for kind in KINDS for row in ROWS]
SERVED = [(row, kind) for row, kind in CELLS if kind not in row.without]
REFUSED = [(row, kind) for row, kind in CELLS if kind in row.without]


def cells(pairs, slow=False):
    marks = {True: pytest.mark.slow, False: ()}
    named = [
        pytest.param(row, kind, id=f"{row.name}-{kind}", marks=marks[slow or row.slow or kind not in row.usual])
        for row, kind in pairs
    ]
    return pytest.mark.parametrize(("row", "kind"), named)


@cells(SERVED)
def test_cell(row, kind):
    assert failures(row, kind) == []


@cells(REFUSED)
def test_refused_cell_is_refused(row, kind):
    model, _, rows = setting(kind)
    with pytest.raises(ValueError, match=row.method):
        row.fn(model, *rows[0])


def compiled_derivatives(row, kind):
    """Derivatives under jit and vmap together equal the uncompiled ones."""
    model, _, rows = setting(kind)
    f = flat(row, model)
    x = jnp.asarray(np.stack([np.concatenate(r) for r in rows]))
    directions = jnp.cos(jnp.arange(x.shape[1])), jnp.sin(1.0 + jnp.arange(jax.eval_shape(f, x[0]).size))
    both = jax.vmap(functools.partial(both_derivatives, f, *directions))
    with jax.disable_jit():
        want = both(x)
    for got, expected in zip(jax.jit(both)(x), want, strict=True):
        assert relative(got, expected) < 1e-11


@cells([(row, kind) for row, kind in SERVED if kind == "Spherical" and row.function != "simulate"])
def test_compiled_derivatives(row, kind):
    compiled_derivatives(row, kind)


@cells([(row, kind) for row, kind in SERVED if kind != "Spherical" or row.function == "simulate"], slow=True)
def test_compiled_derivatives_of_the_other_joints(row, kind):
    compiled_derivatives(row, kind)


def test_table_in_the_readme_is_current():
    text = README.read_text()
    assert with_table(text) == text, "run python -m tests.acceptance"
