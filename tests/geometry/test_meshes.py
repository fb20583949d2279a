"""Meshes: what convex pieces contain and how far they reach beyond it, faulty files, and meshes as shapes of a study."""

import functools
import json
import re
import struct
import zipfile
from html import escape
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.geometry import decompose as decompose_module
from jaxmbs.geometry.decompose import Decomposition, decompose
from jaxmbs.geometry.meshes import Cell, Triangles, _from_triangle, covered, excess
from jaxmbs.io.errors import InputError
from jaxmbs.study.outputs import Ball, Clearance, Mesh, Tube
from jaxmbs.study.reports.closest import closest
from tests.geometry.test_distance import Scene

RNG = np.random.default_rng(3)
ANGLE = np.array([(0, 0), (3, 0), (3, 1), (1, 1), (1, 4), (0, 4)], float)  # an L


def prism(outline, height=1.0):
    """(vertices, triangles) of a prism over a polygon that is seen whole from its first corner."""
    n = len(outline)
    vertices = np.concatenate([np.c_[outline, np.full(n, z)] for z in (0.0, height)])
    caps = [(0, k, k + 1) for k in range(1, n - 1)]
    sides = [(k, (k + 1) % n, (k + 1) % n + n, k + n) for k in range(n)]
    top, bottom = [(a + n, b + n, c + n) for a, b, c in caps], [(c, b, a) for a, b, c in caps]
    return vertices, np.array(bottom + top + [x for a, b, c, d in sides for x in ((a, b, c), (a, c, d))])


def pipe(inner, outer, length, sides):
    """(vertices, triangles) of a hollow cylinder along x whose flat sides touch both circles from outside."""
    turns = 2 * np.pi * (np.arange(sides) + 0.5) / sides
    circle = np.c_[np.zeros(sides), np.cos(turns), np.sin(turns)] / np.cos(np.pi / sides)
    rings = [circle * r + [x, 0, 0] for r, x in ((inner, 0), (inner, length), (outer, length), (outer, 0))]
    triangles = []
    for ring in range(4):
        for k in range(sides):
            a, b = ring * sides + k, ring * sides + (k + 1) % sides
            c, d = (b + sides) % (4 * sides), (a + sides) % (4 * sides)
            triangles += [(a, c, b), (a, d, c)]
    return np.concatenate(rings), np.array(triangles)


def stl(vertices, triangles):
    """The content of a binary STL file."""
    records = [struct.pack("<12fH", 0, 0, 0, *vertices[t].ravel(), 0) for t in triangles]
    return bytes(80) + struct.pack("<I", len(triangles)) + b"".join(records)


def on_surface(mesh, number):
    """Points spread evenly over a mesh."""
    a, b, c = np.moveaxis(mesh.corners, 1, 0)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    k = RNG.choice(len(a), number, p=area / area.sum())
    u, v = RNG.uniform(size=(2, number, 1))
    u, v = np.where(u + v > 1, 1 - u, u), np.where(u + v > 1, 1 - v, v)
    return a[k] + u * (b - a)[k] + v * (c - a)[k]


def from_mesh(mesh, points):
    """Distances of points from the surface, by all of its triangles."""
    return np.min([_from_triangle(points, *(np.tile(x, (len(points), 1)) for x in t)) for t in mesh.corners], axis=0)


@pytest.mark.parametrize("body", ["angle", "pipe"])
def test_pieces_contain_the_mesh_and_stay_within_the_error(body):
    mesh = Triangles.of(*(prism(ANGLE) if body == "angle" else pipe(0.5, 0.6, 1.0, 6)))
    error = 0.05
    found = decompose(mesh, error)
    assert len(found.points) >= 2 and 0 < found.error <= error
    cells, balls = [Cell.of(x) for x in found.points], found.margins[:, None]
    points = on_surface(mesh, 4000)
    beyond = np.array([cell.beyond(points) for cell in cells]) - balls
    assert beyond.min(0).max() <= 1e-9, "a point of the mesh is outside"
    for k, cell in enumerate(cells):
        weights = RNG.dirichlet(np.ones(3), size=(len(cell.triangles), 40))
        points = np.einsum("tkc,tcx->tkx", weights, cell.triangles).reshape(-1, 3)
        others = [c.beyond(points) > balls[j] for j, c in enumerate(cells) if j != k]
        shown = points[np.all(others, axis=0)]
        assert from_mesh(mesh, shown).max() + balls[k] <= found.error, "a piece reaches farther"
    assert abs(sum(x.volume for x in cells) / mesh.volume - 1) < 0.25


@pytest.mark.slow
def test_a_smaller_error_gives_more_pieces_that_are_nearer():
    mesh = Triangles.of(*pipe(0.5, 0.6, 1.0, 24))
    found = [decompose(mesh, error) for error in (0.2, 0.03)]
    assert found[0].error > found[1].error and len(found[0].points) < len(found[1].points)


def sphere(number):
    """(vertices, triangles) of a ball of radius 1 with two poles and number x number / 2 other vertices on it."""
    turns, heights = 2 * np.pi * np.arange(number) / number, np.pi * np.arange(1, number // 2) / (number // 2)
    rings = [np.c_[np.sin(h) * np.cos(turns), np.sin(h) * np.sin(turns), np.full(number, np.cos(h))] for h in heights]
    vertices = np.concatenate([[[0, 0, 1]], *rings, [[0, 0, -1]]])
    last, here, there = len(vertices) - 1, np.arange(number), (np.arange(number) + 1) % number
    below = 1 + number * (len(rings) - 1)
    triangles = [np.c_[0 * here, 1 + here, 1 + there], np.c_[0 * here + last, below + there, below + here]]
    for k in range(len(rings) - 1):
        a, b, c, d = (1 + number * k + here, 1 + number * k + there,
                      1 + number * (k + 1) + here, 1 + number * (k + 1) + there)  # fmt: skip
        triangles += [np.c_[a, c, d], np.c_[a, d, b]]
    return vertices, np.concatenate(triangles)


def test_a_fine_dome_is_one_piece_with_few_corners(monkeypatch):
    """A convex mesh of thousands of triangles: not compared with all planes at once, nor kept with all corners."""
    mesh, error = Triangles.of(*sphere(64)), 0.05
    assert len(mesh.triangles) > 3900
    monkeypatch.setattr("jaxmbs.geometry.meshes.MOST", 1000)
    monkeypatch.setattr(decompose_module, "_cells", lambda *_: pytest.fail("it is not cut"))
    found = decompose(mesh, error)
    (points,), (ball,) = found.points, found.margins
    assert len(points) < 250 and ball <= found.error <= error
    directions = RNG.normal(size=(2000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    reach = (points @ directions.T).max(0) + ball
    true = (mesh.vertices @ directions.T).max(0)
    assert (reach - true).min() >= 0 and (reach - true).max() <= error


def test_what_cells_leave_out_and_how_far_they_reach():
    """Halves of a box with a gap, and one that is too large: what is missing and what is too much are known exactly."""
    box = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    mesh = Triangles.of(*prism(np.array([(0, 0), (2, 0), (2, 1), (0, 1)], float)))
    halves = [Cell.of(box * [0.9, 1, 1]), Cell.of(box * [0.9, 1, 1] + [1.1, 0, 0])]
    assert not covered(mesh, halves, 0.0999) and covered(mesh, halves, 0.1001), "the gap is 0.2"
    large = [Cell.of(box), Cell.of(box * [1.3, 1, 1] + [1, 0, 0])]
    assert covered(mesh, large, 1e-9)
    assert 0.3 <= excess(mesh, large, 1e-9, 0.01) <= 0.3 * 1.05 + 0.01


def test_distances_from_a_concave_body_by_sampling():
    """Of balls about it and in its corner: never more than the distance from the mesh, nor less by more than the error."""
    mesh = Mesh("a", vertices=prism(ANGLE)[0], triangles=prism(ANGLE)[1], error=0.05)
    assert not list(mesh.faults())
    surface, ball = Triangles.of(mesh.vertices, mesh.triangles), Ball("b", radius=0.01)

    @jax.jit
    @jax.vmap
    def gap(p):
        return Clearance(mesh, ball).measure(Scene(jnp.eye(3), p))[0]

    points = RNG.uniform([-1, -1, -1], [4, 5, 2], size=(400, 3))
    x, y, z = points.T
    inside = (x > 0) & (y > 0) & (z > 0) & (z < 1) & (((x < 3) & (y < 1)) | ((x < 1) & (y < 4)))
    expected = from_mesh(surface, points[~inside]) - 0.01
    found = np.asarray(gap(points))
    assert (found[inside] < 0).all()
    assert (found[~inside] <= expected + 1e-12).all()
    assert (found[~inside] >= expected - mesh.decomposition().error - 1e-12).all()


def test_a_nozzle_in_an_interstage_in_closed_form():
    """Two pipes with flat sides along one axis: the gap across flat sides that face each other is known."""
    nozzle, shell = pipe(0.30, 0.35, 0.5, 4), pipe(0.60, 0.62, 1.0, 4)
    within = Mesh("b", vertices=nozzle[0], triangles=nozzle[1], error=0.05)
    around = Mesh("a", vertices=shell[0], triangles=shell[1], error=0.05)
    errors = within.decomposition().error + around.decomposition().error

    @jax.jit
    def gap(p):
        return Clearance(around, within).measure(Scene(jnp.eye(3), p))[0]

    for p, gaps in (((0.2, 0.0, 0.0), 0.25), ((0.2, 0.1, 0.0), 0.15), ((1.3, 0.0, 0.0), np.hypot(0.3, 0.25))):
        assert gaps - errors <= float(gap(jnp.array(p))) <= gaps + 1e-9
    slope = jax.grad(gap)(jnp.array([0.2, 0.1, 0.0]))
    assert slope == pytest.approx([0, -1, 0], abs=5e-3)  # faces are turned a little by rounding


def test_placed_and_scaled():
    vertices, triangles = prism(ANGLE)
    plain = Mesh("a", vertices=vertices, triangles=triangles, error=0.05)
    turned = Mesh(
        "a", vertices=1e3 * vertices, triangles=triangles, scale=1e-3, error=0.05, position=(1, 2, 3),
        rotation=(np.sqrt(0.5), 0, 0, np.sqrt(0.5)),
    )  # fmt: skip
    x, y, z = np.concatenate([p.centers for p in plain.pieces()]).T
    expected = np.stack([1 - y, 2 + x, 3 + z], 1)
    found = np.concatenate([p.centers for p in turned.pieces()])
    assert found[np.lexsort(found.round(6).T)] == pytest.approx(expected[np.lexsort(expected.round(6).T)], abs=1e-6)
    assert turned.size() == pytest.approx(4.0) and turned.pieces()[0].ball == pytest.approx(plain.pieces()[0].ball)


def test_a_mesh_lies_in_a_hollow_tube():
    mesh = Mesh("b", vertices=prism(ANGLE)[0] - [1.5, 0, 0.5], triangles=prism(ANGLE)[1], error=0.05)
    tube = Tube("a", center=(0, 2, 0), axis=(0, 1, 0), radius=2.0, length=5.0)
    found = Clearance(mesh, tube, inside=True).measure(Scene(jnp.eye(3), jnp.zeros(3)))[0]
    exact = 2.0 - np.hypot(1.5, 0.5)
    assert exact - 2 * mesh.decomposition().error <= float(found) <= exact + 1e-9


OPEN = (prism(ANGLE)[0], prism(ANGLE)[1][1:])
CLOCKWISE = (prism(ANGLE)[0], prism(ANGLE)[1][:, ::-1])
MIXED = (prism(ANGLE)[0], np.concatenate([prism(ANGLE)[1][:4, ::-1], prism(ANGLE)[1][4:]]))
FLAT = (np.c_[ANGLE, np.zeros(6)], np.array([(0, 1, 2), (0, 2, 1)]))


@pytest.mark.parametrize(
    "arrays, said",
    [
        (OPEN, "is not the closed surface of a body: 3 of its 30 edges"),
        (CLOCKWISE, "is inside out"),
        (MIXED, "face inwards next to others"),
        (FLAT, "is flat; take"),
        ((ANGLE, OPEN[1]), r"vertices \(6, 2\)"),
        ((OPEN[0], OPEN[1] + 9), "whole numbers from 0 to 11"),
        (([[0, 0, 0], [1, 0]], [[0, 1, 2]]), "lists of three numbers each"),
        ((OPEN[0] * np.nan, OPEN[1]), "vertex 0 is not finite"),
        ((OPEN[0] * 0, OPEN[1]), "at one place"),
    ],
)
def test_what_is_wrong_with_arrays_is_said(arrays, said):
    (_, message), *rest = Mesh("a", vertices=arrays[0], triangles=arrays[1]).faults()
    assert re.search(said, message) and not rest


def two(first, second):
    """One mesh of two."""
    (p, s), (q, t) = first, second
    return np.concatenate([p, q]), np.concatenate([s, np.asarray(t) + len(p)])


def test_surfaces_that_are_inside_out_next_to_others():
    cube = prism(np.array([(0, 0), (1, 0), (1, 1), (0, 1)], float))
    void = 0.25 + 0.5 * cube[0], cube[1][:, ::-1]
    assert "has 2 closed surfaces, and 1 of them are inside out" in Triangles.of(*two(cube, void)).fault()
    assert "is inside out" in Triangles.of(cube[0], cube[1][:, ::-1]).fault()


def test_solids_that_count_twice_are_not_their_hull():
    """An L, and a box in it as large as what the L lacks of its hull."""
    angle, square = prism(ANGLE), np.array([(0, 0), (1, 0), (1, 1), (0, 1)], float)
    whole = Cell.of(angle[0])
    lacks, corner = whole.volume - Triangles.of(*angle).volume, prism(square * 0.9 + 0.05, 0.9)
    boxes = Triangles.of(*corner).volume
    scaled = corner[0] * [1, 1, lacks / boxes / round(lacks / boxes)]
    mesh = functools.reduce(two, [angle, *[(scaled, corner[1])] * round(lacks / boxes)])
    assert Triangles(*mesh).volume == pytest.approx(whole.volume) and not Triangles(*mesh).is_hull(whole)
    assert Triangles.of(*prism(square)).is_hull(Cell.of(prism(square)[0]))


def test_vertices_of_no_triangle_do_not_count():
    vertices, triangles = prism(ANGLE)
    mesh = Triangles.of(np.concatenate([vertices, [[1e9, 0, 0]]]), triangles)
    assert mesh.size == 4.0 and len(mesh.vertices) == 12 and mesh.fault() == ""


def test_a_thin_wedge_reaches_little_beyond_its_margin():
    """Planes of a sharp edge, moved outwards, meet far away; one between them keeps them near."""
    wedge = Cell.of(prism(np.array([(0, 0), (10, -0.1), (10, 0.1)]))[0])
    assert 1.0 <= wedge.reach(0.01) / 0.01 < 2.5
    tip = np.array([[-0.05, 0, 0.5]])
    assert wedge.beyond(tip)[0] == pytest.approx(0.05, rel=0.01)


def test_a_broken_file_of_pieces_is_replaced(tmp_path):
    file = tmp_path / "angle.stl"
    file.write_bytes(stl(*prism(ANGLE)))
    mesh = Mesh("a", file, error=0.05)
    (name,) = (n for n in mesh.files() if n.endswith(".npz"))
    whole = (tmp_path / name).read_bytes()
    for broken in (b"", whole[:-20], b"PK\x03\x04 no"):
        (tmp_path / name).write_bytes(broken)
        decompose_module._known.clear()
        again = mesh.files()[name]  # CoACD's last bits may differ
        assert again == (tmp_path / name).read_bytes() and Decomposition.of_bytes(again)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, "angle.stl"])


def test_bodies_that_share_an_edge_are_no_fault():
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], float)
    (vertices, triangles), (others, _) = prism(square), prism(square + 1)
    both = Triangles.of(np.concatenate([vertices, others]), np.concatenate([triangles, triangles + 8]))
    assert len(both.vertices) == 14 and both.fault() == "" and both.volume == pytest.approx(2)


def test_what_is_wrong_with_files_is_said(tmp_path):
    (tmp_path / "text.stl").write_text("no mesh at all", encoding="utf-8")
    (tmp_path / "box.what").write_bytes(b"")
    for file, said in (("none.stl", "No such file"), ("text.stl", "has no triangles"), ("box.what", "cannot be read")):
        ((key, message),) = Mesh("a", tmp_path / file).faults()
        assert key == "file" and message.startswith(f'"{file}" ') and said in message
    for mesh in (Mesh("a"), Mesh("a", "x.stl", vertices=OPEN[0], triangles=OPEN[1]), Mesh("a", vertices=OPEN[0])):
        ((key, message),) = mesh.faults()
        assert key == "file" and "either a file, or vertices and triangles" in message


def test_an_error_that_cannot_be_reached_is_refused(monkeypatch):
    mesh = Triangles.of(*prism(ANGLE))
    monkeypatch.setattr("jaxmbs.geometry.decompose._cells", lambda *_: [Cell.of(mesh.vertices)])
    with pytest.raises(mbs.ModelError, match=r"1 convex pieces come within 1\.\d+ of it, and error = 0\.01 is asked"):
        decompose(mesh, 0.01)


def body():
    m = mbs.Mechanism("hub on a slide", gravity=(0.0, 0.0, 0.0))
    m.add_body("hub", 2.0, inertia=(1.0, 1.0, 1.0))
    m.add_joint("slide", mbs.Prismatic((1, 0, 0)), "world", "hub")
    return m.build()


def study(mesh, **others):
    return mbs.study.Study(
        model=body(), initial={"slide": {"v": [0.1]}}, simulation={"t_end": 0.2, "dt": 0.1},
        dispersions={"hub.mass": mbs.study.Normal(apply="multiply", std=0.1)},
        outputs={"gap": Clearance(Ball("world", center=(4.0, 3.5, 0.5), radius=0.5), mesh), **others},
        criteria=["gap > 2 m"],
    )  # fmt: skip


def test_a_study_keeps_a_mesh_and_its_pieces(tmp_path, monkeypatch):
    """A run holds both, so that it can be repeated without cutting the mesh again, and also where the file was changed."""
    file = tmp_path / "angle.stl"
    file.write_bytes(stl(1e3 * prism(ANGLE)[0], prism(ANGLE)[1]))
    mesh = Mesh("hub", file, scale=1e-3, error=0.05)
    given = study(mesh)
    names = sorted(given.files)
    assert re.fullmatch(r"angle-[0-9a-f]{16}\.pieces\.npz", names[0]) and names[1:] == ["angle.stl"]
    assert (tmp_path / names[0]).exists()

    gaps = mbs.study.run(given, 2, tmp_path / "run").outputs(given)["gap"]
    expected = np.hypot(4.0 - 3.02, 3.5 - 1.0) - 0.5  # at the end, between the ball and the edge of the short arm
    assert (gaps <= expected + 1e-9).all() and (gaps >= expected - 1e-3 * mesh.decomposition().error).all()
    assert sorted(p.name for p in (tmp_path / "run" / "files").iterdir()) == names
    assert set(json.loads((tmp_path / "run" / "provenance.json").read_bytes())["modules"]) == set(names)

    said = mesh.said()
    with zipfile.ZipFile(tmp_path / names[0]) as archive:
        assert {x.date_time[0] for x in archive.infolist()} == {1980}, "a date would make it another file"
    assert re.fullmatch(r'2 convex pieces, nowhere farther from "angle\.stl" than \d+ mm', said)
    monkeypatch.setattr("jaxmbs.geometry.decompose._cells", None)  # nothing is cut again
    monkeypatch.setattr("jaxmbs.geometry.decompose._known", {})
    file.unlink()
    page = mbs.study.report(tmp_path / "run").path.read_text(encoding="utf-8")
    number = r"-?[\d.]+(?:e-\d+)?"
    point = rf"\(({number}), ({number}), ({number})\) m"
    text = rf"at t = 0\.2 s: ({number}) m between ball of world at {point} and angle.stl of hub \(piece \d of 2\) at {point}"
    shown, *points = map(float, re.search(text, page).groups())
    on_ball, on_hub = np.array(points[:3]), np.add(points[3:], [0.02, 0, 0])
    assert shown == pytest.approx(gaps[0], rel=1e-3) and f"that of the whole motion is {gaps[0]:.4g} m" in page
    assert np.linalg.norm(on_hub - on_ball) == pytest.approx(gaps[0], rel=2e-3)
    assert np.linalg.norm(on_ball - [4.0, 3.5, 0.5]) == pytest.approx(0.5, rel=1e-2) and escape(said) in page
    again = mbs.study.read(tmp_path / "run" / "study.toml")
    assert sorted(again.files) == names
    assert again.outputs["gap"].shape_b.said() == said


def test_the_closest_approach_of_a_part_of_a_run_is_left_out():
    """Its history does not say when the window is open: at t = 0, say, the bodies may be nearer than ever in it."""
    history = SimpleNamespace(values={"gap": np.array([[0.1, 0.5]])})
    ball = Ball("world", radius=1.0)
    for other in ({"from_": 0.5}, {"reduce": "max"}):
        outputs = {"gap": Clearance(ball, Ball("hub", radius=1.0), **other)}
        assert closest(SimpleNamespace(outputs=outputs), history, {}, {"gap": (7, 0)}) == "[]"


def test_a_mesh_in_the_wrong_unit_is_refused(tmp_path):
    file = tmp_path / "angle.stl"
    file.write_bytes(stl(1e3 * prism(ANGLE)[0], prism(ANGLE)[1]))
    with pytest.raises(
        InputError, match=r'outputs.gap.shape_b.scale: "angle.stl" is 4e\+03 m long, and the radius of gyr'
    ):
        study(Mesh("hub", file))
    with pytest.raises(InputError, match=r"outputs.gap.shape_b.file: .none.stl. cannot be read"):
        study(Mesh("hub", tmp_path / "none.stl"))
    with pytest.raises(InputError, match="two different files are called"):
        other = tmp_path / "other" / "angle.stl"
        other.parent.mkdir()
        other.write_bytes(stl(prism(ANGLE)[0], prism(ANGLE)[1]))
        study(Mesh("hub", file, scale=1e-3), other=Clearance(Ball("world", radius=0.1), Mesh("hub", other)))


def test_a_file_names_a_mesh_beside_it(tmp_path):
    (tmp_path / "angle.stl").write_bytes(stl(prism(ANGLE)[0], prism(ANGLE)[1]))
    text = mbs.study.save(
        study(Mesh("hub", tmp_path / "angle.stl", error=0.05)), tmp_path / "study.toml"
    ).content.decode()
    assert 'file = "angle.stl"' in text
    (tmp_path / "study.toml").write_text(text.replace("angle.stl", "../angle.stl"), encoding="utf-8")
    with pytest.raises(InputError, match=r"outputs.gap.shape_b.file: .*put the file beside"):
        mbs.study.read(tmp_path / "study.toml")
