"""Proofs that conditions cannot be met hold for all bodies that an envelope may have."""

import numpy as np
import pytest

from jaxmbs.design.certificate import Envelope, _least, distance

ROWS = 10


def moments(mass, p):
    """(n, 10) coordinates of point masses: inertia about the pole, its products, first moments, mass."""
    p = np.asarray(p)
    xx, yy, zz = (p * p).T
    x, y, z = p.T
    found = [yy + zz, xx + zz, xx + yy, -x * y, -x * z, -y * z, x, y, z, np.ones(len(p))]
    return mass[:, None] * np.stack(found, axis=1)


def inside(rng, body, n):
    """Masses (n,) and points (n, 3) inside an envelope."""
    s = rng.normal(size=(n, 3))
    s *= (rng.uniform(size=n) ** (1 / 3) / np.linalg.norm(s, axis=1))[:, None]
    s[: n // 2] /= np.linalg.norm(s[: n // 2], axis=1)[:, None]  # half of them on its border
    return np.where(rng.uniform(size=n) < 0.5, *body.mass), body.center + s * body.half


@pytest.mark.parametrize("free_mass", [False, True], ids=["mass given", "mass free"])
def test_no_body_is_below_the_least(free_mass):
    rng = np.random.default_rng(7)
    for _ in range(100):
        m = np.sort(rng.uniform(0.5, 3.0, 2)) if free_mass else np.full(2, rng.uniform(0.5, 3.0))
        body = Envelope(slice(0, 9 + free_mass), rng.normal(size=3), rng.uniform(0.1, 1.0, 3), (m[0], m[1]), free_mass)
        g = rng.normal(size=9 + free_mass)
        bound, near = _least(g, body)
        values = moments(*inside(rng, body, 400))[:, : len(g)] @ g
        rounding = 1e-9 * np.abs(values).max()
        assert bound <= values.min() + rounding
        assert bound <= g @ near + rounding, "what comes near it is such a body, too"
        assert g @ near <= values.min() + rounding, "and none of the others comes nearer"


def test_no_bodies_are_nearer_than_what_is_proved():
    rng = np.random.default_rng(8)
    proved = 0
    for _ in range(10):
        m = np.sort(rng.uniform(0.5, 3.0, 2))
        bodies = [
            Envelope(slice(0, 10), rng.normal(size=3), rng.uniform(0.1, 0.5, 3), (m[0], m[1]), True),
            Envelope(slice(10, 19), rng.normal(size=3), rng.uniform(0.1, 0.5, 3), (2.0, 2.0), False),
        ]
        J, r0 = rng.normal(size=(ROWS, 19)), 3 * rng.normal(size=ROWS)
        c = np.concatenate([moments(*inside(rng, b, 2000))[:, : b.own.stop - b.own.start] for b in bodies], axis=1)
        bound = distance(J, r0, bodies)
        assert bound <= np.linalg.norm(c @ J.T + r0, axis=1).min() * (1 + 1e-9)
        proved += bound > 0
    assert proved > 5
