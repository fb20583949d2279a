"""One motion of a study with the model that it belongs to, for pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.geometry import Piece
from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study.outputs import Clearance
from jaxmbs.study.outputs.shapes import Shape
from jaxmbs.study.samples.batch import draws_of, noise_of, numbers_of, placed, precision, simulated
from jaxmbs.study.units import Unit, units_of
from jaxmbs.view.animate import PLOTS

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.samples.repeat import History
    from jaxmbs.study.sampling.targets import Numbers


def motion(study: Study, sample: int | None = None) -> tuple[mbs.Model, mbs.Solution]:
    """(model, motion) of a sample by its index, or of the nominal mechanism."""
    dtype, time = precision(), study.simulation
    model, q, v = study.model, jnp.asarray(study.q0, dtype), jnp.asarray(study.v0, dtype)
    if sample is not None and study.dispersions.items:
        ((model, q, v),) = mechanisms(study, numbers_of(study, draws_of(study, [sample], dtype), dtype))
    keys = noise_of(study, None if sample is None else [sample])
    return model, jax.jit(lambda m, q, v, key: simulated(time, m, q, v, key=key))(
        model, q, v, keys if keys is None else keys[0]
    )


def mechanisms(study: Study, numbers: Numbers) -> list[tuple[mbs.Model, jax.Array, jax.Array]]:
    """(model, q, v) at the start of each sample. numbers: those of all samples, with the batch axis first."""
    batch, axes, q, v = placed(study, numbers)
    own = [
        {name: x if axes.overrides[name] is None else x[k] for name, x in batch.overrides.items()}
        for k in range(len(q))
    ]
    return [(replace(batch, overrides=o), q[k], v[k]) for k, o in enumerate(own)]


def shapes_of(study: Study) -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
    """(vertices, triangles) of the pieces of the shapes that outputs refer to, by body, for pictures; without hollow shapes,
    which would hide what is in them."""
    found: dict[str, dict[int, Shape]] = {}
    for output in study.outputs.values():
        if isinstance(output, Clearance):
            for shape in (output.shape_a, *(() if output.inside else (output.shape_b,))):
                found.setdefault(shape.body, {})[id(shape)] = shape
    return {body: [_hull(piece) for shape in x.values() for piece in shape.union.pieces] for body, x in found.items()}


def _hull(piece: Piece) -> tuple[np.ndarray, np.ndarray]:
    from scipy.spatial import ConvexHull, QhullError

    points = piece.seen(24)
    try:
        hull = ConvexHull(points)
    except QhullError:  # flat: seen from both sides
        k = np.arange(1, len(points) - 1)
        fan = np.stack([np.zeros_like(k), k, k + 1], 1)
        return points, np.concatenate([fan, fan[:, ::-1]])
    a, b, c = np.moveaxis(points[hull.simplices], 1, 0)
    inwards = (np.cross(b - a, c - a) * hull.equations[:, :3]).sum(1) < 0
    return points, np.where(inwards[:, None], hull.simplices[:, ::-1], hull.simplices)


def plots_of(study: Study, values: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, dict[str, np.ndarray]]:
    """The plots next to a picture, {output: {sample: (T,)}}: what the study's outputs measure over time, in the units of its
    file. Outputs without values over time are left out. An output whose reduction is a time measures some other quantity
    over time; the label of its plot then begins with "for"."""
    used = units_of(study)
    labels = {n: "for " * study.outputs[n].reduce.startswith("time") + _label(n, used[n]) for n in values}
    return {
        labels[name]: {n: x / used[name].factor for n, x in own.items()}
        for name, own in values.items()
        if any(np.isfinite(x).any() for x in own.values())
    }


def limits_of(study: Study, plots: Mapping[str, Any]) -> dict[str, list[float]]:
    """The bounds that criteria set on what the plots show, by the labels of the plots; without those on times, means and
    other numbers that the plot of a history does not show."""
    used, found = units_of(study), {}
    for c in study.criteria:
        label = _label(c.output, used[c.output])
        if label in plots and study.outputs[c.output].reduce in ("min", "max", "final", "at"):
            found.setdefault(label, []).extend(bound / used[c.output].factor for _, bound in c.marks)
    return found


def _label(output: str, unit: Unit) -> str:
    return f"{output.replace('_', ' ')} [{unit.name}]".removesuffix(" []")


def plots_with_coordinates(study: Study, history: History) -> dict[str, Any]:
    """The plots of the first sample of a history: the study's own outputs, then the first coordinates."""
    own = plots_of(study, {name: {"": x[0]} for name, x in history.values.items()})
    known = [(k, c) for k, c in enumerate(study.model.coordinates) if c.unit][:PLOTS]
    found = {label: lines[""] for label, lines in own.items()}
    return found | {f"{c.name} [{c.unit}]": history.q[0, :, k] for k, c in known}


def check_picture(path: Path) -> None:
    """Raises InputError if no motion can be drawn in a file of this name."""
    if path.suffix not in (".html", ".glb", ".gif", ".mp4"):
        raise InputError(Problem(str(path), "the name must end with .html (a page that plays), .glb, .gif or .mp4"))
