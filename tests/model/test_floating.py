"""The warning that an element begins late while nothing holds what it will push."""

import warnings

import pytest

import jaxmbs as mbs

LATE = {"stiffness": 1e3, "preload": 100.0, "stroke": 0.05}


def released(held=(), delay=0.5, joint=None, add=lambda mech: None, off=()):
    mech = mbs.Mechanism("release", held=held, off=off)
    mech.add_body("adapter", mass=100.0, inertia=(9, 9, 9))
    mech.add_body("satellite", mass=10.0, inertia=(1, 1, 1))
    mech.add_joint("flight", mbs.Free(), "world", "adapter")
    mech.add_joint("clamp", joint or mbs.Free(), "adapter", "satellite", releasable=joint is not None)
    here = (0, 0, 0)
    mech.add_force("spring", mbs.Pusher("adapter", "satellite", here, here, (1, 0, 0), **LATE, delay=delay))
    add(mech)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        mech.build()
    return [str(w.message) for w in found]


def test_a_body_that_floats_until_its_spring_pushes():
    (said,) = released()
    assert "force 'spring'" in said and "0.5 s" in said and "body 'satellite'" in said and "joint 'clamp'" in said
    assert released(joint=mbs.Prismatic((1, 0, 0)))  # the rail guides it and holds nothing


@pytest.mark.parametrize(
    "how",
    [
        {"held": ["clamp"]},
        {"joint": mbs.Fixed()},
        {"delay": 0.005},
        {"add": lambda mech: mech.add_force("tie", mbs.LinearSpring("adapter", "satellite", stiffness=1.0))},
        {"add": lambda mech: mech.close_loop("pin", mbs.Spherical(), "world", "satellite")},
        {"add": lambda mech: mech.add_force("own", mbs.External(lambda model, t, q, v: 0 * v))},
    ],
    ids=["held", "releasable", "short", "spring", "loop", "function"],
)
def test_what_holds_it(how):
    assert not released(**how)


@pytest.mark.parametrize(
    "add",
    [
        lambda mech: mech.close_loop("x", mbs.Spherical(), "world", "satellite"),
        lambda mech: mech.add_constraint("x", mbs.Holonomic(lambda model, t, q, v: q[7:8])),
        lambda mech: mech.add_force("x", mbs.LinearSpring("adapter", "satellite", stiffness=1.0)),
    ],
    ids=["loop", "constraint", "spring"],
)
def test_what_is_switched_off_holds_nothing(add):
    assert not released(add=add)
    assert released(add=add, off=["x"])


def test_a_thruster_holds_nothing():
    def engine(mech):
        mech.add_force("engine", mbs.Thruster("satellite", thrust=1.0))

    assert released(add=engine)


@pytest.mark.parametrize(("tie", "warns"), [(None, 1), (0.005, 0), (0.4, 2)])
def test_the_delay_of_any_element(tie, warns):
    """The one of `add_force`: a short one still holds."""

    def springs(mech):
        for name, delay in (("late", 0.5), ("tie", tie)):
            if delay is not None:
                mech.add_force(name, mbs.LinearSpring("adapter", "satellite", stiffness=1.0), delay=delay)

    said = released(delay=0.0, held=(), add=springs, off=["spring"])
    assert len(said) == warns and all("and until then nothing holds body 'satellite'" in x for x in said)
    assert not said or "force 'late' has a delay of 0.5 s" in said[0]
