"""Motions that diverge are not completed: statuses ask whether a number is within its bound; one not finite never is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.simulate.balance import Balance


@pytest.mark.parametrize("energy", [np.inf, -np.inf, np.nan])
def test_no_balance_is_kept_that_is_not_finite(energy):
    start = Balance.start(jnp.zeros(()), jnp.zeros(()))
    fine = start.seen(jnp.asarray(2.0), jnp.zeros(()))
    assert fine.holds(jnp.asarray(3e-3), jnp.zeros(())) and not fine.holds(jnp.asarray(5e-3), jnp.zeros(()))
    assert not fine.holds(jnp.asarray(energy), jnp.zeros(()))
    assert not start.seen(jnp.asarray(energy), jnp.zeros(())).holds(jnp.asarray(energy), jnp.zeros(()))
    assert not start.seen(jnp.asarray(energy), jnp.zeros(())).holds(jnp.zeros(()), jnp.zeros(()))


@pytest.mark.parametrize("event", [False, True])
def test_none_of_many_stiffnesses_diverges_unsaid(event):
    """Fifty steps of 10 ms of a mass of 1 kg, on springs of 1 to 1e12 N/m."""
    mech = mbs.Mechanism("spring")
    mech.add_body("b", mass=1.0)
    mech.add_joint("x", mbs.Prismatic((1, 0, 0)), "world", "b")
    mech.add_force("spring", mbs.TorsionSpring("x", stiffness=1.0))
    if event:
        mech.add_event("late", mbs.Time(0.499), mbs.Disable("spring"))
    model = mech.build()

    def end(k):
        run = mbs.simulate(mbs.set(model, {"spring.stiffness": k}), [0.1], [0.0], 0.5, 0.01)
        return run.status, jnp.abs(run.q).max()

    status, reach = jax.jit(jax.vmap(end))(jnp.geomspace(1.0, 1e12, 195))
    fine = np.asarray(status) == mbs.Status.OK
    assert fine[0] and reach[fine].max() < 0.11  # the amplitude
    assert (np.asarray(reach) > 1e150).any() and set(np.unique(status)) <= {0, 1, 6}


def test_statuses_print_their_names_and_stay_numbers():
    status = mbs.Status(5)
    assert str(status) == f"{status}" == "UNFINISHED" and f"{status:>12}" == "  UNFINISHED" and f"{status:02d}" == "05"
    assert status == 5 and int(status) == 5 and "max_events" in status.message
    assert str(mbs.design.Status(0)) == mbs.design.Status(0).name
