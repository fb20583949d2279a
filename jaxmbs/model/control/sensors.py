"""Sensors: what a controller reads when it samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

import jax.numpy as jnp
import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import Element, declared, element, field, state
from jaxmbs.model.given import Number, Vector
from jaxmbs.spatial import Matrix3, Vector3, to_quaternion, unit_quaternion
from jaxmbs.spatial.scalar import Scalar

Numbers = Mapping[str, Any]
_RATES = ("rate", "sample_rate", "sampling_rate", "frequency", "sampling_frequency", "hz")


class SensedInstant(Protocol):
    """The motion at one instant as a sensor sees it, in world axes."""

    t: Scalar
    normal: Sequence[Scalar]  # independent standard normal numbers for the noise of the sensor, `draws` of them

    def coordinates(self, joint: str) -> Sequence[Scalar]: ...

    def rates(self, joint: str) -> Sequence[Scalar]: ...

    def point(self, body: str, local: Vector3) -> Vector3: ...

    def rotation(self, body: str) -> Matrix3:
        """Rotation from body to world axes."""
        ...

    def angular(self, body: str) -> Vector3:
        """Angular velocity [rad/s]."""
        ...

    def specific_force(self, body: str, local: Vector3) -> Vector3:
        """Acceleration of a point [m/s²] minus that of gravity: the uniform one, and those of planets and other elements
        that have `gravitation`."""
        ...


@element
class Held(Element):
    """The last reading of a sensor with a period."""

    reading: Vector = state("", "the last measurement, held until the next one", kind=Kind.LIST)


HELD = declared(Held)[0]


def seconds(given: Any, what: str) -> float:
    """A period as a float. Raises ModelError if it is not a positive number of seconds."""
    number = isinstance(given, (int, float, np.number)) and not isinstance(given, bool)
    if not number or not np.isfinite(given) or given <= 0:
        raise ModelError(f"{what} is {given!r}; pass a positive number of seconds")
    return float(given)


def instead_of_rate(name: str, value: Any) -> str | None:
    """What to pass instead of a sampling rate [Hz], if `name`, which is no field, means one; otherwise None."""
    if name.lower() not in _RATES:
        return None
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and 0 < value < np.inf
    return f"give the seconds from one sample to the next, period = {f'{1 / value:g}' if number else '0.01'}"


def refuse_rate(cls: type, given: Mapping[str, Any]) -> None:
    """Raise ModelError if a sampling rate is given to a class that has a period."""
    for name in given.keys() - {d.name for d in declared(cls)}:
        if instead := instead_of_rate(name, given[name]):
            raise ModelError(f"{cls.__name__}: there is no {name}; {instead}")


@element
class Sensor(Element):
    """Base of the sensors. A sensor declares its fields and defines `reading`.

    With a period, it measures at offset, offset + period, ... and holds the reading in the state "<name>.reading", which is
    zero before the first. A controller that samples at the same instant reads the new one.
    """

    draws: ClassVar[int] = 0  # normal numbers that a reading needs if one of the fields in `noises` is not zero
    noises: ClassVar[tuple[str, ...]] = ()
    period: float | None = field(
        Kind.PERIOD,
        "s",
        "time between its measurements; by default it measures whenever a controller samples",
        default=None,
        kw_only=True,
    )
    offset: Number = field(
        Kind.NUMBER, "s", "time of its first measurement, if it has a period", default=0.0, kw_only=True
    )

    def __new__(cls, *_: Any, **given: Any) -> Self:
        refuse_rate(cls, given)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        if self.period is not None:
            object.__setattr__(self, "period", seconds(self.period, f"{type(self).__name__}: period"))

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        return {} if self.period is not None else {"an offset needs a period, which the sensor lacks": p["offset"] == 0}

    def width(self, joints: Mapping[str, Any]) -> int:
        """How many numbers a reading has, which a sensor with a period must tell; joints: those of the mechanism by name, a
        releasable one as it was given."""
        raise ModelError(f"{type(self).__name__}: a sensor with a period needs a method width(joints)")

    def reading(self, p: Numbers, now: SensedInstant) -> Any:
        """The reading as an array."""
        raise NotImplementedError


@element
class Imu(Sensor):
    """Gyroscope and accelerometer in one place: (6,), the angular velocity [rad/s] and the specific force [m/s²] at a
    point of a body, in body axes, each multiplied by a scale factor, plus a bias and normal noise, and limited. The noise
    of two samples is independent; it comes from the key that is passed to `simulate`.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_sensor("imu", mbs.Imu("lower", point=(0.0, 0.0, -1.0), bias=(0.0, 1e-4, 0.0)))
    >>> mbs.get(mech.build(), "imu.bias").tolist()
    [0.0, 0.0001, 0.0]
    """

    draws: ClassVar[int] = 6
    noises: ClassVar[tuple[str, ...]] = ("noise", "force_noise")
    body: str = field(Kind.BODY, "", "body that carries it")
    point: Vector = field(Kind.VECTOR, "m", "where it is, in body axes", default=(0.0, 0.0, 0.0))
    scale: Vector = field(Kind.VECTOR, "", "factor of the angular velocity, by axis", default=(1.0, 1.0, 1.0))
    bias: Vector = field(Kind.VECTOR, "rad/s", "of the angular velocity", default=(0.0, 0.0, 0.0))
    force_scale: Vector = field(Kind.VECTOR, "", "factor of the specific force, by axis", default=(1.0, 1.0, 1.0))
    force_bias: Vector = field(Kind.VECTOR, "m/s2", "of the specific force", default=(0.0, 0.0, 0.0))
    noise: Vector = field(
        Kind.NOT_NEGATIVE_VECTOR, "rad/s", "standard deviation of the angular velocity", default=(0.0, 0.0, 0.0)
    )
    force_noise: Vector = field(
        Kind.NOT_NEGATIVE_VECTOR, "m/s2", "standard deviation of the specific force", default=(0.0, 0.0, 0.0)
    )
    limit: Number = field(Kind.POSITIVE, "rad/s", "largest angular velocity that it shows", default=1e9)
    force_limit: Number = field(Kind.POSITIVE, "m/s2", "largest specific force that it shows", default=1e9)

    def width(self, joints: Mapping[str, Any]) -> int:
        return 6

    def reading(self, p: Numbers, now: SensedInstant) -> Any:
        R = now.rotation(self.body).T
        turning, force = R @ now.angular(self.body), R @ now.specific_force(self.body, p["point"])
        noise = [s * z for s, z in zip((*p["noise"], *p["force_noise"]), now.normal, strict=True)]
        first = _shown(turning, p["scale"], p["bias"], noise[:3], p["limit"])
        return jnp.stack([*first, *_shown(force, p["force_scale"], p["force_bias"], noise[3:], p["force_limit"])])


@element
class StarTracker(Sensor):
    """The attitude of a body as a quaternion w, x, y, z (4,), from body to world axes. The measured axes are those of the
    body, turned about these axes by the bias plus normal noise, both as small rotation vectors. The quaternion may have
    either sign.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_sensor("tracker", mbs.StarTracker("lower", noise=(1e-5, 1e-5, 1e-4)))
    >>> mbs.get(mech.build(), "tracker.noise").tolist()
    [1e-05, 1e-05, 0.0001]
    """

    draws: ClassVar[int] = 3
    noises: ClassVar[tuple[str, ...]] = ("noise",)
    body: str = field(Kind.BODY, "", "body whose attitude it measures")
    bias: Vector = field(Kind.VECTOR, "rad", "misalignment of the sensor", default=(0.0, 0.0, 0.0))
    noise: Vector = field(
        Kind.NOT_NEGATIVE_VECTOR, "rad", "standard deviation about each axis", default=(0.0, 0.0, 0.0)
    )

    def width(self, joints: Mapping[str, Any]) -> int:
        return 4

    def reading(self, p: Numbers, now: SensedInstant) -> Any:
        w, x, y, z = to_quaternion(now.rotation(self.body))
        a, b, c = (0.5 * (e + s * n) for e, s, n in zip(p["bias"], p["noise"], now.normal, strict=True))
        turned = (
            w - x * a - y * b - z * c,
            x + w * a + y * c - z * b,
            y + w * b + z * a - x * c,
            z + w * c + x * b - y * a,
        )
        return jnp.stack([jnp.asarray(e) for e in unit_quaternion(turned)])


@element
class Encoder(Sensor):
    """The coordinates of a joint, with a bias added and then rounded to a resolution if one is given, followed by its rates.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_sensor("encoder", mbs.Encoder("elbow", resolution=2 * np.pi / 4096))
    >>> mech.build().sensor_names
    ('encoder',)
    """

    joint: str = field(Kind.JOINT, "", "joint that it measures")
    bias: Number = field(Kind.NUMBER, "rad or m", "added to every coordinate", default=0.0)
    resolution: Number = field(Kind.NOT_NEGATIVE, "rad or m", "step of the coordinates; 0 for none", default=0.0)

    def width(self, joints: Mapping[str, Any]) -> int:
        return joints[self.joint].nq + joints[self.joint].nv

    def reading(self, p: Numbers, now: SensedInstant) -> Any:
        step = jnp.asarray(p["resolution"])
        some = jnp.where(step > 0, step, 1.0)
        places = (x + p["bias"] for x in now.coordinates(self.joint))
        shown = [jnp.where(step > 0, some * jnp.round(x / some), x) for x in places]
        return jnp.stack([*shown, *(jnp.asarray(v) for v in now.rates(self.joint))])


@element
class Switch(Sensor):
    """(1,): 1 where a joint's first coordinate is beyond a threshold, otherwise 0.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_sensor("end", mbs.Switch("elbow", threshold=0.5))
    >>> mbs.get(mech.build(), "end.threshold")
    0.5
    """

    joint: str = field(Kind.JOINT, "", "joint that it watches")
    threshold: Number = field(Kind.NUMBER, "rad or m", "coordinate beyond which it is closed", default=0.0)

    def width(self, joints: Mapping[str, Any]) -> int:
        return 1

    def reading(self, p: Numbers, now: SensedInstant) -> Any:
        first = jnp.asarray(now.coordinates(self.joint)[0])
        return jnp.where(first > p["threshold"], 1.0, 0.0).astype(first.dtype)[None]


def _shown(x: Vector3, scale: Vector3, bias: Vector3, noise: Sequence[Scalar], limit: Scalar) -> list[Any]:
    found = (a * k + b + n for a, k, b, n in zip(x, scale, bias, noise, strict=True))
    most = jnp.asarray(limit)
    return [jnp.clip(jnp.asarray(y), -most, most) for y in found]
