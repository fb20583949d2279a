"""Every formulation against CRBA, RNEA and ABA: A, bias, accelerations and their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.formulations import configuration, general_joints, telegin, wittenburg
from jaxmbs.dynamics.formulations.methods import METHODS
from jaxmbs.dynamics.formulations.system import system, turned
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.dynamics.trees import _state
from tests.cases import case, relative
from tests.dynamics.formulations.helpers import (
    EXACT,
    ROTATIONAL,
    all_roots_free,
    directional,
    equations,
    first_with,
    free_and_general,
    free_and_rotational,
    general,
    planar,
    quick,
    rotational,
    serving,
    small_arm,
)

MODELS = {
    "rotational": (lambda: rotational().model, {"configuration", "barycentric", "wang", "jacobian"}),
    "free": (lambda: free_and_rotational().model, {"configuration", "fictitious", "barycentric", "wang", "jacobian"}),
    "general": (lambda: general().model, {"configuration", "jacobian"}),
    "free general": (lambda: free_and_general().model, {"configuration", "fictitious", "jacobian"}),
    "planar": (planar, {"configuration", "barycentric", "wang", "jacobian", "planar", "telegin"}),
}


def states(model, count=3):
    keys = jax.random.split(jax.random.key(3), 2 * count)
    q = jnp.stack([model.random(k) for k in keys[:count]])
    return q, jnp.stack([jax.random.normal(k, (model.nv,)) for k in keys[count:]])


# by default each formulation once with and once without a free root
LONG = {"general", "free general"}


def cases(names, long):
    return [pytest.param(n, marks=pytest.mark.slow) if n in long else n for n in names]


@pytest.mark.slow
@pytest.mark.parametrize("which", cases(MODELS, LONG))
@pytest.mark.usually("free")
def test_equations_and_accelerations(which):
    """A, bias and a at random states and at the neutral one at rest."""
    build, expected = MODELS[which]
    model = build()
    names = [n for n in serving(model) if n != "crba"]
    assert set(names) == expected
    q, v = states(model)
    q, v = jnp.concatenate([q, model.neutral()[None]]), jnp.concatenate([v, jnp.zeros((1, model.nv))])
    tau = np.random.default_rng(0).normal(size=(4, model.nv))
    oracle = lambda q, v, tau: mbs.forward_dynamics(model, q, v, tau)  # noqa: E731
    # a loop over the states, not a batch: half the compile time
    found, a = quick(lambda *x: jax.lax.map(lambda x: (equations(model, ["crba", *names], *x[:2]), oracle(*x)), x))(
        q, v, tau
    )
    A, bias = found.pop("crba")
    for name, (A_own, bias_own) in found.items():
        assert relative(A_own, A) < EXACT, name
        assert relative(bias_own, bias) < EXACT, name
        assert relative(A_own, np.swapaxes(A_own, 1, 2)) < EXACT, name
        solved = [np.linalg.solve(A, x - b) for A, b, x in zip(A_own, bias_own, tau, strict=True)]
        assert relative(solved, a) < EXACT, name


def with_an_offset():
    """A General joint that only turns, its hinge point beside the joint frame of the parent."""
    mech = mbs.Mechanism("offset", gravity=(1.0, 0.5, -9.81))
    for name, parent, joint in (("a", "world", mbs.Revolute((0, 1, 0))), ("b", "a", mbs.General(offset, about_x, 1))):
        mech.add_body(name, 1.0, (0.1, 0.2, -0.3), (0.2, 0.3, 0.25))
        mech.add_joint(f"to {name}", joint, parent, name, mbs.Pose((0.3, 0, 0)))
    return mech.build()


def offset(q, t):
    return jnp.array([0.1, 0.4, -0.2])


def about_x(q, t):
    c, s, o, e = jnp.cos(q[0]), jnp.sin(q[0]), jnp.zeros_like(q[0]), jnp.ones_like(q[0])
    return jnp.stack([jnp.stack(row) for row in ((e, o, o), (o, c, -s), (o, s, c))])


def floating():
    """Two bodies that float together beside one on a hinge."""
    mech = mbs.Mechanism("floating", gravity=(1.0, 0.5, -9.81))
    joints = {"hull": mbs.Free(), "boom": mbs.Universal((1, 0, 0), (0, 0.6, 0.8)), "door": mbs.Revolute((0, 0, 1))}
    for k, (name, joint) in enumerate(joints.items()):
        mech.add_body(name, 1.0 + k, (0.1, 0.2, -0.3), (0.2, 0.3, 0.25))
        parent = "hull" if name == "boom" else "world"
        mech.add_joint(f"to {name}", joint, parent, name, mbs.Pose((0.3, 0, 0)), mbs.Pose((0, 0.1, 0)))
    return mech.build()


ONE_STATE = {
    "free general": (lambda: free_and_general(3).model, ("configuration",)),
    "offset": (with_an_offset, ("barycentric",)),
    "free": (floating, ("configuration", "fictitious", "barycentric", "wang", "jacobian")),
    "planar": (planar, ("planar",)),
}


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("which", "name"), [(which, name) for which, (_, names) in ONE_STATE.items() for name in names]
)
@pytest.mark.usually("free*", "offset*")
def test_each_method_at_one_state(which, name):
    """The same as above without compiling, against the recursions on Python floats."""
    model = ONE_STATE[which][0]()
    (q, *_), (v, *_) = states(model, 1)
    A, bias = equations(model, [name], q, v)[name]
    assert relative(A, scalar.mass_matrix(model, q.tolist())) < EXACT
    assert relative(bias, scalar.bias_forces(model, q.tolist(), v.tolist())) < EXACT


@pytest.mark.parametrize("seed", range(600, 612))
def test_inertial_coefficients_in_space(seed):
    """Revolute trees with aligned, opposite and arbitrary axes, on Python floats."""
    c = case(seed, 5, states=1, kinds=("Revolute", "Fixed"), free_base=False, massless=0.0)
    q = c.q[0].tolist()
    A = telegin.mass_matrix(State(Tree(c.model), q, [0.0] * c.model.nv))
    assert relative(A, scalar.mass_matrix(c.model, q)) < EXACT


def test_inertial_coefficients_about_parallel_axes():
    model = planar()
    q = np.random.default_rng(6).normal(size=model.nv).tolist()
    A = telegin.mass_matrix(State(Tree(model), q, [0.0] * model.nv))
    assert relative(A, scalar.mass_matrix(model, q)) < EXACT


SMALL = {
    "rotational": (lambda: rotational().model, ["configuration", "barycentric"]),
    "free": (lambda: free_and_rotational(3).model, ["fictitious", "wang"]),
    "planar": (lambda: planar(3), ["planar", "barycentric"]),
    "two rods": (lambda: mbs.library.double_pendulum().build(), ["jacobian", "configuration"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("which", cases(SMALL, {"rotational", "free"}))
@pytest.mark.usually("two rods")
def test_derivatives(which):
    """Forward and reverse mode, at a random state and at the neutral one at rest, with respect to q and v."""
    model, names = SMALL[which][0](), SMALL[which][1]
    rng = np.random.default_rng(2)
    w, u = rng.normal(size=(model.nv, model.nv)), rng.normal(size=model.nv)
    dq, dv = rng.normal(size=model.nq), rng.normal(size=model.nv)

    def all_of(q, v):
        def one(name):
            def f(q, v):
                ((A, bias),) = equations(model, [name], q, v).values()
                return jnp.sum(w * A) + u @ bias

            return jnp.stack(directional(f, q, v, dq, dv))

        return jnp.stack([one(name) for name in ["crba", *names]])

    q, v = states(model, 1)
    f = quick(all_of)
    for found in (f(q[0], v[0]), f(model.neutral(), jnp.zeros(model.nv))):
        assert relative(found, jnp.full_like(found, found[0, 0])) < EXACT


@pytest.mark.slow
def test_arcs_in_any_direction():
    """Turning arcs round changes S, T, z, k, p and w, but neither A nor the bias."""
    for model, modules in ((rotational().model, (wittenburg, configuration)), (general().model, (general_joints,))):
        q, v = (x[0] for x in states(model, 1))

        def both(q, v, model=model, modules=modules):
            s = system(_state(model, q, v, 0.0, None))
            s = s if modules == (general_joints,) else wittenburg.hinged(s)
            other = turned(s, [1, 3])
            assert not other.graph.outward
            modules = [m for m in modules if m is not configuration]  # [W] has outward arcs only
            return [(m.mass_matrix(x), m.bias(x)) for m in modules for x in (s, other)]

        found = quick(both)(q, v)
        for A, bias in found:
            assert relative(A, mbs.mass_matrix(model, q)) < EXACT
            assert relative(bias, mbs.bias_forces(model, q, v)) < EXACT


@pytest.mark.interpreted
def test_a_turned_arc_that_slides_and_turns():
    mech = mbs.Mechanism("plate", gravity=(1.0, 0.5, -9.81))
    mech.add_body("plate", 2.0, (0.1, 0.2, -0.3), (0.2, 0.3, 0.25))
    mech.add_joint("table", mbs.Planar(), "world", "plate", mbs.Pose((0.3, 0, 0), (1, 0.2, 0, 0)))
    model, q, v = mech.build(), [0.4, -0.3, 0.8], [0.5, 1.1, -0.7]
    s = turned(system(_state(model, jnp.array(q), jnp.array(v), 0.0, None)), [1])
    assert relative(general_joints.mass_matrix(s), scalar.mass_matrix(model, q)) < EXACT
    assert relative(general_joints.bias(s), scalar.bias_forces(model, q, v)) < EXACT


def test_locks_loads_and_dtype_through_the_public_function():
    """Springs, locks and prescribed accelerations in every method; float32 in, float32 out."""
    model = small_arm()
    q, v, tau, given = np.random.default_rng(1).normal(size=(4, model.nv))
    mode = model.mode(lock=["elbow"], off=["friction"])
    names = [n for n in serving(model) if n != "jacobian"]
    assert names == ["crba", "configuration", "barycentric", "wang"]

    def all_of(q, v):
        solved = [
            mbs.forward_dynamics(model, q, v, tau, mode=mode, prescribed=given, method=name) for name in ("aba", *names)
        ]
        return solved, mbs.mass_matrix(model, q), mbs.mass_matrix(model, q.astype(np.float32), method="wang")

    (want, *found), A, single = quick(all_of)(q, v)
    for name, got in zip(names, found, strict=True):
        assert relative(got, want) < EXACT, name
    assert single.dtype == np.float32 and relative(single, A) < 1e-5


@pytest.mark.slow
def test_parameters_are_data():
    """Derivative of A with respect to a mass and a centre of mass; a batch of different mechanisms."""
    model, body = small_arm(), "lower"
    q = jnp.array([0.3, -0.8, 1.1])

    def f(values, method):
        return mbs.mass_matrix(mbs.set(model, values), q, method=method)

    values = {f"{body}.mass": jnp.asarray(1.3), f"{body}.com": jnp.asarray([0.1, 0.2, -0.3])}
    found = quick(lambda x: [jax.jacfwd(f)(x, m) for m in ("crba", "configuration", "barycentric", "wang")])(values)
    for other in found[1:]:
        for name in values:
            assert relative(other[name], found[0][name]) < EXACT


@pytest.mark.slow
def test_rheonomic_joints():
    """A joint that moves by itself: z and G depend on time."""

    def z(q, t):
        return jnp.stack([jnp.sin(2 * t) + q[0], 0.3 * q[0] ** 2 * t, q[1] * jnp.cos(t)])

    def G(q, t):
        c, s = jnp.cos(q[0] + t**2), jnp.sin(q[0] + t**2)
        o, one = jnp.zeros_like(c), jnp.ones_like(c)
        return jnp.stack([jnp.stack([c, -s, o]), jnp.stack([s, c, o]), jnp.stack([o, o, one])])

    mech = mbs.Mechanism("rheonomic", gravity=(0, 0, -9.81))
    mech.add_body("a", 1.0, (0.1, 0.2, 0.3), (0.1, 0.2, 0.25))
    mech.add_body("b", 2.0, (0.2, 0, 0.1), (0.3, 0.2, 0.25))
    mech.add_joint("driven", mbs.General(z, G, 2), "world", "a", mbs.Pose((0.1, 0, 0), (0.9, 0.1, 0.3, 0.2)))
    mech.add_joint("ball", mbs.Spherical(), "a", "b", mbs.Pose((0, 0.5, 0)), mbs.Pose((0.1, 0, 0)))
    model = mech.build()
    q, v = jnp.array([0.3, -0.2, 0.9, 0.1, 0.2, -0.3]), jnp.array([0.5, -0.7, 0.3, 0.2, -1.1])
    t, names = 0.8, ["crba", "configuration", "jacobian"]
    found = quick(lambda q, v, t: equations(model, names, q, v, t))(q, v, t)
    for name in names[1:]:
        for got, want in zip(found[name], found["crba"], strict=True):
            assert relative(got, want) < EXACT, name
    assert "barycentric" not in serving(model)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_parted_equations_of_free_systems(seed):
    """Rotations first, then the centre of mass [Y 3.2.3, 3.4.5], against the articulated-body algorithm."""
    for kinds, method in ((("Free", *ROTATIONAL), "barycentric"), (("Free", "Prismatic", "Planar"), "configuration")):
        c = first_with(all_roots_free, 2 + seed, kinds=kinds, free_base=True, massless=0.0)
        q, v, a, tau = next(c.rows())
        assert relative(mbs.textbook.free_dynamics(c.model, q, v, tau, method=method), a) < EXACT


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mbs.mass_matrix(general().model, states(general().model)[0][0], method="barycentric"),
         ["'barycentric'", "not fixed in both bodies", "crba, configuration, jacobian"]),
        (lambda: mbs.mass_matrix(rotational().model, states(rotational().model)[0][0], method="fictitious"),
         ["no body is connected to the world by a Free joint", "barycentric"]),
        (lambda: mbs.mass_matrix(rotational().model, states(rotational().model)[0][0], method="planar"),
         ["not Revolute"]),
        (lambda: mbs.forward_dynamics(planar(), jnp.zeros(4), jnp.zeros(4), method="wittenburg"),
         ["no method named 'wittenburg'", "aba"]),
        (lambda: mbs.mass_matrix(mbs.library.arm7().build(), jnp.zeros(7), method="planar"),
         ["joint_2", "parallel"]),
        (lambda: mbs.textbook.free_dynamics(rotational().model, *(x[0] for x in states(rotational().model))),
         ["connect bodies to the world"]),
    ],
)  # fmt: skip
def test_a_method_that_cannot_serve_says_why(call, words):
    with pytest.raises(mbs.ModelError) as caught:
        call()
    assert all(word in str(caught.value) for word in words), caught.value


def test_every_method_names_its_source():
    assert all(m.source and m.joints for m in METHODS.values())
