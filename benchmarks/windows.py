"""Rows of four-bar windows in Exudyn: C++, planar absolute coordinates of the rods, all pins as constraints, Exudyn's sparse
solver, an implicit method of second order (generalized alpha for index 3, trapezoidal rule for index 2)."""

from __future__ import annotations

import math
from collections.abc import Callable

from benchmarks import peers


class Exudyn:
    """n windows of rods of 1 m and 1 kg whose posts stand at an angle [rad] and turn at a rate [rad/s]."""

    name, package = "Exudyn", "exudyn"

    def __init__(self, n: int, angle: float, rate: float):
        self.exu, items = peers.imported("exudyn"), peers.imported("exudyn.itemInterface")
        self.angle, self.container = angle, self.exu.SystemContainer()
        system = self.system = self.container.AddSystem()
        along, across = (math.cos(angle), math.sin(angle)), (-math.sin(angle), math.cos(angle))

        def rod(x: float, y: float, turned: float, swing: float, turns: float) -> tuple[int, list[int]]:
            """(node, markers at both ends); swing: speed of the middle, in rod lengths times `rate`."""
            speed = [rate * swing * c for c in across]
            node = system.AddNode(
                items.NodeRigidBody2D(referenceCoordinates=[x, y, turned], initialVelocities=[*speed, turns])
            )
            body = system.AddObject(items.RigidBody2D(physicsMass=1.0, physicsInertia=1 / 12, nodeNumber=node))
            left, middle, right = (
                system.AddMarker(items.MarkerBodyPosition(bodyNumber=body, localPosition=[s, 0, 0]))
                for s in (-0.5, 0, 0.5)
            )
            system.AddLoad(items.Force(markerNumber=middle, loadVector=[0, -9.81, 0]))
            return node, [left, right]

        ground = system.AddObject(items.ObjectGround())
        posts = [rod(i + along[0] / 2, along[1] / 2, angle, 0.5, rate) for i in range(n + 1)]
        bars = [rod(i + 0.5 + along[0], along[1], 0.0, 1.0, 0.0) for i in range(n)]
        pins = []
        for i, (_, (foot, head)) in enumerate(posts):
            on_ground = items.MarkerBodyPosition(bodyNumber=ground, localPosition=[i, 0, 0])
            pins.append([system.AddMarker(on_ground), foot])
            pins += [[head, bars[i][1][0]]] if i < n else []
            pins += [[bars[i - 1][1][1], head]] if i else []
        for pair in pins:
            system.AddObject(items.RevoluteJoint2D(markerNumbers=pair))
        system.Assemble()
        self.node = posts[0][0]

    def motion(self, t_end: float, steps: int, index: int) -> Callable[[], float]:
        """A run from the start that returns the final angle of the first post."""
        settings = self.exu.SimulationSettings()
        settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = steps, t_end
        settings.timeIntegration.generalizedAlpha.useNewmark = index == 2
        settings.timeIntegration.generalizedAlpha.useIndex2Constraints = index == 2
        settings.timeIntegration.newton.useModifiedNewton = True
        settings.linearSolver.solverType = self.exu.LinearSolverType.EigenSparse
        settings.solution.file.write = False

        def run() -> float:
            self.system.SolveDynamic(settings)
            return self.angle + float(self.system.GetNodeOutput(self.node, self.exu.OutputVariableType.Coordinates)[2])

        return run
