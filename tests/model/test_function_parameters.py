"""Numbers of user-defined functions are parameters of the model."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs

FUNCTIONS = """
import jax.numpy as jnp

def drag(model, t, q, v, parameters):
    return -parameters["cd"] * v * jnp.abs(v)

def ratio(model, t, q, v, parameters):
    return q[1] - parameters["ratio"] * q[0]

def fast(model, t, q, v, parameters):
    return v[0] - parameters["limit"]

def law(model, t, q, v, state, readings, parameters):
    kp, kd = parameters["gains"]
    return state, -kp * q[0] - kd * v[0]
"""


def drag(model, t, q, v, parameters):
    return -parameters["cd"] * v * jnp.abs(v)


def pendulum(**added):
    mech = mbs.library.double_pendulum()
    for name, x in added.items():
        add = {mbs.External: mech.add_force, mbs.Holonomic: mech.add_constraint, mbs.Controller: mech.add_controller}
        add[type(x)](name, x)
    return mech


def test_a_force_takes_its_parameters():
    """Those of the model: set, varied, differentiated; two elements with one function have numbers of their own."""
    mech = pendulum(
        air=mbs.External(drag, parameters={"cd": 0.5}), water=mbs.External(drag, parameters={"cd": [2.0, 3.0]})
    )
    model, q, v = mech.build(), jnp.array([0.1, 0.2]), jnp.array([1.0, -2.0])
    bare = pendulum().build()
    given = mbs.bias_forces(model, q, v) - mbs.bias_forces(bare, q, v)
    np.testing.assert_allclose(given, np.array([2.5, 3.5]) * v * abs(v), rtol=1e-12)
    assert mbs.get(model, "air.cd") == 0.5 and mbs.get(model, "water.cd").tolist() == [2.0, 3.0]
    batch, axes = mbs.vary(model, {"air.cd": jnp.array([0.0, 1.0, 4.0])})
    work = jax.vmap(lambda m: v @ mbs.bias_forces(m, q, v), in_axes=(axes,))(batch)
    np.testing.assert_allclose(np.diff(work), np.array([1.0, 3.0]) * np.sum(abs(v) ** 3), rtol=1e-12)

    def end(cd):
        return mbs.simulate(mbs.set(model, {"air.cd": cd}), q, v, t_end=0.2, dt=0.02).q[-1, 0]

    step = 1e-5
    slope = (end(0.5 + step) - end(0.5 - step)) / (2 * step)
    for of in (jax.grad, jax.jacfwd):
        np.testing.assert_allclose(of(end)(0.5), slope, rtol=1e-7)


def test_constraints_events_and_controllers_take_parameters():
    law = lambda model, t, q, v, state, readings, parameters: (state, -parameters["gain"] * q[0])  # noqa: E731
    mech = pendulum(tie=mbs.Holonomic(lambda model, t, q, v, parameters: q[1] - parameters["ratio"] * q[0],
                                      parameters={"ratio": 2.0}))  # fmt: skip
    a = mbs.constrained_dynamics(mbs.set(mech.build(), {"tie.ratio": 3.0}), jnp.zeros(2), jnp.array([1.0, 3.0]))[0]
    assert abs(a[1] - 3 * a[0]) < 1e-12
    mech = mbs.library.double_pendulum()
    fast = mbs.When(lambda model, t, q, v, parameters: v[0] - parameters["limit"], parameters={"limit": 1.0})
    mech.add_event("fast", fast, mbs.Finish())
    for limit in (1.0, 2.0):
        run = mbs.simulate(mbs.set(mech.build(), {"fast.limit": limit}), [-2.0, 0.0], [0.0, 0.0], t_end=2.0, dt=0.01)
        assert abs(run.v[-1, 0] - limit) < 1e-10
    mech = mbs.library.double_pendulum()
    mech.add_force("drive", mbs.JointSpring("shoulder", stiffness=1.0))
    mech.add_controller(
        "law", mbs.Controller(law, period=0.1, writes="drive.rest_coordinate", parameters={"gain": 2.0})
    )

    def end(gain):
        model = mbs.set(mech.build(), {"law.gain": gain})
        return mbs.simulate(model, [0.3, 0.0], [0.0, 0.0], t_end=0.5, dt=0.05).q[-1, 0]

    step = 1e-5
    slope = (end(2.0 + step) - end(2.0 - step)) / (2 * step)
    assert abs(slope) > 1e-3
    np.testing.assert_allclose(jax.jacfwd(end)(2.0), slope, rtol=1e-7)
    np.testing.assert_allclose(jax.grad(end)(2.0), slope, rtol=1e-7)


FILE = """
modules = ["functions.py"]
[mechanism]
[[mechanism.bodies]]
name = "arm"
mass = 2.0
com = [0, 0, -0.5]
inertia = [0.2, 0.2, 0.01]
[[mechanism.bodies]]
name = "hand"
mass = 1.0
com = [0, 0, -0.5]
inertia = [0.1, 0.1, 0.01]
[[mechanism.joints]]
name = "a"
type = "revolute"
axis = [0, 1, 0]
parent = "world"
child = "arm"
[[mechanism.joints]]
name = "b"
type = "revolute"
axis = [0, 1, 0]
parent = "arm"
child = "hand"
[[mechanism.forces]]
name = "air"
type = "external"
fn = "functions.drag"
parameters = {cd = 0.5}
[[mechanism.forces]]
name = "drive"
type = "joint_spring"
joint = "a"
stiffness = 1.0
[[mechanism.constraints]]
name = "tie"
type = "holonomic"
fn = "functions.ratio"
parameters = {ratio = 1.5}
[[mechanism.controllers]]
name = "law"
fn = "functions.law"
period = 0.1
writes = ["drive.rest_coordinate"]
parameters = {gains = [2.0, 0.5]}
[[mechanism.events]]
name = "fast"
when = {type = "when", fn = "functions.fast", parameters = {limit = 2.0}}
then = [{type = "finish"}]
"""


def test_files_have_parameters_of_functions(tmp_path):
    (tmp_path / "functions.py").write_text(FUNCTIONS, encoding="utf-8")
    (tmp_path / "arm.toml").write_text(FILE, encoding="utf-8")
    model = mbs.load(tmp_path / "arm.toml", trust=True)
    assert (mbs.get(model, "air.cd"), mbs.get(model, "tie.ratio"), mbs.get(model, "fast.limit")) == (0.5, 1.5, 2.0)
    assert mbs.get(model, "law.gains").tolist() == [2.0, 0.5]
    changed = mbs.set(model, {"air.cd": 0.7, "law.gains": (1.0, 0.25)})
    (tmp_path / "back").mkdir()
    mbs.save(changed, tmp_path / "back" / "arm.toml")
    back = mbs.load(tmp_path / "back" / "arm.toml", trust=True)
    assert back.parameter_names == model.parameter_names
    for name in ("air.cd", "law.gains", "tie.ratio"):
        assert np.array_equal(mbs.get(back, name), mbs.get(changed, name))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"point": 1.0}, "'point' is a field of External; choose another name"),
        ({"a b": 1.0}, "'a b' is not a name; choose another name"),
        ({"cd": [[1.0]]}, "'cd' is \\[\\[1.0\\]\\]; pass a number or a list of numbers"),
        ({"cd": []}, "pass a number or a list of numbers"),
        (1.2, "parameters is 1.2; pass numbers by name"),
        ({"cd": float("nan")}, "force 'air': cd: nan has a value that is not finite"),
        ({"cd": "thick"}, "force 'air': cd: 'thick' is not a number"),
    ],
)
def test_wrong_parameters_are_refused(given, said):
    with pytest.raises(mbs.ModelError, match=said):
        pendulum(air=mbs.External(drag, parameters=given))


def test_parameters_that_nothing_takes_are_refused():
    with pytest.raises(mbs.ModelError, match="takes no `parameters`, but has \\['cd'\\]; add the argument"):
        mbs.External(lambda model, t, q, v: v, parameters={"cd": 1.0})
