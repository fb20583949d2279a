"""The separation of two bodies by springs against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import relative

STAGE, PAYLOAD = 3000.0, 500.0
PUSHERS = 1, 2, 3, 4
REDUCED = STAGE * PAYLOAD / (STAGE + PAYLOAD)


@pytest.fixture(scope="module")
def separation():
    """One program for all tests: whatever they set is a number of the model, and every motion has a thousand steps."""
    model = mbs.library.stage_separation(STAGE, PAYLOAD).build()
    return mbs.free(model, ["payload.com", *(f"pusher_{i}.delay" for i in PUSHERS)])


def run(model, t_end=0.5, v=None, thrust=0.0, springs=None, **numbers):
    model = mbs.set(model, {f"pusher_{i}.{name}": x for i in PUSHERS for name, x in (springs or {}).items()})
    model = mbs.set(model, {"residual.thrust": thrust} | numbers)
    v = np.zeros(12) if v is None else v
    return model, mbs.simulate(model, model.neutral(), v, t_end, dt=t_end / 1000)


def motion(stiffness, preload, stroke, pushers=4):
    """Release time, relative speed and relative displacement at the release, of springs that push along the line of
    centres: s = (F/k)(1 - cos w t) until s = stroke."""
    w = np.sqrt(pushers * stiffness / REDUCED)
    t = np.arccos(1 - stiffness * stroke / preload) / w
    return t, preload / stiffness * w * np.sin(w * t), stroke


def released(solution, model, stroke):
    """Time at which the interface has opened by the stroke (between rows, by the speed), and the final speeds."""
    s = np.asarray(solution.q[:, model.q_slice("interface")])[:, 0]
    ds = np.asarray(solution.v[:, model.v_slice("interface")])[:, 3]
    i = int(np.searchsorted(s, stroke))
    return float(solution.t[i] - (s[i] - stroke) / ds[i]), ds[-1], float(solution.v[-1, model.v_slice("flight")][3])


SPRINGS = {"stiffness": 10e3, "preload": 1000.0, "stroke": 0.1}  # the force ends at zero: smooth at the release
CUT = {"stiffness": 10e3, "preload": 1500.0, "stroke": 0.1}  # 500 N are cut off


@pytest.mark.slow
@pytest.mark.parametrize("springs", [SPRINGS, CUT], ids=["smooth", "cut"])
def test_release_time_and_velocities(separation, springs):
    model, solution = run(separation, springs=springs)
    t, speed, _ = motion(**springs)
    got_t, got_relative, got_stage = released(solution, model, springs["stroke"])
    assert got_t == pytest.approx(t, rel=1e-4)
    assert got_relative == pytest.approx(speed, rel=1e-9)
    assert got_stage == pytest.approx(-speed * PAYLOAD / (STAGE + PAYLOAD), rel=1e-9)


def test_the_springs_give_up_their_energy(separation):
    model, solution = run(separation, springs=SPRINGS)
    kinetic, potential = mbs.energy(model, solution.q[-1], solution.v[-1])
    assert kinetic == pytest.approx(4 * 0.5 * 10e3 * 0.1**2, rel=1e-5)
    assert potential == pytest.approx(0.0, abs=1e-9)
    assert np.abs(solution.energy_error).max() < 1e-5 * kinetic


def test_every_end_of_several_is_found(separation):
    """Two ends at one instant, then two more: what is set aside for later ends is not spent on the first."""
    strokes = {"pusher_1": 0.1, "pusher_2": 0.1, "pusher_3": 0.11, "pusher_4": 0.12}
    model, solution = run(separation, springs=CUT, **{f"{name}.stroke": x for name, x in strokes.items()})
    work = sum(CUT["preload"] * x - CUT["stiffness"] * x**2 / 2 for x in strokes.values())
    assert mbs.energy(model, solution.q[-1], solution.v[-1])[0] == pytest.approx(work, rel=1e-11)


def test_impulse_of_the_springs_is_the_payload_s_momentum(separation):
    """Integral of the pushers' forces over time (trapezoidal) equals m v of the payload."""
    model, solution = run(separation, springs=SPRINGS)
    s = np.asarray(solution.q[:, model.q_slice("interface")])[:, 0]
    force = 4 * np.clip(SPRINGS["preload"] - SPRINGS["stiffness"] * s, 0, None) * (s < SPRINGS["stroke"])
    impulse = np.trapezoid(force, solution.t)
    stage, between = (np.asarray(solution.v[-1, model.v_slice(j)])[3] for j in ("flight", "interface"))
    assert PAYLOAD * (stage + between) == pytest.approx(impulse, rel=1e-5)


def test_momentum_is_kept_without_thrust(separation):
    """Unequal springs, offset centre of mass, initial rates: both momenta stay to 1e-10 (and better with the step)."""
    v = np.zeros(12)
    v[:6] = 0.02, -0.03, 0.01, 0.5, 0.1, -0.2
    faults = {"pusher_1.preload": 1700.0, "pusher_2.stiffness": 9e3, "pusher_3.delay": 0.01}
    faults["payload.com"] = (0.6, 0.02, -0.01)
    model, solution = run(separation, t_end=0.2, v=v, **faults)
    rows = np.array([0, 200, 400, 600, 800, 1000])
    momentum = jax.vmap(lambda q, v: jnp.concatenate(mbs.momentum(model, q, v)))
    kept = np.asarray(momentum(solution.q[rows], solution.v[rows]))
    turned = np.abs(np.asarray(solution.v[-1, model.v_slice("interface")])[:3]).max()
    assert turned > 1e-3  # the payload tips off
    scale = np.repeat([np.abs(kept[0][:3]).max(), np.abs(kept[0][3:]).max()], 3)
    assert np.max(np.abs(kept - kept[0]) / scale) < 1e-10


def test_thrust_changes_momentum_by_its_impulse(separation):
    """The profile's area times the thrust, along the direction of the stage."""
    model, solution = run(separation, thrust=300.0, springs={"preload": 0.0})
    gained = mbs.momentum(model, solution.q[-1], solution.v[-1])[1]
    area = np.trapezoid([1.0, 0.5, 0.25, 0.1, 0.0], [0.0, 0.1, 0.2, 0.3, 0.5])
    assert relative(gained / (300.0 * area), [1, 0, 0]) < 1e-6


def test_a_late_pusher_tips_the_payload(separation):
    """Delay and unequal preload turn the payload; equal springs do not."""
    model, straight = run(separation)
    _, tipped = run(separation, **{"pusher_1.delay": 0.02})
    rate = [np.abs(np.asarray(s.v[-1, model.v_slice("interface")])[:3]).max() for s in (straight, tipped)]
    assert rate[0] < 1e-12
    assert rate[1] > 1e-3


@pytest.mark.slow
def test_locked_interface_flies_as_one_body():
    """Before the release: the interface locked, the springs push against one another."""
    model = mbs.library.stage_separation(STAGE, PAYLOAD, residual_thrust=300.0).build()
    mode = model.mode(lock=["interface"])
    solution = mbs.simulate(model, model.neutral(), np.zeros(12), 0.1, dt=1e-3, mode=mode)
    assert not np.asarray(solution.v[:, model.v_slice("interface")]).any()
    gained = 300.0 * 0.075  # the thrust falls to a half
    assert relative(solution.v[-1, model.v_slice("flight")], [0, 0, 0, gained / (STAGE + PAYLOAD), 0, 0]) < 1e-12


@pytest.mark.slow
def test_ten_springs_that_unload_part_100_kg_from_900_kg_with_one_metre_per_second():
    """k = 10 N/mm each over 30 mm, without a force at the end: 45 J on a reduced mass of 90 kg. One metre per second is the
    velocity of one body relative to the other; they go with 0.9 and 0.1 m/s."""
    k, stroke, go = 10e3, 0.03, 0.0123
    mech = mbs.Mechanism("ten springs", held="clamp")
    mech.add_body("adapter", 900.0)
    mech.add_body("satellite", 100.0)
    mech.add_joint("flight", mbs.Prismatic((1, 0, 0)), "world", "adapter")
    mech.add_joint("clamp", mbs.Prismatic((1, 0, 0)), "adapter", "satellite")
    spring = mbs.Pusher("adapter", "satellite", (0,) * 3, (0,) * 3, (1, 0, 0), k, preload=k * stroke, stroke=stroke)
    for i in range(10):
        mech.add_force(f"spring_{i}", spring)
    mech.add_event("go", mbs.Time(go), mbs.Release("clamp"))
    solution = mbs.simulate(mech.build(), [0.0, 0.0], [0.0, 0.0], 0.1, 1e-3)
    np.testing.assert_allclose(solution.v[-1], [-0.1, 1.0], rtol=2e-9)
    t, s = np.asarray(solution.t) - go, np.asarray(solution.q[:, 1])
    assert np.abs(s[t < 0]).max() < 1e-15
    w = np.sqrt(10 * k / 90.0)  # s = stroke (1 - cos w t) until the springs are spent after a quarter of a period
    pushed = (t > 0) & (w * t < np.pi / 2)
    assert pushed.sum() > 40 and np.abs(s - stroke * (1 - np.cos(w * t)))[pushed].max() < 1e-9
    assert abs(float(solution.energy_error[-1])) < 1e-7 * 45.0
