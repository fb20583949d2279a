"""Solutions as labelled data sets."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.model.joints.joints import FORMULAS


@pytest.fixture(scope="module")
def model():
    mech = mbs.Mechanism("release", held="arm")
    mech.add_body("base", 2.0, inertia=(0.2, 0.2, 0.2))
    mech.add_body("arm", 1.0, (0.3, 0, 0), (0.02, 0.1, 0.1))
    mech.add_joint("flight", mbs.Free(), "world", "base")
    mech.add_joint("arm", mbs.Revolute((0, 0, 1)), "base", "arm")
    mech.add_force("coil", mbs.TorsionSpring("arm", stiffness=1.0, rest_angle=1.0))
    mech.add_event("go", mbs.Time(0.05), mbs.Release("arm"))
    mech.add_event("open", mbs.JointReaches("arm", 0.2), mbs.Disable("coil"))
    return mech.build()


@pytest.mark.slow
def test_a_batch_with_names_units_events_and_modes(model):
    q = jnp.tile(model.neutral(), (2, 1))
    times = jnp.array([0.05, 0.25])

    def one(q, time):
        return mbs.simulate(mbs.set(model, {"go.t": time}), q, jnp.zeros(7), 0.4, 0.02)

    runs = jax.jit(jax.vmap(one))(q, times)
    data = runs.to_xarray(model)
    assert dict(data.sizes) == {"sample": 2, "time": 21, "event_number": 2, "freedom": 7, "force_element": 1}
    assert data["time"].attrs["units"] == "s" and data.attrs["mechanism"] == "release"
    for names, x in ((model.coordinates, runs.q), (model.speeds, runs.v)):
        for k, c in enumerate(names):
            assert np.array_equal(data[c.name], x[..., k]) and data[c.name].attrs["units"] == (c.unit or "1")
    assert data["flight.x"].attrs["units"] == "m" and data["flight.qw"].attrs["units"] == "1"
    assert data["event"].values.tolist() == [["go", "open"], ["go", ""]]
    assert (
        np.allclose(data["event_time"].sel(event_number=0), times) and data["event_energy_lost"].attrs["units"] == "J"
    )
    assert data["acting"].sel(force_element="coil").values.tolist() == [False, True]
    assert not data["locked"].sel(freedom="arm.angle_rate").any()
    assert data["status"].attrs["flag_meanings"].split()[:2] == ["ok", "not_finite"]
    assert data["energy_exchanged"].values[0] == pytest.approx(1.0**2 - 0.8**2, rel=1e-6)  # the coil turned by 0.2 rad

    second = jax.tree_util.tree_map(lambda x: x[1], runs)
    angular, linear = second.momentum_error(model)
    assert angular.shape == (21, 3) and max(np.abs(angular).max(), np.abs(linear).max()) < 1e-6
    pushed = replace(second, v=second.v.at[0, 4].add(-0.1))  # a wrong speed of the base along y
    assert np.allclose(pushed.momentum_error(model)[1], [[0, 0, 0]] + [[0, 0.3, 0]] * 20, atol=1e-6)


def test_one_instance_without_events_or_modes(tmp_path):
    model = mbs.library.double_pendulum().build()
    run = mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], 0.2, 0.01)
    data = run.to_xarray(model)
    assert data["elbow.angle"].dims == ("time",) and "event" not in data and "locked" not in data
    data.to_zarr(tmp_path / "run.zarr", consolidated=False)
    with pytest.raises(mbs.ModelError, match="nq = 2, but model 'arm7' has nq = 7"):
        run.to_xarray(mbs.library.arm7().build())
    with pytest.raises(mbs.ModelError, match="'shoulder' may act on model 'double pendulum' from outside"):
        run.momentum_error(model)


@pytest.mark.parametrize("name", FORMULAS)
def test_components_have_names_of_their_own(name):
    joint = FORMULAS[name]
    names = [c.name for c in (*joint.coordinates(), *joint.speeds())]
    assert len(set(names)) == joint.nq + joint.nv
