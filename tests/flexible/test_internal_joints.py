"""Reactions and locks of the joints of which a flexible body consists: its modes and its nodes."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.io import InputError
from jaxmbs.study.outputs import JointReaction
from tests.cases import relative
from tests.flexible.parts import lumped


def boom(event=None, held=()):
    mech = mbs.Mechanism("boom", held=held)
    mech.add_flexible_body("boom", lumped()[0])
    mech.add_joint("root", mbs.Revolute((0, 0, 1)), "world", "boom")
    if event:
        mech.add_event("latch", when=event[0], then=event[1])
    return mech


@pytest.mark.interpreted
def test_reactions_at_a_node_and_at_the_root_are_those_of_newton():
    """At a node that carries one body, what accelerates this body; at the root, what changes the momentum of all."""
    part, *_ = lumped()
    mech = mbs.Mechanism("arm", gravity=(0.3, -0.2, -9.81))
    mech.add_flexible_body("arm", part, order=2)
    mech.add_joint("root", mbs.Universal(), "world", "arm", mbs.Pose((0, 0, 1.0)))
    mech.add_body("load", 0.7, (0.1, 0.2, -0.1), (0.02, 0.03, 0.04))
    mech.add_joint("wrist", mbs.Revolute((0, 1, 0)), "arm_hand", "load")
    model = mech.build()
    rng = np.random.default_rng(1)
    q, v, tau = 0.1 * rng.normal(size=model.nv), rng.normal(size=model.nv), rng.normal(size=model.nv)
    a = np.array(scalar.forward_dynamics(model, q.tolist(), v.tolist(), tau.tolist()))
    h, at = 1e-3, {}
    for s in (-h, 0.0, h):
        now = (q + s * v + s * s / 2 * a).tolist(), (v + s * a).tolist()
        p, R = map(np.array, scalar.body_poses(model, now[0])[model.body_names.index("load")])
        at[s] = p + R.reshape(3, 3) @ (0.1, 0.2, -0.1), np.array(scalar.momentum(model, *now)[1])
    of_load = (at[h][0] - 2 * at[0.0][0] + at[-h][0]) / h**2
    of_all = (at[h][1] - at[-h][1]) / (2 * h)
    gravity, found = np.array((0.3, -0.2, -9.81)), np.asarray(mbs.joint_reactions(model, q, v, tau))[:, 3:]
    poses = mbs.body_poses(model, q)
    assert np.array_equal(np.isnan(found).any(1), [name == "arm" for name in model.joint_names])
    on_node, on_root = (np.asarray(poses.rotation[model.body_names.index(body)]) @ found[model.joint_names.index(joint)]
                        for body, joint in (("arm_hand", "arm_hand"), ("arm", "root")))  # fmt: skip
    assert relative(on_node, 0.7 * (of_load - gravity)) < 1e-4
    assert relative(on_root, of_all - (0.7 + part.mass) * gravity) < 1e-4


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: boom((mbs.Time(0.1), mbs.Lock("boom_hand"))).build(),
            r"event 'latch': Lock: 'boom_hand' is a node of flexible body 'boom' and has no motion.*name 'boom'",
        ),
        (lambda: boom((mbs.Time(0.1), mbs.Bounce("boom_elbow"))).build(), "event 'latch': Bounce: 'boom_elbow' is a node"),
        (lambda: boom(held=["boom_hand"]).build(), "mechanism 'boom': held: 'boom_hand' is a node"),
        (lambda: boom().build().mode(lock=["boom_hand"]), r"mode\(lock=...\): 'boom_hand' is a node"),
        (
            lambda: mbs.simulate(boom().build(), np.zeros(4), np.zeros(4), 0.1, dt=0.05, held=["boom_hand"]),
            r"simulate\(held=...\): 'boom_hand' is a node",
        ),
        (
            lambda: boom((mbs.ReactionExceeds("boom", force=1.0), mbs.Finish())).build(),
            r"event 'latch': ReactionExceeds: 'boom' has the modes.*no force.*node 'boom_hand', for what is attached there",
        ),
    ],
)  # fmt: skip
def test_what_internal_joints_do_not_have_is_refused(make, says):
    with pytest.raises(mbs.ModelError, match=says):
        make()


def test_modes_are_locked_and_nodes_watched():
    events = (mbs.ReactionExceeds("boom_hand", force=1.0), mbs.Lock("boom"))
    model = boom(events, held=["boom"]).build()
    assert np.array_equal(
        np.asarray(model.mode(lock=["boom"]).lock), [name.startswith("boom.") for name in _of_rates(model)]
    )


def _of_rates(model):
    return [c.name for c in model.speeds]


def test_outputs_of_reactions():
    def study(joint):
        return mbs.study.Study(model=boom().build(), outputs={"load": JointReaction(joint)})

    with pytest.raises(
        InputError, match=r"'boom' has the modes of a flexible body.*name the joint that carries the body"
    ):
        study("boom")
    assert not study("boom_hand").warnings and not study("root").warnings
