"""Solids as the shapes of clearances: the same shape, file and gap as those that are written out on a body."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.geometry.meshes import Triangles
from jaxmbs.io import InputError
from jaxmbs.study.outputs import Ball, Box, Capsule, Clearance, Cone, Mesh, Panel, Tube, shape_on
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


def test_cones_panels_and_hulls_on_a_body():
    """Their middle is at the place, that of the shapes that are written out at the base; a panel is on the side of x."""
    pose = mbs.Pose((1.0, 2.0, 3.0), QUARTER)
    cone = shape_on("a", mbs.Cone(0.4, 2.0, end_radius=0.1), pose)
    assert isinstance(cone, Cone) and (cone.radius, cone.end_radius, cone.length) == (0.4, 0.1, 2.0)
    assert cone.center == pytest.approx((0, 2, 3)) and cone.axis == pytest.approx((1, 0, 0), abs=1e-15)
    panel = shape_on("a", mbs.Panel(1.0, 2.0, thickness=0.1, angle=1.0), pose)
    assert isinstance(panel, Panel) and (panel.thickness, panel.angle, panel.end_radius) == (0.1, 1.0, None)
    assert panel.center == pytest.approx((0, 2, 3)) and panel.middle == pytest.approx((0, 0, -1), abs=1e-15)
    hull = shape_on("a", mbs.Hull(ARRAYS[0]), pose)
    assert np.ptp(np.asarray(hull.points), axis=0) == pytest.approx((1, 1, 1))
    assert np.min(hull.points, axis=0) == pytest.approx((1, 2, 2))


@pytest.mark.parametrize(
    ("solid", "volume"),
    [
        (mbs.Cone(0.4, 2.0, end_radius=0.1), 2 * np.pi / 3 * (0.16 + 0.04 + 0.01)),
        (mbs.Panel(1.0, 2.0, thickness=0.1), np.pi * (1.21 - 1) * 2),
        (mbs.Panel(1.0, 2.0, thickness=0.1, angle=1.0, end_radius=0.0), 0.5 * (2 * 0.5 * 0.1 + 0.1**2) * 2),
        (mbs.Hull([*ARRAYS[0].tolist(), (0.5, 0.5, 0.5)]), 1.0),
    ],
)
def test_the_drawn_surface_is_closed_and_has_the_volume_of_the_form(solid, volume):
    """That of the shape of a clearance too: both are the same points of space, within the polygons for circles."""
    (drawn,) = solid.outlines()
    surface = Triangles.of(drawn.vertices, drawn.triangles)
    edges = {tuple(x) for t in surface.triangles.tolist() for x in zip(t, (*t[1:], t[0]), strict=True)}
    assert edges == {x[::-1] for x in edges}
    corners = surface.vertices[surface.triangles]
    assert np.linalg.det(corners).sum() / 6 == pytest.approx(volume, rel=3e-3)
    points = np.concatenate([x.centers for x in shape_on("a", solid).pieces()])
    if not isinstance(solid, mbs.Cone):  # whose pieces are discs
        assert points.min(axis=0) == pytest.approx(surface.vertices.min(axis=0), abs=5e-3)
        assert points.max(axis=0) == pytest.approx(surface.vertices.max(axis=0), abs=5e-3)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: mbs.Cone(0.0, 1.0), "Cone: radius: both radii are zero"),
        (lambda: mbs.Panel(1.0, 1.0, thickness=0.1, angle=7.0), "Panel: angle: 7.0 rad is more than the whole circle"),
        (lambda: mbs.Hull(ARRAYS[0][:, :2]), "Hull: points"),
        (lambda: mbs.Hull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]), "Hull: points: they lie in one plane"),
        (lambda: mbs.Hull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, np.nan)]), "Hull: .*not finite"),
    ],
)
def test_forms_that_are_none_are_refused(make, said):
    with pytest.raises(mbs.ModelError, match=said):
        make()


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
