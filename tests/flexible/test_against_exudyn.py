"""A flexible boom that swings and spins, without and with a load at its tip, against the floating frame of Exudyn.

Both programs start from the same mass and stiffness matrices, of a truss of 24 nodes with rigid faces, and reduce them by
their own methods of Craig and Bampton to shapes that span the same motions. Both keep all of the kinetic energy of the
deformed body (order=2), so that motions agree to the error of Exudyn's steps; only the rotation of the tip, which the load
feels, is defined differently, by terms of third order in the modal coordinates.

In Exudyn gravity is a force at each node, because its load in proportion to mass (1.13.6) leaves out that the centre of mass
moves as the body bends: with it the tip is elsewhere by 1 to 3 mm after a second, in proportion to the deformation.
"""

import importlib

import numpy as np
import pytest
import scipy.sparse

import jaxmbs as mbs
from tests.flexible.parts import truss

GRAVITY, SPIN, STIFFNESS, T_END = (3.0, 2.0, -9.0), (0.5, -0.4, 1.2), 100.0, 1.0
FIRST, LAST = [0, 1, 2, 3], [20, 21, 22, 23]
MASS, INERTIA, HALF = 20.0, (2.0, 3.0, 4.0), 0.5  # of the load; from the tip to its middle
# position of the tip [m] at t = 0.25, 0.5, 0.75 and 1 s by Exudyn, without and with the load; extrapolated from 8000 and
# 16000 steps
FOUND = {
    False: (
        (4.75493014, 1.53953267, 0.14298849),
        (3.99190860, 2.98046947, -0.42586370),
        (2.63906379, 3.93942087, -1.58625079),
        (0.79552828, 3.93974804, -2.97412405),
    ),
    True: (
        (4.75701056, 1.52875095, 0.18980877),
        (4.02205503, 2.96251418, -0.24717599),
        (2.76742337, 3.98317556, -1.22898811),
        (1.07596004, 4.19572617, -2.50843357),
    ),
}
ERROR = {False: 3e-8, True: 1e-6}  # [m]


def truss_boom():
    """Mass, stiffness, positions; the origin is the middle of the first face."""
    M, K, x = truss()
    return M, STIFFNESS * K, x - x[FIRST].mean(axis=0)


def tips(load):
    """(position of the tip at the four times, the largest displacement of the tip by bending)."""
    nodes = {"attachments" if load else "stations": {"tip": LAST}}
    part = mbs.Part.from_matrices(*truss_boom(), **{"attachments": {}, **nodes}, frame=FIRST, modes=4)
    mech = mbs.Mechanism("boom", gravity=GRAVITY)
    mech.add_flexible_body("boom", part, damping=0.0, order=2)
    mech.add_joint("root", mbs.Spherical(), "world", "boom")
    if load:
        mech.add_body("load", MASS, (HALF, 0, 0), INERTIA)
        mech.add_joint("mount", mbs.Fixed(), "boom_tip", "load")
    model = mech.build()
    v = np.zeros(model.nv)
    v[model.v_slice("root")] = SPIN
    run = mbs.simulate(model, model.neutral(), v, T_END, dt=1e-3, save_every=250)
    assert mbs.Status(int(run.status)) is mbs.Status.OK
    bent = np.asarray(run.q)[1:, model.q_slice("boom")] @ part.displacements[0].T
    return np.array([mbs.body_poses(model, q)["boom_tip"].position for q in run.q[1:]]), np.abs(bent).max()


def exudyn_tips(exu, load, steps):
    """The same by Exudyn, with generalized alpha of second order."""
    fem, items = (importlib.import_module(f"exudyn.{name}") for name in ("FEM", "itemInterface"))
    M, K, x = truss_boom()
    mesh = fem.FEMinterface()
    mesh.nodes = {"Position": x}
    mesh.massMatrix, mesh.stiffnessMatrix = scipy.sparse.csr_matrix(M), scipy.sparse.csr_matrix(K)
    faces = [FIRST, LAST] if load else [FIRST]
    mesh.ComputeHurtyCraigBamptonModes(faces, 4, useSparseSolver=False, computationMode=fem.HCBstaticModeSelection.RBE2)
    container = exu.SystemContainer()
    system = container.AddSystem()
    reduced = fem.ObjectFFRFreducedOrderInterface(mesh)
    boom = reduced.AddObjectFFRFreducedOrder(system, initialAngularVelocity=list(SPIN))["oFFRFreducedOrder"]
    world = system.AddMarker(items.MarkerBodyRigid(bodyNumber=system.AddObject(items.ObjectGround())))

    def face(nodes):
        return system.AddMarker(
            items.MarkerSuperElementRigid(bodyNumber=boom, meshNodeNumbers=nodes, weightingFactors=[0.25] * 4)
        )

    for k in range(len(x)):
        at = items.MarkerSuperElementPosition(bodyNumber=boom, meshNodeNumbers=[k], weightingFactors=[1.0])
        weight = [M[3 * k, 3 * k] * g for g in GRAVITY]
        system.AddLoad(items.Force(markerNumber=system.AddMarker(at), loadVector=weight))
    system.AddObject(items.SphericalJoint(markerNumbers=[world, face(FIRST)], constrainedAxes=[1] * 3))
    if load:
        place = np.array([5 + HALF, 0, 0])
        node = importlib.import_module("exudyn.rigidBodyUtilities").GetRigidBodyNode(
            exu.NodeType.RotationEulerParameters, position=place, velocity=np.cross(SPIN, place),
            rotationMatrix=np.eye(3), angularVelocity=list(SPIN),
        )  # fmt: skip
        body = system.AddObject(
            items.ObjectRigidBody(mass=MASS, inertia=[*INERTIA, 0, 0, 0], nodeNumber=system.AddNode(node))
        )
        middle, root = (
            system.AddMarker(items.MarkerBodyRigid(bodyNumber=body, localPosition=[s, 0, 0])) for s in (0, -HALF)
        )
        system.AddLoad(items.Force(markerNumber=middle, loadVector=[MASS * g for g in GRAVITY]))
        system.AddObject(items.GenericJoint(markerNumbers=[face(LAST), root], constrainedAxes=[1] * 6))
    sensors = [
        system.AddSensor(items.SensorSuperElement(
            bodyNumber=boom, meshNodeNumber=k, storeInternal=True, outputVariableType=exu.OutputVariableType.Position
        ))
        for k in LAST
    ]  # fmt: skip
    system.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = steps, T_END
    settings.timeIntegration.generalizedAlpha.spectralRadius = 0.9
    settings.timeIntegration.newton.relativeTolerance = 1e-9
    settings.solution.file.write = False
    settings.solution.sensors.writePeriod = T_END / 4
    system.SolveDynamic(settings)
    return np.mean([system.GetSensorStoredData(k)[1:, 1:] for k in sensors], axis=0)


@pytest.mark.usually("False")
@pytest.mark.parametrize("load", [False, True])
def test_the_motion_is_that_of_exudyn(load):
    found, bent = tips(load)
    assert bent > 0.005
    assert np.abs(found - FOUND[load]).max() < ERROR[load]


@pytest.mark.slow
@pytest.mark.parametrize("load", [False, True])
def test_exudyn_still_says_so(load):
    exu = pytest.importorskip("exudyn", reason="needs pip install 'jaxmbs[bench]'")
    coarse, fine = (exudyn_tips(exu, load, steps) for steps in (2000, 4000))
    assert np.abs(coarse - fine).max() < 1e-4
    assert np.abs(fine - FOUND[load]).max() < 2e-5
