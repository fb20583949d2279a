"""Forces of functions along a line, against the library's springs, dampers and cables."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import relative

ENDS = {"body_a": "lower", "body_b": "world", "point_a": (0.1, 0.0, -1.0), "point_b": (0.4, 0.0, 1.0)}
Q, V = np.array([0.4, -0.7]), np.array([1.2, 0.5])


def stored(length, parameters):
    return 0.5 * parameters["stiffness"] * (length - parameters["rest_length"]) ** 2


def damper(length, rate, parameters):
    return parameters["damping"] * rate


NUMBERS = {"stiffness": 80.0, "rest_length": 0.5, "damping": 3.0}


def pendulum(strut):
    mech = mbs.library.double_pendulum()
    mech.add_force("strut", strut)
    return mech.build()


def of_functions(**fields):
    return pendulum(mbs.LineForce(**ENDS, **{"energy": stored, "pull": damper, "parameters": NUMBERS, **fields}))


SPRING = mbs.LinearSpring(**ENDS, **NUMBERS)


def test_functions_of_a_spring_are_that_spring():
    """Its accelerations, its energy, and the force that it applies."""
    mine, spring = of_functions(), pendulum(SPRING)
    assert relative(mbs.forward_dynamics(mine, Q, V), mbs.forward_dynamics(spring, Q, V)) < 1e-13
    np.testing.assert_allclose(mbs.energy(mine, Q, V), mbs.energy(spring, Q, V), rtol=1e-13)
    forces = [mbs.element_forces(m, Q, V)["strut"].wrenches for m in (mine, spring)]
    np.testing.assert_allclose(forces[0], forces[1], rtol=1e-12)


def slider(strut):
    mech = mbs.Mechanism("slider", gravity=(0.0, 0.0, 0.0))
    mech.add_body("b", 2.0, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("x", mbs.Prismatic(axis=(1, 0, 0)), "world", "b")
    mech.add_force("strut", strut)
    return mech.build()


def test_motions_and_their_derivatives_are_those_of_the_spring():
    """With respect to all numbers, in both modes; the energy balance knows what is stored and what is lost."""
    mine = slider(mbs.LineForce("world", "b", energy=stored, pull=damper, parameters=NUMBERS))
    spring = slider(mbs.LinearSpring("world", "b", **NUMBERS))

    def run(model, x):
        model = mbs.set(model, dict(zip([f"strut.{n}" for n in NUMBERS], x, strict=True)))
        return mbs.simulate(model, [0.9], [-0.3], t_end=0.2, dt=0.01)

    x = jnp.array([*NUMBERS.values()])
    for derivative in (jax.jacfwd, jax.jacrev):
        found, want = (derivative(lambda x, model=model: run(model, x).q[-1])(x) for model in (mine, spring))
        np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-13)
    found, want = run(mine, x), run(spring, x)
    np.testing.assert_allclose(found.energy_error, want.energy_error, atol=1e-12)
    np.testing.assert_allclose(found.energy_exchanged, want.energy_exchanged, rtol=1e-11)


def test_in_batches_and_in_single_precision():
    model, spring = of_functions(), pendulum(SPRING)
    q, v = np.random.default_rng(0).normal(size=(2, 40, 2))
    want = jax.vmap(lambda q, v: mbs.forward_dynamics(spring, q, v))(q, v)
    for fn in (jax.vmap(mbs.forward_dynamics, (None, 0, 0)), mbs.jit(mbs.forward_dynamics, in_axes=(None, 0, 0))):
        np.testing.assert_allclose(fn(model, q, v), want, rtol=1e-11, atol=1e-11)
    single = fn(model, q.astype(np.float32), v.astype(np.float32))
    assert single.dtype == jnp.float32 and relative(single, want) < 1e-5


def test_one_function_is_enough():
    """Pull alone: the same accelerations, and its work counts as power; energy alone: a spring without damper."""
    alone = mbs.LineForce(**ENDS, pull=lambda length, rate: 80.0 * (length - 0.5) + 3.0 * rate)
    assert relative(mbs.forward_dynamics(pendulum(alone), Q, V), mbs.forward_dynamics(pendulum(SPRING), Q, V)) < 1e-13
    run = mbs.simulate(pendulum(alone), Q, V, t_end=0.2, dt=0.001)
    assert np.abs(run.energy_error).max() < 1e-7 < abs(run.energy_exchanged)
    numbers = {n: NUMBERS[n] for n in ("stiffness", "rest_length")}
    free, spring = mbs.LineForce(**ENDS, energy=stored, parameters=numbers), mbs.LinearSpring(**ENDS, **numbers)
    assert relative(mbs.forward_dynamics(pendulum(free), Q, V), mbs.forward_dynamics(pendulum(spring), Q, V)) < 1e-13


def test_a_run_ends_a_step_at_its_corners():
    """A rope that lets go, in closed form: an oscillation, then free flight at its speed; and the derivative."""
    mass, k, rest, start, t_end = 2.0, 50.0, 1.0, 1.2, 0.7

    def taut(length, rate, parameters):
        return jnp.where(length > parameters["rest"], k * (length - parameters["rest"]), 0.0)

    def slack(length, rate, parameters):
        return length - parameters["rest"]

    model = slider(mbs.LineForce("world", "b", pull=taut, parameters={"rest": rest}, surfaces=[slack]))

    def after(x):
        return mbs.simulate(mbs.set(model, {"strut.rest": x}), [start], [0.0], t_end=t_end, dt=0.004).q[-1, 0]

    def closed(x):
        w = np.sqrt(k / mass)
        return x - w * (start - x) * (t_end - np.pi / 2 / w)

    found, slope = jax.jvp(after, (rest,), (1.0,))
    np.testing.assert_allclose(found, closed(rest), rtol=1e-8)
    np.testing.assert_allclose(slope, (closed(rest + 1e-4) - closed(rest - 1e-4)) / 2e-4, rtol=1e-7)


def test_at_zero_length_all_derivatives_are_finite():
    ends = ENDS | {"point_a": (0.0, 0.0, -1.0), "point_b": (0.0, 0.0, -2.0)}
    model = pendulum(mbs.LineForce(**ends, energy=stored, pull=damper, parameters=NUMBERS))
    both = jax.jacfwd(mbs.forward_dynamics, (1, 2))(model, jnp.zeros(2), jnp.zeros(2))
    assert all(np.isfinite(x).all() for x in (*both, mbs.forward_dynamics(model, [0.0, 0.0], [0.0, 0.0])))


def test_in_a_file(tmp_path):
    mech = mbs.library.double_pendulum()
    mech.add_force("strut", mbs.LineForce(**ENDS, energy=stored, pull=damper, parameters=NUMBERS))
    (tmp_path / "springs.py").write_text(
        "def stored(length, parameters):\n"
        "    return 0.5 * parameters['stiffness'] * (length - parameters['rest_length']) ** 2\n\n"
        "def damper(length, rate, parameters):\n    return parameters['damping'] * rate\n",
        encoding="utf-8",
    )  # fmt: skip
    mbs.save(mbs.library.double_pendulum().build(), tmp_path / "m.toml")
    text = (tmp_path / "m.toml").read_text(encoding="utf-8")
    strut = (
        '\n[[mechanism.forces]]\nname = "strut"\ntype = "line_force"\nbody_a = "lower"\nbody_b = "world"\n'
        'point_a = [0.1, 0.0, -1.0]\npoint_b = [0.4, 0.0, 1.0]\nenergy = "springs.stored"\npull = "springs.damper"\n'
        "parameters = { stiffness = 80.0, rest_length = 0.5, damping = 3.0 }\n"
    )
    (tmp_path / "m.toml").write_text('modules = ["springs.py"]\n' + text + strut, encoding="utf-8")
    model = mbs.load(tmp_path / "m.toml", trust=True)
    want = mbs.forward_dynamics(mech.build(), Q, V)
    assert relative(mbs.forward_dynamics(model, Q, V), want) < 1e-13
    mbs.save(mbs.set(model, {"strut.damping": 4.0}), tmp_path / "saved.toml")
    saved = mbs.load(tmp_path / "saved.toml", trust=True)
    assert mbs.get(saved, "strut.damping") == 4.0
    assert relative(mbs.energy(saved, Q, V), mbs.energy(model, Q, V)) < 1e-13


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"energy": None, "pull": None}, "both functions are missing"),
        ({"surfaces": damper}, "surfaces is a single function"),
        ({"energy": lambda length, rate: 0.0}, "energy"),
        ({"pull": lambda rate, length: 0.0}, "change their order"),
        ({"pull": 3.0}, "pull is 3.0"),
        ({"parameters": {**NUMBERS, "body_a": 1.0}}, "is a field of LineForce"),
    ],
)
def test_what_is_refused(fields, says):
    with pytest.raises(mbs.ModelError, match=says):
        of_functions(**fields)


def test_a_function_that_returns_something_else():
    model = of_functions(
        pull=lambda length, rate: jnp.ones(2), parameters={n: NUMBERS[n] for n in ("stiffness", "rest_length")}
    )
    with pytest.raises(mbs.ModelError, match=r"LineForce: pull returned an array \(2,\)"):
        mbs.forward_dynamics(model, Q, V)
