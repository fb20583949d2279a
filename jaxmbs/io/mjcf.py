"""Mechanisms from MJCF files. MuJoCo itself reads and compiles the files, so that includes, defaults, frames and masses
are those of MuJoCo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.errors import ModelError
from jaxmbs.io.draft import Draft, Form, OnUnsupported, Repair, rotated, tidy
from jaxmbs.io.errors import InputError, Problem
from jaxmbs.io.mjcf_files import require_own_files
from jaxmbs.io.mjcf_flags import Off
from jaxmbs.model import Model, Pose
from jaxmbs.model.constraints import Coupling
from jaxmbs.model.field_rules import Kind, checked
from jaxmbs.model.forces import Damper
from jaxmbs.model.given import Triple
from jaxmbs.model.joints import Fixed, Free, Prismatic, Revolute, Spherical
from jaxmbs.model.joints.base import Joint
from jaxmbs.spatial import from_quaternion

HIDDEN = 3  # geoms of this group and above are not drawn by default


def from_mjcf(
    path: str | Path,
    *,
    free_base: bool = False,
    gravity: Triple | None = None,
    repair: Repair = None,
    on_unsupported: OnUnsupported = "error",
    trust: bool = False,
) -> Model:
    """Model of the MJCF file at `path`, with everything that it includes.

    free_base: whether bodies that are welded to the world move freely instead, by the joint "NAME_free"; gravity (3,)
    [m/s²], None for the gravity of the file; repair: "nearest" replaces unphysical explicit inertias by the nearest
    physical ones and warns of every change; on_unsupported: "error", or "warn" to leave out effects that a model cannot
    represent (tendons, fluids, dry friction of ball and free joints, ...); trust: also read files that the MJCF
    includes or names (meshes, textures, ...) outside its own folder and the folders below.

    Coordinates of hinges and slides are measured from the file's `ref`. Several joints of a body become a chain through
    massless bodies "BODY_JOINT". Springs, dampers and dry friction of joints are elements "JOINT_spring",
    "JOINT_damping" and "JOINT_friction" (a `Friction`, smooth near rest: a ModelWarning states over which speed). The
    equalities connect and weld become cut joints, and joint equalities become couplings; these are exact, whereas
    MuJoCo's are soft. Geoms that MuJoCo shows become visuals. Contacts, limits and actuators are not part of a model:
    one ModelWarning counts them. Effects that a flag of the file's option disables (gravity, spring, damper,
    frictionloss, equality) are left out, and that warning counts them, too; gravity acts nevertheless if `gravity` is
    given. Raises InputError with all faults, each with its element.

    >>> from pathlib import Path
    >>> text = '<mujoco model="p"><worldbody><body name="rod"><joint name="pin" axis="0 1 0"/><geom type="box" '
    >>> text += 'size="0.1 0.1 0.5" pos="0 0 -0.5" contype="0" conaffinity="0"/></body></worldbody></mujoco>'
    >>> _ = Path("pendulum.xml").write_text(text)
    >>> mbs.from_mjcf("pendulum.xml")
    <Model 'p': 1 body (rod), nq = 1, nv = 1>
    """
    found = reader(path, gravity=gravity, repair=repair, on_unsupported=on_unsupported, trust=trust)
    return found.model(free_base)


def reader(
    path: str | Path, *, gravity: Triple | None = None, repair: Repair = None, on_unsupported: OnUnsupported = "error",
    trust: bool = False,
) -> _Reader:  # fmt: skip
    """The reader of the file, with the arguments of `from_mjcf`. Raises InputError if MuJoCo cannot compile it."""
    try:
        import mujoco
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("reading MJCF files needs mujoco: pip install 'jaxmbs[io]'") from error
    path = Path(path)
    if not path.is_file():
        raise InputError(Problem("", f"{path} cannot be read: there is no such file"), path)
    if not trust:
        require_own_files(path)
    try:
        spec = mujoco.MjSpec.from_file(str(path))  # pyright: ignore[reportAttributeAccessIssue]
    except (ValueError, RuntimeError) as error:
        raise InputError(Problem("", f"MuJoCo cannot read it: {' '.join(str(error).split())}"), path) from None
    off = Off.of(mujoco, int(spec.option.disableflags))
    own = (0.0, 0.0, 0.0) if off.gravity else tuple(spec.option.gravity)
    draft = Draft(spec.modelname or path.stem, own if gravity is None else gravity, path, repair, on_unsupported)
    _check_inertias(spec, draft)
    try:
        m = spec.compile()
    except (ValueError, RuntimeError) as error:
        if not draft.faults:  # otherwise MuJoCo only repeats the first fault
            draft.fault("", f"MuJoCo cannot compile it: {' '.join(str(error).split())}")
        raise InputError(draft.faults, path) from None
    return _Reader(draft, mujoco, spec, m, off, gravity is not None)


def _check_inertias(spec: Any, draft: Draft) -> None:
    """Check all explicit inertias before MuJoCo does, because it names only the first that it refuses."""
    for body in spec.bodies:
        if not body.explicitinertial:
            continue
        where, full = f'body "{body.name}"', np.array(body.fullinertia)
        given = np.array(body.inertia)
        if np.isfinite(full).all():
            xx, yy, zz, xy, xz, yz = full
            given = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if not np.isfinite(given).all() or not given.any():
            continue
        fixed = draft.physical(where, given)
        if fixed is not given:
            body.fullinertia = [*np.diag(fixed), fixed[0, 1], fixed[0, 2], fixed[1, 2]] if given.ndim == 2 else full
            body.inertia = body.inertia if given.ndim == 2 else np.diag(fixed)
        try:
            checked(Kind.INERTIA, fixed, "inertia")
        except ModelError as error:
            hint = '; repair="nearest" makes it physical' if not draft.repair else ""
            draft.fault(where, f"{error}{hint}")


class _Reader:
    def __init__(self, draft: Draft, mujoco: Any, spec: Any, m: Any, off: Off, regravitated: bool):
        self.draft, self.mujoco, self.spec, self.m, self.off = draft, mujoco, spec, m, off
        # MuJoCo does not compensate gravity if a flag disables it; gravity given by the caller acts, and is compensated
        self.compensates = not off.passive and (regravitated or not off.gravity)
        self.bodies = ["world"]
        self.joints: dict[int, str] = {}

    def model(self, free_base: bool) -> Model:
        m, draft = self.m, self.draft
        self._name_bodies()
        for j in range(m.njnt):
            self.joints[j] = draft.name("joint", self._name("JOINT", j) or self._unnamed(j))
        for b in range(1, m.nbody):
            self._add_body(b, free_base)
        for j in range(m.njnt):
            self._add_elements(j)
        for k in range(m.neq):
            self._add_equality(k)
        for g in range(m.ngeom):
            self._add_visual(g)
        self._note_the_rest()
        return draft.build()

    def collisions(self) -> dict[str, list[tuple[Form, Pose]]]:
        """{body: [(collision shape, its pose), ...]}. Raises InputError with all faults."""
        m, out = self.m, {}
        self._name_bodies()
        for g in np.flatnonzero((m.geom_contype != 0) | (m.geom_conaffinity != 0)).tolist():
            body = self.bodies[m.geom_bodyid[g]]
            if placed := self._collision(g, f'geom "{self._name("GEOM", g) or g}"'):
                out.setdefault(body, []).append(placed)
        self.draft.tell()
        return out

    def _collision(self, g: int, where: str) -> tuple[Form, Pose] | None:
        m, types, size = self.m, self.mujoco.mjtGeom, self.m.geom_size[g].tolist()
        pose, kind = _pose(m.geom_pos[g], m.geom_quat[g]), types(int(m.geom_type[g]))
        if kind == types.mjGEOM_MESH and (file := self._mesh_file(mesh := int(m.geom_dataid[g]))):
            solid = self.draft.solid("mesh", np.asarray(self.spec.meshes[mesh].scale).tolist(), file, where)
            return (solid, self._mesh_pose(mesh, pose)) if solid else None
        word = kind.name.removeprefix("mjGEOM_").lower()
        extents = {"sphere": (2 * size[0],) * 3, "box": tuple(2 * x for x in size)}
        round_ones = {name: (2 * size[0], 2 * size[0], 2 * size[1]) for name in ("cylinder", "capsule")}
        if word not in (known := extents | round_ones):
            self.draft.leave_out(f"collision shapes of the type {word}" + " without a file" * (word == "mesh"))
            return None
        solid = self.draft.solid(word, known[word], "", where)
        return (solid, pose) if solid else None

    def _name_bodies(self) -> None:
        for b in range(1, self.m.nbody):
            self.bodies.append(self.draft.name("body", self._name("BODY", b) or f"body_{b}"))

    def _name(self, kind: str, i: int) -> str:
        return self.mujoco.mj_id2name(self.m, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind}"), i) or ""

    def _unnamed(self, j: int) -> str:
        body = int(self.m.jnt_bodyid[j])
        place = j - int(self.m.body_jntadr[body])
        return f"{self.bodies[body]}_joint" + (f"_{place + 1}" if place else "")

    # --- bodies and joints --------------------------------------------------------------------------------------------

    def _add_body(self, b: int, free_base: bool) -> None:
        """Add a body with its joints; several joints become a chain through massless bodies."""
        m, draft, name = self.m, self.draft, self.bodies[b]
        where = f'body "{self._name("BODY", b) or b}"'
        R = _rotation(m.body_iquat[b])
        I = rotated(R, np.diag(m.body_inertia[b]))
        whole = m.body_inertia[b] if np.array_equal(R, np.eye(3)) else I
        draft.body(name, where, m.body_mass[b], tuple(m.body_ipos[b]), whole)
        parent, pose = self.bodies[m.body_parentid[b]], _pose(m.body_pos[b], m.body_quat[b])
        joints = range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b])
        if m.body_mocapid[b] >= 0:
            draft.lacks("motion of mocap bodies", name)
        if not joints:
            floats = free_base and parent == "world"
            own = draft.new_name("joint", f"{name}_free" if floats else f"{name}_weld")
            draft.joint(own, where, Free() if floats else Fixed(), parent, name, pose)
        for j in joints:
            last, at = j == joints[-1], tuple(m.jnt_pos[j])
            child = name if last else draft.new_name("body", f"{name}_{self.joints[j]}")
            if not last:
                draft.body(child, where)
            made = self._joint(j)
            if isinstance(made, Free):  # its coordinates are the pose in the world
                poses = Pose(), Pose()
                parent = "world"
            else:
                poses = _moved(pose, at), Pose(at, np.eye(3))
            armature = m.dof_armature[self._dofs(j)]
            if np.ptp(armature):
                draft.lacks("armature that differs between the degrees of freedom of joints", self.joints[j])
            geared = 0.0 if np.ptp(armature) else float(armature[0])
            draft.joint(self.joints[j], where, made, parent, child, *poses, armature=geared)
            parent, pose = child, Pose((0.0, 0.0, 0.0), np.eye(3))

    def _joint(self, j: int) -> Joint:
        axis = self.m.jnt_axis[j] / np.linalg.norm(self.m.jnt_axis[j])
        kind = int(self.m.jnt_type[j])
        types = self.mujoco.mjtJoint
        if kind == types.mjJNT_HINGE:
            return Revolute(axis)
        if kind == types.mjJNT_SLIDE:
            return Prismatic(axis)
        return Free() if kind == types.mjJNT_FREE else Spherical()

    def _dofs(self, j: int) -> slice:
        first = int(self.m.jnt_dofadr[j])
        return slice(first, first + {0: 6, 1: 3}.get(int(self.m.jnt_type[j]), 1))

    def _add_elements(self, j: int) -> None:
        """Add the spring, damping and dry friction of a joint, and note what a model cannot represent."""
        m, draft, name = self.m, self.draft, self.joints[j]
        where = f'joint "{name}"'
        dofs = self._dofs(j)
        off, single = self.off, dofs.stop - dofs.start == 1
        stiffness = self._acting("springs", off.springs, m.jnt_stiffness[j])
        damping = self._acting("dampers", off.dampers, m.dof_damping[dofs])
        friction = self._acting("dry friction", off.friction, m.dof_frictionloss[dofs])
        for key in ("jnt_stiffnesspoly", "dof_dampingpoly", "jnt_springyield"):
            numbers, disabled = getattr(m, key, None), off.dampers if key.startswith("dof") else off.springs
            if numbers is None or disabled:
                continue
            if np.any(np.asarray(numbers)[dofs if key.startswith("dof") else j]):
                draft.lacks(f"{key.partition('_')[2]} of joints", name)
        draft.friction(name, where, float(np.max(friction)), dofs.stop - dofs.start)
        if stiffness and not single:
            draft.lacks("springs of ball and free joints", name)
        if single:
            at = m.jnt_qposadr[j]
            draft.spring(name, where, float(damping[0]), float(stiffness), float(m.qpos_spring[at] - m.qpos0[at]))
        elif np.any(damping):
            if np.ptp(damping):
                draft.lacks("damping that differs between the degrees of freedom of joints", name)
            else:
                draft.mech.add_force(draft.new_name("force", f"{name}_damping"), Damper(name, float(damping[0])))

    def _acting(self, what: str, disabled: bool, numbers: Any) -> np.ndarray:
        """The numbers of the effect `what`, or zeros if a flag of the file disables it, which the draft then notes."""
        if disabled and np.any(numbers):
            self.draft.leave_out(f"{what}, disabled by a flag")
        return np.zeros_like(numbers) if disabled else np.asarray(numbers)

    # --- equalities ---------------------------------------------------------------------------------------------------

    def _add_equality(self, k: int) -> None:
        m, draft, types = self.m, self.draft, self.mujoco.mjtEq
        kind, data = int(m.eq_type[k]), m.eq_data[k]
        word = types(kind).name.removeprefix("mjEQ_").lower()
        name = draft.name("joint", self._name("EQUALITY", k) or f"{word}_{k + 1}")
        where = f'equality "{name}"'
        if not m.eq_active0[k]:
            draft.leave_out("equalities that are not active")
            return
        if self.off.equalities:
            draft.leave_out("equalities, disabled by a flag")
            return
        one, other = int(m.eq_obj1id[k]), int(m.eq_obj2id[k])
        with draft.at(where):
            if kind == types.mjEQ_JOINT:
                c = np.trim_zeros(data[:5], "b") if np.any(data[:5]) else data[:1]
                driver = self.joints[other] if other >= 0 else None
                draft.mech.add_constraint(
                    name, Coupling(self.joints[one], driver, tuple(c) if driver else tuple(data[:1]))
                )
            elif kind in (types.mjEQ_CONNECT, types.mjEQ_WELD):
                joint = Spherical() if kind == types.mjEQ_CONNECT else Fixed()
                if m.eq_objtype[k] == self.mujoco.mjtObj.mjOBJ_SITE:
                    ends = [int(m.site_bodyid[s]) for s in (one, other)]
                    poses = [_pose(m.site_pos[s], m.site_quat[s]) for s in (one, other)]
                elif kind == types.mjEQ_CONNECT:
                    ends, poses = [one, other], [Pose(tuple(data[0:3])), Pose(tuple(data[3:6]))]
                else:
                    ends, poses = [one, other], [_pose(data[3:6], data[6:10]), Pose(tuple(data[0:3]))]
                first, second = (self.bodies[b] for b in ends)
                draft.mech.close_loop(name, joint, first, second, *poses)
            else:
                draft.lacks(f"{word} equalities", name)

    # --- pictures and the rest ----------------------------------------------------------------------------------------

    def _add_visual(self, g: int) -> None:
        m, draft, types = self.m, self.draft, self.mujoco.mjtGeom
        kind, size = int(m.geom_type[g]), m.geom_size[g]
        if m.geom_group[g] >= HIDDEN:
            return
        pose, body = _pose(m.geom_pos[g], m.geom_quat[g]), self.bodies[m.geom_bodyid[g]]
        rgba = m.geom_rgba[g] if m.geom_matid[g] < 0 else m.mat_rgba[m.geom_matid[g]]
        color = "#" + "".join(f"{round(255 * min(max(float(c), 0.0), 1.0)):02x}" for c in rgba[:3])
        r, half = float(size[0]), float(size[1])

        def add(shape: str, extents: Any, at: Pose = pose, file: str = "") -> None:
            draft.mech.add_visual(body, shape, tuple(map(float, extents)), at, color, file)

        if kind == types.mjGEOM_PLANE:
            add("box", (2 * r or 4.0, 2 * half or 4.0, 0.0))
        elif kind == types.mjGEOM_SPHERE:
            add("sphere", (2 * r,) * 3)
        elif kind == types.mjGEOM_ELLIPSOID:
            add("sphere", 2 * size)
        elif kind == types.mjGEOM_BOX:
            add("box", 2 * size)
        elif kind in (types.mjGEOM_CYLINDER, types.mjGEOM_CAPSULE):
            add("cylinder", (2 * r, 2 * r, 2 * half))
            for end in (-half, half) if kind == types.mjGEOM_CAPSULE else ():
                add("sphere", (2 * r,) * 3, _moved(pose, (0.0, 0.0, end)))
        elif kind == types.mjGEOM_MESH and (file := self._mesh_file(m.geom_dataid[g])):
            add("mesh", self.spec.meshes[m.geom_dataid[g]].scale, self._mesh_pose(m.geom_dataid[g], pose), file)
        else:
            draft.leave_out("geoms that cannot be drawn")

    def _mesh_file(self, mesh: int) -> str:
        file = self.spec.meshes[mesh].file
        return str((self.draft.path.parent / (self.spec.compiler.meshdir or "") / file).resolve()) if file else ""

    def _mesh_pose(self, mesh: int, geom: Pose) -> Pose:
        """The pose of the mesh file's own frame: MuJoCo moves a mesh to its centre of mass and principal axes."""
        R = np.asarray(geom.rotation) @ _rotation(self.m.mesh_quat[mesh]).T
        return Pose(tuple(np.asarray(geom.position) - R @ self.m.mesh_pos[mesh]), R)

    def _note_the_rest(self) -> None:
        m, draft, off = self.m, self.draft, self.off
        touching = int(np.sum((m.geom_contype != 0) | (m.geom_conaffinity != 0)))
        for what, n, disabled in (
            ("geoms that collide", touching, off.contacts),
            ("limits of joints", int(np.sum(m.jnt_limited != 0)), off.limits),
            ("actuators", m.nu, off.actuators),
        ):
            if not disabled:
                draft.leave_out(what, n)
        draft.leave_out("plugins", m.nplugin)
        for b in np.flatnonzero(m.body_gravcomp) if self.compensates else ():
            draft.lacks("gravity compensation of bodies", self.bodies[b])
        for what in ("density", "viscosity"):
            if getattr(m.opt, what) and not off.passive:
                draft.lacks("a fluid", what)
        for t in range(m.ntendon):
            acts = (
                self._acting("springs", off.springs, m.tendon_stiffness[t]),
                self._acting("dampers", off.dampers, m.tendon_damping[t]),
                self._acting("dry friction", off.friction, m.tendon_frictionloss[t]),
                getattr(m, "tendon_armature", [0])[t],
            )
            name = self._name("TENDON", t) or f"tendon {t + 1}"
            if any(acts):
                draft.lacks("tendons with stiffness, damping, friction or armature", name)
            else:
                draft.leave_out("tendons")
        for k in range(m.nflex):
            draft.lacks("flexible bodies", self._name("FLEX", k) or f"flex {k + 1}")


def _rotation(quaternion: Any) -> np.ndarray:
    return tidy(np.array([*from_quaternion([float(x) for x in quaternion])], float).reshape(3, 3))


def _pose(position: Any, quaternion: Any) -> Pose:
    return Pose(tuple(map(float, position)), _rotation(quaternion))


def _moved(pose: Pose, by: tuple[float, ...]) -> Pose:
    """The frame moved along its own axes."""
    return Pose(tuple(np.asarray(pose.position) + np.asarray(pose.rotation) @ np.asarray(by, float)), pose.rotation)
