"""Names and frames of SDFormat files: every model has its own; all poses in a file are those at one instant."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxmbs.io.draft import tidy
from jaxmbs.io.errors import choices
from jaxmbs.io.hinges import composed, inverse
from jaxmbs.io.urdf import of_angles
from jaxmbs.io.xml import Fault, as_number, as_vector
from jaxmbs.model import Pose

WORLD, MODEL, APART = "world", "__model__", "::"
HERE = Pose((0.0, 0.0, 0.0), np.eye(3))
PARENT_AXES = (1, 5)  # first version whose axes are given in the frame of the joint, not of the model


@dataclass(frozen=True)
class Entry:
    """A link: the scope that holds it, None for the world, and its name there."""

    scope: Scope | None
    name: str


class Scope:
    """A model, or the world: the links, joints, frames and models in it by their names.

    file: that contains it; version: of its format; parent: the scope that contains it; name: in the parent; fault: receives
    the place and the message of whatever is wrong. placed: its frame's pose in the world, once `settle` has found it.
    """

    def __init__(
        self, element: ET.Element, file: Path, version: tuple[int, ...], parent: Scope | None, name: str, fault: Fault,
    ):  # fmt: skip
        self.element, self.file, self.version, self.fault = element, file, version, fault
        self.parent, self.name, self.placed = parent, name, HERE  # the last until `settle`
        self._holds = says(text(element, "static"))
        self.links, self.joints, self.frames = ({} for _ in range(3))
        self.models: dict[str, Scope] = {}
        self._included: dict[str, ET.Element] = {}  # the <include> elements of models, which may state their poses
        self._found: dict[str, Pose] = {}  # places of names, so that long chains are followed once
        self._settled = self.parent is None and element.tag == "world"
        self._seen: set[str] = set()  # names whose places are being looked for
        for tag, found in (("link", self.links), ("joint", self.joints), ("frame", self.frames)):
            for k, e in enumerate(element.findall(tag), 1):
                self._check_name(e.get("name") or "", f"{tag} {k}")
                found[e.get("name") or ""] = e
        for e in element.findall("model"):
            self.add(e.get("name") or "", e, file, version, None)

    def path(self, name: str) -> str:
        """The name of something in this scope, seen from outside of all models."""
        return name if self.parent is None else APART.join((self.parent.path(self.name), name))

    def add(
        self, name: str, element: ET.Element, file: Path, version: tuple[int, ...], included: ET.Element | None
    ) -> None:
        """Add a model that lies in this one, or that it includes."""
        self._check_name(name, f'{"include" if included is not None else "model"} "{name}"')
        inner = Scope(element, file, version, self, name, self.fault)
        self.models[name] = inner
        if included is not None:
            self._included[name] = included
            if included.find("static") is not None:
                inner._holds = says(text(included, "static"))

    @property
    def static(self) -> bool:
        """Whether this model, or one that contains it, does not move."""
        return self._holds or bool(self.parent and self.parent.static)

    def settle(self) -> None:
        """Find the places of all models in the world, once all of them are known."""
        if self.parent is None and self.element.tag == "model":
            self.placed = self._placed_by(self.element, self.element.get("placement_frame") or "", self, self._said)
        self._settled = True
        for name, inner in self.models.items():
            inner.placed = composed(self.placed, self.place(name))
            inner.settle()

    def _check_name(self, name: str, where: str) -> None:
        taken = name in {**self.links, **self.joints, **self.frames, **self.models}
        if not name or taken:
            self.fault(where, f'the name "{name}" is used twice in {self._said}' if name else "it has no name")
        elif name in (WORLD, MODEL):
            self.fault(where, f'the name "{name}" is reserved')

    @property
    def _said(self) -> str:
        return f'{self.element.tag} "{self.element.get("name") or ""}"'

    # --- places -------------------------------------------------------------------------------------------------------

    def place(self, name: str) -> Pose:
        """The pose of a link, joint, frame or model in the frame of this scope."""
        if name in (MODEL, "") or (name == WORLD and self.element.tag == "world"):
            return HERE
        if name == WORLD:
            if not self._settled:
                self.fault(
                    self._said, 'the pose of its placement_frame refers to "world", which is to be found from it'
                )
            return inverse(self.placed)
        first, rest = self._split(name)
        if rest:
            return composed(self.place(first), self.models[first].place(rest))
        if name in self._found:
            return self._found[name]
        if name in self._seen:
            self.fault(f'"{self.path(name)}"', "its pose refers to itself")
            return HERE
        self._seen.add(name)
        try:
            self._found[name] = self._looked_for(name)
        finally:
            self._seen.discard(name)
        return self._found[name]

    def _looked_for(self, name: str) -> Pose:
        if name in self.links:
            return self.pose(self.links[name], f'link "{self.path(name)}"', MODEL)
        if name in self.joints:
            e = self.joints[name]
            return self.pose(e, f'joint "{self.path(name)}"', (text(e, "child") or "").strip())
        if name in self.frames:
            e = self.frames[name]
            return self.pose(e, f'frame "{self.path(name)}"', e.get("attached_to") or MODEL)
        if name in self.models:
            return self._place_of_model(name)
        known = (*self.links, *self.joints, *self.frames, *self.models)
        self.fault(self._said, f'there is no frame named "{name}"; {choices(name, known)}')
        return HERE

    def _split(self, name: str) -> tuple[str, str]:
        """A model and a name in it; ("", "") if the name is one of this scope: files that were flattened have "a::b"."""
        first, _, rest = name.partition(APART)
        own = name in self.links or name in self.joints or name in self.frames
        return (first, rest) if rest and first in self.models and not own else ("", "")

    def _place_of_model(self, name: str) -> Pose:
        inner, included = self.models[name], self._included.get(name)
        given = included if included is not None and included.find("pose") is not None else inner.element
        named = text(included, "placement_frame") if included is not None else None
        frame = named or inner.element.get("placement_frame") or ""
        return self._placed_by(given, frame, inner, f'model "{self.path(name)}"')

    def _placed_by(self, given: ET.Element, frame: str, inner: Scope, where: str) -> Pose:
        """The pose of the model `inner`, from the pose that the element `given` has for the model's frame `frame`."""
        found = self.pose(given, where, MODEL)
        return composed(found, inverse(inner.place(frame))) if frame else found

    def pose(self, e: ET.Element, where: str, usual: str) -> Pose:
        """The pose of an element in the frame of this scope, or in that of the link `usual` if it is part of this link.
        usual: the frame that it is given in, unless it says another."""
        given = e.find("pose")
        own = HERE if given is None else self._numbers(given, where)
        frame = (given.get("relative_to") or given.get("frame") or "") if given is not None else ""
        part = e.tag in ("inertial", "visual", "collision")
        if not part:
            return composed(self.place(frame or usual), own)
        if not frame or frame == usual:
            return own
        return composed(inverse(self.place(usual)), composed(self.place(frame), own))

    def _numbers(self, given: ET.Element, where: str) -> Pose:
        try:
            found = [float(x) for x in (given.text or "").split()]
        except ValueError:
            found = [math.nan]
        quaternion = given.get("rotation_format") == "quat_xyzw"
        if not found:
            return HERE
        if len(found) != 6 + quaternion or not all(map(math.isfinite, found)):
            self.fault(where, f"pose needs {6 + quaternion} numbers, got {given.text!r}")
            return HERE
        if not quaternion:
            factor = math.pi / 180 if says(given.get("degrees")) else 1.0
            return Pose(tuple(found[:3]), of_angles(*(factor * x for x in found[3:])))
        x, y, z, w = np.array(found[3:]) / (np.linalg.norm(found[3:]) or 1.0)
        R = np.array([
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ])  # fmt: skip
        return Pose(tuple(found[:3]), tidy(R))

    def direction(self, axis: ET.Element, joint: str, where: str) -> tuple[float, ...]:
        """The unit vector of an axis, in the frame of the joint."""
        found = np.array(vector(axis, "xyz", (0.0, 0.0, 1.0), where, self.fault))
        e = axis.find("xyz")
        frame = (e.get("expressed_in") or "") if e is not None else ""
        if self.version < PARENT_AXES or says(text(axis, "use_parent_model_frame")):
            frame = frame or MODEL
        if not found.any():
            self.fault(where, "its axis is zero; it needs a direction")
            return (0.0, 0.0, 1.0)
        if frame:
            turn = np.asarray(composed(inverse(self.place(joint)), self.place(frame)).rotation)
            found = tidy(turn) @ found
        return tuple((found / np.linalg.norm(found)).tolist())

    # --- links --------------------------------------------------------------------------------------------------------

    def link(self, name: str, where: str, end: str) -> Entry | None:
        """The link that a name stands for: the link of this name, or the link to which the frame, joint or model of this
        name is attached; the world counts as a link. None, with a fault, if there is none. where, end: for its message."""
        name, seen = name.strip(), set[str]()
        scope: Scope = self
        while True:
            first, rest = scope._split(name)
            if name == WORLD:
                return Entry(None, "")
            if rest:
                scope, name = scope.models[first], rest
                continue
            if name in scope.links:
                return Entry(scope, name)
            key = scope.path(name)
            if name in scope.models:
                scope, name = scope.models[name], MODEL
            elif name in scope.frames:
                name = scope.frames[name].get("attached_to") or MODEL
            elif name in scope.joints:
                name = (text(scope.joints[name], "child") or "").strip()
            elif name == MODEL and scope.parent is None and scope.element.tag == "world":
                return Entry(None, "")
            elif name == MODEL and (scope.links or scope.models):
                name = scope.element.get("canonical_link") or next(iter({**scope.links, **scope.models}))
            else:
                known = (*scope.links, *scope.frames, *scope.joints, *scope.models, WORLD)
                self.fault(where, f'{end}: no link or frame named "{name}"; {choices(name, known)}')
                return None
            if key in seen:
                self.fault(where, f'{end}: "{name}" is attached to itself')
                return None
            seen.add(key)


# --- values of elements -----------------------------------------------------------------------------------------------


def text(e: ET.Element, tag: str) -> str | None:
    """The text of a child element; None without one."""
    child = e.find(tag)
    return None if child is None else (child.text or "").strip()


def says(value: str | None) -> bool:
    """Whether a value of the format is true."""
    return (value or "").strip().lower() in ("true", "1")


def number(e: ET.Element | None, tag: str, usual: float | None, where: str, fault: Fault) -> float:
    """The number of a child element, or the usual one."""
    given = None if e is None else text(e, tag)
    return usual if not given and usual is not None else as_number(given, tag, where, fault)


def vector(e: ET.Element, tag: str, usual: tuple[float, ...], where: str, fault: Fault) -> tuple[float, ...]:
    """The three numbers of a child element, or the usual ones."""
    given = text(e, tag)
    return as_vector(given, usual, tag, where, fault) if given else usual
