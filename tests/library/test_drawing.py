"""What the ready mechanisms look like: shapes on every body, and these where the body's mass and hinges are."""

import inspect

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.view.shapes import scene_of

NO_HARDWARE = {
    "double_pendulum",  # point masses on massless rods
    "beam", "cable", "plate",  # cut into elements, and without a thickness
}  # fmt: skip
SMALL = {"chain": (3,), "scissor_mast": (3,), "synchronised_wing": (3,), "four_bar_windows": (2,)}
MECHANISMS = [
    name
    for name, make in vars(mbs.library).items()
    if inspect.isfunction(make) and make.__annotations__.get("return") == "Mechanism" and name not in NO_HARDWARE
]


def test_the_list_is_whole():
    assert set(vars(mbs.library)) > NO_HARDWARE and len(MECHANISMS) > 15


@pytest.mark.filterwarnings("ignore::jaxmbs.ModelWarning")
@pytest.mark.parametrize("name", MECHANISMS)
def test_bodies_have_shapes_at_their_masses_and_hinges(name):
    """The centre of mass lies in the box about the shapes of its body, and the axis of every hinge passes through the boxes
    of the two bodies that it joins, with a margin for the clearance of hinges."""
    model = getattr(mbs.library, name)(*SMALL.get(name, ())).build()
    s, boxes = model.structure, {}
    drawn, library = scene_of(model)
    given = {v.body for v in s.visuals}
    for k, body in enumerate(model.body_names):
        assert body in given or not mbs.get(model, f"{body}.mass"), f"{body} has no shape"
        x = np.concatenate([d.vertices(library, model.neutral()) for d in drawn[: len(s.visuals)] if d.body == k])
        margin = 0.15 * np.ptp(x, axis=0).max()
        low, high = boxes[body] = x.min(0) - margin, x.max(0) + margin
        com = np.asarray(mbs.get(model, f"{body}.com"))
        assert (low <= com).all() and (com <= high).all(), f"{body} is drawn away from its mass"
    ends = [
        (x, b, x.name, p) for x in s.links for b, p in ((x.parent, "parent_pose"), (s.body_index[x.body], "child_pose"))
    ]
    ends += [(x, s.body_index[b], x.name, p) for x in s.loops for b, p in ((x.body_a, "pose_a"), (x.body_b, "pose_b"))]
    for hinge, body, joint, pose in ends:
        if body < 0 or not isinstance(hinge.joint, mbs.Revolute):
            continue
        low, high = boxes[model.body_names[body]]
        at, R = (np.asarray(mbs.get(model, f"{joint}.{pose}.{x}")) for x in ("position", "rotation"))
        axis = R @ np.asarray(mbs.get(model, f"{joint}.axis"))
        points = at + np.linspace(-2, 2, 801)[:, None] * np.ptp([low, high], axis=0).max() * axis
        inside = ((low <= points) & (points <= high)).all(1)
        assert inside.any(), f"{model.body_names[body]} is drawn away from {joint}"
