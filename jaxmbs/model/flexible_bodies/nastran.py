"""Parts from external superelements of NASTRAN, read by pyYeti."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg

from jaxmbs.model.errors import ModelError
from jaxmbs.model.flexible_bodies.beams import positive
from jaxmbs.model.flexible_bodies.checks import LOOSE, check_resisted, check_rigid, symmetric
from jaxmbs.model.flexible_bodies.recovery import Recovery, named
from jaxmbs.model.flexible_bodies.reduction import nodes_of, rigid_integrals

NAMES = {"mass": re.compile("mxx|m?maa"), "stiffness": re.compile("kxx|m?kaa")}  # beginnings of names; m?: in .op2


def superelement(
    assembly: str | Path,
    matrices: str | Path,
    *,
    frame: int | None,
    names: Mapping[str, int] | None,
    length: float,
    mass: float,
    recovery: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The fields of a part with all modes: see `Part.from_nastran`."""
    positive("from_nastran", length=length, mass=mass)
    try:
        with np.printoptions():  # pyYeti changes how NumPy prints
            nastran: Any = importlib.import_module("pyyeti.nastran")
    except ImportError as error:
        raise ModelError(f"from_nastran needs pyYeti ({error}): pip install 'jaxmbs[nastran]'") from None
    try:
        table, _, boundary = nastran.asm2uset(str(assembly))
        found = _matrices(nastran, Path(matrices), table)
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise ModelError(f"from_nastran: {str(assembly)!r} and {str(matrices)!r} cannot be read: {error}") from None
    M, K = symmetric("mass", found["mass"]), symmetric("stiffness", found["stiffness"])
    table = table.iloc[np.flatnonzero(boundary)]
    grids = [int(x) for x in table.index.get_level_values("id")[::6]]
    size = 6 * len(grids)
    if len(table) != size or M.shape != K.shape or len(M) < size:
        raise ModelError(
            f"from_nastran: {len(table)} degrees of freedom at the boundary grids {grids}, matrices {M.shape} and "
            f"{K.shape}; all six of each grid must be in the boundary"
        )
    named = {str(g): g for g in grids} if names is None else dict(names)
    frame = grids[0] if frame is None else frame
    for name, grid in (*named.items(), ("frame", frame)):
        if grid not in grids:
            raise ModelError(f"from_nastran: {name!r} is grid {grid}; the boundary grids are {grids}")
    origin = table.to_numpy()[6 * grids.index(frame), 1:]
    rigid = np.zeros((len(M), 6))
    rigid[:size] = nastran.rbgeom_uset(table, origin)
    check_rigid(K, rigid)
    rest = np.array([k for k in range(len(M)) if not 6 * grids.index(frame) <= k < 6 * grids.index(frame) + 6])
    try:
        squared, own = scipy.linalg.eigh(K[np.ix_(rest, rest)], M[np.ix_(rest, rest)])
    except np.linalg.LinAlgError:
        raise ModelError("from_nastran: the mass matrix is not positive; give the boundary grids mass") from None
    shapes = np.zeros((len(M), len(rest)))
    shapes[rest] = own
    squared[np.abs(squared) <= LOOSE * squared[-1]] = 0.0  # rounding
    check_resisted(K, shapes, squared)
    # units: shapes of unit modal mass are displacements per length times the root of a mass
    part = rigid_integrals(M, rigid, shapes)
    n, at = len(rest), [grids.index(g) for g in named.values()]
    axes = [rigid[6 * k : 6 * k + 3, :3].T for k in at]  # from the axes of each grid to those of the frame
    u, w = (np.array([R @ shapes[6 * k + c : 6 * k + c + 3] for R, k in zip(axes, at, strict=True)]) for c in (0, 3))
    moved = [np.concatenate(pair) for pair in zip(u / mass**0.5, w / (mass**0.5 * length), strict=True)]
    return nodes_of(named, (table.to_numpy()[::6, 1:][at] - origin) * length, moved) | {
        "mass": part["mass"] * mass,
        "com": part["com"] * length,
        "inertia": part["inertia"] * mass * length**2,
        "frequency": np.sqrt(squared) / (2 * np.pi),
        "momentum": part["momentum"] * mass**0.5,
        "angular_momentum": part["angular_momentum"] * mass**0.5 * length,
        "inertia_change": np.zeros((n, 3, 3)),
        "coupling": np.zeros((n, n, 3)),
        "inertia_curvature": np.zeros((n, n, 3, 3)),
        "recovery": _recovered(nastran, Path(matrices), recovery, shapes, length, mass),
    }


def _recovered(
    nastran: Any, path: Path, given: Mapping[str, Any] | None, shapes: np.ndarray, length: float, mass: float
) -> Recovery:
    """Rows of output transformation matrices, for the modes and in SI. Displacements per modal coordinate are in 1/sqrt of
    the unit of mass, and the unit of force is mass length/s²."""
    units = {"Pa": 1 / length**2, "N": 1.0, "N m": length, "m": 1 / mass, "": 1 / (mass * length)}
    read = nastran.op4.read(str(path)) if given and path.suffix.lower() == ".op4" else {}
    found: Recovery = {}
    for name, (matrix, rows, unit) in named(given or {}, 3, "(matrix, rows, unit)"):
        whole = np.atleast_2d(read.get(str(matrix).lower(), np.zeros((0, 0))))
        if whole.shape[1] != len(shapes):
            fit = [f"{key} {x.shape}" for key, x in read.items() if np.ndim(x) == 2 and x.shape[1] == len(shapes)]
            raise ModelError(
                f"from_nastran: recovery {name!r}: {str(path)!r} has no matrix {matrix!r} with {len(shapes)} columns; those "
                f"of its .op4 file are {', '.join(fit) or 'none'}"
            )
        at = range(len(whole)) if rows is None else list(rows)
        if not all(isinstance(k, int) and 0 <= k < len(whole) for k in at):
            raise ModelError(
                f"from_nastran: recovery {name!r}: {matrix!r} has rows 0 to {len(whole) - 1}, not {rows!r}"
            )
        if unit not in units:
            raise ModelError(
                f"from_nastran: recovery {name!r}: unit {unit!r}; choose from {', '.join(map(repr, units))}"
            )
        found[name] = (whole[at] @ shapes * mass**0.5 * units[unit], unit)
    return found


def _matrices(nastran: Any, path: Path, table: Any) -> dict[str, np.ndarray]:
    """mass and stiffness in the order of the table of degrees of freedom. Raises ModelError if the file lacks one."""
    direct = path.suffix.lower() != ".op4"  # a matrix with the names of its rows (DMIG)
    read = nastran.rddmig(str(path)) if direct else nastran.op4.read(str(path))
    found = {}
    for what, pattern in NAMES.items():
        named = [name for name in read if pattern.match(name)]
        if len(named) != 1:
            wanted = {"mass": "MAA or MXX", "stiffness": "KAA or KXX"}[what]
            several = f"several matrices of {what}, {', '.join(named)}" if named else f"no matrix {wanted}"
            raise ModelError(f"from_nastran: {str(path)!r} has {several}")
        matrix = read[named[0]]
        if direct:
            if strange := [row for row in matrix.index if row not in table.index]:
                raise ModelError(
                    f"from_nastran: {named[0].upper()} in {str(path)!r} has grid or scalar point {strange[0][0]}, degree of "
                    f"freedom {strange[0][1]}, which the assembly lacks"
                )
            matrix = matrix.reindex(index=table.index, columns=table.index, fill_value=0.0).to_numpy(float)
        found[what] = np.asarray(matrix)
    return found
