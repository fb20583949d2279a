"""Operations of T's robots and of seven-axis arms; parallel axes as sums of angles; the same code on SymPy scalars."""

import math
import re

import numpy as np
import pytest
import sympy

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.symbolic.hinges import angles_of
from tests.symbolic.helpers import arguments, chain, difference, expected, model, written


def test_three_link_arm():
    """[T 3] prints 9 additions and 7 multiplications, or 11 and 5, besides 5 trigonometric values and q2 + q3."""
    n = written("three-link arm", "mass_matrix").operations
    assert n.additions <= 9 and n.multiplications <= 6 and n.divisions == n.functions == 0
    assert n.trigonometric <= 5 and n.angle_sums <= 1


def counted(source):
    """(additions, multiplications, divisions, sines and cosines) of the emitted Python by its text."""
    body = source[source.rindex("def ") :].split("\n", 1)[1]
    lines = [x.split("=", 1) for x in body.splitlines() if "=" in x and not x.strip().startswith(("(", "return"))]
    angles = [right for left, right in lines if left.strip().startswith("q")]
    text = "\n".join(right for left, right in lines if not left.strip().startswith("q"))
    binary = len(re.findall(r" [+-] ", text))
    return binary, text.count("*"), text.count("/"), len(re.findall(r"\b(?:sin|cos)\(", text)), len(angles)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["mass_matrix", "forward_dynamics", "kinetic_energy"])
@pytest.mark.parametrize("name", ["three-link arm", "planar robot", "double pendulum"])
def test_the_count_is_that_of_the_code(name, what):
    out = written(name, what)
    n = out.operations
    additions, multiplications, divisions, trigonometric, sums = counted(out.python())
    assert (additions, multiplications, divisions) == (n.additions, n.multiplications, n.divisions)
    assert trigonometric == n.trigonometric and sums == n.angle_sums


# (additions, multiplications, sines and cosines) that must not grow
MOST = {
    ("planar robot", "mass_matrix"): (18, 12, 10),
    ("planar robot", "forward_dynamics"): (62, 70, 12),
    ("spatial robot", "mass_matrix"): (52, 62, 16),
    ("spatial robot", "forward_dynamics"): (180, 248, 16),
    ("arm7", "mass_matrix"): (92, 129, 12),
    ("arm7", "inverse_dynamics"): (135, 193, 12),
    ("arm7", "forward_dynamics"): (319, 446, 12),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "what"), MOST)
@pytest.mark.usually("planar*", "arm7-mass_matrix", "arm7-inverse_dynamics")
def test_robots(name, what):
    n = written(name, what).operations
    assert all(x <= y for x, y in zip((n.additions, n.multiplications, n.trigonometric), MOST[name, what], strict=True))


# additions, multiplications and divisions of the recursions themselves, from the prototype's table
RECURSIONS = {
    ("aligned 7R", "mass_matrix"): 651, ("aligned 7R", "inverse_dynamics"): 1101, ("aligned 7R", "forward_dynamics"): 2065,
    ("general 7R", "mass_matrix"): 1752, ("general 7R", "inverse_dynamics"): 1688, ("general 7R", "forward_dynamics"): 3721,
}  # fmt: skip
LONG = (
    ("aligned 7R", "inverse_dynamics"),
    ("aligned 7R", "forward_dynamics"),
    *(key for key in RECURSIONS if key[0] == "general 7R"),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "what"), [pytest.param(*k, marks=pytest.mark.slow) if k in LONG else k for k in RECURSIONS]
)
def test_fewer_than_the_recursions(name, what):
    assert written(name, what).operations.total < 0.85 * RECURSIONS[name, what]


def parallel(n, axes, turn=None):
    """n links about given axes in turn; `turn`: rotation of every joint's frame."""
    mech = mbs.Mechanism("parallel", gravity=(0, 0, -9.81))
    for i in range(n):
        mech.add_body(f"b{i}", 1.0 + i, (0.1 + i, 0.2, 0.05), (0.2, 0.3, 0.25))
        pose = mbs.Pose((0.3, 0.4, 0.0), turn or (1, 0, 0, 0))
        mech.add_joint(f"j{i}", mbs.Revolute(axes[i % len(axes)]), f"b{i - 1}" if i else "world", f"b{i}", pose)
    return mech.build()


@pytest.mark.slow
@pytest.mark.parametrize("turn", [None, (math.cos(0.3), 0, math.sin(0.3), 0)])
def test_parallel_axes_fold_to_sums_of_angles(turn):
    """Entries depend on q2, q3 and their sum, linearly; placements turned about the axis change constants only."""
    out = mbs.textbook.write_out(parallel(3, ((0, 1, 0),), turn), "mass_matrix")
    n = out.operations
    assert n.trigonometric <= 6 and n.angle_sums == 1 and n.multiplications <= 10
    code = out.python()
    assert "q23 = q[1] + q[2]" in code and r"q_{2} + q_{3}" in out.latex()
    assert not re.search(r"\b[sc]\d+\*[sc]\d+", code)  # no product of two of them


@pytest.mark.parametrize("axis", [(0, 1, 0), (0.6, 0, 0.8)])
def test_axes_of_opposite_sign_fold_to_differences(axis):
    found = angles_of(parallel(3, (axis, tuple(-c for c in axis))))
    assert len(set(found.groups.values())) == 1
    assert {((1, -1), (2, 1)), ((0, 1), (1, -1), (2, 1))} <= found.sums


@pytest.mark.slow
def test_axes_that_are_not_parallel_do_not_fold():
    out = mbs.textbook.write_out(parallel(3, ((0, 1, 0), (1, 0, 0))), "mass_matrix")
    assert out.operations.angle_sums == 0 and out.operations.trigonometric == 4


def test_nearly_parallel_axes_do_not_fold():
    out = mbs.textbook.write_out(parallel(2, ((0, 1, 0), (0, math.cos(1e-5), math.sin(1e-5)))), "bias_forces")
    assert out.operations.angle_sums == 0


@pytest.mark.slow
def test_the_same_algorithms_on_sympy_scalars():
    """CRBA, RNEA and ABA run on SymPy symbols as they are; `formulas` are expressions of the same value."""
    of = chain("two links", (mbs.Revolute((0, 0, 1)), mbs.Revolute((0, 1, 0)))).build()
    q, v, x = (sympy.symbols(f"{name}_1:3", real=True) for name in "qva")
    args = [[0.3, -0.8], [0.7, 0.2], [1.1, -0.4]]
    at = {s: c for symbols, values in zip((q, v, x), args, strict=True) for s, c in zip(symbols, values, strict=True)}
    for what, symbols in (("mass_matrix", (q,)), ("inverse_dynamics", (q, v, x)), ("forward_dynamics", (q, v, x))):
        result = np.array(getattr(scalar, what)(of, *map(list, symbols)), object)
        assert any(isinstance(e, sympy.Expr) and e.free_symbols for e in result.flat)
        got = np.reshape([float(sympy.sympify(e).subs(at)) for e in result.flat], result.shape)
        out = mbs.textbook.write_out(of, what)
        want = expected(out, of, args[: len(symbols)])
        assert difference(got, want) < 1e-12


@pytest.mark.slow
def test_formulas_evaluate_to_the_function():
    for name, what in (
        ("three-link arm", "kinetic_energy"),
        ("sprung", "bias_forces"),
        ("double pendulum", "inverse_dynamics"),
    ):
        out, of = written(name, what), model(name)
        args = arguments(out, of, 2)
        values = {sympy.Symbol(k, real=True): c for k, c in out.constants.items()}
        for (letter, _), given in zip(out.inputs, args, strict=True):
            numbered = given if isinstance(given, list) else [given]
            for i, c in enumerate(numbered, 1):
                values[sympy.Symbol(letter if letter == "t" else f"{letter}_{i}", real=True)] = c
        for symbol, expression in out.formulas:
            values[symbol] = float(expression.subs(values))
        by_name = {s.name: c for s, c in values.items()}
        want = expected(out, of, args)
        symbol = {"kinetic_energy": "T", "bias_forces": "b", "inverse_dynamics": "tau"}[what]
        got = by_name["T"] if symbol == "T" else [by_name[f"{symbol}_{i + 1}"] for i in range(of.nv)]
        assert difference(got, want) < 1e-12
