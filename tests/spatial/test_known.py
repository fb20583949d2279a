"""Known numbers: what folds, what the others leave to them, and where plain numbers become known."""

import itertools
import math
import operator
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy

import jaxmbs as mbs
from jaxmbs.elements import Force, Kind, element, field
from jaxmbs.spatial import IDENTITY3, ZERO3, Motion, Vector3, kernel
from jaxmbs.spatial.known import ONE, ZERO, Known, bare, known
from jaxmbs.spatial.scalar import cos, sin, sqrt, total, where

OPERATORS = (operator.add, operator.sub, operator.mul, operator.truediv)
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
VALUES = (0, 1, -1, 0.0, 1.0, -1.0, 2.5, -3)


def operations(f, *x):
    """The primitives of a trace."""
    return [e.primitive.name for e in jax.make_jaxpr(f)(*x).eqns]


def test_a_formula_leaves_only_what_it_needs():
    a, b = 2.0, 3.0
    assert operations(lambda a, b: a * ZERO + b * ONE - ZERO * b, a, b) == []
    assert operations(lambda a, b: a * ZERO - b * ONE, a, b) == ["neg"]
    assert operations(lambda a, b: a * Known(2) + ONE * b, a, b) == ["mul", "add"]
    assert operations(lambda a: total(ZERO, a * ONE, ZERO), a) == []


@pytest.mark.parametrize("kind", [jnp.asarray, np.float64, np.asarray, sympy.Float, float, Known])
def test_operators_give_what_the_number_gives(kind):
    x = kind(0.75)
    for a, op in itertools.product(VALUES, (*OPERATORS, *COMPARISONS)):
        assert bool(op(Known(a), x) == op(a, bare(x))), (op, a)
        if a or op is not operator.truediv:
            assert bool(op(x, Known(a)) == op(bare(x), a)), (op, a)
    for a in VALUES:
        assert bare(-Known(a)) == -a and bare(abs(Known(a))) == abs(a) and bare(Known(a) ** 2) == a**2


def test_what_changes_nothing_leaves_no_operation():
    """Whichever side the array is on; the result is the array itself."""
    x = jnp.asarray(0.7)
    same = (x + ZERO, ZERO + x, x - ZERO, x * ONE, ONE * x, x / ONE, x * Known(1.0), Known(0.0) + x)
    assert all(y is x for y in same)
    assert all(type(y) is Known and y == 0 for y in (x * ZERO, ZERO * x, ZERO / x, x * Known(0.0)))
    for f in (lambda x: ZERO - x, lambda x: x * -ONE, lambda x: -ONE * x, lambda x: x / -ONE):
        assert operations(f, x) == ["neg"] and f(x) == -0.7


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_arrays_keep_their_type(dtype):
    """As with a Python number, and to the bit."""
    x = jnp.asarray(0.7, dtype)
    for a, op in itertools.product((2.5, 3), OPERATORS):
        for got, want in ((op(Known(a), x), op(a, x)), (op(x, Known(a)), op(x, a))):
            assert got.dtype == dtype and got.weak_type == want.weak_type and got == want
    assert where(x > 0, Known(2.5), Known(1)).dtype == jnp.float64  # weak, as of Python numbers
    assert where(x > 0, Known(2.5), x).dtype == dtype


def test_symbols_leave_operations_to_it():
    x = sympy.Symbol("x")
    assert x * ZERO is ZERO and x + ZERO is x and ZERO - x == -x and x / ONE is x
    assert x * Known(2) == 2 * x == Known(2) * x and sympy.sin(ZERO) == 0 and (x < Known(2)) == (x < 2)


def test_vectors_come_first():
    """A known zero times a vector is a vector."""
    v = Vector3(1.0, 2.0, 3.0)
    assert isinstance(ZERO * v, Vector3) and isinstance(v * ONE, Vector3) and isinstance(Motion(v, v) * ZERO, Motion)
    for other in ([1.0], "1", None):
        with pytest.raises(TypeError):
            ZERO + other


def test_numbers_among_components_are_known():
    """Also those that a transformation of pytrees puts there, and those that a compiled call is given or gives."""
    x = jnp.asarray(0.7)
    v = Vector3(0, x, 1.5)
    assert [type(c) is Known for c in v] == [True, False, True]
    assert type(jax.tree_util.tree_map(lambda c: 2, v).y) is Known
    assert all(type(c) is Known for c in (*IDENTITY3, *ZERO3))
    assert operations(lambda x: list(Vector3(0, x, 1) * 1 + ZERO3)[1], x) == []
    seen = []

    @kernel
    def call(a, b):
        seen.append(type(a))
        return a * b, 2

    got = call(1, x)
    assert seen == [Known] and got[0] == x and type(got[1]) is Known


def test_functions_of_known_numbers_are_known():
    for f, g in ((sin, math.sin), (cos, math.cos), (sqrt, math.sqrt)):
        assert type(f(Known(0.5))) is type(f(0.5)) is Known and bare(f(Known(0.5))) == g(0.5)
    assert where(True, ONE, ZERO) is ONE and type(where(False, 1, 0)) is Known


def test_it_is_a_number_elsewhere():
    x = Known(2.5)
    assert float(x) == math.floor(x.value) + 0.5 and int(x) == 2 and bool(x) and not ZERO and hash(x) == hash(2.5)
    assert f"{x:.2f} {x!r}" == "2.50 2.5" and pickle.loads(pickle.dumps(x)) == x and {0: "zero"}[ZERO] == "zero"
    assert np.array([x, 1.0], float).tolist() == [2.5, 1.0] and jnp.asarray([x, jnp.ones(())]).tolist() == [2.5, 1.0]
    assert jnp.asarray(x, jnp.float32).dtype == jnp.float32 and known("x") == bare("x") == "x"


@element
class _Wind(Force):
    """Drag relative to wind, as a user writes it: with operators alone."""

    body: str = field(Kind.BODY, "", "body")
    factor: float = field(Kind.NUMBER, "kg/s", "drag per speed", default=0.0)
    wind: tuple = field(Kind.VECTOR, "m/s", "of the air", default=(0.0, 0.0, 0.0))

    def apply(self, p, scene, loads):
        v = scene.velocity(self.body, ZERO3)
        loads.force(self.body, Vector3(-p["factor"] * (v.x - p["wind"].x), 0, p["factor"] * p["wind"].z), ZERO3)


def test_an_element_needs_no_functions_of_the_library():
    """Its trace holds nothing for the components that are zero."""

    def model(**numbers):
        mech = mbs.Mechanism("kite")
        mech.add_body("kite", 2.0, inertia=(1.0, 1.0, 1.0))
        mech.add_joint("free", mbs.Free(), "world", "kite")
        mech.add_force("wind", _Wind("kite", **numbers))
        return mech.build()

    q, v = model().neutral(), jnp.arange(6.0)
    a = mbs.forward_dynamics(model(factor=0.5, wind=(1.0, 0, 0)), q, v) - mbs.forward_dynamics(model(), q, v)
    assert np.allclose(a, [0, 0, 0, -0.5 * (3 - 1) / 2, 0, 0], atol=1e-15)

    def count(**numbers):
        return str(jax.make_jaxpr(lambda v: mbs.forward_dynamics(model(**numbers), q, v))(v)).count("=")

    assert count() < count(factor=0.5) < count(factor=0.5, wind=(1.5, 0, 2.0))
