"""The triple pendulum against the program of [Y 3.5], the curve joint in closed form, and the example scripts."""

import importlib.util
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import relative
from tests.dynamics.formulations.helpers import EXACT, quick

EXAMPLES = Path(__file__).parents[3] / "examples"


class SeparateBodies:
    """The program of [Y 3.5] in planar 3-vectors (x, y, angle), angles from the x axis; `GetWk.m`, which the text
    leaves out, is w_k = C_k w_{k-1} + S_k q_k" + w'_k of (3.172). The bracket of Q* has the sign of the program, the
    opposite of (3.177)."""

    def __init__(self, q, dq):
        self.q, self.dq = q, dq
        self.c = {(1, 1): (-1, 0), (1, 2): (1, 0), (2, 2): (-1, 0), (2, 3): (1, 0), (3, 3): (-1, 0)}
        self.M, self.Q = [np.eye(3)] * 3, [np.array([0, -1, 0])] * 3

    def C(self, k):
        if k == 1:
            return np.zeros((3, 3))
        q, (cx, cy) = self.q[k - 2], self.c[k - 1, k]
        res = np.diag([1.0, 1.0, 0.0])
        res[0, 2] = -np.sin(q) * cx - np.cos(q) * cy
        res[1, 2] = np.cos(q) * cx - np.sin(q) * cy
        return res

    def S(self, k):
        q, (cx, cy) = self.q[k - 1], self.c[k, k]
        return np.array([np.cos(q) * cy + np.sin(q) * cx, np.sin(q) * cy - np.cos(q) * cx, 1.0])

    def w_prime(self, k):
        q1, d1, c1 = (self.q[k - 2], self.dq[k - 2], self.c[k - 1, k]) if k > 1 else (0.0, 0.0, (0, 0))
        q2, d2, c2 = self.q[k - 1], self.dq[k - 1], self.c[k, k]
        return np.array([
            d1**2 * (-np.cos(q1) * c1[0] + np.sin(q1) * c1[1]) + d2**2 * (np.cos(q2) * c2[0] - np.sin(q2) * c2[1]),
            d1**2 * (-np.sin(q1) * c1[0] - np.cos(q1) * c1[1]) + d2**2 * (np.sin(q2) * c2[0] + np.cos(q2) * c2[1]),
            0.0,
        ])  # fmt: skip

    def accelerations(self):
        Ms, Qs = {3: self.M[2]}, {3: self.Q[2].astype(float)}
        for k in (3, 2):
            C, S, M = self.C(k), self.S(k), Ms[k]
            U = S @ M @ S
            Ms[k - 1] = self.M[k - 2] + C.T @ M @ C - np.outer(C.T @ M @ S, S @ M @ C) / U
            inner = S * (S @ (Qs[k] - M @ self.w_prime(k))) / U + self.w_prime(k)
            Qs[k - 1] = self.Q[k - 2] - C.T @ (M @ inner - Qs[k])
        w, out = np.zeros(3), []
        for k in (1, 2, 3):
            S, M = self.S(k), Ms[k]
            out.append(S @ (Qs[k] - M @ (self.C(k) @ w + self.w_prime(k))) / (S @ M @ S))
            w = self.C(k) @ w + S * out[-1] + self.w_prime(k)
        return np.array(out)


def printed_energies(q, dq):
    """Of start.m."""
    (s1, s2, s3), (d1, d2, _) = np.sin(q), dq
    v1, v2 = d1**2, 4 * d1**2 + 4 * np.cos(q[0] - q[1]) * d1 * d2 + d2**2
    rates = dq * np.array([2, 2, 1])
    v3 = (np.cos(q) @ rates) ** 2 + (np.sin(q) @ rates) ** 2
    return (v1 + v2 + v3) / 2 + dq @ dq / 2, s1 + 2 * s1 + s2 + 2 * s1 + 2 * s2 + s3


def test_the_program_of_the_method_of_separate_bodies():
    model = mbs.library.triple_pendulum().build()
    f = quick(lambda q, v: (mbs.forward_dynamics(model, q, v), mbs.energy(model, q, v)))
    rng = np.random.default_rng(0)
    for q, dq in ((np.zeros(3), np.zeros(3)), *(rng.normal(size=(2, 3)) * 2 for _ in range(4))):
        relative_q, relative_v = np.diff(q, prepend=0), np.diff(dq, prepend=0)
        a, energies = f(relative_q, relative_v)
        assert relative(np.cumsum(a), SeparateBodies(q, dq).accelerations()) < EXACT
        assert relative(energies, printed_energies(q, dq)) < EXACT


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "t_end", "limit"),
    [
        ("triple_pendulum", 5.0, 1e-6),
        ("curve_joint", 0.5, 1e-8),
        pytest.param("prosthetic_arm", 0.1, 1e-9, marks=pytest.mark.slow),
    ],
)
def test_scripts(name, t_end, limit, tmp_path):
    pytest.importorskip("matplotlib")
    image = tmp_path / "figures" / "picture.png"
    assert load(name).main(image, t_end) < limit
    assert image.stat().st_size > 20_000


@pytest.mark.slow
def test_slide_on_a_helix():
    """A point mass that slides down a helix of radius R, rise h per radian: (R² + h²) u" = g h; a body whose centre of
    mass is on the wire adds its turning about z to the left-hand side."""
    radius, rise, m, J = 1.5, 0.4, 2.0, 0.3
    joint, pose = mbs.library.curve_joint(
        lambda u: jnp.stack([radius * jnp.cos(u), radius * jnp.sin(u), -rise * u]), up=(0, 0, 1)
    )
    mech = mbs.Mechanism("slide", gravity=(0, 0, -9.81))
    mech.add_body("slide", m, inertia=(J, J, J))
    mech.add_joint("wire", joint, "world", "slide", pose)
    model = mech.build()
    for method in ("aba", "configuration"):
        f = quick(lambda q, v, method=method: mbs.forward_dynamics(model, q, v, method=method))
        # the frame turns with the tangent about z; about the tangent itself the body is free to stay behind
        tangent = rise / np.hypot(radius, rise)  # -z component
        turning = J * (1 - tangent**2)
        for q, v in ((jnp.zeros(2), jnp.zeros(2)), (jnp.array([0.7, 0.4]), jnp.array([1.1, 0.0]))):
            a = f(q, v)
            assert relative(a[0], m * 9.81 * rise / (m * (radius**2 + rise**2) + turning)) < EXACT
    assert relative(mbs.body_poses(model, model.neutral()).position[0], [radius, 0, 0]) < 1e-12
    with pytest.raises(mbs.ModelError, match="choose another `up`"):
        mbs.library.curve_joint(lambda u: jnp.stack([0 * u, 0 * u, u]))


@pytest.mark.slow
def test_curve_joint_derivatives():
    model = mbs.library.helix_slide().build()

    def f(q):
        return mbs.mass_matrix(model, q, method="configuration")

    forward, reverse = quick(lambda q: (jax.jacfwd(f)(q), jax.jacrev(f)(q)))(jnp.zeros(2))
    assert relative(forward, reverse) < EXACT and np.all(np.isfinite(forward))
