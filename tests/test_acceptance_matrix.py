"""Every cell of the acceptance matrix, and that its table in README.md is the current one."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from .acceptance import README, ROWS, both_derivatives, failures, flat, setting, with_table
from .cases import relative
from .mechanisms import KINDS

CELLS = [(row, kind) for kind in KINDS for row in ROWS]
SERVED = [(row, kind) for row, kind in CELLS if kind not in row.without]
REFUSED = [(row, kind) for row, kind in CELLS if kind in row.without]


def ids(cells):
    return [f"{row.name}-{kind}" for row, kind in cells]


@pytest.mark.parametrize(("row", "kind"), SERVED, ids=ids(SERVED))
def test_cell(row, kind):
    assert failures(row, kind) == []


@pytest.mark.parametrize(("row", "kind"), REFUSED, ids=ids(REFUSED))
def test_refused_cell_is_refused(row, kind):
    model, _, rows = setting(kind)
    with pytest.raises(ValueError):
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


@pytest.mark.parametrize("row", [r for r in ROWS if "Spherical" not in r.without], ids=lambda r: r.name)
def test_compiled_derivatives(row):
    compiled_derivatives(row, "Spherical")


@pytest.mark.slow
@pytest.mark.parametrize(("row", "kind"), SERVED, ids=ids(SERVED))
def test_compiled_derivatives_of_every_cell(row, kind):
    compiled_derivatives(row, kind)


def test_table_in_the_readme_is_current():
    text = README.read_text()
    assert with_table(text) == text, "run python -m tests.acceptance"
