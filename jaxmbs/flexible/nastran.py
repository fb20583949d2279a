"""Parts from external superelements of NASTRAN, read by pyYeti."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg

from jaxmbs.flexible.reduction import check_rigid, rigid_integrals, symmetric
from jaxmbs.model import ModelError
from jaxmbs.model.flexible import FlexiblePart


def from_nastran(
    assembly: str | Path,
    matrices: str | Path,
    *,
    frame: int | None = None,
    names: Mapping[str, int] | None = None,
    modes: int | None = None,
    length: float = 1.0,
    mass: float = 1.0,
) -> FlexiblePart:
    """The part of an external superelement (EXTSEOUT): assembly, its .asm file with the boundary grids; matrices, its .op4
    file with MXX and KXX. Needs pyYeti: pip install 'jaxmbs[nastran]'.

    frame: the boundary grid at which the floating frame is, None for the first; the frame's axes are those of the basic
    coordinate system. names: {name: grid} of the nodes, None for all boundary grids, named by their numbers. modes: the
    number of modes kept, those of lowest frequency; None for all. length [m], mass [kg]: of a unit of the model, such as
    0.0254 and 0.45359 for inches and pounds; forces are in the unit that follows from these and seconds, so that models
    with 386.1 as PARAM,WTMASS need mass = 175.127 (a pound-force times second² per inch).

    The matrices of a superelement do not say how its inertia changes as it deforms: the forces on the modes from a steady
    rotation, and those between modes in a body that rotates, are left out. Use such parts where they turn slowly.

    Raises ModelError for files that are missing or incomplete, and, with the figures, for matrices that are not
    symmetric or that resist a motion of the rigid body.
    """
    try:
        with np.printoptions():  # pyYeti changes how NumPy prints
            nastran: Any = importlib.import_module("pyyeti.nastran")
    except ImportError as error:
        raise ModelError(f"from_nastran needs pyYeti ({error}): pip install 'jaxmbs[nastran]'") from None
    try:
        table, _, boundary = nastran.asm2uset(str(assembly))
        found = nastran.op4.read(str(matrices))
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise ModelError(f"from_nastran: {str(assembly)!r} and {str(matrices)!r} cannot be read: {error}") from None
    if lacking := [name for name in ("mxx", "kxx") if name not in found]:
        raise ModelError(f"from_nastran: {str(matrices)!r} has no matrix {lacking[0].upper()}")
    M, K = symmetric("mass", found["mxx"]), symmetric("stiffness", found["kxx"])
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
    # units: shapes of unit modal mass are displacements per length times the root of a mass
    part = rigid_integrals(M, rigid, shapes)
    n, at = len(rest), [grids.index(g) for g in named.values()]
    axes = [rigid[6 * k : 6 * k + 3, :3].T for k in at]  # from the axes of each grid to those of the frame
    u, w = (np.array([R @ shapes[6 * k + c : 6 * k + c + 3] for R, k in zip(axes, at, strict=True)]) for c in (0, 3))
    zero: Any = np.zeros((n, n, 3))
    whole = FlexiblePart(
        mass=part["mass"] * mass,
        com=part["com"] * length,
        inertia=part["inertia"] * mass * length**2,
        frequency=np.sqrt(np.maximum(squared, 0.0)) / (2 * np.pi),
        momentum=part["momentum"] * mass**0.5,
        angular_momentum=part["angular_momentum"] * mass**0.5 * length,
        inertia_change=np.zeros((n, 3, 3)),
        coupling=zero,
        inertia_curvature=np.zeros((n, n, 3, 3)),
        nodes=tuple(named),
        positions=(table.to_numpy()[::6, 1:][at] - origin) * length,
        displacements=u / mass**0.5,
        rotations=w / (mass**0.5 * length),
    )
    return whole if modes is None else whole.keep(min(modes, whole.modes))
