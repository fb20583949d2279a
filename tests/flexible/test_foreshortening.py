"""Beams that become shorter as they bend: tension stiffens them, with energy and momentum in balance."""

import warnings

import jax
import numpy as np
import pytest
import scipy.linalg

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.model.flexible_bodies.beams import bend_k, bend_m
from tests.cases import relative

LENGTH, MASS, EI = 2.0, 1.5, (40.0, 90.0)
UNIT = np.sqrt(EI[0] / (MASS / LENGTH) / LENGTH**4)  # [rad/s], of frequencies without dimension


def boom(hub=0.0, tip=0.0, modes=6, **options):
    """A beam on a bearing about z, at a radius `hub`, with a point mass `tip`."""
    options = {"foreshortening": True, "modes": modes, **options}
    mech = mbs.Mechanism("boom")
    mech.add_body("hub", 1.0, inertia=(1, 1, 1))
    mech.add_joint("bearing", mbs.Revolute((0, 0, 1)), "world", "hub")
    part = mbs.Part.beam(LENGTH, MASS, EI, 10.0, **options)
    mech.add_flexible_body("boom", part, damping=0.0, order=2)
    mech.add_joint("root", mbs.Fixed(), "hub", "boom", mbs.Pose((hub, 0, 0)))
    if tip:
        mech.add_body("mass", tip)
        mech.add_joint("mount", mbs.Fixed(), "boom_tip", "mass")
    return mech.build()


def flapping(model, spin):
    """The lowest circular frequency of deflections along the axis of the bearing, which turns at `spin`."""
    v, own = [0.0] * model.nv, model.v_slice("boom")
    v[model.v_slice("bearing").start] = spin
    moved = np.reshape(mbs.get(model, "boom_tip.displacement"), (-1, 3))
    return lowest(model, v, own.start + np.flatnonzero(np.abs(moved[:, 2]) > 1e-6))


def lowest(model, v, along):
    """The lowest circular frequency at q = 0 of the degrees of freedom `along`, the others moving steadily at v."""
    h, columns, zero = 1e-4, [], [0.0] * model.nq
    for k in along:
        at = ([x + d * (i == k) for i, x in enumerate(zero)] for d in (h, -h))
        there, back = (np.array(scalar.bias_forces(model, x, v))[along] for x in at)
        columns.append((there - back) / (2 * h))
    A = np.array(scalar.mass_matrix(model, zero))[np.ix_(along, along)]
    return np.sqrt(scipy.linalg.eigh(np.transpose(columns), A, eigvals_only=True)[0])


def finite_elements(spin, hub=0.0, tip=0.0, n=40):
    """The same from finite elements, stretched by the tension of a beam that turns."""
    h, rho = LENGTH / n, MASS / LENGTH
    M, K = np.zeros((2, 2 * n + 2, 2 * n + 2))
    points, weights = np.polynomial.legendre.leggauss(4)
    for e in range(n):
        own = slice(2 * e, 2 * e + 4)
        M[own, own] += rho * bend_m(h)
        K[own, own] += EI[0] * bend_k(h)
        for s, w in zip((points + 1) / 2, weights / 2, strict=True):
            x = (e + s) * h
            tension = rho * (hub * (LENGTH - x) + (LENGTH**2 - x**2) / 2) + tip * (hub + LENGTH)
            slope = np.array([6 * (s * s - s) / h, 1 - 4 * s + 3 * s * s, 6 * (s - s * s) / h, 3 * s * s - 2 * s])
            K[own, own] += spin**2 * tension * w * h * np.outer(slope, slope)
    M[2 * n, 2 * n] += tip
    return np.sqrt(scipy.linalg.eigh(K[2:, 2:], M[2:, 2:], eigvals_only=True)[0])


@pytest.mark.parametrize(("rate", "published"), [(0, 3.5160), (2, 4.1373), (5, 6.4495), (12, 13.1702)])
def test_a_turning_cantilever_flaps_as_published(rate, published):
    """Wright, Smith, Thresher and Wang (1982), table 1: frequencies without dimension of a uniform beam without hub."""
    assert flapping(boom(), rate * UNIT) / UNIT == pytest.approx(published, rel=3e-3)


@pytest.mark.parametrize(("hub", "tip"), [(0.7, 0.0), (0.7, 0.6)])
def test_hub_and_tip_mass_add_to_the_tension(hub, tip):
    """Also with what the bearing carries at a radius, and what the tip does."""
    spin = 3 * UNIT
    exact = finite_elements(spin, hub, tip)
    assert finite_elements(2 * UNIT) == pytest.approx(4.1373 * UNIT, rel=1e-4)
    assert exact > 1.3 * finite_elements(0.0, hub, tip)
    assert flapping(boom(hub, tip), spin) == pytest.approx(exact, rel=2e-3)


def test_rigid_pieces_that_hang_stiffen_alike():
    """`mbs.library.beam`, whose springs bend where it is straight, and which has the tension of its weight by nature."""
    found = []
    for g in (0.0, 200.0):
        pieces = mbs.library.beam(16, LENGTH, MASS, EI[0], gravity=(g, 0, 0)).build()
        mech = mbs.Mechanism("hanging", gravity=(g, 0, 0))
        part = mbs.Part.beam(LENGTH, MASS, (EI[0], 50 * EI[0]), 1e4, modes=4, foreshortening=True)
        mech.add_flexible_body("beam", part, damping=0.0, order=2)
        mech.add_joint("root", mbs.Fixed(), "world", "beam")
        found.append([lowest(m, [0.0] * m.nv, range(m.nv)) for m in (pieces, mech.build())])
    assert found[1][0] > 1.3 * found[0][0]
    assert found[1][1] / found[0][1] == pytest.approx(found[1][0] / found[0][0], rel=5e-3)


@pytest.fixture(scope="module")
def floating():
    """A beam that moves freely, on six massless slides and hinges, and carries a body at its tip."""
    part = mbs.Part.beam(LENGTH, MASS, EI, 10.0, tension=3000.0, modes=4, foreshortening=True)
    mech = mbs.Mechanism("free")
    mech.add_flexible_body("boom", part, damping=0.0, order=2)
    on, axes = "world", np.eye(3)
    for k in range(6):
        child = "boom" if k == 5 else f"slide_{k}"
        if k < 5:
            mech.add_body(child)
        mech.add_joint(f"free_{k}", (mbs.Prismatic if k < 3 else mbs.Revolute)(tuple(axes[k % 3])), on, child)
        on = child
    mech.add_body("load", 0.7, (0.1, 0.2, -0.1), (0.02, 0.03, 0.04))
    mech.add_joint("wrist", mbs.Revolute((0, 1, 0)), "boom_tip", "load")
    model, rng = mech.build(), np.random.default_rng(0)
    return model, 0.2 * rng.normal(size=model.nq), rng.normal(size=model.nv)


def test_energy_and_momentum_are_in_balance(floating):
    model, q, v = floating
    a = np.array(scalar.forward_dynamics(model, q.tolist(), v.tolist()))
    A = np.array(scalar.mass_matrix(model, q.tolist()))
    assert relative(A @ a, -np.array(scalar.bias_forces(model, q.tolist(), v.tolist()))) < 1e-10
    assert scalar.energy(model, q.tolist(), v.tolist())[0] == pytest.approx(0.5 * v @ A @ v, rel=1e-12)

    def kept(s):
        now = (q + s * v).tolist(), (v + s * a).tolist()
        about, linear = scalar.momentum(model, *now)
        return np.array([sum(scalar.energy(model, *now)), *about, *linear])

    h = 1e-4
    change = (8 * (kept(h) - kept(-h)) - kept(2 * h) + kept(-2 * h)) / (12 * h)
    assert np.abs(change).max() < 1e-7 * np.abs(kept(0.0)).max()


@pytest.mark.interpreted
def test_arrays_give_the_same(floating):
    model, q, v = floating
    expected = scalar.forward_dynamics(model, q.tolist(), v.tolist())
    assert relative(mbs.forward_dynamics(model, q, v), expected) < 1e-10


@pytest.mark.interpreted
def test_derivatives_of_both_modes(floating):
    model, q, v = floating
    rng = np.random.default_rng(1)
    along, weights, h = rng.normal(size=model.nq), rng.normal(size=model.nv), 1e-5

    def f(q):
        return mbs.forward_dynamics(model, q, v) @ weights

    there, back = (scalar.forward_dynamics(model, (q + s * along).tolist(), v.tolist()) for s in (h, -h))
    change = float(np.subtract(there, back) @ weights) / (2 * h)
    assert float(jax.jvp(f, (q,), (along,))[1]) == pytest.approx(change, rel=1e-6)
    assert float(jax.grad(f)(q) @ along) == pytest.approx(change, rel=1e-6)


def test_a_column_buckles_under_its_weight():
    """At 7.837 EI/L² [Greenhill 1881]: a little below, it stands; above, it falls. A field of attraction acts as uniform
    gravity does, and a column that falls freely does not bend."""
    critical = 7.837 * EI[0] / LENGTH**2 / MASS
    for share, field, falls, stands in (
        (0.98, False, False, True), (1.02, False, False, False), (0.98, True, False, True), (1.02, True, False, False),
        (3.0, True, True, True),
    ):  # fmt: skip
        mech = mbs.Mechanism("column", gravity=(0 if field else -share * critical, 0, 0))
        part = mbs.Part.beam(LENGTH, MASS, EI, 10.0, modes=6, foreshortening=True)
        mech.add_flexible_body("column", part, damping=0.0, order=2)
        mech.add_joint("root", mbs.Prismatic((1, 0, 0)) if falls else mbs.Fixed(), "world", "column")
        if field:
            far = 1e6
            mech.add_force("earth", mbs.CentralGravity(mu=share * critical * far**2, center=(-far, 0, 0)))
        model = mech.build()
        own, columns, h = model.v_slice("column"), [], 1e-4
        for k in range(own.start, own.stop):
            there, back = ([d * (i == k) for i in range(model.nq)] for d in (h, -h))
            rates = [np.array(scalar.forward_dynamics(model, x, [0.0] * model.nv))[own] for x in (there, back)]
            columns.append((rates[1] - rates[0]) / (2 * h))
        squared = np.linalg.eigvals(np.transpose(columns)).real.min()
        assert bool(squared > 0) is stands
        if falls:
            assert squared == pytest.approx((2 * np.pi * part.frequency[0]) ** 2, rel=1e-3)


def test_what_is_said():
    part = mbs.Part.beam(LENGTH, MASS, EI, 10.0, modes=2, foreshortening=True)
    with pytest.raises(mbs.ModelError, match=r"flexible body 'boom': the foreshortening.*second order; pass order=2"):
        mbs.Mechanism("boom").add_flexible_body("boom", part)
    model = boom(modes=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a body that stiffens may spin
        mbs.study.Study(model=model, initial={"bearing": {"v": [5 * UNIT]}}, outputs={})


def test_files_and_fewer_modes_keep_it(tmp_path):
    part = mbs.Part.beam(LENGTH, MASS, EI, 10.0, modes=3, foreshortening=True)
    part.save(tmp_path / "boom.npz")
    again = mbs.Part.load(tmp_path / "boom.npz")
    assert np.array_equal(again.shortening, part.shortening) and np.any(part.shortening)
    assert np.array_equal(again.keep(2).moment_curvature, part.moment_curvature[:2, :2])
    before = dict(np.load(tmp_path / "boom.npz"))
    np.savez(tmp_path / "older.npz", **{k: x for k, x in before.items() if k not in ("shortening", "moment_curvature")})
    assert not np.any(mbs.Part.load(tmp_path / "older.npz").shortening)
