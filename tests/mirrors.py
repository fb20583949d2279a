"""The same mechanism in Pinocchio and in MuJoCo: independent values for everything jaxmbs computes.

Both mirrors speak jaxmbs's conventions: coordinates in the order of `mechanism.joints` (which the caller orders as in
the model), quaternions w, x, y, z, spatial vectors (angular, linear). Inside, a mirror has its own coordinates; with
velocities v_mirror = E(q) v, accelerations a_mirror = E a + e(q, v), generalized forces are tau = E' tau_mirror.
"""

import mujoco
import numpy as np
import pinocchio as pin

from tests.mechanisms import X, Y, Z, primitives, quaternion_product, rotation_matrix


class Pinocchio:
    """Coordinates differ from jaxmbs's by a permutation only.

    Joints are added depth-first: in another order Pinocchio's crba and its derivatives are silently wrong.
    """

    def __init__(self, mechanism):
        self.mechanism = mechanism
        self.model = pin.Model()
        self.model.gravity.linear = np.asarray(mechanism.gravity)
        self.joint_of, self.placement = {"world": 0}, {"world": pin.SE3.Identity()}  # of each body
        self.last = {}  # Pinocchio's joint whose frame is the child joint frame
        self._place_children("world")
        self.data = self.model.createData()
        self._index_q, self._index_v = self._permutations()

    def _place_children(self, parent):
        bodies = {b.name: b for b in self.mechanism.bodies}
        for j in self.mechanism.joints:
            if j.parent != parent:
                continue
            frame = self.joint_of[parent]
            placement = self.placement[parent] * _se3(j.parent_pose)
            for i, (kind, *parameters) in enumerate(_pinocchio_chain(j)):
                joint = getattr(pin, "JointModel" + kind)(*parameters)
                frame = self.model.addJoint(frame, joint, placement, f"{j.name}.{i}")
                placement = pin.SE3.Identity()
            b = bodies[j.child]
            self.last[j.name], self.joint_of[b.name] = frame, frame
            self.placement[b.name] = placement * _se3(j.child_pose).inverse()
            self.model.appendBodyToJoint(frame, pin.Inertia(b.mass, b.com, b.inertia), self.placement[b.name])
            self._place_children(b.name)

    def _permutations(self):
        """Positions of Pinocchio's coordinates in jaxmbs's q and v."""
        index_q, index_v = np.zeros(self.model.nq, int), np.zeros(self.model.nv, int)
        for j, sq, sv in self.mechanism.slices():
            chain = [i for i, name in enumerate(self.model.names) if name.split(".")[0] == j.name]
            from_q, from_v = np.arange(sq.start, sq.stop), np.arange(sv.start, sv.stop)
            if j.motion == "Spherical":
                from_q = from_q[[1, 2, 3, 0]]
            if j.motion == "Free":
                from_q, from_v = from_q[[0, 1, 2, 4, 5, 6, 3]], from_v[[3, 4, 5, 0, 1, 2]]
            for i in chain:
                k, nq, nv = self.model.joints[i], self.model.nqs[i], self.model.nvs[i]
                index_q[k.idx_q : k.idx_q + nq], from_q = from_q[:nq], from_q[nq:]
                index_v[k.idx_v : k.idx_v + nv], from_v = from_v[:nv], from_v[nv:]
        return index_q, index_v

    def _q(self, q):
        q = np.asarray(q, float)[self._index_q]
        return pin.normalize(self.model, q) if len(q) else q

    def _v(self, v):
        return np.asarray(v, float)[self._index_v]

    def _back(self, x):
        out = np.zeros_like(x)
        out[self._index_v] = x
        return out

    def mass_matrix(self, q):
        upper = np.triu(pin.crba(self.model, self.data, self._q(q)))
        full = upper + np.triu(upper, 1).T
        out = np.zeros_like(full)
        out[np.ix_(self._index_v, self._index_v)] = full
        return out

    def inverse_dynamics(self, q, v, a):
        return self._back(pin.rnea(self.model, self.data, self._q(q), self._v(v), self._v(a)))

    def bias_forces(self, q, v):
        return self._back(pin.nonLinearEffects(self.model, self.data, self._q(q), self._v(v)))

    def forward_dynamics(self, q, v, tau):
        return self._back(pin.aba(self.model, self.data, self._q(q), self._v(v), self._v(tau)))

    def body_poses(self, q):
        """Body name -> (position, rotation)."""
        pin.forwardKinematics(self.model, self.data, self._q(q))
        poses = {n: self.data.oMi[i] * self.placement[n] for n, i in self.joint_of.items()}
        return {n: (m.translation.copy(), m.rotation.copy()) for n, m in poses.items()}

    def jacobian(self, q, body, point):
        """(6, nv), (angular, linear) of the point, world axes."""
        at = self.placement[body] * pin.SE3(np.eye(3), np.asarray(point, float))
        frame = pin.Frame("probe", self.joint_of[body], at, pin.FrameType.OP_FRAME)
        model = self.model.copy()
        i = model.addFrame(frame)
        j = pin.computeFrameJacobian(model, model.createData(), self._q(q), i, pin.LOCAL_WORLD_ALIGNED)
        out = np.zeros((6, len(self._index_v)))
        out[:, self._index_v] = np.reshape(j, (6, -1))  # one column comes as a vector
        return np.concatenate([out[3:], out[:3]])

    def accelerations(self, body, q, v, a):
        """a of the first joint, and the rates of the velocity components (angular, linear) of a body in its axes."""
        pin.forwardKinematics(self.model, self.data, self._q(q), self._v(v), self._v(a))
        A = self.placement[body].actInv(self.data.a[self.joint_of[body]])
        return np.concatenate([a[:1], A.angular, A.linear])

    def energy(self, q, v):
        """(kinetic, potential)."""
        q, v = self._q(q), self._v(v)
        fixed = self.model.inertias[0]  # bodies fixed to the world: Pinocchio leaves them out
        potential = pin.computePotentialEnergy(self.model, self.data, q)
        potential -= fixed.mass * self.mechanism.gravity @ fixed.lever
        return pin.computeKineticEnergy(self.model, self.data, q, v), potential

    def momentum(self, q, v):
        """Angular about the centre of mass of all bodies, linear."""
        h = pin.computeCentroidalMomentum(self.model, self.data, self._q(q), self._v(v))
        moving, fixed = sum(i.mass for i in self.model.inertias[1:]), self.model.inertias[0]
        shift = (fixed.lever - self.data.com[0]) * fixed.mass / (moving + fixed.mass)
        return h.angular - np.cross(shift, h.linear), h.linear.copy()

    def joint_reactions(self, q, v, a):
        """Joint name -> total wrench (moment, force) on the child at the child joint frame; joints that move only."""
        pin.rnea(self.model, self.data, self._q(q), self._v(v), self._v(a))
        forces = {j.name: self.data.f[self.last[j.name]] for j in self.mechanism.joints if j.nv}
        return {n: np.concatenate([f.angular, f.linear]) for n, f in forces.items()}


def _se3(pose):
    return pin.SE3(pose.rotation, np.asarray(pose.position, float))


def _pinocchio_chain(j):
    if j.motion == "Helical":
        return [("HelicalUnaligned", *j.axes[0], j.pitch)]
    named = {"Fixed": [], "Spherical": [("Spherical",)], "Free": [("FreeFlyer",)]}
    kinds = {"hinge": "RevoluteUnaligned", "slide": "PrismaticUnaligned"}
    return named[j.motion] if j.motion in named else [(kinds[k], *axis) for k, axis in primitives(j)]


class MuJoCo:
    """Every joint is a chain of slides, hinges and balls inside its child body.

    A screw is a slide and a hinge driven together; a free body slides along the axes of its parent and then turns.
    MuJoCo refuses bodies without mass: massless ones get 1e-14 kg.
    """

    def __init__(self, mechanism):
        self.mechanism = mechanism
        spec = mujoco.MjSpec()
        spec.option.gravity = mechanism.gravity
        spec.option.enableflags = mujoco.mjtEnableBit.mjENBL_ENERGY
        self._add_children(spec.worldbody, "world")
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        joints = [mujoco.mj_id2name(self.model, mujoco.mjtObj.mjOBJ_JOINT, i) for i in range(self.model.njnt)]
        self._chain = {j.name: [i for i, n in enumerate(joints) if n.split(".")[0] == j.name] for j in mechanism.joints}

    def _add_children(self, parent, name):
        bodies = {b.name: b for b in self.mechanism.bodies}
        for j in self.mechanism.joints:
            if j.parent != name:
                continue
            p, c, b = j.parent_pose, j.child_pose, bodies[j.child]
            rotation = p.rotation @ c.rotation.T
            principal, axes = np.linalg.eigh(b.inertia)
            axes[:, 0] *= np.linalg.det(axes)
            node = parent.add_body(
                name=b.name,
                pos=p.position - rotation @ c.position,
                quat=quaternion_product(p.quaternion, c.quaternion * [1, -1, -1, -1]),
                explicitinertial=True,
                mass=b.mass or 1e-14,
                ipos=b.com,
                inertia=principal if b.mass else np.full(3, 1e-14),
                iquat=_quaternion(axes),
            )
            for i, (kind, axis) in enumerate(_mujoco_chain(j)):
                kind = getattr(mujoco.mjtJoint, "mjJNT_" + kind.upper())
                node.add_joint(name=f"{j.name}.{i}", type=kind, pos=c.position, axis=c.rotation @ axis)
            self._add_children(node, b.name)

    def _coordinates(self, q, v=None):
        """MuJoCo's q, the matrix E and the vector e."""
        m, mech = self.model, self.mechanism
        v = np.zeros(mech.nv) if v is None else np.asarray(v, float)
        q_own, E, e = np.zeros(m.nq), np.zeros((m.nv, mech.nv)), np.zeros(m.nv)
        for j, sq, sv in mech.slices():
            if not j.nv:
                continue
            first = self._chain[j.name][0]
            iq, iv = m.jnt_qposadr[first], m.jnt_dofadr[first]
            x, turn = np.asarray(q[sq], float), j.child_pose.rotation
            if j.motion == "Helical":
                q_own[iq : iq + 2] = x[0], j.pitch * x[0]
                E[iv : iv + 2, sv] = [[1.0], [j.pitch]]
            elif j.motion in ("Spherical", "Free"):
                if j.motion == "Free":
                    rotation = rotation_matrix(x[3:])
                    q_own[iq : iq + 3] = x[:3]
                    E[iv : iv + 3, sv.start + 3 : sv.stop] = rotation
                    e[iv : iv + 3] = rotation @ np.cross(v[sv][:3], v[sv][3:])
                    iq, iv = iq + 3, iv + 3
                q_own[iq] = x[-4] / np.linalg.norm(x[-4:])
                q_own[iq + 1 : iq + 4] = turn @ x[-3:] / np.linalg.norm(x[-4:])
                E[iv : iv + 3, sv.start : sv.start + 3] = turn
            else:
                q_own[iq : iq + j.nq] = x
                E[iv : iv + j.nv, sv] = np.eye(j.nv)
        return q_own, E, e

    def _set(self, q, v=None, a=None, tau=None):
        q_own, E, e = self._coordinates(q, v)
        d = self.data
        d.qpos[:], d.qvel[:] = q_own, 0 if v is None else E @ np.asarray(v, float)
        d.qacc[:] = 0 if a is None else E @ np.asarray(a, float) + e
        d.qfrc_applied[:] = 0 if tau is None else np.linalg.lstsq(E.T, np.asarray(tau, float))[0]
        return d, E, e

    def mass_matrix(self, q):
        d, E, _ = self._set(q)
        mujoco.mj_forward(self.model, d)
        full = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, d, full)
        return E.T @ full @ E

    def inverse_dynamics(self, q, v, a):
        d, E, _ = self._set(q, v, a)
        mujoco.mj_inverse(self.model, d)
        return E.T @ d.qfrc_inverse

    def bias_forces(self, q, v):
        return self.inverse_dynamics(q, v, np.zeros(self.mechanism.nv))

    def forward_dynamics(self, q, v, tau):
        """Screws are not free to slip: only mechanisms without Helical joints."""
        d, E, e = self._set(q, v, tau=tau)
        mujoco.mj_forward(self.model, d)
        return np.linalg.lstsq(E, d.qacc - e)[0]

    def body_poses(self, q):
        d, _, _ = self._set(q)
        mujoco.mj_kinematics(self.model, d)
        found = {b.name: d.body(b.name) for b in self.mechanism.bodies}
        return {n: (b.xpos.copy(), b.xmat.reshape(3, 3).copy()) for n, b in found.items()}

    def energy(self, q, v):
        d, _, _ = self._set(q, v)
        mujoco.mj_forward(self.model, d)
        return d.energy[1], d.energy[0]


def _quaternion(rotation):
    q = np.zeros(4)
    mujoco.mju_mat2Quat(q, np.ascontiguousarray(rotation).ravel())
    return q


def _mujoco_chain(j):
    slides = [("slide", X), ("slide", Y), ("slide", Z)]
    named = {"Fixed": [], "Spherical": [("ball", X)], "Free": [*slides, ("ball", X)]}
    return named[j.motion] if j.motion in named else primitives(j)
