"""A joint of one's own, outside the package, works where the library's do: the example's screw of growing pitch."""

import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.study import read
from tests.cases import relative
from tests.model.joints.joints import EXAMPLE, VariableScrew, variable_screw

FILE = """
modules = ["variable_screw.py"]

[mechanism]
name = "press"
gravity = [0.0, 0.0, -9.81]

[[mechanism.bodies]]
name = "nut"
mass = 0.5
inertia = [1e-3, 1e-3, 2e-3]

[[mechanism.joints]]
name = "screw"
type = "variable_screw"
parent = "world"
child = "nut"
pitch = 0.02
growth = 0.001

[dispersions."screw.pitch"]
distribution = "normal"
apply = "add"
std = 1.0
unit = "mm/rad"

[dispersions."initial.screw.v"]
distribution = "normal"
apply = "add"
std = 2.0
unit = "rpm"

[simulation]
t_end = 0.1

[outputs.angle]
type = "joint_position"
joint = "screw"
unit = "deg"

[outputs.rate]
type = "joint_velocity"
joint = "screw"
unit = "rpm"
"""


def with_flange():
    """A screw and, on its nut, a hinge: two freedoms."""
    mech = variable_screw.lead_screw()
    mech.add_body("flange", 0.3, com=(0.1, 0, 0), inertia=(1e-3, 2e-3, 2e-3))
    mech.add_joint("pin", mbs.Revolute((0, 1, 0)), "nut", "flange", mbs.Pose((0.05, 0, 0)))
    return mech.build()


@pytest.mark.interpreted
def test_every_formulation_that_serves_it_agrees():
    model, q, v = with_flange(), np.array([0.7, 0.4]), np.array([1.1, -0.6])
    want = scalar.mass_matrix(model, q.tolist())
    for method in ("crba", "configuration"):
        assert relative(mbs.mass_matrix(model, q, method=method), want) < 1e-13
    a = mbs.forward_dynamics(model, q, v)
    assert relative(mbs.inverse_dynamics(model, q, v, a), np.zeros(2)) < 1e-13


def test_motion_in_closed_form():
    """(I + m p²) q" + m p g + m p p' q'² = 0 with the pitch p = p0 + p' q."""
    model = variable_screw.lead_screw().build()
    (a,) = scalar.forward_dynamics(model, [0.5], [3.0], [0.0])
    pitch = 0.02 + 0.001 * 0.5
    assert a == pytest.approx(-0.5 * pitch * (9.81 + 0.001 * 9.0) / (2e-3 + 0.5 * pitch**2), rel=1e-14)


@pytest.mark.slow
def test_batches_derivatives_and_compiled_functions():
    model = variable_screw.lead_screw().build()
    varied, axes = mbs.vary(model, {"screw.growth": np.array([0.0, 1e-3, 2e-3])})

    def acceleration(model, q):
        return mbs.forward_dynamics(model, q, jnp.array([3.0]))[0]

    q = np.array([0.5])
    want = [
        scalar.forward_dynamics(mbs.set(model, {"screw.growth": g}), [0.5], [3.0], [0.0])[0] for g in (0, 1e-3, 2e-3)
    ]
    assert relative(mbs.jit(acceleration, in_axes=(axes, None))(varied, q), want) < 1e-13
    forward, reverse = (mode(lambda q: acceleration(model, q))(q) for mode in (jax.jacfwd, jax.jacrev))
    h = 1e-5
    ahead, behind = (scalar.forward_dynamics(model, [0.5 + s], [3.0], [0.0])[0] for s in (h, -h))
    assert relative(forward, [(ahead - behind) / (2 * h)]) < 1e-8 and relative(reverse, forward) < 1e-13


def test_the_example_keeps_its_energy():
    assert variable_screw.main(t_end=0.2) < 1e-12


@pytest.mark.interpreted
def test_a_spring_on_it_as_a_cut_joint_acts_as_in_the_tree():
    """Without the numbers of a tree joint: angle and rate from the placement of the nut."""
    joint, q, v = VariableScrew(pitch=0.3, growth=0.2), [0.6], [1.3]

    def nut(hangs):
        mech = mbs.Mechanism("nut", gravity=(0, 0, -9.81))
        mech.add_body("nut", 0.5, com=(0.01, 0, 0), inertia=(1e-3, 1e-3, 2e-3))
        if hangs:
            mech.add_joint("screw", joint, "world", "nut")
        else:
            mech.add_joint("free", mbs.Free(), "world", "nut")
            mech.close_loop("screw", joint, "world", "nut")
        mech.add_force("spring", mbs.TorsionSpring("screw", stiffness=2.0, damping=0.1, rest_angle=0.2))
        return mech.build()

    tree, loop = nut(True), nut(False)
    p = {"axis": tree.values()["screw.axis"], "pitch": 0.3, "growth": 0.2}
    m = joint.motion(p, q, v, 0.0)
    q_free = np.array([*m.placement.position, np.cos(0.3), 0, 0, np.sin(0.3)], float)
    (a,) = scalar.forward_dynamics(tree, q, v, [0.0])
    found = mbs.constrained_dynamics(loop, q_free, np.array(m.velocity.scalars(), float))[0]
    assert found[2] == pytest.approx(a, rel=1e-11)


def test_a_file_may_name_it(tmp_path):
    shutil.copy(EXAMPLE, tmp_path)
    path = tmp_path / "press.toml"
    path.write_text(FILE, encoding="utf-8")
    study = read(path, trust=True)
    assert mbs.get(study.model, "screw.growth") == 0.001
    want = scalar.mass_matrix(variable_screw.lead_screw().build(), [0.5])
    assert scalar.mass_matrix(study.model, [0.5]) == want
    assert study.quantities == {"angle": "angle", "rate": "angular rate"}
    path.write_text(FILE.replace("growth = 0.001", 'growth = "much"'), encoding="utf-8")
    with pytest.raises(mbs.io.InputError, match=r"mechanism\.joints\[0\]\.growth"):
        read(path, trust=True)


def test_a_class_that_is_no_element_is_refused():
    class Bare(mbs.Revolute):
        def __init__(self, extra):
            object.__setattr__(self, "extra", extra)

    mech = mbs.Mechanism("bare")
    mech.add_body("a", 1.0, inertia=(1, 1, 1))
    with pytest.raises(
        mbs.ModelError, match=r"joint 'hinge': class Bare is not an element; put the decorator @element"
    ):
        mech.add_joint("hinge", Bare(1), "world", "a")
