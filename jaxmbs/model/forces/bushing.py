"""Elastic connection of two frames."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Vector
from jaxmbs.model.pose import Pose
from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.spatial.scalar import Scalar, total

_HERE, _NONE = Pose(), (0.0, 0.0, 0.0)


@element
class Bushing(Force):
    """Elastic connection of two frames, stiff in all six directions.

    The rotational energy is sum c_i (1 - R_ii) with R from frame b to frame a and c_x = (k_y + k_z - k_x)/2. The torque
    is linear for small angles (-k sin(angle) about one axis), smooth at every orientation and exactly conservative.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("mount", mbs.Bushing("upper", "lower", rotational_stiffness=(5.0, 2.0, 5.0)))
    >>> mbs.get(mech.build(), "mount.rotational_stiffness")
    array([5., 2., 5.])
    """

    pairwise: ClassVar[bool] = True
    body_a: str = field(Kind.BODY_OR_WORLD, "", "body of frame a")
    body_b: str = field(Kind.BODY_OR_WORLD, "", "body of frame b")
    pose_a: Pose = field(Kind.PART, "", "frame a on body_a", default=_HERE, of=Pose)
    pose_b: Pose = field(Kind.PART, "", "frame b on body_b", default=_HERE, of=Pose)
    stiffness: Vector = field(Kind.NOT_NEGATIVE_VECTOR, "N/m", "along the axes of frame a", default=_NONE)
    rotational_stiffness: Vector = field(
        Kind.NOT_NEGATIVE_VECTOR, "N m/rad", "about the axes of frame a", default=_NONE
    )
    damping: Vector = field(Kind.NOT_NEGATIVE_VECTOR, "N s/m", "along the axes of frame a", default=_NONE)
    rotational_damping: Vector = field(
        Kind.NOT_NEGATIVE_VECTOR, "N m s/rad", "about the axes of frame a", default=_NONE
    )

    def _relative(self, p: Numbers, scene: Scene) -> tuple[Matrix3, Matrix3, Vector3, Vector3, Vector3, Vector3]:
        """R_WA, R_AB, deflection, its rate, relative angular velocity (axes of A), point of B on body a."""
        R_A = scene.rotation(self.body_a) @ p["pose_a.rotation"]
        R_B = scene.rotation(self.body_b) @ p["pose_b.rotation"]
        x_B = scene.point(self.body_b, p["pose_b.position"])
        on_a = scene.local_point(self.body_a, x_B)
        deflection = R_A.T @ (x_B - scene.point(self.body_a, p["pose_a.position"]))
        rate = scene.velocity(self.body_b, p["pose_b.position"]) - scene.velocity(self.body_a, on_a)
        spin = scene.angular(self.body_b) - scene.angular(self.body_a)
        return R_A, R_A.T @ R_B, deflection, R_A.T @ rate, R_A.T @ spin, on_a

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        R_A, R_AB, d, rate, spin, on_a = self._relative(p, scene)
        pull = R_A @ (_scaled(p["stiffness"], d) + _scaled(p["damping"], rate))
        x, y, z = R_AB.T.rows()
        c = self._angular_coefficients(p)
        ex, ey, ez = Vector3(1, 0, 0), Vector3(0, 1, 0), Vector3(0, 0, 1)
        elastic = x.cross(ex) * c.x + y.cross(ey) * c.y + z.cross(ez) * c.z
        moment = R_A @ (elastic - _scaled(p["rotational_damping"], spin))
        loads.force(self.body_a, pull, on_a)
        loads.force(self.body_b, -pull, p["pose_b.position"])
        loads.moment(self.body_a, -moment)
        loads.moment(self.body_b, moment)

    def _angular_coefficients(self, p: Numbers) -> Vector3:
        k = p["rotational_stiffness"]
        half = 0.5 * total(k.x, k.y, k.z)
        return Vector3(half - k.x, half - k.y, half - k.z)

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        _, R, d, _, _, _ = self._relative(p, scene)
        c = self._angular_coefficients(p)
        turn = total(c.x * (1 - R.xx), c.y * (1 - R.yy), c.z * (1 - R.zz))
        return 0.5 * (d @ _scaled(p["stiffness"], d)) + turn

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        _, _, _, rate, spin, _ = self._relative(p, scene)
        lost = rate @ _scaled(p["damping"], rate) + spin @ _scaled(p["rotational_damping"], spin)
        return -lost


def _scaled(k: Vector3, v: Vector3) -> Vector3:
    return Vector3(k.x * v.x, k.y * v.y, k.z * v.z)
