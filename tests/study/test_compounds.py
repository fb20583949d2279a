"""Compounds of shapes and discs against closed forms, points on circles, and finite differences; in files and reports."""

import json
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pytest import approx
from scipy.spatial.transform import Rotation

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.model.fields import numbers_of
from jaxmbs.study import units
from jaxmbs.study.outputs import Ball, Box, Clearance, Compound, Disc, Mesh, Tube, shape_on
from jaxmbs.study.reports.closest import closest
from tests.geometry.test_distance import Scene
from tests.geometry.test_meshes import body, prism, stl, study

RNG = np.random.default_rng(11)
TURNED = (0.8, 0.0, 0.6, 0.0)
BALLS = Compound([Ball("b", center=(x, y, 0), radius=r) for x, y, r in ((0, 0, 0.1), (0.9, 0, 0.3), (0, 1.2, 0.2))])
BOXES = Compound([Box("a", size=(1, 2, 0.5)), Box("a", (1.5, 0, 0.5), size=(0.5, 1, 1), rotation=TURNED)])


def gap_of(*shapes, **options):
    """The clearance as a function of the rotation and the position of the body "b"."""
    return jax.jit(lambda R, p: Clearance(*shapes, **options).measure(Scene(R, p)))


def placements(number, far):
    for _ in range(number):
        yield Rotation.random(rng=RNG).as_matrix(), far * RNG.normal(size=3)


def between(ball, box, R, p):
    """Distance of a ball from a box, in closed form; negative where they overlap."""
    w, *v = box.rotation
    local = Rotation.from_quat([*v, w]).inv().apply(R @ ball.center + p - box.center)
    beyond = np.abs(local) - np.array(box.size) / 2
    return np.linalg.norm(np.maximum(beyond, 0)) + min(beyond.max(), 0) - ball.radius


def test_the_gap_is_the_least_of_those_of_the_parts():
    gap, nearest = gap_of(BOXES, BALLS), set()
    for R, p in placements(60, 1.5):
        each = {(i, k): between(y, x, R, p) for i, x in enumerate(BOXES.parts) for k, y in enumerate(BALLS.parts)}
        nearest.add(min(each, key=each.get))
        assert float(gap(R, p)[0]) == approx(min(each.values()), abs=1e-9)
    assert len(nearest) > 4


def test_derivatives():
    """Of both modes; where the nearest part changes over, those of one of them."""
    gap, R = gap_of(BOXES, BALLS), np.eye(3)
    along = np.array([0.3, -0.5, 0.7])
    forwards = jax.jit(lambda p: jax.jvp(lambda p: gap(R, p)[0], (p,), (along,))[1])
    backwards = jax.jit(jax.grad(lambda p: gap(R, p)[0]))
    for _, p in placements(8, 2.0):
        slope = float(gap(R, p + 1e-6 * along)[0] - gap(R, p - 1e-6 * along)[0]) / 2e-6
        assert float(forwards(p)) == approx(slope, abs=1e-8)
        assert float(backwards(p) @ along) == approx(slope, abs=1e-8)
    twins = gap_of(Compound([Ball("a", (x, 0, 0), radius=0.2) for x in (-1, 1)]), Ball("b", radius=0.1))
    slope = jax.grad(lambda x: twins(R, jnp.stack([x, 0.0, 0.0]))[0])(0.0)
    assert abs(float(slope)) == approx(1.0), "of one ball or of the other"


def test_in_a_hollow_shape():
    """Two balls in a room, and in a tube of which one of them has gone out."""
    pair = Compound([Ball("b", (x, 0, 0), radius=0.1) for x in (0.0, 0.8)])
    where = np.eye(3), np.array([0.1, 0.2, 0.0])
    assert float(gap_of(pair, Box("a", size=(3, 1, 1)), inside=True)(*where)[0]) == approx(0.2)
    assert float(gap_of(pair, Box("a", size=(2.2, 1, 1)), inside=True)(*where)[0]) == approx(0.1)
    tube = Tube("a", axis=(0, 1, 0), radius=0.5, length=0.5)
    one, other = (Compound([Ball("b", x, radius=0.1) for x in ((0, 0, 0), (0.3, y, 0))]) for y in (0.0, 0.4))
    assert float(gap_of(one, tube, inside=True, open=True)(*where)[0]) == approx(0.0)
    assert float(gap_of(other, tube, inside=True, open=True)(*where)[0]) == approx(0.3)


def test_discs():
    """Their distance from a ball, in closed form, and of the points of their rims from the wall of a tube."""
    gap, size = gap_of(Disc("a", (0.1, 0, 0), axis=(0, 0, 1), radius=0.6), Ball("b", radius=0.05)), 0.6
    for R, p in placements(20, 0.8):
        want = np.hypot(max(np.hypot(p[0] - 0.1, p[1]) - size, 0), p[2]) - 0.05
        assert float(gap(R, p)[0]) == approx(want, abs=1e-8)
    tube = Tube("a", (0.1, 0.2, 0.3), axis=(0.6, 0, 0.8), radius=0.7, length=0.5)
    gap = gap_of(Disc("b", axis=(0, 1, 0), radius=size), tube, inside=True, open=True)
    turns = np.linspace(0, 2 * np.pi, 100_001)
    rim = size * np.stack([np.cos(turns), 0 * turns, np.sin(turns)], 1)
    cut = 0
    for R, p in placements(20, 0.2):
        points = rim @ R.T + p - tube.center
        height = points @ tube.axis
        counts = np.abs(height) <= 0.25
        across = np.linalg.norm(points - np.outer(height, tube.axis), axis=1)
        value, defined = gap(R, p)
        assert bool(defined) == counts.any()
        if counts.any():
            cut += not counts.all()
            assert float(value) == approx(0.7 - across[counts].max(), abs=1e-8 if counts.all() else 1e-4)
    assert cut > 3


def test_a_compound_of_forms():
    """On a body: each part where its own pose and that of the whole put it. In a picture: as the parts one by one."""
    own, pose = mbs.Pose((1, 0, 2), (0.5, 0.5, 0.5, 0.5)), mbs.Pose((0, 3, 0), (0.6, 0, 0, 0.8))
    form = mbs.Compound([mbs.Ball(0.1), (mbs.Compound([mbs.Disc(0.3), (mbs.Capsule(0.1, 0.2), own)]), own)])
    assert form == mbs.Compound(list(form.parts)) and hash(form) == hash(mbs.Compound(form.parts))
    found = shape_on("a", form, pose)
    turn, whole = Rotation.from_quat([0.5, 0.5, 0.5, 0.5]), Rotation.from_quat([0, 0, 0.8, 0.6])
    centers = [np.zeros(3), np.array([1, 0, 2]), np.add(turn.apply([1, 0, 2]), [1, 0, 2])]
    assert [type(x).__name__ for x in found.parts] == ["Ball", "Disc", "Capsule"] and found.body == "a"
    for x, center in zip(found.parts, centers, strict=True):
        assert x.center == approx(np.add(whole.apply(center), [0, 3, 0]))
    assert found.parts[2].axis == approx((whole * turn * turn).apply([0, 0, 1]))
    together, apart = mbs.library.double_pendulum(), mbs.library.double_pendulum()
    two = [(mbs.Box((1, 2, 3)), own), (mbs.Tube(0.1, 2.0), mbs.Pose())]
    together.add_visual("upper", mbs.Compound(two), color="#123456")
    for solid, where in two:
        apart.add_visual("upper", solid, pose=where, color="#123456")
    assert together.build() == apart.build()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: mbs.Compound([]), "is not a list of forms"),
        (lambda: mbs.Compound(mbs.Ball(1.0)), "is not a list of forms"),
        (lambda: mbs.Compound([mbs.Ball]), "neither a form such as mbs.Ball"),
        (lambda: mbs.Compound([(mbs.Ball(1.0), (0, 0, 1))]), r"nor a pair \(form, pose\)"),
        (lambda: mbs.Compound([(mbs.Ball(1.0), mbs.Pose((0, 1)))]), "Compound: pose.position"),
        (lambda: Compound([]), "is not a list of shapes"),
        (lambda: Compound(Ball("a", radius=1.0)), "is not a list of shapes"),
        (lambda: Compound([mbs.Ball(1.0)]), r"is no shape on a body; pass one such as outputs.shape_on\(BODY"),
    ],
)
def test_what_is_no_compound_is_refused(make, said):
    with pytest.raises(mbs.ModelError, match=said):
        make()


def test_a_list_of_parts_has_no_parameters():
    """An element of a model would lose the numbers of its parts; it is refused."""
    with pytest.raises(TypeError, match=r"Compound\.parts: only outputs and their shapes have list of tables"):
        list(numbers_of(BALLS))


def test_a_study_with_compounds_is_saved_and_read(tmp_path):
    """With a list of tables for the parts, also of a mesh; faults are named by the keys of the parts."""
    (tmp_path / "cube.stl").write_bytes(stl(*prism(np.array([(0, 0), (1, 0), (1, 1), (0, 1)], float))))
    mesh = Mesh("hub", tmp_path / "cube.stl", error=0.05)
    given = study(Compound([Box("hub", size=(1, 1, 1)), Compound([mesh, Ball("hub", radius=0.5)])]))
    text = mbs.study.save(given, tmp_path / "study.toml").content.decode()
    assert text.count("[[outputs.gap.shape_b.parts]]") == 3 and sorted(given.files)[-1] == "cube.stl"
    assert mbs.study.read(tmp_path / "study.toml") == given
    part = '[[outputs.gap.shape_b.parts]]\ntype = "ball"'
    edits = {
        "none": ('body = "hub"\nradius', 'body = "hob"\nradius', r"shape_b.parts\[2\].body: there is no body \"hob\""),
        "two bodies": (
            'body = "hub"\nradius',
            'body = "world"\nradius',
            "shape_b.parts: some are on 'world' and not on",
        ),
        "within": (part, part.replace("ball", "compound"), "parts.*compound"),
        "negative": ("radius = 0.5", "radius = -0.5", r"shape_b.parts\[2\].*radius"),
        "flat": ("size = [1", "size = [0", r"shape_b.parts\[0\].size: .*must be more than zero"),
        "file": ("cube.stl", "../cube.stl", r"shape_b.parts\[1\].file: .*put the file beside"),
    }
    for old, new, said in edits.values():
        last = text.rindex(old) if old in text else pytest.fail(f"{old!r} is not in\n{text}")
        (tmp_path / "study.toml").write_text(text[:last] + new + text[last + len(old) :], encoding="utf-8")
        with pytest.raises(InputError, match=said):
            mbs.study.read(tmp_path / "study.toml")


def test_the_report_names_the_nearest_part():
    """A ball of 0.1 m at 3 m from the middle of the far part of two."""
    pair = Compound([Ball("hub", radius=0.5), Box("hub", (4, 0, 0), size=(2, 2, 2))])
    outputs = {"gap": Clearance(Ball("world", (8.0, 0, 0), radius=0.1), pair)}
    there = SimpleNamespace(outputs=outputs, shown={"gap": units.unit("mm", "length")})
    history = SimpleNamespace(
        values={"gap": np.array([[2.9]])}, outputs={"gap": np.array([2.9])}, t=np.zeros(1), q=np.zeros((1, 1, 1))
    )
    (found,) = json.loads(closest(there, history, {0: body()}, {"gap": (7, 0)}))
    assert "2900 mm between ball of world at" in found["said"]
    assert "and box of hub (part 2 of 2) at (5," in found["said"] and found["bodies"][1][0] == "compound of hub"
