"""Ten thousand pairs of convex pieces against Coal, another library for distances (it comes with Pinocchio)."""

import functools
import importlib

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jaxmbs as mbs
from jaxmbs.geometry import Before, Piece, Union, Unions, separation
from jaxmbs.spatial import Matrix3, Vector3

coal = importlib.import_module("coal")
NUMBER = 640  # placements of a pair of bodies, of each kind
THIN, FLAT = np.array([1.0, 0.03, 0.002]), np.array([1.0, 1.0, 1e-3])


def points(corners, shape, seed):
    return shape * np.random.default_rng(seed).uniform(-1, 1, size=(corners, 3))


def box(x, y, z):
    return np.array([(a, b, c) for a in (-x, x) for b in (-y, y) for c in (-z, z)], float)


BODIES = {
    "cloud": points(20, 1.0, 1), "tetrahedron": points(4, 1.0, 2), "splinter": points(8, THIN, 3),
    "flake": points(12, FLAT, 4), "box": box(0.5, 0.3, 0.2), "plate": box(1.0, 1.0, 5e-3), "bar": box(1.5, 0.02, 0.02),
}  # fmt: skip
PAIRS = (
    ("cloud", "cloud"), ("cloud", "tetrahedron"), ("splinter", "flake"), ("box", "plate"), ("bar", "splinter"),
    ("plate", "plate"), ("bar", "bar"), ("box", "box"),
)  # fmt: skip


def turned(number, kind, rng):
    """Rotations: any, or almost none, as of bodies that were placed side by side."""
    return (
        Rotation.random(number, rng=rng) if kind == "any" else Rotation.from_rotvec(1e-7 * rng.normal(size=(number, 3)))
    )


def by_coal(a, b, R, p):
    """Distances; where they overlap, minus the depth."""
    hulls, request, out = (hull(BODIES[a]), hull(BODIES[b])), coal.DistanceRequest(), []
    request.gjk_tolerance, request.gjk_max_iterations = 1e-12, 1000
    for rotation, position in zip(R, p, strict=True):
        there = coal.Transform3s(rotation, position)
        out.append(coal.distance(hulls[0], coal.Transform3s(), hulls[1], there, request, coal.DistanceResult()))
    return np.array(out)


def hull(corners):
    listed = coal.StdVec_Vec3s()
    for x in corners:
        listed.append(x)
    return coal.Convex.convexHull(listed, True, "Qt")


@functools.cache
def compiled():
    unions = Unions([Union.of([Piece.of_points(x)]) for x in BODIES.values()], np.float64)

    def gap(first, second, R, p):
        s = separation(unions, first, second, Matrix3.of(list(jnp.ravel(R))), Vector3.of(list(p)), Before())
        return s.gap, jnp.stack(list(s.normal))

    return mbs.jit(gap, in_axes=0)


@pytest.mark.parametrize("kind", ["any", "aligned"])
def test_distances_of_pairs(kind):
    """Where bodies are apart, the distance, never more than it, and where they overlap, no less than the depth. Then the
    same bodies at once almost in contact: the gap is not lost, as in MuJoCo's issue 3383, where it is 0 for some pairs."""
    rng = np.random.default_rng(5)
    for a, b in PAIRS:
        R = turned(NUMBER, kind, rng).as_matrix()
        p = rng.normal(size=(NUMBER, 3))
        p *= (rng.uniform(0.0, 3.0, NUMBER) / np.linalg.norm(p, axis=1))[:, None]
        numbers = [np.full(NUMBER, list(BODIES).index(x), np.int32) for x in (a, b)]
        found, normal = map(np.asarray, compiled()(*numbers, R, p))
        want = by_coal(a, b, R, p)
        apart = want > 0
        assert apart.sum() > 200 and np.array_equal(found > 0, apart)
        np.testing.assert_allclose(found[apart], want[apart], atol=1e-9)
        assert (found - want).max() < 1e-12, "more than the distance, or less than the depth"
        near = np.geomspace(1e-8, 1e-3, NUMBER)[apart]
        p = p[apart] - normal[apart] * (found[apart] - near)[:, None]
        close = np.asarray(compiled()(*(x[apart] for x in numbers), R[apart], p)[0])
        assert close.min() > 0 and (close - near).max() < 2e-10
        np.testing.assert_allclose(close, near, atol=3e-8)  # the direction of so small a difference is rounded
