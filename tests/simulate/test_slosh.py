"""Liquid in a tank: frequency, forces on the tank, momentum and energy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import jn_zeros, jnp_zeros

import jaxmbs as mbs
from jaxmbs.model.forces.slosh import ROOT

G = 9.81


def tank(joint=None, gravity=(0.0, 0.0, -G), axis=(0.0, 0.0, 1.0), **given):
    mech = mbs.Mechanism("tank", gravity=gravity)
    mech.add_body("stage", mass=100.0, com=(0.0, 0.1, 0.2), inertia=(50.0, 60.0, 20.0))
    mech.add_joint("stand", joint or mbs.Fixed(), "world", "stage")
    found = {"radius": 0.5, "height": 1.0, "fill": 0.7, "acceleration": G, "point": (0.1, 0.0, -0.3), **given}
    mech.add_force("tank", mbs.Slosh("stage", axis=axis, **found))
    return mech.build()


def test_the_root_of_the_bessel_function():
    assert abs(ROOT - jnp_zeros(1, 1)[0]) < 1e-12 < jn_zeros(1, 1)[0]


@pytest.mark.parametrize("shape", ["cylinder", "box"])
def test_the_frequency(shape):
    """w² = g k tanh(k h) [Dodge 2000, table 3.1: 1.84 / R for a cylinder, pi / a for a box with the side a]."""
    model = tank(shape=shape)
    k = 1.841183781340659 / 0.5 if shape == "cylinder" else np.pi / 1.0
    w = np.sqrt(G * k * np.tanh(k * 0.7))
    run = mbs.simulate(model, [0.02, -0.01], [0.0, 0.0], t_end=2.0, dt=0.002)
    np.testing.assert_allclose(run.q, np.outer(np.cos(w * run.t), [0.02, -0.01]), atol=1e-10)
    assert np.abs(run.energy_error).max() < 1e-9


def test_forces_of_the_first_mode():
    """Shares and heights by numbers of [Dodge 2000]: of a liquid as deep as the tank is wide, 0.4545 tanh(1.84 h/R) R/h
    moves; the force of the surface and the moment about the bottom follow from the pressure of the mode."""
    h, R = 1.0, 0.5
    model = tank(fill=1.0, radius=R, height=h, density=800.0)
    k, whole = 1.841183781340659 / R, 800.0 * np.pi * R * R * h
    moving = whole * 2 * np.tanh(k * h) / ((1.841183781340659**2 - 1) * k * h)
    assert abs(moving / whole - R / (2.2 * h) * np.tanh(1.84 * h / R)) < 1e-3
    x = 0.01
    force = moving * G * k * np.tanh(k * h) * x
    height = h - (np.cosh(k * h) - 2) / (k * np.sinh(k * h))  # of the pressure on the wall and on the bottom
    reaction = mbs.joint_reactions(model, [x, 0.0], [0.0, 0.0])[0]
    # on the stage at its origin: weights, and the force of the mode at its height above the bottom, at (0.1, 0, -0.3)
    weight = np.array([0.0, 0.0, -G])
    moment = 100.0 * np.cross([0.0, 0.1, 0.2], weight) + whole * np.cross([0.1, 0.0, -0.3 + h / 2], weight)
    moment += np.cross([0.1, 0.0, -0.3 + height], [force, 0.0, 0.0])
    np.testing.assert_allclose(reaction[3:], -(100.0 + whole) * weight - [force, 0.0, 0.0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(reaction[:3], -moment, rtol=1e-9, atol=1e-9)


def test_a_free_stage_conserves_momentum():
    model = tank(mbs.Free(), (0.0, 0.0, 0.0), axis=(0.6, 0.0, 0.8))
    q0 = np.array([0.0, 0, 0, 1, 0, 0, 0, 0.05, -0.03])
    v0 = np.array([0.1, -0.2, 0.05, 0.3, 0.0, 0.1, 0.0, 0.1])
    run = mbs.simulate(model, q0, v0, t_end=3.0, dt=0.005)
    angular, linear = run.momentum_error(model)
    assert np.abs(angular).max() < 1e-6 and np.abs(linear).max() < 1e-6
    assert np.abs(run.energy_error).max() < 1e-6
    assert np.ptp(run.q[:, 7]) > 0.01


def test_a_level_that_falls():
    """At the rate of the flow; the weight on the stand is that of what is left, and the energy balance knows it."""
    model = tank(flow=20.0, density=1000.0, damping=0.02)
    run = mbs.simulate(model, [0.02, 0.0], [0.0, 0.0], t_end=5.0, dt=0.005)
    left = 0.7 - 20.0 * run.t / (1000.0 * np.pi * 0.25)
    np.testing.assert_allclose(run.states["tank.fill"], left, rtol=1e-12)
    assert np.abs(run.energy_error).max() < 1e-8
    late = mbs.set(model, {"tank.fill": run.states["tank.fill"][-1]})
    reaction = mbs.joint_reactions(late, [0.0, 0.0], [0.0, 0.0])[0]
    np.testing.assert_allclose(reaction[5], G * (100.0 + left[-1] * 1000.0 * np.pi * 0.25), rtol=1e-10)


WHOLE = 1000.0 * np.pi * 0.25  # kg in a full tank


@pytest.mark.parametrize("options", [{"dt": 0.05}, {"method": "dop853", "tolerance": 1e-8, "dt": 0.2}])
def test_an_outflow_ends_at_the_residual(options):
    """At its instant, in the middle of a step; then the liquid swings on at the frequency of the level that is left."""
    model = tank(fill=0.05, flow=20.0, residual=0.01)
    run = mbs.simulate(model, [0.001, 0.0], [0.0, 0.0], t_end=4.0, **options)
    end = 0.04 * WHOLE / 20.0
    np.testing.assert_allclose(run.states["tank.fill"], np.maximum(0.05 - 20.0 * run.t / WHOLE, 0.01), atol=1e-9)
    assert int(run.status) == 0 and abs(run.energy_error).max() < 1e-8 and 1.0 < end < 2.0
    k = ROOT / 0.5
    w, after = np.sqrt(G * k * np.tanh(k * 0.01)), np.asarray(run.t > end + 0.01)
    size = np.hypot(run.q[after, 0], run.v[after, 0] / w)
    np.testing.assert_allclose(size, size[0], rtol=1e-4)


def test_an_empty_tank_stays_finite():
    """Down to a millionth; and a tank that begins below the residual does not flow."""
    run = mbs.simulate(tank(fill=0.1, flow=20.0, residual=1e-6), [0.001, 0.0], [0.0, 0.0], t_end=8.0, dt=0.05)
    assert int(run.status) == 0 and np.abs(run.q).max() < 0.1
    np.testing.assert_allclose(run.states["tank.fill"][-1], 1e-6, atol=1e-9)
    run = mbs.simulate(tank(fill=0.0005, flow=20.0), [0.001, 0.0], [0.0, 0.0], t_end=0.1, dt=0.05)
    np.testing.assert_array_equal(run.states["tank.fill"], 0.0005)


@pytest.mark.parametrize("name", ["tank.fill", "tank.flow", "tank.residual"])
def test_derivatives_through_the_end_of_the_outflow(name):
    model = tank(fill=0.05, flow=20.0, residual=0.01)

    def there(x):
        run = mbs.simulate(mbs.set(model, {name: x}), jnp.array([0.01, 0.0]), jnp.zeros(2), t_end=2.0, dt=0.05)
        return run.q[-1, 0] + run.states["tank.fill"][-1]

    there, x = jax.jit(there), float(mbs.get(model, name))
    step = 1e-5 * x
    want = (there(x + step) - there(x - step)) / (2 * step)
    np.testing.assert_allclose(jax.jvp(there, (x,), (1.0,))[1], want, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(there)(x), want, rtol=1e-6)


@pytest.mark.parametrize("fill", [1.5, 0.0, -0.1])
def test_a_level_that_no_tank_has(fill):
    why = "'tank': fill: a tank is full at 1" if fill > 1 else "tank.*fill.* must be more than zero"
    with pytest.raises(mbs.ModelError, match=why):
        tank(fill=fill)
    with pytest.raises(mbs.ModelError, match=why):
        mbs.set(tank(), {"tank.fill": fill})


def test_the_momentum_of_a_tank_that_drains():
    """What leaves has the tank's velocity, so that the tank falls freely; the sum of what is left is not conserved."""
    model = tank(mbs.Free(), flow=20.0)
    q0, v0 = [0.0, 0, 0, 1, 0, 0, 0, 0, 0], [0.0, 0, 0, 0, 0, 2.0, 0, 0]
    run = mbs.simulate(model, q0, v0, t_end=1.0, dt=0.1)
    np.testing.assert_allclose(run.v[:, 5], 2.0 - G * run.t, rtol=1e-9, atol=1e-9)
    with pytest.raises(mbs.ModelError, match=r"mass leaves 'tank' \(20 kg\), and its momentum"):
        run.momentum_error(model)
    angular, linear = jax.jit(lambda run: run.momentum_error(model))(run)
    assert not linear[0].any() and np.isnan(linear[1:]).all() and np.isnan(angular[1:]).all()


def test_a_file(tmp_path):
    model = tank()
    mbs.save(model, tmp_path / "tank.toml")
    again = mbs.load(tmp_path / "tank.toml")
    assert again.body_names == model.body_names == ("stage", "tank_between", "tank_liquid")
    text = (tmp_path / "tank.toml").read_text(encoding="utf-8")
    keys = 'liquid = "tank_liquid"\nalong_x = "tank_x"\nalong_y = "tank_y"\n'
    joints = text.index('[[mechanism.joints]]\nname = "tank_x"'), text.index("[[mechanism.forces]]")
    bodies = text.index('[[mechanism.bodies]]\nname = "tank_between"'), text.index("[[mechanism.joints]]")
    short = text[: bodies[0]] + text[bodies[1] : joints[0]] + text[joints[1] :].replace(keys, "")
    (tmp_path / "short.toml").write_text(short, encoding="utf-8")
    for other in (again, mbs.load(tmp_path / "short.toml")):
        np.testing.assert_allclose(mbs.mass_matrix(other, [0.1, 0.2]), mbs.mass_matrix(model, [0.1, 0.2]), rtol=1e-13)


def test_a_tank_takes_arrays():
    built = []
    for vector in (tuple, np.array, list):
        mech = mbs.Mechanism("tank")
        mech.add_body("stage", mass=100.0, inertia=(50.0, 50.0, 20.0))
        mech.add_joint("stand", mbs.Fixed(), "world", "stage")
        mech.add_force("tank", mbs.Slosh("stage", point=vector((0.0, 0.1, 0.0)), axis=vector((0.0, 0.0, 1.0))))
        built.append(mech.build())
    assert len({model.structure for model in built}) == 1 and built[0] == built[1] == built[2]
