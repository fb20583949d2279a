"""Studies of mechanisms with memory: motors, sensors with noise, controllers that sample."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.study import Normal, Study, outputs, run
from jaxmbs.study.reliability.rare import limit_state_of
from jaxmbs.study.reports.motion import motion
from jaxmbs.study.samples.repeat import repeat
from tests.study import damping


@pytest.fixture(scope="module")
def study():
    """A rocket that turns about a hinge, burns its propellant and is damped through a noisy gyroscope."""
    mech = mbs.Mechanism("rocket", gravity=(0.0, 0.0, 0.0))
    mech.add_body("stage", mass=100.0, inertia=(10.0, 10.0, 1.0))
    mech.add_joint("hinge", mbs.Revolute(axis=(0, 1, 0)), "world", "stage")
    mech.add_force("motor", mbs.Motor("stage", thrust=100.0, specific_impulse=200.0, propellant=0.025))
    mech.add_force("damper", mbs.TorsionSpring("hinge", stiffness=1.0))
    mech.add_sensor("imu", mbs.Imu("stage", noise=(0.0, 0.01, 0.0)))
    mech.add_controller("law", mbs.Controller(damping.law, 0.05, state=[0.0], reads="imu", writes="damper.rest_angle"))
    return Study(
        model=mech.build(),
        initial={"hinge": {"v": [0.1]}},
        simulation={"t_end": 0.5, "dt": 0.01},
        dispersions={"motor.propellant": Normal(apply="multiply", std=0.1)},
        outputs={
            "left": outputs.ElementState("motor.propellant"),
            "samples": outputs.ElementState("law.state"),
            "command": outputs.ElementState("damper.rest_angle"),
            "rate": outputs.JointVelocity("hinge"),
        },
        criteria=["rate < 1 rad/s"],
        study={"seed": 5},
        modules=[damping],
    )


def test_samples_have_noise_of_their_own(study, tmp_path):
    """The same in runs of any size, in the history of the sample, and in its motion."""
    one, other = (run(study, n, tmp_path / f"{n}", 64).arrays() for n in (8, 70))
    names = ("left", "samples", "command", "rate")
    for name in names:
        np.testing.assert_array_equal(np.asarray(one[name][:8]), np.asarray(other[name][:8]))
    commands = np.asarray(other["command"][:70])
    assert len(set(commands.tolist())) == 70 and np.all(np.asarray(one["samples"][:8]) == 10)
    drawn = np.asarray(other["motor.propellant"][:70])
    flow = 100 / (200 * 9.80665)
    np.testing.assert_allclose(other["left"][:70], np.maximum(0, 0.025 * drawn - 0.5 * flow), rtol=1e-6, atol=1e-12)
    history = repeat(study, [3, 65])
    for name in names:
        np.testing.assert_allclose(history.outputs[name], np.asarray(other[name][:])[[3, 65]], rtol=1e-6)
        np.testing.assert_allclose(history.values[name][:, -1], history.outputs[name], rtol=1e-6)
    _, moved = motion(study, 65)
    np.testing.assert_allclose(moved.v[-1, 0], history.outputs["rate"][1], rtol=1e-5)


def test_noise_is_no_input_of_a_search(study):
    with pytest.raises(InputError, match="noise of sensors"):
        limit_state_of(study, study.criteria[0])


def test_a_state_that_is_not_there(study):
    parts = {"model": study.model, "simulation": study.simulation, "outputs": {"x": outputs.ElementState("motor.fuel")}}
    with pytest.raises(InputError, match=r'no state "motor\.fuel"'):
        Study(**parts)
    parts["outputs"] = {"x": outputs.ElementState("law.state", component=1)}
    with pytest.raises(InputError, match="component"):
        Study(**parts)
