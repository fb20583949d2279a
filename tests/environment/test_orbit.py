"""Osculating elements against the closed forms of the two-body problem, as functions and as outputs of a study."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jaxmbs as mbs
from jaxmbs.study.outputs import Orbit

MU, RADIUS = 3.986004418e14, 6_378_137.0
WORLD = {"center": (1e5, -2e5, 3e5), "attitude": mbs.rotation("zx", (0.3, 0.7))}


def point(planet):
    mech = mbs.Mechanism("satellite")
    mech.add_point_mass("satellite", 10.0)
    mech.set_environment(planet=planet)
    return mech.build()


def state(a, e, inclination, node, periapsis, anomaly):
    """(position, velocity) in planet axes, from the perifocal frame [Curtis, Orbital Mechanics, 4.6]."""
    c, s = np.cos, np.sin
    p = a * (1 - e * e)
    x = p / (1 + e * c(anomaly)) * np.array([c(anomaly), s(anomaly), 0.0])
    v = np.sqrt(MU / p) * np.array([-s(anomaly), e + c(anomaly), 0.0])
    turns = [(node, 2), (inclination, 0), (periapsis, 2)]
    R = np.eye(3)
    for angle, axis in turns:
        i, j = (axis + 1) % 3, (axis + 2) % 3
        one = np.eye(3)
        one[i, i] = one[j, j] = c(angle)
        one[j, i], one[i, j] = s(angle), -s(angle)
        R = R @ one
    return R @ x, R @ v


@pytest.mark.parametrize(
    "given",
    [
        (7.2e6, 0.08, 0.9, -1.2, 0.4, 2.0),
        (26.6e6, 0.74, 1.107, 2.5, -1.57, 0.1),
        (6.7e6, 1e-6, 1.7, 0.3, 0.0, 1.0),
        (-3e7, 1.3, 0.5, 1.0, 2.0, 0.7),
    ],
    ids=["low", "high", "nearly a circle", "hyperbola"],
)
def test_the_elements_are_those_from_which_the_state_was_made(given):
    a, e, i, node, *_ = given
    r, v = state(*given)
    model = point(mbs.Earth(**WORLD))
    turn = Rotation.from_euler("ZX", (0.3, 0.7)).as_matrix()
    found = mbs.orbital_elements(model, turn @ r + np.array(WORLD["center"]), turn @ v, "satellite")
    assert found.semi_major_axis == pytest.approx(a, rel=1e-11)
    assert found.eccentricity == pytest.approx(e, abs=1e-13)
    assert found.inclination == pytest.approx(i, abs=1e-13) and found.ascending_node == pytest.approx(node, abs=1e-13)
    assert found.periapsis_height == pytest.approx(a * (1 - e) - RADIUS, rel=1e-9)
    assert found.apoapsis_height == pytest.approx(a * (1 + e) - RADIUS if e < 1 else np.inf, rel=1e-9)


def test_a_body_is_where_its_centre_of_mass_with_its_propellant_is():
    mech = mbs.Mechanism("stage")
    mech.add_body("stage", 100.0, com=(1.0, 0.0, 0.0), inertia=(1.0, 1.0, 1.0))
    mech.add_joint("flight", mbs.Free(), "world", "stage")
    mech.set_environment(planet=mbs.Earth())
    mech.add_force("motor", mbs.Motor("stage", thrust=1.0, propellant=300.0, propellant_com=(5.0, 0.0, 0.0)))
    q, v = [7e6 - 4.0, 0, 0, 1.0, 0, 0, 0], [0, 0, 0, 0, 7600.0, 0]  # the centre of mass is at x = 4 m
    found = mbs.orbital_elements(mech.build(), np.array(q), np.array(v), "stage")
    assert found.semi_major_axis == pytest.approx(1 / (2 / 7e6 - 7600.0**2 / MU), rel=1e-13)


def test_derivatives_in_both_modes_are_those_of_finite_differences():
    model, (r, v) = point(mbs.Earth()), state(7.2e6, 0.08, 0.9, -1.2, 0.4, 2.0)

    def elements(x):
        return jnp.stack(mbs.orbital_elements(model, r, x, "satellite"))

    forward, reverse = jax.jacfwd(elements)(v), jax.jacrev(elements)(v)
    np.testing.assert_allclose(forward, reverse, rtol=1e-9, atol=1e-12)
    for k in range(3):
        h = 1e-2 * np.eye(3)[k]
        difference = (elements(v + h) - elements(v - h)) / 2e-2
        np.testing.assert_allclose(forward[:, k], difference, rtol=1e-6, atol=1e-9)
    equator = jax.jacrev(lambda x: jnp.stack(mbs.orbital_elements(model, jnp.array([7e6, 0, 0]), x, "satellite")))
    assert np.isfinite(equator(jnp.array([0.0, 7600.0, 0.0]))).all()  # no node there


def test_a_mechanism_without_a_planet_is_refused_with_the_remedy():
    mech = mbs.Mechanism("ball")
    mech.add_point_mass("ball", 1.0)
    with pytest.raises(mbs.ModelError, match="no planet; call set_environment"):
        mbs.orbital_elements(mech.build(), [1.0, 0, 0], [0.0, 0, 0], "ball")


def test_outputs_measure_the_elements_and_an_apoapsis_beyond_infinity_is_undefined():
    base = point(mbs.Earth())
    outputs = {name: Orbit("satellite", name) for name in ("inclination", "periapsis_height", "apoapsis_height")}
    for a, e in ((7.2e6, 0.08), (-3e7, 1.3)):
        r, v = state(a, e, 0.9, -1.2, 0.4, 0.0)
        study = mbs.study.Study(
            model=base, initial=(r, v), simulation={"t_end": 0.02, "dt": 0.01}, outputs=outputs,
            dispersions={"satellite.mass": mbs.study.Normal(std=0.1)},
        )  # fmt: skip
        found = {k: float(x[0]) for k, x in mbs.study.repeat(study, [0]).outputs.items()}
        assert found["inclination"] == pytest.approx(0.9, abs=1e-6)
        assert found["periapsis_height"] == pytest.approx(a * (1 - e) - RADIUS, abs=5.0)  # within 0.02 s
        far = found["apoapsis_height"]
        assert np.isnan(far) if e > 1 else far == pytest.approx(a * (1 + e) - RADIUS, abs=50.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sideways", [0.0, 1e-3, 1e-2, 0.1])
def test_the_apoapsis_of_a_nearly_vertical_path(sideways, dtype):
    """A body thrown up at 1 km/s from 100 km returns from the height that its energy gives, though its eccentricity is 1."""
    model, r = point(mbs.Earth(j2=False, rotation=False)), RADIUS + 1e5
    q, v = np.array([r, 0.0, 0.0], dtype), np.array([1000.0, sideways, 0.0], dtype)
    found = mbs.orbital_elements(model, q, v, "satellite")
    wanted = 2 / (2 / r - 1e6 / MU) - RADIUS
    assert found.apoapsis_height == pytest.approx(wanted, abs=1e-3 if dtype == np.float64 else 5.0)
    rest = mbs.orbital_elements(model, np.array([7e6, 0, 0], dtype), np.zeros(3, dtype), "satellite")
    assert rest.apoapsis_height == pytest.approx(7e6 - RADIUS, rel=1e-5)
