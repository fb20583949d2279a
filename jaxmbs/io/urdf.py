"""Reading mechanisms from URDF files.

The files are read element by element with the standard library's XML parser: every existing parser of this format silently
drops something (MuJoCo drops mimic joints, Pinocchio mimic joints and dynamics, yourdfpy unknown elements), and here nothing
may be dropped.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.io.draft import Draft, Form, OnUnsupported, Repair, listed, rotated, tidy
from jaxmbs.io.errors import InputError, Problem, choices
from jaxmbs.io.resources import resource
from jaxmbs.io.xml import as_number, as_vector, opened
from jaxmbs.model import Model, Pose
from jaxmbs.model.given import Triple
from jaxmbs.model.joints import Fixed, Free, Planar, Prismatic, Revolute, Spherical
from jaxmbs.model.joints.base import Joint

GRAVITY = (0.0, 0.0, -9.81)
ALONG_AXIS: dict[str, Callable[[Any], Joint]] = {"revolute": Revolute, "continuous": Revolute, "prismatic": Prismatic}
WITHOUT: dict[str, Callable[[], Joint]] = {"fixed": Fixed, "floating": Free, "spherical": Spherical, "ball": Spherical}
TYPES = (*ALONG_AXIS, *WITHOUT, "planar")
# elements that do not concern the motion of bodies, by the element that contains them; "" for those that are read
ASIDE = {
    "robot": {"transmission": "transmissions", "gazebo": "settings for Gazebo", "ros2_control": "settings for ros2_control",
              "sensor": "sensors", "material": "", "mujoco": "settings for MuJoCo", "group": "groups"},
    "link": {"collision": "collision shapes", "contact": "contact parameters", "surface": "contact parameters",
             "self_filter": "collision shapes", "collision_checking": "collision shapes", "visual": "", "inertial": ""},
    "joint": {"limit": "limits of joints", "safety_controller": "safety controllers", "calibration": "calibrations",
              "origin": "", "parent": "", "child": "", "axis": "", "mimic": "", "dynamics": ""},
}  # fmt: skip


def from_urdf(
    path: str | Path,
    *,
    free_base: bool = False,
    gravity: Triple = GRAVITY,
    repair: Repair = None,
    on_unsupported: OnUnsupported = "error",
    trust: bool = False,
) -> Model:
    """Model of the URDF file at `path`.

    free_base: whether the root link moves freely, by the joint "root_joint", instead of being fixed to the world (a
    root named "world" is the world); gravity (3,) [m/s²], which the format does not contain; repair: "nearest" replaces
    unphysical inertias by the nearest physical ones, with the same mass and centre of mass, and warns of every change;
    on_unsupported: "error", or "warn" to leave out effects that a model cannot represent (loops of Gazebo, dry friction
    of floating joints); trust: also draw meshes outside the folder of the file and outside the ROS package (with its
    package.xml) that contains the file.

    Links become bodies with the same names and frames. Revolute, continuous, prismatic, fixed, floating, planar and
    spherical joints keep their names; damping becomes an element "NAME_damping", dry friction "NAME_friction" (a
    `Friction`, smooth near rest: a ModelWarning states over which speed), a mimic joint the constraint "NAME_mimic", a
    `loop_joint` (or `loop`) a cut joint; shapes become visuals. Limits, transmissions, collision shapes and settings of
    other programs are not part of a model: one ModelWarning counts them. Raises InputError with all faults, each with
    its element.

    >>> text = '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="2"/><inertia ixx="0.1" ixy="0" '
    >>> text += 'ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link><joint name="j" type="continuous">'
    >>> text += '<parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint></robot>'
    >>> from pathlib import Path
    >>> _ = Path("arm.urdf").write_text(text)
    >>> mbs.from_urdf("arm.urdf")
    <Model 'r': 2 bodies (a, b), nq = 1, nv = 1>
    """
    return reader(path, gravity=gravity, repair=repair, on_unsupported=on_unsupported, trust=trust).model(free_base)


def reader(
    path: str | Path, *, gravity: Triple = GRAVITY, repair: Repair = None, on_unsupported: OnUnsupported = "error",
    trust: bool = False,
) -> _Reader:  # fmt: skip
    """The reader of the file, with the arguments of `from_urdf`. Raises InputError if it is no URDF."""
    path = Path(path)
    robot = opened(path, "robot", "a URDF")
    if any("xacro" in str(e.tag) for e in robot.iter()):
        raise InputError(Problem("", "contains xacro macros; expand them first: xacro FILE > FILE.urdf"), path)
    draft = Draft(robot.get("name") or path.stem, gravity, path, repair, on_unsupported)
    return _Reader(draft, robot, trust)


class _Reader:
    def __init__(self, draft: Draft, robot: ET.Element, trust: bool):
        self.draft, self.robot, self.trust = draft, robot, trust
        self.links, self.joints = self._named("link"), self._named("joint")
        self.colors = {m.get("name"): _color(m) for m in robot.findall("material")}
        self.world: str | None = None  # the link that is the world

    def model(self, free_base: bool) -> Model:
        """The model of the file, and one warning with all remarks. Raises InputError with all faults."""
        draft = self.draft
        roots = self._find_world()
        if self.world and free_base:
            draft.fault(
                'link "world"', "is the root link and stands for the world, which cannot move; leave free_base out"
            )
        for name, link in self.links.items():
            self._add_link(name, link)
        for root in roots:
            if root != self.world:
                name = draft.new_name("joint", "root_joint")
                draft.joint(name, f'link "{root}"', Free() if free_base else Fixed(), "world", self._body(root))
        for name, joint in self.joints.items():
            self._add_joint(name, joint)
        for name, joint in self.joints.items():
            self._add_mimic(name, joint)
        for e in (*self.robot.findall("loop_joint"), *self.robot.findall("loop")):
            self._add_loop(e)
        self._note_the_rest()
        return draft.build()

    def collisions(self) -> dict[str, list[tuple[Form, Pose]]]:
        """{body: [(collision shape, its pose), ...]}. Raises InputError with all faults."""
        self._find_world()
        out: dict[str, list[Any]] = {}
        for name, link in self.links.items():
            body, where = self._body(name), f'link "{name}"'
            for e in link.findall("collision"):
                form = self._form(e, "collision shapes", where)
                if form and (solid := self.draft.solid(*form, where)):
                    out.setdefault(body, []).append((solid, self._pose(e, where)))
        self.draft.tell()
        return out

    def _find_world(self) -> list[str]:
        """The root links, one of which may be the world."""
        roots = self._roots()
        self.world = "world" if not self.draft.faults and roots == ["world"] else None
        return roots

    def _named(self, tag: str) -> dict[str, ET.Element]:
        out: dict[str, ET.Element] = {}
        for k, e in enumerate(self.robot.findall(tag), 1):
            name = e.get("name") or ""
            if not name or name in out:
                said = f'the name "{name}" is used twice' if name else "it has no name"
                self.draft.fault(f"{tag} {k}", said)
            out[name] = e
        if tag == "link" and not out:
            self.draft.fault("", "has no links")
        return out

    def _roots(self) -> list[str]:
        """Links that are not the child of any joint; the ends of every joint are checked as well."""
        below = set()
        for name, joint in self.joints.items():
            for end in ("parent", "child"):
                e = joint.find(end)
                link = (e.get("link") or "") if e is not None else ""
                if link not in self.links:
                    self.draft.fault(f'joint "{name}"', f'{end}: no link named "{link}"; {choices(link, self.links)}')
                elif end == "child":
                    if link in below:
                        self.draft.fault(
                            f'joint "{name}"',
                            f'link "{link}" is the child of two joints; make one of them a <loop_joint>',
                        )
                    below.add(link)
        roots = [link for link in self.links if link not in below]
        if len(roots) > 1:
            self.draft.fault(
                "", f"links {listed(roots)} are not the child of any joint, but a URDF has only one root link"
            )
        return roots

    def _body(self, link: str) -> str:
        return "world" if link == self.world else self.draft.name("body", link)

    # --- elements -----------------------------------------------------------------------------------------------------

    def _add_link(self, name: str, link: ET.Element) -> None:
        where, inertial = f'link "{name}"', link.find("inertial")
        found: tuple[Any, ...] = ()
        if inertial is not None:
            pose, mass, inertia = self._pose(inertial, where), inertial.find("mass"), inertial.find("inertia")
            m = self._number(mass, "value", where)
            entries = {k: self._number(inertia, k, where) for k in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")}
            xx, yy, zz, xy, xz, yz = entries.values()
            I = rotated(np.asarray(pose.rotation), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
            found = m, pose.position, I if np.any(I - np.diag(np.diag(I))) else np.diag(I)
        if name == self.world:
            self.draft.leave_out("inertia of the world", int(inertial is not None))
        else:
            self.draft.body(self._body(name), where, *found)
        for visual in link.findall("visual"):
            self._add_visual(name, where, visual)

    def _add_joint(self, name: str, e: ET.Element) -> None:
        where, kind, pose = f'joint "{name}"', e.get("type") or "", self._pose(e, f'joint "{name}"')
        parent, child = (x.get("link") if x is not None else None for x in (e.find("parent"), e.find("child")))
        if parent not in self.links or child not in self.links or child == self.world:
            return  # reported already
        child_pose = Pose()
        made = self._joint(kind, e, where)
        if isinstance(made, Planar):
            normal = self._axis(e, where)
            pose, child_pose = pose.turned_to(normal), child_pose.turned_to(normal)
        own = self.draft.name("joint", name)
        self.draft.joint(own, where, made, self._body(parent), self._body(child), pose, child_pose)
        dynamics = e.find("dynamics")
        if dynamics is not None and not isinstance(made, Fixed):
            self.draft.spring(own, where, self._number(dynamics, "damping", where, 0.0))
            self.draft.friction(own, where, self._number(dynamics, "friction", where, 0.0), made.nv)
            if others := sorted(k for k in set(dynamics.attrib) - {"damping", "friction"} if _says(dynamics.get(k))):
                self.draft.lacks(f"{', '.join(others)} of joints", name)

    def _joint(self, kind: str, e: ET.Element, where: str) -> Joint:
        if kind in ALONG_AXIS:
            return ALONG_AXIS[kind](self._axis(e, where))
        if kind in WITHOUT:
            return WITHOUT[kind]()
        if kind != "planar":
            self.draft.fault(where, f'type "{kind}" does not exist; {choices(kind, TYPES, "types")}')
        return Planar()

    def _add_mimic(self, name: str, joint: ET.Element) -> None:
        e, where = joint.find("mimic"), f'joint "{name}"'
        if e is None or joint.get("type") == "fixed":
            return
        driver = e.get("joint") or ""
        if driver not in self.joints:
            self.draft.lacks(f'mimic of "{driver}", which does not exist ({choices(driver, self.joints)})', name)
            return
        c = self._number(e, "offset", where, 0.0), self._number(e, "multiplier", where, 1.0)
        own = self.draft.name("joint", name)
        if self.joints[driver].get("type") == "fixed":  # the driver stays at zero
            self.draft.coupling(own, where, None, c[:1])
        else:
            self.draft.coupling(own, where, self.draft.name("joint", driver), c)

    def _add_loop(self, e: ET.Element) -> None:
        """Add a cut joint: two links (link1, link2, or predecessor, successor), an origin in each, a type and an axis."""
        name = e.get("name") or e.tag
        where, bodies, poses = f'{e.tag} "{name}"', [], []
        for tags in (("link1", "predecessor"), ("link2", "successor")):
            end = next((x for tag in tags if (x := e.find(tag)) is not None), None)
            link = (end.get("link") or "") if end is not None else ""
            if end is None or link not in self.links:
                self.draft.fault(where, f'{" or ".join(tags)}: no link named "{link}"; {choices(link, self.links)}')
                return
            bodies.append(self._body(link))
            poses.append(self._pose(end, where) if end.find("origin") is not None else self._origin(end, where))
        joint = self._joint(e.get("type") or "", e, where)
        if isinstance(joint, Planar):
            normal = self._axis(e, where)
            poses = [p.turned_to(normal) for p in poses]
        with self.draft.at(where):
            self.draft.mech.close_loop(self.draft.name("joint", name), joint, *bodies, *poses)

    def _add_visual(self, link: str, where: str, e: ET.Element) -> None:
        form, material = self._form(e, "visuals", where), e.find("material")
        if form is None:
            return
        kind, size, file = form
        color = (_color(material) or self.colors.get(material.get("name")) or "") if material is not None else ""
        self.draft.visual(self._body(link), kind, size, self._pose(e, where), color, file)

    def _form(self, e: ET.Element, what: str, where: str) -> tuple[str, tuple[float, ...], str] | None:
        """The name of a shape, its extents (of a mesh its scale) and its mesh file; None, which the draft notes, if there is
        none that can be used. what: elements of this kind, in the plural."""
        geometry = e.find("geometry")
        shape = geometry[0] if geometry is not None and len(geometry) else None
        if shape is None:
            self.draft.leave_out(f"{what} that have no shape")
            return None
        size, file = self._numbers(shape, "size", (1.0, 1.0, 1.0), where), ""
        if shape.tag in ("cylinder", "capsule"):
            d = 2 * self._number(shape, "radius", where)
            size = (d, d, self._number(shape, "length", where))
        elif shape.tag == "sphere":
            size = (2 * self._number(shape, "radius", where),) * 3
        elif shape.tag == "mesh":
            size, file = (
                self._numbers(shape, "scale", (1.0, 1.0, 1.0), where),
                resource(self.draft.path, shape.get("filename") or "", self.trust),
            )
            if not file:
                self.draft.leave_out(
                    "meshes outside the file's folder, which are read only if you trust the file (trust=True)"
                )
                return None
        elif shape.tag != "box":
            self.draft.leave_out(f"shapes <{shape.tag}>")
            return None
        return str(shape.tag), size, file

    def _note_the_rest(self) -> None:
        """Note everything that has not been read, so that nothing is dropped silently."""
        self._note(self.robot, "robot", {"link", "joint", "loop_joint", "loop"})
        for tag, found in (("link", self.links), ("joint", self.joints)):
            for e in found.values():
                self._note(e, tag, set())
        for e in self.robot.findall("gazebo"):
            for joint in e.findall("joint"):
                self.draft.lacks("joints of Gazebo that close loops", joint.get("name") or "")

    def _note(self, e: ET.Element, tag: str, read: set[str]) -> None:
        for child, n in Counter(str(c.tag) for c in e if str(c.tag) not in read).items():
            said = ASIDE[tag].get(child, f"elements <{child}>, which are not URDF")
            if said:
                self.draft.leave_out(said, n)

    # --- numbers ------------------------------------------------------------------------------------------------------

    def _number(self, e: ET.Element | None, key: str, where: str, default: float | None = None) -> float:
        given = None if e is None else e.get(key)
        return default if given is None and default is not None else as_number(given, key, where, self.draft.fault)

    def _numbers(self, e: ET.Element | None, key: str, default: tuple[float, ...], where: str) -> tuple[float, ...]:
        given = None if e is None else e.get(key)
        return default if given is None else as_vector(given, default, key, where, self.draft.fault)

    def _axis(self, e: ET.Element, where: str) -> np.ndarray:
        axis = np.array(self._numbers(e.find("axis"), "xyz", (1.0, 0.0, 0.0), where))
        if not axis.any():
            self.draft.fault(where, "its axis is zero; it needs a direction")
            return np.array([1.0, 0.0, 0.0])
        return axis / np.linalg.norm(axis)

    def _pose(self, e: ET.Element, where: str) -> Pose:
        origin = e.find("origin")
        return Pose((0.0, 0.0, 0.0), np.eye(3)) if origin is None else self._origin(origin, where)

    def _origin(self, e: ET.Element, where: str) -> Pose:
        zero = (0.0, 0.0, 0.0)
        roll, pitch, yaw = self._numbers(e, "rpy", zero, where)
        return Pose(self._numbers(e, "xyz", zero, where), of_angles(roll, pitch, yaw))


def of_angles(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """Rotation Rz(yaw) Ry(pitch) Rx(roll)."""
    cr, cp, cy = math.cos(roll), math.cos(pitch), math.cos(yaw)
    sr, sp, sy = math.sin(roll), math.sin(pitch), math.sin(yaw)
    return tidy(np.array([
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]))  # fmt: skip


def _says(value: str | None) -> bool:
    """Whether an attribute has a value other than zero."""
    try:
        return bool(float(value or 0))
    except ValueError:
        return True


def _color(material: ET.Element) -> str | None:
    color = material.find("color")
    parts = (color.get("rgba") or "").split() if color is not None else []
    try:
        return "#" + "".join(f"{round(255 * min(max(float(c), 0.0), 1.0)):02x}" for c in parts[:3]) if parts else None
    except ValueError:
        return None
