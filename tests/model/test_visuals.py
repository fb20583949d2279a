"""Solids without a body, and visuals made of them: equality, faults, files, and that pictures contain them."""

import sys

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.model.visuals import Visual
from jaxmbs.view.shapes import scene_of
from tests.view.test_animate import read_glb

CORNERS = np.array([(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3)], float)
SIDES = np.array([(0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)])
OBJ = "".join(f"v {x} {y} {z}\n" for x, y, z in CORNERS) + "".join(f"f {a} {b} {c}\n" for a, b, c in SIDES + 1)


def pendulum(*visuals, **options):
    mech = mbs.library.double_pendulum()
    for visual in visuals:
        mech.add_visual("upper", visual, **options)
    return mech.build()


def test_solids_are_equal_to_equal_ones_and_can_be_keys():
    wedge = mbs.Mesh(vertices=CORNERS, triangles=SIDES, scale=0.5)
    assert wedge == mbs.Mesh((CORNERS.tolist(), SIDES.tolist()), scale=0.5) and hash(wedge) == hash(wedge)
    assert wedge != mbs.Mesh((CORNERS, SIDES)) and wedge != mbs.Mesh((CORNERS[:, ::-1], SIDES), scale=0.5)
    assert len({mbs.Mesh("a.stl"), mbs.Mesh("a.stl"), mbs.Mesh("a.stl", error=0.1), mbs.Mesh("b.stl")}) == 3
    assert mbs.Box([1, 2, 3]) == mbs.Box(np.array([1.0, 2.0, 3.0])) != mbs.Box((1, 2, 4))
    assert mbs.Tube(0.1, 1) == mbs.Tube(radius=0.1, length=1.0) != mbs.Capsule(0.1, 1.0)
    assert mbs.Ball(np.float64(2)) == mbs.Ball(2.0)


@pytest.mark.parametrize(
    "make, said",
    [
        (mbs.Mesh, "Mesh: give either a file, or vertices and triangles"),
        (lambda: mbs.Mesh("a.stl", vertices=CORNERS, triangles=SIDES), "Mesh: give either a file"),
        (lambda: mbs.Mesh(vertices=CORNERS), "Mesh: give either a file"),
        (lambda: mbs.Mesh((CORNERS, SIDES), triangles=SIDES), r"Mesh: pass a path, or the pair"),
        (lambda: mbs.Mesh(CORNERS.tolist()), r"Mesh: pass a path, or the pair"),
        (
            lambda: mbs.Mesh((CORNERS, SIDES + 1)),
            "Mesh: triangles must be indices of vertices, whole numbers from 0 to 3",
        ),
        (lambda: mbs.Mesh((CORNERS, SIDES / 2)), "Mesh: triangles must be indices of vertices, whole numbers"),
        (lambda: mbs.Mesh((CORNERS[:, :2], SIDES)), r"Mesh: vertices \(4, 2\) .* must have 3 columns"),
        (lambda: mbs.Mesh("a.stl", scale=0.0), "Mesh: scale: 0.0 must be more than zero"),
        (lambda: mbs.Mesh("a.stl", error=-1.0), "Mesh: error: -1.0 must be more than zero"),
        (lambda: mbs.Ball(-1.0), "Ball: radius: -1.0 must be more than zero"),
        (lambda: mbs.Box((1, 0, 1)), "Box: size: .* must be more than zero"),
        (lambda: mbs.Capsule(1.0, -1.0), "Capsule: length: -1.0 is negative"),
        (lambda: pendulum(mbs.Ball), "visual of 'upper': .* is neither the name of a shape nor a solid .*; pass Ball"),
        (
            lambda: pendulum(mbs.Ball(1.0), size=(2, 2, 2)),
            "visual of 'upper': size is for shapes .* by name; a Ball has",
        ),
        (lambda: pendulum(mbs.Ball(1.0), size=mbs.Pose()), "size is for .*; give the pose as pose="),
        (lambda: pendulum(mbs.Mesh("a.stl"), file="b.stl"), "visual of 'upper': file is for shapes"),
        (lambda: pendulum("mesh"), 'the shape "mesh" needs a file, or vertices and triangles'),
        (lambda: pendulum("box", vertices=CORNERS, triangles=SIDES), "no other shape has them"),
        (lambda: pendulum("mesh", file="a.stl", vertices=CORNERS, triangles=SIDES), "either a file, or vertices"),
        (lambda: pendulum("mesh", vertices=CORNERS), "vertices"),
    ],
)
def test_what_is_wrong_is_said_at_once(make, said):
    with pytest.raises(mbs.ModelError, match=said):
        make()


def test_a_solid_gives_the_visuals_of_its_name():
    """Beside the form with names, which is what a file has."""
    pose, turned = mbs.Pose((0, 0, -0.5)), mbs.Pose((1, 2, 3), (0.5, 0.5, 0.5, 0.5))  # z to x
    given = (
        (mbs.Box((1, 2, 3)), "box", (1, 2, 3)), (mbs.Ball(0.5), "sphere", (1, 1, 1)),
        (mbs.Tube(0.1, 2.0), "cylinder", (0.2, 0.2, 2.0)),
    )  # fmt: skip
    for solid, name, size in given:
        by_name = pendulum(name, size=size, pose=pose, color="#123456")
        assert pendulum(solid, pose=pose, color="#123456") == by_name
    assert pendulum(mbs.Mesh("part.stl", scale=1e-3)) == pendulum("mesh", size=(1e-3,) * 3, file="part.stl")
    arrays = {"vertices": CORNERS, "triangles": SIDES}
    assert (
        pendulum(mbs.Mesh((CORNERS, SIDES))) == pendulum("mesh", **arrays) != pendulum("mesh", size=(2, 2, 2), **arrays)
    )
    tube, *ends = pendulum(mbs.Capsule(0.1, 2.0), pose=turned).structure.visuals
    assert tube.shape == "cylinder" and tube.size == (0.2, 0.2, 2.0) and {e.shape for e in ends} == {"sphere"}
    assert [e.pose.position for e in ends] == [pytest.approx((0, 2, 3)), pytest.approx((2, 2, 3))]
    assert [v.shape for v in pendulum(mbs.Capsule(0.1, 0.0)).structure.visuals] == ["sphere"]


def test_meshes_come_back_from_files(tmp_path):
    (tmp_path / "part.obj").write_text(OBJ, encoding="utf-8")
    mech = mbs.library.double_pendulum()
    mech.add_visual("upper", mbs.Mesh((CORNERS / 3, SIDES), scale=0.1 + 0.2), pose=mbs.Pose((0, 0, 1)))
    mech.add_visual("lower", mbs.Mesh(tmp_path / "part.obj", scale=1 / 3), color="#0a0b0c")
    model = mech.build()
    mbs.save(model, tmp_path / "model.toml")
    back = mbs.load(tmp_path / "model.toml")
    assert back == model and back.structure.visuals == model.structure.visuals
    text = (tmp_path / "model.toml").read_text(encoding="utf-8")
    assert "triangles = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]" in text
    (tmp_path / "model.toml").write_text(text.replace("[0, 3, 2]]", "[0, 4, 2]]"), encoding="utf-8")
    with pytest.raises(InputError, match=r"mechanism.visuals\[0\]: visual of 'upper': Mesh: triangles must be indices"):
        mbs.load(tmp_path / "model.toml")


def seen(model, body):
    """Corners of what is drawn on a body, in its axes, without joints and shapes that stand in."""
    drawn, library = scene_of(model)
    (shape,) = [d for d in drawn if (d.body == body and d.key.startswith("mesh ")) or d.key.endswith(".obj")]
    vertices, faces = library[shape.key]
    return vertices[faces] @ shape.matrix[:3, :3].T + shape.matrix[:3, 3]


def test_pictures_contain_the_triangles(tmp_path):
    """As arrays and from a file, in a still and in glTF; two equal ones are stored once."""
    pytest.importorskip("trimesh")
    (tmp_path / "part.obj").write_text(OBJ, encoding="utf-8")
    pose = mbs.Pose((0, 0, 1), (np.sqrt(0.5), 0, 0, np.sqrt(0.5)))
    x, y, z = 0.1 * np.moveaxis(CORNERS[SIDES], 2, 0)
    expected = np.stack([-y, x, 1 + z], 2)
    of_arrays = pendulum(mbs.Mesh((CORNERS, SIDES), scale=0.1), pose=pose)
    assert seen(of_arrays, 0) == pytest.approx(expected)
    of_file = pendulum(mbs.Mesh(tmp_path / "part.obj", scale=0.1), pose=pose)
    assert np.unique(seen(of_file, 0).reshape(-1, 3).round(9), axis=0) == pytest.approx(
        np.unique(expected.reshape(-1, 3).round(9), axis=0)
    )
    mbs.draw(of_arrays)

    twice = pendulum(mbs.Mesh((CORNERS, SIDES), scale=0.1), mbs.Mesh((CORNERS, SIDES)), pose=pose)
    motion = mbs.simulate(twice, [0.5, 0.0], [0.0, 0.0], t_end=0.02, dt=0.01)
    tree, arrays = read_glb(mbs.animate(twice, motion, tmp_path / "motion.glb").read_bytes())
    same = [k for k, x in enumerate(arrays) if x.shape == (12, 3) and np.array_equal(x, CORNERS[SIDES].reshape(-1, 3))]
    assert len(same) == 1 and tree["meshes"]


def test_a_file_is_read_only_when_it_is_drawn(tmp_path, monkeypatch):
    model = pendulum(mbs.Mesh(tmp_path / "later.obj"))
    with pytest.warns(mbs.ModelWarning, match=r"later\.obj \(there is no such file\)"):
        scene_of(model)
    monkeypatch.setitem(sys.modules, "trimesh", None)  # as if it were not installed
    with pytest.warns(mbs.ModelWarning, match="reading meshes needs trimesh"):
        scene_of(pendulum(mbs.Mesh(tmp_path / "other.obj"), mbs.Mesh((CORNERS, SIDES))))


def test_an_open_mesh_can_be_drawn():
    assert len(seen(pendulum(mbs.Mesh((CORNERS, SIDES[1:]))), 0)) == 3


def test_shapes_over_visuals_are_half_transparent():
    model = pendulum(mbs.Ball(0.5))
    other = {"upper": [(CORNERS, SIDES)]}
    assert "upper 0" not in {d.key for d in scene_of(model, other)[0]}
    drawn = {d.key: d.opacity for d in scene_of(model, other, over_visuals=True)[0]}
    assert drawn["sphere"] == 1.0 and 0 < drawn["upper 0"] < 1
    alone = {d.key: d.opacity for d in scene_of(pendulum(), other, over_visuals=True)[0]}
    assert alone["upper 0"] == 1.0
    alphas = mbs.draw(model, shapes=other, over_visuals=True).collections[0].get_facecolor()[:, 3]
    assert np.sum(alphas == pytest.approx(0.4)) in (0, 4)
    assert 0.4 in alphas.round(6).tolist()


def test_a_visual_has_the_fields_of_its_table():
    assert Visual("a", "mesh", vertices=((0, 0, 0),), triangles=((0, 1, 2),)).bodies == ("body",)


def test_different_arrays_are_drawn_apart():
    """Also those of models that are drawn together, whose triangles are kept under the same names."""
    model = pendulum(mbs.Mesh((CORNERS, SIDES)), mbs.Mesh((2 * CORNERS, SIDES)))
    drawn, library = scene_of(model)
    keys = [d.key for d in drawn if d.key.startswith("mesh ")]
    assert [np.ptp(library[k][0], axis=0).tolist() for k in keys] == [[1, 2, 3], [2, 4, 6]]


def test_rows_of_different_lengths_are_no_hull():
    with pytest.raises(mbs.ModelError, match="Hull: points must be rows of 3 numbers"):
        mbs.Hull([[0, 0, 0], [1, 0]])
