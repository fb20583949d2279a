"""Emitted Python and C against the functions of the library, at states that the formulas were not checked at."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.symbolic.helpers import EXACT, WHATS, arguments, compiled, difference, expected, model, written

SMALL = ("three-link arm", "double pendulum", "sliding", "turned", "sprung")
JOINTS = ("planar robot", "hinged", "ball", "free")
LARGE = ("spatial robot", "arm7", "aligned 7R", "general 7R")
LONG = [("three-link arm", "forward_dynamics"), ("turned", "forward_dynamics")]  # for --slow, like all that is not here
CASES = [
    *(("double pendulum", what, "numbers") for what in WHATS),
    *(("three-link arm", what, "symbols") for what in WHATS if ("three-link arm", what) not in LONG),
    ("sliding", "inverse_dynamics", "symbols"), ("turned", "mass_matrix", "symbols"), ("ball", "bias_forces", "symbols"),
    ("free", "bias_forces", "symbols"), ("sprung", "bias_forces", "symbols"), ("planar robot", "kinetic_energy", "symbols"),
]  # fmt: skip
SLOW = [(name, what, c) for name in (*SMALL, *JOINTS, *LARGE) for what in WHATS for c in ("symbols", "numbers")]
SLOW = [pytest.param(*x, marks=pytest.mark.slow) for x in SLOW if x not in CASES]


@pytest.mark.parametrize(("name", "what", "constants"), [*CASES, *SLOW])
def test_python_and_c(name, what, constants):
    """C where there is a compiler, Python everywhere."""
    out, of = written(name, what, constants), model(name)
    emitted = [f for f in (out.function(), compiled(out)) if f]
    for seed in range(1, 5):
        args = arguments(out, of, seed)
        want = expected(out, of, args)
        for f in emitted:
            assert difference(f(*args), want) < EXACT


def test_without_a_compiler_python_is_compared(monkeypatch):
    monkeypatch.setenv("PATH", "")
    out, of = written("double pendulum", "mass_matrix"), model("double pendulum")
    assert compiled(out) is None
    test_python_and_c("double pendulum", "mass_matrix", "symbols")
    monkeypatch.setattr(type(out), "function", lambda self: lambda *args: 2 * np.asarray(expected(out, of, args)))
    with pytest.raises(AssertionError):
        test_python_and_c("double pendulum", "mass_matrix", "symbols")


@pytest.mark.slow
def test_against_the_compiled_functions():
    """The public functions of arrays, once each; the emitted NumPy code on a batch."""
    of = model("three-link arm")
    q, v, x = np.random.default_rng(0).normal(size=(3, 3))
    own = {
        "mass_matrix": (mbs.mass_matrix(of, jnp.asarray(q)), (q,)),
        "bias_forces": (mbs.bias_forces(of, jnp.asarray(q), jnp.asarray(v)), (q, v)),
        "inverse_dynamics": (mbs.inverse_dynamics(of, *map(jnp.asarray, (q, v, x))), (q, v, x)),
        "forward_dynamics": (mbs.forward_dynamics(of, *map(jnp.asarray, (q, v, x))), (q, v, x)),
        "kinetic_energy": (mbs.energy(of, jnp.asarray(q), jnp.asarray(v))[0], (q, v)),
    }
    for what, (want, args) in own.items():
        f = written("three-link arm", what).function("numpy")
        assert difference(f(*args), want) < EXACT
        batch = f(*(np.stack([a, 2 * a], axis=1) for a in args))
        assert difference(first(batch), want) < EXACT


def first(entry):
    """Of every entry of a nested list the first instance; entries that are constant have one."""
    return [first(x) for x in entry] if isinstance(entry, list) else np.ravel(entry)[0]


def test_the_numpy_code_makes_its_choices_per_instance():
    out, of = written("sprung", "bias_forces"), model("sprung")
    assert out.operations.functions > 5
    f, states = out.function("numpy"), [arguments(out, of, seed) for seed in range(1, 30)]
    t = states[0][-1]
    q, v = (np.array([s[i] for s in states]).T for i in (0, 1))
    with np.errstate(all="ignore"):
        (got,) = f(q, v, t)
    assert difference(got, [expected(out, of, [*s[:2], t])[0] for s in states]) < EXACT


@pytest.mark.parametrize("what", ["mass_matrix", "forward_dynamics"])
def test_symbols_stay_symbols(what):
    """Other masses, lengths and inertias: the same formulas with other constants, not written out anew."""
    out, of = written("three-link arm", what), model("three-link arm")
    assert out.parameters["body_2_mass"] == 4.0 and "k2" in out.constants
    new = {"body_2.mass": 7.0, "body_3.com": (0.31, 0.0, 0.0), "q_3.parent_pose.position": (0.6, 0.2, 0.0)}
    other = mbs.set(of, new)
    space = {}
    exec(out.python(), space)
    changed = space["PARAMETERS"] | {"body_2_mass": 7.0, "body_3_com_x": 0.31}
    changed |= {"q_3_parent_pose_position_x": 0.6, "q_3_parent_pose_position_y": 0.2}
    assert set(changed) == set(out.parameters)
    args = arguments(out, of, 3)
    want = expected(out, other, args)
    assert difference(space[what](*args, space["constants"](changed)), want) < EXACT
    assert difference(space[what](*args), want) > 1e-2  # the model's own constants are others


def test_a_wrong_formula_is_noticed():
    """The check of this file and that of write_out itself fail when one sign of the formulas is turned."""
    out, of = written("three-link arm", "mass_matrix"), model("three-link arm")
    source = out.python()
    args = arguments(out, of, 1)
    for k, line in enumerate(source.splitlines()):
        if line.strip().startswith(("x", "A")) and " + " in line:
            space = {}
            lines = source.splitlines()
            exec("\n".join([*lines[:k], line.replace(" + ", " - ", 1), *lines[k + 1 :]]), space)
            assert difference(space["mass_matrix"](*args), expected(out, of, args)) > 1e-3


def test_write_out_evaluates_its_formulas_before_it_returns_them(monkeypatch):
    own = mbs.symbolic.WrittenOut.function

    def wrong(self, module="math"):
        return lambda *args: [x + 1e-6 for x in own(self, module)(*args)]

    monkeypatch.setattr(mbs.symbolic.WrittenOut, "function", wrong)
    with pytest.raises(AssertionError, match="differ from the function"):
        mbs.textbook.write_out(model("double pendulum"), "bias_forces")
