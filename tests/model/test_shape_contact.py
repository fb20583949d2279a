"""Contact of two shapes against contact of points, closed forms, conservation, and differences."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.model.forces import shape_contact
from tests.cases import relative

SLAB = mbs.Box((2, 2, 0.5))
BELOW = mbs.Pose((0, 0, -0.25))  # its upper face is z = 0
LAW = {"stiffness": 1e3, "damping": 0.5, "friction": 0.3, "transition_velocity": 0.1, "smoothing": 1e-2}
REST = np.zeros(6)
rng = np.random.default_rng(3)
SHAPES = {
    "box": mbs.Box((0.5, 0.4, 0.6)),
    "hull": mbs.Hull(0.3 * rng.normal(size=(12, 3))),
    "tube": mbs.Tube(0.25, 0.5),
    "cone": mbs.Cone(0.3, 0.6, end_radius=0.1),
    "ball": mbs.Ball(0.3),
    "capsule": mbs.Capsule(0.15, 0.5),
    "bracket": mbs.Compound([mbs.Box((0.8, 0.2, 0.2)), (mbs.Box((0.2, 0.2, 0.6)), mbs.Pose((0.3, 0, 0.4)))]),
}


def touching(a, b, law=LAW, of=shape_contact._wrench, spacing=None):
    """The wrench on a, or what else is summed, of (rotation, position, velocity and angular velocity) of a beside b, in axes
    of b; in rows."""
    numbers = [law[name] for name in shape_contact.LAW]

    def one(x):
        return jnp.stack(shape_contact._found(of, a, b, spacing, [*x, *map(jnp.asarray, numbers)]))

    return one


def batch(number, far, seed=0, speed=0.3):
    """Placements and velocities in rows, as `touching` takes them."""
    rng = np.random.default_rng(seed)
    R, p = Rotation.random(number, rng=rng).as_matrix(), rng.normal(size=(number, 3))
    p *= rng.uniform(0.2, far, (number, 1)) / np.linalg.norm(p, axis=1)[:, None]
    return np.concatenate([R.reshape(number, 9), p, speed * rng.normal(size=(number, 6))], axis=1)


def placed(position, rotation=(0, 0, 0), velocity=(0, 0, 0), turning=(0, 0, 0)):
    R = Rotation.from_rotvec(rotation).as_matrix()
    return np.array([*R.ravel(), *position, *velocity, *turning], float)


def free(contact, mass=2.0, gravity=(0, 0, 0)):
    mech = mbs.Mechanism("free", gravity=gravity)
    mech.add_body("b", mass, inertia=(0.1, 0.12, 0.14))
    mech.add_joint("free", mbs.Free(), "world", "b")
    if contact is not None:
        mech.add_force("touch", contact)
    return mech.build()


SURFACES = {
    "plane": (SLAB, BELOW, mbs.Plane(point=(0, 0, 0.3))),
    "ball": (mbs.Ball(0.4), mbs.Pose((0.1, 0, -0.3)), mbs.Sphere((0.1, 0, -0.3), 0.7)),
    "capsule": (mbs.Capsule(0.2, 5.0), mbs.Pose((0, 0.1, -0.2)), mbs.Cylinder((0, 0.1, 0), radius=0.5)),
    "tube": (mbs.Tube(0.2, 5.0), mbs.Pose((0, 0.1, -0.2)), mbs.Cylinder((0, 0.1, 0), radius=0.5)),
}


@pytest.mark.parametrize("name", SURFACES)
@pytest.mark.usually("plane", "tube")
def test_a_ball_is_a_point_against_a_surface_moved_by_its_radius(name):
    """Without friction, which acts at another point; also where the force rises smoothly."""
    other, pose, surface = SURFACES[name]
    law = {**LAW, "friction": 0.0}
    model = free(mbs.Contact("b", (0, 0, 0), surface, **law))
    towards = (0, 0.8, 0.6) if name in ("plane", "ball") else (0.6, 0.8, 0)
    middle = np.array(pose.position) if name != "plane" else np.array([0.2, 0.3, -0.3 / 0.6 + 0.5])
    far = {"plane": 0.5, "ball": 0.7}.get(name, 0.5)
    q = [[*(middle + (far + x) * np.array(towards)), 1.0, 0, 0, 0] for x in (-0.05, -0.006, 0.004, 0.02)]
    v = [0, 0, 0, 0.1, 0.2, -0.3]
    want = -np.array([scalar.bias_forces(model, x, v) for x in q], float)[:, 3:]
    x = np.stack([placed(np.array(row[:3]) - pose.position, velocity=v[3:]) for row in q])
    found = np.asarray(mbs.jit(touching(mbs.Ball(0.3), other, law), in_axes=0)(x))
    assert np.abs(want).max() > 10 and np.abs(want[2]).max() > 0.01 and not want[3].any()
    assert np.abs(found[:, :3] - want).max() < 1e-12 * np.abs(want).max()
    arms = np.cross(x[:, 9:12], found[:, :3])  # through the middle of the ball
    assert np.abs(found[:, 3:] - arms).max() < 1e-12 * np.abs(want).max()


def test_a_ball_rolls_over_an_edge():
    """Its distance counts: from the nearest face, edge or corner of a box, and from the rim of a cylinder."""
    law = {**LAW, "friction": 0.0, "smoothing": 1e-6}
    x = np.stack([placed(p) for p in ((0, 0.4, 0.44), (0.3, 0.45, 0.4), (0.52, 0.52, 0.52), (0.42, 0.42, 0.0))])
    for shape, nearest in (
        (mbs.Box((0.8, 0.8, 0.8)), lambda p: np.clip(p, -0.4, 0.4)),
        (mbs.Tube(0.4, 0.8), lambda p: np.array([*p[:2] * min(1, 0.4 / np.hypot(*p[:2])), np.clip(p[2], -0.4, 0.4)])),
    ):
        found = np.asarray(mbs.jit(touching(mbs.Ball(0.25), shape, law), in_axes=0)(x))
        for p, force in zip(x[:, 9:12], found[:, :3], strict=True):
            away = p - nearest(p)
            r = np.linalg.norm(away)
            assert np.abs(force - 1e3 * max(0.25 - r, 0.0) * away / r).max() < 1e-9


def test_a_box_rests_on_four_corners():
    """Its weight, and no moment; if it tilts, the moment of four springs."""
    of = mbs.jit(touching(mbs.Box((0.4, 0.6, 0.2)), SLAB, {**LAW, "smoothing": 1e-5}), in_axes=0)
    flat, tilted = np.asarray(of(np.stack([placed((0, 0, 0.349)), placed((0, 0, 0.346), (1e-3, 0, 0))])))
    assert relative(flat, [0, 0, 4.0, 0, 0, 0]) < 1e-12
    depths = 0.25 - (0.346 + np.sin(1e-3) * np.array([-0.3, 0.3]) - 0.1 * np.cos(1e-3))
    y = np.array([-0.3, 0.3]) * np.cos(1e-3) + 0.1 * np.sin(1e-3)
    assert relative(tilted[[2, 3]], 2e3 * np.array([depths.sum(), depths @ y])) < 1e-12


def test_a_box_slides_down_an_incline():
    """v = g (sin - mu cos) t; it starts as deep as it stays."""
    slope, mu, g = 0.5, 0.2, 9.81
    law = {"stiffness": 1e4, "friction": mu, "transition_velocity": 1e-4}
    contact = mbs.ShapeContact("b", mbs.Box((0.4, 0.4, 0.02)), "world", mbs.Box((40, 2, 0.5)), pose_b=BELOW, **law)
    model = free(contact, gravity=(g * np.sin(slope), 0, -g * np.cos(slope)))
    z = 0.01 - 2.0 * g * np.cos(slope) / 4e4
    run = mbs.simulate(model, [0, 0, z, 1, 0, 0, 0], [0, 0, 0, 1.0, 0, 0], 0.1, 1e-3, save_every=None)
    assert float(run.v[-1, 3]) == pytest.approx(1 + g * (np.sin(slope) - mu * np.cos(slope)) * 0.1, rel=1e-6)
    assert abs(float(run.energy_error[-1])) < 1e-6


def test_edges_meet_edges():
    """Two cubes, edge over edge at right angles: along their common normal, at their nearest points. Each edge is in the
    other cube by its distance divided by the square root of two, and pushed along two faces at 45 degrees."""
    cube, h = mbs.Box((1, 1, 1)), 0.02
    on_edge = Rotation.from_rotvec([np.pi / 4, 0, 0])  # an edge along x is uppermost
    across = Rotation.from_rotvec([0, 0, np.pi / 2]) * on_edge
    between = on_edge.inv()  # into axes of the second cube
    up = between.apply([0, 0, 1])
    x = placed(up * (np.sqrt(2) - h), (between * across).as_rotvec())
    found = np.asarray(mbs.jit(touching(cube, cube, {**LAW, "smoothing": 1e-5}), in_axes=0)(x[None]))[0]
    assert relative(found[:3], 2 * 1e3 * (h / np.sqrt(2)) / np.sqrt(2) * up) < 1e-9
    assert relative(found[3:], np.cross(up * (np.sqrt(0.5) - h / 2), found[:3])) < 1e-9  # through the nearest points


PAIRS = ["box hull", "tube box", "capsule cone", "bracket ball"]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.usually("box hull", "capsule cone")
def test_the_force_is_the_slope_of_the_potential(pair):
    """Over random placements, deep ones too."""
    law = {**LAW, "damping": 0.0, "friction": 0.0}
    one, other = (SHAPES[name] for name in pair.split())
    energy = mbs.jit(touching(one, other, law, shape_contact._energy), in_axes=0)
    x = batch(60, 0.6, speed=0.0)
    found, h = np.asarray(mbs.jit(touching(one, other, law), in_axes=0)(x)), 1e-6

    def moved(k, h):
        y, d = x.copy(), h * np.eye(3)[k % 3]
        if k < 3:
            y[:, 9:12] += d
        else:
            Q = Rotation.from_rotvec(d).as_matrix()
            y[:, :9], y[:, 9:12] = (Q @ x[:, :9].reshape(-1, 3, 3)).reshape(-1, 9), x[:, 9:12] @ Q.T
        return y

    every = np.asarray(energy(np.concatenate([moved(k, s * h) for k in range(6) for s in (1, -1)])))[:, 0]
    plus, minus = every.reshape(6, 2, -1).transpose(1, 0, 2)
    errors = np.abs(-(plus - minus) / (2 * h) - found.T).max(0) / (1 + np.abs(found).max(1))
    assert (np.abs(found).max(1) > 1).sum() > 30
    assert np.median(errors) < 1e-8 and np.quantile(errors, 0.9) < 1e-5  # some placements are at a kink


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.usually("box hull")
def test_derivatives_of_the_force(pair):
    """Forwards and backwards, against differences, with respect to placement, motion and all numbers of the law."""
    one, other = (SHAPES[name] for name in pair.split())

    def of(x):
        return jnp.stack(shape_contact._found(shape_contact._wrench, one, other, None, list(x)))

    x = batch(40, 0.6, seed=1)
    x = np.concatenate([x, np.tile([LAW[name] for name in shape_contact.LAW], (len(x), 1))], axis=1)
    forwards, backwards = (np.asarray(mbs.jit(how(of), in_axes=0)(x)) for how in (jax.jacfwd, jax.jacrev))
    steps = 1e-6 * np.eye(x.shape[1])
    value = mbs.jit(of, in_axes=0)
    moved = np.asarray(value(np.concatenate([x + s * h for h in steps for s in (1, -1)])))
    plus, minus = moved.reshape(len(steps), 2, len(x), 6).transpose(1, 2, 3, 0)
    scale = 1 + np.abs(forwards).max((1, 2), keepdims=True)
    errors = (np.abs((plus - minus) / 2e-6 - forwards) / scale).max((1, 2))
    assert (np.abs(np.asarray(value(x))).max(1) > 1).sum() > 25
    assert np.median(errors) < 1e-8 and np.quantile(errors, 0.9) < 1e-5
    assert (np.abs(backwards - forwards) / scale).max() < 1e-12


@pytest.mark.parametrize("pair", [*PAIRS, "capsule capsule", "ball capsule", "ball ball"])
@pytest.mark.usually("box hull")
def test_it_does_not_matter_which_shape_is_the_first(pair):
    """What pushes one pushes the other back, friction and damping included."""
    one, other = (SHAPES[name] for name in pair.split())
    x = batch(200, 0.6)
    R, (p, v, turning) = x[:, :9].reshape(-1, 3, 3), np.split(x[:, 9:], 3, axis=1)
    back = R.swapaxes(1, 2)
    swapped = (np.einsum("nij,nj->ni", back, -y) for y in (p, v + np.cross(turning, p), turning))
    found = np.asarray(mbs.jit(touching(one, other), in_axes=0)(x))
    same = np.asarray(mbs.jit(touching(other, one), in_axes=0)(np.concatenate([back.reshape(-1, 9), *swapped], axis=1)))
    force, moment = (np.einsum("nij,nj->ni", R, -y) for y in np.split(same, 2, axis=1))
    assert (np.abs(found).max(1) > 1).sum() > 50
    scale = np.abs(found).max()
    np.testing.assert_allclose(found, np.concatenate([force, moment + np.cross(p, force)], axis=1), atol=1e-11 * scale)


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS)
def test_a_batch_of_machine_code_gives_what_jax_gives_for_one(pair):
    one, other = (SHAPES[name] for name in pair.split())
    x = batch(40, 0.6)
    alone = jax.jit(touching(one, other))
    found = np.asarray(mbs.jit(touching(one, other), in_axes=0)(x))
    np.testing.assert_allclose(found, [alone(row) for row in x], rtol=1e-11, atol=1e-10)


def test_two_free_bodies_keep_their_momentum():
    mech = mbs.Mechanism("pair")
    for name, mass in (("a", 2.0), ("b", 3.0)):
        mech.add_body(name, mass, inertia=(1.0, 1.2, 1.4))
        mech.add_joint(f"free {name}", mbs.Free(), "world", name)
    poses = {"pose_a": mbs.Pose((0.1, 0, 0.05), (1, 0.2, 0, 0)), "pose_b": mbs.Pose((0, -0.1, 0), (1, 0, 0.1, 0.3))}
    mech.add_force("touch", mbs.ShapeContact("a", SHAPES["box"], "b", mbs.Box((0.6, 0.6, 0.6)), **poses, **LAW))
    model = mech.build()
    q = np.array([0.0, 0, 0, 1, 0.1, 0.2, 0.3, 0.3, 0.35, 0.25, 1, 0.3, 0.1, -0.4])
    a = np.asarray(mbs.forward_dynamics(model, q, np.zeros(12)))
    angular, linear = mbs.momentum(model, q, a)
    assert np.abs(a).max() > 1
    assert relative(np.concatenate([angular, linear]), np.zeros(6)) < 1e-12 * np.abs(a).max()


@pytest.mark.slow
@pytest.mark.interpreted
def test_the_world_may_be_either_of_the_two():
    """The same force and energy in plain numbers, whichever is named first."""
    poses = mbs.Pose((0.05, 0, 0), (1, 0.1, 0.2, 0)), BELOW
    q, v = [0.1, 0.2, 0.2, 0.9, 0.1, -0.2, 0.3], [0.1, 0.2, 0.3, 0.4, 0.5, -0.6]
    one = free(mbs.ShapeContact("b", SHAPES["box"], "world", SLAB, *poses, **LAW))
    other = free(mbs.ShapeContact("world", SLAB, "b", SHAPES["box"], *poses[::-1], **LAW))
    forces = [np.array(scalar.bias_forces(m, q, v), float) for m in (one, other)]
    assert np.abs(forces[0]).max() > 10 and relative(*forces) < 1e-12
    assert scalar.energy(one, q, v)[1] == pytest.approx(float(scalar.energy(other, q, v)[1]), rel=1e-12)


def test_pieces_side_by_side_are_one():
    """A box cut in two pushes like the whole one: near the cut as elsewhere, and each point once. The faces in the cut do
    not count, nor do the corners and edges that both pieces have there."""
    whole = mbs.Box((1.0, 0.6, 0.2))
    halves = mbs.Compound([(mbs.Box((0.5, 0.6, 0.2)), mbs.Pose((x, 0, 0))) for x in (-0.25, 0.25)])
    wedge, law = mbs.Hull([(0, 0, 0), (0.1, 0, 0.3), (-0.1, 0.1, 0.3), (0, -0.1, 0.3)]), {**LAW, "smoothing": 1e-4}
    x = np.stack([placed((x, 0.02, 0.095)) for x in (-0.3, -1e-3, -1e-6, 0.0, 1e-6, 2e-3, 0.2)])
    found, want = (np.asarray(mbs.jit(touching(wedge, box, law), in_axes=0)(x)) for box in (halves, whole))
    assert relative(want[:, 2], np.full(len(x), 5.0)) < 1e-12
    np.testing.assert_allclose(found, want, atol=1e-12)
    features = shape_contact._features(halves, None)
    assert features.rows[:, -1].sum() == 2 and len(features.points) == 8 and len(features.edges) == 12


def test_a_carrier_in_a_rail():
    """The corners of a box between two walls: pushed back across the rail alone; free in its clearance."""
    walls = [(mbs.Box((2.0, 0.1, 0.4)), mbs.Pose((0, y, 0.2))) for y in (-0.16, 0.16)]
    rail = mbs.Compound([*walls, (mbs.Box((2.0, 0.42, 0.1)), mbs.Pose((0, 0, -0.05)))])
    box = mbs.Hull(list(itertools.product((-0.3, 0.3), (-0.1, 0.1), (-0.1, 0.1))))
    law = {**LAW, "friction": 0.0, "smoothing": 1e-6}
    x = np.stack([placed((0, 0, 0.101)), placed((0.1, 0.012, 0.101)), placed((0, 0, 0.101), (0, 0, 0.05))])
    inside, beside, turned = np.asarray(mbs.jit(touching(box, rail, law), in_axes=0)(x))
    assert not inside.any()
    assert relative(beside, [0, -8.0, 0, *np.cross((0.1, 0.1, 0.101), (0, -8.0, 0))]) < 1e-12
    depth = 0.3 * np.sin(0.05) + 0.1 * np.cos(0.05) - 0.11
    arm = 0.3 * np.cos(0.05) - 0.1 * np.sin(0.05)
    assert relative(turned, [0, 0, 0, 0, 0, -4 * 1e3 * depth * arm]) < 1e-12


def test_points_along_edges():
    """A plate on two rails, which ends beyond them and they beyond it: with points along the edges it rests on these."""
    plate = mbs.Box((1.0, 1.0, 0.02))
    rails = mbs.Compound([(mbs.Box((3.0, 0.1, 0.1)), mbs.Pose((0, y, -0.05))) for y in (-0.3, 0.3)])
    law = {**LAW, "smoothing": 1e-6}
    x = np.stack([placed((0, 0, 0.009), (0, tilt, 0)) for tilt in (0.0, 1e-6)])
    level, tilted = np.asarray(mbs.jit(touching(plate, rails, law, spacing=0.08), in_axes=0)(x))
    assert level[2] > 4.0 and np.abs(level[[0, 1, 3, 4, 5]]).max() < 1e-9
    assert -0.1 < tilted[4] - level[4] < -1e-5  # a spring, no jump
    with pytest.raises(mbs.ModelError, match=r"force 'touch': spacing is 0; pass a length"):
        free(mbs.ShapeContact("b", plate, "world", rails, spacing=0))


BAD = {
    "shape_a is 0.3, which is no solid": lambda: mbs.ShapeContact("b", 0.3, "world", SLAB),
    r"shape_b is .*Box.*; pass Box\(...\)": lambda: mbs.ShapeContact("b", SLAB, "world", mbs.Box),
    "shape_a: is a disc without thickness.*short Tube": lambda: mbs.ShapeContact("b", mbs.Disc(0.1), "world", SLAB),
    "shape_b: .nowhere.stl.*cannot be read": lambda: mbs.ShapeContact("b", SLAB, "world", mbs.Mesh("nowhere.stl")),
    "shape_a: spacing = 1e-07 makes more than .* points": lambda: mbs.ShapeContact(
        "b", SLAB, "world", SLAB, spacing=1e-7
    ),
    "both ends are on 'b'": lambda: mbs.ShapeContact("b", SLAB, "b", SLAB),
    "body_b.*'wrold'": lambda: mbs.ShapeContact("b", SLAB, "wrold", SLAB),
    "smoothing": lambda: mbs.ShapeContact("b", SLAB, "world", SLAB, smoothing=0.0),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_shapes(message):
    with pytest.raises(mbs.ModelError, match=f"(?s)touch.*{message}"):
        free(BAD[message]())


def test_the_shapes_of_a_robot_touch(tmp_path):
    """The collision shapes of an imported robot, as one solid."""
    geometry = "<geometry><{0}/></geometry>"
    parts = [f'<collision><origin xyz="{x}"/>{geometry.format(s)}</collision>' for x, s in (
        ("0 0 0.5", 'cylinder radius="0.05" length="1"'), ("0 0 1", 'sphere radius="0.1"'))]  # fmt: skip
    text = '<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" '
    text += f'ixy="0" ixz="0" iyz="0"/></inertial>{"".join(parts)}</link><joint name="j" type="continuous">'
    text += '<parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>'
    path = tmp_path / "robot.urdf"
    path.write_text(text, encoding="utf-8")
    arm = mbs.Compound(mbs.collision_shapes(path)["arm"])
    turned = placed((0, 0, 1.06), (np.pi, 0, 0))  # upside down: the ball is 0.04 m deep below z = 0.25 - 0.25
    turned[11] = 0.25 + 1.06
    found = np.asarray(mbs.jit(touching(arm, SLAB, {**LAW, "smoothing": 1e-6}), in_axes=0)(turned[None]))[0]
    assert relative(found, [0, 0, 40.0, 0, 0, 0]) < 1e-9


def test_a_contact_of_shapes_comes_back_from_a_file(tmp_path):
    corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    wedge = mbs.Mesh(vertices=corners, triangles=[[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]], scale=0.1)
    both = mbs.Compound([wedge, (mbs.Ball(0.1), mbs.Pose((0, 0, 0.5)))])
    poses = {"pose_a": mbs.Pose((1 / 3, 0, 0)), "pose_b": mbs.Pose((0, 0, 0.3), (1, 0.1, 0, 0))}
    model = free(mbs.ShapeContact("b", mbs.Box((0.4, 0.4, 0.4)), "world", both, **poses, **LAW, spacing=0.1))
    mbs.save(model, tmp_path / "model.toml")
    back = mbs.load(tmp_path / "model.toml")
    assert back == model
    (element,) = (f.element for f in back.structure.forces)
    assert element.shape_b.parts[0][0] == mbs.Hull(0.1 * np.array(sorted(corners)))


def test_a_mesh_file_beside_a_file(tmp_path):
    """Its triangles are read with the file, and the model needs it no more."""
    lines = ["v 0 0 0", "v 100 0 0", "v 0 100 0", "v 0 0 100", "f 1 3 2", "f 1 2 4", "f 2 3 4", "f 1 4 3"]
    (tmp_path / "wedge.obj").write_text("\n".join(lines), encoding="utf-8")
    text = """
    [mechanism]
    bodies = [{name = "b", mass = 1.0, inertia = [1, 1, 1]}]
    joints = [{name = "free", type = "free", parent = "world", child = "b"}]
    [[mechanism.forces]]
    name = "touch"
    type = "shape_contact"
    body_a = "b"
    shape_a = {type = "ball", radius = 0.1}
    body_b = "world"
    shape_b.type = "compound"
    shape_b.parts = [{type = "mesh", file = "wedge.obj", scale = 0.001, pose = {position = [1, 0, 0]}}]
    """
    (tmp_path / "model.toml").write_text(text, encoding="utf-8")
    model = mbs.load(tmp_path / "model.toml")
    (tmp_path / "wedge.obj").unlink()
    (element,) = (f.element for f in model.structure.forces)
    ((hull, pose),) = element.shape_b.parts
    assert sorted(hull.points) == [(0, 0, 0), (0, 0, 0.1), (0, 0.1, 0), (0.1, 0, 0)] and pose.position == (1, 0, 0)
    with pytest.raises(mbs.ModelError, match=r"mechanism\.forces\[0\]\.shape_b\.parts\[0\]\.file.*wedge\.obj"):
        mbs.load(tmp_path / "model.toml")


@functools.cache
def falling():
    contact = mbs.ShapeContact("b", mbs.Box((0.3, 0.2, 0.1)), "world", SLAB, pose_b=BELOW, stiffness=2e4, friction=0.3,
                               damping=0.3, smoothing=1e-3)  # fmt: skip
    return free(contact, gravity=(0, 0, -9.81))


@pytest.mark.slow
def test_a_box_that_tumbles_keeps_its_balance_of_energy():
    """It falls on a corner, rebounds and slides; the balance closes with the order of the integrator, and a batch gives what
    each run gives."""
    model = falling()
    q0 = np.array([0, 0, 0.3, *np.array([1, 0.3, -0.2, 0.1]) / np.linalg.norm([1, 0.3, -0.2, 0.1])])
    v0 = np.array([0.5, -1.0, 0.3, 0.4, 0, 0])
    runs = [mbs.simulate(model, q0, v0, 0.4, dt, save_every=None) for dt in (4e-4, 2e-4)]
    errors = [abs(float(run.energy_error[-1])) for run in runs]
    assert errors[1] < 1e-5 and errors[0] / errors[1] > 6
    many = v0 + 0.1 * np.random.default_rng(0).normal(size=(8, 6))
    run = mbs.jit(lambda v: mbs.simulate(model, q0, v, 0.4, 4e-4, save_every=None), in_axes=0)(many)
    for k in (0, 7):
        one = mbs.simulate(model, q0, many[k], 0.4, 4e-4, save_every=None)
        np.testing.assert_allclose(run.q[k], one.q, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("how", [jax.jacfwd, jax.jacrev])
def test_derivatives_through_a_run(how):
    """With respect to numbers of the placement, through touching down."""
    model = falling()
    q0 = jnp.array([0, 0, 0.2, 1.0, 0.1, -0.05, 0])

    def end(x):
        changed = mbs.set(model, {"touch.pose_a.position": x[:3], "touch.friction": x[3]})
        return mbs.simulate(changed, q0, jnp.zeros(6), 0.2, 5e-4, save_every=None).q[-1]

    x, h = jnp.array([0.01, 0.0, 0.02, 0.3]), 1e-6
    J = np.asarray(jax.jit(how(end))(x))
    differences = np.stack([np.asarray(end(x + h * e) - end(x - h * e)) / (2 * h) for e in np.eye(4)], axis=1)
    np.testing.assert_allclose(J, differences, rtol=1e-4, atol=1e-4 * np.abs(J).max())
