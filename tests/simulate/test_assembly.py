"""Consistent states from guesses, and what happens where there are none."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs

LENGTHS = (1.0, 2.0, 1.8, 2.2)  # crank, coupler, rocker, base


@pytest.fixture(scope="module")
def linkage():
    return mbs.library.four_bar(*LENGTHS).build()


def closed(crank, lengths=LENGTHS, sign=1.0):
    """Angles of the four-bar linkage from the law of cosines: crank, coupler relative to it, rocker."""
    a, b, c, d = lengths
    tip = a * np.array([np.cos(crank), np.sin(crank)])
    line = np.array([d, 0]) - tip
    reach = np.linalg.norm(line)
    bearing = np.arctan2(line[1], line[0])
    coupler = bearing + sign * np.arccos((b**2 + reach**2 - c**2) / (2 * b * reach))
    end = tip + b * np.array([np.cos(coupler), np.sin(coupler)])
    return np.array([crank, coupler - crank, np.arctan2(end[1], end[0] - d)])


def test_converges_to_the_closed_form(linkage):
    want = closed(1.0)
    q, v, status, residual = mbs.assemble(
        linkage, want + np.array([0, 0.2, -0.2]), jnp.array([2.0, 0, 0]), fixed="crank_hinge"
    )
    assert int(status) == mbs.Status.OK and np.abs(residual).max() < 1e-14
    np.testing.assert_allclose(q, want, rtol=0, atol=1e-12)
    e = 1e-6
    np.testing.assert_allclose(v, 2.0 * (closed(1.0 + e) - closed(1.0 - e)) / (2 * e), rtol=0, atol=1e-8)


def test_derivatives_are_implicit(linkage):
    """With respect to the held angle, in both modes; a guess that is none has no derivative, and the other keeps its own.

    There are no calls of Python in it, which would end the batch with an exception and are not kept on disk.
    """

    def angles(crank):
        guess = jnp.array([0.0, -0.4, 1.5]) + jnp.array([1.0, 0, 0]) * crank
        return mbs.assemble(linkage, guess, fixed="crank_hinge")[0]

    e = 1e-6
    want = (closed(1.0 + e) - closed(1.0 - e)) / (2 * e)
    cranks = jnp.array([1.0, np.nan])
    both = jax.jit(jax.vmap(lambda crank: (jax.jacfwd(angles)(crank), jax.jacrev(angles)(crank)))).lower(cranks)
    assert "callback" not in both.as_text()
    for found in both.compile()(cranks):
        np.testing.assert_allclose(found[0], want, rtol=0, atol=1e-8)
        assert np.isnan(found[1]).any()


def test_a_batch_of_different_linkages_each_with_its_status(linkage):
    """Link lengths dispersed; the last row cannot close, and only it says so."""
    rng = np.random.default_rng(0)
    n = 300
    lengths = np.array(LENGTHS) * (1 + 0.05 * rng.uniform(-1, 1, (n, 4)))
    lengths[-1] = 0.2, 0.3, 0.3, 2.2
    along = lambda x: np.stack([x, 0 * x, 0 * x], 1)  # noqa: E731
    batch, axes = mbs.vary(
        linkage,
        {
            "coupler_hinge.parent_pose.position": along(lengths[:, 0]),
            "pin.pose_a.position": along(lengths[:, 1]),
            "pin.pose_b.position": along(lengths[:, 2]),
            "rocker_hinge.parent_pose.position": along(lengths[:, 3]),
        },
    )

    def put_together(m):
        return mbs.assemble(m, jnp.array([1.0, -0.4, 1.5]), fixed="crank_hinge")

    q, _, status, residual = jax.jit(jax.vmap(put_together, in_axes=(axes,)))(batch)
    want = np.stack([closed(1.0, row) for row in lengths[:-1]])
    np.testing.assert_array_equal(status[:-1], mbs.Status.OK)
    np.testing.assert_allclose(q[:-1], want, rtol=0, atol=1e-11)
    assert int(status[-1]) == mbs.Status.UNREACHABLE
    # the shortest gap that rods of 0.3 m each leave; the residual names loop and size
    assert np.linalg.norm(residual[-1][mbs.constraint_rows(linkage)["pin"]]) > 1.0


@pytest.mark.slow
def test_singular_assembly_says_so():
    model = mbs.library.four_bar_windows(1).build()
    _, _, status, _ = mbs.assemble(model, model.neutral())
    assert int(status) == mbs.Status.SINGULAR


def test_inconsistent_start_has_a_status_and_the_others_go_on(linkage):
    q = np.stack([closed(1.0), closed(1.2) + np.array([0, 0.1, 0])])
    run = jax.vmap(lambda q: mbs.simulate(linkage, q, jnp.zeros(3), 0.02, 1e-3, save_every=None))(jnp.asarray(q))
    assert [mbs.Status(int(s)) for s in run.status] == [mbs.Status.OK, mbs.Status.INCONSISTENT]
    assert float(run.constraint_error[0].max()) < 1e-13


def test_unknown_joint_is_refused(linkage):
    with pytest.raises(mbs.ModelError, match=r"'crank'.*'crank_hinge'"):
        mbs.assemble(linkage, np.zeros(3), fixed="crank")


# --- motion of the assembled linkage ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_trajectory_through_a_loop_against_finite_differences(linkage):
    """With respect to the initial speed and to a link's mass, both modes."""
    q = jnp.asarray(closed(1.0))
    _, unit, _, _ = mbs.assemble(linkage, q, jnp.array([1.0, 0, 0]), fixed="crank_hinge")

    def end(x):
        model = mbs.set(linkage, {"coupler.mass": x[1]})
        return mbs.simulate(model, q, x[0] * unit, 0.1, 5e-3, save_every=None).q[-1]

    x, e = jnp.array([2.0, 1.5]), 1e-5
    want = np.stack([(end(x + d) - end(x - d)) / (2 * e) for d in e * np.eye(2)], 1)
    np.testing.assert_allclose(jax.jacfwd(end)(x), want, rtol=0, atol=1e-8)
    np.testing.assert_allclose(jax.jacrev(end)(x), want, rtol=0, atol=1e-8)


@pytest.mark.slow
def test_without_projection_the_loop_drifts_open(linkage):
    """Negative control: what keeps the constraints is the projection (here replaced by a stabilisation of no strength)."""
    q, v, _, _ = mbs.assemble(linkage, closed(1.0), jnp.array([6.0, 0, 0]), fixed="crank_hinge")
    loose = mbs.simulate(linkage, q, v, 1.0, 1e-2, save_every=None, baumgarte=0.0)
    held = mbs.simulate(linkage, q, v, 1.0, 1e-2, save_every=None)
    assert float(loose.constraint_error[-1]) > 1e-7
    assert float(held.constraint_error[-1]) < 1e-13


@pytest.mark.slow
def test_conditioning_reports_the_flat_position():
    model = mbs.library.four_bar_windows(1).build()
    sign = np.array([1.0 if name.startswith("foot") else -1.0 for name in model.joint_names])
    run = mbs.simulate(model, sign * np.pi / 2, -sign, 1.0, 2e-3, save_every=50)
    flat = np.asarray(run.conditioning).argmin()
    angle = np.asarray(run.q)[:, 0]
    assert run.conditioning.min() < 1e-4 < np.partition(np.asarray(run.conditioning), 1)[1]  # once, and only there
    assert angle[flat - 1] > 0 > angle[flat]


@pytest.mark.cpu
def test_no_lapack_up_to_twelve_constraints():
    """What is compiled calls nothing but itself: thousands of small systems are solved by components."""
    model = mbs.library.four_bar_windows(6).build()
    assert len(mbs.constraint_rows(model)) == 6 and model.nv == 13
    f = jax.jit(jax.vmap(lambda q, v: mbs.constrained_dynamics(model, q, v)[0]))
    shape = jax.ShapeDtypeStruct((8, 13), jnp.float64)
    text = f.lower(shape, shape).as_text()
    assert (
        all(called.startswith("jaxmbs_") for called in re.findall(r"custom_call @(\w+)", text)) and "lapack" not in text
    )


@pytest.mark.slow
def test_single_precision_beside_double(linkage):
    guess = jnp.asarray(closed(1.0) + np.array([0, 0.1, -0.1]), jnp.float32)
    q, v, status, _ = mbs.assemble(linkage, guess, jnp.array([1.0, 0, 0], jnp.float32), fixed="crank_hinge")
    assert q.dtype == v.dtype == jnp.float32 and status == mbs.Status.OK
    np.testing.assert_allclose(q, closed(1.0), rtol=0, atol=1e-6)


def tip(model, q):
    """The end of the coupler, (x, y) in the world."""

    angles = jnp.stack([q[0], q[0] + q[1]])
    a, b = LENGTHS[:2]
    return jnp.stack([f(angles) @ jnp.array([a, b]) for f in (jnp.cos, jnp.sin)])


def test_temporary_conditions_are_met_besides_the_constraints(linkage):
    """The end of the coupler is put where it is at a crank of 1 rad; both modes of differentiation, mapped over targets."""
    want = closed(1.0)
    place = tip(linkage, jnp.asarray(want))

    def found(height):
        return mbs.assemble(
            linkage, want + np.array([0.1, -0.1, 0.1]), conditions=lambda model, q: tip(model, q)[1] - height
        )

    q, v, status, residual = found(float(place[1]))
    assert int(status) == mbs.Status.OK and not v.any()
    assert residual.shape == (mbs.constraint_rows(linkage)["pin"].stop + 1,) and np.abs(residual).max() < 1e-13
    np.testing.assert_allclose(q, want, rtol=0, atol=1e-11)
    e = 1e-6
    heights = [float(tip(linkage, jnp.asarray(closed(1.0 + d)))[1]) for d in (-e, e)]
    slope = (closed(1.0 + e) - closed(1.0 - e)) / (heights[1] - heights[0])
    for derivative in (jax.jacfwd, jax.jacrev):
        mapped = jax.jit(jax.vmap(derivative(lambda h: found(h)[0])))(jnp.array([place[1], place[1]]))
        np.testing.assert_allclose(mapped, [slope, slope], rtol=1e-7)


def test_conditions_that_cannot_be_met_are_said_and_wrong_ones_refused(linkage):
    *_, status, residual = mbs.assemble(linkage, closed(1.0), conditions=lambda model, q: tip(model, q)[:2] - 9.0)
    assert int(status) == mbs.Status.UNREACHABLE and np.abs(residual[-2:]).max() > 1.0
    arm = mbs.library.chain(2).build()  # without constraints, the conditions alone decide
    *_, status, _ = mbs.assemble(arm, np.zeros(2), conditions=lambda model, q: q[:1] ** 2 + 1.0)
    assert int(status) == mbs.Status.UNREACHABLE
    with pytest.raises(mbs.ModelError, match=r"assemble: conditions returned .* return an array"):
        mbs.assemble(linkage, closed(1.0), conditions=lambda model, q: None)
    with pytest.raises(mbs.ModelError, match=r"assemble: conditions takes .* write it as fn\(model, q\)"):
        mbs.assemble(linkage, closed(1.0), conditions=lambda q: q)


def test_a_mode_says_which_constraints_have_to_be_met(linkage):
    """Whatever is off stays as in the guess; locked freedoms keep their rates."""
    guess, rates = closed(1.0) + np.array([0, 0.3, 0.1]), np.array([1.0, 2.0, 3.0])
    (name,) = linkage.constraint_names
    q, v, status, residual = mbs.assemble(linkage, guess, rates, mode=linkage.mode(off=name))
    assert int(status) == mbs.Status.OK and not residual.any()
    np.testing.assert_array_equal(q, guess)
    np.testing.assert_array_equal(v, rates)
    lock = linkage.mode(lock="crank_hinge")
    q, v, status, _ = mbs.assemble(linkage, closed(1.0), [0.5, 0.0, 0.0], mode=lock)
    held = mbs.assemble(linkage, closed(1.0), [0.5, 0.0, 0.0], fixed="crank_hinge")
    assert int(status) == mbs.Status.OK and float(v[0]) == 0.5
    np.testing.assert_allclose(v, held[1], rtol=0, atol=1e-13)


@pytest.mark.interpreted
def test_a_constraint_that_is_off_leaves_velocities_of_a_large_mechanism_alone():
    """Only the rows that hold change the velocity, by as little as possible."""
    model = mbs.library.four_bar_windows(7).build()
    sign = np.array([1.0 if name.startswith("foot") else -1.0 for name in model.joint_names])
    q, v, mode = 1.1 * sign, np.sin(np.arange(15.0)), model.mode(off=["window_3"])
    J = np.asarray(mbs.constraint_jacobian(model, q, mode=mode)[0])
    found = mbs.assemble(model, q, v, mode=mode)[1]
    np.testing.assert_allclose(found, v - np.linalg.pinv(J, 1e-10) @ (J @ v), rtol=0, atol=1e-12)
