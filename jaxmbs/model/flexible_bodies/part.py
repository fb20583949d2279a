"""The reduced model of a flexible body: what `Mechanism.add_flexible_body` adds to a mechanism."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.flexible_bodies import recovery as recoveries
from jaxmbs.model.flexible_bodies.bounds import check_integrals
from jaxmbs.model.flexible_bodies.integrals import ROUNDING, skew

# Constructors import what they compute with when they are called: SciPy takes as long to import as all of the package.


@dataclass(frozen=True, eq=False)
class Part:
    """A body that deforms by small amounts about a floating frame, as a sum of n modes of unit modal mass.

    mass [kg]; com (3,) [m], and inertia (3, 3) [kg m²] about it, of the undeformed part; frequency (n,) [Hz], of each mode
    with the frame held; momentum (n, 3), angular_momentum (n, 3): the integrals of rho phi and rho x × phi over the body,
    with the modes phi; inertia_change (n, 3, 3): derivative of the inertia about the frame's origin with respect to each
    modal coordinate; coupling (n, n, 3): integrals of rho phi_k × phi_l; inertia_curvature (n, n, 3, 3): second derivatives
    of the inertia. nodes: names of the N frames to which other elements can be attached; positions (N, 3) [m];
    displacements and rotations (N, 3, n): those of each node, for each mode. Parts with displacements of second order have
    moment_curvature (n, n, 3), the second derivatives of mass times com, and shortening (N, 3, n, n), those of the
    displacement of each node; other parts have zeros, or empty arrays, which mean the same. All in the axes of the floating
    frame. recovery: {name: (rows (m, n), SI unit)}, what follows from the modal coordinates, such as stresses; the output
    `ModalRecovery` names it.

    `beam`, `plate`, `from_matrices` and `from_nastran` make parts; `save` and `load` keep them in files.

    Raises ModelError for numbers whose shapes do not fit together, that are not finite, or that no body can have, which is
    usually so when units are mixed. Warns of nodes much farther from the body, or nearer its centre, than its inertia
    suggests.

    >>> part = mbs.Part.beam(length=2.0, mass=1.5, bending=(40.0, 90.0), torsion=10.0, modes=4)
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
    moment_curvature: np.ndarray = field(default_factory=lambda: np.zeros(0))
    shortening: np.ndarray = field(default_factory=lambda: np.zeros(0))
    recovery: Mapping[str, tuple[np.ndarray, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.nodes, str) or not all(isinstance(name, str) and name for name in self.nodes):
            raise ModelError(f"flexible part: nodes are {self.nodes!r}; pass a list of names")
        object.__setattr__(self, "nodes", tuple(self.nodes))
        if "modes" in self.nodes or len(set(self.nodes)) < len(self.nodes):
            raise ModelError(f"flexible part: nodes {self.nodes}; give them different names, none of them 'modes'")
        for name, shape in _shapes(np.size(self.frequency), len(self.nodes)).items():
            object.__setattr__(self, name, _checked(name, getattr(self, name), shape))
        object.__setattr__(self, "recovery", recoveries.checked(self.recovery, self.modes))
        if (self.frequency < 0).any():
            raise ModelError("flexible part: a frequency is negative; pass frequencies of zero or more")
        if not self.mass > 0:
            raise ModelError(f"flexible part: mass is {self.mass!r} kg; it must be more than zero")
        for name, turned, of in (
            ("inertia", self.inertia.T, "its transpose"),
            ("inertia_change", self.inertia_change.swapaxes(1, 2), "the transposes of its matrices"),
            ("inertia_curvature", self.inertia_curvature.swapaxes(2, 3), "the transposes of its matrices"),
            ("inertia_curvature", self.inertia_curvature.swapaxes(0, 1), "itself with two modes exchanged"),
            ("moment_curvature", self.moment_curvature.swapaxes(0, 1), "itself with two modes exchanged"),
            ("shortening", self.shortening.swapaxes(2, 3), "itself with two modes exchanged"),
            ("coupling", -self.coupling.swapaxes(0, 1), "minus itself with two modes exchanged"),
        ):
            given = getattr(self, name)
            off = np.abs(given - turned).max(initial=0.0)
            if off > SYMMETRY * np.abs(given).max(initial=0.0):
                raise ModelError(f"flexible part: {name} differs from {of} by {off:.3g}")
        low, *_, high = np.linalg.eigvalsh(self.mass_matrix)
        if low < -ROUNDING * high:
            raise ModelError(
                f"flexible part: the mass matrix of the frame and the modes is not positive (least eigenvalue {low:.3g}); "
                "the modes carry more momentum than the body's mass and inertia allow: check units and shape integrals"
            )
        check_integrals(self)

    @classmethod
    def beam(
        cls,
        length: float,
        mass: float,
        bending: tuple[float, float],
        torsion: float,
        *,
        tension: float | None = None,
        gyration: tuple[float, float] | None = None,
        modes: int = 6,
        elements: int = 20,
        attach: Sequence[str] = ("tip",),
        stations: Mapping[str, float] | None = None,
        sections: Mapping[str, float] | None = None,
        free: bool = False,
        foreshortening: bool = False,
    ) -> Part:
        """A straight slender Euler-Bernoulli beam along x, from its root, where the floating frame is, to the node "tip".

        length [m]; mass [kg]; bending: (EI_y, EI_z) [N m²], the stiffness against bending in the planes xz and xy;
        torsion: GJ [N m²]; tension: EA [N], None for 1e4 times the larger bending stiffness over length²; gyration:
        (r_y, r_z) [m], radii of gyration of the cross-section about y and z, whose rotary inertia acts on torsion alone;
        None: 1 % of the length. modes: the number kept, those of lowest frequency; of two with the same frequency, the one
        in the plane xz comes first, and it alone is kept if the number ends between them. elements: finite elements (cubic
        in bending); attach: the nodes that other elements may be attached to, of "root" and "tip"; stations: {name: place}
        of further nodes, which move with the beam, for shapes, outputs and light things; place: 0 at the root, 1 at the
        tip, rounded to a node of the finite elements. sections: {name: place} of cross-sections, 0 to less than 1, whose
        torque and bending moments [N m] are the recoveries "<name>_torque", "<name>_moment_y" and "<name>_moment_z": what
        the beam beyond exerts on the section, along the axes of the floating frame. free: the modes are those of the free
        beam instead, and the floating frame is at its centre. foreshortening: a bent beam becomes shorter, in the second
        order, so that forces along it change its stiffness against bending: tension stiffens it, as in a beam that spins;
        such a body needs order=2.

        Raises ModelError for numbers that are not positive, and names that are not nodes.

        >>> part = mbs.Part.beam(length=2.0, mass=1.5, bending=(40.0, 90.0), torsion=10.0, modes=2)
        >>> f = 1.875104**2 / (2 * jnp.pi * 2.0**2) * jnp.sqrt(40.0 / (1.5 / 2.0))  # of Euler and Bernoulli
        >>> print(part.frequency[0].round(4), f.round(4))
        1.0216 1.0216
        """
        from jaxmbs.model.flexible_bodies.beams import beam

        return cls(**beam(
            length, mass, bending, torsion, tension=tension, gyration=gyration, modes=modes, elements=elements,
            attach=attach, stations=stations, sections=sections, free=free, foreshortening=foreshortening,
        ))._lowest(modes)  # fmt: skip

    @classmethod
    def plate(
        cls,
        length: float,
        width: float,
        mass: float,
        stiffness: float,
        *,
        poisson: float = 0.3,
        root: str = "edge",
        modes: int = 6,
        elements: tuple[int, int] = (12, 8),
        attach: Mapping[str, tuple[float, float]] | None = None,
        stations: Mapping[str, tuple[float, float]] | None = None,
    ) -> Part:
        """A thin rectangular Kirchhoff plate in the plane xy, such as a solar panel: x along its length from the root, y
        across it from the middle.

        length, width [m]; mass [kg]; stiffness [N m]: D of the plate against bending, E h³/(12 (1 - poisson²)) of a solid
        one; in its plane the plate is nearly rigid. root: "edge", the edge at x = 0 is rigid and fixed in the floating
        frame, which is at its middle; "point", only the middle of this edge is; "free", the modes are those of the free
        plate, and the frame is at its centre. modes: the number kept, those of lowest frequency. elements: finite elements
        along its length and across, the latter an even number. attach: {name: place} of the nodes that other elements may be
        attached to; place: fractions of the length, 0 at the root to 1, and of the width, -0.5 to 0.5, rounded to a node of
        the finite elements; None: {"tip": (1, 0)}. stations: {name: place} of further nodes, which move with the plate, for
        shapes, outputs and light things. Forces in the plane of the plate do not change its stiffness, so that a plate that
        spins is not stiffened (no geometric stiffening).

        Raises ModelError for numbers that are not positive, an odd number of elements across, and places that are not on the
        plate.

        >>> part = mbs.Part.plate(length=1.0, width=1.0, mass=1.0, stiffness=1.0, modes=2)
        >>> (2 * jnp.pi * part.frequency).round(2).tolist()  # Leissa (1973): 3.49, 8.52
        [3.49, 8.48]
        """
        from jaxmbs.model.flexible_bodies.plates import plate

        return cls(**plate(
            length, width, mass, stiffness, poisson=poisson, root=root, modes=modes, elements=elements,
            attach={"tip": (1.0, 0.0)} if attach is None else attach, stations=stations,
        ))._lowest(modes)  # fmt: skip

    @classmethod
    def from_matrices(
        cls,
        mass: Any,
        stiffness: Any,
        positions: Any,
        *,
        attachments: Mapping[str, int | Sequence[int]],
        stations: Mapping[str, int | Sequence[int]] | None = None,
        frame: int | Sequence[int] | None = None,
        modes: int = 10,
        recovery: Mapping[str, tuple[Any, str]] | None = None,
    ) -> Part:
        """The part of a finite-element model: constraint modes of its attachments and fixed-interface modes
        (Craig-Bampton), combined into modes of the whole body.

        mass, stiffness: dense, or sparse of SciPy; (6 N, 6 N), for each node three displacements, then three rotations, or
        (3 N, 3 N) of solid elements, which have displacements only. positions (N, 3) [m], of the nodes. attachments: {name:
        index of a node, or a list of them} to which other elements may be attached; the nodes of a list move together as a
        rigid plate, whose frame is at their mean position; solid elements need lists of at least three, not on one line.
        stations: further nodes, which move with the body, for shapes, outputs and light things; they add no modes, and a
        list of nodes gives their mean motion. frame: the node, or rigid plate of nodes, that is fixed in the floating frame,
        whose origin is there; None: no node is fixed, the modes are those of the free body and the origin is that of the
        positions. modes: how many fixed-interface modes to use; the part has these and six for each attachment (without a
        frame, less the six motions of the rigid body). recovery: {name: (rows, unit)}, rows (m, 6 N) or (m, 3 N) that give
        stresses and the like [SI] from the displacements of all nodes.

        Frequencies and shapes are those of the model with all elements removed from the attachments; static loads there are
        represented exactly. inertia_change, coupling and inertia_curvature take each node's share of a mode's momentum to
        be at the node, which is exact for lumped masses. Degrees of freedom without mass follow the others as in statics.
        Stresses do not change the stiffness, so that a part that spins is not stiffened (no geometric stiffening).

        Raises ModelError, with the figures, for matrices that are not symmetric or not finite, a stiffness that resists a
        motion of the rigid body, is negative, or leaves other motions free, a mass matrix that is not positive or that does
        not fit the positions, and nodes that the model lacks. Warns of rotary inertias that are large for the positions.
        """
        from jaxmbs.model.flexible_bodies.reduction import reduced

        return cls(**reduced(
            mass, stiffness, positions, attachments=attachments, stations=stations, frame=frame, modes=modes,
            recovery=recovery,
        ))  # fmt: skip

    @classmethod
    def from_nastran(
        cls,
        assembly: str | Path,
        matrices: str | Path,
        *,
        frame: int | None = None,
        names: Mapping[str, int] | None = None,
        modes: int | None = None,
        length: float = 1.0,
        mass: float = 1.0,
        recovery: Mapping[str, tuple[str, Sequence[int] | None, str]] | None = None,
    ) -> Part:
        """The part of an external superelement (EXTSEOUT): assembly, its .asm file with the boundary grids; matrices, its
        .op4 file with MXX and KXX or MAA and KAA, or the .pch or .op2 file with MAAX and KAAX (DMIGPCH, DMIGOP2). Needs
        pyYeti: pip install 'jaxmbs[nastran]'.

        frame: the boundary grid at which the floating frame is, None for the first; the frame's axes are those of the basic
        coordinate system. names: {name: grid} of the nodes, None for all boundary grids, named by their numbers. modes: the
        number of modes kept, those of lowest frequency; None for all. length [m], mass [kg]: of a unit of the model, such
        as 0.0254 and 0.45359 for inches and pounds; forces are in the unit that follows from these and seconds, so that
        models with 386.1 as PARAM,WTMASS need mass = 175.127 (a pound-force times second² per inch). recovery: {name:
        (matrix of the .op4 file, its rows, unit)}: rows, counted from 0 (None: all), of an output transformation matrix such
        as "mes1", of stresses, or "mef1", of element forces; unit: "Pa", "N", "N m", "m", or "" for strains and rotations.

        The matrices of a superelement do not say how its inertia changes as it deforms: the forces on the modes from a
        steady rotation, and those between modes in a body that rotates, are left out, and so is the stiffening by tension of
        a part that spins (no geometric stiffening). Use such parts where they turn slowly.

        Raises ModelError for files that are missing or incomplete, and, with the figures, for matrices that are not
        symmetric, that resist a motion of the rigid body or leave others free, or whose masses do not fit the grids.
        """
        from jaxmbs.model.flexible_bodies.nastran import superelement

        whole = cls(**superelement(
            assembly, matrices, frame=frame, names=names, length=length, mass=mass, recovery=recovery
        ))  # fmt: skip
        return whole if modes is None else whole._lowest(modes)

    @property
    def modes(self) -> int:
        """The number n of modes."""
        return len(self.frequency)

    @property
    def mass_matrix(self) -> np.ndarray:
        """(6 + n, 6 + n) of the undeformed part, for the angular and the linear velocity of the frame, and the rates of
        the modes."""
        s = skew(self.mass * self.com)
        inertia = self.inertia - self.mass * skew(self.com) @ skew(self.com)
        rigid = np.block([[inertia, s], [s.T, self.mass * np.eye(3)]])
        U = np.concatenate([self.angular_momentum, self.momentum], axis=1)
        return np.block([[rigid, U.T], [U, np.eye(self.modes)]])

    @property
    def effective_mass(self) -> np.ndarray:
        """(n, 3): the share of the mass that each mode moves along each axis; its sum over all modes is at most one."""
        return self.momentum**2 / self.mass

    def keep(self, modes: int) -> Part:
        """The part with only its first modes.

        >>> mbs.Part.beam(1.0, 0.5, (20.0, 20.0), 5.0, modes=6).keep(modes=2).modes
        2
        """
        if not 0 < modes <= self.modes:
            raise ModelError(f"flexible part: {modes} of {self.modes} modes; keep 1 to {self.modes}")
        k = slice(modes)
        return replace(
            self, frequency=self.frequency[k], momentum=self.momentum[k], angular_momentum=self.angular_momentum[k],
            inertia_change=self.inertia_change[k], coupling=self.coupling[k, k],
            inertia_curvature=self.inertia_curvature[k, k], displacements=self.displacements[..., k],
            rotations=self.rotations[..., k], moment_curvature=self.moment_curvature[k, k],
            shortening=self.shortening[..., k, k], recovery=recoveries.kept(dict(self.recovery), modes),
        )  # fmt: skip

    def _lowest(self, modes: int) -> Part:
        """The part with this number of modes, or with all if it has fewer."""
        if modes < 1:
            raise ModelError(f"flexible part: {modes!r} modes; keep at least 1")
        return self.keep(min(modes, self.modes))

    def save(self, path: Any) -> None:
        """Write the part to the file `path` (.npz), which `load` reads: one array for each field, and for `recovery` its
        names, units, numbers of rows, and all rows (m, n)."""
        arrays: dict[str, Any] = recoveries.packed(dict(self.recovery), self.modes)
        arrays |= {f.name: np.asarray(getattr(self, f.name)) for f in fields(self) if f.name != "recovery"}
        np.savez_compressed(path, **arrays)

    @classmethod
    def load(cls, path: str | Path) -> Part:
        """The part in the file `path`, which `save` wrote.

        Raises ModelError if the file is missing, is no such file, or holds numbers that do not fit together.
        """
        try:
            return cls.read(Path(path).read_bytes(), str(path))
        except OSError as error:
            raise ModelError(f"flexible part {str(path)!r} cannot be read: {error.strerror}") from None

    @classmethod
    def read(cls, content: bytes, name: str) -> Part:
        """The part in the content of a file; name: that of the file, for messages. Raises ModelError as `load` does."""
        names = [f.name for f in fields(cls) if f.name != "recovery"]
        try:
            file = np.load(io.BytesIO(content), allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array")
            with file:
                if lacking := [n for n in names if n not in file and n not in SECOND]:
                    raise ModelError(f"flexible part {name!r}: the file has no {', '.join(lacking)}")
                found: dict[str, Any] = {n: file[n] for n in names if n in file} | recoveries.unpacked(file)
        except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
            raise ModelError(f"flexible part {name!r}: {error}; pass a file written by Part.save") from None
        if found["nodes"].ndim != 1:
            raise ModelError(f"flexible part {name!r}: nodes is no list of names; pass a file written by Part.save")
        try:
            found["nodes"] = tuple(map(str, found["nodes"]))
            return cls(**found)
        except ModelError as error:
            raise ModelError(f"flexible part {name!r}: {str(error).removeprefix('flexible part: ')}") from None


SYMMETRY = 1e-6  # relative to the largest number: what computing the integrals in float32 leaves

SECOND = ("moment_curvature", "shortening")  # zero in parts that do not name them


def _shapes(n: int, N: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the numbers of a part with n modes and N nodes."""
    return {
        "mass": (), "com": (3,), "inertia": (3, 3), "frequency": (n,), "momentum": (n, 3), "angular_momentum": (n, 3),
        "inertia_change": (n, 3, 3), "coupling": (n, n, 3), "inertia_curvature": (n, n, 3, 3), "positions": (N, 3),
        "displacements": (N, 3, n), "rotations": (N, 3, n), "moment_curvature": (n, n, 3), "shortening": (N, 3, n, n),
    }  # fmt: skip


def _checked(name: str, given: Any, shape: tuple[int, ...]) -> Any:
    """The numbers as a new array that cannot be changed, or as one float."""
    try:
        if np.iscomplexobj(given):
            raise TypeError("they are complex")
        x = np.array(given, float)
    except (TypeError, ValueError) as error:
        raise ModelError(f"flexible part: {name} needs real numbers: {error}") from None
    if x.size == 0 and (name in SECOND or (name in ("displacements", "rotations") and 0 in shape)):
        x = np.zeros(shape)
    if x.shape != shape:
        raise ModelError(f"flexible part: {name} has shape {x.shape}; its modes and nodes need {shape}")
    if not np.isfinite(x).all():
        raise ModelError(f"flexible part: {name} has numbers that are not finite")
    x.setflags(write=False)
    return float(x) if shape == () else x
