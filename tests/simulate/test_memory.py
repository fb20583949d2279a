"""Elements with states of their own: motors whose propellant is used up, and an element of a user."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.spatial.transform import Rotation

import jaxmbs as mbs
from jaxmbs.elements import Force, Kind, element, field, state

SPEED = 250 * 9.80665  # of the exhaust [m/s]


@element
class Lag(Force):
    """A force on a slider that follows `wanted` with a delay of first order."""

    joint: str = field(Kind.JOINT, "", "joint on which it acts")
    wanted: Any = field(Kind.NUMBER, "N", "force in the end", default=1.0)
    lag: Any = field(Kind.POSITIVE, "s", "time constant", default=0.5)
    force: Any = state("N", "force that acts", default=0.0)

    def rates(self, p, scene):
        return {"force": (p["wanted"] - p["force"]) / p["lag"]}

    def apply(self, p, scene, loads):
        loads.joint(self.joint, (p["force"],))

    def power(self, p, scene):
        return p["force"] * scene.rates(self.joint)[0]


def slider(force):
    mech = mbs.Mechanism("slider", gravity=(0.0, 0.0, 0.0))
    mech.add_body("stage", mass=100.0, inertia=(10.0, 10.0, 1.0))
    mech.add_joint("flight", mbs.Prismatic(axis=(0, 0, 1)), "world", "stage")
    mech.add_force("motor", force)
    return mech.build()


def rocket(**given):
    found = {"thrust": 1e4, "specific_impulse": 250.0, "propellant": 50.0, **given}
    return slider(mbs.Motor("stage", **found))


METHODS = [{"dt": 0.05}, {"method": "dop853", "tolerance": 1e-13, "dt": 1.0}, {"method": "implicit", "dt": 0.1}]


@pytest.mark.parametrize("options", METHODS, ids=["rk4", "dop853", "implicit"])
def test_the_rocket_equation(options):
    run = mbs.simulate(rocket(), [0.0], [0.0], t_end=15.0, **options)
    np.testing.assert_allclose(run.v[-1, 0], SPEED * np.log(1.5), rtol=1e-12)
    burning = run.t < 50.0 * SPEED / 1e4
    np.testing.assert_allclose(
        run.states["motor.propellant"][burning], (50.0 - 1e4 / SPEED * run.t)[burning], rtol=1e-12, atol=1e-12
    )
    assert abs(run.states["motor.propellant"][-1]) < 1e-10
    assert abs(run.energy_error[-1]) < 1e-7 * run.energy_exchanged and int(run.status) == 0


def test_a_lag_is_an_exponential():
    run = mbs.simulate(slider(Lag("flight")), [0.0], [0.0], t_end=2.0, dt=0.01)
    np.testing.assert_allclose(run.states["motor.force"], 1 - np.exp(-run.t / 0.5), atol=1e-9)
    t = 2.0
    np.testing.assert_allclose(run.v[-1, 0], (t - 0.5 * (1 - np.exp(-t / 0.5))) / 100, rtol=1e-9)
    assert abs(run.energy_error[-1]) < 1e-9 * run.energy_exchanged


@pytest.mark.parametrize("name", ["motor.propellant", "motor.thrust", "motor.ignition"])
def test_derivatives_through_the_end_of_the_propellant(name):
    model = rocket(ignition=0.3)

    def height(x):
        return mbs.simulate(mbs.set(model, {name: x}), jnp.zeros(1), jnp.zeros(1), t_end=15.0, dt=0.1).q[-1, 0]

    x = float(mbs.get(model, name))
    step = 1e-5 * max(x, 1.0)
    want = (height(x + step) - height(x - step)) / (2 * step)
    np.testing.assert_allclose(jax.jvp(height, (x,), (1.0,))[1], want, rtol=1e-7)
    np.testing.assert_allclose(jax.grad(height)(x), want, rtol=1e-7)


@pytest.mark.slow
def test_the_symplectic_method_carries_states():
    """A tumbling rocket whose mass and inertia change, against short steps of another method: second order."""
    mech = mbs.Mechanism("rocket", gravity=(0.0, 0.0, -9.81))
    mech.add_body("stage", mass=100.0, com=(0.0, 0.0, 0.3), inertia=(30.0, 31.0, 5.0))
    mech.add_joint("flight", mbs.Free(), "world", "stage")
    mech.add_force("motor", mbs.Motor("stage", (0.02, 0.0, -1.2), (0.0, 0.0, 1.0), 8e3, 250.0, 60.0))
    model = mech.build()
    start = model.neutral(), jnp.array([0.3, -0.2, 1.0, 0.0, 0.0, 0.0])

    def end(method, dt):
        run = mbs.simulate(model, *start, t_end=0.5, dt=dt, method=method)
        return np.concatenate([run.q[-1], run.v[-1], run.states["motor.propellant"][-1:]])

    want = end("rk4", 0.0025)
    coarse, fine = (np.abs(end("symplectic", dt) - want).max() for dt in (0.02, 0.01))
    assert fine < 1e-2 and coarse / fine == pytest.approx(4.0, rel=0.02)


def test_the_rocket_equation_in_symplectic_steps():
    model = rocket()

    @jax.jit
    def speed(mass):
        with_mass = mbs.set(model, {"motor.propellant": mass})
        return mbs.simulate(with_mass, jnp.zeros(1), jnp.zeros(1), 5.0, 0.1, method="symplectic").v[-1, 0]

    np.testing.assert_allclose(speed(50.0), -SPEED * np.log1p(-1e4 / SPEED * 5.0 / 150), rtol=2e-6)
    difference = (speed(50.0 + 1e-3) - speed(50.0 - 1e-3)) / 2e-3
    np.testing.assert_allclose(jax.jit(jax.grad(speed))(50.0), difference, rtol=1e-7)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(speed))(50.0), difference, rtol=1e-7)


def test_a_batch_equals_single_runs():
    model, masses = rocket(), jnp.array([10.0, 50.0, 70.0])
    batch, axes = mbs.vary(model, {"motor.propellant": masses})

    def last(model):
        run = mbs.simulate(model, jnp.zeros(1), jnp.zeros(1), t_end=15.0, dt=0.1)
        return run.v[-1], run.states["motor.propellant"][-1]

    together = mbs.jit(last, in_axes=(axes,))(batch)
    for k, mass in enumerate(masses):
        alone = last(mbs.set(model, {"motor.propellant": float(mass)}))
        for got, want in zip(jax.tree.leaves(together), alone, strict=True):
            np.testing.assert_allclose(got[k], want, rtol=1e-12, atol=1e-9)


ELEMENTS = {  # an element, and the values of one of its numbers: below and above its limits
    "slosh": (mbs.Slosh("stage", radius=0.5, flow=20.0, damping=0.02), "fill", [0.3, 0.001, 0.9]),
    "pendulum": (mbs.Slosh("stage", radius=0.5, model="pendulum"), "damping", [0.01, 0.05, 0.2]),
    "wheel": (mbs.ReactionWheel("stage", static_imbalance=1e-3, torque=0.2), "dynamic_imbalance", [1e-5, 1e-4, 2e-3]),
    "gimbal": (
        mbs.Gimbal("stage", thrust=1e3, propellant=0.1, command_1=0.2, axis_1=(1, 0, 0), axis_2=(0, 1, 0)),
        "rate_limit", [0.1, 1.0, 1e9],
    ),
    "actuator": (mbs.Actuator("hinge", lag=0.1, command=3.0, rate_limit=20.0), "limit", [1.0, 2.9, 1e9]),
    "second order": (mbs.SecondOrderActuator("hinge", frequency=20.0, command=3.0), "rate_limit", [5.0, 30.0, 1e9]),
    "servo": (mbs.Servo("hinge", frequency=20.0, command=0.1, stiffness=1e3, play=0.01), "highest", [0.01, 0.05, 1.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.usually("wheel", "actuator")
def test_rows_of_a_batch_are_runs_of_their_own(name):
    """Each row meets its limits and corners at its own instants, and none of them changes another."""
    own, field_of_it, given = ELEMENTS[name]
    mech = mbs.Mechanism("stage", gravity=(0.0, 0.0, -9.81))
    mech.add_body("stage", mass=1000.0, com=(0.1, 0.0, 0.5), inertia=(800.0, 900.0, 500.0))
    mech.add_joint("hinge", mbs.Revolute((0, 0.6, 0.8)), "world", "stage")
    mech.add_force("own", own)
    model = mech.build()
    q, v = jnp.zeros(model.nq), jnp.full(model.nv, 0.3)

    def motion(x):
        run = mbs.simulate(mbs.set(model, {f"own.{field_of_it}": x}), q, v, t_end=0.2, dt=0.005, save_every=8)
        return run.q, run.v, run.states, run.status

    values = jnp.array(given)
    rows = jax.vmap(motion)(values)
    for k, x in enumerate(values):
        jax.tree.map(lambda a, b, k=k: np.testing.assert_allclose(a[k], b, rtol=1e-12, atol=1e-12), rows, motion(x))
    assert not np.any(rows[3]) and max(np.ptp(x[:, -1], axis=0).max() for x in jax.tree.leaves(rows[:3])) > 1e-7


def test_momentum_is_conserved_with_the_exhaust():
    """Of the body with its propellant, of the gas on its way to the nozzle, and of the exhaust: a tumbling rocket."""
    e, c, own, d = (
        np.array([0.0, 0.0, -1.2]),
        np.array([0.0, 0.0, -0.5]),
        np.array([0.0, 0.0, 0.3]),
        np.array([0, 0, 1.0]),
    )
    mech = mbs.Mechanism("rocket", gravity=(0.0, 0.0, 0.0))
    mech.add_body("stage", mass=100.0, com=own, inertia=(30.0, 31.0, 5.0))
    mech.add_joint("flight", mbs.Free(), "world", "stage")
    k = np.array([0.4, 0.5, 0.2])
    motor = mbs.Motor("stage", e, d, 8e3, 250.0, 60.0, propellant_com=c, gyration=k)
    mech.add_force("motor", motor)
    model = mech.build()
    start = model.neutral(), jnp.array([0.3, -0.2, 1.0, 0.0, 0.0, 0.0])
    run = mbs.simulate(model, *start, t_end=10.0, dt=0.01)
    flow, within, exhaust = 8e3 / SPEED, [], []
    I = np.diag([30.0, 31.0, 5.0]) + 100 * (own @ own * np.eye(3) - np.outer(own, own))
    for q, v, m in zip(*map(np.asarray, (run.q, run.v, run.states["motor.propellant"])), strict=True):
        R, w, u = Rotation.from_quat(q[[4, 5, 6, 3]]).as_matrix(), v[:3], v[3:]
        J = I + m * (np.diag(k * k) + c @ c * np.eye(3) - np.outer(c, c))
        moment = 100 * own + m * c
        linear = R @ ((100 + m) * u + np.cross(w, moment) + flow * (e - c))
        angular = np.cross(q[:3], linear) + R @ (J @ w + np.cross(moment, u))
        within.append([*linear, *angular])
        leaving = R @ (u + np.cross(w, e) - SPEED * d)
        exhaust.append(flow * np.array([*leaving, *np.cross(q[:3] + R @ e, leaving)]))
    gone = simpson(np.array(exhaust), x=np.asarray(run.t), axis=0)
    change = np.array(within[-1]) - within[0] + gone
    assert np.abs(change[:3]).max() < 1e-8 * np.abs(gone[:3]).max()
    assert np.abs(change[3:]).max() < 1e-8 * np.abs(gone[3:]).max()


def test_functions_of_a_run_see_the_states():
    """A condition, a drive and a fold get the model with its states as they are."""
    mech = mbs.Mechanism("slider", gravity=(0.0, 0.0, 0.0))
    mech.add_body("stage", mass=100.0, inertia=(10.0, 10.0, 1.0))
    mech.add_joint("flight", mbs.Prismatic(axis=(0, 0, 1)), "world", "stage")
    mech.add_force("motor", mbs.Motor("stage", thrust=1e4, specific_impulse=250.0, propellant=50.0))
    half = mbs.When(lambda model, t, q, v: 25.0 - mbs.get(model, "motor.propellant"))
    mech.add_event("half", when=half, then=mbs.Disable("motor"))
    run = mbs.simulate(
        mech.build(), [0.0], [0.0], t_end=15.0, dt=0.1,
        tau=lambda model, t, q, v: -0.01 * mbs.get(model, "motor.propellant") * v,
        fold=(0.0, lambda carry, model, t, q, v: carry + mbs.get(model, "motor.propellant")),
    )  # fmt: skip
    np.testing.assert_allclose(run.events.time[0], 25.0 * SPEED / 1e4, rtol=1e-10)
    np.testing.assert_allclose(run.states["motor.propellant"][-1], 25.0, rtol=1e-12)
    np.testing.assert_allclose(run.folded, jnp.sum(run.states["motor.propellant"]), rtol=1e-12)


def test_functions_outside_a_run_use_the_state_at_the_start():
    model = rocket()
    np.testing.assert_allclose(mbs.forward_dynamics(model, [0.0], [0.0]), [1e4 / 150], rtol=1e-14)
    np.testing.assert_allclose(mbs.mass_matrix(mbs.set(model, {"motor.propellant": 0.0}), [0.0]), [[100.0]])


def test_between_rows_and_as_a_data_set():
    model = rocket()
    run = mbs.simulate(model, [0.0], [0.0], t_end=10.0, dt=0.5)
    _, v = run.at(model, 3.21)
    t = 3.21
    np.testing.assert_allclose(v[0], -SPEED * np.log1p(-1e4 / SPEED * t / 150), rtol=1e-7)
    np.testing.assert_array_equal(run.to_xarray(model)["motor.propellant"], run.states["motor.propellant"])


def test_a_satellite_burns_from_its_tank_as_in_basilisk():
    """Position and attitude (MRP) 600 s after the start in orbit, the thruster beside the centre of mass being on for the
    first 9.9 s [Basilisk, test_mass_depletion]. Its Runge-Kutta method, in steps of 0.1 s, counts the end of the burn as a
    sixth of a step more. The propellant is a sphere.

    The attitude is expected to 1e-4. If the gas has no mass (an infinite specific impulse), it agrees to 2e-6, which is
    rounding: at 6 km/s, large terms cancel in the torque. The published numbers do not show the 3e-5 by which the exhaust
    damps the rotation.
    """
    radius, on = 23 / 3.2808399 / 12, 9.9 + 0.1 / 6
    mech = mbs.Mechanism("satellite", gravity=(0.0, 0.0, 0.0))
    mech.add_body("hub", mass=750.0, inertia=(900.0, 800.0, 600.0))
    mech.add_joint("flight", mbs.Free(), "world", "hub")
    mech.add_force("earth", mbs.CentralGravity(mu=3.986004415e14))
    profile = {"times": (0.0, 9.9, 2 * on - 9.9), "values": (1.0, 1.0, 0.0)}
    tank = {"propellant": 40.0, "gyration": (np.sqrt(0.4) * radius,) * 3}
    at = {"point": (1.0, 0.0, 0.0), "axis": (0.0, 1.0, 0.0)}
    mech.add_force("thruster", mbs.Motor("hub", **at, **tank, **profile, thrust=0.9, specific_impulse=227.5))
    sigma = np.array([0.1, 0.2, -0.3])
    attitude = np.array([1 - sigma @ sigma, *(2 * sigma)]) / (1 + sigma @ sigma)
    position = np.array([-4020338.690396649, 7490566.741852513, 5248299.211589362])
    velocity = np.array([-5199.77710904224, -3436.681645356935, 1041.576797498721])
    model, q = mech.build(), np.array([*position, *attitude])
    axes = np.asarray(mbs.body_poses(model, q)["hub"].rotation)
    v = np.array([0.001, -0.01, 0.03, *(axes.T @ velocity)])
    run = mbs.simulate(model, q, v, t_end=600.0, dt=0.1, save_every=None)
    last = np.asarray(run.q[-1])
    np.testing.assert_allclose(last[:3], [-6781593.3935338277, 4946868.5979815889, 5486741.6696776701], atol=1e-3)
    published = [0.14401781243854264, -0.064168702021364002, 0.30166086824900967]
    np.testing.assert_allclose(last[4:7] / (1 + last[3]), published, atol=5e-5)
    without = mbs.set(model, {"thruster.specific_impulse": 1e12})
    end = mbs.simulate(without, q, v, t_end=600.0, dt=0.1, save_every=None).q[-1]
    np.testing.assert_allclose(end[4:7] / (1 + end[3]), published, atol=5e-6)
    used = 0.9 * on / (9.80665 * 227.5)
    np.testing.assert_allclose(40.0 - run.states["thruster.propellant"][-1], used, rtol=1e-9)


def test_a_motor_that_a_controller_sets_ends_when_its_propellant_does():
    """Also in the samples that follow: what remains of the propellant by rounding does not start it again."""
    mech = mbs.Mechanism("rocket", gravity=(0.0, 0.0, 0.0))
    mech.add_body("stage", mass=100.0, inertia=(10.0, 10.0, 1.0))
    mech.add_joint("flight", mbs.Prismatic(axis=(0, 0, 1)), "world", "stage")
    mech.add_force("motor", mbs.Motor("stage", thrust=1e4, specific_impulse=250.0, propellant=50.0))
    keep = mbs.Controller(lambda model, t, q, v, state, readings: (state, 250.0), 0.1, writes="motor.specific_impulse")
    mech.add_controller("keep", keep)
    run = mbs.simulate(mech.build(), [0.0], [0.0], t_end=16.0, dt=0.1)
    assert abs(run.states["motor.propellant"][-1]) < 1e-9
    assert run.v[-1, 0] == pytest.approx(250 * 9.80665 * np.log(1.5), rel=1e-9)


def test_a_motor_pushes_forwards_and_needs_propellant():
    with pytest.raises(mbs.ModelError, match="force 'motor': values must not be negative"):
        rocket(times=(0.0, 1.0), values=(1.0, -1.0))
    with pytest.raises(mbs.ModelError, match="values must not be negative"):
        mbs.set(rocket(times=(0.0, 1.0), values=(1.0, 0.5)), {"motor.values": (1.0, -0.5)})
    with pytest.warns(mbs.ModelWarning, match="'motor' has a thrust and no propellant, so that it does not push; pass"):
        empty = rocket(propellant=0.0)
    assert mbs.simulate(empty, [0.0], [0.0], t_end=1.0, dt=0.1).v[-1, 0] == 0.0
