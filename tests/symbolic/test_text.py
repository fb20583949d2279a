"""The printed text: LaTeX that is well-formed and defines before it uses; names; errors."""

import math
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.textbook import write_out
from tests.symbolic.helpers import arguments, difference, expected, model, sprung, written

INPUT = re.compile(r"(?:q|v|a|\\tau)_\{\d+\}|t")
NAME = re.compile(r"(?:\\tau|[a-zA-Z])_\{[^{}]*\}|(?<![\\a-zA-Z])[T](?![a-zA-Z])")
LATEX = [
    ("three-link arm", "mass_matrix", "symbols"), ("double pendulum", "forward_dynamics", "numbers"),
    ("spatial robot", "mass_matrix", "symbols"), ("sprung", "bias_forces", "symbols"),
    ("sprung", "forward_dynamics", "symbols"),
    ("ball", "bias_forces", "symbols"), ("arm7", "inverse_dynamics", "symbols"),
]  # fmt: skip


def blocks(text):
    return [x.split(" \\\\\n") for x in re.findall(r"\\begin\{align\*\}\n(.*?)\n\\end\{align\*\}", text, re.S)]


def balanced(text):
    depth = 0
    for c in re.sub(r"\\[{}]", "", text):
        depth += {"{": 1, "}": -1}.get(c, 0)
        assert depth >= 0, text
    return depth == 0 and text.count(r"\left") == text.count(r"\right")


def undefined(block, known):
    """Names that a line uses before a line defines them."""
    missing = []
    for line in block:
        left, right = line.split(" &= ", 1)
        used = set(NAME.findall(right))
        missing += [name for name in used if name not in known and not INPUT.fullmatch(name)]
        known = known | {left.strip()}
    return missing


@pytest.mark.slow
@pytest.mark.parametrize(("name", "what", "constants"), LATEX)
def test_latex(name, what, constants):
    """Balanced braces, one "name = formula" a line, every name defined before it is used, results among them."""
    out = written(name, what, constants)
    text = out.latex()
    evaluation, *rest = blocks(text)
    given = rest[0] if rest else []
    assert balanced(text) and all(balanced(line) for block in (evaluation, given) for line in block)
    assert all(line.count(" &= ") == 1 for block in (evaluation, given) for line in block)
    constants_named = {line.split(" &= ")[0].strip() for line in given}
    assert len(constants_named) >= len(out.constants)
    assert not undefined(evaluation, constants_named)
    assert not [x for x in undefined(given, set()) if re.match(r"[kd]_", x)]
    lefts = [line.split(" &= ")[0] for line in (*evaluation, *given)]
    assert len(set(lefts)) == len(lefts)
    letter = {"mass_matrix": "A_", "bias_forces": "b_", "inverse_dynamics": r"\tau_", "forward_dynamics": "a_"}.get(
        what, "T"
    )
    assert sum(x.startswith(letter) for x in lefts) >= (1 if letter == "T" else model(name).nv)


def test_the_latex_check_notices_what_is_missing():
    block = blocks(written("three-link arm", "mass_matrix").latex())[0]
    assert undefined(block[1:], {f"k_{{{i}}}" for i in range(1, 20)})
    assert undefined(block, set())
    with pytest.raises(AssertionError):
        balanced("}{")
    assert not balanced(r"\left(x")


def value(formula, known):
    """What a right-hand side of the LaTeX says, given the numbers of its names."""
    for name in sorted(known, key=len, reverse=True):
        formula = re.sub(rf"(?<![\\a-z]){re.escape(name)}(?![a-z])", f"({known[name]!r})", formula)
    formula = formula.replace(r"\left", "").replace(r"\right", "").replace(r" \, ", "*")
    cases = re.fullmatch(r"\\begin\{cases\} (.*) & (.*) \\\\ (.*) & \\text\{otherwise\} \\end\{cases\}", formula)
    if cases:
        formula = "{} if {} else {}".format(*cases.groups()).replace(r"\ge", ">=").replace(r"\le", "<=")
    formula = re.sub(r"^\\(sin|cos) (\d*)(.*)$", lambda m: f"{m[1]}({m[2] or 1}*({m[3]}))", formula)
    before = None
    while before != formula:  # from the innermost braces on
        before = formula
        formula = re.sub(r"\{([^{}]*)\}\^\{(\d+)\}", r"(\1)**\2", formula)
        formula = re.sub(r"\\t?frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", formula)
        formula = re.sub(r"\\(sqrt|tanh)[{(]([^{}]*)[})]", r"\1(\2)", formula)
    return eval(formula, vars(math) | {"__builtins__": {}})


@pytest.mark.parametrize(
    ("name", "what"),
    [("three-link arm", "mass_matrix"), ("double pendulum", "forward_dynamics"), ("sprung", "bias_forces"),
     ("opposite", "mass_matrix")],
)  # fmt: skip
def test_latex_has_the_value_of_the_function(name, what):
    """Read as arithmetic, constants and evaluation together give the library's own numbers."""
    out, of = written(name, what), model(name)
    evaluation, given = blocks(out.latex())
    known = {tex: number for code, tex, number in out._names.parameters.values() if code in out.parameters}
    args = arguments(out, of)
    for (letter, _), x in zip(out.inputs, args, strict=True):
        letter = r"\tau" if letter == "tau" else letter
        known |= {"t": x} if letter == "t" else {f"{letter}_{{{i}}}": y for i, y in enumerate(x, 1)}
    for line in (*given, *evaluation):
        left, right = line.split(" &= ")
        known[left] = value(right, known)
    want = np.asarray(expected(out, of, args), float)
    letter = {"mass_matrix": "A", "forward_dynamics": "a", "bias_forces": "b"}[what]
    for index in np.ndindex(want.shape):
        name = "".join(str(i + 1) for i in sorted(index, reverse=True))
        assert known[f"{letter}_{{{name}}}"] == pytest.approx(want[index], rel=1e-12)


def test_mathtext_draws_the_lines():
    """A parser of TeX reads every line of the three-link arm."""
    mathtext = pytest.importorskip("matplotlib.mathtext")
    parser = mathtext.MathTextParser("path")
    for block in blocks(written("three-link arm", "mass_matrix").latex()):
        for line in block:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert parser.parse("$" + line.replace("&", "").replace(r"\tfrac", r"\frac") + "$").width > 10


def test_constants_that_are_functions_of_parameters():
    """1/I of a wheel is a parameter of its own: defined in LaTeX, Python and C alike."""
    mech = mbs.Mechanism("wheel")
    mech.add_body("w", 1.0, inertia=(0.2, 0.3, 0.4))
    mech.add_joint("axle", mbs.Revolute((0, 0, 1)), "world", "w")
    out = write_out(mech.build(), "forward_dynamics")
    assert out.operations.total == 1 and out.function()([0.0], [0.0], [1.0]) == [2.5]
    assert r"d_{1} &= \frac{1}{I^{zz}_{\mathrm{w}}}" in out.latex()
    assert "d1 = 1.0/(w_inertia_zz)" in out.python() and "const double d1 = 1.0/(w_inertia_zz)" in out.c()


def test_names_that_languages_do_not_take():
    """Bodies may be called anything: identifiers are valid, TeX is escaped, comments do not end early."""
    out = written("sprung", "mass_matrix")
    assert all(name.isidentifier() and name.isascii() for name in out.parameters)
    assert r"2nd\ rod" in out.latex() and "p_2nd_rod_mass" in out.python()
    assert "100 % pendulum_:" in out.c()
    mech = mbs.Mechanism("names", gravity=(0, 0, -9.81))
    for name, parent in (("a-b", "world"), ("a b", "a-b"), ("ось {x}%", "a b")):
        mech.add_body(name, 1.0, (0.1, 0, 0.2), (1, 1.1, 1.2))
        mech.add_joint("j " + name, mbs.Revolute((0, 1, 0)), parent, name, mbs.Pose((0, 0, 0.4)))
    of = mech.build()
    out = write_out(of, "mass_matrix")
    assert all(name.isidentifier() and name.isascii() for name in out.parameters) and balanced(out.latex())
    assert difference(out.function()(*(args := arguments(out, of))), expected(out, of, args)) < 1e-12


def test_numbers_print_no_parameters():
    text = written("three-link arm", "mass_matrix", "numbers").python()
    assert "def constants" not in text and "PARAMETERS" not in text and "k1 = " in text


def test_said_in_words():
    out = written("three-link arm", "mass_matrix")
    assert str(out) == f"mass_matrix of 'three-link arm' by {out.method}: {out.operations}"
    assert "9 additions, 6 multiplications, 5 sines and cosines, 1 sums of angles" in str(out)


def general():
    mech = mbs.Mechanism("general")
    mech.add_body("b", 1.0, inertia=(1, 1, 1))
    z, G = (lambda q, t: jnp.stack([q[0], 0 * q[0], 0 * q[0]])), (lambda q, t: jnp.eye(3))
    mech.add_joint("wire", mbs.General(z, G, 1), "world", "b")
    return mech.build()


def with_external():
    mech = sprung()
    mech.add_force("wind", mbs.External(lambda *args: jnp.zeros(6), "2nd rod"))
    return mech.build()


def looped():
    mech = mbs.library.double_pendulum()
    body = mech.build().body_names[-1]
    mech.close_loop("cut", mbs.Revolute((0, 1, 0)), "world", body, mbs.Pose((0.5, 0, 0)))
    return mech.build()


def with_shapes():
    mech = mbs.library.double_pendulum()
    mech.add_force("touch", mbs.ShapeContact("lower", mbs.Ball(0.1), "world", mbs.Box((1, 1, 1))))
    return mech.build()


def fixed():
    mech = mbs.Mechanism("frozen")
    mech.add_body("b", 1.0, inertia=(1, 1, 1))
    mech.add_joint("weld", mbs.Fixed(), "world", "b")
    return mech.build()


def batched():
    return mbs.vary(model("three-link arm"), {"body_2.mass": jnp.array([1.0, 2.0])})[0]


ERRORS = {
    "what": (lambda: write_out(model("three-link arm"), "mass matrx"), ["'mass matrx'", "did you mean 'mass_matrix'"]),
    "constants": (lambda: write_out(model("three-link arm"), "mass_matrix", constants="text"), ["'text'", "symbols"]),
    "method": (lambda: write_out(model("three-link arm"), "mass_matrix", method="abba"), ["'abba'", "crba"]),
    "telegin": (lambda: write_out(model("sliding"), "mass_matrix", method="telegin"),
                ["'telegin'", "'joint_1' is Prismatic", "use 'crba'"]),
    "general": (lambda: write_out(general(), "mass_matrix"), ["joint 'wire' is General", "use one of the other joints"]),
    "external": (lambda: write_out(with_external(), "bias_forces"), ["force 'wind' is External", "without it"]),
    "contact of shapes": (lambda: write_out(with_shapes(), "bias_forces"), ["force 'touch' is ShapeContact", "without it"]),
    "loop": (lambda: write_out(looped(), "forward_dynamics"), ["loops or constraints", "mass_matrix and bias_forces"]),
    "nothing": (lambda: write_out(fixed(), "bias_forces"), ["'frozen'", "no degree of freedom"]),
    "mechanism": (lambda: write_out(mbs.library.double_pendulum(), "mass_matrix"), ["Mechanism", "build()"]),
    "batched": (lambda: write_out(batched(), "mass_matrix"), ["body_2.mass", "mbs.vary"]),
    "module": (lambda: written("three-link arm", "mass_matrix").python("torch"), ["'torch'", "'numpy'"]),
}  # fmt: skip


@pytest.mark.parametrize("which", ERRORS)
def test_errors(which):
    call, words = ERRORS[which]
    with pytest.raises(mbs.ModelError) as caught:
        call()
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_traced_number_is_refused():
    def f(mass):
        return write_out(mbs.set(model("three-link arm"), {"body_2.mass": mass}), "mass_matrix").operations.total

    with pytest.raises(mbs.ModelError, match=r"'body_2.mass' is traced"):
        jax.jit(f)(1.0)


def test_external_forces_do_not_matter_to_the_mass_matrix():
    assert write_out(with_external(), "mass_matrix").operations.total == 0
