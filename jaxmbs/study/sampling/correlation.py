"""Correlated draws: correlations of normal scores (a Gaussian copula), whatever the distributions are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf, erfinv

from jaxmbs.io.errors import InputError, Problem, choices, dotted
from jaxmbs.io.tables import Matrix, Table, stated
from jaxmbs.study.distributions.base import least_uniform, not_a_covariance

Array = Any


class CorrelationTable(Table):
    """Draws that are correlated."""

    draws: list[str] = stated(
        "list of names", 'dispersions, or components of one ("stage.com[0]"), in the order of the rows'
    )
    matrix: Matrix = stated("list of rows", "correlations, ones on the diagonal")
    kind: Literal["normal", "rank"] = stated(
        "normal | rank",
        "of what: of the normal scores (of the numbers themselves where they are normal), or Spearman's of the ranks",
        default="normal",
    )


def factor(
    tables: Sequence[CorrelationTable], own: Mapping[str, np.ndarray], names: Sequence[str], loose: Mapping[str, str]
) -> np.ndarray | None:
    """(m, m) lower triangular L: if z are independent scores, L z are the correlated scores of the m inputs `names`;
    None if all inputs are independent.

    own: correlations between the components of one dispersion, from its covariance, {"stage.com": (k, k)}; loose:
    inputs that cannot be correlated, with the reason. Raises InputError.
    """
    C, problems = np.eye(len(names)), []
    place = {name: i for i, name in enumerate(names)}
    for name, c in own.items():
        at = [place[f"{name}[{i}]"] for i in range(len(c))]
        C[np.ix_(at, at)] = c
    taken: dict[str, str] = {
        f"{name}[{i}]": f"its covariance in {name}" for name, c in own.items() for i in range(len(c))
    }
    for number, table in enumerate(tables):
        where = dotted(("correlations", number))
        found = list(_problems(table, place, taken, loose))
        problems += [Problem(f"{where}.{key}", said) for key, said in found]
        if found:
            continue
        c = np.asarray(table.matrix)
        if table.kind == "rank":
            c = 2 * np.sin(np.pi / 6 * c)  # exact for a Gaussian copula
            np.fill_diagonal(c, 1.0)
            if np.linalg.eigvalsh(c)[0] < -1e-9:
                problems.append(
                    Problem(
                        f"{where}.matrix",
                        "no correlations of normal scores give these rank correlations; make them smaller",
                    )
                )
                continue
        at = [place[name] for name in table.draws]
        C[np.ix_(at, at)] = c
        taken |= dict.fromkeys(table.draws, where)
    if problems:
        raise InputError(problems)
    return None if np.array_equal(C, np.eye(len(names))) else _triangle(C)


def _problems(
    table: CorrelationTable, place: Mapping[str, int], taken: Mapping[str, str], loose: Mapping[str, str]
) -> Any:
    m, c = len(table.draws), np.asarray(table.matrix)
    for name in table.draws:
        if name not in place:
            yield "draws", f'there is no draw "{name}"; {choices(name, place, "draws")}'
        elif name in taken:
            yield "draws", f"{name} is in {taken[name]} already; write one matrix for all draws that are correlated"
        elif name in loose:
            yield "draws", f"{name}: {loose[name]}"
    if len(set(table.draws)) < m:
        yield "draws", "a name appears twice; leave one out"
    if c.shape[0] != m:
        yield "matrix", f"has {c.shape[0]} rows for {m} draws; give {m} rows of {m}"
    elif not np.allclose(np.diag(c), 1.0) or np.any(np.abs(c) > 1):
        yield (
            "matrix",
            "correlations lie between -1 and 1, with 1 on the diagonal; give standard deviations in the dispersions",
        )
    else:
        said = not_a_covariance(c)
        if said:
            yield "matrix", said


def _triangle(C: np.ndarray) -> np.ndarray:
    """Lower triangular L with L Lᵀ = C, computed row by row; C may be singular."""
    n = len(C)
    L = np.zeros_like(C)
    for i in range(n):
        for j in range(i + 1):
            rest = C[i, j] - L[i, :j] @ L[j, :j]
            L[i, j] = np.sqrt(max(rest, 0.0)) if i == j else (rest / L[j, j] if L[j, j] > 1e-7 else 0.0)
    return L


def coupled(s: Array, L: np.ndarray, dtype: Any) -> Array:
    """(m,) correlated numbers in (-1, 1) from independent ones s (m,)."""
    least = least_uniform(dtype)
    rows = np.flatnonzero((np.eye(len(L)) != L).any(1))  # the others stay as they are, bit for bit
    z = np.sqrt(2).astype(dtype) * erfinv(jnp.clip(s, least, -least))
    mixed = (L[rows].astype(dtype) * z[None, :]).sum(
        1
    )  # a sum along rows, since the rounding of a matrix product depends on its size
    return s.at[rows].set(jnp.clip(erf(mixed / np.sqrt(2).astype(dtype)), least, -least))
