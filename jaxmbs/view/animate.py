"""Animations as one file: a page that plays in any browser without a network, glTF, or a film."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jaxmbs.dynamics import body_poses
from jaxmbs.errors import ModelError
from jaxmbs.io.reports import POLICY
from jaxmbs.model import BodyPoses, Model
from jaxmbs.model.given import Vector
from jaxmbs.view.deformed import enlarged, said
from jaxmbs.view.film import film
from jaxmbs.view.glb import Builder
from jaxmbs.view.segments import Segment, of_forces
from jaxmbs.view.shapes import Shapes, scene_of

if TYPE_CHECKING:
    from jaxmbs.simulate import Solution

FILMS = (".gif", ".mp4")
PLOTS = 6  # number of coordinates that are plotted by default
TINTS = ("", "#e45756", "#f2b134", "#54a24b", "#b279a2", "#72b7b2")  # samples after the first have one colour each


def animate(
    model: Model | Mapping[str, Model],
    solution: Solution | Mapping[str, Solution],
    path: str | Path,
    *,
    plots: Mapping[str, Vector] | None = None,
    limits: Mapping[str, Sequence[float]] | None = None,
    forces: bool = False,
    frames: int = 1000,
    shapes: Shapes | None = None,
    over_visuals: bool = False,
    deformation_scale: float = 1.0,
) -> Path:
    """Write a motion as an animation; returns the path of the file.

    path: NAME.html, a self-contained page that plays in any browser without a network (play, scrub, speed, camera,
    events on the timeline, synchronous plots); NAME.glb, binary glTF for other viewers; NAME.gif or, with ffmpeg,
    NAME.mp4, a film of one sample in real time. solution: one instance, or {name: instance} for samples that are drawn
    over one another, the first in the bodies' colours; model: the model of all samples, or {name: model}. plots:
    {"label [unit]": (rows,) or {name: (rows,)}}, None for the first six coordinates that have a unit; limits: {label:
    values} of lines across plots, such as what is allowed; forces: whether the page can show the force elements of the
    first sample as arrows, whose length is in proportion to the force; frames: the largest number of rows that are used.

    Bodies are drawn with their visuals (`Mechanism.add_visual`), those without visuals with their `shapes`, {body:
    [(vertices (n, 3) in its axes, triangles (m, 3)), ...]}, others as the ellipsoids of their inertia. over_visuals: draw
    the `shapes` also over visuals, half transparent. Flexible bodies are drawn deformed: their visuals, or lines between
    their nodes; deformation_scale: factor of their modal coordinates, which the title states. Raises ModelError for
    batches, other file names, plots whose length is not that of the solution, limits without a plot, films with several
    samples or plots, and a scale that is negative or not finite.

    >>> model = mbs.library.double_pendulum().build()
    >>> motion = mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], t_end=1.0, dt=0.01)
    >>> mbs.animate(model, motion, "motion.html").name
    'motion.html'
    """
    path = Path(path)
    if path.suffix not in (".html", ".glb", *FILMS):
        raise ModelError(f"animate: the file name {path.name!r} must end with .html, .glb, .gif or .mp4")
    samples = dict(solution) if isinstance(solution, Mapping) else {"motion": solution}
    models = {name: model[name] if isinstance(model, Mapping) else model for name in samples}
    for name, x in samples.items():
        if np.ndim(x.t) != 1:
            raise ModelError(f"animate: {name!r} is a batch; pass one instance, or {{name: instance}} for several")
    name = next(iter(samples))
    segments = of_forces(models[name], name, samples[name]) if forces and path.suffix == ".html" else ()
    if path.suffix in FILMS:
        if len(samples) > 1 or plots is not None or limits:
            raise ModelError(
                f"animate: {path.suffix[1:].upper()} shows one sample and no plots; {path.stem}.html shows several, "
                "with plots"
            )
        film(models[name], samples[name], path, frames, shapes, over_visuals, deformation_scale)
        return path
    if path.suffix == ".glb":
        path.write_bytes(_glb(models, samples, plots, frames, shapes, over_visuals, deformation_scale, limits))
    else:
        page = moving_page(
            models, samples, plots, frames, shapes, over_visuals, deformation_scale, limits=limits, segments=segments
        )
        path.write_text(page, encoding="utf-8")
    return path


def moving_page(
    models: Mapping[str, Model], samples: Mapping[str, Any], plots: Any = None, frames: int = 1000,
    shapes: Shapes | None = None, over_visuals: bool = False, deformation_scale: float = 1.0, *,
    limits: Mapping[str, Sequence[float]] | None = None, segments: Sequence[Segment] = (),
) -> str:  # fmt: skip
    """The text of the page of `animate`. samples: {name: object with t (rows,), q (rows, nq) and events (None: unknown)};
    segments: lines in the scene, with the same rows; all other arguments: as for `animate`."""
    first = next(iter(models.values()))
    title = f"{first.name}{said(first, deformation_scale, 'animate')}"
    content = _glb(models, samples, plots, frames, shapes, over_visuals, deformation_scale, limits, segments)
    return _page(content, title)


def _glb(
    models: Mapping[str, Model], samples: Mapping[str, Any], plots: Any, frames: int, shapes: Shapes | None,
    over_visuals: bool, deformation_scale: float, limits: Mapping[str, Sequence[float]] | None = None,
    segments: Sequence[Segment] = (),
) -> bytes:  # fmt: skip
    for m in models.values():
        said(m, deformation_scale, "animate")  # refuses a scale that is negative or not finite
    scenes = {name: scene_of(m, shapes, over_visuals) for name, m in models.items()}
    library = {k: v for _, found in scenes.values() for k, v in found.items()}
    first = next(iter(samples.values()))
    rows = {
        n: np.unique(np.linspace(0, len(x.t) - 1, min(frames, len(x.t))).round().astype(int))
        for n, x in samples.items()
    }
    series = _series(models, samples, rows, plots, limits or {})
    extras = {
        "samples": list(samples), "events": _events(models, samples), "plots": series, "end": float(np.asarray(first.t)[-1]),
    }  # fmt: skip
    out = Builder(library, extras)
    out.extras["segments"] = [
        {
            "label": x.label, "kind": x.kind, "sample": list(samples).index(x.sample),
            **{key: out.accessor(getattr(x, key)[rows[x.sample]], "VEC3") for key in ("start", "along")},
        }
        for x in segments
    ]  # fmt: skip
    for k, (name, x) in enumerate(samples.items()):
        model, (drawn, _) = models[name], scenes[name]
        q, t = np.asarray(x.q)[rows[name]], np.asarray(x.t)[rows[name]]
        q = enlarged(model, q, deformation_scale)
        root = out.add(name, extras={"sample": k})
        if k == 0:
            for d in (d for d in drawn if d.body < 0):
                out.shape(d, root, d.color, d.opacity)
        times, (R, p) = out.accessor(t, "SCALAR", bounds=True), _poses(model, q, t)
        for i, body in enumerate(model.body_names):
            node = out.moving(body, root, times, p[:, i], R[:, i])
            for d in (d for d in drawn if d.body == i):
                look = TINTS[k % len(TINTS)] or d.color, d.opacity * (1.0 if k == 0 else 0.6)
                out.shape(d, node, *look, times, None if d.modes is None else q[:, d.modes])
    return out.content()


@jax.jit  # the samples of a study have the same structure, so that they share one program
def _poses_at(model: Model, q: Any, t: Any) -> BodyPoses:
    return jax.vmap(lambda q, t: body_poses(model, q, t=t))(q, t)


def _poses(model: Model, q: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (rows, bodies, 3, 3) and positions (rows, bodies, 3)."""
    found = _poses_at(model, q, t)
    return np.asarray(found.rotation, float), np.asarray(found.position, float)


def _events(models: Mapping[str, Model], samples: Mapping[str, Any]) -> list[dict[str, Any]]:
    out = []
    for name, x in samples.items():
        if x.events is None:
            continue
        for time, index in zip(np.asarray(x.events.time), np.asarray(x.events.index), strict=True):
            if index >= 0:
                out.append({"sample": name, "name": models[name].event_names[index], "time": float(time)})
    return out


def _series(models: Any, samples: Any, rows: Any, plots: Any, limits: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """{times: {sample: values}, series: [{label, lines: {sample: values}, limits}]}, at the rows that are used."""
    first = next(iter(models.values()))
    if plots is None:
        shown = [(k, c) for k, c in enumerate(first.coordinates) if c.unit][:PLOTS]
        plots = {f"{c.name} [{c.unit}]": {n: np.asarray(x.q)[:, k] for n, x in samples.items()} for k, c in shown}
    if lacking := [label for label in limits if label not in plots]:
        raise ModelError(f"animate: limits of {lacking[0]!r}, which is not plotted; there are {', '.join(plots)}")
    out = []
    for label, given in plots.items():
        lines = given if isinstance(given, Mapping) else {next(iter(samples)): given}
        found = {}
        for name, values in lines.items():
            x = np.asarray(values, float)
            if name not in samples or x.shape != np.shape(samples[name].t):
                need = np.shape(samples[name].t) if name in samples else f"one of the samples {list(samples)}"
                raise ModelError(f"animate: plot {label!r}, {name!r}: has shape {x.shape}; needs {need}")
            kept = x[rows[name]]
            found[name] = [float(f"{v:.6g}") if np.isfinite(v) else None for v in kept]
        out.append({"label": label, "lines": found, "limits": [float(x) for x in limits.get(label, ())]})
    times = {n: [float(f"{v:.9g}") for v in np.asarray(x.t, float)[rows[n]]] for n, x in samples.items()}
    return {"times": times, "series": out}


def _page(glb: bytes, title: str) -> str:
    folder = resources.files("jaxmbs.view")
    page, script = ((folder / f"player.{kind}").read_text(encoding="utf-8") for kind in ("html", "js"))
    parts = {"policy": POLICY, "title": escape(title), "glb": base64.b64encode(glb).decode(), "script": script}
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], page)  # one pass: a name may look like a placeholder
