"""FMUs with events in model exchange, integrated by the CVode of FMPy, against closed forms."""

from ctypes import POINTER, c_double

import numpy as np
import pytest

import jaxmbs as mbs
from tests.exporting.instances import initialized
from tests.exporting.test_programs import needs_compiler, pytestmark  # noqa: F401

fmpy = pytest.importorskip("fmpy", reason="needs pip install 'jaxmbs[export]'")
TOLERANCE = 1e-10  # relative, of CVode; what its local errors add up to is below 1e-8
ALLOWED = 1e-8
G, FIRST = 10.0, 0.2**0.5  # [m/s²]; [s] time at which the ball hits the ground for the first time


@pytest.fixture(scope="module")
def ball(tmp_path_factory):
    """A ball that falls from 1 m, and keeps half of its speed whenever it hits the ground."""
    mech = mbs.Mechanism("ball", gravity=(0, 0, -G))
    mech.add_body("ball", 1.0, inertia=(1, 1, 1))
    mech.add_joint("drop", mbs.Prismatic((0, 0, 1)), "world", "ball")
    mech.add_event("ground", mbs.JointReaches("drop", 0.0, direction="down"), mbs.Bounce("drop", 0.5), repeat=True)
    path = tmp_path_factory.mktemp("ball") / "ball.fmu"
    mbs.export(mech.build(), (np.ones(1), np.zeros(1)), path, kind="fmu", dt=0.01)
    return path


def exchanged(path, stop, interval, names):
    return fmpy.simulate_fmu(
        str(path), fmi_type="ModelExchange", solver="CVode", relative_tolerance=TOLERANCE, stop_time=stop,
        output_interval=interval, output=names,
    )  # fmt: skip


def height(t):
    """Of the ball, in closed form."""
    if t < FIRST:
        return 1 - G / 2 * t**2
    start, speed = FIRST, G * FIRST / 2
    while t > start + 2 * speed / G:
        start, speed = start + 2 * speed / G, speed / 2
    return speed * (t - start) - G / 2 * (t - start) ** 2


@needs_compiler
def test_a_ball_bounces(ball):
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(ball)) == []
    said = fmpy.read_model_description(str(ball))
    assert said.numberOfEventIndicators == 1 and said.eventIndicators[0].variable.name == "ground.indicator"
    found = exchanged(ball, 1.2, 0.05, ["drop.displacement"])
    assert abs(found["drop.displacement"] - [height(t) for t in found["time"]]).max() < ALLOWED


def array(*x):
    return np.array(x, float).ctypes.data_as(POINTER(c_double))


@pytest.fixture
def instance(ball, tmp_path):
    """An instance of the ball's FMU after its first update."""
    fmu, said = initialized(ball, "Model", tmp_path)
    assert fmu.updateDiscreteStates() == (False, False, False, False, False, 0.0)
    fmu.enterContinuousTimeMode()
    yield fmu, {v.name: v.valueReference for v in said.modelVariables}
    fmu.freeInstance()


def at(fmu, t, z, v):
    """The event indicator where the ball is."""
    fmu.setTime(t)
    fmu.setContinuousStates(array(z, v), 2)
    out = array(0)
    fmu.getEventIndicators(out, 1)
    return out[0]


def updated(fmu):
    """(whether the states changed, height and speed) after an event."""
    fmu.enterEventMode()
    more, ends, nominals, jumps, defined, _ = fmu.updateDiscreteStates()
    assert not more and not ends and not nominals and not defined
    fmu.enterContinuousTimeMode()
    x = array(0, 0)
    fmu.getContinuousStates(x, 2)
    return jumps, x[0], x[1]


@needs_compiler
def test_a_state_holds_what_events_changed(instance):
    fmu, references = instance
    assert at(fmu, 0.4, 0.2, -4.0) == -0.2
    slope = fmu.getDirectionalDerivative([references["ground.indicator"]], [references["drop.displacement"]], [3.0])
    assert slope == [-3.0]
    assert at(fmu, FIRST, -1e-13, -4.0) > 0
    state = fmu.getFMUState()
    kept = fmu.serializeFMUState(state)
    assert updated(fmu) == (True, -1e-13, 2.0)
    assert at(fmu, FIRST, -1e-13, 2.0) > 0 and updated(fmu) == (False, -1e-13, 2.0)  # it leaves the ground
    fmu.setFMUState(state)
    assert updated(fmu) == (True, -1e-13, 2.0)
    fmu.setFMUState(fmu.deserializeFMUState(kept))
    assert updated(fmu) == (True, -1e-13, 2.0)


@needs_compiler
def test_a_ball_at_rest_does_not_sink_into_the_ground(instance):
    fmu, _ = instance
    assert at(fmu, 1.0, -1e-13, -1e-9) > 0 and updated(fmu)[0]
    assert at(fmu, 1.1, -1e-10, -1e-9) > 0 and at(fmu, 1.2, -1e-7, -1e-9) < 0
    with pytest.raises(Exception, match="UpdateDiscreteStates"):
        updated(fmu)


def chain():
    """A cart that is released after 0.3 s and latches 1 m later, which at once releases another; a third one that gets a
    push from 0.1 s to 0.3 s, and that a strap catches."""
    mech = mbs.Mechanism("carts", gravity=(0, 0, 0), held=("a", "b"))
    for k, name in enumerate("abcd"):
        mech.add_body(name, 1.0, inertia=(1, 1, 1))
        mech.add_joint(name, mbs.Prismatic((1, 0, 0)), "world", name, mbs.Pose((0, k, 0)))
    mech.add_force("spring_a", mbs.JointSpring("a", stiffness=4.0, rest_coordinate=1.0))
    mech.add_force("spring_b", mbs.JointSpring("b", stiffness=9.0, rest_coordinate=0.5))
    strap = mbs.TabulatedSpring("c", "world", point_b=(0, 2, 0), lengths=(1.0, 3.0), forces=(0.0, 8.0))
    mech.add_force("strap", strap)
    push = mbs.Thruster("c", direction=(1, 0, 0), thrust=10.0, times=(0.1, 0.2, 0.3), values=(0.0, 1.0, 0.0))
    mech.add_force("push", push)
    mech.add_force("late", mbs.Thruster("d", direction=(1, 0, 0), thrust=2.0), delay=0.37)
    mech.add_event("go", mbs.Time(0.3), mbs.Release("a"))
    mech.add_event("latch", mbs.JointReaches("a", 1.0), mbs.Lock("a"))
    mech.add_event("next", mbs.When(lambda model, t, q, v: 0.05 - v[0]), mbs.Release("b"))
    return mech.build()


@needs_compiler
def test_a_push_a_release_a_latch_that_releases_and_a_strap(tmp_path):
    file = tmp_path / "carts.fmu"
    mbs.export(chain(), (np.array([0, 0, 0.7, 0]), np.zeros(4)), file, kind="fmu", dt=0.01)
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(file)) == []
    said = fmpy.read_model_description(str(file))
    assert [x.variable.name.partition(".")[0] for x in said.eventIndicators] == [
        "latch",
        "latch",
        "next",
        "strap",
        "strap",
    ]
    found = exchanged(file, 2.5, 0.1, [f"{name}.displacement" for name in "abcd"])
    t = found["time"]
    latched = 0.3 + np.pi / 4
    a = np.where(t < 0.3, 0, np.where(t < latched, 1 - np.cos(2 * (t - 0.3)), 1))
    b = np.where(t < latched, 0, 0.5 * (1 - np.cos(3 * (t - latched))))
    free = 0.5 + np.pi / 2
    begins = 0.7 + 50 / 3 * np.clip(t - 0.1, 0, 0.1) ** 3
    ends = 0.5 + t + 50 / 3 * np.clip(0.3 - t, 0, 0.1) ** 3
    strapped = np.where(t < free, 1 + 0.5 * np.sin(2 * (t - 0.5)), 1 - (t - free))
    c = np.where(t < 0.2, begins, np.where(t < 0.5, ends, strapped))
    d = np.maximum(t - 0.37, 0) ** 2
    for name, exact in (("a", a), ("b", b), ("c", c), ("d", d)):
        assert abs(found[f"{name}.displacement"] - exact).max() < ALLOWED


GRAVITY = (0.0, 0.0, -9.81)


def separating():
    """A body that is released from another after 0.25 s."""
    mech = mbs.Mechanism("separation", GRAVITY, held="stick")
    mech.add_body("arm", 2.0, (0.5, 0, 0), (0.1, 0.2, 0.2))
    mech.add_body("load", 1.0, (0.3, 0, 0), (0.1, 0.1, 0.1))
    mech.add_joint("hinge", mbs.Revolute((0, 1, 0)), "world", "arm")
    mech.add_joint("stick", mbs.Revolute((0, 1, 0)), "arm", "load", mbs.Pose((1, 0, 0)), releasable=True)
    mech.add_event("go", mbs.Time(0.25), mbs.Release("stick"))
    return mech.build(), (np.array([0, 1, 0, 0, 1, 0, 0, 0.0]), np.zeros(7))


def catching():
    """Two pendulums that are coupled, with an impact, when one overtakes the other."""
    mech = mbs.Mechanism("pair", GRAVITY, off="link")
    for name in ("a", "b"):
        mech.add_body(name, 1.0, (0, 0, -1.0), (0.1, 0.1, 0.1))
        mech.add_joint(name, mbs.Revolute((0, 1, 0)), "world", name)
    mech.add_constraint("link", mbs.Coupling("b", driver="a"))
    mech.add_event("catch", mbs.When(lambda model, t, q, v: q[1] - q[0]), mbs.Enable("link"))
    return mech.build(), (np.array([0.3, 0.2]), np.array([0.0, 1.0]))


def touching():
    """A body that falls on an elastic floor."""
    mech = mbs.Mechanism("floor", GRAVITY)
    mech.add_body("box", 1.0, inertia=(0.1, 0.1, 0.1))
    mech.add_joint("drop", mbs.Prismatic((0, 0, 1)), "world", "box")
    mech.add_force("floor", mbs.Contact("box", (0, 0, 0), mbs.Plane(), stiffness=1e4))
    return mech.build(), (np.array([0.6]), np.zeros(1))


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("made", [separating, catching, touching])
def test_a_separation_a_constraint_and_a_contact_move_as_in_a_run(tmp_path, made):
    model, (q, v) = made()
    file = tmp_path / "it.fmu"
    mbs.export(model, (q, v), file, kind="fmu", dt=0.01)
    names = [x.name for x in fmpy.read_model_description(str(file)).modelVariables if x.causality == "output"]
    found = fmpy.simulate_fmu(
        str(file), fmi_type="ModelExchange", relative_tolerance=1e-11, stop_time=1.0, output_interval=0.05, output=names,
        record_events=False,
    )  # fmt: skip
    own = mbs.simulate(model, q, v, 1.0, dt=2e-4, save_every=250)
    rows = np.array([found[name] for name in names]).T
    assert abs(rows - np.concatenate([own.q, own.v], axis=1)).max() < 5e-8
