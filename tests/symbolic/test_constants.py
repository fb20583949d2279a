"""Polynomials in the parameters of a model."""

from fractions import Fraction

from jaxmbs.symbolic.constants import Constant, exact, parameter, quotient

A, B = parameter(0), parameter(1)


def test_sums_and_products():
    """Terms that cancel are not there; what is a plain number is one."""
    assert ((A + B) * (A - B)).terms == {(0, 0): 1, (1, 1): -1}
    assert A - A == 0 and (A + 3) - A == 3 and A * 0 == 0
    assert ((2 * A * B + 1) + (-1)).terms == {(0, 1): 2}
    assert ((A + B) * (A - B)).value([3.0, 5.0]) == 9.0 - 25.0


def test_common_factors():
    """The first coefficient of what remains is positive, and all are whole and coprime."""
    content, rest = (-4 * A + 6 * B * Fraction(1, 3) * A).primitive()
    assert (content, rest.terms) == (-2, {(0,): 2, (0, 1): -1})
    assert (A * Fraction(2, 3) + B * Fraction(4, 5)).primitive() == (Fraction(2, 15), Constant({(0,): 5, (1,): 6}))
    assert A.primitive() == (1, A)


def test_exact_numbers():
    assert quotient(6, 3) == 2 and type(quotient(6, 3)) is int
    assert quotient(2, -1) == -2 and quotient(1, 4) == Fraction(1, 4)
    assert exact(0.5) == Fraction(1, 2) and type(exact(2.0)) is int
