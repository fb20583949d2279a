"""Placement of one frame in another, as users write it."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np

from jaxmbs.model.errors import unknown
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Vector
from jaxmbs.model.shapes import Float
from jaxmbs.spatial import from_quaternion


@jax.tree_util.register_dataclass
@element
class Pose:
    """Placement of a frame in its parent: x_parent = rotation @ x_child + position.

    Poses returned by the library hold matrices, with any leading axes.

    >>> quarter = mbs.Pose(position=(0, 0, 1), rotation=(0.7071, 0, 0, 0.7071))  # about z
    >>> mech = mbs.library.double_pendulum()
    >>> mech.close_loop("hold", mbs.Spherical(), "lower", "world", pose_a=quarter)
    """

    # users give numbers in any form, the library computes arrays
    position: Any = field(Kind.VECTOR, "m", "origin of the frame in its parent", default=(0.0, 0.0, 0.0))
    rotation: Any = field(
        Kind.ROTATION, "", "quaternion w, x, y, z (normalised) or matrix, to the parent", default=(1.0, 0.0, 0.0, 0.0)
    )

    @property
    def is_identity(self) -> bool:
        """Whether the frame coincides exactly with its parent; the pose must not be traced."""
        return not np.any(np.asarray(self.position, float)) and np.array_equal(self._matrix(), np.eye(3))

    def turned_to(self, axis: Vector) -> Pose:
        """The same frame, rotated so that its z axis lies along `axis` (3,), given in the frame's present axes.

        The new x axis is as close as possible to the coordinate axis that is most nearly perpendicular to the new z axis; a
        frame whose z axis already lies along `axis` stays unchanged.
        """
        z = np.asarray(axis, float) / np.linalg.norm(np.asarray(axis))
        nearest = np.eye(3)[np.argmin(np.abs(z))]
        x = nearest - (nearest @ z) * z
        x = x / np.linalg.norm(x)
        return Pose(self.position, self._matrix() @ np.stack([x, np.cross(z, x), z], axis=1))

    def within(self, other: Pose) -> Pose:
        """The pose of the same frame one level up: in the frame in which its parent has the pose `other`; as tuples of
        numbers."""
        R = other._matrix()
        position = np.asarray(other.position, float) + R @ np.asarray(self.position, float)
        rotation = R @ self._matrix()
        return Pose(tuple(position.tolist()), tuple(map(tuple, rotation.tolist())))

    def _matrix(self) -> np.ndarray:
        """The rotation, as a matrix of numbers."""
        given = np.asarray(self.rotation, float)
        if given.shape == (4,) and given[0] and not given[1:].any():
            return np.eye(3)
        return given if given.ndim == 2 else np.array([*from_quaternion(given.tolist())]).reshape(3, 3)


HERE = Pose()


@dataclasses.dataclass(frozen=True)
class BodyPoses:
    """Poses of bodies in the world, from `body_poses`, with any leading axes; a name gives the Pose of one body.

    position (..., n, 3) [m], rotation (..., n, 3, 3), body to world; names: of the n bodies.

    >>> poses = mbs.body_poses(mbs.library.double_pendulum().build(), [0.5, 0.3])
    >>> print(poses.names, poses["lower"].position.round(3))
    ('upper', 'lower') [ 0.479  0.    -0.878]
    """

    position: Float[jax.Array, "*axes bodies 3"]
    rotation: Float[jax.Array, "*axes bodies 3 3"]
    names: tuple[str, ...]

    def __getitem__(self, name: str) -> Pose:
        """The Pose of a body, with the same leading axes. Raises ModelError for an unknown name."""
        if name not in self.names:
            raise unknown("body", name, self.names, "poses")
        k = self.names.index(name)
        return Pose(self.position[..., k, :], self.rotation[..., k, :, :])


jax.tree_util.register_dataclass(BodyPoses, data_fields=["position", "rotation"], meta_fields=["names"])
