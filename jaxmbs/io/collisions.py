"""Collision shapes of robots, which are not part of a model."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from jaxmbs.io.draft import Form
from jaxmbs.io.errors import InputError, Problem
from jaxmbs.io.loading import FORMATS, format_of
from jaxmbs.model import Pose

Collisions = dict[str, list[tuple[Form, Pose]]]


def collision_shapes(path: str | Path, *, trust: bool = False) -> Collisions:
    """The collision shapes in the URDF, SDFormat, MJCF or USD file at `path`: {body: [(solid, its pose in the body's frame),
    ...]}, by the names that bodies have in the model of the file; bodies without any are left out.

    They serve drawing (`Mechanism.add_visual`), clearances (`mbs.study.outputs.shape_on`) and contact: those of a body are
    one form, `mbs.Compound(shapes[body])`, for a `ShapeContact`. In an MJCF they are the geoms that collide with others by
    `contype` and `conaffinity`; meshes are given as they are, although MuJoCo collides with their hulls. In a USD they are
    the shapes of prims with CollisionAPI, and belong to "world" where there is no body above them; `physics:approximation`
    of a mesh is ignored. trust: also read meshes in other folders, as for `from_urdf`. A ModelWarning counts the shapes
    that are left out (planes, ellipsoids, height fields). Raises InputError with all faults, each with its element.

    >>> from pathlib import Path
    >>> text = '<robot name="r"><link name="arm"><collision><origin xyz="0 0 1"/><geometry><sphere radius="0.2"/>'
    >>> _ = Path("arm.urdf").write_text(text + "</geometry></collision></link></robot>")
    >>> ((solid, pose),) = mbs.collision_shapes("arm.urdf")["arm"]
    >>> mbs.study.outputs.shape_on("arm", solid, pose).center
    (0.0, 0.0, 1.0)
    """
    path = Path(path)
    kind = format_of(path)
    if kind is None:
        said = f"collision shapes are read from URDF, SDFormat, MJCF and USD files ({', '.join(FORMATS)})"
        raise InputError(Problem("", said), path)
    reader = import_module(f"jaxmbs.io.{kind}").reader
    return reader(path, trust=trust, on_unsupported="warn").collisions()
