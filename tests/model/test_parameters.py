"""Parameters by name: get, set, free, vary; derivatives with respect to them, pinned components included."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.model.field_rules import RULES, Kind
from jaxmbs.model.parameters import pattern_of
from tests.cases import relative

pytestmark = pytest.mark.interpreted

Q, V, TAU = np.array([0.3, -0.7, 0.4, 0.2]), np.array([0.5, 1.0, -0.8, 0.6]), np.array([0.1, -0.2, 0.3, 0.1])


def machine():
    """Parameters of every sort, many of them structural zeros and ones."""
    mech = mbs.Mechanism("machine", gravity=(0, 0, -9.81))
    mech.add_body("arm", 1.5, (0, 0, -0.4), (0.2, 0.2, 0.1))
    mech.add_body("screw", 0.8, (0.1, 0, 0), ((0.05, 0.01, 0), (0.01, 0.06, 0), (0, 0, 0.04)))
    mech.add_body("cross", 0.5, (0, 0.2, 0.1), (0.03, 0.03, 0.02))
    mech.add_joint("hinge", mbs.Revolute((0, 1, 0)), "world", "arm", mbs.Pose((0, 0, 1.0)))
    mech.add_joint("nut", mbs.Helical((0, 0, 1), pitch=0.1), "arm", "screw", mbs.Pose((0, 0, -0.8)))
    mech.add_joint("cardan", mbs.Universal((1, 0, 0), (0, 1, 0)), "screw", "cross", child_pose=mbs.Pose((0, 0.1, 0)))
    mech.add_force("coil", mbs.TorsionSpring("hinge", stiffness=3.0, damping=0.2, rest_angle=0.1))
    mech.add_force("strut", mbs.LinearSpring("cross", "world", (0, 0, 0.1), (1, 0, 0), stiffness=20.0, rest_length=0.5))
    return mech.build()


VALUES = {
    "arm.mass": 2.5,
    "arm.com": (0.1, 0.0, -0.5),
    "screw.inertia": ((0.1, 0.01, 0.02), (0.01, 0.12, 0), (0.02, 0, 0.15)),
    "cross.inertia": (0.05, 0.06, 0.04),
    "hinge.parent_pose.position": (0.3, 0.1, 0.9),
    "hinge.parent_pose.rotation": (np.cos(0.2), 0, np.sin(0.2), 0),
    "cardan.child_pose.position": (0, 0.2, 0.1),
    "nut.axis": (0.6, 0, 0.8),
    "nut.pitch": 0.3,
    "cardan.axis_1": (0.8, 0, 0.6),
    "cardan.axis_2": (0, 0.6, 0.8),
    "coil.stiffness": 4.0,
    "coil.rest_angle": 0.3,
    "strut.point_a": (0.1, 0, 0.1),
    "strut.damping": 2.0,
    "gravity": (1.0, 0, -3.7),
}


@jax.jit
def accelerations(model):
    return mbs.forward_dynamics(model, jnp.asarray(Q), jnp.asarray(V), jnp.asarray(TAU))


def test_every_parameter_has_its_value():
    model = machine()
    assert set(VALUES) <= set(model.parameter_names)
    assert mbs.get(model, "arm.mass") == 1.5
    assert relative(mbs.get(model, "arm.com"), (0, 0, -0.4)) == 0
    assert relative(mbs.get(model, "arm.inertia"), np.diag([0.2, 0.2, 0.1])) == 0
    assert relative(mbs.get(model, "hinge.parent_pose.rotation"), np.eye(3)) == 0
    assert mbs.get(model, "nut.pitch") == 0.1
    assert relative(mbs.get(model, "gravity"), (0, 0, -9.81)) == 0


def reference(model):
    """The accelerations on Python floats: nothing compiled, nothing traced."""
    return np.array(scalar.forward_dynamics(model, Q.tolist(), V.tolist(), TAU.tolist()))


@functools.cache
def changed(name):
    return reference(mbs.set(machine(), {name: VALUES[name]}))


@pytest.mark.parametrize("name", VALUES)
def test_set_changes_the_result_and_reads_back(name):
    model = mbs.set(machine(), {name: VALUES[name]})
    if np.shape(VALUES[name]) == np.shape(mbs.get(model, name)):  # principal moments and quaternions read as 3x3
        assert relative(mbs.get(model, name), VALUES[name]) < 1e-15
    assert relative(changed(name), reference(machine())) > 1e-4


def one_at_a_time():
    """{name: one row per parameter, in which only that parameter is changed}."""
    rows = {n: np.stack([np.asarray(_default(n), float)] * len(VALUES)) for n in VALUES}
    for i, n in enumerate(VALUES):
        rows[n][i] = VALUES[n]
    return rows


def _default(name):
    """Value of the unchanged machine in the form of the changed one."""
    value = mbs.get(machine(), name)
    if np.shape(value) == np.shape(VALUES[name]):
        return value
    return np.diag(value) if name.endswith("inertia") else (1.0, 0, 0, 0)


@pytest.mark.slow
def test_vary_reaches_every_parameter():
    batched, in_axes = mbs.vary(machine(), one_at_a_time())
    for got, name in zip(jax.vmap(accelerations, in_axes=(in_axes,))(batched), VALUES, strict=True):
        assert relative(got, changed(name)) < 1e-11, name


@pytest.mark.slow
def test_set_under_tracing_reaches_every_parameter():
    f = jax.jit(lambda values: accelerations(mbs.set(machine(), values)))
    rows = one_at_a_time()
    for i, name in enumerate(VALUES):
        assert relative(f({n: x[i] for n, x in rows.items()}), changed(name)) < 1e-11, name


@pytest.mark.slow
@jax.disable_jit(False)
def test_derivative_with_respect_to_every_parameter():
    """Including components that are structurally zero: a folded number would silently give no derivative. Rotations and
    axes move along their manifolds, by one angle each."""
    model = machine()
    angles = {"hinge.parent_pose.rotation": 0.0, "nut.axis": 0.0}
    start = {n: jnp.asarray(mbs.get(model, n)) for n in VALUES if "rotation" not in n and "axis" not in n}
    flat, unflatten = ravel_pytree((start, angles))

    @jax.jit
    def f(x):
        values, angles = unflatten(x)
        turn, tilt = angles.values()
        values["hinge.parent_pose.rotation"] = jnp.stack([jnp.cos(turn), 0 * turn, jnp.sin(turn), 0 * turn])
        values["nut.axis"] = jnp.stack([jnp.sin(tilt), 0 * tilt, jnp.cos(tilt)])
        return accelerations(mbs.set(model, values))

    h = 2e-4
    sides = [np.stack([f(flat + k * h * e) for e in np.eye(len(flat))], axis=1) for k in (-2, -1, 1, 2)]
    want = (sides[0] - 8 * sides[1] + 8 * sides[2] - sides[3]) / (12 * h)
    assert relative(jax.jacfwd(f)(flat), want) < 1e-7
    assert relative(jax.jacrev(f)(flat), want) < 1e-7


@pytest.mark.slow
def test_free_makes_pinned_components_numbers():
    model = machine()
    freed = mbs.free(model, ["arm.com"])
    count = len(jax.tree.leaves(model)[0])
    assert len(jax.tree.leaves(freed)[0]) == count + 2
    assert relative(reference(freed), reference(model)) < 1e-13
    moved = mbs.set(model, {"arm.com": (1e-3, 0, -0.4)})
    slope = (reference(moved) - reference(model)) / 1e-3
    (columns,) = jax.tree.leaves(jax.jacfwd(accelerations)(freed))
    assert min(relative(column, slope) for column in columns.T) < 1e-2  # one of them is the x of the centre of mass


def test_a_number_of_the_same_pattern_does_not_recompile():
    model = machine()
    accelerations(model)
    before = accelerations._cache_size()
    accelerations(mbs.set(model, {"arm.mass": 3.0, "coil.stiffness": 7.0}))
    assert accelerations._cache_size() == before


def test_vary_is_a_loop_over_set():
    model, rng = machine(), np.random.default_rng(0)
    values = {
        "arm.mass": rng.uniform(1, 2, 5),
        "screw.com": rng.normal(size=(5, 3)) * 0.1,
        "cross.inertia": rng.uniform(0.04, 0.06, (5, 3)),
        "gravity": rng.normal(size=(5, 3)),
        "coil.stiffness": rng.uniform(0, 5, 5),
    }
    batched, in_axes = mbs.vary(model, values)
    got = jax.jit(jax.vmap(mbs.forward_dynamics, in_axes=(in_axes, None, None, None)))(batched, Q, V, TAU)
    for i in range(5):
        assert relative(got[i], reference(mbs.set(model, {n: x[i] for n, x in values.items()}))) < 1e-11
    states = jax.jit(jax.vmap(mbs.forward_dynamics, in_axes=(in_axes, 0, 0)))(
        batched, np.tile(Q, (5, 1)), np.tile(V, (5, 1))
    )
    assert states.shape == (5, 4)


def test_three_rows_of_principal_moments_are_three_instances():
    model = machine()
    rows = np.array([[0.1, 0.1, 0.1], [0.2, 0.2, 0.2], [0.3, 0.3, 0.3]])
    batched, in_axes = mbs.vary(model, {"arm.inertia": rows})
    got = jax.jit(jax.vmap(accelerations, in_axes=(in_axes,)))(batched)
    assert relative(got[1], reference(mbs.set(model, {"arm.inertia": rows[1]}))) < 1e-11


FAULTS = {
    "unknown name": ({"arm.mas": 1.0}, "'arm.mas'", "'arm.mass'"),
    "wrong shape": ({"arm.com": (1.0, 2.0)}, "arm.com", "(2,)"),
    "negative": ({"coil.stiffness": -1.0}, "coil.stiffness", "-1"),
    "not finite": ({"arm.mass": np.inf}, "arm.mass", "inf"),
    "triangle inequality": ({"arm.inertia": (1, 1, 3)}, "arm.inertia", "triangle"),
    "axis": ({"nut.axis": (0, 0, 1.1)}, "nut.axis", "1.1"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_set_refuses(fault):
    values, *words = FAULTS[fault]
    with pytest.raises(mbs.ModelError) as caught:
        mbs.set(machine(), values)
    assert not [w for w in words if w not in str(caught.value)], caught.value


BATCH_FAULTS = {
    "unknown name": ({"arm.mas": np.ones(3)}, "'arm.mas'", "'arm.mass'"),
    "no batch axis": ({"arm.mass": 1.0}, "arm.mass", "batch"),
    "wrong shape": ({"arm.com": np.ones((3, 2))}, "arm.com", "(3, 2)"),
    "unequal numbers of rows": ({"arm.mass": np.ones(3), "screw.mass": np.ones(4)}, "arm.mass", "screw.mass", "3", "4"),
    "fewer rows": ({"arm.mass": np.ones(4), "screw.mass": np.ones(3)}, "arm.mass", "screw.mass", "3", "4"),
    "unphysical inertia": (
        {"arm.inertia": np.array([(1, 1, 1), (1, 1, 3.0)])},
        "arm.inertia",
        "instance 1",
        "triangle",
    ),
    "inertia not symmetric": (
        {"arm.inertia": np.array([np.eye(3), np.eye(3) + np.eye(3, k=1) * 0.1])},
        "arm.inertia",
        "instance 1",
        "symmetric",
    ),
    "negative mass": ({"arm.mass": np.array([1.0, 2.0, -1.0])}, "arm.mass", "instance 2"),
    "axis": ({"nut.axis": np.array([[0, 0, 1.0], [0, 0, 2.0]])}, "nut.axis", "instance 1"),
    "rotation": ({"hinge.parent_pose.rotation": np.ones((2, 3, 3))}, "hinge.parent_pose.rotation", "instance 0"),
    "not finite": ({"arm.mass": np.array([1.0, np.nan])}, "arm.mass", "instance 1"),
}


@pytest.mark.parametrize("fault", BATCH_FAULTS)
def test_vary_refuses(fault):
    values, *words = BATCH_FAULTS[fault]
    with pytest.raises(mbs.ModelError) as caught:
        mbs.vary(machine(), values)
    assert not [w for w in words if w not in str(caught.value)], caught.value


def test_vary_refuses_what_elements_require_together():
    mech = mbs.Mechanism("rocket")
    mech.add_body("hull", 1.0, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("flight", mbs.Free(), "world", "hull")
    mech.add_force("jet", mbs.Thruster("hull", thrust=1.0, times=(0.0, 1.0), values=(1.0, 0.0)))
    model = mech.build()
    mbs.vary(model, {"jet.times": np.array([(0.0, 1.0), (0.0, 2.0)])})
    with pytest.raises(mbs.ModelError, match=r"vary 'jet'.*must increase"):
        mbs.vary(model, {"jet.times": np.array([(0.0, 1.0), (2.0, 1.0)])})


def test_get_and_free_name_near_matches():
    for function in (lambda: mbs.get(machine(), "coil.stifness"), lambda: mbs.free(machine(), ["coil.stifness"])):
        with pytest.raises(mbs.ModelError, match=r"'coil\.stifness'.*'coil\.stiffness'"):
            function()


def test_models_are_equal_when_structures_and_numbers_are():
    model = machine()
    assert model == machine()
    assert model != mbs.set(model, {"arm.mass": 1.6})
    assert model != mbs.free(model, ["arm.com"])
    batch, axes = mbs.vary(model, {"arm.mass": np.array([1.0, 2.0])})
    assert batch == mbs.vary(machine(), {"arm.mass": np.array([1.0, 2.0])})[0]
    assert batch != mbs.vary(model, {"arm.mass": np.array([1.0, 2.5])})[0]
    assert batch != model and axes != batch and model != "model"


def weight(model):
    """Potential energy: cheap, and a function of every number that it is differentiated by here."""
    return mbs.energy(model, jnp.asarray(Q), jnp.zeros(4))[1]


@pytest.mark.slow
def test_a_gradient_is_read_by_name_and_never_0_for_what_is_pinned():
    model = machine()
    with pytest.raises(mbs.ModelError, match=r"2 of 3 components of 'arm\.com' are structural.*mbs\.free"):
        mbs.derivative(jax.grad(weight)(model), "arm.com")
    got = mbs.derivative(jax.grad(weight)(mbs.free(model, ["arm.com"])), "arm.com")
    want = jax.jit(jax.grad(lambda com: weight(mbs.set(model, {"arm.com": com}))))(
        jnp.asarray(mbs.get(model, "arm.com"))
    )
    assert relative(got, want) < 1e-14 and abs(want[0]) > 1


@pytest.mark.slow
def test_the_derivative_with_respect_to_an_inertia_is_symmetric():
    """Both triangles count, and reading it from a whole model's gradient gives the same."""
    model = mbs.free(machine(), ["screw.inertia"])

    def kinetic(model):
        return mbs.energy(model, jnp.asarray(Q), jnp.asarray(V))[0]

    x = jnp.asarray(mbs.get(model, "screw.inertia"))
    got = jax.jit(jax.grad(lambda x: kinetic(mbs.set(model, {"screw.inertia": x}))))(x)
    assert relative(got, got.T) < 1e-15 and abs(got[0, 1]) > 1e-3
    assert relative(mbs.derivative(jax.grad(kinetic)(model), "screw.inertia"), got) < 1e-14
    rows = jax.vmap(jax.grad(kinetic), in_axes=(mbs.vary(model, {"screw.inertia": x[None]})[1],))
    assert relative(rows(mbs.vary(model, {"screw.inertia": x[None]})[0]).overrides["screw.inertia"][0], got) < 1e-14


def test_only_directions_and_rotations_pin_plus_and_minus_one():
    """A mass of exactly 1 kg is a number like any other; zeros are structure everywhere."""
    for kind in RULES:
        pinned = 1 if kind in (Kind.DIRECTION, Kind.ROTATION) else None
        assert pattern_of(kind, [1.0, 0.0, -1.0, 0.5]) == (pinned, 0, None if pinned is None else -1, None)
