"""Distances of unions of convex pieces against a least-squares solver, convex hulls and closed forms."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from scipy.optimize import nnls
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import jaxmbs as mbs
from jaxmbs.geometry import Before, Piece, Union, Unions, separation
from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.study.outputs import Ball, Box, Cone, Panel, Tube
from jaxmbs.study.outputs.shapes import Shape

RNG = np.random.default_rng(0)
WALL, BELL = (
    Panel("a", radius=0.6, length=1.2, thickness=0.01, error=2e-3),
    Panel("b", axis=(1, 0, 0), radius=0.5, end_radius=0.2, length=0.9, thickness=0.01, error=2e-3),
)


class Scene:
    """Body "a" at rest in the world, body "b" turned by R and moved by p at the time t, with its velocities."""

    def __init__(self, R, p, t=0.0, turning=(0.0, 0.0, 0.0), moving=(0.0, 0.0, 0.0)):
        self.R, self.p, self.t, self.turning, self.moving = R, p, t, turning, moving

    def rotation(self, body):
        return Matrix3.of(list(jnp.ravel(self.R if body == "b" else jnp.eye(3))))

    def point(self, body, local):
        return self.rotation(body) @ local + self.of_b(body, self.p)

    def angular(self, body):
        return self.of_b(body, self.turning)

    def velocity(self, body, local):
        return self.of_b(body, self.moving) + self.angular(body).cross(self.rotation(body) @ local)

    def of_b(self, body, x):
        return Vector3(*x) if body == "b" else Vector3(0.0, 0.0, 0.0)


def cloud(number, corners, apart):
    return Union.of(
        [Piece.of_points(0.7 * RNG.normal(size=(corners, 3)) + apart * RNG.normal(size=3)) for _ in range(number)]
    )


BODIES = {
    "one": cloud(1, 20, 0.0),
    "another": cloud(1, 12, 0.0),
    "four": cloud(4, 12, 1.0),
    "nine": cloud(9, 8, 2.0),
    "thirty": cloud(30, 8, 4.0),
    "wall": WALL.union,
    "bell": BELL.union,
    "ball": Ball("a", radius=0.3).union,
    "cone": Cone("a", radius=0.4, length=1.0).union,
    "tube": Tube("a", radius=0.4, length=1.0).union,
    "triangle": Union.of([Piece.of_points([[0, 0, 0], [1, 0, 0], [0, 1, 0]])]),
    "needle": Union.of([Piece.of_points([[0, 0, 0], [1e-3, 0, 0], [0, 1e-3, 0], [0, 0, 50.0]])]),
}


@functools.cache
def compiled(dtype=np.float64):
    unions = Unions(list(BODIES.values()), dtype)

    def fn(first, second, R, p, displacement, exact, enough):
        before = Before(exact, enough, tuple(displacement))
        s = separation(unions, first, second, Matrix3.of(list(jnp.ravel(R))), Vector3.of(list(p)), before)
        points = (jnp.stack(list(x)) for x in (s.normal, s.point_a, s.point_b))
        return s.gap, *points, s.piece_a, s.piece_b, s.ahead, s.passed

    return mbs.jit(fn, in_axes=0)


def apart(a, b, R, p, dtype=np.float64, displacement=None, exact=np.inf, enough=np.inf):
    first, second = (np.full(len(p), list(BODIES).index(x), np.int32) for x in (a, b))
    before = np.zeros_like(p) if displacement is None else displacement, *(exact + 0 * p[:, 0], enough + 0 * p[:, 0])
    return [np.asarray(x) for x in compiled(dtype)(first, second, *(x.astype(dtype) for x in (R, p, *before)))]


def placements(number, far, seed=1):
    rng = np.random.default_rng(seed)
    p = rng.normal(size=(number, 3))
    return (
        Rotation.random(number, rng=rng).as_matrix(),
        p * (rng.uniform(0, far, number) / np.linalg.norm(p, axis=1))[:, None],
    )


def least(a, b, R, p):
    """Least distance of polyhedra, by non-negative least squares over the weights of their corners."""
    found, heavy = np.inf, 1e4
    for one in BODIES[a].pieces:
        for other in BODIES[b].pieces:
            there = other.centers @ R.T + p
            n = len(one.centers)
            M = np.zeros((5, n + len(there)))
            M[:3, :n], M[:3, n:], M[3, :n], M[4, n:] = -one.centers.T, there.T, heavy, heavy
            x = nnls(M, [0, 0, 0, heavy, heavy])[0]
            x /= np.repeat([x[:n].sum(), x[n:].sum()], [n, len(there)])  # the solver fulfils these to 1e-7 only
            found = min(found, np.linalg.norm(M[:3] @ x))
    return found


@pytest.mark.parametrize(
    ("pair", "far"), [("one another", 8), ("four nine", 9), ("thirty nine", 14), ("triangle needle", 3)]
)
def test_against_least_squares(pair, far):
    a, b = pair.split()
    R, p = placements(40, far)
    gap, _, on_a, on_b, *_ = apart(a, b, R, p)
    want = np.array([least(a, b, *x) for x in zip(R, p, strict=True)])
    np.testing.assert_allclose(np.maximum(gap, 0), want, rtol=1e-9, atol=1e-9)
    between = np.linalg.norm(on_b - on_a, axis=1)[gap > 0]
    np.testing.assert_allclose(between, gap[gap > 0], rtol=1e-10)


def test_the_planes_prove_the_gap():
    """All corners of the nearest pieces lie beyond the planes, and the pieces contain the nearest points."""
    R, p = placements(200, 9)
    gap, normal, on_a, on_b, i, j, *_ = apart("four", "nine", R, p)
    for k in np.flatnonzero(gap > 0):
        a, b = BODIES["four"].pieces[i[k]].centers, BODIES["nine"].pieces[j[k]].centers @ R[k].T + p[k]
        assert (b @ normal[k]).min() - (a @ normal[k]).max() == pytest.approx(gap[k], rel=1e-12)
        assert normal[k] @ on_a[k] == pytest.approx((a @ normal[k]).max(), rel=1e-9, abs=1e-12)
        assert normal[k] @ on_b[k] == pytest.approx((b @ normal[k]).min(), rel=1e-9, abs=1e-12)


def test_how_deep_pieces_overlap():
    """Never less than the shortest displacement that separates them, which is a plane of the hull of differences."""
    R, p = placements(200, 1.2)
    gap, normal, on_a, on_b, *_ = apart("one", "another", R, p)
    a, b = BODIES["one"].pieces[0].centers, BODIES["another"].pieces[0].centers
    overlap = np.flatnonzero(gap < 0)
    want = []
    for k in overlap:
        differences = ((b @ R[k].T + p[k])[None] - a[:, None]).reshape(-1, 3)
        want.append(ConvexHull(differences).equations[:, 3].max())
    error = gap[overlap] - want
    assert len(overlap) > 100 and error.max() < 1e-12
    assert (error > -1e-9).mean() > 0.8, "mostly it is the shortest one"
    along = np.einsum("ki,ki->k", normal, on_b - on_a)
    np.testing.assert_allclose(along[overlap], gap[overlap], rtol=1e-9)


def test_never_zero_for_bodies_that_are_apart():
    """Slightly tilted plates of which one is almost in contact with the other: the distance is not lost."""
    boxes = [Box("a", size=(1.0, 1.0, 0.01)).union, Box("b", size=(0.3, 0.3, 0.01)).union]
    unions = Unions(boxes, np.float64)

    @functools.partial(mbs.jit, in_axes=0)
    def gap(R, p):
        return separation(unions, 0, 1, Matrix3.of(list(jnp.ravel(R))), Vector3.of(list(p)), Before()).gap

    rng = np.random.default_rng(3)
    w = 1e-6 * rng.normal(size=(500, 3))
    R = Rotation.from_rotvec(w).as_matrix()
    height = np.geomspace(1e-9, 1e-2, 500)
    corners = np.array([(x, y, -0.005) for x in (-0.15, 0.15) for y in (-0.15, 0.15)])
    lowest = np.einsum("nj,kj->nk", R[:, 2], corners).min(1)
    p = np.stack([*rng.uniform(-0.2, 0.2, (2, 500)), 0.005 + height - lowest], 1)
    found = np.asarray(gap(R, p))
    assert np.all((found > 0) & (found <= height * (1 + 1e-6)))
    np.testing.assert_allclose(found, height, atol=1e-8)


def test_a_nozzle_leaves_an_interstage():
    """Both are concave. While it is inside, the gap is that of the radii; outside, that of the rims."""
    x = np.array([0.0, 0.1, 0.25, 1.0])
    p = np.stack([x + 0.25, *np.zeros((2, 4))], 1)
    gap, *_ = apart("wall", "bell", np.tile(np.eye(3), (4, 1, 1)), p)
    inside = 0.6 - 0.51  # the rim of the bell is level with the wall
    np.testing.assert_allclose(gap[:3], inside, atol=4.1e-3)
    assert np.all(gap[:3] <= inside + 1e-12)
    assert gap[3] == pytest.approx(np.hypot(0.05, 0.09), abs=4.1e-3)


def test_round_pieces_in_closed_form():
    """A ball beside a cone and a tube: at the side, on the rim and at the tip."""
    R, tip = np.tile(np.eye(3), (3, 1, 1)), np.array([[1.5, 0, 0], [-0.5, 0.7, 0], [0.5, 1.2, 0.0]])
    gap, *_ = apart("cone", "ball", R, tip)
    side = np.array([0.4, 1.0]) / np.hypot(0.4, 1.0)  # across the side of the cone
    want = [0.5 - 0.3, np.hypot(0.5, 0.3) - 0.3, side @ np.array([0.5, 1.2 - 0.4]) - 0.3]
    np.testing.assert_allclose(gap, want, atol=1e-8)
    gap, *_ = apart("tube", "ball", R, np.array([[0.0, 1.0, 0.0], [1.5, 0.0, 0.0], [1.0, 0.9, 0.0]]))
    np.testing.assert_allclose(gap, [0.3, 0.7, np.hypot(0.5, 0.5) - 0.3], atol=1e-8)


def test_in_single_precision():
    R, p = placements(100, 9)
    want, got = apart("four", "nine", R, p)[0], apart("four", "nine", R, p, np.float32)[0]
    assert got.dtype == np.float32
    away = want > 0
    np.testing.assert_allclose(got[away], want[away], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "shape", [WALL, BELL, Panel("a", radius=1, length=1, thickness=0.1, angle=1.0, middle=(0, 1, 1))]
)
def test_panels_contain_the_wall(shape):
    """No point of the wall is outside of all pieces, and no corner of a piece farther from it than `error`."""
    rng = np.random.default_rng(0)
    axis = np.asarray(shape.axis)
    u = np.array([0, 1, 1]) / np.sqrt(2) if shape.middle else None
    z, s, t = rng.uniform(size=(3, 400))
    end = shape.radius if shape.end_radius is None else shape.end_radius
    turn = (s - 0.5) * shape.angle
    radius = shape.radius + z * (end - shape.radius) + t * shape.thickness
    if u is None:
        from jaxmbs.study.outputs.base import normals

        u = normals(shape.axis)[0]
    w = np.cross(axis, u)
    out = np.cos(turn)[:, None] * u + np.sin(turn)[:, None] * w
    points = radius[:, None] * out + (z * shape.length)[:, None] * axis
    hulls = [ConvexHull(x.centers).equations for x in shape.pieces()]
    inside = [np.any([np.all(h[:, :3] @ x + h[:, 3] < 1e-9) for h in hulls]) for x in points]
    assert np.all(inside)
    corners = np.concatenate([x.centers for x in shape.pieces()])
    along = corners @ axis
    away = np.linalg.norm(corners - along[:, None] * axis, axis=1)
    outer = shape.radius + along / shape.length * (end - shape.radius) + shape.thickness
    assert (away - outer).max() <= shape.error + 1e-12


def test_what_does_not_fit_is_said():
    said = {
        key: remedy
        for shape in (
            Panel("a", radius=1, length=1, thickness=0.1, angle=7.0),
            Panel("a", radius=1, length=1, thickness=0.1, middle=(2, 0, 0)),
            Cone("a", radius=0.0, length=1.0),
            Box("a", size=(1, 0, 1)),
        )
        for key, remedy in shape.faults()
    }
    assert set(said) == {"angle", "middle", "radius", "size"} and "whole circle" in said["angle"]
    assert not list(Shape("a").faults())


def test_derivatives_of_distances():
    """With respect to the placement, in both modes, where the nearest points are unique."""
    from jaxmbs.study.outputs.gap import signed_distances

    R0 = Rotation.from_rotvec([0.4, -0.2, 0.7]).as_matrix()
    shapes = [Panel("a", radius=0.6, length=1.2, thickness=0.01, error=0.02), Cone("b", radius=0.4, length=0.5)]

    def gaps(x):
        K = jnp.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])
        R = (jnp.eye(3) + K + K @ K / 2) @ R0
        scenes = [Scene(R, x[3:] + jnp.array(p)) for p in ((0.3, 0.1, 0.05), (2.0, 0.4, 0.3))]
        return jnp.stack(signed_distances([(*shapes, scene) for scene in scenes]))

    x = jnp.zeros(6)
    step = 1e-6 * np.eye(6)
    value = jax.jit(gaps)
    want = np.stack([(value(x + e) - value(x - e)) / 2e-6 for e in step], 1)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(gaps))(x), want, atol=1e-7)
    np.testing.assert_allclose(jax.jit(jax.jacrev(gaps))(x), want, atol=1e-7)


def test_derivatives_where_the_nearest_point_changes_over():
    """Half-way between two walls, along the edge of a box, at a corner of it: those of one side, in any direction, and never
    one between them, of which the motion would know nothing."""
    from jaxmbs.study.outputs import Compound
    from jaxmbs.study.outputs.gap import signed_distances

    walls = Compound([Box("a", center=(x, 0, 0), size=(1.0, 9.0, 9.0)) for x in (-2.5, 2.5)])
    shapes = [(walls, Box("b", size=(1.0, 1.0, 1.0))), (Box("a", size=(8.0, 8.0, 8.0)), Ball("b", radius=0.5))]

    def gaps(p):
        return jnp.stack(signed_distances([(*pair, Scene(jnp.eye(3), p + jnp.array(at))) for pair, at in zip(shapes, (
            (0.0, 0.0, 0.0), (5.0, 4.0, 4.0)), strict=True)]))  # fmt: skip

    zero, step = jnp.zeros(3), 1e-6 * np.eye(3)
    value = jax.jit(gaps)
    sides = np.stack([[(value(s * e) - value(zero)) / (s * 1e-6) for e in step] for s in (1, -1)])
    for mode in (jax.jacfwd, jax.jacrev):
        found = np.asarray(jax.jit(mode(gaps))(zero)).T
        assert np.all(np.abs(found - sides).min(0) < 1e-5)
        np.testing.assert_allclose(np.abs(found[0, 0]), 1.0, atol=1e-9)


@pytest.mark.parametrize("bodies", [("four", "nine"), ("wall", "bell"), ("thirty", "ball")])
def test_the_planes_of_a_search_hold_ahead(bodies):
    """During a displacement, the bodies are never nearer than the line between the least gap of the planes before it and
    the one after it, whatever was passed over because of `enough`."""
    R, p = placements(40, 5.0)
    along = 0.4 * np.random.default_rng(2).normal(size=p.shape)
    shares = np.array([0.25, 0.5, 0.75, 1.0])
    true = np.stack([apart(*bodies, R, p + t * along)[0] for t in shares])
    now = apart(*bodies, R, p)[0]
    for exact, enough in ((np.inf, np.inf), (0.5 * now, 0.7 * now), (0.9 * now, 1.5 * np.abs(now))):
        gap, *_, ahead, passed = apart(*bodies, R, p, displacement=along, exact=exact, enough=enough)
        gap, ahead = np.minimum(gap, passed), np.minimum(ahead, passed)
        bounds = (1 - shares[:, None]) * gap + shares[:, None] * ahead
        assert np.all(gap <= now + 1e-9) and np.all((bounds <= true + 1e-9)[true > 0])
        assert np.mean(bounds > 0) > 0.5 * np.mean(true > 0), "bounds worth having"


def test_a_bar_that_turns_comes_nearer():
    """Its middle stays where it is: what a run remembers must not hide that its end has come nearer than the least."""
    from jaxmbs.study.outputs.least import Memory, least_distances

    shapes = Ball("a", radius=0.1), Box("b", size=(2.0, 0.1, 0.1))
    p = np.array([0.0, 1.3, 0.0])
    memory = jnp.array(
        Memory.none()._replace(searched=(*np.eye(3).ravel(), *p), gap=1.15, ahead=1.15, due=9.0).numbers()
    )

    @jax.jit
    def after(memory, R, p, least):
        ((value, _),), (new,) = least_distances([(*shapes, Scene(R, p))], memory[None], [least])
        found = Memory.of(new)
        return value, found.gap, found.steps

    quarter, little = (Rotation.from_rotvec([0, 0, x]).as_matrix() for x in (np.pi / 2, 1e-3))
    assert after(memory, quarter, p, 1.0)[0] == pytest.approx(0.3 - 0.1)
    value, gap, steps = after(memory, little, p, 1.0)
    assert 1.0 <= value < 1.15 and gap == 1.15 and steps == 1, "a bound, and nothing computed"


def test_a_nozzle_slides_along_a_wall():
    """At each step of a motion past many pieces of nearly the same distance: a lower bound, and exact where it counts."""
    from jaxmbs.study.outputs.gap import signed_distances
    from jaxmbs.study.outputs.least import Memory, least_distances

    turning, often = np.array([0.0, 0.0, 3e-4]), 20

    def motion(t):
        p = np.stack([0.25 + 9e-3 * t, 0.02 * np.sin(t / 25), 1e-3 + 0 * t], 1)
        moving = np.stack([9e-3 + 0 * t, 0.02 / 25 * np.cos(t / 25), 0 * t], 1)
        return Rotation.from_rotvec(np.outer(t, turning)).as_matrix(), p, t, np.tile(turning, (len(t), 1)), moving

    rows, fine = motion(np.arange(120.0)), motion(np.arange(119 * often + 1) / often)
    start = jnp.array(Memory.none().numbers())

    def pairs(*now):
        return [(WALL, BELL, Scene(*now))]

    @functools.partial(mbs.jit, in_axes=0)
    def tracked(*motion):
        def step(carry, x):
            memory, least = carry
            ((value, _),), (new,) = least_distances(pairs(*x), memory[None], [least])
            return (new, jnp.minimum(least, value)), (value, Memory.of(new).steps)

        return lax.scan(step, (start, jnp.inf), motion)[1]

    value, steps = (np.asarray(x)[0] for x in tracked(*(x[None] for x in rows)))
    exact = np.asarray(mbs.jit(lambda R, p: signed_distances(pairs(R, p))[0], in_axes=0)(*fine[:2]))
    assert np.all(value <= exact[::often] + 1e-12)
    want = np.minimum.accumulate(exact)[::often]
    missed = np.minimum.accumulate(value) - want
    assert missed.min() > -1e-8 and missed.max() < 1e-10, "the fine steps find a little less than there is"
    assert (steps > 0).mean() > 0.3, "often nothing is computed"


def test_a_pair_more_adds_hardly_anything_to_the_program():
    """One program serves all pairs of the same bodies: a study of a hundred clearances is built in seconds."""
    from jaxmbs.study.outputs.least import Memory, least_distances

    scene, box = Scene(np.eye(3), np.array([3.0, 0.0, 0.0])), Box("b", size=(1.0, 1.0, 1.0))
    pairs = [(Ball("a", radius=0.1 + 0.01 * k), box, scene) for k in range(12)]

    def equations(jaxpr):
        inner = [x for e in jaxpr.eqns for x in jax.tree.leaves(e.params, is_leaf=lambda x: hasattr(x, "eqns"))]
        return len(jaxpr.eqns) + sum(equations(getattr(x, "jaxpr", x)) for x in inner if hasattr(x, "eqns"))

    few, many = (
        equations(jax.make_jaxpr(lambda m: least_distances(pairs[: len(m)], m, [jnp.array(1.0)] * len(m)))(
            jnp.array([Memory.none().numbers()] * n)).jaxpr)
        for n in (2, 12)
    )  # fmt: skip
    assert few > 1000 and many - few < 20 * 10, (few, many)
