"""Wheels in gimbals, as bodies on joints, against the states that Basilisk's test of them expects.

[Basilisk, test_VSCMGStateEffector_integrated]. Gravity is left out: on balanced wheels it acts at the
centre of mass there, so that it turns nothing, and the case with imbalance has none.
"""

import numpy as np
import pytest

import jaxmbs as mbs

RPM = 2 * np.pi / 60
TILT = np.radians(54.75)
SPIN_INERTIA = 100.0 / (6000.0 * RPM)
MASS = 6.0  # of a wheel, and of a gimbal
STATIC, DYNAMIC = 0.048, 0.0154  # imbalance of a wheel [kg m, kg m²]
HUB_COM = np.array([-0.0002, 0.0001, 0.1])
RATES = np.array([0.08, 0.01, 0.0])
WHEELS = (  # axis of spin, axis of the gimbal, speed [rev/min], rate of the gimbal, position
    ((1, 0, 0), (0, 0, 1), 2000.0, 0.06, (0.1, 0.002, -0.02)),
    ((0, 1, 0), (np.cos(TILT), 0, np.sin(TILT)), 350.0, 0.011, (0.0, -0.05, 0.0)),
    ((0, -1, 0), (-np.cos(TILT), 0, np.sin(TILT)), -900.0, -0.003, (-0.1, 0.05, 0.05)),
)


def satellite(wheels, imbalance):
    """The model, the rates of its joints, and the centre of mass with its velocity relative to the hub.

    No body has the inertia that is published for the wheel with imbalance. Therefore, part of the gimbal's inertia across
    the axis of spin is counted with the wheel, which does not change the motion.
    """
    mech = mbs.Mechanism("satellite", gravity=(0.0, 0.0, 0.0))
    mech.add_body("hub", mass=750.0, com=HUB_COM, inertia=(900.0, 800.0, 600.0))
    mech.add_joint("flight", mbs.Free(), "world", "hub")
    across = 0.01 * np.diag([0.0, 1.0, 1.0])
    product = DYNAMIC * (np.eye(3)[[2, 1, 0]] - np.diag([0.0, 1.0, 0.0]))
    rates, mass, first, flow = [], 750.0, 750.0 * HUB_COM, np.zeros(3)
    for k in wheels:
        spin, axis, speed, rate, at = (np.asarray(x) for x in WHEELS[k])
        turned = np.stack([spin, np.cross(axis, spin), axis], axis=1)
        gimbal, centre = (0.0001, -0.02, 0.1) if imbalance else (0, 0, 0), (0.01, 0.0, 0.1) if imbalance else (0, 0, 0)
        off = np.array([0.0, STATIC / MASS * imbalance, 0.0])
        thin = SPIN_INERTIA * np.diag([1.0, 0.5, 0.5]) + product * imbalance
        mech.add_body(f"gimbal_{k}", mass=MASS, com=gimbal, inertia=np.diag([0.1, 0.2, 0.3]) - across)
        mech.add_body(f"wheel_{k}", mass=MASS, com=off, inertia=thin + across)
        mech.add_joint(f"tilt_{k}", mbs.Revolute(axis=(0, 0, 1)), "hub", f"gimbal_{k}", mbs.Pose(at, turned))
        mech.add_joint(f"spin_{k}", mbs.Revolute(axis=(1, 0, 0)), f"gimbal_{k}", f"wheel_{k}", mbs.Pose(centre))
        rates += [rate, speed * RPM]
        both = turned @ (np.asarray(gimbal) + centre + off)
        mass, first = mass + 2 * MASS, first + MASS * (2 * at + both)
        flow = flow + MASS * (np.cross(rate * axis, both) + np.cross(speed * RPM * spin, turned @ off))
    return mech.build(), rates, first / mass, flow / mass


@pytest.mark.parametrize(
    ("wheels", "imbalance", "t_end", "sigma"),
    [
        ((0, 1, 2), False, 1.0, [0.0185829763256, 0.00212563436704, -0.00118728497031]),
        ((0, 2), True, 0.01, [0.000201909373901, 2.9217809421e-05, 4.00231302121e-06]),
    ],
    ids=["balanced", "imbalanced"],
)
def test_gimballed_wheels_turn_a_satellite_as_in_basilisk(wheels, imbalance, t_end, sigma):
    """Attitude (MRP) at the end, and with imbalance the position of the hub as well; energy and momentum are conserved."""
    model, rates, com, flow = satellite(wheels, imbalance)
    start, velocity = np.array([0.1, -0.2, 0.3]), np.array([-0.4, 0.5, -0.8])
    q = np.concatenate([start - com, [1.0, 0.0, 0.0, 0.0], np.zeros(len(rates))])
    v = np.concatenate([RATES, velocity - flow - np.cross(RATES, com), rates])
    run = mbs.simulate(model, q, v, t_end=t_end, dt=t_end / 1000)
    last = run.q[-1]
    np.testing.assert_allclose(last[4:7] / (1 + last[3]), sigma, rtol=1e-8)
    if imbalance:
        np.testing.assert_allclose(last[:3], [0.0970572658434, -0.195562924079, 0.191874379545], rtol=5e-9)
    assert np.abs(run.energy_error).max() < 1e-10 * mbs.energy(model, q, v)[0]
    angular, linear = run.momentum_error(model)
    assert np.abs(angular).max() < 1e-8 and np.abs(linear).max() < 1e-8
