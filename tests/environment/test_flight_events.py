"""Events at heights, Mach numbers, dynamic pressures and orbits against closed forms and SciPy's events."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import jaxmbs as mbs
from jaxmbs.io import InputError

MU, RADIUS = 3.986004418e14, 6_378_137.0
EXACT = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-9, "max_step": 1.0}  # for its interpolation at events


def ball(mass=2.0, gravity=(0.0, 0.0, -9.81), **environment):
    mech = mbs.Mechanism("ball", gravity=gravity)
    mech.add_point_mass("ball", mass)
    if environment:
        mech.set_environment(**environment)
    return mech


def times(run, model):
    """{event: the times at which it happened}."""
    found = zip(run.events.index, run.events.time, strict=True)
    pairs = [(model.event_names[int(k)], float(t)) for k, t in found if k >= 0]
    return {name: [t for n, t in pairs if n == name] for name in model.event_names}


def both(fn, x):
    """The Jacobian of fn in forward mode, after a comparison with that in reverse mode."""
    forward, reverse = jax.jit(jax.jacfwd(fn))(x), jax.jit(jax.jacrev(fn))(x)
    np.testing.assert_allclose(forward, reverse, rtol=1e-9, atol=1e-12)
    return np.asarray(forward)


def test_a_body_thrown_up_passes_a_height_on_its_way_up_and_down():
    """Closed forms of the instants and of their derivatives with respect to the height and the speed."""
    mech = ball()
    for name, direction in (("rises", "up"), ("falls", "down"), ("passes", "either")):
        mech.add_event(name, mbs.FlightReaches("ball", "height", 20.0, direction))
    model, g, start = mech.build(), 9.81, np.array([20.0, 30.0])

    def instants(x):
        thrown = mbs.set(model, {f"{name}.value": x[0] for name in model.event_names})
        v = jnp.stack([0.0 * x[1], 0.0 * x[1], x[1]])
        return mbs.simulate(thrown, np.zeros(3), v, 6.5, 0.5, save_every=None)

    root = np.sqrt(30.0**2 - 2 * g * 20.0)
    up, down = (30.0 - root) / g, (30.0 + root) / g
    found = times(instants(start), model)
    assert found["rises"] == pytest.approx([up], abs=1e-12) and found["falls"] == pytest.approx([down], abs=1e-12)
    assert found["passes"] == pytest.approx([up], abs=1e-12)
    slopes = both(lambda x: instants(x).events.time[:3], start)
    dt = np.array([[1 / root, (1 - 30.0 / root) / g], [-1 / root, (1 + 30.0 / root) / g]])
    np.testing.assert_allclose(slopes, dt[[0, 0, 1]], rtol=1e-10)


def test_a_drop_through_air_passes_mach_numbers_and_dynamic_pressures():
    """Drag in an exponential atmosphere: the pressure rises through its value, and falls through it again."""
    mech = ball(atmosphere=mbs.ExponentialAtmosphere(density=1.2, scale_height=7000.0, sound=300.0))
    mech.add_force("air", mbs.Aerodynamics("ball", area=0.01, length=1.0, coefficients=mbs.Coefficients(drag=(0.8,))))
    mech.add_event("fast", mbs.FlightReaches("ball", "mach", 1.0, "up"))
    mech.add_event("slow", mbs.FlightReaches("ball", "airspeed", 250.0, "down"))
    mech.add_event("pressed", mbs.FlightReaches("ball", "dynamic_pressure", 3.5e3, "up"))
    mech.add_event("eased", mbs.FlightReaches("ball", "dynamic_pressure", 3.5e3, "down"))
    model = mech.build()
    x0 = np.array([1.0, 3.5e3, 7000.0])

    def fallen(x):
        numbers = {"fast.value": x[0], "pressed.value": x[1], "eased.value": x[1], "atmosphere.scale_height": x[2]}
        own = mbs.set(model, numbers)
        return mbs.simulate(own, np.array([0.0, 0.0, 40e3]), np.zeros(3), 110.0, 0.5, method="dop853", save_every=None)

    def expected(x):
        mach, pressure, scale = x

        def density(y):
            return 1.2 * np.exp(-y[0] / scale)

        def rates(t, y):
            return y[1], -9.81 + 0.5 * density(y) * y[1] ** 2 * 0.01 * 0.8 / 2.0

        events = [
            lambda t, y: -y[1] / 300.0 - mach,
            lambda t, y: -y[1] - 250.0,
            lambda t, y: 0.5 * density(y) * y[1] ** 2 - pressure,
        ]
        events[0].direction, events[1].direction = 1, -1
        fast, slow, pressed = solve_ivp(rates, (0, 110), (40e3, 0.0), events=events, **EXACT).t_events
        return np.concatenate([fast, pressed, slow])

    run = fallen(x0)
    assert run.status == mbs.Status.OK
    assert [model.event_names[int(k)] for k in run.events.index[:4]] == ["fast", "pressed", "slow", "eased"]
    order = [0, 1, 3, 2]  # of the instants, and then in `expected`
    np.testing.assert_allclose(run.events.time[:4], expected(x0)[order], atol=1e-9)
    slopes = both(lambda x: fallen(x).events.time[:4], x0)
    for k, step in enumerate(np.diag(1e-4 * x0)):
        difference = (expected(x0 + step) - expected(x0 - step)) / (2e-4 * x0[k])
        np.testing.assert_allclose(slopes[:, k], difference[order], rtol=1e-5, atol=1e-9)


HEIGHT, SPEED = 250e3, 7500.0
# element: value, sense
ORBITS = {
    "apoapsis_height": (600e3, "up"), "periapsis_height": (-100e3, "up"), "semi_major_axis": (7.5e6, "up"),
    "eccentricity": (0.1, "up"), "inclination": (0.02, "up"),
}  # fmt: skip


def pushed(mech):
    """A push along the velocity, and half as much across the plane."""

    def force(model, t, q, v):
        normal = jnp.cross(q, v)
        along = v / jnp.linalg.norm(v) + 0.5 * normal / jnp.linalg.norm(normal)
        return jnp.concatenate([jnp.zeros(3), 4.0 * along])

    mech.add_force("push", mbs.External(force, body="ball"))


def elements(y):
    """(apoapsis, periapsis, semi-major axis, eccentricity, inclination) from the energy and the angular momentum."""
    r, v = np.array(y[:3]), np.array(y[3:])
    energy, h = v @ v / 2 - MU / np.linalg.norm(r), np.cross(r, v)
    a = -MU / (2 * energy)
    e = np.sqrt(max(1 + 2 * energy * (h @ h) / MU**2, 0.0))
    return a * (1 + e) - RADIUS, a * (1 - e) - RADIUS, a, e, np.arccos(h[2] / np.linalg.norm(h))


def test_a_push_along_the_velocity_takes_an_orbit_through_its_elements():
    mech = ball(1.0, (0, 0, 0), planet=mbs.Earth(j2=False))
    pushed(mech)
    for name, (value, sense) in ORBITS.items():
        mech.add_event(name, mbs.OrbitReaches("ball", name, value, sense))
    model = mech.build()
    q, v = np.array([RADIUS + HEIGHT, 0.0, 0.0]), np.array([0.0, SPEED, 0.0])
    run = mbs.simulate(model, q, v, 200.0, 5.0, method="dop853", save_every=None)

    def rates(t, y):
        r, u = y[:3], y[3:]
        n = np.cross(r, u)
        push = 4.0 * (u / np.linalg.norm(u) + 0.5 * n / np.linalg.norm(n))
        return np.concatenate([u, -MU * r / np.linalg.norm(r) ** 3 + push])

    events = [lambda t, y, k=k, value=value: elements(y)[k] - value for k, (value, _) in enumerate(ORBITS.values())]
    for event in events:
        event.direction = 1
    wanted = solve_ivp(rates, (0, 200), [*q, *v], events=events, **EXACT).t_events
    found = times(run, model)
    assert run.status == mbs.Status.OK
    for name, at in zip(ORBITS, wanted, strict=True):
        assert len(at) == 1 and found[name] == pytest.approx(at, abs=1e-6), name


def test_the_instant_of_a_cut_off_has_derivatives_and_an_escape_passes_every_apoapsis():
    """A push so strong that an ellipse becomes a hyperbola within the last of three steps."""
    mech = ball(1.0, (0, 0, 0), planet=mbs.Earth(j2=False))
    mech.add_force("engine", mbs.Thruster("ball", direction=(0.0, 1.0, 0.0), thrust=300.0))
    mech.add_event("far", mbs.OrbitReaches("ball", "apoapsis_height", 1e9, "up"))
    mech.add_event("axis", mbs.OrbitReaches("ball", "semi_major_axis", -2e8, "up"))
    model = mech.build()
    q, v = np.array([RADIUS + HEIGHT, 0.0, 0.0]), np.array([0.0, 7700.0, 0.0])

    def instants(x):
        own = mbs.set(model, {"engine.thrust": x[0], "far.value": x[1]})
        run = mbs.simulate(own, q, v, 14.0, 14.0 / 3, method="dop853", save_every=None)
        return run.events.time[:2]

    def expected(x):
        def rates(t, y):
            return np.concatenate([y[3:], -MU * y[:3] / np.linalg.norm(y[:3]) ** 3 + [0, x[0], 0]])

        far = lambda t, y: 1 / (x[1] + RADIUS) - 1 / (elements(y)[0] + RADIUS)  # noqa: E731
        events = [far, lambda t, y: 1 / -2e8 - 1 / elements(y)[2]]
        return np.concatenate(solve_ivp(rates, (0, 14), [*q, *v], events=events, **EXACT).t_events)

    x0 = np.array([300.0, 1e9])
    wanted = expected(x0)
    assert 28 / 3 < wanted[0] < wanted[1] and instants(x0) == pytest.approx(wanted, abs=1e-7)
    slopes = both(instants, x0)
    for k, h in enumerate((0.1, 1e6)):
        step = h * np.eye(2)[k]
        difference = (expected(x0 + step) - expected(x0 - step)) / (2 * h)
        np.testing.assert_allclose(slopes[:, k], difference, rtol=1e-5, atol=1e-14)


FILE = """
[mechanism]
name = "ball"
gravity = [0.0, 0.0, 0.0]
bodies = [{name = "ball", mass = 1.0, inertia = [0.1, 0.1, 0.1]}]
joints = [{name = "flight", type = "free", parent = "world", child = "ball"}]

[[mechanism.forces]]
name = "atmosphere"
type = "exponential_atmosphere"

[[mechanism.forces]]
name = "planet"
type = "planet"
mu = 3.986004418e14
radius = 6378137.0

[[mechanism.events]]
name = "low"
when = {type = "flight_reaches", body = "ball", part = "dynamic_pressure", value = 40.0, direction = "down"}
then = [{type = "finish"}]

[[mechanism.events]]
name = "cut_off"
when = {type = "orbit_reaches", body = "ball", part = "periapsis_height", value = 200e3}
then = [{type = "finish"}]
"""


def test_in_files(tmp_path):
    (tmp_path / "ball.toml").write_text(FILE, encoding="utf-8")
    model = mbs.load(tmp_path / "ball.toml")
    low, cut_off = (e.when for e in model.structure.events)
    assert (low.part, low.direction) == ("dynamic_pressure", "down") and mbs.get(model, "low.value") == 40.0
    assert (cut_off.part, cut_off.direction) == ("periapsis_height", "either")
    mbs.save(model, tmp_path / "saved.toml")
    assert mbs.load(tmp_path / "saved.toml") == model
    for old, new, says in (
        ('body = "ball", part = "dyn', 'body = "bal", part = "dyn', "no body named 'bal'; did you mean 'ball'"),
        ('part = "dynamic_pressure"', 'part = "longitude"', "longitude"),
        ("value = 40.0", "value = -40.0", "dynamic_pressure must be more than zero"),
    ):
        (tmp_path / "ball.toml").write_text(FILE.replace(old, new), encoding="utf-8")
        with pytest.raises(InputError, match=says):
            mbs.load(tmp_path / "ball.toml")


@pytest.mark.parametrize(
    ("when", "says"),
    [
        (mbs.FlightReaches("bal", "height", 1.0), "event 'e': body: no body named 'bal'"),
        (mbs.FlightReaches("ball", "mach", 1.0), r"event 'e': FlightReaches needs an atmosphere; add one with set_env"),
        (mbs.FlightReaches("ball", "latitude", 1.0), "FlightReaches needs a planet; add one with set_environment"),
        (mbs.OrbitReaches("ball", "inclination", 1.0), "OrbitReaches needs a planet; add one with set_environment"),
        (mbs.FlightReaches("ball", "airspeed", 0.0), "value: airspeed must be more than zero"),
        (mbs.OrbitReaches("ball", "semi_major_axis", 0.0), "a semi-major axis is not zero"),
        (mbs.FlightReaches("ball", "latitude", 45.0), "a latitude is in radians, from -pi/2 to pi/2"),
        (mbs.OrbitReaches("ball", "inclination", 51.6), "an inclination is in radians, from 0 to pi"),
        (mbs.OrbitReaches("ball", "eccentricity", -0.1), "an eccentricity is not negative"),
        (mbs.FlightReaches("ball", "longitude", 1.0), "part is 'longitude'; pass one of 'height', 'latitude'"),
        (mbs.FlightReaches("ball", "height", 1.0, "upwards"), "direction is 'upwards'; pass one of 'up', 'down'"),
    ],
)
def test_what_is_refused(when, says):
    mech = ball()
    with pytest.raises(mbs.ModelError, match=says):
        mech.add_event("e", when)
        mech.build()


def test_in_single_precision_over_a_planet():
    """Where the height itself is exact to half a metre."""
    mech = ball(1.0, (0, 0, 0), planet=mbs.Earth(rotation=False))
    mech.add_event("low", mbs.FlightReaches("ball", "height", 9e3, "down"), mbs.Finish())
    model = mech.build()
    with jax.enable_x64(False):
        q, v = np.array([RADIUS + 1e4, 0, 0], np.float32), np.array([-100.0, 0, 0], np.float32)
        run = mbs.simulate(model, q, v, 12.0, 0.5)
    assert run.q.dtype == np.float32 and run.status == mbs.Status.OK
    wanted = (np.sqrt(100.0**2 + 2 * 9.787 * 1e3) - 100.0) / 9.787  # gravity there, with J2
    assert float(run.events.time[0]) == pytest.approx(wanted, abs=0.05)
