"""Outputs: the clearance against brute force, what is kept of a history, states that are not finite."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbs.spatial import Vector3
from jaxmbs.study import read, repeat, run
from jaxmbs.study.outputs import AngularRate, Clearance, Distance
from jaxmbs.study.outputs.base import normals
from jaxmbs.study.outputs.rim import _gap

ANGLES = np.linspace(0, 2 * np.pi, 40_001)
R, L, RIM = 0.5, 1.2, 0.445


@jax.jit
def gap(center, e1, e2):
    return _gap(Vector3(*center), Vector3(*e1), Vector3(*e2), Vector3(1.0, 0.0, 0.0), R, L)[:2]


def circle(tilt, about, center):
    n = np.array([np.cos(tilt), np.sin(tilt) * np.cos(about), np.sin(tilt) * np.sin(about)])
    e1, e2 = (RIM * e for e in normals(n))
    points = center + np.outer(np.cos(ANGLES), e1) + np.outer(np.sin(ANGLES), e2)
    return e1, e2, points


@pytest.mark.parametrize("where", ["inside", "leaving", "entering"])
def test_gap_against_brute_force(where):
    rng = np.random.default_rng(5)
    for _ in range(100):
        tilt, offset = 10 ** rng.uniform(-4, -0.9), 10 ** rng.uniform(-5, -1)
        x = {"inside": rng.uniform(0.3, 0.9), "leaving": L + 0.8 * RIM * tilt * rng.uniform(-1, 1)}.get(
            where, 0.8 * RIM * tilt * rng.uniform(-1, 1)
        )
        center = np.array([x, *(offset * rng.normal(size=2))])
        e1, e2, points = circle(tilt, rng.uniform(0, 2 * np.pi), center)
        counts = (points[:, 0] >= 0) & (points[:, 0] <= L)
        expected = R - np.hypot(points[:, 1], points[:, 2])[counts].max()
        found, inside = gap(center, e1, e2)
        assert inside
        # where the circle crosses the edge, the brute force is off by a part of its step
        assert float(found) == pytest.approx(expected, abs=1e-5 if where == "inside" else 1e-4)


def test_gap_at_any_tilt():
    """Also where two points of the circle are about to be the farthest: never more than the gap of a point of it."""
    rng = np.random.default_rng(6)
    for k in range(200):
        tilt = 10 ** rng.uniform(-3, 0.19)
        offset = rng.uniform(0, 0.3) if k % 2 else RIM * np.sin(tilt) ** 2 * (1 + 10 ** rng.uniform(-9, -1))
        side = 10 ** rng.uniform(-9, 0) * offset
        center = np.array([rng.uniform(-0.4, L + 0.4), offset * rng.choice([-1, 1]), side])
        e1, e2, points = circle(tilt, 0.0, center)
        counts = (points[:, 0] >= 0) & (points[:, 0] <= L)
        found, inside = gap(center, e1, e2)
        if not counts.any():
            continue
        expected = R - np.hypot(points[:, 1], points[:, 2])[counts].max()
        assert inside and float(found) <= expected + 1e-12
        assert float(found) == pytest.approx(expected, abs=5e-9 if counts.all() else 5e-4)


def test_gap_is_undefined_when_the_whole_rim_is_out():
    for x in (L + 0.1, -0.1):
        e1, e2, _ = circle(0.01, 0.3, np.zeros(3))
        assert not gap(np.array([x, 0.0, 0.0]), e1, e2)[1]


def test_gap_of_a_centred_rim_and_of_a_state_that_is_not_finite():
    e1, e2, _ = circle(0.0, 0.0, np.zeros(3))
    found, inside = gap(np.array([0.5, 0.0, 0.0]), e1, e2)
    assert inside and float(found) == pytest.approx(R - RIM, abs=1e-15)
    found, inside = gap(np.array([0.5, np.nan, 0.0]), e1, e2)
    assert inside and np.isnan(float(found)), "it must not count as out"


def test_clearance_gradient_is_finite():
    e1, e2, _ = circle(0.0, 0.0, np.zeros(3))
    gradient = jax.grad(lambda c: gap(c, e1, e2)[0])(jnp.array([0.5, 0.01, 0.0]))
    assert np.allclose(gradient, [0, -1, 0], atol=1e-6)


def test_reductions(separation):
    """Each against the same reduction of the history."""
    values = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
    defined = np.array([True, True, True, False, False])
    base = {"body_a": "a", "body_b": "b"}

    def fold(reduce, values, defined):
        output = Distance(**base, reduce=reduce)
        state = tuple(jnp.asarray(x) for x in output.start())
        for i, (x, on) in enumerate(zip(values, defined, strict=True)):
            state = output.fold(state, (jnp.asarray(x), jnp.asarray(on)), jnp.asarray(0.1 * i))
        return float(output.result(state))

    expected = {"min": 1.0, "max": 3.0, "time_of_min": 0.1, "time_of_max": 0.0, "time_out": 0.3}
    for reduce, value in expected.items():
        assert fold(reduce, values, defined) == pytest.approx(value), reduce
    assert np.isnan(fold("final", values, defined)), "not defined at the end"
    assert fold("final", values, defined | True) == 4.0
    assert np.isnan(fold("time_out", values, defined | True)), "never out"
    for reduce in ("min", "max", "time_of_min", "time_of_max", "final"):
        assert np.isnan(fold(reduce, values, defined & False)), reduce


@pytest.mark.parametrize("reduce", ["min", "time_of_max", "final"])
@pytest.mark.parametrize("after", [np.nan, 1.5])
def test_a_value_that_is_no_number_shows_in_every_reduction(reduce, after):
    """A run that is lost stays so; an extreme over a time without a value is not known, whatever comes later."""
    output = Distance(body_a="a", body_b="b", reduce=reduce)
    state = tuple(jnp.asarray(x) for x in output.start())
    for i, x in enumerate((1.0, 2.0, np.nan, after)):
        state = output.fold(state, (jnp.asarray(x), jnp.asarray(True)), jnp.asarray(0.1 * i))
    assert np.isnan(output.result(state)) == (reduce != "final" or np.isnan(after))


def test_axes_are_made_unit_vectors():
    output = AngularRate(body="a", part="axial", axis=(0, 3, -4))
    assert output.axis == (0.0, 0.6, -0.8)


@pytest.mark.slow
def test_the_example_runs(separation, tmp_path):
    """256 samples of it, of which two are repeated with their history."""
    data = run(separation, 256, tmp_path / "run").dataset().load()
    assert np.all(data["status"] == 0)
    for criterion in separation.criteria:
        assert 0.9 < criterion.met(data[criterion.output].values).mean() <= 1.0
    assert float(abs(data["energy_error"]).max()) < 1e-8  # of 360 J
    h = repeat(separation, [3, 4])
    for name, x in h.outputs.items():
        assert x == pytest.approx(data[name].values[[3, 4]], rel=1e-9), name
    for row in range(2):
        clearance = h.values["clearance"][row]
        out = np.flatnonzero(np.isnan(clearance))[0]
        least = np.nanmin(clearance)  # at the steps
        assert least - 2e-4 < h.outputs["clearance"][row] <= least
        assert h.outputs["time_out"][row] == pytest.approx(h.t[out])
        assert h.outputs["tip_off_rate"][row] == pytest.approx(h.values["tip_off_rate"][row][-1], rel=1e-12)
    # both measured here from the poses and velocities of the two Free joints, without the library's kinematics
    q, v, model = h.q[0], h.v[0], separation.model
    relative, rate = q[:, model.q_slice("interface")], v[:, model.v_slice("interface")]
    assert h.values["separation_velocity"][0][500] == pytest.approx(
        _axial_speed(relative[500], rate[500], v[500], model)
    )


def _axial_speed(q, rate, v, model):
    """Component along the stage's axis of the payload's velocity less the stage's, both of the frames' origins."""
    w, x, y, z = q[3:] / np.linalg.norm(q[3:])
    first_row = np.array([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)])
    omega = v[model.v_slice("flight")][:3]  # of the stage, in its axes: it carries the payload's origin along
    return first_row @ rate[3:] + np.cross(omega, q[:3])[0]


PAIR = """
[mechanism]
bodies = [{name = "a", mass = 2, inertia = [1, 1, 1]}, {name = "b", mass = 1, inertia = [1, 2, 2.5]}]
[[mechanism.joints]]
name = "free_a"
type = "free"
parent = "world"
child = "a"
[[mechanism.joints]]
name = "free_b"
type = "free"
parent = "world"
child = "b"
child_pose = {position = [0.5, 0, 0]}
[initial.free_a]
v = [0, 0, 0.2, 0, 1, 0]
[initial.free_b]
q = [3, 4, 0, 1, 0, 0, 0]
v = [0.3, 0.4, 0.1, 1, 0, 0]
[simulation]
t_end = 0.05
dt = 0.01
"""
WANTED = {  # output -> what it measures, its value at t = 0
    'type = "angular_rate"\nbody = "b"': ("angular rate", np.sqrt(0.26)),
    'type = "angular_rate"\nbody = "b"\npart = "transverse"': ("angular rate", np.sqrt(0.17)),
    'type = "angular_rate"\nbody = "b"\npart = "axial"\naxis = [0, 2, 0]': ("angular rate", 0.4),
    'type = "angular_rate"\nbody = "b"\nrelative_to = "a"': ("angular rate", np.sqrt(0.26)),
    'type = "distance"\nbody_a = "a"\nbody_b = "b"\npoint_b = [0.5, 0, 0]': ("length", 5.0),
    'type = "distance"\nbody_a = "world"\nbody_b = "b"\ndirection = [1, 0, 0]': ("length", 2.5),
    # the child's frame lies at x = 0.5 in b: its velocity is (1, 0, 0), that of a's origin (0, 1, 0)
    'type = "relative_velocity"\nbody_a = "a"\nbody_b = "b"\npoint_b = [0.5, 0, 0]': ("velocity", np.sqrt(2)),
    'type = "relative_velocity"\nbody_a = "a"\nbody_b = "b"\npoint_b = [0.5, 0, 0]\ndirection = [0, 1, 0]': (
        "velocity",
        -1,
    ),
    'type = "joint_position"\njoint = "free_b"\ncomponent = 1': ("length", 4.0),
    'type = "joint_velocity"\njoint = "free_b"\ncomponent = 2': ("angular rate", 0.1),
    'type = "joint_velocity"\njoint = "free_b"\ncomponent = 3\nreduce = "time_of_max"': ("time", 1.0),
}


@pytest.mark.slow
def test_quantities_against_values_known_at_the_start(tmp_path):
    path = tmp_path / "pair.toml"
    path.write_text(PAIR + "".join(f"[outputs.o{i}]\n{text}\n" for i, text in enumerate(WANTED)), encoding="utf-8")
    study = read(path, need="simulation")
    h = repeat(study)
    for i, (quantity, value) in enumerate(WANTED.values()):
        assert study.quantities[f"o{i}"] == quantity
        assert h.values[f"o{i}"][0, 0] == pytest.approx(value, abs=1e-12), list(WANTED)[i]


def test_identical_measures_are_computed_once(separation, monkeypatch):
    from jaxmbs.study.outputs.folding import measured

    calls = []
    monkeypatch.setattr(Clearance, "measure", lambda self, scene: (calls.append(1), (jnp.asarray(0.0), True))[1])
    jax.eval_shape(lambda q, v: measured(separation.outputs, separation.model, 0.0, q, v), separation.q0, separation.v0)
    assert len(calls) == 1, "clearance and time_out share it"
