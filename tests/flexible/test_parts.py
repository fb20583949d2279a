"""Parts: beams against Euler and Bernoulli, reductions against the whole model, files, and what is refused."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import jaxmbs as mbs
from jaxmbs.model.flexible_bodies.beams import assembled
from jaxmbs.model.joints import ElasticModes, FlexibleNode
from tests.cases import relative
from tests.flexible.parts import lumped, truss

L, MASS, EI, GJ = 2.0, 1.5, (40.0, 90.0), 10.0


def euler(roots, stiffness, length=L, mass=MASS):
    return np.asarray(roots) ** 2 / (2 * np.pi * length**2) * np.sqrt(stiffness / (mass / length))


def test_frequencies_of_beams():
    held = mbs.Part.beam(L, MASS, EI, GJ, modes=8, elements=40)
    twist = np.sqrt(GJ / (MASS / L * 2 * (0.01 * L) ** 2)) / (4 * L)  # a quarter wave
    exact = np.sort([twist, *np.concatenate([euler([1.87510407, 4.69409113, 7.85475744], s) for s in EI])])
    assert relative(held.frequency[:6] / exact[:6], np.ones(6)) < 2e-4
    loose = mbs.Part.beam(L, MASS, EI, GJ, modes=6, elements=40, free=True, attach=())
    exact = np.sort([2 * twist, *np.concatenate([euler([4.73004074, 7.85320462, 10.99560784], s) for s in EI])])
    assert relative(loose.frequency / exact[:6], np.ones(6)) < 1e-3
    # 5 elements: the error falls with the fourth power of their length
    found = [mbs.Part.beam(L, MASS, EI, GJ, modes=100, elements=n).frequency[0] for n in (3, 6)]
    errors = np.array(found) / euler([1.8751040687], 40.0)[0] - 1
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.1)


@pytest.mark.parametrize(
    ("root", "exact"),
    [
        ("edge", [3.4711, 8.5066, 21.285, 27.199, 30.955]),
        ("free", [13.468, 19.596, 24.270, 34.801, 34.801]),  # Leissa (1973), with the digits of later computations
    ],
)
def test_frequencies_of_square_plates(root, exact):
    """Of a thin plate with Poisson's ratio 0.3: (circular frequency) length² (mass per area / D)^(1/2)."""
    part = mbs.Part.plate(2.0, 2.0, 12.0, 3.0, root=root, modes=5, elements=(16, 16), attach={})
    assert relative(2 * np.pi * part.frequency * 4 * (3 / 3) ** 0.5 / np.array(exact), np.ones(5)) < 2e-3
    assert part.mass == pytest.approx(12) and part.com == pytest.approx([1 if root == "edge" else 0, 0, 0])
    assert np.diag(part.inertia) == pytest.approx([4, 4, 8], rel=1e-9)
    assert np.abs(part.momentum[:, :2]).max() < 1e-9 * part.mass


def test_a_narrow_plate_bends_as_a_beam():
    """Poisson's ratio 0: D times the width is the stiffness of the beam; a load at the tip twists it by L/GJ."""
    b = 0.05
    part = mbs.Part.plate(1.0, b, 0.5, 2.0, poisson=0.0, modes=60, elements=(10, 2), attach={"tip": (1, 0)})
    stiff = (2 * np.pi * part.frequency) ** 2
    u, w = part.displacements[0], part.rotations[0]
    assert (u[2] / stiff) @ u[2] == pytest.approx(1 / (3 * 2.0 * b), rel=0.02)
    assert (w[0] / stiff) @ w[0] == pytest.approx(1 / (2.0 * b * 2), rel=0.1)  # GJ = 2 D (1 - poisson) b
    assert part.frequency[0] == pytest.approx(euler([1.87510407], 2.0 * b, 1.0, 0.5)[0], rel=2e-3)


def test_masses_at_nodes_without_rotary_inertia():
    """A lumped mass matrix; torsion, which then has no mass, follows."""
    n = 40
    x = np.zeros((n + 1, 3))
    x[:, 0] = np.linspace(0, L, n + 1)
    share = MASS / n * np.where(np.arange(n + 1) % n, 1.0, 0.5)
    M = scipy.sparse.diags(np.kron(share, [1, 1, 1, 0, 0, 0])).tocsr()
    K = assembled(n, L / n, MASS / L, EI, GJ, 1e5, 2e-4)[1]
    part = mbs.Part.from_matrices(M, K, x, attachments={}, frame=0, modes=4)
    exact = np.sort(np.concatenate([euler([1.87510407, 4.69409113], s) for s in EI]))
    assert relative(part.frequency[:4] / exact, np.ones(4)) < 1e-3
    assert part.momentum[0, 2] ** 2 / MASS == pytest.approx(0.6131, rel=1e-3)  # effective mass of the first mode
    # with all modes, also where an attachment has rotations without mass
    whole = mbs.Part.from_matrices(M, K, x, attachments={"tip": n}, frame=0, modes=1000)
    assert whole.modes == 3 * n and relative(whole.frequency[:4] / exact, np.ones(4)) < 1e-3


def test_modes_of_a_free_part_do_not_move_the_rigid_body():
    part = mbs.Part.beam(L, MASS, EI, GJ, modes=6, free=True, attach=["root", "tip"])
    assert np.abs(part.momentum).max() < 1e-10 and np.abs(part.angular_momentum).max() < 1e-10
    assert part.positions[:, 0].tolist() == [-1.0, 1.0]
    assert part.mass == pytest.approx(MASS) and np.abs(part.com).max() < 1e-12
    # uniform rod: m l²/12, and the little inertia about x
    assert np.diag(part.inertia)[1:] == pytest.approx([MASS * L**2 / 12] * 2, rel=1e-12)


def test_static_loads_at_attachments_are_exact():
    """A force and a moment at the tip bend the beam as its whole finite-element model does."""
    part = mbs.Part.beam(L, MASS, EI, GJ, modes=100, elements=10)
    for load, expected in [((0, 1, 0, 0, 0, 0), L**3 / (3 * EI[1])), ((0, 0, 0, 0, 0, 1), L**2 / (2 * EI[1]))]:
        u, w = part.displacements[0], part.rotations[0]
        forces = np.concatenate([u, w]).T @ np.array(load, float)
        q = forces / (2 * np.pi * part.frequency) ** 2
        assert (u @ q)[1] == pytest.approx(expected, rel=1e-9)


def test_two_parts_joined_have_the_frequencies_of_the_whole():
    """Two halves, joined by a Fixed joint at a node, against the eigenvalues of the finite-element model of the whole."""
    n = 2
    half = mbs.Part.beam(L / 2, MASS / 2, EI, GJ, modes=100, elements=n)
    mech = mbs.Mechanism("two halves")
    mech.add_flexible_body("first", half, damping=0.0)
    mech.add_joint("wall", mbs.Fixed(), "world", "first")
    mech.add_flexible_body("second", half, damping=0.0)
    mech.add_joint("flange", mbs.Fixed(), "first_tip", "second")
    model = mech.build()
    found = np.sort(mbs.modes(model, model.neutral()).frequency)[::2][:6]
    r = 0.01 * L / 2
    M, K = (
        x.toarray()[6:, 6:] for x in assembled(2 * n, L / 2 / n, MASS / L, EI, GJ, 1e4 * 90 / (L / 2) ** 2, 2 * r * r)
    )
    exact = np.sqrt(scipy.linalg.eigh(K, M, eigvals_only=True)[:6]) / (2 * np.pi)
    assert relative(found / exact, np.ones(6)) < 1e-6


def test_the_frame_is_at_its_node():
    """Of a beam whose frame is at the other end: mirrored in its middle."""
    M, K, x = model_of_beam()
    part, other = (mbs.Part.from_matrices(M, K, x, attachments={"end": 3 - k}, frame=k, modes=3) for k in (0, 3))
    assert part.com == pytest.approx([0.5, 0, 0]) and other.com == pytest.approx([-0.5, 0, 0])
    assert other.positions[0].tolist() == [-1, 0, 0]
    assert relative(other.frequency, part.frequency) < 1e-9
    sizes = [np.sort(np.linalg.norm(x.angular_momentum, axis=1)) for x in (part, other)]
    assert relative(*sizes) < 1e-9


def test_soft_motions_beside_very_stiff_ones_stay():
    soft, stiff = (mbs.Part.beam(1.0, 1.0, (1.0, 1.0), 1.0, tension=EA, modes=4, elements=6) for EA in (1e4, 1e14))
    assert relative(stiff.frequency / soft.frequency, np.ones(4)) < 1e-4


def test_numbers_that_do_not_fit_the_modes_are_refused():
    mech = mbs.Mechanism("boom")
    mech.add_flexible_body("boom", lumped()[0])
    mech.add_joint("root", mbs.Revolute((0, 0, 1)), "world", "boom")
    model = mech.build()
    for change in (
        lambda: mbs.set(model, {"boom.mass": 1.0}),
        lambda: mbs.vary(model, {"boom.com": np.zeros((2, 3))}),
        lambda: mbs.free(model, ["boom.inertia"]),
    ):
        with pytest.raises(mbs.ModelError, match=r"(set|vary|free) 'boom\.\w+': the body is flexible"):
            change()
    with pytest.raises(mbs.ModelError, match="one number that is not zero, for 3 modes"):
        mbs.set(model, {"boom.damping_matrix": [5.0]})
    with pytest.raises(mbs.ModelError, match="damping_matrix has shape"):
        mbs.Mechanism("bad").add_flexible_body("boom", lumped()[0], damping_matrix=[[5.0]])
    geared = mbs.set(model, {"boom_hand.armature": 2.0})  # of no degree of freedom
    q, v = np.zeros(model.nv), np.ones(model.nv)
    assert relative(mbs.inverse_dynamics(geared, q, v, v), mbs.inverse_dynamics(model, q, v, v)) < 1e-12


def test_stations_move_with_the_beam_and_change_nothing():
    """Of the first mode of Euler and Bernoulli, half the length moves by 0.3395 of what the tip does."""
    plain = mbs.Part.beam(L, MASS, EI, GJ, modes=4)
    more = mbs.Part.beam(L, MASS, EI, GJ, modes=4, stations={"middle": 0.5, "end": 1.0})
    assert more.nodes == ("tip", "middle", "end") and relative(more.frequency, plain.frequency) < 1e-12
    tip, middle, end = more.displacements[:, 2, 0]
    assert end == tip and middle / tip == pytest.approx(0.3395, abs=1e-4)
    assert more.positions[1].tolist() == [L / 2, 0, 0]
    with pytest.raises(mbs.ModelError, match="station 'middle' is at 2"):
        mbs.Part.beam(L, MASS, EI, GJ, stations={"middle": 2})
    with pytest.raises(mbs.ModelError, match="'tip' is among the attachments and among the stations"):
        mbs.Part.beam(L, MASS, EI, GJ, stations={"tip": 1.0})


def test_a_part_in_a_file_stays_the_same(tmp_path):
    part = lumped()[0]
    part.save(tmp_path / "part.npz")
    back = mbs.Part.load(tmp_path / "part.npz")
    assert back.nodes == part.nodes
    for name in ("mass", "com", "inertia", "frequency", "coupling", "inertia_curvature", "rotations"):
        assert np.array_equal(getattr(back, name), getattr(part, name))
    with pytest.raises(mbs.ModelError, match="No such file"):
        mbs.Part.load(tmp_path / "other.npz")
    (tmp_path / "text.npz").write_text("text", encoding="utf-8")
    with pytest.raises(mbs.ModelError, match="pass a file written by"):
        mbs.Part.load(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", mass=1.0)
    with pytest.raises(mbs.ModelError, match="has no com, inertia"):
        mbs.Part.load(tmp_path / "other.npz")
    np.save(tmp_path / "one.npy", np.ones(3))
    with pytest.raises(mbs.ModelError, match="it is a single array; pass a file written by"):
        mbs.Part.load(tmp_path / "one.npy")
    with np.load(tmp_path / "part.npz") as file:
        arrays = dict(file)
    np.savez(tmp_path / "bad.npz", **{**arrays, "nodes": np.array("hand")})
    with pytest.raises(mbs.ModelError, match=r"bad.npz': nodes is no list of names"):
        mbs.Part.load(tmp_path / "bad.npz")


def test_fewer_modes_are_the_first_ones():
    part = lumped(modes=3)[0]
    less = part.keep(2)
    assert less.modes == 2 and np.array_equal(less.coupling, part.coupling[:2, :2])
    with pytest.raises(mbs.ModelError, match="4 of 3 modes; keep 1 to 3"):
        part.keep(4)


def model_of_beam(n=3):
    x = np.zeros((n + 1, 3))
    x[:, 0] = np.linspace(0, 1, n + 1)
    M, K = (m.toarray() for m in assembled(n, 1 / n, 1.0, (1.0, 1.0), 1.0, 1e3, 1e-3))
    return M, K, x


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda M, K, x: (M + np.eye(24, k=1), K, x), "mass matrix is not symmetric"),
        (lambda M, K, x: (M, K + np.eye(24), x), "resists the motion of a rigid body"),
        (lambda M, K, x: (M, K, 1e3 * x), "resists the motion of a rigid body"),
        (lambda M, K, x: (-M, K, x), "mass matrix is not positive"),
        (lambda M, K, x: (M, K, x[:3]), "N nodes need positions"),
        (lambda M, K, x: (M * np.nan, K, x), "mass matrix has numbers that are not finite"),
        (lambda M, K, x: (M, K * 0, x), "stiffness matrix is zero"),
        (lambda M, K, x: (M, K[:6], x), r"stiffness matrix is \(6, 24\) .*; pass a square one"),
        (lambda M, K, x: (M, K, x + np.inf), "positions has numbers"),
        (lambda M, K, x: (M + 0.1 * np.diag(np.arange(24) % 6 == 0) * M, K, x), "along x, y and z"),
    ],
)  # fmt: skip
def test_inconsistent_models_are_refused(change, says):
    M, K, x = change(*model_of_beam())
    with pytest.raises(mbs.ModelError, match=says):
        mbs.Part.from_matrices(M, K, x, attachments={"tip": 3}, frame=0, modes=2)


def test_bad_input_is_refused_by_name():
    with pytest.raises(mbs.ModelError, match="'tip' is node 9; the model has nodes 0 to 3"):
        mbs.Part.from_matrices(*model_of_beam(), attachments={"tip": 9})
    with pytest.raises(mbs.ModelError, match="length is -1"):
        mbs.Part.beam(-1, 1, (1, 1), 1)
    with pytest.raises(mbs.ModelError, match=r"bending is .* pass two numbers"):
        mbs.Part.beam(1, 1, (1, 1, 1), 1)
    with pytest.raises(mbs.ModelError, match=r"elements is 2\.5"):
        mbs.Part.beam(1, 1, (1, 1), 1, elements=2.5)
    with pytest.raises(mbs.ModelError, match="0 modes; keep at least 1"):
        mbs.Part.beam(1, 1, (1, 1), 1, modes=0)
    for given, says in (
        ({"width": 0.0}, "plate: width is 0"), ({"poisson": 0.5}, "poisson is"), ({"root": "tip"}, "root is 'tip'"),
        ({"elements": (4, 3)}, "the second of them even"), ({"attach": {"a": (2, 0)}}, "'a' is at"),
    ):  # fmt: skip
        with pytest.raises(mbs.ModelError, match=says):
            mbs.Part.plate(**{"length": 1.0, "width": 1.0, "mass": 1.0, "stiffness": 1.0, **given})
    with pytest.raises(mbs.ModelError, match="modes is -1"):
        mbs.Part.from_matrices(*model_of_beam(), attachments={}, modes=-1)
    with pytest.raises(mbs.ModelError, match="'middle' is no node"):
        mbs.Part.beam(1, 1, (1, 1), 1, attach=["middle"])
    mech = mbs.Mechanism("bad")
    with pytest.raises(mbs.ModelError, match="flexible body 'boom': 3 is not a part"):
        mech.add_flexible_body("boom", 3)
    with pytest.raises(mbs.ModelError, match="order is 3"):
        mech.add_flexible_body("boom", lumped()[0], order=3)
    with pytest.raises(mbs.ModelError, match="damping"):
        mbs.Mechanism("bad").add_flexible_body("boom", lumped()[0], damping=-0.1)
    with pytest.raises(mbs.ModelError, match="momentum has shape"):
        mbs.Part(1.0, np.zeros(3), np.eye(3), [1.0], np.zeros((2, 3)), *[np.zeros((1, 3))] * 4)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: {"momentum": 10 * p.momentum}, "is not positive"),
        (lambda p: {"mass": 0.0}, "mass is 0.0 kg"),
        (lambda p: {"momentum": p.momentum + 1j}, "momentum needs real numbers"),
        (lambda p: {"frequency": -p.frequency}, "a frequency is negative"),
        (lambda p: {"frequency": p.frequency * np.nan}, "frequency has numbers that are not finite"),
        (lambda p: {"coupling": np.abs(p.coupling)}, "coupling differs from minus itself with two modes exchanged"),
        (lambda p: {"inertia": p.inertia + np.eye(3, k=1)}, "inertia differs from its transpose by 1"),
        (lambda p: {"inertia_change": p.inertia_change + np.eye(3, k=1)}, "inertia_change differs from the transposes"),
        (lambda p: {"nodes": ("modes", "hand")}, "none of them 'modes'"),
        (lambda p: {"nodes": "ab"}, "nodes are 'ab'; pass a list of names"),
    ],
)  # fmt: skip
def test_numbers_of_no_body_are_refused(change, says):
    part = lumped()[0]
    with pytest.raises(mbs.ModelError, match=says):
        mbs.Part(**{**vars(part), **change(part)})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"damping": [0.1, 0.1]}, "damping is .* or one for each of 3 modes"),
        ({"damping": -0.1}, "damping is -0.1; pass one number of zero or more"),
        ({"damping": np.inf}, "damping is inf; pass one number of zero or more"),
        ({"damping": [0.1, np.nan, 0.1]}, "damping is .*nan.*; pass one number of zero or more"),
        ({"damping": "a"}, "'boom': damping: 'a' is not a number or an array of numbers"),
        ({"damping": "0.1"}, "'boom': damping: '0.1' is not a number"),
        ({"damping": np.ones(3) * 1j}, "'boom': damping: .* is not a number"),
        ({"damping": None}, "damping"),
        ({"damping_matrix": -np.eye(3)}, "the eigenvalue -1 1/s and would supply energy"),
        ({"damping_matrix": np.nan * np.eye(3)}, "damping_matrix has numbers that are not finite"),
        ({"damping_matrix": 1j * np.eye(3)}, "(?s)'boom': damping_matrix: .* is not a number"),
        ({"damping_matrix": [[1.0], [0.0, 1.0]]}, "'boom': damping_matrix: .* is not a number"),
        ({"damping_matrix": np.eye(2)}, r"damping_matrix has shape \(2, 2\); pass \(3, 3\)"),
        ({"order": 3}, "order is 3; pass 1 or 2"),
    ],
)
def test_a_refused_body_adds_nothing(given, says):
    mech, part = mbs.Mechanism("boom"), lumped()[0]
    with pytest.raises(mbs.ModelError, match=says):
        mech.add_flexible_body("boom", part, **given)
    mech.add_flexible_body("boom", part)


def test_a_body_whose_node_has_the_name_of_another_adds_nothing():
    """The frame and the modes come before the nodes."""
    mech, part = mbs.Mechanism("boom"), lumped()[0]
    mech.add_body("boom_elbow", 1.0, inertia=(1, 1, 1))
    with pytest.raises(mbs.ModelError, match="body 'boom_elbow' was added twice"):
        mech.add_flexible_body("boom", part)
    mech.add_body("boom", 1.0, inertia=(1, 1, 1))
    mech.add_body("boom_modes", 1.0, inertia=(1, 1, 1))
    for name in ("boom_elbow", "boom", "boom_modes"):
        mech.add_joint(name, mbs.Free(), "world", name)
    assert "boom.frequency" not in mech.build().parameter_names


def test_rigid_interfaces_of_solids():
    """The first and the last face as rigid plates: as with very stiff bars in these faces."""
    (M, K, x), first, last = truss(), [0, 1, 2, 3], [20, 21, 22, 23]
    part = mbs.Part.from_matrices(
        M, K, x, attachments={"tip": last}, stations={"mean": last, "middle": [8, 9, 10, 11]}, frame=first, modes=60
    )
    _, stiff, _ = truss(stiff=1e7)
    exact = np.sqrt(scipy.linalg.eigh(stiff[12:, 12:], M[12:, 12:], eigvals_only=True)[:6]) / (2 * np.pi)
    assert relative(part.frequency[:6] / exact, np.ones(6)) < 1e-5
    assert part.modes == 66 - 12  # all that is left: 16 nodes inside, and a plate
    assert part.positions.tolist() == [[5, 0, 0], [5, 0, 0], [2, 0, 0]] and part.mass == pytest.approx(np.trace(M) / 3)
    assert part.effective_mass.sum(axis=0) == pytest.approx(np.trace(M[12:, 12:]) / np.trace(M) * np.ones(3))
    assert relative(part.displacements[1], part.displacements[0]) < 1e-10
    assert relative(part.rotations[1], part.rotations[0]) < 1e-10
    for own, says in (
        ({"tip": 20}, "1 nodes on a point or a line"),
        ({"tip": [20, 21]}, "2 nodes on a point or a line"),
        ({"tip": last, "side": [20, 17, 18]}, "node 20 is in two attachments"),
        ({"tip": [20, 20, 21]}, "give each of them once"),
        ({"tip": 0.5}, "pass the index of a node, or a list of them"),
    ):
        with pytest.raises(mbs.ModelError, match=says):
            mbs.Part.from_matrices(M, K, x, attachments=own, frame=first)


def test_rigid_interfaces_with_rotations():
    """Two nodes at the end of a beam as one rigid plate: the frequencies of a beam whose last element is rigid."""
    M, K, x = model_of_beam()
    part = mbs.Part.from_matrices(M, K, x, attachments={"tip": [2, 3]}, frame=0, modes=30)
    arm = np.eye(6)
    arm[1, 5], arm[2, 4] = 1 / 6, -1 / 6  # from the middle of the element to its end at +x
    other = 2 * np.eye(6) - arm
    T = scipy.linalg.block_diag(np.eye(6), np.concatenate([other, arm]))
    exact = np.sqrt(scipy.linalg.eigh(T.T @ K[6:, 6:] @ T, T.T @ M[6:, 6:] @ T, eigvals_only=True)) / (2 * np.pi)
    assert relative(part.frequency / exact, np.ones(12)) < 1e-8
    assert part.positions.tolist() == [[pytest.approx(5 / 6), 0, 0]]


def test_what_can_be_attached_where():
    part = lumped()[0]

    def mech():
        found = mbs.Mechanism("boom")
        found.add_flexible_body("boom", part)
        found.add_joint("root", mbs.Fixed(), "world", "boom")
        found.add_body("load", 1.0, inertia=(1, 1, 1))
        return found

    wrong = mech()
    wrong.add_joint("mount", mbs.Fixed(), "boom_modes", "load")
    with pytest.raises(
        mbs.ModelError, match="'boom_modes' carries the modes of 'boom' and nothing else; attach the joint to"
    ):
        wrong.build()
    for parent, says in (("boom", "is for nodes of flexible bodies"), ("boom_modes", "2 modes, but 'boom' has 3")):
        wrong = mech()
        wrong.add_joint("mount", FlexibleNode(2, np.ones(6), np.zeros(6)), parent, "load")
        with pytest.raises(mbs.ModelError, match=says):
            wrong.build()
    wrong = mbs.Mechanism("no body")
    wrong.add_body("load", 1.0, inertia=(1, 1, 1))
    wrong.add_joint("modes", ElasticModes(1, np.ones(3), np.ones(3), np.ones(6), [0.0]), "world", "load")
    with pytest.raises(mbs.ModelError, match="modes belong to a body"):
        wrong.build()
    modes = ElasticModes(1, np.ones(3), np.ones(3), np.ones(6), [0.0])
    with pytest.raises(mbs.ModelError, match="'more': ElasticModes has no poses"):
        mech().add_joint("more", modes, "boom", "load", mbs.Pose((0, 0, 1)))
    wrong = mech()
    wrong.add_joint("more", modes, "boom", "load")
    with pytest.raises(mbs.ModelError, match=r"its body has the modes of '.*' already; a flexible body has one set"):
        wrong.build()
    with pytest.raises(mbs.ModelError, match="inertia_curvature: one number that is not zero, for 1 modes; pass 6"):
        wrong = mbs.Mechanism("one")
        wrong.add_body("frame", 1.0, inertia=(1, 1, 1))
        wrong.add_joint("free", mbs.Free(), "world", "frame")
        wrong.add_body("modes")
        wrong.add_joint("one", ElasticModes(1, np.ones(3), np.ones(3), np.ones(6), [0.0], [2.0]), "frame", "modes")
        wrong.build()
    with pytest.raises(mbs.ModelError, match="has no modes; add a rigid body"):
        mbs.Mechanism("none").add_flexible_body("boom", mbs.Part(
            1.0, np.zeros(3), np.eye(3), [], *(np.zeros((0, *x)) for x in ((3,), (3,), (3, 3), (0, 3), (0, 3, 3)))
        ))  # fmt: skip
