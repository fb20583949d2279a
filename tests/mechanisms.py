"""Random mechanisms as plain data, and their states.

A `Description` knows nothing of any library: `build` turns it into a jaxmbs model, `tests.mirrors` into a Pinocchio and
a MuJoCo one. The three then have only these numbers in common.
"""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

# number of q, number of v
SIZES = {
    "Fixed": (0, 0),
    "Revolute": (1, 1),
    "Prismatic": (1, 1),
    "Helical": (1, 1),
    "Cylindrical": (2, 2),
    "Universal": (2, 2),
    "Spherical": (4, 3),
    "Planar": (3, 3),
    "Free": (7, 6),
    "Bryant": (3, 3),  # three hinges about x, y, z; only as the motion of a General joint
}
KINDS = (*(k for k in SIZES if k != "Bryant"), "General")
GENERAL_MOTIONS = ("Revolute", "Prismatic", "Helical", "Cylindrical", "Universal", "Planar", "Bryant")
X, Y, Z = np.eye(3)


@dataclass(frozen=True)
class Pose:
    position: np.ndarray
    quaternion: np.ndarray  # w, x, y, z

    @property
    def rotation(self):
        return rotation_matrix(self.quaternion)


IDENTITY = Pose(np.zeros(3), np.array([1.0, 0, 0, 0]))


@dataclass(frozen=True)
class Body:
    name: str
    mass: float
    com: np.ndarray
    inertia: np.ndarray  # 3x3 about the centre of mass


@dataclass(frozen=True)
class Joint:
    name: str
    kind: str
    parent: str
    child: str
    parent_pose: Pose = IDENTITY
    child_pose: Pose = IDENTITY
    axes: tuple = ()
    pitch: float = 0.0
    like: str = ""  # the motion that a General joint spells out

    @property
    def motion(self):
        return self.like or self.kind

    @property
    def nq(self):
        return SIZES[self.motion][0]

    @property
    def nv(self):
        return SIZES[self.motion][1]


@dataclass(frozen=True)
class Description:
    bodies: tuple
    joints: tuple
    gravity: np.ndarray

    def ordered(self, joint_names):
        """The same mechanism with its joints in the given order: the order of the coordinates."""
        by_name = {j.name: j for j in self.joints}
        return replace(self, joints=tuple(by_name[n] for n in joint_names))

    @property
    def nv(self):
        return sum(j.nv for j in self.joints)

    def slices(self):
        """Joint, slice of q, slice of v, for every joint in order."""
        iq = iv = 0
        for j in self.joints:
            yield j, slice(iq, iq + j.nq), slice(iv, iv + j.nv)
            iq, iv = iq + j.nq, iv + j.nv


# --- rotations -------------------------------------------------------------------------------------------------------


def rotation_matrix(quaternion):
    w, x, y, z = np.asarray(quaternion) / np.linalg.norm(quaternion)
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


def quaternion_product(a, b):
    return np.array([a[0] * b[0] - a[1:] @ b[1:], *(a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:]))])


def cross_matrix(v):
    return np.cross(np.eye(3), v)


def _unit(rng, size=3):
    v = rng.normal(size=size)
    return v / np.linalg.norm(v)


# --- random mechanisms -----------------------------------------------------------------------------------------------

# A massless body needs a child that moves whenever it does: these pairs of joints never cancel one another.
_CARRIES = {
    "Revolute": ("Fixed", "Prismatic"),
    "Prismatic": ("Fixed", "Revolute", "Universal", "Spherical"),
    "Helical": ("Fixed",),
    "Cylindrical": ("Fixed",),
    "Universal": ("Fixed", "Prismatic"),
    "Spherical": ("Fixed", "Prismatic"),
    "Planar": ("Fixed",),
}


def random_mechanism(seed, n=None, *, kinds=KINDS, aligned=None, mass_ratio=10.0, massless=0.15, free_base=None):
    """A mechanism of n bodies (1 to 40 when None).

    aligned: probability that an axis or a pose follows the coordinate axes (default: drawn per mechanism);
    mass_ratio: masses are log-uniform over this range; massless: share of bodies without mass, where that is possible;
    free_base: whether the first joint is Free (default: drawn, when `kinds` has it).
    """
    rng = np.random.default_rng(seed)
    n = n or 1 + int(40 * rng.uniform() ** 2)
    aligned = rng.choice([0.0, 0.5, 1.0]) if aligned is None else aligned
    free_base = "Free" in kinds and rng.uniform() < 0.5 if free_base is None else free_base
    reach = rng.choice([1, 3, n])  # how far back a parent may be: a chain, a slim tree, a bush
    carriers = [k for k in kinds if set(kinds) & set(_CARRIES.get(k, ()))]
    bodies, joints = [], []

    def add(parent, kind, mass):
        name = f"b{len(bodies)}"
        bodies.append(_random_body(rng, name, mass, aligned))
        joints.append(_random_joint(rng, "j" + name[1:], kind, parent, name, aligned))
        return name

    while len(bodies) < n:
        new_tree = not bodies or rng.uniform() < 0.05
        parent = "world" if new_tree else bodies[-int(rng.integers(1, min(reach, len(bodies)) + 1))].name
        if carriers and n - len(bodies) >= 2 and rng.uniform() < massless:
            kind = str(rng.choice(carriers))
            parent = add(parent, kind, 0.0)
            kind = str(rng.choice([k for k in _CARRIES[kind] if k in kinds]))
        else:
            kind = "Free" if free_base and not bodies else str(rng.choice(kinds))
        add(parent, kind, mass_ratio ** rng.uniform(-0.5, 0.5))
    gravity = np.array([0, 0, -9.81]) if rng.uniform() < 0.5 else rng.normal(size=3) * 5
    return Description(tuple(rng.permutation(bodies)), tuple(rng.permutation(joints)), gravity)


def mechanisms(max_bodies=8, **options):
    """Hypothesis strategy; shrinks towards few bodies."""
    return st.builds(
        lambda n, seed: random_mechanism(seed, n, **options), st.integers(1, max_bodies), st.integers(0, 2**32 - 1)
    )


def _random_axis(rng, aligned):
    return rng.choice([-1.0, 1.0]) * np.eye(3)[rng.integers(3)] if rng.uniform() < aligned else _unit(rng)


def _random_pose(rng, aligned):
    """Among the aligned ones are the identity, quarter and half turns about an axis, and shifts along one axis."""
    if rng.uniform() >= aligned:
        return Pose(rng.normal(size=3) * 0.3, _unit(rng, 4))
    position = np.zeros(3) if rng.uniform() < 0.4 else rng.normal() * 0.5 * np.eye(3)[rng.integers(3)]
    quarters = rng.choice([0, 0, 1, 2, 3]) * np.pi / 4
    return Pose(position, np.array([np.cos(quarters), *(np.sin(quarters) * np.eye(3)[rng.integers(3)])]).round(15))


def _random_body(rng, name, mass, aligned):
    if mass == 0:
        return Body(name, 0.0, np.zeros(3), np.zeros((3, 3)))
    plain = rng.uniform() < aligned
    second = np.diag(rng.uniform(0.02, 0.1, 3))  # second moments of the mass distribution: any such inertia is physical
    if not plain:
        turn = rotation_matrix(_unit(rng, 4))
        second = turn @ second @ turn.T
    com = rng.normal() * 0.3 * np.eye(3)[rng.integers(3)] if plain else rng.normal(size=3) * 0.2
    return Body(name, float(mass), com, mass * (np.trace(second) * np.eye(3) - second))


def _random_joint(rng, name, kind, parent, child, aligned):
    like = str(rng.choice(GENERAL_MOTIONS)) if kind == "General" else ""
    axes = ()
    if (like or kind) in ("Revolute", "Prismatic", "Helical", "Cylindrical"):
        axes = (_random_axis(rng, aligned),)
    if (like or kind) == "Universal":
        first = second = _random_axis(rng, aligned)
        while abs(first @ second) > 0.7:  # 45 to 90 degrees apart
            second = _random_axis(rng, aligned)
        axes = (first, second)
    poses = _random_pose(rng, aligned), _random_pose(rng, aligned)
    return Joint(name, kind, parent, child, *poses, axes, float(rng.uniform(-0.3, 0.3)), like)


# --- states ----------------------------------------------------------------------------------------------------------


def random_q(mechanism, rng):
    return np.concatenate([[], *(joint_q(j.motion, "random", rng) for j in mechanism.joints)])


def joint_q(motion, state, rng):
    """Coordinates of one joint in a named state: "random", "zero" (the frames coincide) or "half turn"."""
    size = SIZES[motion][0]
    angles = {"Prismatic": [], "Planar": [2], "Cylindrical": [0], "Universal": [0, 1], "Bryant": [0, 1, 2]}
    quaternion = {"Spherical": slice(0, 4), "Free": slice(3, 7)}.get(motion)
    q = np.zeros(size) if state == "zero" else rng.normal(size=size) * 0.5
    for i in angles.get(motion, [0] if size == 1 else []):
        q[i] = {"random": rng.uniform(-2, 2), "zero": 0.0, "half turn": np.pi}[state]
    if motion == "Bryant" and state != "zero":
        q[1] = rng.uniform(-1, 1)  # away from the singular 90 degrees
    if quaternion:
        q[quaternion] = {"random": _unit(rng, 4), "zero": np.eye(4)[0], "half turn": [0, *_unit(rng)]}[state]
    return q


def rates(mechanism, q, v):
    """dq/dt."""
    out = np.zeros(len(q))
    for j, sq, sv in mechanism.slices():
        if j.motion in ("Spherical", "Free"):
            turn = q[sq][-4:]
            out[sq][-4:] = 0.5 * quaternion_product(turn, np.array([0.0, *v[sv][:3]]))
            if j.motion == "Free":
                out[sq][:3] = rotation_matrix(turn) @ v[sv][3:]
        else:
            out[sq] = v[sv]
    return out


# --- jaxmbs ----------------------------------------------------------------------------------------------------------


def build(mechanism, name="random", events=()):
    """The jaxmbs model."""
    import jaxmbs as mbs

    mech = mbs.Mechanism(name, gravity=tuple(mechanism.gravity))
    for b in mechanism.bodies:
        off_diagonal = b.inertia - np.diag(np.diag(b.inertia))
        mech.add_body(b.name, b.mass, b.com, b.inertia if off_diagonal.any() else np.diag(b.inertia))
    for j in mechanism.joints:
        poses = [mbs.Pose(p.position, p.quaternion) for p in (j.parent_pose, j.child_pose)]
        mech.add_joint(j.name, joint(j), j.parent, j.child, *poses)
    for event in events:
        mech.add_event(*event)
    return mech.build()


def joint(j):
    """The jaxmbs joint of a description's joint."""
    import jaxmbs as mbs

    if j.kind == "General":
        return mbs.General(*general_functions(j), j.nv)
    arguments = (*j.axes, j.pitch) if j.kind == "Helical" else j.axes
    return getattr(mbs, j.kind)(*arguments)


def primitives(j):
    """The joint as a chain of hinges and slides, each carried by the one before: ("hinge" | "slide", axis)."""
    axis = j.axes[0] if j.axes else None
    return {
        "Revolute": lambda: [("hinge", axis)],
        "Prismatic": lambda: [("slide", axis)],
        "Cylindrical": lambda: [("hinge", axis), ("slide", axis)],
        "Helical": lambda: [("hinge", axis), ("slide", axis)],  # both driven by the one coordinate
        "Universal": lambda: [("hinge", j.axes[0]), ("hinge", j.axes[1])],
        "Planar": lambda: [("slide", X), ("slide", Y), ("hinge", Z)],
        "Bryant": lambda: [("hinge", X), ("hinge", Y), ("hinge", Z)],
    }[j.motion]()


def general_functions(j):
    """z(q, t) and G(q, t) of the joint, composed from its primitives in jax.numpy."""
    import jax.numpy as jnp

    chain = primitives(j)

    def coordinates(q):
        return [q[0], j.pitch * q[0]] if j.motion == "Helical" else q

    def turn(axis, angle):
        k = cross_matrix(axis)
        return jnp.eye(3) + jnp.sin(angle) * k + (1 - jnp.cos(angle)) * (k @ k)

    def z(q, t):
        position, rotation = jnp.zeros(3), jnp.eye(3)
        for (kind, axis), x in zip(chain, coordinates(q), strict=True):
            if kind == "slide":
                position = position + rotation @ axis * x
            else:
                rotation = rotation @ turn(axis, x)
        return position

    def G(q, t):
        rotation = jnp.eye(3)
        for (kind, axis), x in zip(chain, coordinates(q), strict=True):
            if kind == "hinge":
                rotation = rotation @ turn(axis, x)
        return rotation

    return z, G
