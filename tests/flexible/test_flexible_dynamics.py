"""Flexible bodies in the recursions, against other formulations."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.building.float_rows import rows_at
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.dynamics.state.tree import Tree
from tests.cases import relative
from tests.flexible.parts import arm, lumped, state


def positions(q, part_shapes, x):
    """World positions (N, 3) of the masses of a free flexible body: from its pose and modal coordinates."""
    p, (w, a, b, c) = q[:3], q[3:7]
    R = jnp.array([
        [1 - 2 * (b * b + c * c), 2 * (a * b - w * c), 2 * (a * c + w * b)],
        [2 * (a * b + w * c), 1 - 2 * (a * a + c * c), 2 * (b * c - w * a)],
        [2 * (a * c - w * b), 2 * (b * c + w * a), 1 - 2 * (a * a + b * b)],
    ])  # fmt: skip
    return p[None] + (x + part_shapes @ q[7:]) @ R.T


@pytest.fixture(scope="module")
def free():
    part, m, x, shapes = lumped(3)
    mech = mbs.Mechanism("free", gravity=(0.1, -0.3, -9.81))
    mech.add_flexible_body("body", part, damping=0.0, order=2)
    mech.add_joint("root", mbs.Free(), "world", "body")
    return mech.build(), m, x, shapes.reshape(len(x), 6, -1)[:, :3], part


def test_equals_the_sum_over_point_masses(free):
    """Mass matrix, bias forces, energy and momentum, from the positions of all masses and their derivatives."""
    model, m, x, phi, part = free
    q, v, _ = state(model, 1, 0.3)
    q[:3] = 0.4, -0.2, 0.7

    def where(q):
        return positions(q, phi, x)

    def qdot(v, q=q):
        return mbs.rates(model, q, v)

    J = jnp.stack([jax.jvp(where, (q,), (qdot(e),))[1] for e in np.eye(model.nv)], axis=-1)
    A = jnp.einsum("i,iak,ial->kl", m, J, J)
    assert relative(mbs.mass_matrix(model, q), A) < 1e-12

    def along(q):  # velocity along the field of constant v
        return jax.jvp(where, (q,), (mbs.rates(model, q, v),))[1]

    xd, xdd = jax.jvp(where, (q,), (qdot(v),))[1], jax.jvp(along, (q,), (qdot(v),))[1]
    g = np.array(mbs.get(model, "gravity"))
    spring = np.concatenate([np.zeros(6), (2 * np.pi * part.frequency) ** 2 * q[7:]])
    bias = jnp.einsum("i,iak,ia->k", m, J, xdd - g[None]) + spring
    assert relative(mbs.bias_forces(model, q, v), bias) < 1e-12
    kinetic, potential = mbs.energy(model, q, v)
    assert kinetic == pytest.approx(float(0.5 * jnp.einsum("i,ia,ia", m, xd, xd)), rel=1e-12)
    stored = 0.5 * np.sum((2 * np.pi * part.frequency * q[7:]) ** 2)
    assert potential == pytest.approx(float(stored - jnp.einsum("i,ia,a", m, where(q), g)), rel=1e-12)
    angular, linear = mbs.momentum(model, q, v)
    middle = jnp.einsum("i,ia->a", m, where(q)) / m.sum()
    assert relative(linear, jnp.einsum("i,ia->a", m, xd)) < 1e-12
    assert relative(angular, jnp.einsum("i,ia->a", m, jnp.cross(where(q) - middle[None], xd))) < 1e-12


def test_first_order_leaves_out_only_the_second(free):
    model, *_, part = free
    mech = mbs.Mechanism("first order", gravity=(0.1, -0.3, -9.81))
    mech.add_flexible_body("body", part, damping=0.0)
    mech.add_joint("root", mbs.Free(), "world", "body")
    first = mech.build()
    q, _v, _ = state(model, 1)
    errors = []
    for size in (0.02, 0.01):
        x = np.concatenate([q[:7], size * q[7:]])
        errors.append(np.abs(mbs.mass_matrix(first, x) - mbs.mass_matrix(model, x)).max())
    assert errors[1] > 0 and errors[0] / errors[1] == pytest.approx(4.0, rel=1e-6)


@pytest.mark.parametrize("order", [1, 2])
def test_recursions_agree_with_one_another_and_with_lagrange(order):
    model = arm(order).build()
    q, v, tau = state(model, 2)
    A, bias = (np.asarray(x) for x in (mbs.mass_matrix(model, q), mbs.bias_forces(model, q, v)))
    a = mbs.forward_dynamics(model, q, v, tau)
    assert relative(A @ a + bias, tau) < 1e-11
    assert relative(mbs.inverse_dynamics(model, q, v, a), tau) < 1e-11
    assert relative(mbs.forward_dynamics(model, q, v, tau, method="crba"), a) < 1e-10
    assert mbs.energy(model, q, v)[0] == pytest.approx(0.5 * v @ A @ v, rel=1e-12)
    lock = np.arange(model.nv) % 3 == 0
    mode = dataclasses.replace(model.mode(), lock=jnp.asarray(lock))
    wanted = np.linspace(-1, 1, model.nv)
    held = mbs.forward_dynamics(model, q, v, tau, mode=mode, prescribed=wanted)
    rest = ~lock
    exact = np.where(lock, wanted, 0.0)
    exact[rest] = np.linalg.solve(A[np.ix_(rest, rest)], (tau - bias - A @ exact)[rest])
    assert relative(held, exact) < 1e-10


def test_jacobian_and_velocities_of_nodes_and_what_they_carry():
    model = arm().build()
    q, v, _ = state(model, 3)
    for body in ("arm_hand", "load", "tail_elbow"):
        J = mbs.jacobian(model, q, body, (0.1, 0.2, 0.3))

        def place(s, body=body):
            pose = mbs.body_poses(model, mbs.integrate(model, q, s * v))[body]
            return pose.position + pose.rotation @ jnp.array([0.1, 0.2, 0.3]), pose.rotation

        (_, R), (moved, turned) = jax.jvp(place, (0.0,), (1.0,))
        W = turned @ R.T
        assert relative(J @ v, [W[2, 1], W[0, 2], W[1, 0], *moved]) < 1e-12


def test_power_equals_the_change_of_energy():
    model = arm().build()
    q, v, tau = state(model, 4)
    a = mbs.forward_dynamics(model, q, v, tau)

    def energy(s):
        return sum(mbs.energy(model, q + s * mbs.rates(model, q, v), v + s * a))

    damping = -sum(
        2
        * 2
        * np.pi
        * (mbs.get(model, f"{n}.frequency") * mbs.get(model, f"{n}.damping") * v[model.v_slice(n)] ** 2).sum()
        for n in ("arm", "tail")
    )
    assert jax.jvp(energy, (0.0,), (1.0,))[1] == pytest.approx(tau @ v + damping, rel=1e-10)


@pytest.mark.parametrize("uniform", [True, False])
def test_gravity_is_the_gradient_of_its_potential(uniform):
    """Uniform, and that of a near centre of attraction, which acts along the modes, too."""
    mech = arm(2, gravity=(0.3, -0.2, -9.81) if uniform else (0, 0, 0))
    if not uniform:
        mech.add_force("earth", mbs.CentralGravity(mu=300.0, center=(1.0, 2.0, -4.0)))
    model = mech.build()
    q, *_ = state(model, 5)

    def stored(w):
        return mbs.energy(model, mbs.integrate(model, q, w), np.zeros(model.nv))[1]

    assert relative(mbs.bias_forces(model, q, np.zeros(model.nv)), jax.grad(stored)(np.zeros(model.nv))) < 1e-11


def test_in_orbit_nothing_bends_a_body():
    """A falling body accelerates as a whole; its modes stay at rest but for the gradient of the field."""
    mech = mbs.Mechanism("orbit")
    mech.add_flexible_body("body", lumped(2)[0])
    mech.add_joint("flight", mbs.Free(), "world", "body")
    mech.add_force("earth", mbs.CentralGravity(mu=3.986e14, center=(0, 0, -7e6)))
    model = mech.build()
    a = mbs.forward_dynamics(model, model.neutral(), np.zeros(model.nv))
    assert a[5] == pytest.approx(-3.986e14 / 7e6**2, rel=1e-6)
    assert np.abs(a[model.v_slice("body")]).max() < 1e-5
    found = mbs.element_forces(model, model.neutral(), np.zeros(model.nv))["earth"].generalized
    assert np.abs(found[model.v_slice("body")]).max() > 0.1


def test_without_freedom_to_bend_it_is_the_rigid_body():
    part, *_ = lumped(5)

    def built(flexible):
        mech = mbs.Mechanism("arm", gravity=(0, 0, -9.81))
        if flexible:
            mech.add_flexible_body("arm", part)
        else:
            mech.add_body("arm", part.mass, part.com, part.inertia)
        mech.add_joint("root", mbs.Universal(), "world", "arm")
        mech.add_body("load", 0.7, (0.1, 0.2, -0.1), (0.02, 0.03, 0.04))
        hand = ("arm_hand", (0, 0, 0)) if flexible else ("arm", part.positions[0])
        mech.add_joint("wrist", mbs.Spherical(), hand[0], "load", mbs.Pose(hand[1]))
        return mech.build()

    flexible, rigid = built(True), built(False)
    q, v, tau = state(rigid, 6)
    part_of = {name: (flexible.q_slice(name), flexible.v_slice(name)) for name in rigid.joint_names}
    Q, V, T = np.array(flexible.neutral()), np.zeros(flexible.nv), np.zeros(flexible.nv)
    for name, (at_q, at_v) in part_of.items():
        Q[at_q], V[at_v], T[at_v] = q[rigid.q_slice(name)], v[rigid.v_slice(name)], tau[rigid.v_slice(name)]
    a = mbs.forward_dynamics(flexible, Q, V, T, mode=flexible.mode(lock=["arm"]))
    expected = mbs.forward_dynamics(rigid, q, v, tau)
    for name, (_, at_v) in part_of.items():
        assert relative(a[at_v], expected[rigid.v_slice(name)]) < 1e-12


def test_derivatives_of_both_modes_under_jit_and_vmap():
    """By state, frequencies, shape integrals and the shapes of nodes, at rest and in motion."""
    names = [
        "arm.frequency",
        "arm.momentum",
        "arm.coupling",
        "arm.inertia_curvature",
        "arm_hand.rotation",
        "tail.damping",
    ]
    model = arm().build()
    free = mbs.free(model, names)
    sizes = [np.size(mbs.get(model, n)) for n in names]

    def f(z, at):
        values, k = {}, 2 * model.nv
        for name, size in zip(names, sizes, strict=False):
            values[name] = mbs.get(model, name) * (1 + z[k : k + size])
            k += size
        q = mbs.integrate(model, at[0], z[: model.nv])
        return mbs.forward_dynamics(mbs.set(free, values), q, at[1] + z[model.nv : 2 * model.nv])

    count = 2 * model.nv + sum(sizes)
    jacobian, slopes = jax.jit(jax.jacfwd(f)), jax.jit(jax.jacrev(f))
    for at in [(np.asarray(model.neutral()), np.zeros(model.nv)), state(model, 7)[:2]]:
        J = jacobian(np.zeros(count), at)
        assert np.isfinite(J).all()
        assert relative(slopes(np.zeros(count), at), J) < 1e-9
        direction = np.random.default_rng(8).normal(size=count)
        h = 1e-5
        change = (f(h * direction, at) - f(-h * direction, at)) / (2 * h)
        assert relative(J @ direction, change) < 1e-7
    batch = np.stack([state(model, s)[0] for s in range(4)])
    many = mbs.jit(mbs.forward_dynamics, in_axes=(None, 0, None))(model, batch, at[1])
    assert relative(many, [mbs.forward_dynamics(model, q, at[1]) for q in batch]) < 1e-10


@pytest.mark.parametrize("size", [0.0, 0.1])
def test_plain_floats_and_rows_of_constraints_without_a_backend(size):
    """At rest at q = 0, too, where numbers are zero but no structural zeros."""
    mech = arm()
    mech.close_loop("hold", mbs.Fixed(), "arm_hand", "tail_elbow", mbs.Pose((0.1, 0.2, 0.3)))
    model = mech.build()
    q, v, tau = state(model, 3, size)
    v = size * v
    plain = [x.tolist() for x in (q, v, tau)]
    free = arm().build()
    assert relative(scalar.mass_matrix(free, plain[0]), mbs.mass_matrix(free, q)) < 1e-12
    assert relative(scalar.forward_dynamics(free, *plain), mbs.forward_dynamics(free, q, v, tau)) < 1e-10
    assert relative(rows_at(Tree(model), q.tolist())[1], mbs.constraint_jacobian(model, q)[0]) < 1e-12


def test_float32():
    model = arm().build()
    q, v, tau = state(model, 9)
    a = mbs.forward_dynamics(model, q, v, tau)
    low = mbs.forward_dynamics(model, *(np.asarray(x, np.float32) for x in (q, v, tau)))
    assert low.dtype == np.float32 and relative(low, a) < 1e-4


def slider_crank(modes=3, elements=6):
    """A rigid crank, a flexible rod, and a slider, closed by a cut joint at the tip of the rod."""
    mech = mbs.Mechanism("slider-crank", gravity=(0, -9.81, 0))
    mech.add_body("crank", 0.3, (0.15, 0, 0), (0.001, 0.003, 0.003))
    mech.add_joint("shaft", mbs.Revolute((0, 0, 1)), "world", "crank")
    mech.add_flexible_body("rod", mbs.Part.beam(1.0, 0.4, (3.0, 5.0), 1.0, modes=modes, elements=elements))
    mech.add_joint("pin", mbs.Revolute((0, 0, 1)), "crank", "rod", mbs.Pose((0.3, 0, 0)))
    mech.add_body("slider", 0.1, (0, 0, 0), (0.001, 0.001, 0.001))
    mech.add_joint("guide", mbs.Prismatic((1, 0, 0)), "world", "slider")
    mech.close_loop("wrist", mbs.Spherical(), "rod_tip", "slider")
    return mech.build()


def test_a_loop_through_a_node():
    """The motion satisfies A a + bias = J' lambda, and the rate of J v along it is zero."""
    model = slider_crank()
    guess = np.array(model.neutral())
    guess[model.q_slice("shaft")], guess[model.q_slice("guide")] = 0.6, 1.2
    guess[model.q_slice("rod")] = 0.01 * np.arange(3)
    q, _, status, _ = mbs.assemble(model, guess, fixed=["shaft"])
    assert mbs.Status(int(status)) is mbs.Status.OK
    J = np.asarray(mbs.constraint_jacobian(model, q)[0])
    v = 2 * np.linalg.svd(J)[2][-3:].sum(axis=0)
    a, multipliers = mbs.constrained_dynamics(model, q, v)[:2]
    A, bias = mbs.mass_matrix(model, q), mbs.bias_forces(model, q, v)
    assert relative(A @ a + bias, J.T @ multipliers) < 1e-8

    def along(s):  # q'' = a at s = 0
        return mbs.constraint_jacobian(model, q + s * v)[0] @ (v + s * a)

    assert np.abs(jax.jvp(along, (0.0,), (1.0,))[1]).max() < 1e-8 * np.abs(a).max()
