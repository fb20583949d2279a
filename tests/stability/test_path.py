"""Paths of rest against closed forms: a snap-through, a column at Euler's load."""

import numpy as np
import pytest

import jaxmbs as mbs


def test_snap_through_of_a_shallow_truss():
    """A block on a guide, a bar as a spring: its weight is k z (1 - L / sqrt(1 + z²)) on the whole path, folds and all."""
    height, k = 0.3, 100.0
    length = float(np.hypot(1, height))
    mech = mbs.Mechanism("truss", gravity=(0, 0, -1.0))
    mech.add_body("block", 1.0, inertia=(0.1, 0.1, 0.1))
    mech.add_joint("guide", mbs.Prismatic((0, 0, 1)), "world", "block", mbs.Pose((0, 0, height)))
    bar = mbs.LinearSpring("block", "world", point_b=(1, 0, 0), stiffness=k, rest_length=length)
    mech.add_force("bar", bar)
    path = mbs.equilibrium_path(mech.build(), [0.0], "block.mass", 2.0, 0.01, rows=100, step=0.02)
    n = int((path.status == mbs.Status.OK).sum())
    z, weight = height + np.asarray(path.q[:n, 0]), np.asarray(path.value[:n])
    np.testing.assert_allclose(weight, k * z * (length / np.hypot(1, z) - 1), rtol=0, atol=1e-10)
    top = np.sqrt(length ** (2 / 3) - 1)  # where the weight that it carries is greatest
    slope = k * (length / np.hypot(1, z) ** 3 - 1)  # of that weight, by z: negative of the stiffness
    np.testing.assert_allclose(path.stiffness[:n] * weight, -slope, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(path.unstable[:n], np.abs(z) < top)
    assert z[0] > top and z.min() < top and weight.max() > k * top * (length / np.hypot(1, top) - 1) * 0.99


@pytest.fixture(scope="module")
def column():
    """A cantilever of n elastic hinges with a heavy tip; its own mass counts for little."""
    n, length, bending = 8, 2.0, 25.0
    mech = mbs.library.beam(n, length, 1e-3, bending)
    mech.add_body("tip", 1.0, inertia=(1e-3, 1e-3, 1e-3))
    mech.add_joint("end", mbs.Fixed(), f"link_{n}", "tip", mbs.Pose((length / n / 2, 0, 0)))
    own = bending * (n / length) ** 2 * 4 * np.sin(np.pi / 4 / n) ** 2  # of the chain; to pi² EI / 4 L² as n grows
    assert abs(own / (np.pi**2 * bending / 4 / length**2) - 1) < 4e-3
    return mech.build(), own


@pytest.mark.slow
def test_a_column_buckles_at_the_load_of_euler(column):
    model, load = column
    path = mbs.equilibrium_path(
        model, model.neutral(), "gravity", [-2 * load, 0, 0], [-0.5 * load, 0, 0], step=0.1, rows=20
    )
    weight, stiffness = -np.asarray(path.value[:, 0]), np.asarray(path.stiffness)
    k = int(np.flatnonzero(stiffness < 0)[0])
    assert 0 < k < 8 and path.unstable[k - 1 : k + 1].tolist() == [0, 1]
    at = weight[k - 1] + (weight[k] - weight[k - 1]) * stiffness[k - 1] / (stiffness[k - 1] - stiffness[k])
    np.testing.assert_allclose(at, load, rtol=2e-3)
    assert np.abs(path.q[: k + 2]).max() < 1e-12 and path.status[k + 1] == mbs.Status.OK  # it went on, upright
    # beyond, from a guess that is bent, to the other branch, which is stable
    heavy = mbs.set(model, {"gravity": (-1.1 * load, 0.0, 0.0)})
    bent = mbs.equilibrium(heavy, model.neutral() + 0.1)
    assert int(bent.status) == mbs.Status.OK
    follow = mbs.equilibrium_path(model, bent.q, "gravity", [-2 * load, 0, 0], [-1.1 * load, 0, 0], step=0.1, rows=20)
    assert follow.unstable[0] == 0 and np.abs(follow.q[0]).sum() > 0.5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"stop": 1.0}, "stop has shape"),
        ({"stop": [0, 0, -9.81]}, "the parameter must change"),
        ({"parameter": lambda model, x: model}, "pass start"),
        ({"parameter": "gravty"}, "gravity"),
        ({"step": 0.0}, "must be positive"),
    ],
)
def test_what_makes_no_path(change, said):
    model = mbs.library.double_pendulum().build()
    with pytest.raises(mbs.ModelError, match=said):
        mbs.equilibrium_path(model, [0.0, 0.0], **({"parameter": "gravity", "stop": [0, 0, 1.0]} | change))
