"""Springs, dampers and bushings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.pose import Pose
from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.spatial.scalar import Scalar, add, mul, safe_divide, sub, total

_HERE = Pose()


@dataclass(frozen=True)
class LinearSpring(Force):
    """Spring and damper along the line between two points.

    body_a, body_b: bodies or "world"; point_a, point_b: (3,) in body axes [m]; stiffness [N/m], rest_length [m],
    damping [N s/m]. At zero length the line has no direction: the force is zero there, and so is its derivative
    with respect to a rest length.
    """

    body_a: str
    body_b: str
    point_a: Any = (0.0, 0.0, 0.0)
    point_b: Any = (0.0, 0.0, 0.0)
    stiffness: Any = 0.0
    rest_length: Any = 0.0
    damping: Any = 0.0
    numbers: ClassVar[Mapping[str, str]] = {
        "point_a": "vector", "point_b": "vector", "stiffness": "positive", "rest_length": "positive",
        "damping": "positive",
    }  # fmt: skip
    bodies: ClassVar[tuple[str, ...]] = ("body_a", "body_b")

    def _line(self, p: Numbers, scene: Scene) -> tuple[Vector3, Scalar, Vector3, Scalar]:
        """Vector from a to b, its length, unit vector and rate of the length."""
        d = scene.point(self.body_b, p["point_b"]) - scene.point(self.body_a, p["point_a"])
        length = d.norm()
        unit = Vector3(*(safe_divide(c, length) for c in d))
        rate = unit @ (scene.velocity(self.body_b, p["point_b"]) - scene.velocity(self.body_a, p["point_a"]))
        return d, length, unit, rate

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        d, _, unit, rate = self._line(p, scene)
        # k d - k L0 unit: the part without rest length stays smooth at zero length
        pull = d * p["stiffness"] + unit * sub(mul(p["damping"], rate), mul(p["stiffness"], p["rest_length"]))
        loads.force(self.body_a, pull, p["point_a"])
        loads.force(self.body_b, -pull, p["point_b"])

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        stretch = sub(self._line(p, scene)[1], p["rest_length"])
        return mul(mul(0.5, p["stiffness"]), mul(stretch, stretch))

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        rate = self._line(p, scene)[3]
        return mul(mul(-1, p["damping"]), mul(rate, rate))


@dataclass(frozen=True)
class TorsionSpring(Force):
    """Spring and damper on the coordinate of a joint with one degree of freedom.

    stiffness [N m/rad] (N/m on a prismatic joint), damping [N m s/rad], rest_angle [rad].
    """

    joint: str
    stiffness: Any = 0.0
    damping: Any = 0.0
    rest_angle: Any = 0.0
    numbers: ClassVar[Mapping[str, str]] = {
        "stiffness": "positive", "damping": "positive", "rest_angle": "scalar"
    }  # fmt: skip
    joints: ClassVar[tuple[str, ...]] = ("joint",)

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        (q,), (v,) = scene.coordinates(self.joint), scene.rates(self.joint)
        elastic = mul(p["stiffness"], sub(p["rest_angle"], q))
        loads.joint(self.joint, [sub(elastic, mul(p["damping"], v))])

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        e = sub(scene.coordinates(self.joint)[0], p["rest_angle"])
        return mul(mul(0.5, p["stiffness"]), mul(e, e))

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        v = scene.rates(self.joint)[0]
        return mul(mul(-1, p["damping"]), mul(v, v))


@dataclass(frozen=True)
class Damper(Force):
    """Viscous damping of every degree of freedom of a joint: -damping v.

    damping [N m s/rad or N s/m], one number for all.
    """

    joint: str
    damping: Any = 0.0
    numbers: ClassVar[Mapping[str, str]] = {"damping": "positive"}
    joints: ClassVar[tuple[str, ...]] = ("joint",)

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        loads.joint(self.joint, [mul(mul(-1, p["damping"]), v) for v in scene.rates(self.joint)])

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        return mul(mul(-1, p["damping"]), total(*(mul(v, v) for v in scene.rates(self.joint))))


@dataclass(frozen=True)
class Bushing(Force):
    """Elastic connection of two frames, stiff in all six directions.

    pose_a, pose_b: the frames on the bodies; stiffness (3,) [N/m] and damping (3,) [N s/m] along the axes of
    frame a; rotational_stiffness (3,) [N m/rad] and rotational_damping (3,) [N m s/rad] about them. The rotational
    energy is sum c_i (1 - R_ii) with R from frame b to frame a and c_x = (k_y + k_z - k_x)/2: linear for small
    angles (-k sin(angle) about one axis), smooth at every orientation, exactly conservative.
    """

    body_a: str
    body_b: str
    pose_a: Any = _HERE
    pose_b: Any = _HERE
    stiffness: Any = (0.0, 0.0, 0.0)
    rotational_stiffness: Any = (0.0, 0.0, 0.0)
    damping: Any = (0.0, 0.0, 0.0)
    rotational_damping: Any = (0.0, 0.0, 0.0)
    numbers: ClassVar[Mapping[str, str]] = {
        "pose_a": "pose", "pose_b": "pose", "stiffness": "vector", "rotational_stiffness": "vector",
        "damping": "vector", "rotational_damping": "vector",
    }  # fmt: skip
    bodies: ClassVar[tuple[str, ...]] = ("body_a", "body_b")

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
        half = mul(0.5, total(k.x, k.y, k.z))
        return Vector3(sub(half, k.x), sub(half, k.y), sub(half, k.z))

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        _, R, d, _, _, _ = self._relative(p, scene)
        c = self._angular_coefficients(p)
        turn = total(mul(c.x, sub(1, R.xx)), mul(c.y, sub(1, R.yy)), mul(c.z, sub(1, R.zz)))
        return add(mul(0.5, d @ _scaled(p["stiffness"], d)), turn)

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        _, _, _, rate, spin, _ = self._relative(p, scene)
        lost = add(rate @ _scaled(p["damping"], rate), spin @ _scaled(p["rotational_damping"], spin))
        return mul(-1, lost)


def _scaled(k: Vector3, v: Vector3) -> Vector3:
    return Vector3(mul(k.x, v.x), mul(k.y, v.y), mul(k.z, v.z))
