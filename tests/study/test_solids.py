"""Solids as the shapes of clearances: the same shape, file and gap as those that are written out on a body."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.study.outputs import Ball, Box, Capsule, Clearance, Mesh, Tube, shape_on
from jaxmbs.study.outputs.gap import separations
from tests.geometry.test_meshes import OPEN, prism, stl, study
from tests.view.test_animate import read_glb

ARRAYS = prism(np.array([(0, 0), (1, 0), (1, 1), (0, 1)], float))  # a cube: convex, so that nothing is cut
QUARTER = (np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0)  # about y: z to x


def test_a_solid_on_a_body_is_the_shape_that_is_written_out():
    pose = mbs.Pose((1.0, 2.0, 3.0), QUARTER)
    x = pytest.approx((1, 0, 0), abs=1e-15)
    assert shape_on("a", mbs.Ball(0.5), pose) == Ball("a", (1.0, 2.0, 3.0), radius=0.5)
    assert shape_on("a", mbs.Box((1, 2, 3)), pose) == Box("a", (1.0, 2.0, 3.0), size=(1, 2, 3), rotation=QUARTER)
    for solid, shape in ((mbs.Tube(0.5, 2.0), Tube), (mbs.Capsule(0.5, 2.0), Capsule)):
        found = shape_on("a", solid, pose)
        assert type(found) is shape and (found.center, found.radius, found.length) == ((1.0, 2.0, 3.0), 0.5, 2.0)
        assert found.axis == x
        assert shape_on("a", solid) == shape("a", axis=(0, 0, 1), radius=0.5, length=2.0)
    matrix = mbs.Pose((1, 2, 3), np.array([(0, 0, 1), (0, 1, 0), (-1, 0, 0)]))
    assert shape_on("a", mbs.Tube(0.5, 2.0), matrix).axis == x
    mesh = mbs.Mesh(ARRAYS, scale=0.1, error=0.05)
    assert shape_on("a", mesh, pose) == Mesh("a", mesh, position=(1, 2, 3), rotation=QUARTER)


def test_a_mesh_without_a_body_gives_all_but_its_place(tmp_path):
    vertices, triangles = ARRAYS
    plain = Mesh("a", vertices=vertices, triangles=triangles, scale=0.1, error=0.05)
    assert Mesh("a", mbs.Mesh(ARRAYS, scale=0.1, error=0.05)) == plain
    assert Mesh("a", mbs.Mesh(tmp_path / "x.stl", scale=0.1)) == Mesh("a", tmp_path / "x.stl", scale=0.1)
    for more in ({"scale": 2.0}, {"error": 0.1}, {"vertices": vertices, "triangles": triangles}):
        with pytest.raises(mbs.ModelError, match=rf"mesh on 'a': {next(iter(more))} is that of its jaxmbs.Mesh"):
            Mesh("a", mbs.Mesh("x.stl"), **more)
    with pytest.raises(mbs.ModelError, match="Clearance: shape_b: a Ball alone is on no body"):
        Clearance(plain, mbs.Ball(1.0))
    with pytest.raises(mbs.ModelError, match="is not a solid"):
        shape_on("a", plain)


def test_the_gap_is_that_of_the_shape_that_is_written_out():
    """The pieces are the same numbers; the cube is between x = 0.5 and 1.5, z = -1 and 0."""
    vertices, triangles = ARRAYS
    plain = Mesh("a", vertices=vertices, triangles=triangles, error=0.05, position=(0.5, 0, 0), rotation=QUARTER)
    made = shape_on("a", mbs.Mesh(ARRAYS, error=0.05), mbs.Pose((0.5, 0, 0), QUARTER))
    assert made == plain
    for one, other in zip(plain.pieces(), made.pieces(), strict=True):
        assert np.array_equal(one.centers, other.centers) and one.ball == other.ball
    (found,) = separations(
        [(made, shape_on("b", mbs.Ball(0.1)), None)], [(*np.eye(3).ravel().tolist(), 2.5, 0.5, -0.5)]
    )
    assert float(found.gap) == pytest.approx(0.9, abs=1e-6)


def test_a_study_with_solids_is_saved_and_read(tmp_path):
    (tmp_path / "cube.stl").write_bytes(stl(*ARRAYS))
    given = study(
        Mesh("hub", mbs.Mesh(tmp_path / "cube.stl", error=0.05)),
        arrays=Clearance(shape_on("world", mbs.Tube(0.1, 1.0)), shape_on("hub", mbs.Mesh(ARRAYS, error=0.05))),
    )
    text = mbs.study.save(given, tmp_path / "study.toml").content.decode()
    assert 'file = "cube.stl"' in text and "error = 0.05" in text
    assert mbs.study.read(tmp_path / "study.toml") == given
    with pytest.raises(InputError, match=r"outputs.gap.shape_b.vertices: the mesh is not the closed surface of a body"):
        study(Mesh("hub", mbs.Mesh(OPEN)))
    with pytest.raises(InputError, match=r"outputs.gap.shape_b.file: \"none.stl\" cannot be read"):
        study(Mesh("hub", mbs.Mesh(tmp_path / "none.stl")))


@pytest.mark.slow  # two programs
def test_simulate_draws_shapes_over_visuals_when_asked(cart, tmp_path, command):
    shapes = [
        f'shape_{x} = {{ type = "ball", body = "{body}", radius = 0.2 }}' for x, body in (("a", "cart"), ("b", "world"))
    ]
    path = cart("[simulation]", "\n".join(["[[mechanism.visuals]]", 'body = "cart"', 'shape = "box"', "[simulation]"]))
    path.write_text(
        path.read_text(encoding="utf-8") + "\n".join(["", "[outputs.gap]", 'type = "clearance"', *shapes]),
        encoding="utf-8",
    )
    opacities = {}
    for options in ((), ("--shapes",)):
        done = command(
            "simulate", path, "--out", tmp_path / "h.csv", "--overwrite", "--animate", tmp_path / "x.glb", *options
        )
        assert done.returncode == 0, done.stderr
        tree, _ = read_glb((tmp_path / "x.glb").read_bytes())
        opacities[options] = [m["pbrMetallicRoughness"]["baseColorFactor"][3] for m in tree["materials"]]
    assert set(opacities[()]) == {1.0} and len(opacities[("--shapes",)]) == len(opacities[()]) + 1
    assert sorted(set(opacities[("--shapes",)])) == [0.4, 1.0]
