"""MJCF files: the model they give, against MuJoCo on the same file."""

import warnings
from pathlib import Path
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.io import InputError
from jaxmbs.io.mjcf_flags import Off
from tests.cases import relative
from tests.io.test_urdf import random_q
from tests.mechanisms import rotation_matrix

FREE_TREE = """
<mujoco model="tree"><compiler angle="radian"/><option gravity="1 -2 -9.81"/>
<default><joint armature="0.05"/>
  <default class="stiff"><joint stiffness="3" springref="0.5" damping="0.2"/></default></default>
<worldbody>
  <body name="a" pos="0.1 0.2 1" euler="0.3 -0.2 0.5"><freejoint name="f"/>
    <inertial pos="0.1 0.02 0.03" mass="2" fullinertia="0.1 0.2 0.15 0.01 -0.02 0.03"/>
    <body name="b" pos="0.3 0 0.1" quat="0.5 0.5 0.5 0.5">
      <joint name="turn" class="stiff" type="hinge" axis="1 2 0.3" pos="0.1 0.05 0" ref="0.2"/>
      <joint name="slide" type="slide" axis="0 1 0.3" pos="0.2 0 0" damping="0.4" ref="0.1" stiffness="2"/>
      <joint name="again" type="hinge" axis="0 0 1" pos="0.3 0 0.1" armature="0.3"/>
      <geom type="box" size="0.1 0.2 0.3" pos="0.02 0.1 0" euler="0.2 0.3 0.1"/>
      <body name="c" pos="0.2 0.1 0"><joint name="ball" type="ball" pos="0.05 0 0" damping="0.3"/>
        <geom type="capsule" size="0.05 0.2"/>
        <body name="d" pos="0.2 0 0" euler="1 0 0"><geom type="cylinder" size="0.05 0.2" mass="0.3"/></body>
      </body>
    </body>
  </body>
  <body name="e" pos="1 0 0"><joint axis="0 1 0"/><geom type="ellipsoid" size="0.1 0.2 0.3"/></body>
</worldbody></mujoco>
"""


@pytest.fixture
def mjcf(tmp_path):
    """Text -> (model, MuJoCo's model, warnings)."""

    def read(text, **options):
        path = tmp_path / "robot.xml"
        path.write_text(text, encoding="utf-8")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = mbs.from_mjcf(path, **options)
        return model, mujoco.MjModel.from_xml_path(str(path)), [str(w.message) for w in caught]

    return read


def converted(model, m, q, v):
    """(qpos, E, e) with MuJoCo's velocities E v and accelerations E a + e; joints in one order."""
    moving = [n for n in model.joint_names if model.v_slice(n).stop > model.v_slice(n).start]
    qpos, E, e = np.array(m.qpos0), np.zeros((m.nv, model.nv)), np.zeros(m.nv)
    for j, name in enumerate(moving):
        sq, sv, iq, iv = model.q_slice(name), model.v_slice(name), m.jnt_qposadr[j], m.jnt_dofadr[j]
        if m.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE:
            R, w, u = rotation_matrix(q[sq][3:]), v[sv][:3], v[sv][3:]
            qpos[iq : iq + 7] = q[sq]
            E[iv : iv + 3, sv.start + 3 : sv.stop], E[iv + 3 : iv + 6, sv.start : sv.start + 3] = R, np.eye(3)
            e[iv : iv + 3] = R @ np.cross(w, u)
        else:
            scale = q[sq] if len(q[sq]) == 4 else q[sq] + m.qpos0[iq]
            qpos[iq : iq + len(scale)] = scale
            E[iv : iv + sv.stop - sv.start, sv] = np.eye(sv.stop - sv.start)
    return qpos, E, e


def compare(model, m, rng):
    """Largest relative difference of inverse dynamics and mass matrix, elements and armature included."""
    q, v, a = random_q(model, rng), *rng.normal(size=(2, model.nv))
    qpos, E, e = converted(model, m, q, v)
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_CONTACT
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:], d.qacc[:] = qpos, E @ v, E @ a + e
    mujoco.mj_inverse(m, d)
    full = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, d, full)
    tau = scalar.inverse_dynamics(model, q.tolist(), v.tolist(), a.tolist())
    A = np.reshape(scalar.mass_matrix(model, q.tolist()), (model.nv, model.nv)).astype(float)
    solved = scalar.forward_dynamics(model, q.tolist(), v.tolist(), tau)
    return relative(tau, E.T @ d.qfrc_inverse), relative(A, E.T @ full @ E), relative(solved, a)


def test_joints_springs_armature_and_frames_as_mujoco_has_them(mjcf):
    model, m, _ = mjcf(FREE_TREE)
    assert model.body_names == ("a", "b_turn", "b_slide", "b", "c", "d", "e") and "e_joint" in model.joint_names
    springs = [name for name in model.parameter_names if name.endswith("_spring.rest_coordinate")]
    assert springs, "springs in joints are JointSpring"
    for seed in range(5):
        assert max(compare(model, m, np.random.default_rng(seed))) < 1e-10


@pytest.mark.slow
def test_equalities_are_where_mujoco_has_them_and_hold(mjcf):
    """At an assembled configuration MuJoCo's own residuals of its soft equalities vanish."""
    bodies = "".join(
        f'<body name="{n}" pos="{x} 0.1 1" euler="10 20 {30 * x}"><joint name="{n}1" axis="0 1 0"/><joint name="{n}2" '
        f'axis="1 0 0"/><joint name="{n}3" type="slide" axis="0 0.6 0.8"/><geom size="0.1 0.2 0.3" type="box" contype="0"/>'
        f'<site name="s{n}" pos="0.1 0.05 0" euler="5 0 {10 * x}"/></body>'
        for n, x in (("a", 0), ("b", 1))
    )
    text = """<mujoco><worldbody>{}</worldbody><equality>
      <connect name="touch" body1="a" body2="b" anchor="0.5 0.1 0.2"/>
      <connect name="pin" site1="sa" site2="sb" active="{}"/>
      <joint name="gear" joint1="a1" joint2="b2" polycoef="0.1 2 -0.3 0.2 0"/>
      <joint name="hold" joint1="a2" polycoef="0.05 0 0 0 0"/>
    </equality></mujoco>"""
    model, m, (said,) = mjcf(text.format(bodies, "false"))
    assert model.constraint_names == ("touch", "gear", "hold") and "equalities that are not active (1)" in said
    q, v, status, residual = mbs.assemble(model, np.full(6, 0.1), np.linspace(-1, 1, 6))
    assert status == 0 and np.abs(residual).max() < 1e-10
    d = mujoco.MjData(m)
    d.qpos[:] = q
    mujoco.mj_forward(m, d)
    rows = d.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    assert rows.sum() == 5 and np.abs(d.efc_pos[rows]).max() < 1e-10
    assert np.abs(d.efc_J.reshape(-1, m.nv)[rows] @ v).max() < 1e-10
    model, _, _ = mjcf(text.format(bodies, "true"))
    assert mbs.get(model, "pin.pose_b.position") == pytest.approx([0.1, 0.05, 0])


def test_a_weld_is_where_mujoco_has_it(mjcf):
    text = """<mujoco><worldbody>
      <body name="a" pos="0 0 1"><freejoint name="f"/><geom size="0.1" contype="0"/></body>
      <body name="b" pos="0.5 0.1 1" euler="10 20 30"><joint name="h" axis="0 1 0"/><geom size="0.1" contype="0"/></body>
    </worldbody><equality><weld name="w" body1="a" body2="b" relpose="0.3 0.1 0 0.8 0.6 0 0" anchor="0.1 0.2 0.3"/>
    </equality></mujoco>"""
    model, m, _ = mjcf(text)
    q, _, status, _ = mbs.assemble(model, [0.1, 0, 1, 1, 0, 0, 0, 0.2], fixed=["h"])
    assert status == 0
    d = mujoco.MjData(m)
    d.qpos[:] = q
    mujoco.mj_forward(m, d)
    assert d.nefc == 6 and np.abs(d.efc_pos).max() < 1e-10


def test_what_a_model_cannot_have_is_said(mjcf):
    text = """<mujoco><option density="1.2"/><worldbody>
      <body name="a" gravcomp="1"><joint name="j" range="-1 1" limited="true"/><geom size="0.1"/></body>
      <body name="b"><joint name="f" type="ball" frictionloss="1"/><geom size="0.1"/></body>
    </worldbody><actuator><motor joint="j"/></actuator>
    <tendon><fixed name="t" stiffness="3"><joint joint="j" coef="1"/></fixed></tendon>
    <equality><tendon name="e" tendon1="t"/></equality></mujoco>"""
    parts = ["dry friction of joints with several degrees of freedom ('f')", "gravity compensation of bodies ('a')",
             "a fluid ('density')", "tendon equalities ('e')",
             "tendons with stiffness, damping, friction or armature ('t')"]  # fmt: skip
    with pytest.raises(InputError) as error:
        mjcf(text)
    assert all(part in str(error.value) for part in parts)
    _, _, (said,) = mjcf(text, on_unsupported="warn")
    assert all(part in said for part in [*parts, "geoms that collide (2)", "limits of joints (1)", "actuators (1)"])


def test_dry_friction_is_as_mujoco_has_it_away_from_rest(mjcf):
    """There it is as large as the file says, whatever moves the joint; MuJoCo's is a constraint."""
    text = """<mujoco><worldbody><body name="a"><joint name="j" axis="0 1 0" frictionloss="0.3"/>
      <joint name="s" type="slide" axis="1 0 0" frictionloss="0.2"/><joint name="k" axis="0 0 1"/>
      <geom size="0.2 0.1 0.1" type="box" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""
    model, m, (said,) = mjcf(text)
    assert model.force_names == ("j_friction", "s_friction") and "set NAME.speed" in said
    q, v = [0.2, 0.1, -0.3], [1.5, -2.0, 0.7]
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = q, v
    mujoco.mj_forward(m, d)
    smooth = mbs.set(model, {f"{n}.moment": 0.0 for n in model.force_names})
    added = np.subtract(scalar.bias_forces(model, q, v), scalar.bias_forces(smooth, q, v))
    np.testing.assert_allclose(added.astype(float), -d.qfrc_constraint, atol=1e-9)
    np.testing.assert_allclose(added.astype(float), [0.3, -0.2, 0], atol=1e-12)


@pytest.mark.parametrize(
    "flags", [("gravity",), ("spring",), ("damper",), ("spring", "damper"), ("gravity", "constraint")]
)
def test_what_a_flag_disables_does_not_act(mjcf, flags):
    """As in MuJoCo on the same file; with springs and dampers all else that is passive is off, too."""
    disabled = "".join(f' {x}="disable"' for x in flags)
    passive = flags == ("spring", "damper")
    option = '<option gravity="1 -2 -9.81"' + (' density="1.2" viscosity="0.1"' if passive else "")
    text = FREE_TREE.replace('<option gravity="1 -2 -9.81"/>', f"{option}><flag{disabled}/></option>")
    if passive or "gravity" in flags:
        text = text.replace('name="b"', 'name="b" gravcomp="0.5"')
    model, m, said = mjcf(text)
    assert m.opt.disableflags and max(compare(model, m, np.random.default_rng(1))) < 1e-10
    springs, dampers = ([n for n in model.force_names if n.endswith(end)] for end in ("_spring", "_damping"))
    assert bool(springs) == ("spring" not in flags) and bool(dampers) == ("damper" not in flags)
    assert ("springs, disabled by a flag (2)" in str(said)) == ("spring" in flags)
    assert ("dampers, disabled by a flag (3)" in str(said)) == ("damper" in flags)
    assert ("collide" in str(said)) == ("constraint" not in flags)
    assert np.any(mbs.get(model, "gravity")) == ("gravity" not in flags)


def test_equalities_and_dry_friction_that_a_flag_disables(mjcf):
    text = """<mujoco><option><flag {}/></option><worldbody>
      <body name="a"><joint name="j" axis="0 1 0" frictionloss="0.3"/><geom size="0.1" contype="0" conaffinity="0"/>
      <body name="b"><joint name="k" axis="1 0 0"/><geom size="0.1" contype="0" conaffinity="0"/></body></body></worldbody>
      <equality><joint name="e" joint1="j" joint2="k"/></equality></mujoco>"""
    for flag, elements in (("contact", 2), ("equality", 1), ("frictionloss", 1), ("constraint", 0)):
        model, m, (said,) = mjcf(text.format(f'{flag}="disable"'))
        d = mujoco.MjData(m)
        mujoco.mj_forward(m, d)
        assert len(model.force_names + model.constraint_names) == d.nefc == elements
        for what, flags in (("equalities", ("equality",)), ("dry friction", ("frictionloss",))):
            assert (f"{what}, disabled by a flag (1)" in said) == (flag in (*flags, "constraint"))


def test_a_callers_gravity_acts_whatever_the_flag_says(mjcf):
    text = FREE_TREE.replace('<option gravity="1 -2 -9.81"/>', '<option><flag gravity="disable"/></option>')
    assert mbs.get(mjcf(text, gravity=(0, 0, -5))[0], "gravity").tolist() == [0, 0, -5]
    with pytest.raises(InputError, match="gravity compensation"):
        mjcf(text.replace('name="b"', 'name="b" gravcomp="1"'), gravity=(0, 0, -5))


def test_flags_of_older_versions_of_mujoco():
    """One flag, for springs, dampers and all else that is passive."""
    older = SimpleNamespace(mjtDisableBit=SimpleNamespace(mjDSBL_CONSTRAINT=1, mjDSBL_PASSIVE=32, mjDSBL_GRAVITY=64))
    assert [k for k, on in Off.of(older, 32)._asdict().items() if on] == ["passive", "springs", "dampers"]


def test_unphysical_inertias_are_named_together_and_repaired(mjcf, tmp_path):
    body = '<body name="{0}"><joint name="{0}"/><inertial mass="1" pos="0 0 0" diaginertia="1 1 {1}"/></body>'
    text = f"<mujoco><worldbody>{body.format('a', 3)}{body.format('b', 4)}{body.format('c', 2)}</worldbody></mujoco>"
    with pytest.raises(InputError) as error:
        mjcf(text)
    assert [p.path for p in error.value.problems] == ['body "a"', 'body "b"']
    with pytest.warns(
        mbs.ModelWarning, match=r"1, 1, 3 were changed to 1.5, 1.5, 3(.|\n)*1, 1, 4 were changed to 2, 2, 4"
    ):
        model = mbs.from_mjcf(tmp_path / "robot.xml", repair="nearest")
    assert np.diag(mbs.get(model, "b.inertia")) == pytest.approx([2, 2, 4])


def test_files_that_mujoco_cannot_read(tmp_path):
    massless = "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>"
    for text, said in (
        ("<mujoco><worldbody>", "not an XML file"),
        ("<mujoco><no/></mujoco>", "MuJoCo cannot read it"),
        (massless, "MuJoCo cannot compile it"),
    ):
        (tmp_path / "x.xml").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=said):
            mbs.load(tmp_path / "x.xml")


def test_includes_meshes_and_shapes(tmp_path):
    (tmp_path / "part.xml").write_text(
        '<mujoco><body name="b"><joint/><geom type="mesh" mesh="m" contype="0"/>'
        '<geom type="capsule" size="0.1 0.2" rgba="1 0 0 1" contype="0"/></body></mujoco>',
        encoding="utf-8",
    )
    (tmp_path / "m.obj").write_text(
        "v 1 0 0\nv 0 1 0\nv 0 0 1\nv 0 0 0\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n", encoding="utf-8"
    )
    (tmp_path / "main.xml").write_text(
        '<mujoco><asset><mesh name="m" file="m.obj" scale="2 2 2"/></asset>'
        '<worldbody><include file="part.xml"/></worldbody></mujoco>',
        encoding="utf-8",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mbs.load(tmp_path / "main.xml")
    mesh, tube, *ends = model.structure.visuals
    assert mesh.file == str(tmp_path / "m.obj") and mesh.size == (2, 2, 2)
    np.testing.assert_allclose(mesh.pose.position, 0, atol=1e-12)  # the file's frame is the body's
    np.testing.assert_allclose(mesh.pose.rotation, np.eye(3), atol=1e-12)
    assert (
        tube.size == (0.2, 0.2, 0.4) and tube.color == "#ff0000" and [e.pose.position[2] for e in ends] == [-0.2, 0.2]
    )


def test_the_model_that_mujoco_brings_along():
    """Springs, armature, ball joints and a free base of its own test data, without its fluid and lifted weight."""
    path = Path(mujoco.__file__).parent / "testdata" / "model.xml"
    if not path.exists():
        pytest.skip("this MuJoCo brings no test data")
    with pytest.warns(mbs.ModelWarning, match="gravity compensation"):
        model = mbs.from_mjcf(path, on_unsupported="warn")
    m = mujoco.MjModel.from_xml_path(str(path))
    m.opt.density = m.opt.viscosity = 0
    for zero in (m.body_gravcomp, m.tendon_stiffness, m.tendon_damping, m.tendon_frictionloss, m.dof_frictionloss):
        zero[:] = 0
    assert model.nv == m.nv
    assert max(compare(model, m, np.random.default_rng(0))) < 1e-10
