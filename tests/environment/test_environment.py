"""Air, wind and planets against printed tables, closed forms and conservation laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.interpolate

import jaxmbs as mbs
from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.spatial.known import known
from tests.cases import relative

# geometric height [km], pressure [Pa], density [kg/m³], temperature [K]: U.S. Standard Atmosphere, 1976 (NOAA-S/T 76-1562,
# NASA-TM-X-74335), table I, geometric altitude, metric units, pages 51 to 73
PRINTED = [
    (-5, 1.7776e5, 1.9311, 320.676), (0, 1.01325e5, 1.2250, 288.150), (1, 8.9876e4, 1.1117, 281.651),
    (2, 7.9501e4, 1.0066, 275.154), (5, 5.4048e4, 7.3643e-1, 255.676), (10, 2.6499e4, 4.1351e-1, 223.252),
    (15, 1.2111e4, 1.9476e-1, 216.650), (20, 5.5293e3, 8.8910e-2, 216.650), (25, 2.5492e3, 4.0084e-2, 221.552),
    (30, 1.1970e3, 1.8410e-2, 226.509), (35, 5.7459e2, 8.4634e-3, 236.513), (40, 2.8714e2, 3.9957e-3, 250.350),
    (45, 1.4910e2, 1.9663e-3, 264.164), (50, 7.9779e1, 1.0269e-3, 270.650), (55, 4.2525e1, 5.6810e-4, 260.771),
    (60, 2.1958e1, 3.0968e-4, 247.021), (65, 1.0929e1, 1.6321e-4, 233.292), (70, 5.2209, 8.2829e-5, 219.585),
    (75, 2.3881, 3.9921e-5, 208.399), (80, 1.0524, 1.8458e-5, 198.639), (85, 4.4568e-1, 8.2196e-6, 188.893),
]  # fmt: skip
ABOVE = [  # geometric height [km], density [kg/m³]
    (86, 6.958e-6), (90, 3.416e-6), (95, 1.393e-6), (100, 5.604e-7), (110, 9.708e-8), (120, 2.222e-8), (130, 8.152e-9),
    (140, 3.831e-9), (150, 2.076e-9), (160, 1.233e-9), (180, 5.194e-10), (200, 2.541e-10), (250, 6.073e-11),
    (300, 1.916e-11), (400, 2.803e-12), (500, 5.215e-13), (600, 1.137e-13), (700, 3.070e-14), (800, 1.136e-14),
    (900, 5.759e-15), (1000, 3.561e-15),
]  # fmt: skip
BETWEEN = [  # the same between the heights that the element has
    (88, 4.875e-6), (92, 2.393e-6), (98, 8.071e-7), (104, 2.769e-7), (106, 1.954e-7), (112, 6.838e-8), (118, 2.847e-8),
    (122, 1.767e-8), (126, 1.171e-8), (134, 5.897e-9), (144, 2.958e-9), (155, 1.585e-9), (170, 7.815e-10),
    (190, 3.581e-10), (210, 1.846e-10), (235, 8.979e-11), (275, 3.329e-11), (320, 1.264e-11), (380, 4.013e-12),
    (420, 1.975e-12), (480, 7.208e-13), (550, 2.384e-13), (625, 7.998e-14), (675, 4.148e-14), (725, 2.318e-14),
    (775, 1.410e-14), (825, 9.339e-15), (875, 6.664e-15), (950, 4.453e-15),
]  # fmt: skip


def air(height):
    return mbs.StandardAtmosphere().gas({"density_factor": known(1.0)}, known(1e3 * height))


def test_the_standard_atmosphere_has_its_printed_values():
    """Some of the printed pressures are cut, not rounded, at their fifth digit."""
    for height, pressure, density, temperature in PRINTED:
        gas = air(height)
        assert float(gas.density) == pytest.approx(density, rel=6e-5), height
        assert float(gas.pressure) == pytest.approx(pressure, rel=1e-4), height
        assert float(gas.sound) == pytest.approx((1.4 * 287.05287 * temperature) ** 0.5, rel=1e-5), height
    for values, digits in ((ABOVE, 2e-4), (BETWEEN, 0.03)):
        for height, density in values:
            assert float(air(height).density) == pytest.approx(density, rel=digits), height


def ball(mass=2.0, **environment):
    mech = mbs.Mechanism("ball", gravity=environment.pop("gravity", (0.0, 0.0, -9.81)))
    mech.add_point_mass("ball", mass)
    mech.set_environment(**environment)
    return mech


def test_a_fall_in_uniform_air():
    """v = v_t tanh(g t / v_t)."""
    mech = ball(atmosphere=mbs.ExponentialAtmosphere(density=1.2, scale_height=1e15))
    mech.add_force("drag", mbs.Aerodynamics("ball", area=0.03, coefficients=mbs.Coefficients(drag=(0.5,))))
    run = mbs.simulate(mech.build(), [0.0, 0.0, 500.0], np.zeros(3), 8.0, dt=0.01)
    last = (2 * 2.0 * 9.81 / (1.2 * 0.03 * 0.5)) ** 0.5
    assert run.v[-1, 2] == pytest.approx(-last * np.tanh(9.81 * 8.0 / last), rel=1e-10)
    assert int(run.status) == 0 and abs(run.energy_error[-1]) < 1e-6


def test_wind_pushes_a_body_at_rest_and_none_relative_to_it():
    wind = mbs.Wind(height=(0.0, 100.0), east=(0.0, 10.0), north=(4.0, 0.0), factor=2.0)
    mech = ball(atmosphere=mbs.ExponentialAtmosphere(density=1.0, scale_height=1e15), wind=wind)
    mech.add_force("drag", mbs.Aerodynamics("ball", area=2.0, coefficients=mbs.Coefficients(drag=(1.0,))))
    model = mech.build()
    a = mbs.forward_dynamics(model, [0.0, 0.0, 50.0], np.zeros(3))
    u = np.array([10.0, 4.0, 0.0])  # towards the east and the north
    assert relative(a, np.linalg.norm(u) * u / 2 + [0, 0, -9.81]) < 1e-12
    assert relative(mbs.forward_dynamics(model, [0.0, 0.0, 50.0], u), np.array([0, 0, -9.81])) < 1e-12


def satellite(planet, inertia=(10.0, 20.0, 25.0)):
    mech = mbs.Mechanism("satellite")
    mech.add_body("bus", 100.0, (0.1, -0.2, 0.05), inertia)
    mech.add_joint("orbit", mbs.Free(), "world", "bus")
    mech.set_environment(planet=planet)
    return mech.build()


def test_gravity_is_the_gradient_of_its_potential():
    """Forces and moments, with several zonal harmonics, a turned planet, and a body as large as its orbit would show."""
    turned = mbs.rotation((1, 2, 3), 0.7)
    model = satellite(
        mbs.Planet(5.0, 2.0, zonals=(0.1, 0.02, -0.03), center=(0.3, 0.1, -0.2), attitude=turned), (300.0, 400.0, 500.0)
    )
    q = np.array([2.0, 1.5, 3.0, 0.9, 0.1, -0.3, 0.2])

    def potential(dv):
        return mbs.energy(model, mbs.integrate(model, q, dv), jnp.zeros(6))[1]

    tau = mbs.bias_forces(model, q, np.zeros(6))  # on the left-hand side
    assert relative(tau, jax.grad(potential)(jnp.zeros(6))) < 1e-12


def test_motion_in_orbit_conserves_energy_and_turns_the_node():
    """The node of an orbit turns by -3/2 n J2 (radius/a)² cos i, on average."""
    earth = mbs.Earth()
    model = satellite(earth)
    mu, a, i = float(mbs.get(model, "planet.mu")), 7.2e6, np.radians(50)
    n = (mu / a**3) ** 0.5
    period = 2 * np.pi / n
    q = np.array([a, 0, 0, 1, 0, 0, 0])
    v = np.array([0, 0, 0, 0, n * a * np.cos(i), n * a * np.sin(i)])
    run = mbs.simulate(model, q, v, 20 * period, dt=period / 100, method="dop853")
    assert abs(run.energy_error[-1]) < 1e-9 * abs(sum(mbs.energy(model, q, v)))
    R = mbs.body_poses(model, run.q[-1])["bus"].rotation
    h = np.cross(run.q[-1, :3], R @ run.v[-1, 3:])
    node = np.arctan2(h[0], -h[1])
    wanted = -1.5 * n * 1.0826298213e-3 * (6_378_137.0 / a) ** 2 * np.cos(i) * 20 * period
    assert node == pytest.approx(wanted, rel=5e-3)


def test_a_body_in_orbit_does_not_begin_to_spin_by_rounding():
    """Of v × m v, which is zero, the rounding error would turn it by degrees within an orbit."""
    mech = mbs.Mechanism("satellite")
    mech.add_body("bus", 100.0, (0.1, -0.2, 0.05), (10.0, 20.0, 25.0))
    mech.add_joint("orbit", mbs.Free(), "world", "bus")
    mech.add_force("earth", mbs.CentralGravity(3.986004418e14))
    model, a = mech.build(), 7.2e6
    speed = (3.986004418e14 / a) ** 0.5
    q, v = np.array([a, 0, 0, 1, 0, 0, 0]), np.array([0, 0, 0, 0, 0.6 * speed, 0.8 * speed])
    run = mbs.simulate(model, q, v, 6000.0, dt=60.0, method="dop853")
    assert np.abs(run.v[:, :3]).max() < 1e-10
    assert np.abs(run.energy_error).max() < 1e-12 * abs(sum(mbs.energy(model, q, v)))
    single = mbs.simulate(model, q.astype(np.float32), v.astype(np.float32), 6000.0, dt=60.0, method="dop853")
    assert np.abs(single.v[:, :3]).max() < 1e-2


def test_libration_in_the_gravity_gradient():
    """In pitch: frequency n (3 (I_roll - I_yaw)/I_pitch)^(1/2)."""
    n, a, inertia = 1e-3, 7e6, (30.0, 25.0, 10.0)
    model = satellite(mbs.Planet(n**2 * a**3, 1.0), inertia)
    model = mbs.set(model, {"bus.com": (0.0, 0.0, 0.0)})
    frequency = n * (3 * (inertia[0] - inertia[2]) / inertia[1]) ** 0.5
    # z of the body away from the planet, x along the path
    down = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
    tilt = 1e-3
    c, s = np.cos(tilt), np.sin(tilt)
    pitched = down @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    q = np.array([a, 0, 0, *_quaternion(pitched)])
    w = pitched.T @ np.array([0, 0, n])
    v = np.array([*w, *(pitched.T @ [0, n * a, 0])])
    half = np.pi / frequency
    run = mbs.simulate(model, q, v, half, dt=half / 400)
    R = np.asarray(mbs.body_poses(model, run.q[-1])["bus"].rotation)
    up = np.asarray(run.q[-1, :3]) / np.linalg.norm(run.q[-1, :3])
    along = np.cross([0, 0, 1], up)
    assert np.arctan2(R[:, 2] @ along, R[:, 2] @ up) == pytest.approx(-tilt, rel=2e-3)


def _quaternion(R):
    w = (1 + np.trace(R)) ** 0.5 / 2
    return [w, (R[2, 1] - R[1, 2]) / (4 * w), (R[0, 2] - R[2, 0]) / (4 * w), (R[1, 0] - R[0, 1]) / (4 * w)]


CENTER = np.array([10.0, -20.0, 30.0])


@pytest.mark.parametrize("latitude", [-90.0, -45.0, 0.0, 12.3, 60.0, 89.999999, 90.0])
@pytest.mark.parametrize("height", [-5e3, 0.0, 1e4, 4e5, 3.6e7])
def test_geodetic_coordinates(latitude, height):
    """From latitude, longitude and height to a point and back."""
    planet, t = mbs.Earth(), 1000.0
    p = {k: known(float(getattr(planet, k))) for k in ("radius", "flattening", "rate")}
    p |= {"center": Vector3(*map(known, CENTER.tolist())), "attitude": _matrix(np.eye(3))}
    f, L = np.radians(latitude), 0.8
    e2 = planet.flattening * (2 - planet.flattening)
    N = planet.radius / (1 - e2 * np.sin(f) ** 2) ** 0.5
    angle = L + planet.rate * t
    out = (N + height) * np.cos(f)
    x = np.array([out * np.cos(angle), out * np.sin(angle), (N * (1 - e2) + height) * np.sin(f)]) + CENTER
    point = Vector3(*(known(float(c)) for c in x))
    h, phi, lam = (float(y) for y in planet.geodetic(p, known(t), point))
    assert h == pytest.approx(height, abs=1e-7) and phi == pytest.approx(f, abs=1e-12)
    if abs(latitude) < 89:
        assert lam == pytest.approx(L, abs=1e-12)
    place = planet.place(p, known(t), point)
    up = [float(c) for c in place.up]
    assert relative(up, np.array([np.cos(f) * np.cos(angle), np.cos(f) * np.sin(angle), np.sin(f)])) < 1e-9
    assert float(place.carried @ place.up) == pytest.approx(0, abs=1e-9)


def _matrix(R):
    return Matrix3.of([known(float(c)) for c in R.reshape(-1)])


def test_air_turns_with_the_planet():
    """A body that stands on the equator feels no wind; one that does not turn feels that of 465 m/s."""
    mech = ball(gravity=(0, 0, 0), atmosphere=mbs.StandardAtmosphere(), planet=mbs.Earth(j2=False))
    mech.add_force("drag", mbs.Aerodynamics("ball", area=1.0, coefficients=mbs.Coefficients(drag=(1.0,))))
    model = mech.build()
    q, speed = np.array([6_378_137.0, 0, 0]), 6_378_137.0 * 7.292115e-5
    fall = mbs.forward_dynamics(model, q, [0.0, speed, 0.0])
    blown = mbs.forward_dynamics(model, q, np.zeros(3))
    assert abs(fall[1]) < 1e-9 and blown[1] == pytest.approx(0.5 * 1.225 * speed**2 / 2, rel=1e-6)
    assert fall[0] == pytest.approx(-3.986004418e14 / 6_378_137.0**2, rel=1e-12)


GRID = {"mach": (0.0, 0.8, 1.2, 3.0), "alpha": (-0.3, 0.0, 0.4), "beta": (-0.2, 0.2)}


AROUND = {"atmosphere": mbs.StandardAtmosphere(), "wind": mbs.Wind(east=(3.0,), north=(-2.0,))}


def glider(seed=0, around=AROUND, **more):
    rng = np.random.default_rng(seed)
    size = 4 * 3 * 2
    names = (
        "axial",
        "side",
        "normal",
        "drag",
        "lift",
        "roll",
        "pitch",
        "yaw",
        "pitch_damping",
        "roll_damping",
        "yaw_damping",
    )
    tables = {name: tuple(rng.normal(size=size)) for name in names}
    mech = mbs.Mechanism("glider")
    mech.add_body("glider", 5.0, (0.1, 0, 0), (0.5, 0.6, 0.7))
    mech.add_joint("flight", mbs.Free(), "world", "glider")
    mech.set_environment(**around)
    table = mbs.Coefficients(**GRID, **tables)
    mech.add_force("air", mbs.Aerodynamics(
        "glider", area=0.4, length=0.7, coefficients=table, reference=(0.2, 0.1, -0.1),
        attitude=mbs.rotation("x", np.pi), **more,
    ))  # fmt: skip
    return mech, tables


def flying():
    q = np.array([10.0, 20.0, 3000.0, 0.9, 0.05, -0.1, 0.2])
    return q / np.array([1, 1, 1, *[np.linalg.norm(q[3:])] * 4]), np.array([0.3, -0.2, 0.1, 250.0, 20.0, -30.0])


def test_forces_of_tables_by_an_independent_interpolation():
    changed = {"force_multiplier": 1.2, "moment_multiplier": 0.8, "force_increment": (0.1, 0.2, 0.3)}
    mech, tables = glider(**changed, moment_increment=(0.01, 0.02, 0.03))
    model = mech.build()
    q, v = flying()
    pose = mbs.body_poses(model, q)["glider"]
    R, turned = np.asarray(pose.rotation), np.diag([1.0, -1, -1])
    at = np.array([0.2, 0.1, -0.1])
    u = turned @ (v[3:] + np.cross(v[:3], at) - R.T @ [3.0, -2.0, 0.0])
    speed = np.linalg.norm(u)
    height = float((np.asarray(pose.position) + R @ at)[2])
    gas = mbs.StandardAtmosphere().gas({"density_factor": known(1.0)}, known(height))
    rho, sound = float(gas.density), float(gas.sound)
    x = [speed / sound, np.arctan2(u[2], u[0]), np.arctan2(u[1], np.hypot(u[0], u[2]))]
    c = {
        name: float(scipy.interpolate.RegularGridInterpolator(tuple(GRID.values()), np.reshape(y, (4, 3, 2)))(x)[0])
        for name, y in tables.items()
    }
    forward, upward = u / speed, np.array([u[2], 0, -u[0]]) / np.hypot(u[0], u[2])
    body = np.array([-c["axial"], c["side"], -c["normal"]]) - c["drag"] * forward + c["lift"] * upward
    body = 1.2 * body + [-0.1, 0.2, -0.3]
    pressure = 0.5 * rho * speed**2 * 0.4
    turn = 0.8 * np.array([c["roll"], c["pitch"], c["yaw"]]) + [0.01, 0.02, 0.03]
    w = turned @ v[:3]
    damped = (
        0.8
        * 0.5
        * rho
        * speed
        * 0.4
        * 0.7**2
        / 2
        * np.array([c["roll_damping"] * w[0], c["pitch_damping"] * w[1], c["yaw_damping"] * w[2]])
    )
    force, moment = turned @ (pressure * body), turned @ (pressure * 0.7 * turn + damped)
    wrench = np.concatenate([moment + np.cross(at, force), force])
    bare = mbs.inverse_dynamics(model, q, v, np.zeros(6), mode=model.mode(off="air"))
    found = bare - mbs.inverse_dynamics(model, q, v, np.zeros(6))
    assert relative(found, wrench) < 1e-10


def test_derivatives_of_tables_and_frames():
    """Both modes against differences, with respect to the state, the table and the atmosphere; at rest in still air too."""
    model = glider()[0].build()
    q, v = flying()
    names = ["air.coefficients.normal", "atmosphere.density_factor", "wind.east", "air.area"]
    start = [np.asarray(mbs.get(model, name), float) for name in names]

    def a(values, v):
        return mbs.forward_dynamics(mbs.set(model, dict(zip(names, values, strict=True))), q, v)

    rng = np.random.default_rng(1)
    along = [rng.normal(size=x.shape) for x in start], rng.normal(size=6)

    def moved(h):
        return a([x + h * d for x, d in zip(start, along[0], strict=True)], v + h * along[1])

    slope = jax.jvp(
        a, ([jnp.asarray(x) for x in start], jnp.asarray(v)), ([*map(jnp.asarray, along[0])], jnp.asarray(along[1]))
    )[1]
    assert relative(slope, (moved(1e-5) - moved(-1e-5)) / 2e-5) < 1e-7
    back = jax.vjp(a, [jnp.asarray(x) for x in start], jnp.asarray(v))[1](jnp.ones(6))
    total = sum(np.sum(b * d) for b, d in zip((*back[0], back[1]), (*along[0], along[1]), strict=True))
    assert total == pytest.approx(float(slope.sum()), rel=1e-9)
    still = ball(atmosphere=mbs.StandardAtmosphere())
    still.add_force("drag", mbs.Aerodynamics("ball", area=1.0, coefficients=mbs.Coefficients(drag=(1.0,), lift=(0.5,))))
    calm = still.build()
    J = jax.jacrev(lambda v: mbs.forward_dynamics(calm, jnp.zeros(3), v))(jnp.zeros(3))
    assert np.isfinite(J).all() and np.abs(J).max() == 0


def test_a_batch_and_float32():
    model = glider()[0].build()
    q, v = flying()
    batch, axes = mbs.vary(model, {"atmosphere.density_factor": np.array([0.8, 1.0, 1.2])})
    found = mbs.jit(lambda m: mbs.forward_dynamics(m, q, v), in_axes=(axes,))(batch)
    assert relative(found[1], mbs.forward_dynamics(model, q, v)) < 1e-12
    single = mbs.forward_dynamics(model, q.astype(np.float32), v.astype(np.float32))
    assert relative(single, mbs.forward_dynamics(model, q, v)) < 1e-4


def test_tables_have_a_slope_at_their_breakpoints():
    """At zero angle of attack, where a symmetric body is trimmed."""
    mech = mbs.Mechanism("dart")
    mech.add_body("dart", 1.0, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("flight", mbs.Free(), "world", "dart")
    mech.set_environment(atmosphere=mbs.ExponentialAtmosphere(1.0, 1e15))
    table = mbs.Coefficients(alpha=(-0.2, 0.0, 0.2), normal=(-0.4, 0.0, 0.4))
    mech.add_force("air", mbs.Aerodynamics("dart", area=2.0, coefficients=table))
    model = mech.build()

    def down(w):
        return mbs.forward_dynamics(model, model.neutral(), jnp.zeros(6).at[3].set(10.0).at[5].set(w))[5]

    for slope in (jax.grad(down)(0.0), jax.jacfwd(down)(0.0)):
        assert slope == pytest.approx(-(0.5 * 2.0 * 100) * 2.0 / 10)


def test_a_laboratory_on_the_earth():
    """East, north and up of a place, against its geodetic coordinates; wind from the south at a pole too."""
    for latitude in (-0.4, 0.9, np.pi / 2):
        mech = ball(gravity=(0, 0, 0), planet=mbs.Earth(at=(latitude, 0.7, 250.0), rotation=False),
                    atmosphere=mbs.StandardAtmosphere(), wind=mbs.Wind(north=(12.0,), east=(5.0,)))  # fmt: skip
        model = mech.build()
        here = mbs.flight_condition(model, np.zeros(3), np.array([5.0, 12.0, 0.0]), "ball")
        assert here.height == pytest.approx(250.0, abs=1e-6) and here.latitude == pytest.approx(latitude)
        assert mbs.flight_condition(model, [0, 0, 100.0], np.zeros(3), "ball").height == pytest.approx(350.0, abs=1e-6)
        if latitude < 1.5:
            assert here.longitude == pytest.approx(0.7) and here.airspeed < 1e-6
            assert mbs.flight_condition(model, [0, 50.0, 0], np.zeros(3), "ball").latitude > latitude
            fall = mbs.forward_dynamics(model, np.zeros(3), np.zeros(3))
            assert fall[2] == pytest.approx(-9.81, abs=0.03) and abs(fall[0]) < 1e-12
        else:
            assert mbs.flight_condition(model, np.zeros(3), np.zeros(3), "ball").airspeed == pytest.approx(13.0)


@pytest.mark.parametrize("kind", ["planet", "central"])
def test_derivatives_of_gravity_in_float32(kind):
    """Far from the centre, where powers of the distance leave its range; in both modes."""
    mech = mbs.Mechanism("satellite")
    mech.add_body("bus", 100.0, (0.1, -0.2, 0.05), (10.0, 20.0, 25.0))
    mech.add_joint("orbit", mbs.Free(), "world", "bus")
    if kind == "planet":
        mech.set_environment(planet=mbs.Earth())
    else:
        mech.add_force("earth", mbs.CentralGravity(3.986004418e14))
    model = mech.build()

    def a(r, dtype):
        q = jnp.concatenate([r, jnp.array([0.9, 0.1, -0.3, 0.2], dtype)])
        return mbs.forward_dynamics(model, q, jnp.zeros(6, dtype))[3:]

    r = np.array([5e6, 4e6, 2e6])
    exact = jax.jacfwd(lambda r: a(r, jnp.float64))(r)
    for mode in (jax.jacfwd, jax.jacrev):
        found = mode(lambda r: a(r, jnp.float32))(r.astype(np.float32))
        assert relative(found, exact) < 1e-4


def test_a_flexible_body_in_orbit_conserves_energy():
    part = mbs.Part.beam(4.0, 6.0, (20.0, 30.0), 10.0, modes=2, elements=6)
    mech = mbs.Mechanism("boom")
    mech.add_flexible_body("boom", part, damping=0.0, order=2)
    mech.add_joint("orbit", mbs.Free(), "world", "boom")
    mech.set_environment(planet=mbs.Planet(4e5, 60.0, zonals=(0.05,)))
    model = mech.build()
    rng = np.random.default_rng(0)
    q = np.array([100.0, 20, 30, 0.9, 0.1, -0.3, 0.2, *(0.05 * rng.normal(size=2))])

    def potential(dv):
        return mbs.energy(model, mbs.integrate(model, q, dv), jnp.zeros(model.nv))[1]

    tau = mbs.bias_forces(model, q, np.zeros(model.nv))
    assert relative(tau, jax.grad(potential)(jnp.zeros(model.nv))) < 1e-10


def test_a_tabulated_atmosphere():
    table = mbs.TabulatedAtmosphere(height=(0.0, 1e3), density=(1.2, 0.9), sound=(340.0, 336.0), density_factor=1.5)
    p = {k: tuple(map(known, v)) if isinstance(v, tuple) else known(v) for k, v in vars(table).items()}
    gas = table.gas(p, known(500.0))
    assert float(gas.density) == pytest.approx(1.5 * (1.2 * 0.9) ** 0.5) and float(gas.sound) == pytest.approx(338.0)
    assert float(table.gas(p, known(2e3)).density) == pytest.approx(1.5 * 0.9 * (0.9 / 1.2))  # it goes on to fall
    assert float(table.gas(p, known(-1e3)).density) == pytest.approx(1.5 * 1.2)


def test_interference_by_distance():
    mech = mbs.Mechanism("two", gravity=(0, 0, 0))
    mech.add_point_mass("core", 3.0)
    mech.add_point_mass("strap", 1.0)
    mech.set_environment(atmosphere=mbs.ExponentialAtmosphere(1.0, 1e15))
    table = mbs.Coefficients(distance=(1.0, 3.0), drag=(2.0, 1.0))
    mech.add_force("air", mbs.Aerodynamics("strap", area=1.0, coefficients=table, relative_to="core"))
    model = mech.build()
    v = np.array([0, 0, 0, -10.0, 0, 0])
    for distance, drag in ((0.5, 2.0), (2.0, 1.5), (5.0, 1.0)):
        a = mbs.forward_dynamics(model, [0, 0, 0, 0, 0, distance], v)
        assert a[3] == pytest.approx(50 * drag) and np.abs(a[:3]).max() == 0


def test_flight_conditions_and_events_at_them():
    """Mach 1 on the way down, where the event finds it; angles and heights by hand."""
    mech = ball(atmosphere=mbs.StandardAtmosphere(), planet=mbs.Earth(j2=False, rotation=False), gravity=(0, 0, 0))
    when = mbs.When(lambda model, t, q, v: mbs.flight_condition(model, q, v, "ball", t=t).mach - 1.0)
    mech.add_event("sonic", when, mbs.Finish())
    model = mech.build()
    run = mbs.simulate(model, [6_378_137.0 + 30e3, 0, 0], np.zeros(3), 100.0, dt=0.5)
    found = mbs.flight_condition(model, run.q[-1], run.v[-1], "ball")
    assert found.mach == pytest.approx(1.0, abs=1e-12) and run.events.time[0] < 40
    assert found.height == pytest.approx(run.q[-1, 0] - 6_378_137.0)
    assert found.dynamic_pressure == pytest.approx(0.5 * found.density * run.v[-1, 0] ** 2)
    with pytest.raises(mbs.ModelError, match="'bal'"):
        mbs.flight_condition(model, run.q[-1], run.v[-1], "bal")
    model = glider()[0].build()
    q, v = flying()
    seen = mbs.flight_condition(model, q, v, "glider")
    R = np.asarray(mbs.body_poses(model, q)["glider"].rotation)
    u = np.diag([1.0, -1, -1]) @ (v[3:] + np.cross(v[:3], [0.2, 0.1, -0.1]) - R.T @ [3.0, -2.0, 0.0])
    assert seen.airspeed == pytest.approx(np.linalg.norm(u))
    assert seen.angle_of_attack == pytest.approx(np.arctan2(u[2], u[0]))
    assert seen.sideslip == pytest.approx(np.arcsin(u[1] / np.linalg.norm(u)))


def test_a_study_measures_flight(tmp_path):
    text = """
[mechanism]
name = "ball"

[[mechanism.bodies]]
name = "ball"
mass = 2.0
inertia = [0.1, 0.1, 0.1]

[[mechanism.joints]]
name = "flight"
type = "free"
parent = "world"
child = "ball"

[[mechanism.forces]]
name = "atmosphere"
type = "standard_atmosphere"

[[mechanism.forces]]
name = "planet"
type = "planet"
mu = 3.986004418e14
radius = 6378137.0
center = [0.0, 0.0, -6378137.0]

[[mechanism.forces]]
name = "air"
type = "aerodynamics"
body = "ball"
area = 0.05
coefficients = {mach = [0.0, 0.8, 1.2], drag = [0.4, 0.5, 1.0]}

[initial.flight]
q = [0.0, 0.0, 20000.0, 1.0, 0.0, 0.0, 0.0]

[dispersions."atmosphere.density_factor"]
distribution = "uniform"
apply = "multiply"
low = 0.8
high = 1.2

[simulation]
t_end = 60.0
dt = 0.1

[outputs.pressure]
type = "flight"
body = "ball"
part = "dynamic_pressure"
reduce = "max"
unit = "kPa"

[outputs.height]
type = "flight"
body = "ball"
"""
    (tmp_path / "fall.toml").write_text(text, encoding="utf-8")
    study = mbs.study.read(tmp_path / "fall.toml")
    store = mbs.study.run(study, 8, tmp_path / "run")
    found = store.outputs(study)
    assert (found["pressure"] > 900).all() and (found["height"] < 15e3).all()
    (tmp_path / "vacuum.toml").write_text(text.replace('part = "dynamic_pressure"', 'part = "latitude"').replace(
        'name = "planet"\ntype = "planet"\nmu = 3.986004418e14\nradius = 6378137.0\ncenter = [0.0, 0.0, -6378137.0]',
        'name = "wind"\ntype = "wind"',
    ).replace('unit = "kPa"\n', ""), encoding="utf-8")  # fmt: skip
    with pytest.raises(mbs.ModelError, match="the mechanism has no planet; add one"):
        mbs.study.read(tmp_path / "vacuum.toml")


def test_an_environment_in_a_file(tmp_path):
    mech = glider()[0]
    mech.add_force("planet", mbs.Earth(center=(0, 0, -6.4e6)))
    model = mech.build()
    mbs.save(model, tmp_path / "glider.toml")
    text = (tmp_path / "glider.toml").read_text(encoding="utf-8")
    assert 'type = "standard_atmosphere"' in text and 'type = "aerodynamics"' in text
    assert mbs.load(tmp_path / "glider.toml") == model


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda m: m.set_environment(wind=mbs.StandardAtmosphere()), "wind is StandardAtmosphere.* not an environment"),
        (lambda m: m.set_environment(planet=mbs.Earth), r"not an environment element of this kind; pass Earth\(...\)"),
        (lambda m: m.set_environment(planet=mbs.Earth()), "gravity is .* and there is a planet"),
        (lambda m: m.set_environment(planet=mbs.Planet(1.0, 1.0, 298.257)), "flattening: pass a number below 1"),
        (lambda m: mbs.Earth(at=(45.0, 0.0, 0.0)), "pass latitude and longitude in radians"),
        (lambda m: mbs.Earth(at=(0.09, -52.8, 0.0)), "pass latitude and longitude in radians, at most pi/2 and 2 pi"),
        (lambda m: [m.set_environment(wind=mbs.Wind()), m.set_environment(wind=mbs.Wind())], "'wind' already"),
        (lambda m: [m.set_environment(wind=mbs.Wind()), m.build().mode(off="wind")], "which cannot be switched off"),
        (lambda m: m.add_force("air", mbs.Aerodynamics("ball", area=1.0)), "Aerodynamics needs an atmosphere"),
        (lambda m: m.add_force("a", mbs.Aerodynamics("bal", area=1.0)), "'bal'"),
        (
            lambda m: [m.set_environment(planet=mbs.Earth()), m.add_force("moon", mbs.Planet(5e12, 1.7e6))],
            "force 'moon' is a second planet, after 'planet'",
        ),
        (
            lambda m: m.add_force("one", mbs.CentralGravity(4e14)) or m.add_force("two", mbs.CentralGravity(4e14)),
            "'one' and 'two' attract towards the same centre, so that gravity would count twice",
        ),
        (lambda m: m.set_environment(wind=mbs.Wind((0.0, 1.0), (1.0, 2.0))), "north has 1 numbers, height has 2"),
        (
            lambda m: [m.set_environment(atmosphere=mbs.StandardAtmosphere()), m.add_force("air", mbs.Aerodynamics(
                "ball", area=1.0, coefficients=mbs.Coefficients(distance=(0.0, 1.0), drag=(1.0, 2.0))
            ))],
            "give both, or neither",
        ),
        (
            lambda m: m.add_force("air", mbs.Aerodynamics(
                "ball", area=1.0, coefficients=mbs.Coefficients(alpha=(-10.0, 10.0), drag=(1.0, 2.0))
            )),
            "alpha: angles are in radians",
        ),
        (
            lambda m: m.add_force("air", mbs.Aerodynamics(
                "ball", area=1.0, coefficients=mbs.Coefficients(mach=(0.0, 1.0), alpha=(0.0, 1.0, 2.0), drag=(1.0, 2.0))
            )),
            "drag: 2 numbers; pass one, or 6 for the breakpoints 2 mach x 3 alpha",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(change, says):
    mech = ball()
    with pytest.raises(mbs.ModelError, match=says):
        change(mech)
        mech.build()


def test_a_height_that_is_no_number_has_no_air():
    gas = air(float("nan"))
    assert np.isnan(float(gas.density)) and np.isnan(float(gas.sound))
