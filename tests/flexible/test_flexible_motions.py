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


@pytest.mark.parametrize(
    ("n", "dt", "method"), [(16, 2e-4, "rk4"), pytest.param(100, 2e-3, "implicit", marks=pytest.mark.slow)]
)
def test_a_large_swing_equals_that_of_many_rigid_pieces(n, dt, method):
    """A beam falls on its hinge through more than a right angle and bends by 2 % of its length. A part that becomes shorter
    as it bends follows the tip of the pieces; without this, in either order, it departs from it."""
    length, mass, EI, t_end = 1.0, 0.5, 8.0, 0.6
    many, end = pieces(n, length, mass, EI)

    def tips(model, body, at, dt, method):
        run = mbs.simulate(
            model, model.neutral(), np.zeros(model.nv), t_end, dt=dt, save_every=round(0.05 / dt), method=method
        )
        poses = [mbs.body_poses(model, q)[body] for q in run.q]
        return run.q[:, 0], np.array([x.position + x.rotation @ np.array(at) for x in poses])

    _, exact = tips(many, f"piece_{n}", end, dt, method)
    errors = []
    for order, shorter in ((1, False), (2, False), (2, True)):
        part = mbs.Part.beam(length, mass, (EI, EI), 1.0, modes=6, foreshortening=shorter)
        mech = mbs.Mechanism("part", gravity=(0, 0, -9.81))
        mech.add_flexible_body("beam", part, damping=0.0, order=order)
        mech.add_joint("hinge", mbs.Revolute((0, 1, 0)), "world", "beam")
        turned, found = tips(mech.build(), "beam_tip", (0.0, 0, 0), 2e-4, "rk4")
        errors.append(np.abs(found - exact).max())
    assert turned.max() > np.pi / 2
    straight = np.stack([np.cos(turned), 0 * turned, -np.sin(turned)], axis=1)
    assert np.abs(found - straight).max() > 0.01
    assert errors[2] < 5e-5 and 5e-4 < errors[0] < 1e-3 and 1e-3 < errors[1] < 3e-3


def test_modes_of_a_round_beam_are_in_the_same_order_everywhere():
    """Bending along z comes before that along y, and the largest number of each shape is positive: that of the rotation at
    the tip, which is -dw/dx in one plane and dv/dx in the other."""
    part = mbs.Part.beam(1.0, 0.5, (8.0, 8.0), 1.0, modes=6)
    y, z = part.displacements[0, 1:] / 8**0.5
    np.testing.assert_allclose(y, [0, 1, 0, 1, 0, 0], atol=1e-4)
    np.testing.assert_allclose(z, [-1, 0, -1, 0, 0, -1], atol=1e-4)
