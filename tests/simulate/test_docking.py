"""Two spacecraft with panels on springs that dock and undock: the bodies of Basilisk's test of its systems of spacecraft.

It asks for the same [Basilisk, test_multiSpacecraft]: energy and both momenta are conserved, here at docking as well,
except for the energy that the plastic impact takes.
"""

import numpy as np

import jaxmbs as mbs


def craft():
    """One flies freely, the other relative to it; they dock 2 m apart, at whatever attitude, and part after 0.8 s."""
    mech = mbs.Mechanism("craft", gravity=(0.0, 0.0, 0.0))
    for k, place in enumerate((mbs.Pose((0.5, 0, 1), np.diag([-1.0, -1.0, 1.0])), mbs.Pose((-0.5, 0, 1)))):
        mech.add_body(f"hub_{k}", mass=100.0, inertia=(500.0, 200.0, 300.0))
        mech.add_joint(("flight", "port")[k], mbs.Free(), ("world", "hub_0")[k], f"hub_{k}")
        mech.add_body(f"panel_{k}", mass=100.0, com=(-1.5, 0, 0), inertia=(100.0, 50.0, 50.0))
        mech.add_joint(f"hinge_{k}", mbs.Revolute(axis=(0, 1, 0)), f"hub_{k}", f"panel_{k}", place)
        mech.add_force(f"spring_{k}", mbs.JointSpring(f"hinge_{k}", stiffness=100.0))
    near = mbs.Distance("hub_0", "hub_1", value=2.0, direction="down")
    mech.add_event("dock", when=near, then=mbs.Lock("port"))
    mech.add_event("undock", when=mbs.Time(0.8), then=mbs.Release("port"))
    return mech.build()


def test_docking_and_undocking_conserve_momentum():
    model = craft()
    q, v = np.array(model.neutral()), np.zeros(model.nv)
    q[model.q_slice("port")][:3] = (2.2, 0.1, 0.0)
    q[model.q_slice("hinge_0")] = np.radians(5.0)
    v[model.v_slice("flight")] = (0.05, -0.04, 0.07, 0.3, 0.0, -0.2)
    v[model.v_slice("port")] = (0.02, 0.1, -0.05, -0.5, 0.05, 0.1)
    run = mbs.simulate(model, q, v, t_end=1.5, dt=0.005)
    assert [model.event_names[k] for k in run.events.index] == ["dock", "undock"]
    assert np.abs(run.energy_error).max() < 1e-9
    angular, linear = run.momentum_error(model)
    assert np.abs(angular).max() < 1e-8 and np.abs(linear).max() < 1e-8
    # of all rates that leave the port at rest, those after the impact are the closest to those before, in the metric of A(q)
    at = run.events.time[0]
    (_, after), (state, before) = (run.at(model, at, before=early) for early in (False, True))
    mass = np.asarray(mbs.mass_matrix(model, state))
    port = np.arange(model.nv)[model.v_slice("port")]
    rest = np.setdiff1d(np.arange(model.nv), port)
    want = np.zeros(model.nv)
    want[rest] = np.linalg.solve(mass[np.ix_(rest, rest)], (mass @ before)[rest])
    np.testing.assert_allclose(after, want, atol=1e-10)
    lost = 0.5 * (before @ mass @ before - want @ mass @ want)
    np.testing.assert_allclose(run.events.energy_lost, [lost, 0.0], rtol=1e-8, atol=1e-10)
    held = (np.asarray(run.t) > at) & (np.asarray(run.t) < 0.8)
    assert not np.any(run.v[held][:, model.v_slice("port")])
    assert np.ptp(run.q[held][:, model.q_slice("port")], axis=0).max() < 1e-12
    assert np.abs(run.v[-1, model.v_slice("port")]).max() > 1e-3  # the springs push them apart again
