"""The slider-crank with a flexible rod of Simeon (1996), one of the problems of the Test Set for IVP Solvers (Mazzia and
Magherini, 2008), whose solution after 2.4 turns of the crank is printed to many digits.

The rod bends as two sines and stretches as a quadratic function; the crank turns at a steady rate. The matrices are those of
the problem, with its pi of eight digits and its masses against stretching (15 times those of a rod).
"""

import numpy as np
import pytest
import scipy.linalg

import jaxmbs as mbs

PI, RATE, L1, L2, ROD, SLIDER, ABOUT_PIN = 3.1415927, 150.0, 0.15, 0.30, 0.151104, 0.075552, 0.0045339259
AREA, HEIGHT, E = 0.008**2, 0.008, 0.2e12
START = (0.0, 0.0, 0.103339863e-4, 0.169327969e-4), (0.444896105, 0.463434311e-2, -0.178591076e-5, -0.268938672e-5)
# at t = 0.1 s: angle of the rod, position of the slider, the four coordinates of the rod; their rates
PRINTED = np.array([
    [-3.311734987910881e-1, 1.697373326718410e-1, 1.893192460247178e-4, 2.375751865617931e-5, -5.323907988763734e-6,
     -8.363283141616840e-6],
    [60.25346682645789, -8.753116989887888, -3.005536801092212e-2, -5.500488291932075e-3, 4.978243404809343e-4,
     1.104933470696396e-3],
])  # fmt: skip
DRIVE, GUIDE = -25.29853213732781, 62.32893262533717  # torque on the crank [N m], force on the slider along y [N]


def rod():
    """(the part, its shapes): the coordinates of the problem are the shapes times those of the part."""
    M = ROD * scipy.linalg.block_diag(0.5, 0.5, [[8.0, 1.0], [1.0, 2.0]])
    slender = PI**4 * (HEIGHT / L2) ** 2
    K = E * AREA / L2 * scipy.linalg.block_diag(slender / 24, slender * 2 / 3, np.array([[16, -8], [-8, 7]]) / 3)
    squared, shapes = scipy.linalg.eigh(K, M)

    def along_z(x):
        out = np.zeros((*np.shape(x), 3))
        out[..., 2] = x
        return out

    def about_z(x):
        out = np.zeros((*np.shape(x), 3, 3))
        out[..., 2, 2] = x
        return out

    crossed = np.zeros((4, 4))
    crossed[0, 2:] = -16 / PI**3, 8 / PI**3 - 1 / PI
    crossed[1, 3] = 0.5 / PI
    part = mbs.Part(
        mass=ROD, com=[L2 / 2, 0, 0], inertia=np.diag([1e-6, 1, 1]) * (ABOUT_PIN - ROD * (L2 / 2) ** 2),
        frequency=np.sqrt(squared) / (2 * np.pi),
        momentum=ROD * shapes.T @ [[0, 2 / PI, 0], [0, 0, 0], [2 / 3, 0, 0], [1 / 6, 0, 0]],
        angular_momentum=along_z(ROD * L2 * shapes.T @ [1 / PI, -0.5 / PI, 0, 0]),
        inertia_change=about_z(2 * ROD * L2 * shapes.T @ [0, 0, 1 / 3, 1 / 6]),
        coupling=along_z(ROD * shapes.T @ (crossed - crossed.T) @ shapes),
        inertia_curvature=about_z(2 * np.eye(4)), nodes=["tip"], positions=[[L2, 0, 0]],
        displacements=[[shapes[3], np.zeros(4), np.zeros(4)]], rotations=np.zeros((1, 3, 4)),
    )  # fmt: skip
    return part, shapes


def slider_crank(part):
    mech = mbs.Mechanism("slider-crank")
    mech.add_body("crank", 0.36, (L1 / 2, 0, 0), (1e-4, 7e-4, 7e-4))
    mech.add_joint("shaft", mbs.Carried(axis=(0, 0, 1), rate=RATE), "world", "crank")
    mech.add_flexible_body("rod", part, damping=0.0, order=2)
    mech.add_joint("pin", mbs.Revolute((0, 0, 1)), "crank", "rod", mbs.Pose((L1, 0, 0)))
    mech.add_body("slider", SLIDER, inertia=(1e-4, 1e-4, 1e-4))
    mech.add_joint("guide", mbs.Prismatic((1, 0, 0)), "world", "slider")
    mech.close_loop("wrist", mbs.Spherical(), "rod_tip", "slider")
    return mech.build()


def start(model, shapes):
    q, v = np.zeros(model.nq), np.zeros(model.nv)
    own, stretched, rate = model.q_slice("rod"), START[0][3], -RATE * L1 / (L2 + START[0][3])
    q[own], v[own] = (np.linalg.solve(shapes, x) for x in START)
    q[model.q_slice("guide")], v[model.q_slice("guide")] = L1 + L2 + stretched, START[1][3]
    v[model.q_slice("shaft")], v[model.q_slice("pin")] = RATE, rate - RATE
    return q, v


def test_the_motion_is_the_printed_one():
    """To 5e-11 m and rad: the initial data have nine digits, and what they leave open vibrates at 4 kHz."""
    part, shapes = rod()
    model = slider_crank(part)
    run = mbs.simulate(model, *start(model, shapes), 0.1, dt=5e-5, method="dop853", save_every=400)
    assert mbs.Status(int(run.status)) is mbs.Status.OK

    def of_the_problem(x, turned):
        at = {name: x[model.v_slice(name)] for name in ("pin", "guide", "rod")}
        return [at["pin"][0] + turned, at["guide"][0], *(shapes @ at["rod"])]

    q, v = (np.asarray(x[-1]) for x in (run.q, run.v))
    assert np.abs(of_the_problem(q, 0.1 * RATE) - PRINTED[0]).max() < 5e-11
    assert np.abs(of_the_problem(v, RATE) - PRINTED[1]).max() < 1e-6
    reactions = mbs.joint_reactions(model, q, v, t=0.1)
    forces = {name: reactions[k] for k, name in enumerate((*model.joint_names, *model.loop_names))}
    assert forces["shaft"][2] == pytest.approx(DRIVE, rel=1e-5)
    assert forces["guide"][4] == pytest.approx(GUIDE, rel=2e-5)
