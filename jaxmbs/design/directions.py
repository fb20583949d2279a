"""Descriptions in words: of directions that stay undetermined, and of thickness and inertia that a design has lost."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.batching.compiling import compiled
from jaxmbs.design.problem import Prepared
from jaxmbs.dynamics.recursive import scalar

NAMED = 3  # number of directions that a message describes in words
COUNTS = 1e-3  # relative to the largest entry of a direction: smaller entries are left out
THIN = 1e-5  # relative to the largest extent of a body: a smaller extent counts as zero
LOST = 1e-8  # relative to the nominal inertia that a joint moves: a smaller inertia counts as lost
CONFIGURATIONS = 8


def in_words(prepared: Prepared, x: np.ndarray, flat: np.ndarray) -> tuple[str, ...]:
    """Directions (k, n) of the variables as changes of coordinates: "link.mass 1 kg with link.h_x -0.3 kg m"."""
    if not len(flat):
        return ()
    v = prepared.variables
    slopes = np.asarray(compiled(jax.jacfwd(v.place))(jnp.asarray(x[: v.size])))
    moves = flat[:, : v.size] @ slopes.T
    here = np.abs(v.coordinates_at(x))
    scale = np.maximum(here, np.abs(slopes).max(axis=1))
    scale = np.where(scale > 0, scale, 1.0)
    # directions with few entries are the easiest to read
    M, rows = moves / scale, []
    for _ in range(len(M)):
        row, k = np.unravel_index(int(np.argmax(np.abs(M))), M.shape)
        if np.abs(M[row, k]) <= COUNTS * np.abs(moves / scale).max():
            break
        pivot = M[row] / M[row, k]
        rows = [r - r[k] * pivot for r in rows] + [pivot]
        M = np.delete(M, row, axis=0)
        M = M - M[:, k : k + 1] * pivot
    said = []
    for row in rows:
        order = np.argsort(-np.abs(row), kind="stable")
        first = row[order[0]] * scale[order[0]]
        parts = [f"{v.coordinates[k].name} {row[k] * scale[k] / first:.4g} {v.coordinates[k].unit}".rstrip()
                 for k in order if abs(row[k]) > COUNTS * abs(row[order[0]])]  # fmt: skip
        said.append(" with ".join(parts))
    return tuple(said)


def lost(prepared: Prepared, parameters: dict[str, Any]) -> list[str]:
    """Messages about bodies with free inertia that have lost their extent in some direction, and then also about the
    joints that have no inertia left to move (these only for models without loops)."""
    found, model = [], prepared.setting.model
    for name in model.body_names:
        if f"{name}.inertia" not in parameters:
            continue
        I = np.asarray(parameters[f"{name}.inertia"], float)
        extents = np.sqrt(np.maximum(np.linalg.eigvalsh(np.trace(I) / 2 * np.eye(3) - I), 0.0))
        none = int(np.sum(extents <= THIN * extents[-1]))
        if none or extents[-1] == 0:
            shape = {1: "a plate without thickness", 2: "a needle without thickness"}.get(none, "a point")
            found.append(f"{name} has become {shape}")
    if found and model.nv and not model.structure.loops:
        changed = mbs.set(model, parameters)
        q = np.asarray(prepared.setting.configurations(CONFIGURATIONS))
        A, nominal = (np.array([np.diagonal(_mass_matrix(m, row)) for row in q]).mean(axis=0) for m in (changed, model))
        gone = np.flatnonzero(LOST * nominal >= A)
        joints = [j for j in model.joint_names if np.isin(np.arange(model.nv)[model.v_slice(j)], gone).any()]
        if joints:
            found.append(f"joints {', '.join(joints)} have no mass left to move: A(q) is singular")
    return [*found[:-1], found[-1] + "; prevent this with least_thickness, or with bounds"] if found else []


def _mass_matrix(model: mbs.Model, q: np.ndarray) -> np.ndarray:
    return np.array(scalar.mass_matrix(model, list(map(float, q))), float)
