"""Pictures: what the files say is what the solution says; the page plays in a browser where there is one."""

import base64
import json
import re
import shutil
import struct
import subprocess
import time
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

import jaxmbs as mbs
from jaxmbs.study.outputs import Ball, Box, Clearance, JointVelocity, Tube
from jaxmbs.study.reports.motion import limits_of, plots_of, shapes_of
from jaxmbs.view.shapes import UNIT, coarse, scene_of

CHROMIUM = next((p for name in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(name))), None)


def read_glb(content):
    """(tree, {accessor: array}) of binary glTF, by its specification."""
    magic, version, length, size, kind = struct.unpack_from("<4sIII4s", content)
    assert (magic, version, length, kind) == (b"glTF", 2, len(content), b"JSON")
    tree = json.loads(content[20 : 20 + size])
    _, kind = struct.unpack_from("<I4s", content, 20 + size)
    assert kind == b"BIN\0"
    arrays = []
    for a in tree["accessors"]:
        start, n = (
            28 + size + tree["bufferViews"][a["bufferView"]]["byteOffset"],
            {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[a["type"]],
        )
        assert (start - 28 - size) % 4 == 0
        arrays.append(np.frombuffer(content, "<f4", a["count"] * n, start).reshape(-1, n))
    return tree, arrays


def glb_of(page):
    return base64.b64decode(re.search(r'<script id="glb"[^>]*>([^<]*)</script>', page).group(1))


def played(tree, arrays, name, root, times):
    """Positions and rotations of a node under a root at given times."""
    node = next(i for i in tree["nodes"][root]["children"] if tree["nodes"][i]["name"] == name)
    found = {
        "translation": np.array(tree["nodes"][node]["translation"]),
        "rotation": np.array(tree["nodes"][node]["rotation"]),
    }
    p, R = (
        np.tile(found["translation"], (len(times), 1)),
        Rotation.from_quat(np.tile(found["rotation"], (len(times), 1))),
    )
    animation = tree.get("animations", [{"channels": []}])[0]
    for c in animation["channels"]:
        if c["target"]["node"] == node:
            s = animation["samplers"][c["sampler"]]
            t, x = arrays[s["input"]][:, 0], arrays[s["output"]]
            if c["target"]["path"] == "translation":
                p = np.stack([np.interp(times, t, x[:, k]) for k in range(3)], 1)
            else:
                R = Slerp(t, Rotation.from_quat(x))(np.clip(times, t[0], t[-1]))
    return p, R.as_matrix()


@pytest.fixture(scope="module")
def tumbling():
    """A free body that carries an arm, thrown; two samples, with an event."""
    mech = mbs.Mechanism("thrown", gravity=(0, 0, -9.81))
    mech.add_body("hull", 2.0, (0.1, 0, 0), (0.1, 0.2, 0.25))
    mech.add_body("arm", 0.5, (0, 0, -0.2), (0.01, 0.01, 0.001))
    mech.add_joint("free", mbs.Free(), "world", "hull")
    mech.add_joint("hinge", mbs.Revolute((0, 1, 0)), "hull", "arm", mbs.Pose((0.3, 0, 0)))
    mech.add_visual("hull", "box", (0.4, 0.2, 0.1), color="#4477aa")
    mech.add_visual("world", "box", (4, 4, 0.01), mbs.Pose((0, 0, -1)))
    mech.add_event("half", when=mbs.Time(0.15))
    model = mech.build()
    q = np.array([0, 0, 1, 0.8, 0, 0.6, 0, 0.3])
    run = jax.jit(lambda v: mbs.simulate(model, q, v, t_end=0.3, dt=5e-3))
    return model, {f"sample {k}": run(np.array([9.0, 1, k, 1, 0, 3, 2])) for k in (2, 3)}


def test_nodes_of_the_file_move_as_the_bodies(tumbling, tmp_path):
    """At the rows and between them, in both samples; every rotation turns less than half a turn from row to row."""
    model, samples = tumbling
    page = mbs.animate(model, samples, tmp_path / "motion.html").read_text(encoding="utf-8")
    assert mbs.animate(model, samples, tmp_path / "motion.glb").read_bytes() == glb_of(page)
    tree, arrays = read_glb(glb_of(page))
    roots = [i for i in tree["nodes"][0]["children"] if "extras" in tree["nodes"][i]]
    assert [tree["nodes"][i]["name"] for i in roots] == list(samples)
    for root, x in zip(roots, samples.values(), strict=True):
        t = np.asarray(x.t)
        want = jax.vmap(lambda q: mbs.body_poses(model, q))(np.asarray(x.q))
        for i, body in enumerate(model.body_names):
            p, R = played(tree, arrays, body, root, t)
            np.testing.assert_allclose(p, want.position[:, i], atol=2e-6)
            np.testing.assert_allclose(R, want.rotation[:, i], atol=2e-6)
        middle = (t[1:] + t[:-1]) / 2
        p, _ = played(tree, arrays, "hull", root, middle)
        q = (np.asarray(x.q)[1:, :3] + np.asarray(x.q)[:-1, :3]) / 2
        np.testing.assert_allclose(p, q, atol=1e-4)
    turns = [arrays[s["output"]] for s in tree["animations"][0]["samplers"] if arrays[s["output"]].shape[1] == 4]
    assert all(np.sum(x[1:] * x[:-1], axis=1).min() > 0 for x in turns)


def test_the_page_has_events_plots_and_no_network(tumbling, tmp_path):
    model, samples = tumbling
    plots = {"height [m]": {n: np.asarray(x.q)[:, 2] for n, x in samples.items()}}
    asked = {"plots": plots, "frames": 11, "limits": {"height [m]": [0.5]}}
    page = mbs.animate(model, samples, tmp_path / "motion.html", **asked).read_text(encoding="utf-8")
    assert "http" not in page.replace("http-equiv", "") and "src=" not in page and "import " not in page
    tree, arrays = read_glb(glb_of(page))
    said = tree["scenes"][0]["extras"]
    assert [(e["name"], e["sample"]) for e in said["events"]] == [("half", n) for n in samples]
    assert said["events"][0]["time"] == pytest.approx(0.15) and said["end"] == pytest.approx(0.3)
    (series,) = said["plots"]["series"]
    assert series["label"] == "height [m]" and series["limits"] == [0.5] and len(series["lines"]["sample 2"]) == 11
    assert series["lines"]["sample 3"][-1] == pytest.approx(float(samples["sample 3"].q[-1, 2]), rel=1e-5)
    assert max(len(x) for x in arrays[2:] if x.shape[1] == 4) == 11


def test_what_cannot_be_animated_is_said(tumbling, tmp_path):
    model, samples = tumbling
    one = samples["sample 2"]
    with pytest.raises(mbs.ModelError, match=r"must end with .html"):
        mbs.animate(model, one, tmp_path / "motion.avi")
    batch = jax.tree.map(lambda *x: np.stack(x), *samples.values())
    with pytest.raises(mbs.ModelError, match="is a batch"):
        mbs.animate(model, batch, tmp_path / "motion.html")
    with pytest.raises(mbs.ModelError, match="has shape"):
        mbs.animate(model, one, tmp_path / "motion.html", plots={"x": np.zeros(3)})
    with pytest.raises(mbs.ModelError, match="limits of 'y', which is not plotted"):
        mbs.animate(model, one, tmp_path / "motion.html", limits={"y": [1.0]})


def test_a_film_shows_the_motion(tumbling, tmp_path):
    """In real time, the body where it is; one sample only."""
    from PIL import Image

    model, samples = tumbling
    path = mbs.animate(model, samples["sample 2"], tmp_path / "motion.gif", frames=4)
    with Image.open(path) as film:
        assert film.n_frames == 4 and film.info["duration"] == pytest.approx(300 / 4, abs=10)  # of 0.3 s
        shots = []
        for k in (0, 3):
            film.seek(k)
            shots.append(np.asarray(film.convert("RGB"), float))
    blue = [(x[..., 2] > 1.3 * x[..., 0]) & (x[..., 2] > 50) for x in shots]
    assert all(b.sum() > 50 for b in blue) and (blue[0] != blue[1]).sum() > 50
    with pytest.raises(mbs.ModelError, match="one sample"):
        mbs.animate(model, samples, tmp_path / "both.gif")


@pytest.mark.skipif(shutil.which("ffmpeg") is not None, reason="ffmpeg is here")
def test_a_film_without_its_program_is_said(tumbling, tmp_path):
    with pytest.raises(mbs.ModelError, match="ffmpeg"):
        mbs.animate(tumbling[0], tumbling[1]["sample 2"], tmp_path / "motion.mp4")


def test_a_thousand_frames_of_twenty_bodies_are_two_megabytes(tmp_path):
    mech = mbs.Mechanism("chain")
    for k in range(20):
        mech.add_body(f"b{k}", 1.0, (0, 0, -0.5), (0.1, 0.1, 0.01))
        parent, pose = (f"b{k - 1}", mbs.Pose((0, 0, -1))) if k else ("world", mbs.Pose())
        mech.add_joint(f"j{k}", mbs.Revolute((0, 1, 0)), parent, f"b{k}", pose)
    model = mech.build()
    t = np.linspace(0, 10, 1000)
    q = np.sin(t[:, None] + np.arange(20))
    motion = SimpleNamespace(t=t, q=q, events=None)
    path = mbs.animate(model, motion, tmp_path / "chain.html")
    assert path.stat().st_size < 2_000_000


def test_ellipsoids_have_the_inertia_of_their_bodies():
    mech = mbs.Mechanism("one")
    I = np.array([[0.3, 0.02, 0.01], [0.02, 0.25, -0.03], [0.01, -0.03, 0.2]])
    mech.add_body("a", 3.0, (0.1, 0.2, 0.3), I)
    mech.add_joint("free", mbs.Free(), "world", "a")
    drawn, _ = scene_of(mech.build())
    (shape,) = [d for d in drawn if d.key == "sphere"]
    A = shape.matrix[:3, :3] / 2  # x = A u with |u| <= 1
    second = 3.0 / 5 * A @ A.T
    np.testing.assert_allclose(np.trace(second) * np.eye(3) - second, I, atol=1e-12)
    np.testing.assert_allclose(shape.matrix[:3, 3], [0.1, 0.2, 0.3])


@pytest.mark.parametrize("name", UNIT)
def test_unit_shapes_are_closed_and_turned_outwards(name):
    vertices, faces = UNIT[name]
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    volume = np.sum(a * np.cross(b, c)) / 6

    def truncated(base, end):
        return np.pi / 3 * (base * base + base * end + end * end)

    exact = {"box": 1, "cylinder": np.pi / 4, "cone": np.pi / 12, "sphere": np.pi / 6}
    exact |= {"pipe": np.pi * (0.5**2 - 0.48**2), "nozzle": truncated(0.5, 0.2) - truncated(0.48, 0.18)}
    half = name.startswith("half_")
    exact = exact[name.removeprefix("half_")] / (1 + half)
    assert 0.93 * exact < volume <= 1.0001 * exact
    assert np.abs(np.cross(b - a, c - a).sum(0)).max() < 1e-12  # closed: no net area
    assert np.ptp(vertices, axis=0) == pytest.approx([1, 0.5 if half else 1, 1])


def test_large_meshes_become_coarse():
    n = 120
    x, y = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n))
    k = np.arange((n - 1) * n).reshape(n - 1, n)[:, :-1].ravel()
    faces = np.concatenate([np.stack([k, k + 1, k + n], 1), np.stack([k + 1, k + n + 1, k + n], 1)])
    vertices, fewer = coarse(np.stack([x.ravel(), y.ravel(), 0 * x.ravel()], 1), faces)
    assert 1000 < len(fewer) <= 6000 and len(faces) > 20000
    np.testing.assert_allclose([vertices.min(), vertices.max()], [0, 1], atol=0.02)


def test_the_still_shows_bodies_where_they_are():
    model = mbs.library.double_pendulum().build()
    axes = mbs.draw(model, [np.pi / 2, 0.0])
    assert len(axes.collections) == 1
    low, high = axes.get_xlim()
    poses = mbs.body_poses(model, [np.pi / 2, 0.0])
    tip = (poses.position[1] + poses.rotation[1] @ np.array([0, 0, -1.0]))[0]
    assert abs(tip) == pytest.approx(2) and sorted([0, tip]) == pytest.approx([low, high], abs=0.15)
    assert np.mean(axes.get_zlim()) == pytest.approx(0, abs=1e-9)


def test_a_large_ground_does_not_hide_the_bodies():
    mech = mbs.library.double_pendulum()
    mech.add_visual("world", "box", (50, 50, 0.1), mbs.Pose((0, 0, -2)))
    low, high = mbs.draw(mech.build(), [0.0, 0.0]).get_xlim()
    assert high - low < 3
    mech.add_visual("world", "box", (1, 1, 1), mbs.Pose((0, 0, -20)))  # far from the bodies: seen all the same
    assert mbs.draw(mech.build(), [0.0, 0.0]).get_zlim()[0] <= -20.5


def test_meshes_are_read_and_scaled(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.box((1, 2, 3)).export(tmp_path / "box.stl")
    mech = mbs.library.double_pendulum()
    mech.add_visual("upper", "mesh", (0.1, 0.1, -0.1), file=str(tmp_path / "box.stl"))
    drawn, library = scene_of(mech.build())
    (shape,) = [d for d in drawn if d.key.endswith(".stl")]
    vertices, faces = library[shape.key]
    assert len(faces) == 12
    np.testing.assert_allclose(np.ptp(vertices @ shape.matrix[:3, :3].T, axis=0), [0.1, 0.2, 0.3], rtol=1e-6)


def test_missing_meshes_are_told(tmp_path):
    mech = mbs.library.double_pendulum()
    mech.add_visual("upper", "mesh", file=str(tmp_path / "none.stl"))
    with pytest.warns(mbs.ModelWarning, match=r"none\.stl"):
        drawn, _ = scene_of(mech.build())
    assert any(d.body == 0 and d.key == "sphere" for d in drawn)  # its ellipsoid stands in


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_the_page_plays_in_a_browser(tumbling, tmp_path):
    """A screenshot has the body's colour where the body is, and another moment looks different."""
    from matplotlib.image import imread

    model, samples = tumbling
    page = mbs.animate(model, samples["sample 2"], tmp_path / "motion.html")
    flags = ["--headless=new", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
             f"--user-data-dir={tmp_path / 'profile'}", "--window-size=900,600", "--virtual-time-budget=2000"]  # fmt: skip
    shots = []
    for t in (0.01, 0.25):
        shot = tmp_path / f"{t}.png"
        command = [CHROMIUM, *flags, f"--screenshot={shot}", f"{page.as_uri()}#{t}"]
        subprocess.run(command, capture_output=True, timeout=120, check=False)
        for _ in range(20):
            if shot.exists():
                break
            time.sleep(0.1)
        shots.append(imread(shot)[:530, :560, :3])
    blue = [(x[..., 2] > 1.3 * x[..., 0]) & (x[..., 2] > 0.2) for x in shots]
    assert all(b.sum() > 100 for b in blue)
    assert np.abs(shots[0] - shots[1]).max() > 0.2 and (blue[0] != blue[1]).sum() > 50


def test_the_page_needs_no_letters_that_fonts_lack(tumbling, tmp_path):
    """Arrows and bars of players are missing in many fonts: the page draws them."""
    model, samples = tumbling
    page = mbs.animate(model, samples["sample 2"], tmp_path / "motion.html").read_text(encoding="utf-8")
    assert "<svg" in page.split('id="play"')[1][:200]
    for missing in ("&#9654;", "\u25b6", "\u23f8", "25b6", "23f8"):
        assert missing not in page


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_names_of_events_do_not_overlap(tmp_path):
    """Three events at almost one instant, and one at each end of the track."""
    mech = mbs.library.double_pendulum()
    for name, t in (
        ("the first of all", 0.0),
        ("one", 0.1),
        ("two", 0.1001),
        ("three", 0.1002),
        ("the end of it", 0.2),
    ):
        mech.add_event(name, when=mbs.Time(t), then=())
    model = mech.build()
    motion = mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], t_end=0.2, dt=0.01)
    page = mbs.animate(model, motion, tmp_path / "motion.html")
    flags = ["--headless=new", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
             f"--user-data-dir={tmp_path / 'profile'}", "--window-size=900,600", "--virtual-time-budget=2000"]  # fmt: skip
    command = [CHROMIUM, *flags, "--dump-dom", f"{page.as_uri()}#0.1"]
    seen = subprocess.run(command, capture_output=True, timeout=120, check=False)
    places = dict(re.findall(r'title="(\w[\w ]*) at [^"]*" style="([^"]*)"', seen.stdout.decode()))
    at = {n: [float(x) for x in re.findall(r"(?:left|top): ([\d.]+)px", style)] for n, style in places.items()}
    assert len(at) == 5 and len({top for _, top in (at[n] for n in ("one", "two", "three"))}) == 3
    assert all(left >= 0 for left, _ in at.values())


def test_shapes_are_drawn_on_bodies_without_visuals():
    mech = mbs.Mechanism("pair")
    for name in "ab":
        mech.add_body(name, 1.0, inertia=(1, 1, 1))
        mech.add_joint(f"to_{name}", mbs.Free(), "world", name)
    mech.add_visual("a", "box")
    vertices, faces = UNIT["box"]
    drawn, library = scene_of(mech.build(), {x: [(vertices * 3, faces)] for x in ("a", "b", "world")})
    assert [(d.body, d.key) for d in drawn] == [(0, "box"), (1, "b 0"), (-1, "world 0")]
    assert np.ptp(library["b 0"][0], axis=0) == pytest.approx([3, 3, 3])


def test_bounds_of_criteria_cross_the_plots():
    """In the unit of the plot; not those on a time at which something is least."""
    study = mbs.study.Study(
        model=mbs.library.double_pendulum().build(),
        outputs={
            "speed": JointVelocity("elbow", reduce="max", unit="deg/s"),
            "when": JointVelocity("elbow", reduce="time_of_max"),
        },
        criteria=["|speed| < 90 deg/s", "when < 0.5 s"],
    )
    plots = plots_of(study, {name: {"": np.ones(3)} for name in study.outputs})
    assert set(plots) == {"speed [deg/s]", "for when [rad/s]"}
    assert limits_of(study, plots) == {"speed [deg/s]": pytest.approx([90.0, -90.0])}


def test_shapes_of_a_study_are_closed_and_turned_outwards():
    outputs = {
        "one": Clearance(Ball("a", radius=1.0), Box("b", center=(5, 0, 0), size=(1, 2, 3))),
        "two": Clearance(Tube("a", center=(0, 0, 3), radius=0.5, length=2.0), Ball("world", radius=9.0), inside=True),
    }
    found = shapes_of(SimpleNamespace(outputs=outputs))
    volumes = {name: [volume(*x) for x in shapes] for name, shapes in found.items()}
    assert volumes["b"] == pytest.approx([6.0])
    assert volumes["a"] == pytest.approx([4 * np.pi / 3, np.pi / 2], rel=0.03) and set(volumes) == {"a", "b"}


def volume(vertices, faces):
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return np.sum(a * np.cross(b, c)) / 6
