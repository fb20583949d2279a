"""Ephemeris messages, read back by what their standards say of them."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jaxmbs as mbs


def tumbling():
    mech = mbs.Mechanism("tumbling", gravity=(0, 0, 0))
    mech.add_body("bus", 10.0, (0.1, 0.0, 0.2), (1.0, 2.0, 2.5))
    mech.add_joint("flight", mbs.Free(), "world", "bus")
    return mech.build()


def message(path):
    """(values by key, dates, numbers) of a message in text form."""
    keys, dates, numbers = {}, [], []
    for line in path.read_text(encoding="ascii").splitlines():
        key, is_value, value = line.partition(" = ")
        if is_value:
            keys[key] = value
        elif line[:1].isdigit():
            date, *row = line.split()
            dates.append(datetime.fromisoformat(date[:26]))
            numbers.append([float(x) for x in row])
    return keys, dates, np.array(numbers)


@pytest.fixture(scope="module")
def run():
    model = tumbling()
    v = np.array([0.3, 3.0, -0.2, 10.0, 20.0, 30.0])
    return model, mbs.simulate(model, model.neutral(), v, 3.0, dt=0.01, save_every=30)


def test_an_orbit(run, tmp_path):
    model, solution = run
    epoch = datetime(2026, 2, 28, 23, 59, 58, 500_000, tzinfo=timezone(timedelta(hours=1)))
    keys, dates, found = message(mbs.save_ephemeris(model, solution, "bus", tmp_path / "bus.oem", epoch=epoch))
    assert keys["CCSDS_OEM_VERS"] == "2.0" and (keys["OBJECT_NAME"], keys["REF_FRAME"]) == ("bus", "EME2000")
    assert keys["START_TIME"] == "2026-02-28T22:59:58.500000000" and dates[0].hour == 22
    assert [(d - dates[0]).total_seconds() for d in dates] == pytest.approx(solution.t.tolist(), abs=2e-6)
    com = np.array([0.1, 0.0, 0.2])
    for k, (q, v) in enumerate(zip(solution.q, solution.v, strict=True)):
        R, p = mbs.body_poses(model, q)["bus"].rotation, mbs.body_poses(model, q)["bus"].position
        assert np.allclose(found[k, :3] * 1e3, p + R @ com, atol=1e-9)
        _, linear = mbs.momentum(model, q, v)
        assert np.allclose(found[k, 3:] * 1e3, linear / 10.0, atol=1e-9), "the velocity of the centre of mass"


def test_an_attitude(run, tmp_path):
    model, solution = run
    path = mbs.save_ephemeris(
        model, solution, "bus", tmp_path / "bus.aem", epoch=datetime(2026, 3, 1, tzinfo=UTC), frame="ICRF"
    )
    keys, _, found = message(path)
    assert (keys["ATTITUDE_DIR"], keys["QUATERNION_TYPE"], keys["REF_FRAME_A"]) == ("A2B", "LAST", "ICRF")
    for k, q in enumerate(solution.q):
        assert np.allclose(
            Rotation.from_quat(found[k]).as_matrix(), mbs.body_poses(model, q)["bus"].rotation, atol=1e-12
        )
    assert (np.sum(found[1:] * found[:-1], axis=1) > 0).all(), "no change of sign, which would be interpolated"
    assert np.ptp(np.linalg.norm(found, axis=1)) < 1e-12 and len(found) == 11
    assert path.read_text(encoding="ascii").rstrip().endswith("DATA_STOP")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"body": "buss"}, "bus"),
        ({"path": "bus.txt"}, "suffix"),
        ({"time_system": "ET"}, "time_system"),
        ({"epoch": datetime(2026, 3, 1)}, "time zone"),
        ({"identifier": "a\nb"}, "OBJECT_ID"),
        ({"time_system": "TT"}, "which TT must not have; leave it out"),
    ],
)
def test_what_no_message_can_hold(run, tmp_path, options, said):
    model, solution = run
    given = {"body": "bus", "path": "bus.oem", "epoch": datetime(2026, 3, 1, tzinfo=UTC)} | options
    with pytest.raises(mbs.ModelError, match=said):
        mbs.save_ephemeris(model, solution, given.pop("body"), tmp_path / given.pop("path"), **given)
