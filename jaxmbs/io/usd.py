"""Reading mechanisms from USD files with physics (UsdPhysics), by Pixar's own library: pip install 'jaxmbs[usd]'."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.io.draft import Draft, Form, OnUnsupported, Repair, tidy
from jaxmbs.io.errors import InputError, Problem
from jaxmbs.io.hinges import Hinge, composed, connect, inverse
from jaxmbs.io.names import TRUST, within
from jaxmbs.io.usd_shapes import form_of, orthonormal
from jaxmbs.model import Model, Pose
from jaxmbs.model.given import Triple
from jaxmbs.model.joints import Fixed, Prismatic, Revolute, Spherical
from jaxmbs.model.joints.base import Joint

AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
ALONG_AXIS: dict[str, type[Revolute] | type[Prismatic]] = {
    "PhysicsRevoluteJoint": Revolute,
    "PhysicsPrismaticJoint": Prismatic,
}
WITHOUT: dict[str, type[Fixed] | type[Spherical]] = {"PhysicsFixedJoint": Fixed, "PhysicsSphericalJoint": Spherical}
EARTH = 9.81  # [m/s²], where a scene does not say
_FLAT = 1e-5  # by which axes of a frame may differ from unit vectors: the format holds single precision


def from_usd(
    path: str | Path,
    *,
    gravity: Triple | None = None,
    repair: Repair = None,
    on_unsupported: OnUnsupported = "error",
    trust: bool = False,
) -> Model:
    """Model of the USD file at `path` (.usd, .usda, .usdc, .usdz).

    gravity (3,) [m/s²], by default that of the file's scene, or 9.81 against the up axis; repair, on_unsupported: as for
    `from_urdf`; trust: also read layers in other folders that the file refers to.

    Rigid bodies become bodies named as their prims, with the prims' frames; they need a mass and an inertia (MassAPI).
    Revolute, prismatic, spherical and fixed joints keep names and signs; joints with excludeFromArticulation, and those
    that close a loop of the others, become cut joints. A body that no joint connects to the world moves freely from its
    pose on the stage, by the joint "NAME_free"; of bodies that joints connect to each other, that is the one with the
    articulation's root. Drives become springs and dampers in joints. Lengths and masses are converted to SI; numbers of the
    format have single precision. Limits, collision shapes and pictures are not part of the model: one ModelWarning counts
    them. Raises InputError with all faults, each with the path of its prim.

    >>> mbs.from_usd("arm.usda")  # doctest: +SKIP
    <Model 'arm': 2 bodies (upper, lower), nq = 2, nv = 2>
    """
    return reader(path, gravity=gravity, repair=repair, on_unsupported=on_unsupported, trust=trust).model()


def reader(
    path: str | Path,
    *,
    gravity: Triple | None = None,
    repair: Repair = None,
    on_unsupported: OnUnsupported = "error",
    trust: bool = False,
) -> _Reader:
    """The reader of a file; options as those of `from_usd`. Raises InputError."""
    path = Path(path)
    try:
        Tf, Usd = _pxr("Tf"), _pxr("Usd")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("reading USD files needs usd-core: pip install 'jaxmbs[usd]'") from error
    if not path.is_file():
        raise InputError(Problem("", "cannot be read: there is no such file"), path)
    try:
        stage = Usd.Stage.Open(str(path))
    except Tf.ErrorException as error:
        raise InputError(Problem("", f"not a USD file: {error}"), path) from None
    broken = stage.GetCompositionErrors() if hasattr(stage, "GetCompositionErrors") else ()
    if broken:
        raise InputError([Problem("", f"cannot be composed: {error}") for error in broken[:6]], path)
    elsewhere = [
        layer.realPath for layer in stage.GetUsedLayers() if layer.realPath and not within(path.parent, layer.realPath)
    ]
    if elsewhere and not trust:
        said = (
            f"refers to {elsewhere[0]}, which lies outside its folder; put it there, or, if you trust it, pass {TRUST}"
        )
        raise InputError(Problem("", said), path)
    return _Reader(stage, path, gravity, repair, on_unsupported)


class _Reader:
    def __init__(self, stage: Any, path: Path, gravity: Any, repair: Repair, on_unsupported: OnUnsupported):
        self.stage, self.geom, self.physics = stage, _pxr("UsdGeom"), _pxr("UsdPhysics")
        self.meter = self.geom.GetStageMetersPerUnit(stage)
        self.kilogram = self.physics.GetStageKilogramsPerUnit(stage)
        self.places = self.geom.XformCache()
        name = stage.GetDefaultPrim().GetName() if stage.GetDefaultPrim() else path.stem
        self.draft = Draft(name, self._gravity() if gravity is None else gravity, path, repair, on_unsupported)
        self.bodies: dict[str, Any] = {}  # by path
        self.names: dict[str, str] = {"": "world"}  # of bodies, by path
        self.roots: set[str] = set()  # paths of articulation roots

    def model(self) -> Model:
        """The model of the stage, and one warning with all remarks. Raises InputError with all faults."""
        hinges = []
        for prim in self._prims():
            if prim.HasAPI(self.physics.ArticulationRootAPI):
                self.roots.add(str(prim.GetPath()))
            if prim.HasAPI(self.physics.RigidBodyAPI):
                self._add_body(prim)
        if not self.bodies and not self.draft.faults:
            self.draft.fault("", "has no rigid bodies; apply UsdPhysics.RigidBodyAPI to the prims that move")
        for prim in self._prims():
            if prim.IsA(self.physics.Joint) and (hinge := self._hinge(prim)):
                hinges.append(hinge)
            self._note(prim)
        if not self.draft.faults:
            self._connect(hinges)
        return self.draft.build()

    def collisions(self) -> dict[str, list[tuple[Form, Pose]]]:
        """{body: [(collision shape, its pose), ...]}, with those of no body on the world. Raises InputError with all
        faults."""
        out: dict[str, list[tuple[Form, Pose]]] = {}
        for prim in self._prims():
            if prim.HasAPI(self.physics.RigidBodyAPI):
                self._name_body(prim)
        for prim in self._prims():
            if not prim.HasAPI(self.physics.CollisionAPI):
                continue
            if not self.physics.CollisionAPI(prim).GetCollisionEnabledAttr().Get():
                continue
            body = self._body_of(prim)
            M = np.array(self.places.GetLocalToWorldTransform(prim), float)  # of row vectors
            at = self._pose(body) if body else Pose()
            R = np.asarray(at.rotation) if body else np.eye(3)
            position = R.T @ (M[3, :3] * self.meter - np.asarray(at.position))
            if found := form_of(self.draft, prim, R.T @ M[:3, :3].T * self.meter, position):
                out.setdefault(self.names[str(body.GetPath()) if body else ""], []).append(found)
        self.draft.tell()
        return out

    def _body_of(self, prim: Any) -> Any:
        """The prim of the body to which a prim belongs; None for the world."""
        while prim and str(prim.GetPath()) not in self.bodies:
            prim = prim.GetParent()
        return prim if prim and not prim.IsPseudoRoot() else None

    def _prims(self) -> Iterator[Any]:
        usd = _pxr("Usd")
        return iter(usd.PrimRange(self.stage.GetPseudoRoot(), usd.TraverseInstanceProxies()))

    def _gravity(self) -> tuple[float, ...]:
        up = np.array(AXES[self.geom.GetStageUpAxis(self.stage)])
        for prim in self._prims():
            if prim.IsA(self.physics.Scene):
                scene = self.physics.Scene(prim)
                along = np.array(scene.GetGravityDirectionAttr().Get(), float)
                size = float(scene.GetGravityMagnitudeAttr().Get())
                along = along / np.linalg.norm(along) if np.any(along) else -up
                return tuple(map(float, along * (size * self.meter if np.isfinite(size) else EARTH)))
        return tuple(map(float, -EARTH * up))

    def _pose(self, prim: Any) -> Pose:
        """The frame of a prim on the stage [m]. A scale is a fault."""
        M = np.array(self.places.GetLocalToWorldTransform(prim), float)  # of row vectors
        R = M[:3, :3].T
        if np.abs(R.T @ R - np.eye(3)).max() > _FLAT or np.linalg.det(R) < 0:
            self.draft.fault(str(prim.GetPath()), "its frame is scaled or mirrored; apply the scale to its geometry")
            R = np.eye(3)
        return Pose(tuple(M[3, :3] * self.meter), tidy(orthonormal(R)))

    def _name_body(self, prim: Any) -> str | None:
        """The name of a body; None for one that does not move by itself."""
        if not self.physics.RigidBodyAPI(prim).GetRigidBodyEnabledAttr().Get():
            return None
        path = str(prim.GetPath())
        self.bodies[path] = prim
        self.names[path] = self.draft.new_name("body", prim.GetName())
        return self.names[path]

    def _add_body(self, prim: Any) -> None:
        path, api = str(prim.GetPath()), self.physics.RigidBodyAPI(prim)
        name = self._name_body(prim)
        if name is None:
            return
        if api.GetKinematicEnabledAttr().Get():
            self.draft.lacks("bodies that are moved by animation", path)
        mass, moments = 0.0, np.zeros(3)
        com, turn = np.zeros(3), np.eye(3)
        if prim.HasAPI(self.physics.MassAPI):
            own = self.physics.MassAPI(prim)
            mass = float(own.GetMassAttr().Get()) * self.kilogram
            moments = np.array(own.GetDiagonalInertiaAttr().Get(), float) * self.kilogram * self.meter**2
            com = np.array(own.GetCenterOfMassAttr().Get(), float) * self.meter
            if not np.isfinite(com).all():
                said = "has no centre of mass: give it physics:centerOfMass; nothing is computed from its shapes"
                self.draft.fault(path, said)
                return
            turn = _rotation(own.GetPrincipalAxesAttr().Get())
        if mass <= 0 or not moments.any():
            what = "mass" if mass <= 0 else "inertia"
            said = (
                f"has no {what}: give it physics:mass and physics:diagonalInertia; nothing is computed from its shapes"
            )
            self.draft.fault(path, said)
            return
        inertia = turn @ np.diag(moments) @ turn.T
        flat = np.abs(inertia - np.diag(np.diag(inertia))).max() <= 1e-12 * moments.max()
        self.draft.body(
            name, path, mass, tuple(map(float, com)), np.diag(inertia) if flat else (inertia + inertia.T) / 2
        )

    def _hinge(self, prim: Any) -> Hinge | None:
        path, kind, api = str(prim.GetPath()), str(prim.GetTypeName()), self.physics.Joint(prim)
        if not api.GetJointEnabledAttr().Get():
            return None
        if kind in ALONG_AXIS:
            joint: Joint = ALONG_AXIS[kind](AXES[str(prim.GetAttribute("physics:axis").Get())])
        elif kind in WITHOUT:
            joint = WITHOUT[kind]()
        else:
            self.draft.fault(path, f"{kind} is not supported; {', '.join((*ALONG_AXIS, *WITHOUT))} are")
            return None
        if np.isfinite(api.GetBreakForceAttr().Get()) or np.isfinite(api.GetBreakTorqueAttr().Get()):
            self.draft.lacks("joints that break", path)
        ends = [
            self._end(path, side, getattr(api, f"GetBody{side}Rel")(), getattr(api, f"GetLocalPos{side}Attr")(),
                      getattr(api, f"GetLocalRot{side}Attr")())
            for side in (0, 1)
        ]  # fmt: skip
        if None in ends:
            return None
        (a, pose_a), (b, pose_b) = ends  # type: ignore[misc]
        if a == b:
            self.draft.fault(path, "both ends are on one body, or both on the world")
            return None
        name = self.draft.new_name("joint", prim.GetName())
        cut = bool(api.GetExcludeFromArticulationAttr().Get())
        return Hinge(path, name, joint, (a, b), (pose_a, pose_b), cut)

    def _end(self, path: str, side: int, relation: Any, position: Any, rotation: Any) -> tuple[str, Pose] | None:
        """(path of the body, "" for the world; frame of the joint in it) of one end of a joint."""
        local = Pose(tuple(np.array(position.Get(), float) * self.meter), tidy(_rotation(rotation.Get())))
        targets = relation.GetTargets()
        if not targets:
            return "", local
        prim = self.stage.GetPrimAtPath(targets[0])
        if not prim:
            self.draft.fault(path, f"body{side} is {targets[0]}, which does not exist")
            return None
        body = self._body_of(prim)
        if body == prim:
            return str(body.GetPath()), local
        here = composed(self._pose(prim), local)
        if body is None:
            return "", here
        return str(body.GetPath()), composed(inverse(self._pose(body)), here)

    def _connect(self, hinges: list[Hinge]) -> None:
        """Add the joints, and the drives of those in the tree."""
        order = sorted(self.bodies, key=lambda path: not any(path == r or path.startswith(f"{r}/") for r in self.roots))
        tree = connect(self.draft, hinges, self.names, {path: self._pose(self.bodies[path]) for path in order})
        for h in hinges:
            if h.name in tree:
                self._add_drive(h)
            elif self._drives(h):
                self.draft.lacks("drives of cut joints", h.where)

    def _drives(self, hinge: Hinge) -> list[str]:
        found = map(str, self.stage.GetPrimAtPath(hinge.where).GetAppliedSchemas())
        return [name for name in found if name.startswith("PhysicsDriveAPI")]

    def _add_drive(self, hinge: Hinge) -> None:
        """The drive of a joint about or along its axis, as a spring and damper: angles of drives are in degrees."""
        kind = {Revolute: "angular", Prismatic: "linear"}.get(type(hinge.joint))
        prim = self.stage.GetPrimAtPath(hinge.where)
        if set(self._drives(hinge)) - {f"PhysicsDriveAPI:{kind}"}:
            self.draft.lacks("drives that are not along the axis of a joint", hinge.where)
        if kind is None or not prim.HasAPI(self.physics.DriveAPI, kind):
            return
        drive = self.physics.DriveAPI(prim, kind)
        stiffness, damping = (float(x.Get() or 0.0) for x in (drive.GetStiffnessAttr(), drive.GetDampingAttr()))
        rest, speed = (float(x.Get() or 0.0) for x in (drive.GetTargetPositionAttr(), drive.GetTargetVelocityAttr()))
        if not (stiffness or damping):
            return
        if str(drive.GetTypeAttr().Get()) != "force":
            self.draft.lacks("drives of accelerations", hinge.where)
            return
        if speed and damping:
            self.draft.lacks("drives with a target velocity", hinge.where)
            return
        most = drive.GetMaxForceAttr().Get()
        if most == 0:
            return
        if most is not None and np.isfinite(most):
            self.draft.lacks("largest forces of drives", hinge.where)
        # forces are in kg unit/s² of the stage, torques in kg unit²/s²
        unit = np.pi / 180 if kind == "angular" else self.meter
        factor = self.kilogram * self.meter * (self.meter / unit if kind == "angular" else 1.0 / unit)
        self.draft.spring(hinge.name, hinge.where, damping * factor, stiffness * factor, rest * unit)

    def _note(self, prim: Any) -> None:
        """Count what is not part of a model."""
        if prim.HasAPI(self.physics.CollisionAPI):
            self.draft.leave_out("collision shapes")
        elif prim.IsA(self.geom.Gprim):
            self.draft.leave_out("pictures")
        ends = [prim.GetAttribute(f"physics:{end}Limit") for end in ("lower", "upper")]
        if prim.HasAPI(self.physics.LimitAPI) or any(x and np.isfinite(x.Get()) for x in ends):
            self.draft.leave_out("limits of joints")


def _pxr(name: str) -> Any:
    """A module of USD."""
    return importlib.import_module(f"pxr.{name}")


def _rotation(q: Any) -> np.ndarray:
    """The rotation matrix of a quaternion of the format; zero means none."""
    w, (x, y, z) = float(q.GetReal()), map(float, q.GetImaginary())
    n = w * w + x * x + y * y + z * z
    if n == 0:
        return np.eye(3)
    s = 2 / n
    return np.array([
        [1 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)],
        [s * (x * y + w * z), 1 - s * (x * x + z * z), s * (y * z - w * x)],
        [s * (x * z - w * y), s * (y * z + w * x), 1 - s * (x * x + y * y)],
    ])  # fmt: skip
