"""The numbers of a part as those of the joint with its elastic coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

ROUNDING = 1e-10  # relative size below which a number of a part counts as zero, so that it costs nothing


def skew(x: np.ndarray) -> np.ndarray:
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def cleaned(x: np.ndarray) -> np.ndarray:
    """The numbers, with those that are only rounding error set to zero."""
    return np.where(np.abs(x) > ROUNDING * np.abs(x).max(initial=0.0), x, 0.0)


def six(x: np.ndarray) -> np.ndarray:
    """(..., 6): xx, yy, zz, xy, xz, yz of symmetric matrices (..., 3, 3)."""
    return np.stack([x[..., i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))], axis=-1)


def upper_pairs(x: np.ndarray) -> np.ndarray:
    """The numbers of x (n, n, 3) for each pair of modes k <= l, one pair after the other."""
    upper = np.array([(k, l) for k in range(len(x)) for l in range(k, len(x))], int)
    return cleaned(x)[upper[:, 0], upper[:, 1]].reshape(-1)


def shape_integrals(part: Any, order: int) -> dict[str, Any]:
    """The fields of an `ElasticModes` joint for a part. order: 1 leaves out the second derivatives of the inertia."""
    n = part.modes
    pairs = np.array([(k, l) for k in range(n) for l in range(k + 1, n)], int).reshape(-1, 2)
    upper = np.array([(k, l) for k in range(n) for l in range(k, n)], int)
    coupling = cleaned(part.coupling)[pairs[:, 0], pairs[:, 1]].reshape(-1)
    moments = upper_pairs(part.moment_curvature)
    curvature = six(cleaned(part.inertia_curvature)[upper[:, 0], upper[:, 1]]).reshape(-1)
    return {
        "modes": n,
        "momentum": cleaned(part.momentum).reshape(-1),
        "angular_momentum": cleaned(part.angular_momentum).reshape(-1),
        "inertia_change": six(cleaned(part.inertia_change)).reshape(-1),
        "coupling": coupling if len(coupling) else (0.0,),
        "inertia_curvature": curvature if order == 2 else (0.0,),
        "moment_curvature": moments if np.any(moments) else (0.0,),
        "recovery": {name: rows.reshape(-1) for name, (rows, _) in part.recovery.items()},
        "recovery_units": ",".join(unit for _, unit in part.recovery.values()),
    }
