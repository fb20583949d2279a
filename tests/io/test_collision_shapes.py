"""Collision shapes of robots: what the files say, on the bodies of the model, where MuJoCo has them."""

import itertools

import mujoco
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.study.outputs import shape_on
from jaxmbs.study.outputs.gap import separations

COLLISION = '<collision><origin xyz="0 0 1" rpy="0 1.5707963267948966 0"/><geometry>{}</geometry></collision>'
OBJ = "v 1 0 0\nv 0 1 0\nv 0 0 1\nv 0 0 0\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"


def robot(*shapes, name="a"):
    inside = "".join(map(COLLISION.format, shapes))
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    joint = f'<joint name="j" type="continuous"><parent link="world"/><child link="{name}"/></joint>'
    return f'<robot name="r"><link name="world"/><link name="{name}">{inertia}{inside}</link>{joint}</robot>'


def test_a_urdf(tmp_path):
    (tmp_path / "part.obj").write_text(OBJ, encoding="utf-8")
    shapes = ('<box size="1 2 3"/>', '<cylinder radius="0.5" length="2"/>', '<sphere radius="0.1"/>',
              '<capsule radius="0.5" length="2"/>', '<mesh filename="part.obj" scale="0.1 0.1 0.1"/>',
              '<mesh filename="part.obj" scale="1 1 2"/>', '<mesh filename="/part.obj"/>', "<cone/>")  # fmt: skip
    (tmp_path / "r.urdf").write_text(robot(*shapes, name="a.b"), encoding="utf-8")
    with pytest.warns(mbs.ModelWarning) as caught:
        found = mbs.collision_shapes(tmp_path / "r.urdf")
    (said,) = (str(w.message) for w in caught)
    assert caught[0].filename == __file__
    for part in ("scaled differently along x, y and z (1)", "outside the file's folder", "shapes <cone> (1)", "'a_b'"):
        assert part in said
    solids = [mbs.Box((1, 2, 3)), mbs.Tube(0.5, 2), mbs.Ball(0.1), mbs.Capsule(0.5, 2)]
    assert [x for x, _ in found["a_b"]] == [*solids, mbs.Mesh(tmp_path / "part.obj", scale=0.1)]
    with pytest.warns(mbs.ModelWarning, match="collision shapes"):
        assert set(found) == {"a_b"} == set(mbs.load(tmp_path / "r.urdf").body_names)
    tube = shape_on("a_b", *found["a_b"][1])
    assert tube.center == (0, 0, 1) and tube.axis == pytest.approx((1, 0, 0), abs=1e-15)
    with pytest.warns(mbs.ModelWarning):
        trusted = mbs.collision_shapes(tmp_path / "r.urdf", trust=True)["a_b"]
    assert len(trusted) == 6


def test_faults_of_a_urdf_are_named(tmp_path):
    (tmp_path / "r.urdf").write_text(robot('<sphere radius="-1"/>', '<box size="1 x"/>'), encoding="utf-8")
    with pytest.raises(InputError, match=r'link "a"(.|\n)*Ball: radius(.|\n)*size needs three numbers'):
        mbs.collision_shapes(tmp_path / "r.urdf")
    with pytest.raises(InputError, match="URDF, SDFormat, MJCF and USD"):
        mbs.collision_shapes(tmp_path / "r.toml")


MJCF = """<mujoco><asset><mesh name="m" file="m.obj" scale="2 2 2"/></asset><worldbody>
<geom type="plane" size="1 1 1"/>
<body name="b" pos="0 0 1"><freejoint/><geom type="box" size="0.1 0.2 0.3" pos="1 0 0" euler="0 90 0"/>
<geom type="capsule" size="0.1" fromto="0 0 0 0 2 0"/><geom type="cylinder" size="0.1 0.5" contype="0"/>
<geom type="sphere" size="0.3" contype="0" conaffinity="0"/><geom type="ellipsoid" size="1 2 3"/>
<geom type="mesh" mesh="m" pos="0 0 5"/></body></worldbody></mujoco>"""


def test_an_mjcf(tmp_path):
    (tmp_path / "m.obj").write_text(OBJ, encoding="utf-8")
    (tmp_path / "r.xml").write_text(MJCF, encoding="utf-8")
    with pytest.warns(mbs.ModelWarning, match=r"type plane \(1\), .* type ellipsoid \(1\)"):
        found = mbs.collision_shapes(tmp_path / "r.xml")
    (box, at), (capsule, along), (tube, _), (mesh, over) = found["b"]
    assert set(found) == {"b"}
    assert (box.size, at.position) == (pytest.approx((0.2, 0.4, 0.6)), (1, 0, 0))
    assert at.rotation @ [0, 0, 1] == pytest.approx([1, 0, 0], abs=1e-12)
    assert (capsule.radius, capsule.length) == pytest.approx((0.1, 2.0)) and along.position == pytest.approx((0, 1, 0))
    assert abs(along.rotation @ [0, 0, 1]) == pytest.approx([0, 1, 0], abs=1e-12)
    assert tube == mbs.Tube(0.1, 1.0)
    assert mesh == mbs.Mesh(tmp_path / "m.obj", scale=2.0)
    assert over.position == pytest.approx((0, 0, 5), abs=1e-6)
    np.testing.assert_allclose(over.rotation, np.eye(3), atol=1e-6)


def test_gaps_are_those_of_mujoco(tmp_path):
    """Between the collision shapes of two bodies, of every pair of types."""
    geoms = ('type="box" size="0.1 0.2 0.3"', 'type="capsule" size="0.1 0.5"', 'type="sphere" size="0.3"')
    body = '<body name="{}" pos="{}" euler="10 20 30"><freejoint/><geom {} pos="0.1 0.2 0.3" euler="40 50 60"/></body>'
    pairs, placed, expected = [], [], []
    for one, other in itertools.product(geoms, geoms):
        text = "".join(body.format(*x) for x in (("one", "0 0 0", one), ("other", "2 1 0.5", other)))
        (tmp_path / "r.xml").write_text(f"<mujoco><worldbody>{text}</worldbody></mujoco>", encoding="utf-8")
        m = mujoco.MjModel.from_xml_path(str(tmp_path / "r.xml"))
        data = mujoco.MjData(m)
        mujoco.mj_forward(m, data)
        expected.append(mujoco.mj_geomDistance(m, data, 0, 1, 10.0, None))
        found = mbs.collision_shapes(tmp_path / "r.xml")
        pairs.append((*(shape_on(name, *found[name][0]) for name in ("one", "other")), None))
        (p, q), (R, S) = data.xpos[1:3], data.xmat[1:3].reshape(2, 3, 3)
        placed.append(tuple(float(x) for x in (*(R.T @ S).ravel(), *(R.T @ (q - p)))))
    gaps = [float(s.gap) for s in separations(pairs, placed)]
    assert gaps == pytest.approx(expected, abs=1e-5) and min(expected) > 0.5
