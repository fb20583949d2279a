"""The reduced model of a flexible body: what `Mechanism.add_flexible_body` adds to a mechanism."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.model.errors import ModelError

ROUNDING = 1e-10  # relative size below which a number of a part counts as zero, so that it costs nothing


@dataclass(frozen=True, eq=False)
class FlexiblePart:
    """A body that deforms by small amounts about a floating frame, as a sum of n modes of unit modal mass.

    mass [kg]; com (3,) [m] and inertia (3, 3) [kg m²] about it, undeformed; frequency (n,) [Hz], of each mode with the
    frame held; momentum (n, 3), angular_momentum (n, 3): the integrals of rho phi and rho x × phi over the body, with the
    modes phi; inertia_change (n, 3, 3): derivative of the inertia about the frame's origin with respect to each modal
    coordinate; coupling (n, n, 3): integrals of rho phi_k × phi_l; inertia_curvature (n, n, 3, 3): second derivatives of
    the inertia. nodes: names of the N frames to which other elements can be attached; positions (N, 3) [m]; displacements
    and rotations (N, 3, n): those of each node, for each mode. All in the axes of the floating frame.

    `jaxmbs.flexible` makes parts; `save` and `FlexiblePart.load` keep them in files.

    >>> part = mbs.flexible.beam(length=2.0, mass=1.5, bending=(40.0, 90.0), torsion=10.0, modes=4)
    >>> part.nodes, part.frequency.round(3).tolist()
    (('tip',), [1.022, 1.533, 6.403, 9.604])
    """

    mass: float
    com: np.ndarray
    inertia: np.ndarray
    frequency: np.ndarray
    momentum: np.ndarray
    angular_momentum: np.ndarray
    inertia_change: np.ndarray
    coupling: np.ndarray
    inertia_curvature: np.ndarray
    nodes: tuple[str, ...] = ()
    positions: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    displacements: np.ndarray = field(default_factory=lambda: np.zeros((0, 3, 0)))
    rotations: np.ndarray = field(default_factory=lambda: np.zeros((0, 3, 0)))

    def __post_init__(self) -> None:
        n, N = np.size(self.frequency), len(self.nodes)
        shapes = {
            "mass": (), "com": (3,), "inertia": (3, 3), "frequency": (n,), "momentum": (n, 3), "angular_momentum": (n, 3),
            "inertia_change": (n, 3, 3), "coupling": (n, n, 3), "inertia_curvature": (n, n, 3, 3), "positions": (N, 3),
            "displacements": (N, 3, n), "rotations": (N, 3, n),
        }  # fmt: skip
        for name, shape in shapes.items():
            given = np.asarray(getattr(self, name), float)
            if given.shape != shape:
                raise ModelError(f"flexible part: {name} has shape {given.shape}; {n} modes and {N} nodes need {shape}")
            if not np.isfinite(given).all():
                raise ModelError(f"flexible part: {name} has numbers that are not finite")
            object.__setattr__(self, name, float(given) if shape == () else given)
        object.__setattr__(self, "nodes", tuple(self.nodes))
        if len(set(self.nodes)) < N:
            raise ModelError(f"flexible part: nodes {self.nodes} have equal names; give them different names")
        if (np.asarray(self.frequency) < 0).any():
            raise ModelError("flexible part: a frequency is negative; pass frequencies of zero or more")
        low, *_, high = np.linalg.eigvalsh(self.mass_matrix)
        if low < -ROUNDING * high:
            raise ModelError(
                f"flexible part: the mass matrix of the frame and the modes is not positive (least eigenvalue {low:.3g}); "
                "the modes carry more momentum than the body's mass and inertia allow: check units and shape integrals"
            )

    @property
    def modes(self) -> int:
        """The number n of modes."""
        return len(self.frequency)

    @property
    def mass_matrix(self) -> np.ndarray:
        """(6 + n, 6 + n) of the undeformed part, for the angular and the linear velocity of the frame, and the rates of
        the modes."""
        s = _skew(self.mass * self.com)
        inertia = self.inertia - self.mass * _skew(self.com) @ _skew(self.com)
        rigid = np.block([[inertia, s], [s.T, self.mass * np.eye(3)]])
        U = np.concatenate([self.angular_momentum, self.momentum], axis=1)
        return np.block([[rigid, U.T], [U, np.eye(self.modes)]])

    @property
    def effective_mass(self) -> np.ndarray:
        """(n, 3): the share of the mass that each mode moves along each axis; its sum over all modes is at most one."""
        return self.momentum**2 / self.mass

    def keep(self, modes: int) -> FlexiblePart:
        """The part with only its first modes.

        >>> mbs.flexible.beam(1.0, 0.5, (20.0, 20.0), 5.0, modes=6).keep(modes=2).modes
        2
        """
        if not 0 < modes <= self.modes:
            raise ModelError(f"flexible part: {modes} of {self.modes} modes; keep 1 to {self.modes}")
        k = slice(modes)
        return replace(
            self, frequency=self.frequency[k], momentum=self.momentum[k], angular_momentum=self.angular_momentum[k],
            inertia_change=self.inertia_change[k], coupling=self.coupling[k, k],
            inertia_curvature=self.inertia_curvature[k, k], displacements=self.displacements[..., k],
            rotations=self.rotations[..., k],
        )  # fmt: skip

    def save(self, path: Any) -> None:
        """Write the part to the file `path` (.npz), one array for each field. `FlexiblePart.load` reads it."""
        arrays: dict[str, Any] = {f.name: np.asarray(getattr(self, f.name)) for f in fields(self)}
        np.savez_compressed(path, **arrays)

    @classmethod
    def load(cls, path: str | Path) -> FlexiblePart:
        """The part in the file `path`, which `save` wrote.

        Raises ModelError if the file is missing, is no such file, or holds numbers that do not fit together.
        """
        try:
            return cls.read(Path(path).read_bytes(), str(path))
        except OSError as error:
            raise ModelError(f"flexible part {str(path)!r} cannot be read: {error.strerror}") from None

    @classmethod
    def read(cls, content: bytes, name: str) -> FlexiblePart:
        """The part in the content of a file; name: that of the file, for messages. Raises ModelError as `load` does."""
        names = [f.name for f in fields(cls)]
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                if lacking := [n for n in names if n not in file]:
                    raise ModelError(f"flexible part {name!r}: the file has no {', '.join(lacking)}")
                found = {n: file[n] for n in names}
        except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
            raise ModelError(f"flexible part {name!r}: {error}; pass a file written by FlexiblePart.save") from None
        return cls(**found | {"nodes": tuple(map(str, found["nodes"]))})  # pyright: ignore[reportArgumentType]


def _skew(x: np.ndarray) -> np.ndarray:
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def cleaned(x: np.ndarray) -> np.ndarray:
    """The numbers, with those that are only rounding error set to zero."""
    return np.where(np.abs(x) > ROUNDING * np.abs(x).max(initial=0.0), x, 0.0)


def six(x: np.ndarray) -> np.ndarray:
    """(..., 6): xx, yy, zz, xy, xz, yz of symmetric matrices (..., 3, 3)."""
    return np.stack([x[..., i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))], axis=-1)


def shape_integrals(part: FlexiblePart, order: int) -> dict[str, Any]:
    """The fields of an `ElasticModes` joint. order: 1 leaves out the second derivatives of the inertia."""
    n = part.modes
    pairs = np.array([(k, l) for k in range(n) for l in range(k + 1, n)], int).reshape(-1, 2)
    upper = np.array([(k, l) for k in range(n) for l in range(k, n)], int)
    coupling = cleaned(part.coupling)[pairs[:, 0], pairs[:, 1]].reshape(-1)
    curvature = six(cleaned(part.inertia_curvature)[upper[:, 0], upper[:, 1]]).reshape(-1)
    return {
        "modes": n,
        "momentum": cleaned(part.momentum).reshape(-1),
        "angular_momentum": cleaned(part.angular_momentum).reshape(-1),
        "inertia_change": six(cleaned(part.inertia_change)).reshape(-1),
        "coupling": coupling if len(coupling) else (0.0,),
        "inertia_curvature": curvature if order == 2 else (0.0,),
    }
