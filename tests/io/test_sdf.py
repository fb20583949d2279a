"""Mechanisms from SDFormat files: the same numbers as from a URDF, from mechanisms of our own, and from Drake's reading."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jaxmbs as mbs
from jaxmbs.io import InputError
from tests.io.urdf_text import ARM

SDF = """<sdf version="1.10"><model name="arm"><frame name="above"><pose>0 0 1 0 0 0</pose></frame>
<link name="upper"><pose relative_to="above">0 0 0 0 0 0</pose><inertial><pose>0.1 0 -0.2 0.3 0 0</pose><mass>2</mass>
<inertia><ixx>0.1</ixx><iyy>0.2</iyy><izz>0.15</izz></inertia></inertial></link>
<link name="lower"><pose relative_to="slide"/><inertial><pose>0 0 -0.3 0 0 0</pose><mass>1.5</mass>
<inertia><ixx>0.05</ixx><iyy>0.06</iyy><izz>0.02</izz></inertia></inertial></link>
<joint name="shoulder" type="continuous"><parent>world</parent><child>upper</child><axis>
<xyz expressed_in="above">0 2 0</xyz><dynamics><damping>0.3</damping></dynamics></axis></joint>
<joint name="slide" type="prismatic"><pose relative_to="upper" degrees="true">0 0.1 -0.5 0 22.918311805232932 0</pose>
<parent>upper</parent><child>lower</child><axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"""
BODY = "<inertial><mass>2</mass><inertia><ixx>0.1</ixx><iyy>0.2</iyy><izz>0.15</izz></inertia></inertial>"


@pytest.fixture
def sdf(tmp_path):
    """Contents of a model -> the model of a file."""

    def read(inside, **options):
        path = tmp_path / "own.sdf"
        path.write_text(f'<sdf version="1.10"><model name="own">{inside}</model></sdf>', encoding="utf-8")
        return mbs.from_sdf(path, **options)

    return read


def link(name, pose="0 0 0 0 0 0", to=""):
    return f'<link name="{name}"><pose relative_to="{to}">{pose}</pose>{BODY}</link>'


def joint(name, kind, parent, child, more="", at=""):
    return f'<joint name="{name}" type="{kind}">{at}<parent>{parent}</parent><child>{child}</child>{more}</joint>'


def axis(xyz, dynamics="", more="", number=""):
    return f"<axis{number}><xyz>{xyz}</xyz><dynamics>{dynamics}</dynamics>{more}</axis{number}>"


def test_the_same_robot_through_two_formats(tmp_path):
    for name, said in (("arm.urdf", ARM), ("arm.sdf", SDF)):
        (tmp_path / name).write_text(said, encoding="utf-8")
    with pytest.warns(mbs.ModelWarning, match="limits of joints"):
        wanted = mbs.load(tmp_path / "arm.urdf")
    found = mbs.load(tmp_path / "arm.sdf")
    assert found.joint_names == ("shoulder", "slide") and found.body_names == ("upper", "lower")
    rng = np.random.default_rng(0)
    for _ in range(3):
        q, v, a = rng.normal(size=(3, 2))
        assert np.allclose(mbs.mass_matrix(found, q), mbs.mass_matrix(wanted, q), rtol=1e-12, atol=1e-13)
        assert np.allclose(*(mbs.inverse_dynamics(m, q, v, a) for m in (found, wanted)), rtol=1e-12, atol=1e-12)


def test_frames_of_models_within_models(sdf):
    """A model placed by one of its frames, and joints between its links and those outside."""
    inner = f"""<model name="inner" placement_frame="grip"><pose relative_to="tip">0.1 0 0 0 0 0.5</pose>
    <link name="hand"><pose rotation_format="quat_xyzw">0 0 0.3 0 0.6 0 0.8</pose>{BODY}</link>
    <frame name="grip" attached_to="hand"><pose>0 0.2 0 0.4 0 0</pose></frame></model>"""
    text = link("arm", "1 2 3 0.1 0.2 0.3") + '<frame name="tip" attached_to="arm"><pose>0 0 1 0 0.7 0</pose></frame>'
    text += inner + joint("base", "fixed", "world", "arm") + joint("wrist", "ball", "tip", "inner::grip")
    with pytest.warns(mbs.ModelWarning, match="renamed"):
        model = sdf(text)
    assert model.body_names == ("arm", "inner__hand")
    poses = mbs.body_poses(model, model.neutral())

    def of(x, angles):
        out = np.eye(4)
        out[:3, :3], out[:3, 3] = Rotation.from_euler("xyz", angles).as_matrix(), x
        return out

    arm = of((1, 2, 3), (0.1, 0.2, 0.3))
    grip = arm @ of((0, 0, 1), (0, 0.7, 0)) @ of((0.1, 0, 0), (0, 0, 0.5))
    hand = grip @ np.linalg.inv(of((0, 0.2, 0), (0.4, 0, 0)))
    for k, wanted in enumerate((arm, hand)):
        assert np.allclose(poses.position[k], wanted[:3, 3], atol=1e-14)
        assert np.allclose(poses.rotation[k], wanted[:3, :3], atol=1e-14)
    turned = mbs.body_poses(model, [np.cos(0.4), 0, 0, np.sin(0.4)])  # about the joint, which is in the grip
    at = hand @ of((0, 0.2, 0), (0.4, 0, 0))
    assert np.allclose(turned.rotation[1] @ np.array([0, 0.2, 0]) + turned.position[1], at[:3, 3], atol=1e-14)


def test_joints_and_what_acts_in_them(sdf):
    """Against the same mechanism, written by hand."""
    mimic = '<mimic joint="turn"><multiplier>2</multiplier><offset>0.3</offset><reference>0.1</reference></mimic>'
    spring = "<spring_stiffness>5</spring_stiffness><spring_reference>0.2</spring_reference>"
    text = "".join(link(f"b{k}", f"0 0 {k} 0 0 0") for k in range(4))
    text += joint("turn", "revolute", "world", "b0", axis("0 0.6 0.8", f"{spring}<friction>0.4</friction>"))
    text += joint("nut", "screw", "b0", "b1", axis("0 0 1") + "<screw_thread_pitch>0.2</screw_thread_pitch>")
    text += joint("cross", "universal", "b1", "b2", axis("1 0 0") + axis("0 1 0", number="2"))
    text += joint("slide", "prismatic", "b2", "b3", axis("1 0 0", "<damping>0.7</damping>", mimic))
    with pytest.warns(mbs.ModelWarning, match="dry friction is smoothed"):
        found = sdf(text)
    mech = mbs.Mechanism("own", gravity=(0, 0, -9.81))
    for k in range(4):
        mech.add_body(f"b{k}", 2.0, (0, 0, 0), (0.1, 0.2, 0.15))
    up = mbs.Pose((0, 0, 1))
    mech.add_joint("turn", mbs.Revolute((0, 0.6, 0.8)), "world", "b0")
    mech.add_joint("nut", mbs.Helical((0, 0, 1), 0.2 / (2 * np.pi)), "b0", "b1", up)
    mech.add_joint("cross", mbs.Universal(), "b1", "b2", up)
    mech.add_joint("slide", mbs.Prismatic((1, 0, 0)), "b2", "b3", up)
    mech.add_force("spring", mbs.JointSpring("turn", 5.0, 0.0, 0.2))
    mech.add_force("friction", mbs.Friction("turn", 0.4))
    mech.add_force("damping", mbs.Damper("slide", 0.7))
    mech.add_constraint("mimic", mbs.Coupling("slide", "turn", (0.3 - 2 * 0.1, 2.0)))
    wanted = mech.build()
    q, v = np.random.default_rng(1).normal(size=(2, wanted.nv))
    for f in (mbs.forward_dynamics, lambda m, q, v: mbs.constrained_dynamics(m, q, v)[0]):
        assert np.allclose(f(found, q, v), f(wanted, q, v), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("version", "more"), [("1.4", ""), ("1.6", "<use_parent_model_frame>1</use_parent_model_frame>")]
)
def test_axes_of_early_versions_are_in_the_model(tmp_path, version, more):
    (tmp_path / "old.sdf").write_text(
        f'<sdf version="{version}"><model name="old">{link("a", "0 0 0 0 0 1.5707963267948966")}'
        f"{joint('turn', 'revolute', 'world', 'a', axis('1 0 0', more=more))}</model></sdf>",
        encoding="utf-8",
    )
    model = mbs.from_sdf(tmp_path / "old.sdf")
    assert np.allclose(mbs.get(model, "turn.axis"), (0, -1, 0), atol=1e-15)


def test_a_loop_and_a_joint_from_the_far_link(sdf):
    bars = [("bar0", "0 0 0 0 0 0"), ("bar1", "0 1 0 0 0 0"), ("bar2", "2 0 0 0 0 0")]
    text = "".join(link(name, at) for name, at in bars)
    text += joint("a", "revolute", "world", "bar0", axis("0 0 1")) + joint(
        "b", "revolute", "bar0", "bar1", axis("0 0 1")
    )
    pin = '<pose relative_to="bar2">0 1 0 0 0 0</pose>'
    text += joint("c", "revolute", "bar1", "bar2", axis("0 0 1"), pin)
    model = sdf(text + joint("d", "revolute", "world", "bar2", axis("0 0 1")))
    assert model.loop_names == ("d",) and model.nv == 3
    a, _, residual = mbs.constrained_dynamics(model, np.zeros(3), np.array([1.0, -1.0, 1.0]))
    assert np.abs(residual).max() < 1e-9 and a[0] == pytest.approx(-a[1]) and a[0] == pytest.approx(a[2])
    # the other way round, the coordinate keeps its sign, and the link its place
    ends = (("near", "far"), ("far", "near"))
    ahead, back = (
        sdf(link("near") + link("far", "1 0 0 0 0 0") + joint("hold", "fixed", "world", "near")
            + joint("turn", "revolute", *pair, axis("0 0 1"), '<pose relative_to="far"/>')) for pair in ends
    )  # fmt: skip
    poses = [mbs.body_poses(m, [angle]).rotation[1] for m, angle in ((ahead, 0.4), (back, -0.4))]
    assert np.allclose(*poses, atol=1e-15)


def test_a_broken_description_of_a_model_is_named(tmp_path):
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "model.config").write_text("<model><sdf>box.sdf", encoding="utf-8")
    (tmp_path / "world.sdf").write_text(
        '<sdf version="1.7"><world name="w"><include><uri>box</uri></include></world></sdf>', encoding="utf-8"
    )
    with pytest.raises(InputError, match="not an XML file") as caught:
        mbs.from_sdf(tmp_path / "world.sdf")
    assert caught.value.file == tmp_path / "box" / "model.config"


def test_worlds_included_files_and_trust(tmp_path):
    (tmp_path / "models" / "box").mkdir(parents=True)
    (tmp_path / "models" / "box" / "model.config").write_text("<model><sdf>box.sdf</sdf></model>", encoding="utf-8")
    (tmp_path / "models" / "box" / "box.sdf").write_text(
        f'<sdf version="1.7"><model name="box">{link("body", "0 0 1 0 0 0")}</model></sdf>', encoding="utf-8"
    )
    (tmp_path / "models" / "wall.sdf").write_text(
        f'<sdf version="1.7"><model name="wall"><model name="brick">{link("body")}</model></model></sdf>',
        encoding="utf-8",
    )
    included = "<include><uri>{}</uri><name>{}</name><pose>{} 0 0 0 0 1.5</pose>{}</include>"
    world = '<sdf version="1.7"><world name="w"><gravity>0 0 -1.6</gravity>{}</world></sdf>'
    boxes = [included.format("model://box", f"box{k}", k, "") for k in range(2)]
    wall = included.format("wall.sdf", "wall", 5, "<static>1</static>")
    (tmp_path / "models" / "world.sdf").write_text(world.format("".join((*boxes, wall))), encoding="utf-8")
    with pytest.warns(mbs.ModelWarning):
        model = mbs.from_sdf(tmp_path / "models" / "world.sdf")
    assert model.body_names == ("box0__body", "box1__body") and model.joint_names == (
        "box0__body_free",
        "box1__body_free",
    )
    assert np.asarray(mbs.get(model, "gravity")).tolist() == [0, 0, -1.6]
    poses = mbs.body_poses(model, model.neutral())
    assert np.allclose(poses.position, [[0, 0, 1], [1, 0, 1]], atol=1e-15)
    assert np.allclose(poses.rotation[1][:, 0], [np.cos(1.5), np.sin(1.5), 0], atol=1e-15)
    (tmp_path / "inner").mkdir()
    outside = tmp_path / "inner" / "world.sdf"
    outside.write_text(world.format(included.format("../models/box/box.sdf", "one", 0, "")), encoding="utf-8")
    with pytest.raises(InputError, match="outside the folder"):
        mbs.from_sdf(outside)
    with pytest.warns(mbs.ModelWarning):
        assert mbs.from_sdf(outside, trust=True).body_names == ("one__body",)
    outside.write_text(world.format(included.format("world.sdf", "one", 0, "")), encoding="utf-8")
    with pytest.raises(InputError, match="includes itself"):
        mbs.from_sdf(outside)


@pytest.mark.parametrize(("tag", "wanted"), [("cylinder", mbs.Tube(0.2, 3.0)), ("cone", mbs.Cone(0.2, 3.0))])
def test_shapes(sdf, tmp_path, tag, wanted):
    form = f"<geometry><{tag}><radius>0.2</radius><length>3</length></{tag}></geometry>"
    shapes = f'<collision name="c"><pose>0 0 2 0 0 0</pose>{form}</collision><visual name="v">{form}</visual>'
    with pytest.warns(mbs.ModelWarning, match=r"collision shapes \(1\)"):
        model = sdf(f'<link name="a">{shapes}</link>')
    assert model.structure.visuals[0].size == (0.4, 0.4, 3.0)
    ((solid, pose),) = mbs.collision_shapes(tmp_path / "own.sdf")["a"]
    assert (solid, pose.position) == (wanted, (0.0, 0.0, 2.0))
    assert mbs.get(model, "a.mass") == 1.0 and np.allclose(mbs.get(model, "a.inertia"), np.eye(3))  # of the format


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        (link("a") + link("a"), 'link 2: the name "a" is used twice'),
        (link("a", "1 2 3"), r"pose needs 6 numbers, got '1 2 3'"),
        (link("a", to="b"), 'there is no frame named "b"'),
        (link("a", to="f") + '<frame name="f"><pose relative_to="a"/></frame>', "its pose refers to itself"),
        (link("a") + joint("j", "revolute", "world", "a"), 'joint "j": has no <axis>'),
        (link("a") + joint("j", "universal", "world", "a", axis("0 0 1")), 'joint "j": has no <axis2>'),
        (link("a") + joint("j", "gearbox", "world", "a", axis("0 0 1")), 'type "gearbox" is not supported'),
        (link("a") + joint("j", "ball", "wrld", "a"), 'parent: no link or frame named "wrld"; did you mean "world"'),
        (link("a") + joint("j", "ball", "a", "a"), "both ends are on one link"),
        (link("a") + joint("j", "revolute", "world", "a", axis("0 0 0")), "its axis is zero"),
        ('<link name="a"><inertial auto="true"/></link>', "give mass and inertia"),
        ('<link name="a"><inertial><mass>x</mass></inertial></link>', "mass needs a number, got 'x'"),
        ('<link name="a"><gravity>false</gravity></link>', "links without gravity .*on_unsupported"),
        ('<link name="a"><sponge/></link>', "elements <sponge> of <link>"),
        ("", "has no links that move"),
    ],
)
def test_what_is_wrong_is_told_with_its_element(sdf, inside, said):
    with pytest.raises(InputError, match=said):
        sdf(inside)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<robot/>", "begins with <robot>"), ("no file", "not an XML file"),
        ('<sdf version="1.9"/>', "0 worlds and 0 models"),
        ('<sdf version="1.9"><world name="w"><gravity>1 2</gravity></world></sdf>', "gravity needs three numbers"),
    ],
)  # fmt: skip
def test_files_that_are_none(tmp_path, text, said):
    (tmp_path / "bad.sdf").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        mbs.load(tmp_path / "bad.sdf")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_against_the_reading_of_drake(sdf, tmp_path, seed):
    """Random trees with frames, poses relative to anything before them, and axes in other frames."""
    parsing = pytest.importorskip("pydrake.multibody.parsing", reason="pip install drake")
    plants = pytest.importorskip("pydrake.multibody.plant")
    rng = np.random.default_rng(seed)
    known, text = ["__model__"], ""

    def pose():
        return " ".join(f"{x:.17g}" for x in rng.normal(size=6))

    for k in range(6):
        text += link(f"b{k}", pose(), rng.choice(known))
        kind = rng.choice(["revolute", "prismatic", "continuous"])
        direction = " ".join(f"{x:.17g}" for x in rng.normal(size=3))
        turned = f'<axis><xyz expressed_in="{rng.choice(known)}">{direction}</xyz></axis>'
        parent = "world" if k == 0 else f"b{rng.integers(k)}"
        text += joint(f"j{k}", kind, parent, f"b{k}", turned, f"<pose>{pose()}</pose>")
        text += f'<frame name="f{k}" attached_to="b{k}"><pose relative_to="{rng.choice(known)}">{pose()}</pose></frame>'
        known += [f"b{k}", f"j{k}", f"f{k}"]
    model, plant = sdf(text), plants.MultibodyPlant(0.0)
    parsing.Parser(plant).AddModels(str(tmp_path / "own.sdf"))
    plant.Finalize()
    context, (q, v) = plant.CreateDefaultContext(), rng.normal(size=(2, 6))
    order = [plant.GetJointByName(name).velocity_start() for name in model.joint_names]
    back = np.argsort(order)
    plant.SetPositions(context, q[back])
    plant.SetVelocities(context, v[back])
    assert np.allclose(mbs.mass_matrix(model, q), plant.CalcMassMatrix(context)[np.ix_(order, order)], rtol=1e-11)
    bias = plant.CalcBiasTerm(context) - plant.CalcGravityGeneralizedForces(context)
    assert np.allclose(mbs.bias_forces(model, q, v), bias[order], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("linked", [False, True])
def test_a_model_s_folder_does_not_lead_out_of_the_trusted_folder(tmp_path, linked):
    inner = tmp_path / "in" / "box"
    inner.mkdir(parents=True)
    secret = tmp_path / "secret.sdf"
    secret.write_text(f'<sdf version="1.9"><model name="m">{link("a")}</model></sdf>', encoding="utf-8")
    if linked:
        (inner / "model.sdf").symlink_to(secret)
    else:
        (inner / "model.config").write_text("<model><sdf>../../secret.sdf</sdf></model>", encoding="utf-8")
    world = tmp_path / "in" / "w.sdf"
    world.write_text(
        '<sdf version="1.9"><world name="w"><include><uri>box</uri></include></world></sdf>', encoding="utf-8"
    )
    with pytest.raises(InputError, match="outside the folder"):
        mbs.from_sdf(world)
    with pytest.warns(mbs.ModelWarning):
        assert mbs.from_sdf(world, trust=True).body_names == ("m__a",)


def test_nesting_and_names_without_limit_are_refused(sdf, tmp_path, monkeypatch):
    monkeypatch.setattr("jaxmbs.io.sdf.MOST", 50)
    with pytest.raises(InputError, match="nested too deeply"):
        sdf("".join(f'<model name="m{k}">' for k in range(1500)) + link("a") + "</model>" * 1500)
    with pytest.raises(InputError, match="nested too deeply"):
        sdf("".join(link(f"a{k}", to=f"a{k + 1}") for k in range(1500)) + link("a1500"))
    with pytest.raises(InputError, match="no such model"):
        sdf(f"<include><uri>{'b' * 300}</uri></include>" + link("a"), trust=True)
    for k in range(7):
        twice = "".join(f"<include><uri>d{k + 1}.sdf</uri><name>{name}</name></include>" for name in "pq")
        (tmp_path / f"d{k}.sdf").write_text(
            f'<sdf version="1.9"><model name="m">{twice if k < 6 else link("a")}</model></sdf>', encoding="utf-8"
        )
    with pytest.raises(InputError, match="more than 50 models"):
        sdf("<include><uri>d0.sdf</uri></include>")


def test_the_world_as_child_of_a_model_with_a_pose(sdf):
    at = "<pose>1 0 0 0 0 0</pose>"
    model = sdf("<pose>5 0 0 0 0 0</pose>" + link("a") + joint("j", "revolute", "a", "world", axis("0 0 1"), at))
    # the hinge is at x = 1 m of the world; the link, at 5 m, turns about it by the negative angle
    assert np.allclose(mbs.body_poses(model, [np.pi / 2]).position, [[1.0, -4.0, 0.0]], atol=1e-12)


def test_gravity_of_early_worlds_is_in_their_physics(tmp_path):
    for version, wanted in (("1.5", -1.6), ("1.6", -9.8)):
        (tmp_path / "w.sdf").write_text(
            f'<sdf version="{version}"><world name="w"><physics type="ode"><gravity>0 0 -1.6</gravity></physics>'
            f'<model name="m">{link("a")}</model></world></sdf>', encoding="utf-8"
        )  # fmt: skip
        with pytest.warns(mbs.ModelWarning):
            assert np.array_equal(mbs.get(mbs.from_sdf(tmp_path / "w.sdf"), "gravity"), [0, 0, wanted])
