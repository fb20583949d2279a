"""Clearances against brute force, attitude against SciPy, forces against formulas, reductions against NumPy."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import jaxmbs as mbs
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.geometry import Before, Unions, separation
from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.study import Study, read, repeat, run
from jaxmbs.study.outputs import (
    Attitude,
    Ball,
    Box,
    Capsule,
    Clearance,
    Distance,
    ElementForce,
    EulerAngle,
    Hull,
    MinOver,
    Momentum,
    Tube,
)
from jaxmbs.study.outputs.attitude import SEQUENCES
from jaxmbs.study.outputs.folding import _margin
from jaxmbs.study.outputs.gap import signed_distances
from jaxmbs.study.problem.criteria import parse
from tests.study.conftest import CART

CORNERS = np.random.default_rng(3).normal(size=(8, 3)) * 0.4
SHAPES = {
    "ball": lambda b: Ball(b, radius=0.3),
    "box": lambda b: Box(b, size=(0.6, 1.0, 0.3), rotation=(0.9, 0.1, -0.3, 0.2)),
    "tube": lambda b: Tube(b, axis=(0.0, 0.6, 0.8), radius=0.4, length=0.9),
    "capsule": lambda b: Capsule(b, axis=(1.0, 0, 0), radius=0.2, length=1.0),
    "hull": lambda b: Hull(b, points=tuple(map(tuple, CORNERS.tolist())), radius=0.05),
}


class Scene:
    """Body "a" at rest in the world, body "b" turned by R and moved by p."""

    def __init__(self, R, p):
        self.R, self.p = R, p

    def rotation(self, body):
        x = self.R if body == "b" else jnp.eye(3)
        return Matrix3.of([x[i][j] for i in range(3) for j in range(3)])

    def point(self, body, local):
        return self.rotation(body) @ local + (Vector3(*self.p) if body == "b" else Vector3(0.0, 0.0, 0.0))


def inside_of(name, x):
    """Points of a shape from parameters in [0, 1]^3, which cover it: the inside too."""
    u, v, w = np.clip(x, 0, 1).T
    if name == "box":
        w_, xyz = 0.9, np.array([0.1, -0.3, 0.2])
        R = Rotation.from_quat([*xyz, w_]).as_matrix()
        return ((np.stack([u, v, w], -1) - 0.5) * (0.6, 1.0, 0.3)) @ R.T
    radius = np.cbrt(w) if name == "ball" else np.sqrt(w)
    angle = 2 * np.pi * v
    if name == "ball":
        z = 2 * u - 1
        s = np.sqrt(np.maximum(1 - z * z, 0))
        return 0.3 * radius[:, None] * np.stack([s * np.cos(angle), s * np.sin(angle), z], -1)
    e = np.array([0, 0.6, 0.8])
    a, b = np.array([1.0, 0, 0]), np.cross(e, [1.0, 0, 0])
    across = 0.4 * radius[:, None] * (np.cos(angle)[:, None] * a + np.sin(angle)[:, None] * b)
    return across + (0.9 * (u - 0.5))[:, None] * e


def cube(body):
    return Box(body, size=(2.0, 2.0, 2.0))


@functools.cache
def _distances():
    unions = Unions([SHAPES[name]("a").union for name in SHAPES], np.float64)

    def gap(first, second, R, p):
        return separation(unions, first, second, Matrix3.of(list(jnp.ravel(R))), Vector3.of(list(p)), Before()).gap

    return jax.jit(gap)


def distance_of(a, b):
    """Distance of two of the SHAPES as a function of the placement of the second; one program for all."""
    first, second = (np.int32(list(SHAPES).index(x)) for x in (a, b))
    return lambda R, p: _distances()(first, second, R, p)


def closest(a, b, R, p):
    """Least distance of points of two shapes, by search over what covers them."""

    def distance(x):
        pa, pb = inside_of(a, x[None, :3])[0], R @ inside_of(b, x[None, 3:])[0] + p
        return float(np.linalg.norm(pb - pa))

    rng = np.random.default_rng(0)
    starts = rng.uniform(size=(3000, 6))
    far = np.linalg.norm(inside_of(b, starts[:, 3:]) @ R.T + p - inside_of(a, starts[:, :3]), axis=1)
    found = (minimize(distance, starts[k], bounds=[(0, 1)] * 6, method="L-BFGS-B") for k in np.argsort(far)[:3])
    return min(f.fun for f in found)


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["box-tube", "ball-box", "tube-tube", "box-box"])
@pytest.mark.usually("box-box", "ball-box")
def test_distance_of_disjoint_shapes_against_search(pair):
    a, b = pair.split("-")
    gap = distance_of(a, b)
    rng = np.random.default_rng(7)
    for k in range(3):
        R, p = Rotation.random(rng=rng).as_matrix(), rng.normal(size=3)
        p *= 1.6 / np.linalg.norm(p)
        found, wanted = float(gap(R, p)), closest(a, b, R, p)
        assert found <= wanted + 1e-9, "never told larger than it is"
        assert found == pytest.approx(wanted, abs=3e-3), k


def reaches(name, n):
    """How far a shape reaches along n, from points of its surface."""
    if name == "hull":
        return (CORNERS @ n).max() + 0.05
    return abs(n[0]) * 0.5 + 0.2


@pytest.mark.parametrize("pair", ["hull-capsule", "hull-hull"])
def test_no_direction_has_a_wider_gap(pair):
    """Of disjoint and of overlapping shapes: the gap of any direction is a bound."""
    a, b = pair.split("-")
    gap = distance_of(a, b)
    rng, N = np.random.default_rng(11), np.random.default_rng(12).normal(size=(3000, 3))
    N /= np.linalg.norm(N, axis=1)[:, None]
    for size in (2.0, 1.0, 0.5):
        R, p = Rotation.random(rng=rng).as_matrix(), rng.normal(size=3)
        p *= size / np.linalg.norm(p)
        widest = max(p @ n - reaches(a, n) - reaches(b, -(R.T @ n)) for n in N)
        assert widest - 1e-5 <= float(gap(R, p)) <= widest + 0.07, "directions are that far apart"


def test_distances_in_closed_form():
    ball, capsule = SHAPES["ball"], SHAPES["capsule"]
    cases = [  # shapes, where the second one is, their distance
        (ball, ball, (3, 4, 0), 5 - 0.6),
        (ball, ball, (0.1, 0, 0), 0.1 - 0.6),  # how deep they overlap
        (cube, ball, (2.0, 0.2, 0.1), 1 - 0.3),  # on a face
        (cube, ball, (2.0, 2.0, 0.0), np.sqrt(2) - 0.3),  # on an edge
        (cube, ball, (2.0, 2.0, 2.0), np.sqrt(3) - 0.3),  # on a corner
        (capsule, capsule, (0.3, 1.0, 0), 1 - 0.4),  # side by side
        (cube, cube, (1.5, 0.1, 0), -0.5),
        (cube, cube, (0.0, 0.0, 0.0), -2.0),  # in the same place
    ]
    scenes = [(a("a"), b("b"), Scene(np.eye(3), np.asarray(p, float))) for a, b, p, _ in cases]
    found = jax.jit(lambda: signed_distances(scenes))()
    np.testing.assert_allclose(found, [wanted for *_, wanted in cases], atol=1e-12)


@pytest.mark.slow
def test_gradients_of_clearances_against_finite_differences():
    R0 = Rotation.from_rotvec([0.4, -0.2, 0.7]).as_matrix()

    def turn(w):
        return jnp.eye(3) + jnp.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])

    for a, b, p in (("tube", "capsule", (1.1, 0.7, 0.3)), ("box", "tube", (0.9, -0.8, 0.6))):

        def gap(x, a=a, b=b, p=np.array(p)):
            s = Scene(turn(x[3:]) @ R0, p + x[:3])
            return signed_distances([(SHAPES[a]("a"), SHAPES[b]("b"), s)])[0]

        value, slope = jax.jit(gap), jax.jit(jax.grad(gap))(jnp.zeros(6))
        push = jax.jit(lambda e, gap=gap: jax.jvp(gap, (jnp.zeros(6),), (e,))[1])
        forward = [push(e) for e in jnp.eye(6)]
        step = 1e-3
        differences = [(value(step * e) - value(-step * e)) / (2 * step) for e in jnp.eye(6)]
        assert np.allclose(slope, differences, atol=2e-3)
        assert np.allclose(forward, slope, atol=1e-12)


def test_inside_of_hollow_shapes():
    s = Scene(np.eye(3), np.array([0.1, 0.0, 0.0]))

    def gap(a, b, **options):
        value, defined = Clearance(a, b, True, **options).measure(s)
        return float(value) if defined else None

    ball = Ball("b", radius=0.2)
    assert gap(ball, Ball("a", radius=1.0)) == pytest.approx(0.7)
    assert gap(ball, Box("a", size=(2, 3, 3))) == pytest.approx(0.7)
    assert gap(Box("b", size=(0.2, 0.2, 0.2)), Box("a", size=(1, 1, 1))) == pytest.approx(0.3)
    tube = Tube("a", axis=(1, 0, 0), radius=0.5, length=2.0)
    assert gap(ball, tube) == pytest.approx(0.3)
    assert gap(Tube("b", axis=(1, 0, 0), radius=0.4, length=1.0), tube) == pytest.approx(0.1, abs=0.4 * 0.0013)
    assert gap(Tube("b", axis=(1, 0, 0), radius=0.4, length=1.9), tube) == pytest.approx(-0.05), "out of the end"
    out = Scene(np.eye(3), np.array([1.5, 0.0, 0.0]))
    measured = Clearance(ball, tube, True, True).measure
    assert not measured(out)[1] and float(measured(s)[0]) == pytest.approx(0.3)


def test_a_cylinder_in_a_box_is_never_told_thinner_than_it_is():
    """Its corners lie outside it, so that walls between two of them are not farther than they are."""
    tube, room = Tube("b", axis=(1, 0, 0), radius=0.4, length=1.0), Box("a", size=(3, 1, 1))
    for angle in (0.0, np.pi / 64):
        s = Scene(Rotation.from_rotvec([angle, 0, 0]).as_matrix(), np.zeros(3))
        found = float(Clearance(tube, room, True).measure(s)[0])
        assert 0.1 - 0.4 * 0.0013 <= found <= 0.1 + 1e-12


def test_the_smallest_of_several_shows_what_is_no_number():
    both = MinOver(of=("x", "y"))
    for pair in ([(1.0, True), (np.nan, True)], [(np.nan, True), (1.0, True)]):
        assert np.isnan(both.combined(pair)[0])
    value, defined = both.combined([(np.nan, False), (1.0, True)])
    assert (value, defined) == (1.0, True)


def test_of_the_state_of_two_wheels():
    """In plain floats: angular momentum beside another body that turns, the torque of a spring that is off."""
    mech = mbs.Mechanism("wheels")
    for name in "ab":
        mech.add_body(name, 1.0, inertia=(0.5, 0.5, 0.5))
        mech.add_joint(f"axle {name}", mbs.Revolute((0, 0, 1)), "world", name)
    mech.add_force("coil", mbs.TorsionSpring("axle a", stiffness=4.0))
    model = mech.build()
    state = State(Tree(model), [0.3, 0.0], [3.0, 1.0]).scene

    def measured(output, mode=None):
        return float(output.of_state(state, model, mode)[0])

    assert measured(Momentum("a", part="angular")) == pytest.approx(1.5)
    assert measured(Momentum("a", relative_to="b", part="angular")) == pytest.approx(1.0)
    torque = ElementForce("coil", part="torque")
    assert measured(torque) == pytest.approx(1.2) and measured(torque, model.mode(off="coil")) == 0.0


@pytest.mark.parametrize("closed", [False, True])
def test_an_element_on_a_joint_that_slides_gives_a_force_in_newton(closed):
    """Whether the joint is in the tree or closes a loop; on a hinge it is a moment, on joints of both kinds neither."""
    mech = mbs.Mechanism("slide")
    for name in "ab":
        mech.add_body(name, 1.0, inertia=(0.5, 0.5, 0.5))
    mech.add_joint("a", mbs.Free() if closed else mbs.Prismatic((1, 0, 0)), "world", "a")
    mech.add_joint("b", mbs.Revolute((0, 0, 1)), "world", "b")
    if closed:
        mech.close_loop("cut", mbs.Prismatic((1, 0, 0)), "world", "a")
    mech.add_force("coil", mbs.JointSpring("cut" if closed else "a", stiffness=4.0))
    mech.add_force("hinge", mbs.JointSpring("b", stiffness=4.0))
    study = Study(
        model=mech.build(), simulation={"t_end": 0.1, "dt": 0.01},
        outputs={k: ElementForce(k, part="torque", reduce="max") for k in ("coil", "hinge")}
        | {"impulse": ElementForce("coil", part="torque", reduce="integral")},
        criteria=["coil < 5 N"],
    )  # fmt: skip
    assert study.quantities == {"coil": "force", "hinge": "moment", "impulse": "impulse"}
    assert study.shown["coil"].name == "N"


def test_an_element_on_displacements_and_rotations_has_no_common_magnitude():
    mech = mbs.Mechanism("both")
    mech.add_body("a", 1.0, inertia=(0.5, 0.5, 0.5))
    mech.add_joint("a", mbs.Cylindrical(), "world", "a")
    mech.add_force("damper", mbs.Damper("a", damping=0.1))
    assert "no common magnitude" in next(ElementForce("damper", part="torque").unfit(mech.build()))[1]


def test_a_force_without_a_body_is_refused_as_an_output():
    mech = mbs.library.double_pendulum()
    mech.add_force("drag", mbs.External(lambda model, t, q, v: -v))
    mech.add_force("push", mbs.External(lambda model, t, q, v: jnp.ones(6), body="lower"))
    model = mech.build()
    for part in ("force", "torque"):
        assert [key for key, _ in ElementForce("drag", part=part).unfit(model)] == ["name"]
    assert "generalized forces of the whole mechanism" in next(ElementForce("drag").unfit(model))[1]
    assert not list(ElementForce("push").unfit(model))


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_angles_against_scipy(sequence):
    R = Rotation.random(rng=np.random.default_rng(5))
    s = Scene(R.as_matrix(), np.zeros(3))
    found = [float(EulerAngle("b", sequence, k, relative_to="a").measure(s)[0]) for k in range(3)]
    assert found == pytest.approx(R.as_euler(sequence.upper()))
    assert float(Attitude("b", relative_to="a").measure(s)[0]) == pytest.approx(R.magnitude())
    tilt = np.arccos(R.apply([0, 0, 1])[2])
    assert float(Attitude("b", (0, 0, 1), relative_to="a").measure(s)[0]) == pytest.approx(tilt)


# --- what is kept -----------------------------------------------------------------------------------------------------


def kept(t, values, defined=None, margin=None, **said):
    output = Distance(body_a="a", body_b="b", **said)
    state = tuple(jnp.asarray(x) for x in output.start())
    for i, (now, x) in enumerate(zip(t, values, strict=True)):
        on = True if defined is None else defined[i]
        state = output.fold(state, (jnp.asarray(x), jnp.asarray(on)), now, None if margin is None else margin[i])
    return float(output.result(state))


def test_sums_over_time_against_a_fine_grid():
    rng = np.random.default_rng(1)
    t = np.cumsum(rng.uniform(0.05, 0.2, 20))
    x = rng.normal(size=20)
    fine = np.linspace(t[0], t[-1], 2_000_001)
    y, span = np.interp(fine, t, x), t[-1] - t[0]
    assert kept(t, x, reduce="integral") == pytest.approx(np.trapezoid(x, t))
    assert kept(t, x, reduce="mean") == pytest.approx(y.mean(), abs=1e-5)
    assert kept(t, x, reduce="rms") == pytest.approx(np.sqrt((y * y).mean()), abs=1e-5)
    assert kept(t, x, reduce="time_above", limit=0.3) == pytest.approx((y > 0.3).mean() * span, abs=1e-5)
    assert kept(t, x, reduce="time_below", limit=0.3) == pytest.approx((y < 0.3).mean() * span, abs=1e-5)
    on = np.arange(20) < 12
    assert kept(t, x, on, reduce="integral") == pytest.approx(np.trapezoid(x[:12], t[:12]))
    assert np.isnan(kept(t, x, on & False, reduce="mean"))
    broken = np.where(np.arange(20) > 15, np.nan, x)
    for reduce in ("integral", "mean", "rms"):
        assert np.isnan(kept(t, broken, reduce=reduce))
    assert np.isnan(kept(t, broken, reduce="time_above", limit=0.3))


def test_a_condition_with_two_bounds_holds_between_them():
    when = parse("1 mm < x < 2 mm", {"x": "length"})
    margins = [float(_margin(when, {"x": (x, True)}, 0.0)) for x in (0.0, 0.0015, 0.003)]
    assert margins == pytest.approx([-0.001, 0.0005, -0.001])


def test_values_at_an_instant():
    t = np.array([0.0, 1.0, 2.0, 3.0])
    x, travel = np.array([1.0, 3.0, 7.0, 8.0]), np.array([0.0, 0.2, 0.6, 0.1])
    assert kept(t, x, margin=travel - 0.3, reduce="at", when="x") == pytest.approx(4.0), (
        "a quarter into the second step"
    )
    assert kept(t, x, margin=travel - 0.3, reduce="time_at", when="x") == pytest.approx(1.25)
    assert kept(t, x, margin=travel + 1, reduce="at", when="x") == 1.0, "it holds from the start"
    assert np.isnan(kept(t, x, margin=travel - 1, reduce="at", when="x")), "never"


EXTRA = """
[outputs.travel]
type = "distance"
body_a = "world"
body_b = "cart"
unit = "mm"
[outputs.speed_there]
type = "joint_velocity"
joint = "rail"
reduce = "at"
when = "travel > 20 mm"
[outputs.then]
type = "joint_velocity"
joint = "rail"
reduce = "time_at"
when = "t > 0.1 s"
[outputs.pull]
type = "element_force"
name = "spring"
reduce = "max"
[outputs.side]
type = "joint_reaction"
joint = "rail"
[outputs.push]
type = "momentum"
body = "cart"
[outputs.nearest]
type = "min_over"
of = ["travel", "reach"]
[outputs.way]
type = "joint_velocity"
joint = "rail"
reduce = "integral"
"""


@pytest.mark.slow
def test_a_study_in_this_language(cart):
    path = cart()
    path.write_text(CART.replace("[mechanism]", "[mechanism]\ngravity = [0.0, 0.0, -9.81]") + EXTRA, encoding="utf-8")
    study = read(path)
    h = repeat(study)
    x, v = h.q[0, :, 0], h.v[0, :, 0]
    reached = np.flatnonzero(x >= 0.02)[0]
    assert h.outputs["speed_there"][0] == pytest.approx(np.interp(0.02, x[: reached + 1], v[: reached + 1]), rel=1e-9)
    assert h.outputs["then"][0] == pytest.approx(0.1)
    force = 50.0 * (x + 1.0 - 1.2) + 0.5 * v
    assert h.outputs["pull"][0] == pytest.approx(np.abs(force).max(), rel=1e-9)
    assert h.outputs["push"][0] == pytest.approx(2.0 * np.abs(v[-1]), rel=1e-9)
    assert h.outputs["side"][0] == pytest.approx(2.0 * 9.81, rel=1e-9), (
        "the guide carries the weight; along it no force"
    )
    assert h.outputs["way"][0] == pytest.approx(x[-1] - x[0], rel=1e-5) and study.quantities["way"] == "length"
    assert h.outputs["nearest"][0] == pytest.approx(np.abs(x).min(), abs=1e-12)


@pytest.mark.slow
def test_times_of_events(cart, tmp_path):
    events = """
[[mechanism.events]]
name = "gate"
when = {type = "joint_reaches", joint = "rail", value = 0.02, direction = "up"}
then = [{type = "lock", joint = "rail"}]
[[mechanism.events]]
name = "never"
when = {type = "time", t = 10.0}
then = [{type = "finish"}]

[initial.rail]"""
    text = "".join(f'[outputs.{name}]\ntype = "event_time"\nevent = "{name}"\n' for name in ("gate", "never"))
    text += '[outputs.hold]\ntype = "joint_reaction"\njoint = "rail"\n'
    text += '[outputs.pull]\ntype = "element_force"\nname = "spring"\n'
    path = cart("\n[initial.rail]", events)
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")
    study = read(path)
    h = repeat(study, [0, 1])
    data = run(study, 64, tmp_path / "run", 64).dataset().load()
    for row in range(2):
        x = h.q[row, :, 0]
        after = np.flatnonzero(x >= 0.02 - 1e-9)[0]
        assert h.t[after - 1] < h.outputs["gate"][row] <= h.t[after]
        assert data["gate"].values[row] == pytest.approx(h.outputs["gate"][row], rel=1e-9)
        hold, pull = h.values["hold"][row], h.values["pull"][row]
        assert np.abs(hold[:after]).max() < 1e-12 < 1.0 < pull.min(), "along the free guide there is no reaction"
        assert np.allclose(hold[after:], pull[after:], rtol=1e-9), "the lock carries the spring"
        for name, x in (("hold", hold), ("pull", pull)):
            assert data[name].values[row] == pytest.approx(x[-1], rel=1e-9)
    assert np.isnan(h.outputs["never"]).all() and np.isnan(data["never"]).all()
    path.write_text(
        path.read_text(encoding="utf-8") + '[outputs.x]\ntype = "event_time"\nevent = "gat"\n', encoding="utf-8"
    )
    with pytest.raises(Exception, match='did you mean "gate"'):
        read(path)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (('of = ["travel", "reach"]', 'of = ["travle"]'), 'did you mean "travel"'),
        (('of = ["travel", "reach"]', 'of = ["travel", "speed"]'), "measure different quantities, length and velocity"),
        (('when = "travel > 20 mm"', 'when = "travel > 20 kg"'), "measures mass, not length"),
        (('when = "travel > 20 mm"\n', ""), "at needs an instant"),
        (('name = "spring"\nreduce', 'name = "sprung"\nreduce'), 'did you mean "spring"'),
        (('reduce = "integral"', 'reduce = "time_above"'), "time_above needs a limit"),
    ],
)
def test_what_does_not_fit_is_told(cart, edit, said):
    path = cart()
    assert edit[0] in EXTRA
    path.write_text(CART + EXTRA.replace(*edit), encoding="utf-8")
    with pytest.raises(Exception, match=said):
        read(path)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("1 mm < x < 2 mm", [0.0015], [0.001, 0.002, 0.0, np.nan]),
        ("1 <= x <= 2 mm", [0.001, 0.002], [0.0021]),
        ("|x| < 3 mm", [-0.0029, 0.0, 0.0029], [-0.003, 0.003, np.nan]),
        ("x > -1e-3 m in 99.5 %", [0.0], [-0.002]),
    ],
)
def test_criteria_with_two_sides(text, inside, outside):
    c = parse(text, {"x": "length"})
    assert c.met(np.array(inside)).all() and not c.met(np.array(outside)).any()
    assert np.all(c.margin(np.array(inside)) >= 0) and not np.any(c.margin(np.array(outside)) > 0)
    assert c.share == (0.995 if "%" in text else 1.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2 mm < x < 1 mm", "no number lies between"),
        ("|x| < -1 mm", "an absolute value is never negative"),
        ("x < 1 mm in 120 %", "more than 0 % and at most 100 %"),
        ("x < 1 mm in 0 %", "more than 0 % and at most 100 %"),
        ("1 kg < x < 2 mm", "measures mass"),
        ("x ! 2", "is not a criterion"),
    ],
)
def test_criteria_that_say_nothing(text, said):
    with pytest.raises(ValueError, match=said):
        parse(text, {"x": "length"})
