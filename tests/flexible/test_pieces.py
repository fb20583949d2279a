"""Mechanisms of rigid pieces as parts: against continuous beams, and against the mechanism itself."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.model.flexible_bodies.pieces import point_masses
from tests.cases import relative

L, MASS, EI = 2.0, 1.5, 40.0


def of_beam(n, modes=3):
    model = mbs.library.beam(n, length=L, mass=MASS, stiffness=EI).build()
    return mbs.reduced_part(model, attachments={"tip": (f"link_{n}", (L / n / 2, 0, 0))}, modes=modes)


@pytest.mark.parametrize("n", [pytest.param(3), pytest.param(12, marks=pytest.mark.slow)])
def test_a_beam_of_many_pieces_is_the_continuous_one(n):
    """The error of the frequency falls with the square of the length of the pieces, and the shape follows."""
    coarse, fine = of_beam(n), of_beam(2 * n)
    exact = mbs.Part.beam(L, MASS, (EI, 1e9), 1e9, modes=3)  # bends in the plane xz only
    errors = [x.frequency[0] / exact.frequency[0] - 1 for x in (coarse, fine)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1) and abs(errors[1]) < 0.25 / n**2
    for name, part in (("momentum", coarse), ("angular_momentum", coarse)):
        assert np.abs(np.abs(getattr(part, name)[0]) - np.abs(getattr(exact, name)[0])).max() < 0.7 / n**2
    tip = np.abs([x.displacements[0, 2, 0] for x in (coarse, exact)])
    assert tip[0] == pytest.approx(tip[1], rel=0.7 / n**2)
    assert coarse.positions[0] == pytest.approx([L, 0, 0])
    assert coarse.mass == pytest.approx(MASS * (1 - 0.5 / n))  # half a piece belongs to the world


def test_static_loads_at_the_tip_are_those_of_the_pieces():
    """A force at the tip of a chain of hinges: each hinge turns by its moment over its stiffness."""
    n = 3
    part, h = of_beam(n, modes=1), L / n
    assert part.modes == n
    u = part.displacements[0, 2]
    arms = L - h * (np.arange(n) + 0.5)
    assert u @ (u / (2 * np.pi * part.frequency) ** 2) == pytest.approx((arms**2).sum() * h / EI, rel=1e-9)


def chain():
    """A hub that floats, with three bodies of any inertia on springs, two of them one after the other."""
    mech = mbs.Mechanism("chain")
    mech.add_body("hub", 5.0, (0.1, 0, 0), (0.3, 0.4, 0.5))
    mech.add_joint("base", mbs.Free(), "world", "hub")
    poses = [mbs.Pose((0.4, 0.1, -0.2), (0.9, 0.1, -0.3, 0.2)), mbs.Pose((0, 0.5, 0.3), (0.7, 0.4, 0.2, -0.5))]
    inertia = ((0.05, 0.01, -0.005), (0.01, 0.06, 0.002), (-0.005, 0.002, 0.04))
    for k, parent in enumerate(("hub", "piece_0", "hub")):
        mech.add_body(f"piece_{k}", 0.5 + k, (0.1, 0.05 * k, -0.1), inertia)
        joint = mbs.Universal() if k != 1 else mbs.Prismatic((0, 0, 1))
        mech.add_joint(f"joint_{k}", joint, parent, f"piece_{k}", poses[k % 2], poses[(k + 1) % 2])
        bushing = {"stiffness": (300.0, 200.0, 400.0), "rotational_stiffness": (20.0, 30.0, 40.0)}
        ends = {"pose_a": poses[k % 2], "pose_b": poses[(k + 1) % 2]}
        mech.add_force(f"spring_{k}", mbs.Bushing(parent, f"piece_{k}", **ends, **bushing))
    return mech.build()


@pytest.mark.slow
def test_the_mass_matrix_is_that_of_the_mechanism():
    """With all modes, for the motion of the hub and of the pieces, and so are the node's motions and the frequencies."""
    model = chain()
    part = mbs.reduced_part(model, attachments={"hand": ("piece_1", (0.1, 0.2, 0.3))}, frame="hub", modes=10)
    assert part.modes == 5 and part.nodes == ("hand",)
    q = model.neutral().tolist()
    A = np.array(scalar.mass_matrix(model, q), float)
    linear, rest = mbs.linearize(model, q, fixed=["base"]), slice(6, None)
    assert np.asarray(linear.speeds).tolist() == list(range(6, 11))
    K = np.asarray(linear.K)
    # modes in the coordinates of the mechanism: from the displacement of all points, which the mass matrix weighs
    squared, own = np.linalg.eigh(np.linalg.solve(L := np.linalg.cholesky(A[rest, rest]), np.linalg.solve(L, K).T))
    own = np.linalg.solve(L.T, own)
    assert relative(part.frequency, np.sqrt(squared) / (2 * np.pi)) < 1e-9
    U = A[:6, rest] @ own  # of the Free joint: angular, then linear, in body axes
    signs = np.sign(np.sum(U.T * np.concatenate([part.angular_momentum, part.momentum], axis=1), axis=1))
    assert relative(part.mass_matrix[:6, 6:] * signs, U) < 1e-8
    assert relative(part.mass_matrix[:6, :6], A[:6, :6]) < 1e-12
    J = np.asarray(mbs.jacobian(model, q, "piece_1", (0.1, 0.2, 0.3)))[:, rest] @ own
    assert relative(part.rotations[0] * signs, J[:3]) < 1e-8 and relative(part.displacements[0] * signs, J[3:]) < 1e-8


def test_point_masses_are_the_body():
    inertia = np.array([[0.05, 0.01, -0.005], [0.01, 0.06, 0.002], [-0.005, 0.002, 0.04]])
    m, x = point_masses(2.0, np.array([0.1, 0.2, 0.3]), inertia)
    y = x - (0.1, 0.2, 0.3)
    assert m.sum() == pytest.approx(2.0) and np.abs(m @ y).max() < 1e-15
    assert relative(np.einsum("i,ij,ij->", m, y, y) * np.eye(3) - np.einsum("i,ij,ik->jk", m, y, y), inertia) < 1e-12


def pendulum(**given):
    mech = mbs.Mechanism("pendulum", gravity=given.get("gravity", (0, 0, 0)))
    mech.add_body("rod", 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1))
    mech.add_joint("hinge", mbs.Revolute((0, 1, 0)), "world", "rod")
    if k := given.get("stiffness", 3.0):
        mech.add_force("spring", mbs.JointSpring("hinge", stiffness=k))
    return mbs.set(mech.build(), {"hinge.armature": given.get("armature", 0.0)})


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("model", "given", "says"),
    [
        ({"gravity": (0, 0, -9.81)}, {}, r"not at rest at q \(UNSTEADY\); leave out gravity"),
        ({"stiffness": 0.0}, {}, "can move without deforming .* name the body that is the floating frame"),
        ({"gravity": (-9.81, 0, 0)}, {}, "is not stable at rest"),
        ({"armature": 0.2}, {}, "masses other than those of its bodies, such as armature"),
        ({}, {"attachments": {"tip": "rdo"}}, "'tip': no body named 'rdo'; did you mean 'rod'"),
        ({}, {"frame": "rdo"}, "frame: no body named 'rdo'; did you mean 'rod'"),
        ({}, {"frame": "rod"}, "nothing can move"),
        ({}, {"stations": {"tip": "rod"}}, "'tip' is among the attachments and among the stations"),
    ],
)
def test_what_is_no_part_is_refused(model, given, says):
    with pytest.raises(mbs.ModelError, match=says):
        mbs.reduced_part(pendulum(**model), **{"attachments": {"tip": ("rod", (1, 0, 0))}, **given})
