"""Joints of files that connect bodies in any order: a tree through all bodies, and what closes loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jaxmbs.io.draft import Draft, tidy
from jaxmbs.model import Pose
from jaxmbs.model.joints import Free, Helical, Prismatic, Revolute, Universal
from jaxmbs.model.joints.base import Joint


@dataclass(frozen=True)
class Hinge:
    """A joint of a file. where: its place there; bodies: those of both ends ("" is the world); poses: of the joint's frames
    in them; cut: whether it is left out of the tree on purpose."""

    where: str
    name: str
    joint: Joint
    bodies: tuple[str, str]
    poses: tuple[Pose, Pose]
    cut: bool = False

    def from_body(self, body: str) -> tuple[Joint, str, Pose, Pose]:
        """(joint, body at the other end, frame in `body`, frame in the other body) of the joint as seen from `body`; from
        the second body, the axis is reversed, so that the coordinate keeps its sign."""
        if body == self.bodies[0]:
            return self.joint, self.bodies[1], *self.poses
        joint = self.joint
        if isinstance(joint, (Revolute, Prismatic)):
            joint = type(joint)(tuple(-x for x in joint.axis))
        if isinstance(joint, Helical):
            joint = Helical(tuple(-x for x in joint.axis), joint.pitch)
        return joint, self.bodies[0], self.poses[1], self.poses[0]

    def reaches(self, reached: set[str]) -> bool:
        """Whether it leads from a body that is in the tree to one that is not; the angles of a universal joint have an
        order, so that it leads from its first body only."""
        first, second = (body in reached for body in self.bodies)
        return first is not second and (first or not isinstance(self.joint, Universal))


def connect(draft: Draft, hinges: Sequence[Hinge], names: Mapping[str, str], places: Mapping[str, Pose]) -> set[str]:
    """Add the joints: a tree from the world through all bodies, then what closes loops. names: of the bodies, by the keys
    that the hinges use; places: their poses in the world. Of bodies that no joint connects to the world, the first in the
    order of `places` moves freely from its pose, by the joint "NAME_free". Returns the names of the hinges in the tree."""
    reached, left, tree = {""}, [h for h in hinges if not h.cut], set[str]()
    while len(reached) <= len(places):
        found = next((h for h in left if h.reaches(reached)), None)
        if found is None:
            body = next(key for key in places if key not in reached)
            draft.joint(
                draft.new_name("joint", f"{names[body]}_free"), body, Free(), "world", names[body], places[body]
            )
            reached.add(body)
            continue
        left.remove(found)
        tree.add(found.name)
        parent = next(b for b in found.bodies if b in reached)
        joint, child, here, there = found.from_body(parent)
        draft.joint(found.name, found.where, joint, names[parent], names[child], here, there)
        reached.add(child)
    for h in (*left, *(h for h in hinges if h.cut)):
        with draft.at(h.where):
            draft.mech.close_loop(h.name, h.joint, names[h.bodies[0]], names[h.bodies[1]], *h.poses)
    return tree


def composed(a: Pose, b: Pose) -> Pose:
    """The pose of a frame that has the pose b in a frame of pose a; both hold matrices."""
    R = np.asarray(a.rotation)
    return Pose(tuple(np.asarray(a.position) + R @ np.asarray(b.position)), tidy(R @ np.asarray(b.rotation)))


def inverse(a: Pose) -> Pose:
    """The pose of the parent in the frame; a holds a matrix."""
    R = np.asarray(a.rotation).T
    return Pose(tuple(-R @ np.asarray(a.position)), R)
