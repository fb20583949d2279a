"""A solution as a labelled data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.model import Model, ModelError

if TYPE_CHECKING:
    import xarray

    from jaxmbs.simulate.solution import Solution


def dataset(solution: Solution, model: Model) -> xarray.Dataset:
    """See `Solution.to_xarray`."""
    try:
        import xarray
    except ImportError as error:
        raise ModelError("to_xarray needs the package xarray; pip install 'jaxmbs[study]'") from error
    from jaxmbs.simulate.status import Status

    if np.shape(solution.q)[-1] != model.nq:
        raise ModelError(
            f"to_xarray: the solution has nq = {np.shape(solution.q)[-1]}, but model {model.name!r} has nq = {model.nq}"
        )
    axes = np.ndim(solution.status)
    batch = ("sample",) if axes == 1 else tuple(f"sample_{k}" for k in range(axes))
    found: dict[str, Any] = {}

    def add(name: str, dims: tuple[str, ...], x: Any, unit: str = "", said: str = "") -> None:
        attributes = {"units": unit or "1"} | ({"long_name": said} if said else {})
        found[name] = ((*batch, *dims), np.asarray(x), attributes)

    for components, x in ((model.coordinates, solution.q), (model.speeds, solution.v)):
        for k, c in enumerate(components):
            add(c.name, ("time",), np.asarray(x)[..., k], c.unit)
    for p in model.structure.states:
        size = p.shape[0] if p.shape else 0
        for k in range(max(size, 1)):
            own = np.asarray(solution.states[p.name])
            add(f"{p.name}.{k}" if size else p.name, ("time",), own[..., k] if size else own, p.unit)
    add("energy_error", ("time",), solution.energy_error, "J", "energy beyond work, losses and initial energy")
    labels: dict[str, Any] = {}
    add("energy_exchanged", (), solution.energy_exchanged, "J", "energy converted between its forms, and work")
    add(
        "constraint_error",
        ("time",),
        solution.constraint_error,
        "m, rad, m/s, rad/s",
        ("largest residual of the constraints"),
    )
    add("conditioning", ("time",), solution.conditioning, "", "smallest pivot over the largest diagonal entry")
    if model.constraint_names:
        add(
            "violated",
            ("constraint",),
            solution.violated,
            "",
            "constraints violated by the initial state, or by the state at an event that switches them on",
        )
        labels["constraint"] = list(model.constraint_names)
    add("steps_taken", (), solution.steps.taken)
    add("steps_refused", (), solution.steps.refused)
    add("status", (), solution.status)
    found["status"][2].update(
        flag_values=[int(s) for s in Status], flag_meanings=" ".join(s.name.lower() for s in Status)
    )
    if model.event_names:
        events = solution.events
        names = np.array([*model.event_names, ""])  # index -1 (unused) picks the empty name
        add("event", ("event_number",), names[np.asarray(events.index)], "", "events in their order")
        add("event_time", ("event_number",), events.time, "s")
        add("event_energy_lost", ("event_number",), events.energy_lost, "J")
    if solution.mode is not None:
        parts = {
            "locked": ("freedom", [c.name for c in model.speeds], solution.mode.lock),
            "acting": ("force_element", list(model.force_names), solution.mode.force),
            "holding": ("constraint", list(model.constraint_names), solution.mode.constraint),
        }
        for name, (dim, own, x) in parts.items():
            if own:
                add(name, (dim,), x, "", f"{dim.replace('_', ' ')} at the end")
                labels[dim] = own
    t = np.asarray(solution.t)
    rows = t.reshape(-1, t.shape[-1])
    same = bool((rows == rows[0]).all())
    time = ("time", rows[0]) if same else ((*batch, "time"), t)
    labels["time" if same else "t"] = (*time, {"units": "s"})
    return xarray.Dataset(found, coords=labels, attrs={"mechanism": model.name})
