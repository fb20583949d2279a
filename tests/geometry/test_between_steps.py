"""The least distance of a motion lies between its steps: closed forms, fine steps, events and derivatives."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from pytest import approx
from scipy.optimize import minimize_scalar

import jaxmbs as mbs
import jaxmbs.study.outputs.least as module
from jaxmbs.study.outputs import Ball, Box, Capsule, Clearance, Compound, MinOver, Panel, Tube
from jaxmbs.study.outputs.folding import folded
from jaxmbs.study.outputs.least import Memory, least_distances
from jaxmbs.study.problem.instants import parse
from tests.geometry.test_distance import Scene

STILL = (0.0, 0.0, 0.0)
BLOCK = Box("world", size=(0.4, 0.6, 0.8))


def flying(*bodies, gravity=STILL):
    mech = mbs.Mechanism("flying", gravity=gravity)
    for body in bodies:
        mech.add_body(body, mass=2.0, inertia=(0.3, 0.2, 0.1))
        mech.add_joint(f"flight_{body}", mbs.Free(), "world", body)
    return mech.build()


def least(model, q, v, t_end, dt, outputs, **more):
    """Results of the outputs over a motion."""
    carry, fold = folded(outputs, np.float64)
    got = mbs.simulate(model, q, v, t_end, dt=dt, fold=(carry, fold), save_every=10**6, **more).folded
    return {name: o.result(got[name]) for name, o in outputs.items()}


def both(*shapes, name="least"):
    return {name: Clearance(*shapes), f"{name}_at": Clearance(*shapes, reduce="time_of_min")}


MOTIONS = {  # of a body: shapes, position, velocity and angular velocity at the start; least distance and its instant
    "ball": (  # past two others
        (Compound([Ball("world", (x, 0, 0), radius=r) for x, r in ((2, 0.05), (0, 0.1))]), Ball("ball", radius=0.2)),
        ((-3.0, 0.7, 0.4), (4.0, 0, 0), STILL), (np.hypot(0.7, 0.4) - 0.3, 0.75),
    ),
    "shot": (  # through a plate, with a wide gap at both steps beside it; the overlap is as deep while it is within
        (Box("world", size=(2.0, 2.0, 0.01)), Ball("shot", radius=0.05)),
        ((0.1, 0.2, 1.0), (0, 0, -1.25), STILL), (-0.055, 0.8),
    ),
    "bar": (
        (Ball("world", center=(0.0, 1.3, 0.0), radius=0.1), Capsule("bar", radius=0.05, length=2.0)),
        (STILL, STILL, (0, 0, 2.0)), (0.15, np.pi / 4),
    ),
    "low": (  # over a bump on a floor that comes slowly nearer: at the step before, the floor is the nearest
        (Compound([Box("world", center=(0, 0, -5.5), size=(20.0, 20.0, 10.0)), Ball("world", (0, 0, -0.3), radius=0.3)]),
         Ball("low", radius=0.1)),
        ((-3.0, 0.0, 0.4), (4.0, 0, -0.02), STILL),
        (abs(0.7 * 4.0 - 3.0 * 0.02) / np.hypot(4.0, 0.02) - 0.4, (3.0 * 4.0 + 0.7 * 0.02) / (4.0**2 + 0.02**2)),
    ),
    "pebble": (  # on such a floor, over which it passes between two of the instants that are looked at
        (Compound([Box("world", center=(0, 0, -5.5), size=(20.0, 20.0, 10.0)),
                   Ball("world", (-0.085, 0, -0.5), radius=0.045)]), Ball("pebble", radius=0.1)),
        ((-3.0, 0.0, -0.35), (4.0, 0, -0.002), STILL),
        (abs(0.15 * 4.0 - 2.915 * 0.002) / np.hypot(4.0, 0.002) - 0.145, (2.915 * 4.0 + 0.15 * 0.002) / (4.0**2 + 0.002**2)),
    ),
    "rail": (  # past three balls in one step, of which the first comes nearest
        (Compound([Ball("world", (x, 0, 0), radius=r) for x, r in ((-1.0, 0.2), (-0.5, 0.15), (0.0, 0.15))]),
         Ball("rail", radius=0.1)),
        ((-3.0, 0.6, 0.0), (4.0, 0, 0), STILL), (0.3, 0.5),
    ),
    "rests": ((BLOCK, Tube("rests", radius=0.1, length=0.5)), ((1.0, 0, 0), STILL, STILL), (0.55, 0.0)),
    "leaves": ((BLOCK, Ball("leaves", radius=0.1)), ((1.0, 0, 0), (0.5, 0, 0), STILL), (0.7, 0.0)),
}  # fmt: skip


def test_known_motions():
    """In four coarse steps: the least distance and its instant as geometry says. A turn in a step is off by its fourth
    power / 384."""
    model = flying(*MOTIONS)
    outputs = {k: x for name, (shapes, *_) in MOTIONS.items() for k, x in both(*shapes, name=name).items()}
    q, v = model.neutral(), jnp.zeros(model.nv)
    for name, (_, (position, velocity, turning), _) in MOTIONS.items():
        joint = f"flight_{name}"
        q = q.at[model.q_slice(joint)].set(jnp.array([*position, 1.0, 0, 0, 0]))
        v = v.at[model.v_slice(joint)].set(jnp.array([*turning, *velocity]))
    poses = mbs.body_poses(model, q)
    np.testing.assert_allclose(poses["ball"].position, MOTIONS["ball"][1][0])
    found = mbs.jit(lambda q, v: least(model, q, v, 1.7, 0.425, outputs))(q, v)
    turn = 2.0 * 0.425
    for name, (*_, (want, when)) in MOTIONS.items():
        error, late = (turn**4 / 384, 1e-3) if name == "bar" else (1e-9, 1e-5)
        assert float(found[name]) == approx(want, abs=error), name
        assert float(found[f"{name}_at"]) == approx(when, abs=5e-3 if name == "shot" else late), name


def test_between_the_bounces_of_a_ball():
    """Velocities jump within a step: the ball touches the floor at that instant, and never gets below it."""
    mech = mbs.Mechanism("ball", gravity=(0.0, 0.0, -9.81))
    mech.add_body("b", mass=1.0, inertia=(0.1, 0.1, 0.1))
    mech.add_joint("z", mbs.Prismatic(axis=(0, 0, 1)), "world", "b")
    mech.add_event("floor", mbs.JointReaches("z", 0.0, direction="down"), mbs.Bounce("z", 0.8), repeat=True)
    model = mech.build()
    floor, ceiling = (Box("world", center=(0, 0, z), size=(1, 1, 0.2)) for z in (-0.2, 1.2))
    ball = Ball("b", radius=0.1)
    outputs = both(floor, ball) | {"top": Clearance(ceiling, ball), "any": MinOver(("top", "least"))}
    outputs |= {"then": MinOver(("top", "least"), reduce="time_of_min")}
    x = mbs.jit(lambda q, v: least(model, q, v, 0.83, 0.137, outputs, max_events=8))(jnp.array([0.6]), jnp.array([1.9]))
    first = (1.9 + np.sqrt(1.9**2 + 2 * 9.81 * 0.6)) / 9.81
    assert float(x["least"]) == approx(0.0, abs=1e-9) and float(x["least_at"]) == approx(first, abs=1e-6)
    assert float(x["top"]) == approx(1.0 - 0.6 - 1.9**2 / (2 * 9.81), abs=1e-9)
    assert float(x["any"]) == float(x["least"]) and float(x["then"]) == float(x["least_at"])


def test_tumbling_bodies_against_fine_steps(monkeypatch):
    """Sixteen motions with coarse steps, against the least of the rows of steps a hundred times finer; and what is not
    computed because of bounds leaves the least distance as it is."""
    model = flying("a", "b")
    shapes = Box("a", size=(0.4, 0.6, 0.8)), Panel("b", radius=0.3, length=1.5, thickness=0.02, error=0.02)
    v = jnp.array([0.3, -0.2, 1.0, 0.0, 0.0, 0.0, 0.5, 0.4, 3.0, -0.3, 0.1, 0.05])
    starts = jnp.tile(model.neutral(), (16, 1)).at[:, 7].set(2.0).at[:, 8].set(np.linspace(0.2, 1.5, 16))
    late = parse("t > 100 s", {"t": "time"}, ())
    rows = {n: replace(o, until=late) for n, o in both(*shapes).items()}  # of a window: at the steps only
    near = parse("least < 0.2 m", {"least": "length"}, ())
    beside = both(*shapes) | {
        "end": Clearance(*shapes, reduce="final"),
        "when": Clearance(*shapes, reduce="at", when=near),
    }
    found, bound = [], module._bound
    for dt, outputs, bounded in (
        (0.02, beside, True),
        (2e-4, rows, True),
        (0.02, rows, True),
        (0.02, both(*shapes), False),
    ):
        if not bounded:
            monkeypatch.setattr(module, "_bound", lambda *of: bound(*of)._replace(least=jnp.asarray(-jnp.inf)))
        got = mbs.jit(lambda q, dt=dt, o=outputs: least(model, q, v, 4.0, dt, o), in_axes=0)(starts)
        found.append([np.asarray(got[name]) for name in outputs])
    (near, when, _, at), (fine, instant), (coarse, _), (every, _) = found
    np.testing.assert_allclose(near, every, rtol=1e-9)
    assert np.array_equal(np.isfinite(at), coarse < 0.2) and np.allclose(at[coarse < 0.2], 0.2)
    np.testing.assert_allclose(near, fine, atol=5e-6)
    assert np.abs(coarse - fine).max() > 1e-3, "the rows alone would not do"
    assert np.median(np.abs(when - instant)) < 3e-4


def test_a_throw_over_an_edge_and_its_derivatives():
    """Against a scalar search along the parabola; with respect to the start of the motion, in both modes."""
    mech = mbs.Mechanism("throw", gravity=(0.0, 0.0, -9.81))
    for body, mass in (("carrier", 0.0), ("b", 1.0)):
        mech.add_body(body, mass=mass)
    mech.add_joint("x", mbs.Prismatic(axis=(1, 0, 0)), "world", "carrier")
    mech.add_joint("z", mbs.Prismatic(axis=(0, 0, 1)), "carrier", "b")
    model, outputs = mech.build(), both(Box("world", size=(0.4, 1.0, 2.0)), Ball("b", radius=0.1))

    def gap(t):
        x, z = abs(-1 + 2 * t) - 0.2, 5 * t - 9.81 * t * t / 2 - 1
        return np.hypot(max(x, 0), max(z, 0)) - 0.1 if max(x, z) > 0 else max(x, z) - 0.1

    def fn(x):
        return jnp.stack(list(least(model, x[:2], x[2:], 0.5, 0.1, outputs).values()))

    x = jnp.array([-1.0, 0.0, 2.0, 5.0])
    want = minimize_scalar(gap, bounds=(0.2, 0.5), method="bounded", options={"xatol": 1e-10})
    value = mbs.jit(fn)
    np.testing.assert_allclose(value(x)[0], want.fun, atol=1e-9)
    np.testing.assert_allclose(value(x)[1], want.x, atol=1e-4)
    slopes = np.array([(value(x + e) - value(x - e))[0] / 2e-5 for e in 1e-5 * np.eye(4)])
    along = np.array([0.3, -0.5, 0.2, 0.7])
    _, slope = mbs.jit(lambda x: jax.jvp(fn, (x,), (jnp.array(along),)))(x)
    np.testing.assert_allclose(slope[0], slopes @ along, atol=1e-7)
    np.testing.assert_allclose(mbs.jit(jax.grad(lambda x: fn(x)[0]))(x), slopes, atol=1e-7)


def test_a_ball_that_comes_and_goes_within_a_step():
    """At both steps it is in the same place, farther away than before: only its velocities tell that it comes near."""
    shapes, there = (Box("a", size=(1.0, 1.0, 1.0)), Ball("b", radius=0.1)), (1.6, 0.0, 0.0)
    placed = (*np.eye(3).ravel(), *there)
    memory = Memory.none()._replace(
        time=0.0, placed=placed, searched=placed, rates=(*(0.0,) * 9, -2.4, 0.0, 0.0), gap=1.0, ahead=1.0
    )
    now = Scene(np.eye(3), there, t=1.0, moving=(2.4, 0.0, 0.0))
    ((value, t),), _ = jax.jit(lambda m: least_distances([(*shapes, now)], m, [jnp.array(0.5)]))(
        jnp.array([memory.numbers()])
    )
    assert float(value) == approx(0.4, abs=1e-9) and float(t) == approx(0.5, abs=1e-6)
