"""A mechanism that is being read from another program's file: its parts, its faults, and what a model cannot
represent."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jaxmbs.building import Mechanism
from jaxmbs.errors import ModelError, ModelWarning
from jaxmbs.io.errors import InputError, Problem
from jaxmbs.io.physical import nearest_inertia
from jaxmbs.model import Ball, Box, Capsule, Cone, Mesh, Model, Pose, Tube
from jaxmbs.model.constraints import Coupling
from jaxmbs.model.field_rules import Kind, checked
from jaxmbs.model.forces import Damper, Friction, JointSpring
from jaxmbs.model.joints.base import Joint

OnUnsupported = Literal["error", "warn"]
Repair = Literal["nearest"] | None
Form = Ball | Box | Tube | Capsule | Cone | Mesh  # of a collision shape
HERE = Pose()
EXACT = 1e-15  # entries of a rotation that differ this little from 0 or +-1 differ only by rounding of angles


class Draft:
    """Collects bodies, joints, elements and remarks; `build` reports all remarks at once.

    faults: problems that prevent a model; lacking: {effect that a model cannot represent: elements of the file that
    have it}; aside: {contents that do not concern the motion of the bodies: their number}; repaired: the inertias that
    `repair` changed; frictional: names of the elements of dry friction; renamed: names that differ from those in the file.
    """

    def __init__(self, name: str, gravity: Any, path: Path, repair: Repair, on_unsupported: OnUnsupported):
        if repair not in (None, "nearest"):
            raise ModelError(f'repair={repair!r} does not exist; pass "nearest" or None')
        if on_unsupported not in ("error", "warn"):
            raise ModelError(f'on_unsupported={on_unsupported!r} does not exist; pass "error" or "warn"')
        self.mech = Mechanism(name, gravity)
        self.path, self.repair, self.on_unsupported = path, repair, on_unsupported
        self.faults: list[Problem] = []
        self.lacking: dict[str, list[str]] = {}
        self.aside: dict[str, int] = {}
        self.repaired: list[str] = []
        self.frictional: list[str] = []
        self.renamed: list[str] = []
        self._names: dict[str, dict[str, str]] = {}

    def name(self, kind: str, given: str) -> str:
        """The name of an element in the model: as given, except for characters that names in a file cannot have."""
        known = self._names.setdefault(kind, {})
        if given not in known:
            plain = re.sub(r"[^A-Za-z0-9_\-]", "_", given)
            plain = plain if re.match(r"[A-Za-z_]", plain) else f"_{plain}"
            known[given] = _another(plain, known.values())
            if known[given] != given:
                self.renamed.append(f"{given!r} to {known[given]!r}")
        return known[given]

    def new_name(self, kind: str, wanted: str) -> str:
        """A name that no element of the kind has."""
        known = self._names.setdefault(kind, {})
        return known.setdefault(f"\0{len(known)}", _another(wanted, known.values()))

    def fault(self, where: str, message: str) -> None:
        self.faults.append(Problem(where, message))

    @contextmanager
    def at(self, where: str) -> Iterator[None]:
        """Context in which an error of the model is a fault of the element `where`."""
        try:
            yield
        except ModelError as error:
            self.fault(where, str(error))

    def lacks(self, what: str, name: str) -> None:
        """Note an effect of the element `name` in the file that a model cannot represent."""
        self.lacking.setdefault(what, []).append(name)

    def leave_out(self, what: str, n: int = 1) -> None:
        """Note n things in the file that do not concern the motion of the mechanism."""
        if n:
            self.aside[what] = self.aside.get(what, 0) + n

    def body(self, name: str, where: str, mass: float = 0.0, com: Any = (0, 0, 0), inertia: Any = (0, 0, 0)) -> None:
        """Add a body, with its inertia repaired if this was asked for; an error becomes a fault."""
        I = self.physical(where, np.asarray(inertia, float))
        try:
            self.mech.add_body(name, float(mass), com, I)
        except ModelError as error:
            hint = '; repair="nearest" makes it physical' if "principal moments" in str(error) else ""
            self.fault(where, f"{error}{hint}".removeprefix(f"body {name!r}: "))

    def physical(self, where: str, inertia: np.ndarray) -> np.ndarray:
        """The inertia, or, if it needs repair and this was asked for, the nearest physical one; the repair is noted."""
        if self.repair is None or not np.all(np.isfinite(inertia)):
            return inertia
        try:
            checked(Kind.INERTIA, inertia, "inertia")
        except ModelError:
            whole = inertia if inertia.ndim == 2 else np.diag(inertia)
            nearest = nearest_inertia(whole)
            change = np.linalg.norm(nearest - whole) / np.linalg.norm(whole)
            before, after = (", ".join(f"{m:.6g}" for m in np.linalg.eigvalsh(x)) for x in (whole, nearest))
            self.repaired.append(f"{where}: principal moments {before} were changed to {after} ({100 * change:.2g} %)")
            return nearest
        return inertia

    def joint(
        self,
        name: str,
        where: str,
        joint: Joint,
        parent: str,
        child: str,
        parent_pose: Pose = HERE,
        child_pose: Pose = HERE,
        armature: float = 0.0,
    ) -> None:
        with self.at(where):
            self.mech.add_joint(name, joint, parent, child, parent_pose, child_pose, armature=armature)

    def spring(self, joint: str, where: str, damping: float, stiffness: float = 0.0, rest: float = 0.0) -> None:
        """Add a spring and damper in a joint, as an element named after the joint."""
        with self.at(where):
            if stiffness:
                element = JointSpring(joint, stiffness, damping, rest)
                self.mech.add_force(self.new_name("force", f"{joint}_spring"), element)
            elif damping:
                self.mech.add_force(self.new_name("force", f"{joint}_damping"), Damper(joint, damping))

    def friction(self, joint: str, where: str, moment: float, freedoms: int) -> None:
        """Add the dry friction of a joint, as an element named after the joint."""
        if not moment:
            return
        if freedoms != 1:
            self.lacks("dry friction of joints with several degrees of freedom", joint)
            return
        name = self.new_name("force", f"{joint}_friction")
        with self.at(where):
            self.mech.add_force(name, Friction(joint, moment))
        self.frictional.append(name)

    def coupling(self, joint: str, where: str, driver: str | None, coefficients: Sequence[float]) -> None:
        """Add the coupling of a joint to its driver, as a constraint named after the joint."""
        with self.at(where):
            coupling = Coupling(joint, driver, tuple(coefficients))
            self.mech.add_constraint(self.new_name("constraint", f"{joint}_mimic"), coupling)

    def visual(self, body: str, kind: str, size: Any, pose: Pose, color: str, file: str) -> None:
        """Add a picture; a faulty one is no reason to refuse a mechanism."""
        try:
            self.mech.add_visual(body, "cylinder" if kind == "capsule" else kind, size, pose, color, file)
        except ModelError as error:
            self.leave_out(f"a picture that cannot be drawn ({error})")

    def solid(self, kind: str, size: Sequence[float], file: str, where: str) -> Form | None:
        """The solid of a collision shape; None, which the draft notes, if there is none. size: extents [m] (of a capsule
        without its ends), or the scale of a mesh."""
        radius, length = size[0] / 2, size[2]
        with self.at(where):
            if kind == "sphere":
                return Ball(radius)
            if kind == "box":
                return Box(tuple(size))
            if kind in ("cylinder", "capsule"):
                return (Tube if kind == "cylinder" else Capsule)(radius, length)
            if kind == "cone":
                return Cone(radius, length)
            if size[0] == size[1] == size[2]:
                return Mesh(file, scale=size[0])
            self.leave_out("meshes that are scaled differently along x, y and z")
        return None

    def tell(self, stacklevel: int = 4) -> None:
        """Raise InputError with all faults, or give one warning with all remarks."""
        if self.faults:
            raise InputError(self.faults, self.path)
        if said := self._remarks():
            warnings.warn(f"{self.path.name}: {'; '.join(said)}", ModelWarning, stacklevel=stacklevel)

    def build(self) -> Model:
        """The model. Raises InputError with all faults; gives one warning with all differences from the file."""
        if self.on_unsupported == "error":
            for what, names in self.lacking.items():
                remedy = 'this is not supported; pass on_unsupported="warn" to leave it out'
                self.fault("", f"{what} ({listed(names)}): {remedy}")
        self.tell(stacklevel=5)
        try:
            return self.mech.build()
        except ModelError as error:
            raise InputError(Problem("", str(error)), self.path) from error

    def _remarks(self) -> list[str]:
        said = []
        if self.repaired:
            said.append("inertias that are not physical were repaired: " + ", ".join(self.repaired))
        if self.lacking:
            left = (f"{what} ({listed(names)})" for what, names in self.lacking.items())
            said.append("left out, although they affect the motion: " + ", ".join(left))
        if self.frictional:
            said.append(
                f"dry friction is smoothed: below a speed of {Friction.speed:g} rad/s or m/s joints creep instead of "
                f"sticking; to change this speed, set NAME.speed of {listed(self.frictional)}"
            )
        if self.aside:
            said.append("not represented in the model: " + ", ".join(f"{what} ({n})" for what, n in self.aside.items()))
        if self.renamed:
            said.append("renamed, because names consist of letters, digits, _ and -: " + ", ".join(self.renamed))
        return said


def _another(wanted: str, taken: Iterable[str]) -> str:
    """The name, with a number appended if it is taken."""
    taken, name, k = set(taken), wanted, 2
    while name in taken:
        name, k = f"{wanted}_{k}", k + 1
    return name


def tidy(rotation: np.ndarray) -> np.ndarray:
    """A rotation whose entries are exactly 0 or +-1 where they differ only by rounding, so that they are structural."""
    near = np.round(rotation)
    return np.where(np.abs(rotation - near) <= EXACT, near, rotation)


def rotated(rotation: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """An inertia (3, 3) transformed to other axes; rotation: from the inertia's own axes to those."""
    if np.array_equal(rotation, np.eye(3)):
        return inertia
    turned = rotation @ inertia @ rotation.T
    return (turned + turned.T) / 2


def listed(names: Sequence[str]) -> str:
    """Names for a sentence: the first six, and how many more there are."""
    shown = ", ".join(repr(n) for n in names[:6])
    return shown + (f" and {len(names) - 6} more" if len(names) > 6 else "")
