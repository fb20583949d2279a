"""Motions as messages of the Consultative Committee for Space Data Systems (CCSDS), for programs of flight dynamics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jax
import numpy as np

from jaxmbs.dynamics import body_poses, body_velocities
from jaxmbs.errors import ModelError
from jaxmbs.model import Model, get
from jaxmbs.model.given import Vector
from jaxmbs.simulate import Solution, Status

TIME_SYSTEMS = ("UTC", "TAI", "TT", "TDB", "GPS")
_TEXT = re.compile(r"[ -~]+")  # what a value may consist of


def save_ephemeris(
    model: Model,
    solution: Solution,
    body: str,
    path: str | Path,
    *,
    epoch: datetime,
    identifier: str = "UNKNOWN",
    frame: str = "EME2000",
    center: str = "EARTH",
    time_system: str = "UTC",
    point: Vector | None = None,
) -> Path:
    """Write the motion of a body as a message of CCSDS in text form, and return its path; the suffix decides: .oem, an orbit
    ephemeris message (502.0-B, version 2.0: positions [km] and velocities [km/s]), or .aem, an attitude ephemeris message
    (504.0-B, version 1.0: quaternions from `frame` to the body's axes, the scalar last).

    solution: of one instance, from `simulate`; every row of it becomes a line. body: its name, which is the object's name.
    epoch: date and time at t = 0, with a time zone for UTC, without one for the others; identifier: international
    designator of the object; frame: what the axes of the world are; center: what its origin is; time_system: UTC (without
    a leap second during the motion), TAI, TT, TDB or GPS; point: the point whose positions are written, in the body's
    frame; the centre of mass by default.

    Raises ModelError for an unknown body, suffix or time system, a batch, a motion that did not succeed, and texts that
    such a message cannot hold.

    >>> import tempfile
    >>> from datetime import datetime, UTC
    >>> mech = mbs.Mechanism("orbit")
    >>> mech.add_point_mass("cubesat", 4.0)
    >>> mech.set_environment(planet=mbs.Earth(rotation=False))
    >>> run = mbs.simulate(mech.build(), [6.9e6, 0.0, 0.0], [0.0, 7.6e3, 0.0], 60.0, dt=10.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = mbs.save_ephemeris(
    ...         mech.build(), run, "cubesat", f"{folder}/cubesat.oem", epoch=datetime(2026, 3, 1, tzinfo=UTC)
    ...     )
    ...     print(path.read_text(encoding="utf-8").splitlines()[-2][:41])
    2026-03-01T00:00:50.000000000 6889.522868
    """
    path, where = Path(path), f"save_ephemeris {Path(path).name!r}"
    model.structure.find_body(body)
    if path.suffix not in WRITERS:
        raise ModelError(f"{where}: the suffix must be {' or '.join(WRITERS)}")
    if time_system not in TIME_SYSTEMS:
        raise ModelError(f"{where}: time_system is {time_system!r}; choose from {', '.join(TIME_SYSTEMS)}")
    t, q, v = (np.asarray(x) for x in (solution.t, solution.q, solution.v))
    if t.ndim != 1 or q.ndim != 2:
        raise ModelError(f"{where}: the solution is a batch or has no history; pass one instance, with save_every")
    if not (np.isfinite(q).all() and np.isfinite(v).all()):
        raise ModelError(f"{where}: the motion is not finite; see solution.status")
    if int(np.asarray(solution.status)) != Status.OK:
        raise ModelError(f"{where}: the motion did not succeed: {Status(int(np.asarray(solution.status))).message}")
    if np.any(np.diff(t) <= 0):
        raise ModelError(f"{where}: a time occurs twice; such a message needs increasing times")
    if (epoch.tzinfo is None) is (time_system == "UTC"):
        said = (
            "has no time zone; pass datetime(..., tzinfo=UTC)"
            if time_system == "UTC"
            else f"has a time zone, which {time_system} must not have; leave it out"
        )
        raise ModelError(f"{where}: epoch {said}")
    epoch = epoch if epoch.tzinfo is None else epoch.astimezone(UTC).replace(tzinfo=None)
    times = [_date(epoch, x) for x in t.tolist()]
    meta = {"OBJECT_NAME": body, "OBJECT_ID": identifier, "CENTER_NAME": center}
    for name, text in (*meta.items(), ("frame", frame)):
        if not _TEXT.fullmatch(text):
            raise ModelError(f"{where}: {name} is {text!r}; such a message holds printable ASCII characters only")
    at = get(model, f"{body}.com") if point is None else point
    rows = WRITERS[path.suffix](model, t, q, v, body, np.asarray(at, float))
    head, rest = HEADS[path.suffix](frame, time_system, times[0], times[-1])
    lines = [head, f"CREATION_DATE = {datetime.now(UTC):%Y-%m-%dT%H:%M:%S}", "ORIGINATOR = JAXMBS", "", "META_START"]
    lines += [f"{key} = {value}" for key, value in (*meta.items(), *rest.items())] + ["META_STOP", ""]
    inside = [f"{time} {' '.join(row)}" for time, row in zip(times, rows, strict=True)]
    lines += ["DATA_START", *inside, "DATA_STOP"] if path.suffix == ".aem" else inside
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _date(epoch: datetime, seconds: float) -> str:
    """Date and time with nine decimals of a second, which `datetime` itself does not have."""
    whole = int(np.floor(seconds))
    nano = round((seconds - whole) * 1e9) + 1000 * epoch.microsecond
    at = epoch.replace(microsecond=0) + timedelta(seconds=whole + nano // 10**9)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{nano % 10**9:09d}"


def _orbit(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, body: str, point: np.ndarray
) -> Iterator[Sequence[str]]:
    k = model.body_names.index(body)
    poses = jax.vmap(lambda t, q: body_poses(model, q, t=t))(t, q)
    velocities = jax.vmap(lambda t, q, v: body_velocities(model, q, v, t=t))(t, q, v)
    arm = np.asarray(poses.rotation[:, k]) @ point
    position = np.asarray(poses.position[:, k]) + arm
    velocity = np.asarray(velocities[:, k, 3:]) + np.cross(np.asarray(velocities[:, k, :3]), arm)
    for row in np.concatenate([position, velocity], axis=1) / 1e3:
        yield [f"{x:.15g}" for x in row]


def _attitude(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, body: str, point: np.ndarray
) -> Iterator[Sequence[str]]:
    from scipy.spatial.transform import Rotation

    k = model.body_names.index(body)
    rotations = np.asarray(jax.vmap(lambda t, q: body_poses(model, q, t=t).rotation[k])(t, q))
    last = np.array([0.0, 0.0, 0.0, 1.0])
    # the turn that takes the axes of the frame to those of the body, which is the pose of the body in the frame
    for x in Rotation.from_matrix(rotations).as_quat():
        last = -x if x @ last < 0 else x
        yield [f"{c:.15g}" for c in last]


def _orbit_head(frame: str, system: str, first: str, last: str) -> tuple[str, Mapping[str, str]]:
    rest = {"REF_FRAME": frame, "TIME_SYSTEM": system, "START_TIME": first, "STOP_TIME": last}
    return "CCSDS_OEM_VERS = 2.0", rest


def _attitude_head(frame: str, system: str, first: str, last: str) -> tuple[str, Mapping[str, str]]:
    rest = {
        "REF_FRAME_A": frame, "REF_FRAME_B": "SC_BODY_1", "ATTITUDE_DIR": "A2B", "TIME_SYSTEM": system, "START_TIME": first,
        "STOP_TIME": last, "ATTITUDE_TYPE": "QUATERNION", "QUATERNION_TYPE": "LAST",
    }  # fmt: skip
    return "CCSDS_AEM_VERS = 1.0", rest


WRITERS = {".oem": _orbit, ".aem": _attitude}
HEADS = {".oem": _orbit_head, ".aem": _attitude_head}
