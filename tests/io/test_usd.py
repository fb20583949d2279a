"""Mechanisms from USD files: the same numbers as from a mechanism of our own, and as from a URDF."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.geometry.meshes import Triangles
from jaxmbs.io import InputError
from jaxmbs.study.outputs import shape_on
from jaxmbs.study.outputs.gap import separations
from tests.io.urdf_text import ARM

pytestmark = pytest.mark.slow  # usd-core is not part of the default environment
pxr = pytest.importorskip("pxr", reason="pip install 'jaxmbs[usd]'")
from pxr import Gf, Usd, UsdGeom, UsdPhysics  # noqa: E402

SINGLE = 2e-6  # the format holds single precision


def written(path, unit=1.0, kilogram=1.0, mirrored=False):
    """The arm of the URDF as a stage, with other units and, if mirrored, with the second joint from the lower body."""
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, unit)
    UsdPhysics.SetStageKilogramsPerUnit(stage, kilogram)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/arm").GetPrim())
    for name, mass, com, moments, turn in (
        ("upper", 2.0, (0.1, 0, -0.2), (0.1, 0.2, 0.15), 0.3), ("lower", 1.5, (0, 0, -0.3), (0.05, 0.06, 0.02), 0.0),
    ):  # fmt: skip
        prim = UsdGeom.Xform.Define(stage, f"/arm/{name}").GetPrim()
        UsdPhysics.RigidBodyAPI.Apply(prim)
        api = UsdPhysics.MassAPI.Apply(prim)
        api.CreateMassAttr(mass / kilogram)
        api.CreateCenterOfMassAttr(Gf.Vec3f(*(x / unit for x in com)))
        api.CreateDiagonalInertiaAttr(Gf.Vec3f(*(x / kilogram / unit**2 for x in moments)))
        api.CreatePrincipalAxesAttr(Gf.Quatf(np.cos(turn / 2), np.sin(turn / 2), 0.0, 0.0))
    shoulder = UsdPhysics.RevoluteJoint.Define(stage, "/arm/shoulder")
    shoulder.CreateAxisAttr("Y")
    shoulder.CreateBody1Rel().SetTargets(["/arm/upper"])
    shoulder.CreateLocalPos0Attr(Gf.Vec3f(0, 0, 1 / unit))
    drive = UsdPhysics.DriveAPI.Apply(shoulder.GetPrim(), "angular")
    drive.CreateDampingAttr(0.3 * np.pi / 180 / kilogram / unit**2)
    slide = UsdPhysics.PrismaticJoint.Define(stage, "/arm/slide")
    slide.CreateAxisAttr("Z")
    slide.CreateLowerLimitAttr(0.0)
    ends = (
        ("/arm/upper", (0, 0.1 / unit, -0.5 / unit), (np.cos(0.2), 0, np.sin(0.2), 0)),
        ("/arm/lower", (0, 0, 0), (1, 0, 0, 0)),
    )
    for side, (body, position, turn) in enumerate(ends[::-1] if mirrored else ends):
        getattr(slide, f"CreateBody{side}Rel")().SetTargets([body])
        getattr(slide, f"CreateLocalPos{side}Attr")(Gf.Vec3f(*position))
        getattr(slide, f"CreateLocalRot{side}Attr")(Gf.Quatf(*turn))
    stage.Save()
    return path


@pytest.mark.parametrize("units", [(1.0, 1.0), (0.01, 0.001)])
def test_the_same_robot_through_two_formats(tmp_path, units):
    (tmp_path / "arm.urdf").write_text(ARM, encoding="utf-8")
    with pytest.warns(mbs.ModelWarning, match="limits of joints"):
        wanted = mbs.load(tmp_path / "arm.urdf")
        found = mbs.load(written(tmp_path / "arm.usda", *units))
    assert found.joint_names == ("shoulder", "slide") and found.body_names == ("upper", "lower")
    rng = np.random.default_rng(0)
    for _ in range(3):
        q, v, a = rng.normal(size=(3, 2))
        assert np.allclose(mbs.mass_matrix(found, q), mbs.mass_matrix(wanted, q), rtol=SINGLE, atol=SINGLE)
        tau = [mbs.inverse_dynamics(m, q, v, a) for m in (found, wanted)]
        assert np.allclose(*tau, rtol=1e-5, atol=1e-5)


def test_a_joint_from_the_far_body_keeps_its_sign(tmp_path):
    """The other body first: the coordinate changes its sign, the place of the body does not."""
    with pytest.warns(mbs.ModelWarning):
        one, other = (mbs.from_usd(written(tmp_path / f"{m}.usda", mirrored=m)) for m in (False, True))
    a, b = (mbs.body_poses(m, [0.4, s]) for m, s in ((one, 0.2), (other, -0.2)))
    assert np.allclose(a.position, b.position, atol=SINGLE) and np.allclose(a.rotation, b.rotation, atol=SINGLE)


def four_bar(path, cut=True):
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    for k, at in enumerate(((0, 0, 0), (0, 1, 0), (2, 0, 0))):
        xform = UsdGeom.Xform.Define(stage, f"/bars/bar{k}")
        xform.AddTranslateOp().Set(Gf.Vec3d(*at))
        UsdPhysics.RigidBodyAPI.Apply(xform.GetPrim())
        api = UsdPhysics.MassAPI.Apply(xform.GetPrim())
        api.CreateMassAttr(1.0)
        api.CreateCenterOfMassAttr(Gf.Vec3f(0, 0, 0))
        api.CreateDiagonalInertiaAttr(Gf.Vec3f(0.1, 0.1, 0.1))
    pins = (
        ("a", "", "/bars/bar0", (0, 0, 0), (0, 0, 0)), ("b", "/bars/bar0", "/bars/bar1", (0, 1, 0), (0, 0, 0)),
        ("d", "", "/bars/bar2", (2, 0, 0), (0, 0, 0)), ("c", "/bars/bar1", "/bars/bar2", (2, 0, 0), (0, 1, 0)),
    )  # fmt: skip
    for name, a, b, at_a, at_b in pins:
        pin = UsdPhysics.RevoluteJoint.Define(stage, f"/bars/{name}")
        pin.CreateAxisAttr("Z")
        for side, (body, at) in enumerate(((a, at_a), (b, at_b))):
            getattr(pin, f"CreateBody{side}Rel")().SetTargets([body] if body else [])
            getattr(pin, f"CreateLocalPos{side}Attr")(Gf.Vec3f(*at))
        if name == "c" and cut:
            pin.CreateExcludeFromArticulationAttr(True)
    stage.Save()
    return path


@pytest.mark.parametrize("cut", [True, False])
def test_a_loop(tmp_path, cut):
    model = mbs.from_usd(four_bar(tmp_path / "bars.usda", cut))
    assert model.loop_names == ("c",) and model.nv == 3
    assert np.asarray(mbs.get(model, "gravity")).tolist() == [0.0, -9.81, 0.0]
    a, _, residual = mbs.constrained_dynamics(model, np.zeros(3), np.array([1.0, -1.0, 1.0]))
    assert np.abs(residual).max() < 1e-9 and a[0] == pytest.approx(-a[1]) and a[0] == pytest.approx(a[2])


def test_what_a_model_cannot_have(tmp_path):
    stage = Usd.Stage.CreateNew(str(tmp_path / "bad.usda"))
    for name in ("a", "b"):
        prim = UsdGeom.Xform.Define(stage, f"/{name}").GetPrim()
        UsdPhysics.RigidBodyAPI.Apply(prim)
    UsdPhysics.MassAPI.Apply(prim).CreateMassAttr(1.0)
    UsdPhysics.MassAPI(prim).CreateCenterOfMassAttr(Gf.Vec3f(0, 0, 0))
    UsdPhysics.DistanceJoint.Define(stage, "/rope").CreateBody0Rel().SetTargets(["/a"])
    pin = UsdPhysics.RevoluteJoint.Define(stage, "/pin")
    pin.CreateBody0Rel().SetTargets(["/gone"])
    stage.Save()
    with pytest.raises(InputError) as found:
        mbs.from_usd(tmp_path / "bad.usda")
    said = str(found.value)
    for text in (
        "/a: has no mass",
        "/b: has no inertia",
        "PhysicsDistanceJoint is not supported",
        "/gone, which does not exist",
    ):
        assert text in said
    (tmp_path / "text.usda").write_text("no stage", encoding="utf-8")
    for name, text in (("text.usda", "not a USD file"), ("none.usda", "no such file")):
        with pytest.raises(InputError, match=text):
            mbs.from_usd(tmp_path / name)


def test_bodies_without_joints_move_freely_from_their_place(tmp_path):
    stage = Usd.Stage.CreateNew(str(tmp_path / "two.usda"))
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    for path, at in (("/one/box", (100, 0, 0)), ("/two/box", (0, 200, 0))):
        xform = UsdGeom.Xform.Define(stage, path)
        xform.AddTranslateOp().Set(Gf.Vec3d(*at))
        xform.AddRotateZOp().Set(90.0)
        UsdPhysics.RigidBodyAPI.Apply(xform.GetPrim())
        api = UsdPhysics.MassAPI.Apply(xform.GetPrim())
        api.CreateMassAttr(3.0)
        api.CreateCenterOfMassAttr(Gf.Vec3f(0, 0, 0))
        api.CreateDiagonalInertiaAttr(Gf.Vec3f(1, 1, 1))
    stage.Save()
    model = mbs.from_usd(tmp_path / "two.usda")
    poses = mbs.body_poses(model, model.neutral())
    assert model.body_names == ("box", "box_2") and np.allclose(poses.position, [[1, 0, 0], [0, 2, 0]])
    assert np.allclose(poses.rotation[0][:, 0], [0, 1, 0], atol=1e-12)
    assert np.allclose(mbs.get(model, "box_2.inertia"), 1e-4 * np.eye(3), rtol=SINGLE)


def test_layers_elsewhere_need_trust(tmp_path):
    (tmp_path / "inner").mkdir()
    written(tmp_path / "arm.usda")
    stage = Usd.Stage.CreateNew(str(tmp_path / "inner" / "world.usda"))
    stage.OverridePrim("/arm").GetReferences().AddReference("../arm.usda")
    stage.Save()
    with pytest.raises(InputError, match="outside its folder"):
        mbs.from_usd(tmp_path / "inner" / "world.usda")
    with pytest.warns(mbs.ModelWarning):
        assert mbs.from_usd(tmp_path / "inner" / "world.usda", trust=True).nv == 2


def shapes(path, unit=1.0):
    """A body, turned and away from the origin, with one shape of each kind, and a shape of no body."""
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, unit)
    body = UsdGeom.Xform.Define(stage, "/robot/body")
    body.AddTranslateOp().Set(Gf.Vec3d(3 / unit, 0, 0))
    body.AddRotateZOp().Set(90.0)
    UsdPhysics.RigidBodyAPI.Apply(body.GetPrim())

    def add(kind, name, at=(0, 0, 0), scale=(1, 1, 1), turn=0.0, **attributes):
        prim = getattr(UsdGeom, kind).Define(stage, name)
        prim.AddTranslateOp().Set(Gf.Vec3d(*(x / unit for x in at)))
        prim.AddRotateXOp().Set(turn)
        prim.AddScaleOp().Set(Gf.Vec3f(*scale))
        for key, x in attributes.items():
            getattr(prim, f"Create{key}Attr")(x)
        UsdPhysics.CollisionAPI.Apply(prim.GetPrim())
        return prim.GetPrim()

    add("Cube", "/robot/body/cube", (1, 0, 0), (0.1, 0.2, -0.3), 90.0, Size=2 / unit)
    add("Sphere", "/robot/body/sphere", scale=(2, 2, 2), Radius=0.5 / unit)
    add("Cylinder", "/robot/body/cylinder", scale=(3, 2, 2), Axis="X", Radius=0.5 / unit, Height=1 / unit)
    add("Capsule", "/robot/body/capsule", scale=(2, 2, 2), Axis="Y", Radius=0.1 / unit, Height=1 / unit)
    add("Cone", "/robot/body/cone", (0, 1, 0), (1, 1, -1), Axis="Z", Radius=0.2 / unit, Height=0.4 / unit)
    mesh = {"Points": [(x / unit, y / unit, z / unit) for x in (0, 1) for y in (0, 1) for z in (0, 1)],
            "FaceVertexCounts": [4] * 6,
            "FaceVertexIndices": [0, 1, 3, 2, 4, 6, 7, 5, 0, 4, 5, 1, 2, 3, 7, 6, 0, 2, 6, 4, 1, 5, 7, 3]}  # fmt: skip
    add("Mesh", "/robot/body/mesh", scale=(1, 2, -3), **mesh)
    add("Cube", "/ground", (0, 0, -1), Size=2 / unit)
    off = add("Cube", "/robot/body/off")
    UsdPhysics.CollisionAPI(off).CreateCollisionEnabledAttr(False)
    UsdGeom.Cube.Define(stage, "/robot/body/picture")
    add("Sphere", "/robot/body/egg", scale=(1, 2, 1))
    star = {"Points": [(0, 0, 0), (2, 0, 0), (0.1, 0.1, 0), (0, 2, 0)], "FaceVertexCounts": [4]}
    add("Mesh", "/robot/body/dent", **star, FaceVertexIndices=[1, 2, 3, 0])
    add("Plane", "/robot/body/plane")
    stage.Save()
    return path


@pytest.mark.parametrize("unit", [1.0, 0.01])
def test_collision_shapes(tmp_path, unit):
    with pytest.warns(mbs.ModelWarning) as caught:
        found = mbs.collision_shapes(shapes(tmp_path / "shapes.usda", unit))
    (said,) = (str(w.message) for w in caught)
    for part in ("round collision shapes that are scaled differently", "faces that are not convex", "type Plane"):
        assert part in said
    assert set(found) == {"body", "world"}
    (box, at), (ball, _), (tube, along), (capsule, across), (cone, down), (mesh, here) = found["body"]
    assert box.size == pytest.approx((0.2, 0.4, 0.6)) and at.position == pytest.approx((1, 0, 0), abs=SINGLE)
    assert abs(at.rotation @ [0, 1, 0]) == pytest.approx([0, 0, 1], abs=SINGLE)
    assert np.linalg.det(at.rotation) == pytest.approx(1.0)
    assert ball.radius == pytest.approx(1.0)
    assert (tube.radius, tube.length) == pytest.approx((1.0, 3.0))
    assert abs(along.rotation @ [0, 0, 1]) == pytest.approx([1, 0, 0], abs=SINGLE)
    assert (capsule.radius, capsule.length) == pytest.approx((0.2, 2.0))
    assert abs(across.rotation @ [0, 0, 1]) == pytest.approx([0, 1, 0], abs=SINGLE)
    assert (cone.radius, cone.length, cone.end_radius) == pytest.approx((0.2, 0.4, 0.0))
    assert down.rotation @ [0, 0, 1] == pytest.approx([0, 0, -1], abs=SINGLE), "its scale turns it over"
    assert down.position == pytest.approx((0, 1, 0), abs=SINGLE)
    solid = Triangles.of(mesh.vertices, mesh.triangles)
    assert here == mbs.Pose() and solid.fault() == "" and solid.volume == pytest.approx(6.0)
    assert np.ptp(np.asarray(mesh.vertices), axis=0) == pytest.approx([1, 2, 3])
    ((ground, below),) = found["world"]
    assert ground == mbs.Box((2, 2, 2)) and below.position == pytest.approx((0, 0, -1))
    pair = (shape_on("world", ground, below), shape_on("body", *found["body"][0]), None)
    placed = (
        0.0,
        -1.0,
        0.0,
        1.0,
        0.0,
        0.0,
        0.0,
        0.0,
        1.0,
        3.0,
        0.0,
        0.0,
    )  # as on the stage: turned about z, 3 m along x
    (apart,) = separations([pair], [placed])
    assert float(apart.gap) == pytest.approx(3 - 0.3 - 1, abs=1e-5)  # the box is 0.6 m along the world's x


def test_faults_of_collision_shapes(tmp_path):
    stage = Usd.Stage.CreateNew(str(tmp_path / "bad.usda"))
    ball = UsdGeom.Sphere.Define(stage, "/sphere")
    ball.CreateRadiusAttr(-1.0)
    UsdPhysics.CollisionAPI.Apply(ball.GetPrim())
    mesh = UsdGeom.Mesh.Define(stage, "/mesh")
    mesh.CreatePointsAttr([(0, 0, 0), (1, 0, 0), (0, 1, 0)])
    mesh.CreateFaceVertexCountsAttr([3])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 3])
    UsdPhysics.CollisionAPI.Apply(mesh.GetPrim())
    stage.Save()
    with pytest.raises(InputError, match=r"/sphere: Ball: radius(.|\n)*/mesh: its faceVertexIndices must be"):
        mbs.collision_shapes(tmp_path / "bad.usda")
