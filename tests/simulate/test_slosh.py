"""Liquid in a tank: frequency, forces on the tank, momentum and energy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ellipk, jn_zeros, jnp_zeros

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


@pytest.mark.slow
def test_derivatives_through_the_end_of_the_outflow():
    model, names = tank(fill=0.05, flow=20.0, residual=0.01), ("tank.fill", "tank.flow", "tank.residual")

    @jax.jit
    def there(x):
        changed = mbs.set(model, dict(zip(names, x, strict=True)))
        run = mbs.simulate(changed, jnp.array([0.01, 0.0]), jnp.zeros(2), t_end=1.8, dt=0.1)
        return jnp.stack([run.q[-1, 0], run.states["tank.fill"][-1]])

    x = np.array([0.05, 20.0, 0.01])
    steps = np.diag(1e-5 * x)
    want = np.stack([(there(x + h) - there(x - h)) / (2 * h.sum()) for h in steps], axis=1)
    np.testing.assert_allclose(jax.jacfwd(there)(x), want, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(jax.jacrev(there)(x), want, rtol=1e-5, atol=1e-8)


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


def of_the_pressure(side, other, h):
    """(moving mass, height of the force of the pressure, square of the frequency at 1 m/s2) of the first mode between two
    walls, for the density 1, by integrals over the potential sin(k x) cosh(k z): P²/(2 T) of its momentum P and energy T,
    and the moment of the pressure on walls and bottom over its force."""
    k = np.pi / side
    width = quad(lambda x: np.cos(k * x), -side / 2, side / 2)[0]
    momentum = other * k * width * quad(lambda z: np.cosh(k * z), 0, h)[0]
    surface = quad(lambda x: np.sin(k * x) ** 2, -side / 2, side / 2)[0]
    twice = other * k * np.sinh(k * h) * np.cosh(k * h) * surface  # the energy is half of that on the surface [Green]
    walls = [2 * quad(lambda z, n=n: z**n * np.cosh(k * z), 0, h)[0] for n in (0, 1)]
    bottom = quad(lambda x: x * np.sin(k * x), -side / 2, side / 2)[0]
    return momentum**2 / twice, (walls[1] + bottom) / walls[0], k * np.sinh(k * h) / np.cosh(k * h)


def rectangle(joint=None, side_x=1.3, side_y=0.8, **given):
    return tank(joint, shape="rectangle", side_x=side_x, side_y=side_y, fill=0.6, **given)


def test_a_rectangle_has_two_modes():
    """Each with the mass and height of its pressure; as a whole, the inertia of the frozen liquid across the axis."""
    side_x, side_y, h = 1.3, 0.8, 0.6
    whole = 1000.0 * side_x * side_y * h
    M = np.asarray(mbs.mass_matrix(rectangle(mbs.Free()), [0.0, 0, 0, 1, 0, 0, 0, 0, 0]))
    (mx, zx, wx), (my, zy, wy) = (of_the_pressure(*sides, h) for sides in ((side_x, side_y), (side_y, side_x)))
    np.testing.assert_allclose(np.diag(M)[6:], [1000.0 * mx, 1000.0 * my], rtol=1e-10)
    np.testing.assert_allclose([M[3, 6], M[4, 7], M[6, 7], M[4, 6], M[3, 7]], [1e3 * mx, 1e3 * my, 0, 0, 0], atol=1e-9)
    # the pressure acts higher than the mass is, by a / w², because the weight of the mass acts where it is
    np.testing.assert_allclose(M[1, 6] / M[6, 6], zx - 1 / wx - 0.3, rtol=1e-10)
    np.testing.assert_allclose(-M[0, 7] / M[7, 7], zy - 1 / wy - 0.3, rtol=1e-10)
    np.testing.assert_allclose(np.diag(M)[3:6], 100.0 + whole, rtol=1e-12)
    stage = np.array([50.0, 60.0]) + 100.0 * np.array([0.1**2 + 0.2**2, 0.2**2])
    liquid = whole * (np.array([side_y**2 + h * h, side_x**2 + h * h]) / 12 + np.array([0.0, 0.1**2]))
    np.testing.assert_allclose(np.diag(M)[:2], stage + liquid, rtol=1e-12)
    assert np.linalg.eigvalsh(M).min() > 0


def test_the_moving_mass_of_a_rectangle_shallow_and_deep():
    """8 tanh(pi h / a) / (pi³ h / a) of the liquid: all modes (odd multiples of pi / a) of a shallow liquid are all of it,
    in a deep one the mass no longer grows and the square of the frequency is a k [Graham and Rodriguez 1952]."""
    odd = np.arange(1, 200001, 2)
    shallow = mbs.set(rectangle(), {"tank.fill": 1e-4})
    moving = np.diag(mbs.mass_matrix(shallow, [0.0, 0.0]))
    np.testing.assert_allclose(moving * (1.0 / odd**2).sum(), 0.1 * 0.8 * 1.3, rtol=1e-5)
    deep = mbs.set(rectangle(), {"tank.height": 20.0})
    np.testing.assert_allclose(
        np.diag(mbs.mass_matrix(deep, [0.0, 0.0])), 8 / np.pi**3 * 1040.0 * np.array([1.3, 0.8]), rtol=1e-12
    )
    frequency = 2 * np.pi * np.asarray(mbs.modes(deep, [0.0, 0.0]).frequency)
    np.testing.assert_allclose(np.unique(frequency.round(9)), np.sqrt(G * np.pi / np.array([1.3, 0.8])), rtol=1e-8)


def test_a_rectangle_with_equal_sides_is_a_box():
    q = [0.3, -0.2, 0.1, 1, 0, 0, 0, 0.1, -0.2]
    axis = (0.6, 0.0, 0.8)
    square = rectangle(mbs.Free(), 1.0, 1.0, axis=axis)
    box = tank(mbs.Free(), shape="box", fill=0.6, axis=axis)
    np.testing.assert_allclose(mbs.mass_matrix(square, q), mbs.mass_matrix(box, q), rtol=1e-12, atol=1e-11)


def test_a_rectangle_swings_at_two_frequencies():
    model = rectangle()
    run = mbs.simulate(model, [0.02, -0.01], [0.0, 0.0], t_end=2.0, dt=0.005)
    w = np.sqrt(G * np.array([of_the_pressure(1.3, 0.8, 0.6)[2], of_the_pressure(0.8, 1.3, 0.6)[2]]))
    np.testing.assert_allclose(run.q, np.cos(np.outer(run.t, w)) * [0.02, -0.01], atol=1e-7)
    assert np.abs(run.energy_error).max() < 1e-7


def test_a_free_stage_with_a_rectangle_conserves_momentum():
    along = (0.8, 0.3, -0.6)
    model = rectangle(mbs.Free(), gravity=(0.0, 0.0, 0.0), axis=(0.6, 0.0, 0.8), along=along)
    v0 = [0.1, -0.2, 0.05, 0.3, 0.0, 0.1, 0.0, 0.1]
    run = mbs.simulate(model, [0.0, 0, 0, 1, 0, 0, 0, 0.05, -0.03], v0, t_end=0.5, dt=0.005)
    for error in (*run.momentum_error(model), run.energy_error):
        assert np.abs(error).max() < 1e-6
    assert np.ptp(run.q[:, 7]) > 0.01 and np.ptp(run.q[:, 8]) > 0.01


def test_the_longer_side_of_a_rectangle_is_where_it_is_said():
    """Along y of the body: as the other tank with both axes exchanged."""
    turned = np.asarray(mbs.mass_matrix(rectangle(mbs.Free(), along=(0, 3, 1)), [0.0, 0, 0, 1, 0, 0, 0, 0, 0]))
    plain = np.asarray(mbs.mass_matrix(rectangle(mbs.Free()), [0.0, 0, 0, 1, 0, 0, 0, 0, 0]))
    np.testing.assert_allclose(turned[4, [6, 7]], [plain[3, 6], 0.0], atol=1e-9)
    np.testing.assert_allclose(turned[3, [6, 7]], [0.0, -plain[4, 7]], atol=1e-9)
    with pytest.raises(mbs.ModelError, match="'tank': side_x must not be shorter than side_y"):
        rectangle(side_x=0.7)
    with pytest.raises(mbs.ModelError, match="'tank': along lies along the tank's axis"):
        rectangle(along=(0, 0, 2))


def test_a_file_of_a_rectangle(tmp_path):
    model = rectangle(along=(0.0, 1.0, 0.0))
    mbs.save(model, tmp_path / "tank.toml")
    text = (tmp_path / "tank.toml").read_text(encoding="utf-8")
    again = mbs.load(tmp_path / "tank.toml")
    np.testing.assert_allclose(mbs.mass_matrix(again, [0.1, 0.2]), mbs.mass_matrix(model, [0.1, 0.2]), rtol=1e-13)
    line = 'between = "tank_between"\n'
    assert line in text
    (tmp_path / "short.toml").write_text(text.replace(line, ""), encoding="utf-8")
    with pytest.raises(mbs.ModelError, match="'tank': between is missing"):
        mbs.load(tmp_path / "short.toml")


def pendulum(joint=None, **given):
    return tank(joint, model="pendulum", fill=0.6, **given)


def length_of_the_pendulum(h=0.6):
    k = jnp_zeros(1, 1)[0] / 0.5
    return 1 / (k * np.tanh(k * h))


@pytest.mark.parametrize("g", [1.62, 4 * 9.81])
def test_the_period_of_the_pendulum(g):
    """4 sqrt(L / g) K(sin(angle / 2)), also of large swings: with the gravity that there is, not with the given one."""
    L, start = length_of_the_pendulum(), 1.0
    period = 4 * np.sqrt(L / g) * ellipk(np.sin(start / 2) ** 2)
    run = mbs.simulate(pendulum(gravity=(0, 0, -g)), [0.0, start], [0.0, 0.0], t_end=period, dt=period / 400)
    np.testing.assert_allclose(run.q[-1], [0.0, start], atol=1e-7)
    np.testing.assert_allclose(run.q[100, 1], 0.0, atol=1e-7)
    assert np.abs(run.energy_error).max() < 1e-6


def test_the_pendulum_pushes_as_the_spring_does():
    """For small motions: the same frequency, reaction of the stand, and mass matrix of a free stage."""
    hung, sprung, L = pendulum(), tank(fill=0.6), length_of_the_pendulum()
    x, v = np.array([1e-7, -2e-7]), np.array([3e-7, 1e-7])
    np.testing.assert_allclose(
        mbs.joint_reactions(hung, x / L, v / L)[0] - mbs.joint_reactions(hung, 0 * x, 0 * x)[0],
        mbs.joint_reactions(sprung, x, v)[0] - mbs.joint_reactions(sprung, 0 * x, 0 * x)[0],
        rtol=1e-5, atol=1e-8,
    )  # fmt: skip
    np.testing.assert_allclose(
        mbs.modes(hung, [0.0, 0.0]).frequency, mbs.modes(sprung, [0.0, 0.0]).frequency, rtol=1e-9
    )
    rest = [0.3, -0.2, 0.1, 1, 0, 0, 0, 0, 0]
    given = {"axis": (0.6, 0.0, 0.8)}
    M, N = (
        np.asarray(mbs.mass_matrix(m, rest))
        for m in (pendulum(mbs.Free(), **given), tank(mbs.Free(), fill=0.6, **given))
    )
    scale = np.array([1, 1, 1, 1, 1, 1, L, L])
    np.testing.assert_allclose(M, N * np.outer(scale, scale), rtol=1e-9, atol=1e-9)


def test_a_free_stage_with_a_pendulum_conserves_momentum():
    model = pendulum(mbs.Free(), gravity=(0.0, 0.0, 0.0), axis=(0.6, 0.0, 0.8))
    v0 = [0.1, -0.2, 0.05, 0.3, 0.0, 0.1, 0.4, 0.6]
    run = mbs.simulate(model, [0.0, 0, 0, 1, 0, 0, 0, 0.3, -0.1], v0, t_end=1.0, dt=0.01)
    for error in (*run.momentum_error(model), run.energy_error):
        assert np.abs(error).max() < 1e-5
    assert np.ptp(run.q[:, 7]) > 0.1 and np.ptp(run.q[:, 8]) > 0.1


def test_damping_of_a_pendulum():
    """A share of critical damping at the given acceleration, and the energy balance knows it."""
    model = pendulum(damping=0.05)
    run = mbs.simulate(model, [1e-4, 0.0], [0.0, 0.0], t_end=3.0, dt=0.01)
    w = np.sqrt(G / length_of_the_pendulum())
    damped = w * np.sqrt(1 - 0.05**2)
    want = 1e-4 * np.exp(-0.05 * w * run.t) * (np.cos(damped * run.t) + 0.05 * w / damped * np.sin(damped * run.t))
    np.testing.assert_allclose(run.q[:, 0], want, atol=1e-9)
    assert np.abs(run.energy_error).max() < 1e-9


def test_a_pendulum_keeps_its_level(tmp_path):
    model = pendulum(axis=(0.0, 0.6, 0.8))
    mbs.save(model, tmp_path / "tank.toml")
    again = mbs.load(tmp_path / "tank.toml")
    np.testing.assert_allclose(mbs.mass_matrix(again, [0.1, 0.2]), mbs.mass_matrix(model, [0.1, 0.2]), rtol=1e-12)
    mbs.set(model, {"tank.density": 800.0, "tank.fill": 0.6})
    for changed in ({"tank.fill": 0.5}, {"tank.radius": 0.4}):
        with pytest.raises(mbs.ModelError, match="'tank': the pendulum's hinge belongs to"):
            mbs.set(model, changed)
    with pytest.raises(mbs.ModelError, match="'tank': flow: the pendulum's hinge"):
        pendulum(flow=1.0)
    for fails in (lambda x: pendulum(flow=x).numbers, lambda x: mbs.set(pendulum(), {"tank.flow": x}).overrides):
        with pytest.raises(mbs.ModelError, match="'tank': flow: the pendulum's hinge"):
            jax.eval_shape(fails, 0.0)
    with pytest.raises(mbs.ModelError, match="'tank': the pendulums of a rectangle"):
        rectangle(model="pendulum")


@pytest.mark.parametrize("make", [rectangle, pendulum])
def test_derivatives_of_accelerations(make):
    model, names = (
        make(mbs.Free(), axis=(0.6, 0.0, 0.8), damping=0.05),
        ("fill", "density", "damping", "side_x", "side_y"),
    )
    q = jnp.array([0.0, 0, 0, 0.8, 0.6, 0, 0, 0.05, -0.03])
    v = jnp.array([0.1, -0.2, 0.05, 0.3, 0.0, 0.1, 0.4, 0.1])

    @jax.jit
    def accelerations(x):
        changed = mbs.set(model, {f"tank.{name}": y for name, y in zip(names, x, strict=True)})
        return mbs.forward_dynamics(changed, q, v)

    x = np.array([float(mbs.get(model, f"tank.{name}")) for name in names])
    want = np.stack([(accelerations(x + h) - accelerations(x - h)) / (2 * h.sum()) for h in np.diag(1e-5 * x)], axis=1)
    for derivative in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(derivative(accelerations)(x), want, rtol=1e-6, atol=1e-7)


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


@pytest.mark.parametrize(("key", "value"), [("axis", 1.0), ("along", 1.0), ("point", [1.0]), ("axis", (0, 0))])
def test_a_place_or_an_axis_that_is_none(key, value):
    with pytest.raises(mbs.ModelError, match=f"force 'tank': {key}: .*; pass 3 numbers"):
        tank(**{key: value})


def test_a_tank_takes_arrays():
    built = []
    for vector in (tuple, np.array, list, jnp.array):
        mech = mbs.Mechanism("tank")
        mech.add_body("stage", mass=100.0, inertia=(50.0, 50.0, 20.0))
        mech.add_joint("stand", mbs.Fixed(), "world", "stage")
        mech.add_force("tank", mbs.Slosh("stage", point=vector((0.0, 0.1, 0.0)), axis=vector((0.0, 0.0, 1.0))))
        built.append(mech.build())
    assert len({model.structure for model in built}) == 1 and all(model == built[0] for model in built)
