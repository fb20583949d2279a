"""Every joint says all about itself, and what it says agrees: motion, coordinates, constraints, properties."""

import inspect

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.model.fields import type_name
from jaxmbs.model.joints import Joint, base
from jaxmbs.model.joints.base import speeds_of, wrench_along
from jaxmbs.spatial import ZERO_MOTION, Vector3
from jaxmbs.study import units
from tests.model.joints.joints import FORMULAS, TYPES, arrays, numbers, six, state

SAID = ("motion", "coordinates", "coordinates_of", "duals", "equations")
BY_THE_USER = {"General": {"coordinates", "coordinates_of", "duals", "equations"}}  # functions say the rest
NO_LOOPS = {"coordinates_of", "duals", "equations"}
# closes no loop; Carried is tested in test_phases, the others in tests/flexible
GIVEN = {"Carried": NO_LOOPS, "ElasticModes": NO_LOOPS, "FlexibleNode": NO_LOOPS}


@pytest.mark.parametrize("name", TYPES)
def test_a_joint_declares_everything_in_a_file_of_its_own(name):
    cls = TYPES[name]
    assert inspect.getsourcefile(cls).endswith(f"/{type_name(cls)}.py")
    missing = {m for m in SAID if m not in vars(cls)} - (BY_THE_USER | GIVEN).get(name, set())
    assert not missing, f"{name} does not say {missing}"
    assert cls.__doc__ and all(c in cls.__doc__ for c in ("q:",) if name != "General")
    assert name in FORMULAS or name == "General" or name in GIVEN, (
        "add the joint to FORMULAS, so that its motion is tested"
    )


@pytest.fixture(params=FORMULAS)
def case(request):
    """(joint, its numbers, q, v, its motion there)."""
    joint = FORMULAS[request.param]
    p, (q, v) = numbers(joint), state(joint)
    return joint, p, q, v, joint.motion(p, q, v, 0.0)


def moved(joint, p, q, v, h):
    """q after h seconds at constant v, to fourth order."""

    def rates(q):
        return np.array(joint.rates(q, v, joint.motion(p, q, v, 0.0)), float)

    q = np.array(q, float)
    k1 = rates(q)
    k2 = rates(q + h / 2 * k1)
    k3 = rates(q + h / 2 * k2)
    return q + h / 6 * (k1 + 2 * k2 + 2 * k3 + rates(q + h * k3))


def rate(function, joint, p, q, v, h=1e-3):
    """Derivative of a function of q along the motion, by central differences of fourth order."""
    at = [np.asarray(function(moved(joint, p, q, v, s * h))) for s in (-2, -1, 1, 2)]
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)


def test_components_have_names_and_known_units(case):
    joint = case[0]
    q, v = joint.coordinates(), joint.speeds()
    assert (len(q), len(v)) == (joint.nq, joint.nv)
    assert all(c.unit in units.UNITS for c in (*q, *v))
    for components in (q, v):
        assert len({c.name for c in components}) == len(components)


def test_S_and_bias_are_derivatives_of_the_pose(case):
    joint, p, q, v, m = case
    R = arrays(m.placement)[1]

    def pose(q):
        position, rotation = arrays(joint.motion(p, q, v, 0.0).placement)
        return np.concatenate([position, rotation.ravel()])

    change = rate(pose, joint, p, q, v)
    W = R.T @ change[3:].reshape(3, 3)
    found = [W[2, 1], W[0, 2], W[1, 0], *(R.T @ change[:3])]
    np.testing.assert_allclose(six(m.velocity), found, rtol=0, atol=1e-9)
    np.testing.assert_allclose(sum((six(S) * x for S, x in zip(m.S, v, strict=True)), np.zeros(6)), found, atol=1e-9)
    turning = rate(lambda q: six(joint.motion(p, q, v, 0.0).velocity), joint, p, q, v)
    np.testing.assert_allclose(six(m.bias), turning, rtol=0, atol=1e-8)


def test_neutral_coordinates_make_the_frames_coincide(case):
    joint, p, *_ = case
    position, rotation = arrays(joint.motion(p, joint.neutral(), [0.0] * joint.nv, 0.0).placement)
    assert not position.any() and (rotation == np.eye(3)).all()
    assert joint.normalised(joint.neutral()) == joint.neutral()


def test_coordinates_and_rates_from_the_placement(case):
    joint, p, q, v, m = case
    found = joint.coordinates_of(p, m.placement)
    assert len(found) == joint.nq
    again = arrays(joint.motion(p, found, v, 0.0).placement)
    for x, y in zip(again, arrays(m.placement), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-14)
    if joint.quaternion is None:
        np.testing.assert_allclose(found, q, rtol=0, atol=1e-14)
    np.testing.assert_allclose(speeds_of(joint, p, m.placement, m.velocity), v, rtol=0, atol=1e-14)


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0, 0.8)])
def test_quaternions_at_half_turns(axis):
    for joint in (mbs.Spherical(), mbs.Free()):
        q = [*([0.0] * (joint.nq - 4)), 0.0, *map(float, axis)]
        X = joint.motion({}, q, [0.0] * joint.nv, 0.0).placement
        found = np.array(joint.coordinates_of({}, X))
        assert min(np.abs(found - q).max(), np.abs(found[-4:] + q[-4:]).max()) < 1e-15


def test_a_wrench_along_a_freedom_has_power_on_its_rate_alone(case):
    joint, p, _, v, m = case
    power = [[S @ F for F in joint.duals(p, m.placement)] for S in m.S]
    np.testing.assert_allclose(np.reshape(power, (joint.nv, joint.nv)), np.eye(joint.nv), rtol=0, atol=1e-14)
    if joint.nv:
        wrench = wrench_along(joint, p, m.placement, v)
        np.testing.assert_allclose([S @ wrench for S in m.S], v, rtol=0, atol=1e-14)


def test_one_freedom_needs_no_duals_of_its_own():
    class Bare(mbs.Helical):
        duals = Joint.duals

    joint = Bare(axis=(0, 0, 1), pitch=0.5)
    p, X = numbers(joint), FORMULAS["Helical"].motion(numbers(joint), (0.3,), (0.0,), 0.0).placement
    (F,) = joint.duals(p, X)
    np.testing.assert_allclose(six(F), [0, 0, 1 / 1.25, 0, 0, 0.5 / 1.25], atol=1e-15)


def test_rows_of_the_closure(case):
    """They are zero where the joint can be, transmit nothing along its freedoms, and change as they say."""
    joint, p, q, v, m = case
    rows = joint.rows(p, m.placement, m.velocity, 0.0)
    assert len(rows) == joint.constraints == 6 - joint.nv
    for k, row in enumerate(rows):
        assert abs(row.residual) < 1e-14
        assert max((abs(S @ row.wrench) for S in m.S), default=0.0) < 1e-14

        def wrench(q, k=k):
            X = joint.motion(p, q, v, 0.0).placement
            return six(joint.rows(p, X, ZERO_MOTION, 0.0)[k].wrench)

        np.testing.assert_allclose(six(row.turning), rate(wrench, joint, p, q, v), rtol=0, atol=1e-9)
    if rows:  # the rows are independent, so that with the freedoms they span all motions
        span = np.array([six(row.wrench) for row in rows])
        assert np.linalg.svd(span)[1].min() > 1e-2


def test_what_a_joint_says_of_itself_holds(case):
    joint, p, q, _, m = case
    (position, rotation), zero = arrays(m.placement), np.zeros(3)
    if joint.fixed_hinge_point:
        assert (position == zero).all()
    assert joint.keeps_orientation == bool((rotation == np.eye(3)).all())
    assert joint.rigid == (joint.nv == 0)
    assert not joint.rheonomic and joint.closes_loops and joint.is_measured
    if joint.turning_axis:
        axis = np.array(list(p[joint.turning_axis]))
        np.testing.assert_allclose(rotation @ axis, axis, atol=1e-15)
        assert np.trace(rotation) == pytest.approx(1 + 2 * np.cos(q[0]))
    if joint.free:
        assert not joint.equations(p) and (np.array([six(S) for S in m.S]) == np.eye(6)).all()
    if joint.quaternion is not None:
        longer = [3.0 * c if k >= joint.quaternion else c for k, c in enumerate(q)]
        np.testing.assert_allclose(joint.normalised(longer), q, rtol=0, atol=1e-15)


def test_motion_in_a_plane():
    """(turns, number of slides) in the planes normal to x and z, or why there is none."""
    aligned = {
        "Fixed": (mbs.Fixed(), (False, 0), (False, 0)),
        "Revolute": (mbs.Revolute((0, 0, 1)), "not known to be normal", (True, 0)),
        "Prismatic": (mbs.Prismatic((0.6, 0.8, 0)), "not known to lie in the plane", (False, 1)),
        "Planar": (mbs.Planar(), "another plane", (True, 2)),
        "Helical": (mbs.Helical(pitch=0.1), "is Helical", "is Helical"),
    }
    for joint, *wanted in aligned.values():
        # numbers that are fixed by structure, as in a built model
        p = {n: Vector3.of([int(c) if c in (0, 1) else c for c in x]) for n, x in numbers(joint).items() if n == "axis"}
        for normal, want in zip((0, 2), wanted, strict=True):
            found = joint.in_plane(p, normal)
            if isinstance(want, str):
                assert want in found
            else:
                assert (found.turns, len(found.slides)) == want


def test_missing_methods_are_named():
    class Silent(Joint):
        """Says nothing."""

    joint = Silent()
    for call in (
        lambda: joint.motion({}, (), (), 0.0),
        lambda: joint.coordinates_of({}, None),
        lambda: joint.duals({}, None),
        lambda: joint.equations({}),
    ):
        with pytest.raises(mbs.ModelError, match=r"Silent joints do not define .*; write the method `"):
            call()
    assert not joint.closes_loops and not joint.is_measured
    assert set(base._USES) == {"motion", "coordinates_of", "duals", "equations"}
