"""Reading mechanisms from SDFormat files, those of Gazebo.

They are read element by element with the standard library's XML parser, as URDFs are: the format's own library is in no
package of PyPI, and the readers that are there drop something: rod drops second axes, gears and screws, Drake drops dry
friction and loops.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.io.draft import Draft, Form, OnUnsupported, Repair, rotated
from jaxmbs.io.errors import InputError, Problem, choices
from jaxmbs.io.hinges import Hinge, composed, connect, inverse
from jaxmbs.io.names import TRUST
from jaxmbs.io.resources import model_file, resource
from jaxmbs.io.sdf_frames import WORLD, Scope, number, says, text, vector
from jaxmbs.io.sdf_shapes import color, form
from jaxmbs.io.xml import not_too_deep, opened
from jaxmbs.model import Model, Pose
from jaxmbs.model.given import Triple
from jaxmbs.model.joints import Fixed, Helical, Prismatic, Revolute, Spherical, Universal
from jaxmbs.model.joints.base import Joint

GRAVITY = (0.0, 0.0, -9.81)
GAZEBO = (0.0, 0.0, -9.8)  # [m/s²] of worlds that do not state their gravity
GRAVITY_OF_WORLDS = (1, 6)  # first version in which gravity is an element of the world, not of its <physics>
SDF = ("sdf", "an SDFormat file")  # how such a file begins, and what it is called
MOST = 2000  # most included models: if each file includes the next one twice, their number doubles with every file
TYPES = ("revolute", "continuous", "prismatic", "screw", "universal", "revolute2", "ball", "fixed")
# elements that do not concern the motion of bodies, by the element that contains them; "" for those that are read
ASIDE = {
    "world": {"gravity": "", "model": "", "include": "", "frame": "", "joint": "", "physics": "settings of solvers",
              "light": "lights", "scene": "scenes", "gui": "settings of windows", "plugin": "plugins", "audio": "sounds",
              "magnetic_field": "magnetic fields", "atmosphere": "atmospheres", "wind": "winds",
              "spherical_coordinates": "places on Earth"},
    "model": {"link": "", "joint": "", "frame": "", "model": "", "include": "", "pose": "", "static": "",
              "self_collide": "collision shapes", "allow_auto_disable": "settings of solvers", "plugin": "plugins",
              "enable_wind": "winds", "gripper": "grippers"},
    "link": {"pose": "", "inertial": "", "visual": "", "collision": "collision shapes", "sensor": "sensors",
             "gravity": "", "kinematic": "", "velocity_decay": "", "must_be_base_link": "",
             "self_collide": "collision shapes", "enable_wind": "winds", "light": "lights", "projector": "projectors",
             "audio_sink": "sounds", "audio_source": "sounds", "battery": "batteries", "particle_emitter": "particles",
             "plugin": "plugins"},
    "joint": {"parent": "", "child": "", "pose": "", "axis": "", "axis2": "", "thread_pitch": "", "screw_thread_pitch": "",
              "gearbox_ratio": "", "gearbox_reference_body": "", "sensor": "sensors", "plugin": "plugins",
              "physics": "settings of solvers"},
    "axis": {"xyz": "", "dynamics": "", "limit": "limits of joints", "mimic": "", "use_parent_model_frame": "",
             "initial_position": "initial positions"},
}  # fmt: skip


def from_sdf(
    path: str | Path,
    *,
    gravity: Triple | None = None,
    repair: Repair = None,
    on_unsupported: OnUnsupported = "error",
    trust: bool = False,
) -> Model:
    """Model of the SDFormat file at `path`: its one model, or all models of its world.

    gravity (3,) [m/s²], by default that of the world, which is 9.8 downwards if it does not say, and 9.81 downwards for a
    file without a world; repair, on_unsupported: as for `from_urdf`; trust: also read models and meshes outside the
    file's folder, its package, and the folders of SDF_PATH and GZ_SIM_RESOURCE_PATH.

    Links become bodies with the same frames, named as in the file ("inner__link" for a link of a model within it). A
    link without an inertia has the format's own: 1 kg and 1 kg m² about every axis. Revolute, continuous, prismatic, screw,
    universal, ball and fixed joints keep their names; what closes a loop becomes a cut joint. Damping, springs, dry friction
    and mimic joints become elements as in `from_urdf`. Links that no joint connects to the world move freely by the joint
    "NAME_free" from their pose in the file; links of static models are part of the world. Included files are read; shapes
    become visuals. Limits, collision shapes, sensors and settings of Gazebo are not part of a model: one ModelWarning counts
    them. Raises InputError with all faults, each with its element.

    >>> text = '<sdf version="1.9"><model name="swing"><link name="board"><pose>0 0 -1 0 0 0</pose></link>'
    >>> text += '<joint name="rope" type="revolute"><pose>0 0 1 0 0 0</pose><parent>world</parent><child>board</child>'
    >>> text += '<axis><xyz>0 1 0</xyz></axis></joint></model></sdf>'
    >>> from pathlib import Path
    >>> _ = Path("swing.sdf").write_text(text)
    >>> mbs.from_sdf("swing.sdf")
    <Model 'swing': 1 body (board), nq = 1, nv = 1>
    """
    return reader(path, gravity=gravity, repair=repair, on_unsupported=on_unsupported, trust=trust).model()


def reader(
    path: str | Path, *, gravity: Triple | None = None, repair: Repair = None, on_unsupported: OnUnsupported = "error",
    trust: bool = False,
) -> _Reader:  # fmt: skip
    """The reader of the file, with the arguments of `from_sdf`. Raises InputError if it is no SDFormat."""
    path = Path(path)
    root = opened(path, *SDF)
    worlds, models = root.findall("world"), root.findall("model")
    if len(worlds) + len(models) != 1:
        said = f"has {len(worlds)} worlds and {len(models)} models; keep one world, or one model"
        raise InputError(Problem("", said), path)
    whole = (worlds or models)[0]

    def fault(where: str, said: str) -> None:
        raise InputError(Problem(where, said), path)

    if gravity is None:
        physics = (
            whole.find("physics") if _version(root) < GRAVITY_OF_WORLDS and whole.find("gravity") is None else None
        )
        holder = whole if physics is None else physics
        gravity = vector(holder, "gravity", GAZEBO, "gravity", fault) if worlds else GRAVITY
    draft = Draft(whole.get("name") or path.stem, gravity, path, repair, on_unsupported)
    with not_too_deep(path):
        return _Reader(draft, whole, _version(root), trust)


def _version(root: ET.Element) -> tuple[int, ...]:
    try:
        return tuple(map(int, (root.get("version") or "1.6").split(".")))
    except ValueError:
        return (1, 6)


class _Reader:
    def __init__(self, draft: Draft, whole: ET.Element, version: tuple[int, ...], trust: bool):
        self.draft, self.trust = draft, trust
        self.top = Scope(whole, draft.path.resolve(), version, None, "", draft.fault)
        self.names = {"": WORLD}  # of bodies, by the names that links have in the whole file
        self.places: dict[str, Pose] = {}
        self.included = 0

    def model(self) -> Model:
        """The model of the file, and one warning with all remarks. Raises InputError with all faults."""
        with not_too_deep(self.draft.path):
            return self._model()

    def _model(self) -> Model:
        self._begin()
        scopes = list(self._scopes(self.top))
        for scope in scopes:
            for name, link in scope.links.items():
                self._add_link(scope, name, link)
        hinges = [h for scope in scopes for name, e in scope.joints.items() if (h := self._hinge(scope, name, e))]
        if not self.places and not self.draft.faults:
            self.draft.fault("", "has no links that move")
        if not self.draft.faults:
            tree = connect(self.draft, [h for h, _ in hinges], self.names, self.places)
            for h, axes in hinges:
                self._add_elements(h, axes, h.name in tree)
            for scope in scopes:
                for name, e in scope.joints.items():
                    self._add_mimic(scope, name, e, tree)
        for scope in scopes:
            self._note(scope.element, scope.element.tag, scope.path(""))
            for tag, found in (("link", scope.links), ("joint", scope.joints)):
                for name, e in found.items():
                    self._note(e, tag, scope.path(name))
        return self.draft.build()

    def collisions(self) -> dict[str, list[tuple[Form, Pose]]]:
        """{body: [(collision shape, its pose), ...]}. Raises InputError with all faults."""
        with not_too_deep(self.draft.path):
            return self._collisions()

    def _collisions(self) -> dict[str, list[tuple[Form, Pose]]]:
        self._begin()
        out: dict[str, list[Any]] = {}
        for scope in self._scopes(self.top):
            for name, link in scope.links.items():
                where, body = f'link "{scope.path(name)}"', self._body(scope, name)
                for e in link.findall("collision"):
                    found = form(self.draft, scope, e, self.trust, "collision shapes", where)
                    if found and (solid := self.draft.solid(*found, where)):
                        pose = scope.pose(e, where, name)
                        out.setdefault(self.names[body], []).append((solid, self._seen(scope, name, body, pose)))
        self.draft.tell()
        return out

    # --- models within models -----------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Read all files, and find the places of all models."""
        self._include(self.top, ())
        self.top.settle()

    def _include(self, scope: Scope, above: tuple[Path, ...]) -> None:
        """Add the models of other files, then those within these."""
        for e in scope.element.findall("include"):
            uri, where = text(e, "uri") or "", f'include "{text(e, "uri") or ""}"'
            found = resource(scope.file, uri, self.trust)
            file = model_file(Path(found)) if found else None
            if file is not None:  # its folder may name, or link to, a file elsewhere
                found = resource(scope.file, str(file), self.trust)
            self.included += 1
            if self.included > MOST:
                raise InputError(
                    Problem(where, f"more than {MOST} models are included; leave some out"), self.draft.path
                )
            if not found:
                self.draft.fault(where, f"lies outside the folder of the file; if you trust it, pass {TRUST}")
            elif file is None:
                self.draft.fault(where, "there is no such model; is its folder above the file, or in SDF_PATH?")
            elif file in (*above, scope.file):
                self.draft.fault(where, "includes itself")
            elif says(e.get("merge")):
                self.draft.fault(
                    where, 'merge="true" is not supported; copy the contents of the model, or leave it out'
                )
            else:
                root = opened(file, *SDF)
                model = root.find("model")
                if model is None and (root.find("light") is not None or root.find("actor") is not None):
                    self.draft.leave_out("included lights and actors")
                elif model is None:
                    self.draft.fault(where, f"{file.name} contains no model")
                else:
                    scope.add(text(e, "name") or model.get("name") or "", model, file, _version(root), e)
        for inner in scope.models.values():
            self._include(inner, (*above, scope.file))

    def _scopes(self, scope: Scope) -> Iterator[Scope]:
        yield scope
        for inner in scope.models.values():
            yield from self._scopes(inner)

    # --- links and joints ---------------------------------------------------------------------------------------------

    def _body(self, scope: Scope, name: str) -> str:
        """The key of the body of a link: "" for links of static models, which are the world."""
        key = "" if scope.static else scope.path(name)
        if key not in self.names:
            self.names[key] = self.draft.name("body", key)
        return key

    def _seen(self, scope: Scope, link: str, body: str, pose: Pose) -> Pose:
        """A pose in the frame of a link, in that of its body."""
        return pose if body else composed(composed(scope.placed, scope.place(link)), pose)

    def _add_link(self, scope: Scope, name: str, e: ET.Element) -> None:
        where, body, inertial = f'link "{scope.path(name)}"', self._body(scope, name), e.find("inertial")
        for visual in e.findall("visual"):
            self._add_visual(scope, name, body, where, visual)
        if not body:
            return
        self.places[body] = composed(scope.placed, scope.place(name))
        mass, com, I = 1.0, (0.0, 0.0, 0.0), np.ones(3)
        if inertial is not None:
            if says(inertial.get("auto")):
                said = 'its inertia is to be computed from shapes (auto="true"); give mass and inertia'
                self.draft.fault(where, said)
            if inertial.find("fluid_added_mass") is not None:
                self.draft.lacks("added masses of fluids", scope.path(name))
            pose, inertia = scope.pose(inertial, where, name), inertial.find("inertia")
            mass, com = number(inertial, "mass", 1.0, where, self.draft.fault), pose.position
            moments = [number(inertia, k, 1.0, where, self.draft.fault) for k in ("ixx", "iyy", "izz")]
            xy, xz, yz = (number(inertia, k, 0.0, where, self.draft.fault) for k in ("ixy", "ixz", "iyz"))
            whole = np.diag(moments) + np.array([[0.0, xy, xz], [xy, 0.0, yz], [xz, yz, 0.0]])
            whole = rotated(np.asarray(pose.rotation), whole)
            I = whole if np.any(whole - np.diag(np.diag(whole))) else np.diag(whole)
        self.draft.body(self.names[body], where, mass, com, I)
        if (text(e, "gravity") or "true").strip().lower() in ("false", "0"):
            self.draft.lacks("links without gravity", scope.path(name))
        if says(text(e, "kinematic")):
            self.draft.lacks("links that are moved by animation", scope.path(name))
        decay = e.find("velocity_decay")
        if decay is not None and any(number(decay, k, 0.0, where, self.draft.fault) for k in ("linear", "angular")):
            self.draft.lacks("decay of velocities", scope.path(name))

    def _hinge(self, scope: Scope, name: str, e: ET.Element) -> tuple[Hinge, list[ET.Element]] | None:
        path, where = scope.path(name), f'joint "{scope.path(name)}"'
        ends = [scope.link(text(e, end) or "", where, end) for end in ("parent", "child")]
        joint, axes = self._joint(scope, name, e, where)
        if None in ends or joint is None:
            return None
        here = composed(scope.placed, scope.place(name))
        bodies, poses = [], []
        for found in ends:
            assert found is not None
            body = "" if found.scope is None else self._body(found.scope, found.name)
            bodies.append(body)
            place = composed(found.scope.placed, found.scope.place(found.name)) if body and found.scope else None
            poses.append(composed(inverse(place), here) if place else here)
        if bodies == ["", ""]:
            self.draft.leave_out("joints within what does not move")
            return None
        if bodies[0] == bodies[1]:
            self.draft.fault(where, "both ends are on one link")
            return None
        return Hinge(where, self.draft.name("joint", path), joint, tuple(bodies), tuple(poses)), axes

    def _joint(self, scope: Scope, name: str, e: ET.Element, where: str) -> tuple[Joint | None, list[ET.Element]]:
        """A joint, and the elements of its axes."""
        kind, given = e.get("type") or "", [e.find("axis"), e.find("axis2")]
        axes = [x for x in given if x is not None]
        if kind in ("fixed", "ball"):
            for x in axes:
                self._note(x, "axis", name)
            return (Fixed() if kind == "fixed" else Spherical()), []
        if kind not in TYPES:
            self.draft.fault(where, f'type "{kind}" is not supported; {choices(kind, TYPES, "types")}')
            return None, []
        two = kind in ("universal", "revolute2")
        if len(axes) < 1 + two:
            self.draft.fault(where, f"has no <axis{2 if axes else ''}>")
            return None, []
        directions = [scope.direction(x, name, where) for x in axes]
        for x in axes:
            self._note(x, "axis", name)
        if two:
            return Universal(*directions[:2]), axes
        if kind != "screw":
            return (Prismatic if kind == "prismatic" else Revolute)(directions[0]), axes[:1]
        if e.find("screw_thread_pitch") is not None:  # [m] per turn
            pitch = number(e, "screw_thread_pitch", 1.0, where, self.draft.fault) / (2 * np.pi)
        else:  # the older element has rad/m, and the other sign
            pitch = -1 / (number(e, "thread_pitch", 1.0, where, self.draft.fault) or np.inf)
        return Helical(directions[0], pitch), axes[:1]

    def _add_elements(self, h: Hinge, axes: list[ET.Element], in_tree: bool) -> None:
        """Springs, damping and dry friction of a joint."""
        found = [d for x in axes if (d := x.find("dynamics")) is not None]
        keys = ("damping", "friction", "spring_stiffness", "spring_reference")
        said = [[number(d, k, 0.0, h.where, self.draft.fault) for k in keys] for d in found]
        said += [[0.0] * 4] * (len(axes) - len(found))
        if not any(any(row[:3]) for row in said):
            return
        damping, friction, stiffness, rest = said[0]
        if not in_tree:
            self.draft.lacks("springs, damping and friction of cut joints", h.name)
        elif len(axes) == 1:
            self.draft.spring(h.name, h.where, damping, stiffness, rest)
            self.draft.friction(h.name, h.where, friction, 1)
        elif any(row[1] or row[2] for row in said) or said[0][0] != said[1][0]:
            self.draft.lacks("springs, friction and different damping of universal joints", h.name)
        else:
            self.draft.spring(h.name, h.where, damping)

    def _add_mimic(self, scope: Scope, name: str, e: ET.Element, tree: set[str]) -> None:
        own, where = self.draft.name("joint", scope.path(name)), f'joint "{scope.path(name)}"'
        for axis in e.findall("axis") + e.findall("axis2"):
            mimic = axis.find("mimic")
            if mimic is None:
                continue
            leader = mimic.get("joint") or ""
            if leader not in scope.joints:
                self.draft.fault(where, f'mimic: no joint named "{leader}"; {choices(leader, scope.joints)}')
                continue
            driver = self.draft.name("joint", scope.path(leader))
            one_axis = all(j.find("axis2") is None for j in (e, scope.joints[leader]))
            if not one_axis or not {own, driver} <= tree:
                self.draft.lacks("mimic of joints with two axes or of cut joints", own)
                continue
            factor, offset, reference = (
                number(mimic, k, usual, where, self.draft.fault)
                for k, usual in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
            )
            self.draft.coupling(own, where, driver, (offset - factor * reference, factor))

    # --- shapes -------------------------------------------------------------------------------------------------------

    def _add_visual(self, scope: Scope, link: str, body: str, where: str, e: ET.Element) -> None:
        found = form(self.draft, scope, e, self.trust, "visuals", where)
        if found is None:
            return
        kind, size, file = found
        pose = self._seen(scope, link, body, scope.pose(e, where, link))
        self.draft.visual(self.names[body], kind, size, pose, color(e), file)

    def _note(self, e: ET.Element, tag: str, name: str) -> None:
        """Note everything that has not been read, so that nothing is dropped silently."""
        for child, n in Counter(str(c.tag) for c in e).items():
            said = "elements of other programs" if child.startswith("{") else ASIDE[tag].get(child)
            if said is None:
                self.draft.lacks(f"elements <{child}> of <{tag}>", name or tag)
            elif said:
                self.draft.leave_out(said, n)
