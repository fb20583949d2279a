"""The builder: one test per error (it names element, value, remedy, near matches), regular numbering, coordinates."""

import copy
import gc
import pickle
import subprocess
import sys
import weakref
from dataclasses import fields, replace

import jax
import numpy as np
import pytest

import jaxmbs as mbs
from tests.mechanisms import build, random_mechanism


def pendulum(**body):
    mech = mbs.Mechanism("pendulum", gravity=(0, 0, -9.81))
    mech.add_body("bob", **{"mass": 1.0, "com": (0, 0, -1), "inertia": (0.1, 0.1, 0.05)} | body)
    mech.add_joint("hinge", mbs.Revolute((0, 1, 0)), "world", "bob")
    return mech


# --- errors ----------------------------------------------------------------------------------------------------------


def add_body(**arguments):
    return lambda m: m.add_body("extra", **{"mass": 1.0} | arguments)


def add_joint(joint, parent="bob", child="extra", name="second", **poses):
    def change(m):
        m.add_body("extra", 1.0)
        m.add_joint(name, joint() if callable(joint) else joint, parent, child, **poses)

    return change


def add_force(element):
    return lambda m: m.add_force("coil", element())


def hang(*pairs):
    """Bodies and joints as (parent, child)."""

    def change(m):
        for child in {c for _, c in pairs} - {"bob"}:
            m.add_body(child, 1.0)
        for i, (parent, child) in enumerate(pairs):
            m.add_joint(f"j{i}", mbs.Revolute(), parent, child)

    return change


ERRORS = {
    # bodies
    "negative mass": (add_body(mass=-2.0), "extra", "mass", "-2.0", "zero or more"),
    "mass not a number": (add_body(mass="heavy"), "extra", "mass", "heavy"),
    "mass not finite": (add_body(mass=np.nan), "extra", "mass", "nan", "finite"),
    "mass an array": (add_body(mass=(1, 2)), "extra", "mass", "(2,)", "one number"),
    "centre of mass of two numbers": (add_body(com=(0, 1)), "extra", "com", "(2,)", "3 numbers"),
    "negative moment of inertia": (add_body(inertia=(0.1, 0.1, -0.1)), "extra", "inertia", "negative"),
    "triangle inequality": (add_body(inertia=(0.1, 0.1, 0.3)), "extra", "inertia", "triangle", "0.3"),
    "inertia not symmetric": (
        add_body(inertia=((1, 0.1, 0), (0, 1, 0), (0, 0, 1))), "extra", "inertia", "not symmetric",
    ),
    "inertia of a wrong shape": (add_body(inertia=(1, 1)), "extra", "inertia", "(2,)", "principal"),
    "products of inertia too large": (
        add_body(inertia=((1, 2, 0), (2, 1, 0), (0, 0, 1))), "extra", "inertia", "negative",
    ),
    "body twice": (lambda m: m.add_body("bob", 1.0), "bob", "twice"),
    "body named world": (lambda m: m.add_body("world", 1.0), "world", "another name"),
    "body without a name": (lambda m: m.add_body("", 1.0), "body", "non-empty"),
    # joints
    "joint twice": (lambda m: m.add_joint("hinge", mbs.Revolute(), "world", "bob"), "hinge", "twice"),
    "axis not of unit length": (
        add_joint(lambda: mbs.Revolute((0, 0, 2))), "second", "axis", "length 2", "(0.0, 0.0, 1.0)",
    ),
    "axis zero": (add_joint(lambda: mbs.Prismatic((0, 0, 0))), "second", "axis", "length 0", "direction"),
    "axis of two numbers": (add_joint(lambda: mbs.Revolute((0, 1))), "second", "axis", "(2,)"),
    "second axis": (add_joint(lambda: mbs.Universal((1, 0, 0), (0, 3, 0))), "second", "axis_2", "length 3"),
    "universal joint with equal axes": (
        add_joint(lambda: mbs.Universal((1, 0, 0), (1, 0, 0))), "second", "singular",
    ),
    "pitch not finite": (add_joint(lambda: mbs.Helical((1, 0, 0), np.inf)), "second", "pitch", "inf"),
    "joint class instead of a joint": (add_joint(lambda: mbs.Revolute), "second", "Revolute(...)"),
    "something that is no joint": (add_joint("revolute"), "second", "'revolute'", "not a joint"),
    "parent and child the same": (add_joint(mbs.Revolute, "extra", "extra"), "second", "'extra'", "two bodies"),
    "child is the world": (add_joint(mbs.Revolute, "bob", "world"), "second", "swap"),
    "unknown parent": (add_joint(mbs.Revolute, "bobb"), "second", "parent", "'bobb'", "'bob'"),
    "unknown child": (add_joint(mbs.Revolute, "bob", "extrra"), "second", "child", "'extrra'", "'extra'"),
    "pose not a pose": (add_joint(mbs.Revolute, parent_pose=(0, 0, 1)), "second", "parent_pose", "Pose("),
    "zero quaternion": (
        add_joint(mbs.Revolute, parent_pose=mbs.Pose(rotation=(0, 0, 0, 0))), "second", "parent_pose", "zero quaternion",
    ),
    "improper rotation": (
        add_joint(mbs.Revolute, child_pose=mbs.Pose(rotation=-np.eye(3))), "second", "child_pose", "proper",
    ),
    "rotation of five numbers": (
        add_joint(mbs.Revolute, child_pose=mbs.Pose(rotation=(1, 0, 0, 0, 0))), "second", "(5,)", "quaternion",
    ),
    "General joint without freedoms": (add_joint(lambda: mbs.General(abs, abs, 0)), "dof", "0", "1 to 6"),
    "General joint without a function": (add_joint(lambda: mbs.General((0, 0, 0), abs, 1)), "z", "function"),
    # the tree
    "no bodies": (lambda m: mbs.Mechanism("empty").build(), "empty", "no bodies", "add_body"),
    "body without a joint": (add_body(), "extra", "not the child of any joint", "add_joint", "Free"),
    "body with two parents": (hang(("world", "a"), ("bob", "a")), "'a'", "j0", "j1", "close_loop"),
    "loop as tree joints": (hang(("a", "b"), ("b", "c"), ("c", "a")), "a", "b", "c", "world", "close_loop"),
    "massless end body": (
        lambda m: (m.add_body("tip"), m.add_joint("wrist", mbs.Revolute(), "bob", "tip")), "wrist", "tip", "mass",
    ),
    "hinges about one axis with no mass between": (
        lambda m: (m.add_body("tip"), m.add_joint("wrist", mbs.Revolute((1, 0, 0)), "bob", "tip"),
                   m.add_body("hand", 1.0, inertia=(0.1, 0.1, 0.1)),
                   m.add_joint("grip", mbs.Revolute((1, 0, 0)), "tip", "hand", mbs.Pose((0.2, 0, 0)))),
        "wrist", "tip", "moves no mass",
    ),
    "massless end body behind a joint of functions": (
        lambda m: (add_joint(mbs.library.curve_joint(lambda u: (u, 0.0, 0.0))[0])(m), m.add_body("tip"),
                   m.add_joint("wrist", mbs.Revolute(), "extra", "tip")),
        "wrist", "tip", "moves no mass",
    ),
    # force elements
    "force twice": (
        lambda m: [m.add_force("coil", mbs.Damper("hinge", 1.0)) for _ in range(2)], "coil", "twice",
    ),
    "force on an unknown joint": (add_force(lambda: mbs.Damper("hing", 1.0)), "coil", "joint", "'hing'", "'hinge'"),
    "force on an unknown body": (
        add_force(lambda: mbs.LinearSpring("bob", "wrld", stiffness=1.0)), "coil", "body_b", "'wrld'", "'world'",
    ),
    "spring on one body": (add_force(lambda: mbs.LinearSpring("bob", "bob")), "coil", "both ends", "'bob'"),
    "negative stiffness": (add_force(lambda: mbs.TorsionSpring("hinge", -1.0)), "coil", "stiffness", "-1"),
    "direction not of unit length": (
        add_force(lambda: mbs.Thruster("bob", direction=(0, 0, 3))), "coil", "direction", "length 3",
    ),
    "thrust profile of unequal lengths": (
        add_force(lambda: mbs.Thruster("bob", times=(0, 1), values=(1,))), "coil", "values has 1 numbers", "times has 2",
    ),
    "thrust profile going back in time": (
        add_force(lambda: mbs.Thruster("bob", times=(0, 2, 1), values=(1, 1, 1))), "coil", "times", "increase",
    ),
    "contact normal": (
        add_force(lambda: mbs.Contact("bob", (0, 0, 0), mbs.Plane(normal=(0, 0, 2)))), "coil", "normal", "length 2",
    ),
    "something that is no force": (add_force(lambda: 3.0), "coil", "3.0", "not a force"),
}  # fmt: skip


@pytest.mark.parametrize("fault", ERRORS)
def test_error(fault):
    change, *words = ERRORS[fault]
    mech = pendulum()
    with pytest.raises(mbs.ModelError) as caught:
        change(mech)
        mech.build()
    message = str(caught.value)
    assert not [w for w in words if w not in message], message


def test_a_body_without_mass_behind_a_joint_of_functions_may_carry_one_that_has_some():
    mech = pendulum()
    add_joint(mbs.library.curve_joint(lambda u: (u, 0.0, 0.0))[0])(mech)
    mech.add_body("tip")
    mech.add_joint("wrist", mbs.Revolute(), "extra", "tip")
    mech.add_body("hand", 1.0)
    mech.add_joint("grip", mbs.Fixed(), "tip", "hand")
    assert mech.build().nv == 4


@pytest.mark.parametrize(
    ("add", "wrong", "right"),
    [
        (lambda m, com: m.add_body("arm", 1.0, com=com), (0, 0), (0, 0, 1)),
        (lambda m, joint: m.add_joint("wrist", joint, "bob", "arm", armature=0.1), mbs.Revolute((0, 0, 2)), mbs.Revolute()),
        (lambda m, a: m.add_joint("wrist", mbs.Helical(pitch=0.1), "bob", "arm", armature=a), -1.0, 1.0),
        (lambda m, x: m.add_force("coil", mbs.Damper("hinge", x)), np.ones(()) * 1j, 1.0),
        (lambda m, x: m.add_force("tank", mbs.Slosh("bob", height=1.0, damping=x)), -1.0, 0.1),
        (lambda m, x: m.add_event("rest", mbs.JointReaches("hinge", 0.5), mbs.Lock("hinge", x)), "a", 0.5),
        (lambda m, x: m.add_event("go", mbs.Time(1.0), mbs.Lock("hinge"), armed_from=x), "a", 0.5),
    ],
)  # fmt: skip
def test_what_is_refused_leaves_nothing_behind(add, wrong, right):
    mech = pendulum()
    with pytest.raises(mbs.ModelError):
        add(mech, wrong)
    add(mech, right)


def test_error_is_a_value_error():
    assert issubclass(mbs.ModelError, ValueError)


def test_torsion_spring_wants_one_degree_of_freedom():
    mech = mbs.Mechanism("ball")
    mech.add_body("b", 1.0, inertia=(1, 1, 1))
    mech.add_joint("socket", mbs.Spherical(), "world", "b")
    mech.add_force("coil", mbs.TorsionSpring("socket", 1.0))
    with pytest.raises(mbs.ModelError, match=r"(?s)coil.*socket.*Spherical"):
        mech.build()


# --- what is accepted ------------------------------------------------------------------------------------------------


def test_physical_limits_are_accepted():
    """A rod and a plate lie exactly on the edge of the triangle inequality, a point mass has no inertia."""
    for inertia in ((0.3, 0.3, 0.0), (0.1, 0.2, 0.1 + 0.2), (0, 0, 0)):
        assert pendulum(inertia=inertia).build().nv == 1


@pytest.mark.parametrize("seed", range(30))
def test_regular_numbering_of_any_input_order(seed):
    mechanism = random_mechanism(seed)
    model = build(mechanism)
    parent = {j.child: j.parent for j in mechanism.joints}
    joint = {j.child: j for j in mechanism.joints}
    assert sorted(model.body_names) == sorted(b.name for b in mechanism.bodies)
    seen = {"world"}
    for body in model.body_names:
        assert parent[body] in seen
        seen.add(body)
    assert model.joint_names == tuple(joint[b].name for b in model.body_names)
    start_q = start_v = 0
    for b in model.body_names:
        j = joint[b]
        assert model.q_slice(j.name) == slice(start_q, start_q + j.nq)
        assert model.v_slice(j.name) == slice(start_v, start_v + j.nv)
        start_q, start_v = start_q + j.nq, start_v + j.nv
    assert (model.nq, model.nv) == (start_q, start_v)


def test_bodies_in_regular_order_keep_their_order():
    mech = mbs.Mechanism("star")
    names = ["hub", "z", "a", "m"]
    for name in names:
        mech.add_body(name, 1.0, inertia=(1, 1, 1))
    for name in ("m", "a", "hub", "z"):
        mech.add_joint(f"to {name}", mbs.Revolute(), "world" if name == "hub" else "hub", name)
    assert mech.build().body_names == tuple(names)


def test_build_can_be_repeated_and_extended():
    mech = pendulum()
    first = mech.build()
    mech.add_body("second", 1.0, inertia=(1, 1, 1))
    mech.add_joint("elbow", mbs.Revolute(), "bob", "second")
    assert (first.nv, mech.build().nv) == (1, 2)


def test_neutral_and_random_coordinates():
    mechanism = random_mechanism(11, 20)
    model = build(mechanism)
    mechanism = mechanism.ordered(model.joint_names)
    neutral, random = np.asarray(model.neutral()), np.asarray(model.random(jax.random.key(0)))
    assert neutral.shape == random.shape == (model.nq,)
    assert not np.array_equal(random, model.random(jax.random.key(1)))
    for j, sq, _ in mechanism.slices():
        if j.motion in ("Spherical", "Free"):
            assert np.array_equal(neutral[sq][-4:], [1, 0, 0, 0])
            assert np.linalg.norm(random[sq][-4:]) == pytest.approx(1)
        else:
            assert not neutral[sq].any()


def test_random_coordinates_fill_their_ranges():
    """Angles within half a turn either way, displacements within a metre."""
    mech = mbs.Mechanism("ranges")
    for name, joint in (("a", mbs.Planar()), ("b", mbs.Universal()), ("c", mbs.Prismatic())):
        mech.add_body(name, 1.0, inertia=(1, 1, 1))
        mech.add_joint(name, joint, "world", name)
    q = np.asarray(jax.vmap(mech.build().random)(jax.random.split(jax.random.key(2), 500)))
    reach = np.array([1, 1, np.pi, np.pi, np.pi, 1])
    assert np.all(np.abs(q) <= reach) and np.all(q.max(axis=0) > 0.9 * reach) and np.all(q.min(axis=0) < -0.9 * reach)


def test_unknown_joint_of_a_slice():
    with pytest.raises(mbs.ModelError, match=r"'hing'.*'hinge'"):
        pendulum().build().v_slice("hing")


def test_a_model_says_what_it_is_in_a_line():
    assert repr(mbs.library.double_pendulum().build()) == (
        "<Model 'double pendulum': 2 bodies (upper, lower), nq = 2, nv = 2>"
    )
    long = mbs.library.chain(30).build()
    assert "30 bodies (link_1, " in repr(long) and len(repr(long)) < 120
    _, axes = mbs.vary(long, {"link_1.mass": np.ones(3)})
    assert repr(axes) == repr(long)  # as in_axes, too, where leaves are None


def test_get_gives_matrices_of_whatever_was_set():
    """Three principal values, a quaternion: those of a sample of a batch, too."""
    model = mbs.library.double_pendulum().build()
    batch, _ = mbs.vary(
        model, {"lower.inertia": np.tile([0.1, 0.2, 0.25], (2, 1)), "elbow.parent_pose.rotation": [[0, 1, 0, 0]] * 2}
    )
    one = replace(batch, overrides={name: x[0] for name, x in batch.overrides.items()})
    assert np.allclose(mbs.get(one, "lower.inertia"), np.diag([0.1, 0.2, 0.25]))
    assert np.allclose(mbs.get(one, "elbow.parent_pose.rotation"), np.diag([1, -1, -1]))


def test_structures_of_the_same_content_are_equal():
    first, second = (mbs.library.four_bar_windows(2).build().structure for _ in range(2))
    other = mbs.library.four_bar_windows(3).build().structure
    assert first == second and hash(first) == hash(second) and first != other and first != "windows"
    assert replace(first, name="windows of another name") != first and {first: 1}[second] == 1
    for same in (copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        assert same == first and hash(same) == hash(first)


def test_contents_are_forgotten_with_their_structures():
    model = mbs.library.four_bar_windows(1).build()
    own = replace(model.structure, name="windows of a name that nothing else has")
    content = weakref.ref(own._content)
    assert content() is not None
    del own
    gc.collect()
    assert content() is None


def test_a_structure_from_another_process_is_equal():
    """Python gives texts other hashes there."""
    write = (
        "import pickle, sys, jaxmbs as mbs; s = mbs.library.double_pendulum().build().structure; hash(s); s.table; "
        "sys.stdout.buffer.write(pickle.dumps(s))"
    )
    done = subprocess.run([sys.executable, "-c", write], capture_output=True, check=True)
    found, own = pickle.loads(done.stdout), mbs.library.double_pendulum().build().structure
    assert vars(found).keys() == {f.name for f in fields(found)}
    assert found == own and hash(found) == hash(own)


def test_a_point_mass_moves_in_three_directions():
    """On a spring it oscillates in closed form; on a heavy turntable it has the accelerations of a rotating frame."""
    mech = mbs.Mechanism("ball", gravity=(0.0, 0.0, 0.0))
    mech.add_point_mass("ball", 2.0)
    mech.add_force("spring", mbs.LinearSpring("world", "ball", stiffness=50.0))
    x, v = np.array([0.3, -0.2, 0.1]), np.array([1.0, 0.5, -2.0])
    run = mbs.simulate(mech.build(), x, v, t_end=1.0, dt=0.005)
    np.testing.assert_allclose(run.q[-1], x * np.cos(5.0) + v / 5.0 * np.sin(5.0), atol=1e-8)
    mech = mbs.Mechanism("turntable", gravity=(0.0, 0.0, -3.0))
    mech.add_body("table", 1.0, inertia=(1e12, 1e12, 1e12))
    mech.add_joint("turn", mbs.Revolute((0, 0, 1)), "world", "table")
    mech.add_point_mass("ball", 2.0, "table", mbs.Pose((1.0, 0.0, 0.0)))
    a = mbs.forward_dynamics(mech.build(), np.append(0.7, x), np.append(4.0, v))
    turning, at = np.array([0.0, 0.0, 4.0]), x + np.array([1.0, 0.0, 0.0])
    want = -2 * np.cross(turning, v) - np.cross(turning, np.cross(turning, at)) + [0.0, 0.0, -3.0]
    np.testing.assert_allclose(a[1:], want, rtol=1e-9)
