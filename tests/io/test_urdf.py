"""URDF files: the model they give, against Pinocchio's own reading; what is wrong and what is left out is said."""

import re
import warnings

import jax
import numpy as np
import pinocchio as pin
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.io import InputError
from jaxmbs.io.physical import nearest_inertia
from tests.io.urdf_text import Read, random_urdf


@pytest.fixture
def urdf(tmp_path):
    """Text -> model, and the warnings that it gave."""

    def read(text, **options):
        path = tmp_path / "robot.urdf"
        path.write_text(text, encoding="utf-8")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = mbs.from_urdf(path, **options)
        return model, [str(w.message) for w in caught]

    return read


def relative(got, want):
    """Largest difference over the largest magnitude."""
    got, want = np.asarray(got, float), np.asarray(want, float)
    return np.max(np.abs(got - want), initial=0.0) / max(np.max(np.abs(want), initial=0.0), 1e-300)


def compare(model, mirror, rng):
    """RNEA, CRBA and ABA (where the tree has them) at a random state; (relative differences), damping and friction apart."""
    q = random_q(model, rng)
    v, a = rng.normal(size=(2, model.nv))
    lists = q.tolist(), v.tolist()
    off = mbs.set(model, {n: 0.0 for n in model.parameter_names if n.endswith((".damping", "_friction.moment"))})
    tau = scalar.inverse_dynamics(off, *lists, a.tolist())
    A = np.reshape(scalar.mass_matrix(off, lists[0]), (model.nv, model.nv)).astype(float)
    found = relative(tau, mirror.inverse_dynamics(q, v, a)), relative(A, mirror.mass_matrix(q))
    if model.structure.singular:  # without its constraints some motion moves no mass
        return *found, 0.0
    solved = scalar.forward_dynamics(off, *lists, tau)
    return *found, relative(solved, mirror.forward_dynamics(q, v, np.array(tau, float)))


def random_q(model, rng):
    parts = []
    for link in model.structure.links:
        own = rng.uniform(-1, 1, link.joint.nq)
        if link.joint.quaternion is not None:
            k = link.joint.quaternion
            own[k : k + 4] /= np.linalg.norm(own[k : k + 4])
        parts.append(own)
    return np.concatenate(parts)


@pytest.mark.parametrize("seed", range(30))
def test_random_robots_as_pinocchio_reads_them(urdf, seed):
    text = random_urdf(seed)
    model, _ = urdf(text)
    assert max(compare(model, Read(text, model), np.random.default_rng(seed))) < 1e-10


def test_a_free_base_as_pinocchio_has_it(urdf):
    text = random_urdf(5, kinds=("revolute",)).replace("<link name='base'/>", box("base"))
    model, _ = urdf(text, free_base=True)
    assert model.nv == 12
    assert max(compare(model, Read(text, model, pin.JointModelFreeFlyer()), np.random.default_rng(0))) < 1e-10


def test_damping_is_an_element(urdf):
    model, _ = urdf(random_urdf(3, kinds=("revolute", "prismatic", "floating"), damping=True))
    assert len(model.force_names) == 6
    v = np.random.default_rng(0).normal(size=model.nv)
    q = random_q(model, np.random.default_rng(1)).tolist()
    undamped = mbs.set(model, {f"{n}.damping": 0.0 for n in model.force_names})
    lost = np.subtract(scalar.bias_forces(model, q, v.tolist()), scalar.bias_forces(undamped, q, v.tolist()))
    given = np.concatenate([
        mbs.get(model, f"{name}_damping.damping") * v[model.v_slice(name)] for name in model.joint_names[1:]
    ])  # fmt: skip
    assert relative(lost.astype(float), given) < 1e-10


def test_dry_friction_is_an_element_and_where_it_is_smooth_is_said(urdf):
    hinges = [
        hinge(name, "world", link, f'<dynamics friction="{moment}"/><limit effort="1" velocity="1"/>', kind)
        for name, link, moment, kind in (
            ("j", "a", 0.3, "revolute"), ("k", "b", 0.2, "prismatic"), ("l", "c", 0, "continuous")
        )
    ]  # fmt: skip
    model, (said,) = urdf(robot(box("a"), box("b"), box("c"), *hinges), gravity=(0, 0, 0))
    assert model.force_names == ("j_friction", "k_friction")
    assert "0.01 rad/s or m/s" in said and "set NAME.speed of 'j_friction', 'k_friction'" in said
    q, v = [0.0] * 3, [2.0, -0.5, 1.0]
    np.testing.assert_allclose(scalar.bias_forces(model, q, v), [0.3, -0.2, 0], atol=1e-12)
    slower = mbs.set(model, {"j_friction.speed": 4.0})
    np.testing.assert_allclose(scalar.bias_forces(slower, q, v), [0.3 * np.tanh(0.5), -0.2, 0], atol=1e-12)


def box(name, mass=1.0, ixx=0.1, iyy=0.1, izz=0.1, more=""):
    return (
        f'<link name="{name}"><inertial><mass value="{mass}"/><inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0" '
        f'iyz="0"/></inertial>{more}</link>'
    )


def hinge(name, parent, child, more="", kind="continuous", axis="0 1 0", xyz="0 0 0"):
    return (
        f'<joint name="{name}" type="{kind}"><origin xyz="{xyz}"/><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="{axis}"/>{more}</joint>'
    )


MIMIC = '<mimic joint="j" multiplier="-2" offset="0.3"/><limit lower="-9" upper="9" effort="1" velocity="1"/>'


def robot(*parts):
    return f'<robot name="r"><link name="world"/>{"".join(parts)}</robot>'


NORMALS = [(1, 0, 0), (0, -1, 0), (0.48, 0.6, -0.64)]


@pytest.mark.interpreted
@pytest.mark.parametrize("normal", NORMALS)
def test_a_planar_joint_moves_in_the_plane_across_its_axis(urdf, normal):
    axis = " ".join(map(str, normal))
    model, _ = urdf(robot(box("a"), hinge("j", "world", "a", kind="planar", axis=axis, xyz="1 2 3")))
    poses = mbs.body_poses(model, [0.3, -0.4, 0.7])
    moved, R = np.array(poses.position[0]) - [1, 2, 3], np.array(poses.rotation[0])
    assert np.linalg.norm(moved) == pytest.approx(0.5, abs=1e-12) and moved @ normal == pytest.approx(0, abs=1e-12)
    turn = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    np.testing.assert_allclose(turn, np.sin(0.7) * np.array(normal), atol=1e-12)


@pytest.mark.interpreted
@pytest.mark.parametrize("normal", NORMALS)
def test_a_planar_cut_joint_holds_across_its_axis_only(urdf, normal):
    axis = " ".join(map(str, normal))
    cut = (
        f'<loop_joint name="cut" type="planar"><link1 link="world"/><link2 link="a"/><axis xyz="{axis}"/></loop_joint>'
    )
    model, _ = urdf(robot(box("a"), hinge("j", "world", "a", kind="floating"), cut))
    n = np.array(normal)
    along = np.cross(n, [0, 0.6, 0.8])
    turned = [np.cos(0.35), *(np.sin(0.35) * n)]

    def residual(position):
        return np.array(mbs.constrained_dynamics(model, [*position, *turned], [0.0] * 6)[2])

    np.testing.assert_allclose(residual(0.3 * along), 0, atol=1e-12)
    assert np.linalg.norm(residual(0.3 * along + 0.2 * n)) == pytest.approx(0.2, abs=1e-12)


def test_mimic_joints_hold_exactly_and_move_as_the_tree_that_they_reduce(urdf):
    text = robot(
        box("a"), box("b"), box("c"), hinge("j", "world", "a"), hinge("k", "a", "b", xyz="0.3 0 0.1", axis="0 0.6 0.8"),
        hinge("m", "b", "c", MIMIC, kind="prismatic", xyz="0.2 0.1 0"),
    )  # fmt: skip
    model, _ = urdf(text)
    assert model.constraint_names == ("m_mimic",)
    q, v, status, _ = mbs.assemble(model, [0.4, -0.3, 0.0], [0.5, 1.0, 0.0], fixed=["j", "k"])
    assert status == 0 and q[2] == pytest.approx(-2 * 0.4 + 0.3, abs=1e-12) and v[2] == pytest.approx(-1.0, abs=1e-12)
    tau = np.array([1.0, -2.0, 0.0])
    a, *_ = mbs.constrained_dynamics(model, q, v, tau)
    mirror, G = Read(text, model), np.array([[1, 0], [0, 1], [-2, 0]])
    A, bias = mirror.mass_matrix(np.array(q)), mirror.inverse_dynamics(np.array(q), np.array(v), np.zeros(3))
    np.testing.assert_allclose(a, G @ np.linalg.solve(G.T @ A @ G, G.T @ (tau - bias)), atol=1e-10)
    assert mbs.simulate(model, q, v, 0.2, dt=0.01).constraint_error.max() < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("form", ["loop_joint", "loop"])
def test_loops_hold(urdf, form):
    ends = ("link1", "link2") if form == "loop_joint" else ("predecessor", "successor")
    text = robot(
        box("a"), box("b"), box("c"), hinge("j", "world", "a"), hinge("k", "a", "b", xyz="0 0 1"),
        hinge("m", "world", "c", xyz="1 0 0"),
        f'<{form} name="cut" type="spherical"><{ends[0]} link="b"><origin xyz="1 0 0"/></{ends[0]}>'
        f'<{ends[1]} link="c"><origin xyz="0 0 1"/></{ends[1]}></{form}>',
    )  # fmt: skip
    model, _ = urdf(text)
    assert model.loop_names == ("cut",)
    q, _, status, _ = mbs.assemble(model, [0.3, 0.0, 0.0], [1.0, 0.0, 0.0], fixed=["j"])
    assert status == 0
    poses = mbs.body_poses(model, q)
    tip = [poses.position[i] + poses.rotation[i] @ np.array(x) for i, x in ((1, (1, 0, 0)), (2, (0, 0, 1)))]
    np.testing.assert_allclose(tip[0], tip[1], atol=1e-10)


def test_all_that_is_wrong_is_said_at_once(urdf):
    text = robot(
        box("a", izz=0.9), box("b", mass=-1), box("c"), hinge("j", "world", "a", axis="0 0 0"), hinge("k", "a", "bb"),
        hinge("l", "a", "c", kind="screw"),
    )  # fmt: skip
    with pytest.raises(InputError) as error:
        urdf(text)
    said = {p.path: p.message for p in error.value.problems}
    assert 'repair="nearest"' in said['link "a"'] and "negative" in said['link "b"']
    assert "zero" in said['joint "j"'] and 'did you mean "b"' in said['joint "k"'] and '"screw"' in said['joint "l"']


def test_what_a_model_cannot_have_is_an_error_or_a_warning_and_never_silent(urdf):
    friction = '<dynamics friction="0.1"/><limit effort="1" velocity="1"/>'
    text = robot(
        box("a", more="<collision/>"), hinge("j", "world", "a", friction, kind="planar"), "<transmission/>",
        "<antigravity/>", '<gazebo><joint name="closing"/></gazebo>',
    )  # fmt: skip
    lacking = "dry friction of joints with several degrees of freedom ('j')"
    with pytest.raises(InputError, match=rf"{re.escape(lacking)}(.|\n)*joints of Gazebo that close loops"):
        urdf(text)
    _, (said,) = urdf(text, on_unsupported="warn")
    for part in (lacking, "collision shapes (1)", "limits of joints (1)", "transmissions (1)",
                 "elements <antigravity>, which are not URDF (1)", "'closing'"):  # fmt: skip
        assert part in said


def test_repair_makes_inertias_physical_and_says_what_changed(urdf):
    text = robot(
        box("a", izz=0.9), box("b", ixx=1e-35, iyy=-1e-36, izz=0), hinge("j", "world", "a"), hinge("k", "a", "b")
    )
    model, (said,) = urdf(text, repair="nearest")
    assert 'link "a": principal moments 0.1, 0.1, 0.9 were changed to 0.45, 0.45, 0.9' in said and 'link "b"' in said
    np.testing.assert_allclose(mbs.get(model, "a.inertia"), np.diag([0.45, 0.45, 0.9]), rtol=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_the_repaired_inertia_is_the_nearest(seed):
    """No physical inertia nearby is nearer in the second moments, and physical ones stay what they are."""
    rng = np.random.default_rng(seed)
    given = rng.normal(size=(3, 3))
    given = given + given.T
    found = nearest_inertia(given)

    def second(I):
        return np.trace(I) / 2 * np.eye(3) - I

    assert np.linalg.eigvalsh(second(found)).min() > -1e-12
    distance = np.linalg.norm(second(found) - second(given))
    for _ in range(50):
        root = np.linalg.cholesky(second(found) + 1e-9 * np.eye(3)) + 0.05 * rng.normal(size=(3, 3))
        assert np.linalg.norm(root @ root.T - second(given)) >= distance - 1e-6
    np.testing.assert_allclose(nearest_inertia(found), found, atol=1e-12)


def test_names_that_no_file_can_have_are_changed_and_told(urdf):
    model, (said,) = urdf(robot(box("a.b"), box("a/b"), hinge("j 1", "world", "a.b"), hinge("k", "a.b", "a/b")))
    assert model.body_names == ("a_b", "a_b_2") and model.joint_names[0] == "j_1"
    assert "'a/b' to 'a_b_2'" in said


def test_shapes_are_for_pictures(urdf, tmp_path):
    (tmp_path / "part.stl").write_text("", encoding="utf-8")
    visual = (
        '<visual><origin xyz="0 0 1" rpy="0 0 1.5707963267948966"/><geometry>{}</geometry><material name="m"/></visual>'
    )
    text = robot(
        '<material name="m"><color rgba="1 0 0.5 1"/></material>',
        box("a", more=visual.format('<box size="1 2 3"/>') + visual.format('<mesh filename="package://part.stl"/>')),
        hinge("j", "world", "a"),
    )  # fmt: skip
    model, said = urdf(text)
    first, second = model.structure.visuals
    assert not said and first.size == (1, 2, 3) and first.color == "#ff0080" and first.pose.position == (0, 0, 1)
    assert first.pose.rotation == ((0, -1, 0), (1, 0, 0), (0, 0, 1))  # a quarter turn is exact
    assert second.file == str(tmp_path / "part.stl")


def test_files_that_are_none(tmp_path):
    macros = '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:macro/><link name="a"/></robot>'
    for text, said in (
        ("no", "not an XML file"),
        ("<mujoco/>", "not a URDF"),
        ("<robot/>", "has no links"),
        (macros, "xacro"),
    ):
        (tmp_path / "x.urdf").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=said):
            mbs.load(tmp_path / "x.urdf")
    with pytest.raises(InputError, match="cannot be read"):
        mbs.load(tmp_path / "y.urdf")
    with pytest.raises(InputError, match="options"):
        mbs.load("examples/stage_separation.toml", free_base=True)


def test_a_batch_of_an_imported_robot(urdf):
    model, _ = urdf(random_urdf(7, n=3, kinds=("revolute",)))
    batch, axes = mbs.vary(model, {"link_1.mass": np.array([1.0, 2.0])})
    A = jax.vmap(mbs.mass_matrix, in_axes=(axes, None))(batch, np.zeros(model.nv))
    assert A.shape == (2, model.nv, model.nv) and not np.allclose(A[0], A[1])
