"""What serves rigid bodies only says so of flexible ones, with a remedy that supports them."""

import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import relative
from tests.flexible.parts import lumped

BASE = mbs.textbook.MovingBase()


def reactions(method=None, base=None):
    return lambda m, q, v: mbs.joint_reactions(m, q, v, method=method, base=base)


def moving(method):
    return lambda m, q, v: mbs.textbook.moving_base_dynamics(m, q, v, base=BASE, method=method)


def free(method):
    return lambda m, q, v: mbs.textbook.free_dynamics(m, q, v, method=method)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda m, q, v: mbs.mass_matrix(m, q, method="jacobian"), "flexible bodies"),
        (mbs.textbook.bond_graph, "'boom' is flexible"),
        (mbs.absolute.accelerations, "'boom' is flexible"),
        (reactions("barycentric"), r"^joint_reactions with a method: body 'boom' is flexible.*; leave the method out"),
        (
            reactions("configuration"),
            r"^joint_reactions with a method: body 'boom' is flexible.*; leave the method out",
        ),
        (reactions(base=BASE), r"^joint_reactions with a base: body 'boom' is flexible.*mbs.joint_reactions\(mode="),
        (moving("barycentric"), r"^moving_base_dynamics: body 'boom' is flexible.*mbs.forward_dynamics\(mode="),
        (moving("configuration"), r"^moving_base_dynamics: body 'boom' is flexible.*mbs.forward_dynamics\(mode="),
        (free("barycentric"), r"^free_dynamics: body 'boom' is flexible.*; use mbs.forward_dynamics"),
        (free("configuration"), r"^free_dynamics: body 'boom' is flexible.*; use mbs.forward_dynamics"),
        (mbs.textbook.body_loads, r"^body_loads: body 'boom' is flexible.*; use mbs.joint_reactions"),
        (
            lambda m, *_: mbs.textbook.augmented_bodies(m),
            r"^augmented_bodies: body 'boom' is flexible.*mbs.mass_matrix",
        ),
        (
            lambda m, *_: mbs.textbook.planar_parameters(m),
            r"^planar_parameters: body 'boom' is flexible.*mbs.mass_matrix",
        ),
        (
            lambda m, *_: mbs.reduced_part(m, attachments={}),
            r"^reduced_part: body 'boom' is flexible.*leave it out here",
        ),
    ],
)
@pytest.mark.parametrize("root", [mbs.Revolute((0, 0, 1)), mbs.Free()])
def test_methods_for_rigid_bodies_refuse_flexible_ones(call, says, root):
    """All name the body, whatever its joints are, and a remedy that supports it."""
    mech = mbs.Mechanism("boom")
    mech.add_flexible_body("boom", lumped()[0])
    mech.add_joint("root", root, "world", "boom")
    model = mech.build()
    with pytest.raises(mbs.ModelError, match=says):
        call(model, model.neutral(), np.zeros(model.nv))


def test_a_base_that_moves_a_flexible_body_is_a_locked_joint():
    """The remedy that `moving_base_dynamics` names: a cart with a boom, pushed by given accelerations, as gravity would."""
    a = np.array([1.0, 0.5, -0.3])

    def boom(cart, gravity):
        mech = mbs.Mechanism("boom", gravity=gravity)
        if cart:
            mech.add_body("cart", 1.0, (0, 0, 0), (1, 1, 1))
            mech.add_joint("way", mbs.Free(), "world", "cart")
        mech.add_flexible_body("boom", lumped(modes=1)[0])
        mech.add_joint("root", mbs.Revolute((0, 0, 1)), "cart" if cart else "world", "boom")
        return mech.build()

    still, moved = boom(False, tuple(-a)), boom(True, (0, 0, 0))
    prescribed = np.zeros(moved.nv)
    prescribed[moved.v_slice("way")][3:] = a
    found = mbs.forward_dynamics(
        moved, moved.neutral(), np.zeros(moved.nv), mode=moved.mode(lock=["way"]), prescribed=prescribed
    )
    assert relative(found[6:], mbs.forward_dynamics(still, still.neutral(), np.zeros(still.nv))) < 1e-12
