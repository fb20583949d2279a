"""Flexible bodies are drawn deformed: where their closed form, their nodes and the motion have them."""

import jax
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.view.deformed import fields, finely
from jaxmbs.view.shapes import scene_of
from tests.view.test_animate import glb_of, read_glb

STATIONS = {"a": 0.25, "b": 0.5, "c": 0.75}


def boom(visual=True, stations=STATIONS):
    part = mbs.Part.beam(2.0, 1.5, (40.0, 90.0), 10.0, modes=4, stations=stations)
    mech = mbs.Mechanism("boom")
    mech.add_flexible_body("boom", part)
    mech.add_joint("root", mbs.Revolute((0, 1, 0)), "world", "boom")
    mech.add_body("lamp", 0.1, (0.1, 0, 0), (1e-3, 1e-3, 1e-3))
    mech.add_joint("mount", mbs.Fixed(), "boom_tip", "lamp")
    if visual:
        mech.add_visual("boom", "box", (2.0, 0.06, 0.1), mbs.Pose((1.0, 0, 0)), color="#4477aa")
    return mech.build()


def cantilever(x, mode):
    """Shape of Euler and Bernoulli of a cantilever of length 1, one at the tip."""
    k = (1.875104068711961, 4.694091132974175)[mode]
    s = (np.cosh(k) + np.cos(k)) / (np.sinh(k) + np.sin(k))
    return (np.cosh(k * x) - np.cos(k * x) - s * (np.sinh(k * x) - np.sin(k * x))) / 2


def test_between_nodes_a_beam_has_the_shape_of_its_modes():
    """Points beside the axis, too, which its sections carry as they rotate."""
    (field,) = fields(boom())
    x = np.linspace(0, 1, 41)
    moved = field.at(np.stack([2 * x, 0 * x, 0 * x], 1))
    above = field.at(np.stack([2 * x, 0 * x, 0 * x + 0.05], 1))
    for k, mode, axis in ((0, 0, 2), (1, 0, 1), (2, 1, 2)):
        shape, h = cantilever(x, mode) * moved[k, -1, axis] / cantilever(1.0, mode), 1e-5
        assert np.abs(moved[k, :, axis] - shape).max() < 0.015 * np.abs(shape).max()
        if axis == 2:
            slope = (
                (cantilever(x + h, mode) - cantilever(x - h, mode)) / (4 * h) * moved[k, -1, 2] / cantilever(1, mode)
            )
            assert np.abs(above[k, :, 0] + 0.05 * slope).max() < (0.05, 0.2)[mode] * np.abs(0.05 * slope).max()


def test_a_body_that_moves_as_a_whole_is_not_distorted():
    (field,) = fields(boom())
    rng = np.random.default_rng(0)
    u, w, points = rng.normal(size=3), rng.normal(size=3), rng.normal(size=(20, 3))
    x = field.positions
    whole = type(field)(
        0, 1, slice(0, 1), x, (u + np.cross(w, x))[..., None], np.broadcast_to(w[:, None], (len(x), 3, 1))
    )
    np.testing.assert_allclose(whole.at(points)[0], u + np.cross(w, points), atol=1e-9)


def test_halved_triangles_cover_the_same_and_remain_joined():
    tall = np.array([[[0, 0, 0], [3, 0, 0], [0, 1, 0]], [[3, 0, 0], [3, 1, 0], [0, 1, 0]]], float)
    found = finely(tall, 0.4)
    normals = np.cross(found[:, 1] - found[:, 0], found[:, 2] - found[:, 0])
    assert (normals[:, 2] > 0).all() and normals[:, 2].sum() / 2 == pytest.approx(3.0)
    edges = [frozenset(map(tuple, t[[k, k - 1]].round(9).tolist())) for t in found for k in range(3)]
    assert max(np.linalg.norm(np.subtract(*map(np.array, e))) for e in edges) <= 0.4
    alone = [e for e in edges if edges.count(e) == 1]  # those of the border
    assert sum(np.linalg.norm(np.subtract(*map(np.array, e))) for e in alone) == pytest.approx(8.0)


@pytest.mark.parametrize("visual", [True, False])
def test_the_file_has_the_shape_and_the_scale(tmp_path, visual):
    """The end of the drawn body is at its tip at every row, and what the tip carries remains attached to it."""
    model = boom(visual)
    q = np.array(model.neutral())
    q[model.q_slice("boom")] = 0.02, 0.03, -0.01, 0.004
    motion = mbs.simulate(model, q, np.zeros(model.nv), t_end=0.1, dt=0.005)
    page = mbs.animate(model, motion, tmp_path / "motion.html", deformation_scale=3).read_text(encoding="utf-8")
    assert "<title>boom, deformation \u00d7 3</title>" in page
    tree, arrays = read_glb(glb_of(page))
    bent = [i for i, n in enumerate(tree["nodes"]) if "mesh" in n and "weights" in tree["meshes"][n["mesh"]]]
    assert len(bent) == (1 if visual else 4)
    channels = {c["target"]["node"]: c["sampler"] for c in tree["animations"][0]["channels"]
                if c["target"]["path"] == "weights"}  # fmt: skip
    at_end, ends = [], np.asarray(motion.q)[:, model.q_slice("boom")] * 3
    for i in bent:
        weights = arrays[tree["animations"][0]["samplers"][channels[i]]["output"]].reshape(len(motion.t), -1)
        np.testing.assert_allclose(weights, ends, rtol=1e-6, atol=1e-9)
        own = tree["meshes"][tree["nodes"][i]["mesh"]]["primitives"][0]
        x, targets = arrays[own["attributes"]["POSITION"]], [arrays[k["POSITION"]] for k in own["targets"]]
        last = np.abs(x[:, 0] - 2.0) < 1e-6
        at_end += [np.unique(x[last] + np.tensordot(w, [y[last] for y in targets], 1), axis=0).mean(0) for w in weights
                   if last.any()]  # fmt: skip
    enlarged = np.asarray(motion.q).copy()
    enlarged[:, model.q_slice("boom")] *= 3
    poses = jax.vmap(lambda q: mbs.body_poses(model, q))(enlarged)
    frame, tip, lamp = (model.body_names.index(name) for name in ("boom", "boom_tip", "lamp"))
    want = np.einsum("tba,tb->ta", poses.rotation[:, frame], poses.position[:, tip] - poses.position[:, frame])
    np.testing.assert_allclose(at_end, want, atol=2e-3)
    assert np.abs(want - [2, 0, 0]).max() > 0.05
    placed = next(n for n in tree["nodes"] if n["name"] == "lamp")["translation"]
    np.testing.assert_allclose(placed, poses.position[0, lamp], atol=1e-6)


def test_the_still_is_deformed_and_says_the_scale():
    model = boom()
    q = np.array(model.neutral())
    q[model.q_slice("boom")][0] = 0.05
    heights = [np.ptp(np.concatenate([d.vertices(library, q * s) for d in drawn if d.displacements is not None])[:, 2])
               for drawn, library in [scene_of(model)] for s in (0, 1, 10)]  # fmt: skip
    tip = 0.05 * np.asarray(mbs.get(model, "boom_tip.displacement"))[2]
    assert heights[0] == pytest.approx(0.1)
    assert [h - 0.1 for h in heights[1:]] == pytest.approx([abs(tip), 10 * abs(tip)], rel=0.1)
    axes = mbs.draw(model, q, deformation_scale=10)
    assert axes.get_title() == "boom, deformation \u00d7 10"
    assert axes.get_zlim()[1] - axes.get_zlim()[0] >= 10 * abs(tip)
    assert mbs.draw(model, q).get_title() == "boom"
    for wrong in (-1.0, float("nan")):
        with pytest.raises(mbs.ModelError, match=r"^draw: deformation_scale is"):
            mbs.draw(model, q, deformation_scale=wrong)


def test_a_body_whose_deformation_is_not_known_between_places_is_drawn_as_it_was():
    """A free part with one node: what it does elsewhere is not known."""
    mech = mbs.Mechanism("free")
    mech.add_flexible_body("rod", mbs.Part.beam(2.0, 1.5, (40.0, 90.0), 10.0, modes=2, free=True))
    mech.add_joint("flight", mbs.Free(), "world", "rod")
    drawn, _ = scene_of(mech.build())
    assert fields(mech.build()) == [] and any(d.body == 0 and d.key == "sphere" for d in drawn)
    assert all(d.displacements is None for d in drawn)
