"""Random URDF files, and Pinocchio's reading of them in the coordinates of a model."""

import re

import numpy as np
import pinocchio as pin

ARM = """<robot name="arm"><link name="base"/>
<link name="upper"><inertial><origin xyz="0.1 0 -0.2" rpy="0.3 0 0"/><mass value="2"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.15"/></inertial></link>
<link name="lower"><inertial><origin xyz="0 0 -0.3"/><mass value="1.5"/>
<inertia ixx="0.05" ixy="0" ixz="0" iyy="0.06" iyz="0" izz="0.02"/></inertial></link>
<joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/><origin xyz="0 0 1"/><axis xyz="0 1 0"/>
<dynamics damping="0.3"/></joint>
<joint name="slide" type="prismatic"><parent link="upper"/><child link="lower"/><origin xyz="0 0.1 -0.5" rpy="0 0.4 0"/>
<axis xyz="0 0 1"/><limit lower="0" upper="1" effort="1" velocity="1"/></joint></robot>"""

MOVING = ("revolute", "continuous", "prismatic", "floating", "planar")


def random_urdf(seed, n=6, kinds=(*MOVING, "fixed"), damping=False):
    """A tree of n links under a root; text."""
    rng = np.random.default_rng(seed)
    parts = ['<robot name="random">', "<link name='base'/>"]
    for k in range(1, n + 1):
        numbers, mass = rng.normal(size=(3, 3)), rng.uniform(0.2, 2.0)
        I = numbers @ numbers.T
        I = np.trace(I) * np.eye(3) - I  # of points: physical
        parts.append(
            f'<link name="link_{k}"><inertial>{_origin(rng)}<mass value="{mass}"/><inertia ixx="{I[0, 0]}" iyy="{I[1, 1]}" '
            f'izz="{I[2, 2]}" ixy="{I[0, 1]}" ixz="{I[0, 2]}" iyz="{I[1, 2]}"/></inertial></link>'
        )
        kind = str(rng.choice(kinds))
        parent = "base" if k == 1 else rng.choice(["base", *(f"link_{i}" for i in range(1, k))])
        more = '<limit lower="-1" upper="1" effort="1" velocity="1"/>' if kind in ("revolute", "prismatic") else ""
        more += f'<dynamics damping="{rng.uniform(0.1, 1.0)}"/>' if damping and kind != "fixed" else ""
        x, y, z = rng.normal(size=3) if kind != "planar" else (0, 0, 1)  # Pinocchio's planar joint has no other normal
        parts.append(
            f'<joint name="joint_{k}" type="{kind}">{_origin(rng)}<parent link="{parent}"/><child link="link_{k}"/>'
            f'<axis xyz="{x} {y} {z}"/>{more}</joint>'
        )
    return "".join([*parts, "</robot>"])


def _origin(rng):
    xyz, rpy = rng.normal(size=3), rng.uniform(-3, 3, size=3) * rng.integers(0, 2)
    return '<origin xyz="{} {} {}" rpy="{} {} {}"/>'.format(*xyz, *rpy)


class Read:
    """Pinocchio's reading of a URDF, in the coordinates of a model that has the same joints."""

    def __init__(self, text, model, root=None):
        self.pin = pin.buildModelFromXML(text) if root is None else pin.buildModelFromXML(text, root)
        self.data, self.model = self.pin.createData(), model
        plain = (re.sub(r"[^A-Za-z0-9_\-]", "_", name) for name in self.pin.names)  # as the model has them
        self.joints = list(zip(plain, self.pin.joints, strict=True))[1:]

    def convert(self, q):
        """Pinocchio's (q, indices of v) at the model's q."""
        out, order = pin.neutral(self.pin), np.zeros(self.pin.nv, int)
        for name, joint in self.joints:
            own, at = np.asarray(q[self.model.q_slice(name)], float), slice(joint.idx_q, joint.idx_q + joint.nq)
            speeds = np.arange(joint.nv)
            if joint.nq == 2:
                own = np.array([np.cos(own[0]), np.sin(own[0])])
            elif joint.nq == 4:  # planar: x, y, cosine and sine
                own = np.array([own[0], own[1], np.cos(own[2]), np.sin(own[2])])
            elif joint.nq == 7:
                own, speeds = np.array([*own[:3], *own[4:], own[3]]), np.array([3, 4, 5, 0, 1, 2])
            out[at] = own
            order[joint.idx_v : joint.idx_v + joint.nv] = self.model.v_slice(name).start + speeds
        return pin.normalize(self.pin, out), order

    def rates(self, q, order, v):
        """Pinocchio's v: that of planar joints is in the child's axes."""
        own = np.asarray(v, float)[order]
        for name, joint in self.joints:
            if joint.nq == 4 and joint.nv == 3:
                own[joint.idx_v : joint.idx_v + 2] = (
                    self._turn(q[self.model.q_slice(name)][2]).T @ own[joint.idx_v : joint.idx_v + 2]
                )
        return own

    def _turn(self, angle):
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[c, -s], [s, c]])

    def E(self, q):
        """Pinocchio's v from the model's: (nv, nv)."""
        _, order = self.convert(q)
        return np.stack([self.rates(q, order, x) for x in np.eye(self.pin.nv)], axis=1)

    def drift(self, q, v):
        """Of Pinocchio's accelerations where the model's are zero: planar axes turn."""
        out = np.zeros(self.pin.nv)
        for name, joint in self.joints:
            if joint.nq == 4 and joint.nv == 3:
                x, y, turn = np.asarray(v, float)[self.model.v_slice(name)]
                angle = q[self.model.q_slice(name)][2]
                c, s = np.cos(angle), np.sin(angle)
                out[joint.idx_v : joint.idx_v + 2] = turn * np.array([[-s, c], [-c, -s]]) @ [x, y]
        return out

    def mass_matrix(self, q):
        upper = np.triu(pin.crba(self.pin, self.data, self.convert(q)[0]))
        E = self.E(q)
        return E.T @ (upper + np.triu(upper, 1).T) @ E

    def inverse_dynamics(self, q, v, a):
        E = self.E(q)
        return E.T @ pin.rnea(self.pin, self.data, self.convert(q)[0], E @ v, E @ a + self.drift(q, v))

    def forward_dynamics(self, q, v, tau):
        E = self.E(q)
        a = pin.aba(self.pin, self.data, self.convert(q)[0], E @ v, np.linalg.solve(E.T, tau))
        return np.linalg.solve(E, a - self.drift(q, v))
