"""Where two bodies come closest in the worst sample: when, which pieces, and a picture with the gap drawn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.geometry import Separation
from jaxmbs.model.fields import type_name
from jaxmbs.model.forces.base import Scene
from jaxmbs.model.structure import WORLD
from jaxmbs.study.outputs import Clearance, Compound, Mesh
from jaxmbs.study.outputs.gap import separations
from jaxmbs.study.outputs.shapes import Shape
from jaxmbs.study.reports import plots
from jaxmbs.study.reports.inside import nearest_inside
from jaxmbs.view.segments import Segment, gaps

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.samples.repeat import History

Place = tuple[np.ndarray, np.ndarray]  # position and rotation of a body in the world


def closest(study: Study, history: History, models: dict[int, mbs.Model], worst: dict[str, tuple[int, int]]) -> str:
    """The closest approach in the worst sample, for every output that is the least clearance of two shapes over the whole
    run, as JSON: what is said of it, and what `plots.approach` draws.

    worst: output -> (its worst sample, the row of this sample in the history); models: of these rows.
    """
    found = []
    for name, (sample, row) in worst.items():
        output, values = study.outputs[name], history.values[name][row]
        if not isinstance(output, Clearance) or output.reduce != "min" or output.windowed:
            continue  # the history does not say when a window is open
        if np.isfinite(values).any():
            k = int(np.nanargmin(values))
            least = float(history.outputs[name][row])
            here = float(history.t[k]), float(values[k])
            found.append(_one(study, name, sample, least, here, models[row], history.q[row, k]))
    return json.dumps(found)


def gap_lines(study: Study, model: mbs.Model, sample: str, history: History, row: int) -> Iterator[Segment]:
    """The line between the nearest points of the two shapes of each clearance in one motion."""
    for name, output in study.outputs.items():
        if isinstance(output, Clearance) and not output.inside:
            yield gaps(*nearest(output, model, history.q[row], history.t), name.replace("_", " "), sample)


def nearest(output: Clearance, model: mbs.Model, q: np.ndarray, t: np.ndarray) -> tuple[Any, Any]:
    """The nearest points (T, 3) of the shapes of a clearance, in world axes."""
    bodies = output.shape_a.body, output.shape_b.body

    def at(q: Any, t: Any) -> tuple[Any, Any]:
        poses = mbs.body_poses(model, q, t=t)
        (p, R), (r, S) = (_traced_place(poses, body) for body in bodies)
        placed = tuple((*(R.T @ S).ravel(), *(R.T @ (r - p))))
        (s,) = separations([(output.shape_a, output.shape_b, Scene(0.0, {}, {}, {}, (), ()))], [placed])
        return tuple(p + R @ jnp.stack([jnp.asarray(x) for x in point]) for point in (s.point_a, s.point_b))

    return jax.jit(lambda q, t: jax.lax.map(lambda row: at(*row), (q, t)))(q, t)


def _traced_place(poses: Any, body: str) -> tuple[Any, Any]:
    return (jnp.zeros(3), jnp.eye(3)) if body == WORLD else (poses[body].position, poses[body].rotation)


def _one(
    study: Study, name: str, sample: int, least: float, here: tuple[float, float], model: mbs.Model, q: np.ndarray
) -> dict[str, Any]:
    """What is said of one clearance. least: that of the motion; here: the time of q, and the gap then."""
    output: Any = study.outputs[name]
    t, now = here
    shapes, unit = (output.shape_a, output.shape_b), study.shown[name]
    poses = mbs.body_poses(model, q, t=t)
    places = [_place(poses, shape.body) for shape in shapes]
    if output.inside:
        (p, R), (r, S) = places
        on_a, on_b = nearest_inside(output, S.T @ R, S.T @ (p - r))
        points, pieces = (_inverse(places[0], _moved(places[1], on_a)), on_b), (0, 0)
        between = f"{_end(shapes[0], 0, points[0], False)} and the inner side of {_end(shapes[1], 0, points[1])}"
    else:
        s = _separation(shapes, places)
        on_a = np.array([float(x) for x in s.point_a])
        points = on_a, _inverse(places[1], _moved(places[0], np.array([float(x) for x in s.point_b])))
        pieces, now = (int(s.piece_a), int(s.piece_b)), float(s.gap)
        between = " and ".join(map(_end, shapes, pieces, points))
    shown = f"{now / unit.factor:.4g} {unit.name}"
    each = (x for shape in shapes for x in (shape.parts if isinstance(shape, Compound) else (shape,)))
    made = "".join(f" {x.said()}." for x in each if isinstance(x, Mesh))
    what = f"{name.replace('_', ' ')} in sample {sample} at t = {t:.5g} s"
    whole = f"{least / unit.factor:.4g} {unit.name}"
    rest = f"This is the least gap at the times that are drawn; that of the whole motion is {whole}."
    gap = np.stack([_moved(place, x) for place, x in zip(places, points, strict=True)])
    sides = 240 if output.inside else 48  # a gap between walls is narrow
    bodies = [
        [_moved(place, x.seen(sides)) for x in shape.union.pieces] for shape, place in zip(shapes, places, strict=True)
    ]
    outlines, ends = plots.across(bodies, gap)
    seen = zip(shapes, outlines, pieces, strict=True)
    return {
        "name": name, "shown": shown, "said": f"{what}: {shown} between {between}, each in axes of its body. {rest}{made}",
        "ends": ends.tolist(), "bodies": [(_labelled(x), [p.tolist() for p in o], k) for x, o, k in seen],
    }  # fmt: skip


def _end(shape: Shape, piece: int, point: np.ndarray, whole: bool = True) -> str:
    """One end of the gap in words, with the point in axes of its body; whole: with its part and piece, if it has some."""
    which = []
    if isinstance(shape, Compound) and whole:
        part, piece = shape.part_of(piece)
        which.append(f"part {part + 1} of {len(shape.parts)}")
        shape = shape.parts[part]
    if whole and (many := len(shape.union.pieces)) > 1:
        which.append(f"piece {piece + 1} of {many}")
    said = f" ({', '.join(which)})" if which else ""
    return f"{_labelled(shape)}{said} at ({', '.join(f'{x:.4g}' for x in point)}) m"


def _labelled(shape: Shape) -> str:
    called = Path(shape.path).name if isinstance(shape, Mesh) and shape.path else type_name(type(shape))
    return f"{called} of {shape.body}"


def _separation(shapes: tuple[Shape, Shape], places: list[Place]) -> Separation:
    (p, R), (q, S) = places
    placed = tuple((*(R.T @ S).ravel(), *(R.T @ (q - p))))
    (found,) = separations([(*shapes, Scene(0.0, {}, {}, {}, (), ()))], [placed])
    return found


def _place(poses: Any, body: str) -> Place:
    if body == WORLD:
        return np.zeros(3), np.eye(3)
    return np.asarray(poses[body].position, float), np.asarray(poses[body].rotation, float)


def _moved(place: Place, points: np.ndarray) -> np.ndarray:
    """Points of a body in world axes."""
    position, R = place
    return position + points @ R.T


def _inverse(place: Place, points: np.ndarray) -> np.ndarray:
    position, R = place
    return (points - position) @ R
