"""What notebooks show."""

import xml.etree.ElementTree as ET

import jax
import numpy as np

import jaxmbs as mbs


def test_a_model_shows_its_tree_and_its_joints():
    mech = mbs.library.double_pendulum()
    mech.add_body("<hand>", 0.5, inertia=(1, 1, 1))
    mech.add_joint("wrist", mbs.Spherical(), "lower", "<hand>")
    mech.add_event("go", when=mbs.Time(1.0))
    model = mech.build()
    page = ET.fromstring(model._repr_html_())
    said = "".join(page.itertext())
    assert "3 bodies, 5 degrees of freedom (nq = 6), 1 event" in said and "└─ <hand>  (wrist: Spherical, 3)" in said
    rows = [["".join(cell.itertext()) for cell in row] for row in page.iter("tr")]
    assert [row[:4] for row in rows[2:]] == [
        ["lower", "1", "elbow", "Revolute"],
        ["<hand>", "0.5", "wrist", "Spherical"],
    ]
    batch, _ = mbs.vary(model, {"lower.mass": np.ones(7)})
    assert "7 values" in batch._repr_html_()


def shown(page):
    """Words and curves of what a notebook shows."""
    tree = ET.fromstring(page)
    return "".join(tree.itertext()), [x for x in tree.iter() if x.tag.endswith("}path") or x.tag.endswith("}use")]


def solution(values, times=(), index=()):
    """A solution with given q (..., rows, 2), such as a run would return."""
    q = np.asarray(values)
    t = np.broadcast_to(np.linspace(0, 1, q.shape[-2]), q.shape[:-1])
    k = len(times)
    events = mbs.Events(np.asarray(times), np.asarray(index), np.zeros(k), np.zeros(k, bool)) if k else None
    return mbs.Solution(t, q, 2 * q, None, events, np.zeros(q.shape[:-2], np.int32), 1e-9 * q[..., 0], *[None] * 5)


def test_a_solution_shows_its_motion():
    """Outcome in words, a curve for every coordinate, a mark for each event that happened."""
    q = np.stack([np.sin(np.linspace(0, 6, 900)), np.cos(np.linspace(0, 6, 900))], axis=1)
    plain = solution(q)._repr_html_()
    words, curves = shown(plain)
    assert "900 rows, nq = 2" in words and "q[1]" in words and "v[0]" in words and "|energy error| [J]" in words
    marked = shown(solution(q, times=[0.3, 1.0], index=[0, -1])._repr_html_())[1]
    assert len(marked) == len(curves) + 3  # one event in three panels; the other place is unused
    rough = np.random.default_rng(0).normal(size=(9000, 2))
    assert len(solution(rough)._repr_html_()) < 150_000  # however many rows


def test_a_batch_shows_its_spread_and_instances_that_stopped():
    q = np.random.default_rng(0).normal(size=(40, 30, 2))
    everybody = solution(q)._repr_html_()
    q[3, 10:] = np.nan
    q[:, 25:, 1] = np.nan  # nobody got there
    page = solution(q)._repr_html_()
    words, _ = shown(page)
    assert "40 instances of 30 rows" in words
    assert page.count("fill-opacity: 0.25") >= 5
    assert page.count("\nL ") > 0.85 * everybody.count("\nL ")  # the curves of the others go on


def test_what_is_being_traced_shows_no_picture():
    seen = []

    @jax.jit
    def look(q):
        model = mbs.library.double_pendulum().build()
        run = mbs.simulate(model, q, np.zeros(2), t_end=0.01, dt=0.01, save_every=None)
        seen.append(run._repr_html_())
        return q

    jax.eval_shape(look, np.zeros(2))
    assert seen[0].startswith("<pre>&lt;Solution") and "svg" not in seen[0]
