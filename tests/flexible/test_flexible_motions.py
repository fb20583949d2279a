"""Runs of flexible bodies: conserved quantities, beams of rigid pieces, joints between flexible bodies."""

import numpy as np
import pytest

import jaxmbs as mbs
from tests.flexible.parts import arm, state
from tests.flexible.test_flexible_dynamics import slider_crank


@pytest.mark.parametrize("order", [1, 2])
def test_a_free_body_keeps_energy_and_momentum(order):
    model = arm(order, damping=0.0, gravity=(0, 0, 0), root=mbs.Free()).build()
    q, v, _ = state(model, 1, 0.02)
    run = mbs.simulate(model, q, 0.3 * v, 1.0, dt=0.002, save_every=50)
    energies = np.array([sum(mbs.energy(model, *x)) for x in zip(run.q, run.v, strict=False)])
    assert np.ptp(energies) < 1e-8 * energies[0]
    found = [np.concatenate(mbs.momentum(model, *x)) for x in zip(run.q, run.v, strict=False)]
    assert np.abs(np.ptp(found, axis=0)).max() < 1e-8 * np.abs(found).max()


@pytest.mark.parametrize(
    ("method", "error"),
    [("rk4", 1e-7), ("dopri5", 1e-8), (mbs.steppers.Rosenbrock(), 1e-6), (mbs.steppers.Variational(), 1e-3)],
)
def test_every_kind_of_integrator(method, error):
    """A beam on a hinge that swings, against steps of a tenth of the length."""
    mech = mbs.Mechanism("boom", gravity=(0, 0, -9.81))
    mech.add_flexible_body("boom", mbs.Part.beam(1.0, 0.5, (3.0, 3.0), 1.0, modes=2, elements=4), damping=0.02)
    mech.add_joint("root", mbs.Revolute((0, 1, 0)), "world", "boom")
    model = mech.build()
    q, v = model.neutral(), np.zeros(3)
    exact = mbs.simulate(model, q, v, 0.3, dt=2e-4).q[-1]
    assert np.abs(mbs.simulate(model, q, v, 0.3, dt=2e-3, method=method).q[-1] - exact).max() < error


def test_shares_of_energy_belong_to_flexible_bodies():
    mech = mbs.Mechanism("boom")
    mech.add_body("hub", 2.0, (0, 0, 0.1), (0.1, 0.1, 0.1))
    mech.add_joint("base", mbs.Revolute((0, 1, 0)), "world", "hub")
    mech.add_force("spring", mbs.JointSpring("base", stiffness=20.0))
    mech.add_flexible_body("boom", mbs.Part.beam(1.0, 0.5, (3.0, 3.0), 1.0, modes=1, elements=4), damping=0.0)
    mech.add_joint("root", mbs.Fixed(), "hub", "boom")
    model = mech.build()
    shares = mbs.modes(model, model.neutral()).energy
    assert set(shares) == {"hub", "boom", "boom_modes", "boom_tip"} and np.abs(shares["boom_modes"]).max() == 0
    assert all(np.asarray(x).min() > -1e-12 for x in shares.values())
    assert np.abs(shares["hub"] + shares["boom"] - 1).max() < 1e-12


def test_a_loop_keeps_energy():
    model = slider_crank()
    model = mbs.set(model, {"rod.damping": np.zeros(3)})
    guess = np.array(model.neutral())
    guess[model.q_slice("shaft")], guess[model.q_slice("guide")] = 0.6, 1.2
    q = mbs.assemble(model, guess, fixed=["shaft", "rod"])[0]
    run = mbs.simulate(model, q, np.zeros(model.nv), 0.4, dt=0.001, save_every=100)
    energies = np.array([sum(mbs.energy(model, *x)) for x in zip(run.q, run.v, strict=False)])
    assert np.ptp(energies) < 1e-7 * max(mbs.energy(model, *x)[0] for x in zip(run.q, run.v, strict=False))


def pieces(n, length, mass, EI):
    """A beam on a hinge, of n rigid pieces with springs between them."""
    mech, h = mbs.Mechanism("pieces", gravity=(0, 0, -9.81)), length / n
    mech.add_body("piece_0", mass / n / 2, (h / 4, 0, 0), (1e-9, *[mass / n / 2 * (h / 2) ** 2 / 12] * 2))
    mech.add_joint("hinge", mbs.Revolute((0, 1, 0)), "world", "piece_0")
    for i in range(1, n + 1):
        own = h if i < n else h / 2
        m = mass * own / length
        mech.add_body(f"piece_{i}", m, (own / 2, 0, 0), (1e-9, *[m * own**2 / 12] * 2))
        at = mbs.Pose((h / 2 if i == 1 else h, 0, 0))
        mech.add_joint(f"bend_{i}", mbs.Revolute((0, 1, 0)), f"piece_{i - 1}", f"piece_{i}", at)
        mech.add_force(f"spring_{i}", mbs.JointSpring(f"bend_{i}", stiffness=EI / h))
    return mech.build(), (own, 0, 0)


def test_a_large_swing_equals_that_of_many_rigid_pieces():
    """A beam falls on its hinge through more than a right angle and bends by 2 % of its length; the tip of 16 pieces is
    where that of the reduced part is."""
    length, mass, EI = 1.0, 0.5, 8.0
    many, end = pieces(16, length, mass, EI)
    mech = mbs.Mechanism("part", gravity=(0, 0, -9.81))
    mech.add_flexible_body("beam", mbs.Part.beam(length, mass, (EI, EI), 1.0, modes=6), damping=0.0)
    mech.add_joint("hinge", mbs.Revolute((0, 1, 0)), "world", "beam")
    model = mech.build()
    t_end = 0.6
    runs = [mbs.simulate(m, m.neutral(), np.zeros(m.nv), t_end, dt=2e-4, save_every=250) for m in (many, model)]
    tips = [
        np.array(
            [mbs.body_poses(m, q)[body].position + mbs.body_poses(m, q)[body].rotation @ np.array(at) for q in run.q]
        )
        for m, run, body, at in zip((many, model), runs, ("piece_16", "beam_tip"), (end, (0.0, 0, 0)), strict=False)
    ]
    turned = runs[1].q[:, 0]
    assert turned.max() > np.pi / 2
    straight = np.stack([np.cos(turned), 0 * turned, -np.sin(turned)], axis=1)
    assert np.abs(tips[1] - straight).max() > 0.01
    assert np.abs(tips[0] - tips[1]).max() < 0.003
