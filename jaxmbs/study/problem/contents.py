"""The content of a study's file as plain data: everything in it, with the numbers of the model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.dynamics.constrained.order import equations_text
from jaxmbs.io.save import plain
from jaxmbs.model import get
from jaxmbs.model.events.base import Arming
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import declared, type_name
from jaxmbs.spatial import Matrix3
from jaxmbs.spatial.rotations import to_quaternion
from jaxmbs.study.outputs.base import INSTANTS
from jaxmbs.study.problem import instants
from jaxmbs.study.problem.words import described as distribution

if TYPE_CHECKING:
    from jaxmbs.model.structure import Event
    from jaxmbs.study.problem.study import Study


def contents(study: Study) -> dict[str, Any]:
    """The content of a study's file as plain data, in SI units unless a unit is given with the numbers."""
    model = study.model
    s, number = model.structure, _Numbers(model)
    bodies = [
        {"name": k.body, "mass": number(f"{k.body}.mass"), "com": number(f"{k.body}.com"),
         "inertia": number(f"{k.body}.inertia")}
        for k in s.links
    ]  # fmt: skip
    joints = [
        {"name": k.name, "type": type_name(type(k.joint)), "parent": "world" if k.parent < 0 else s.links[k.parent].body,
         "child": k.body, "dof": k.joint.nv, "held": k.name in s.held, "q": study.q0[model.q_slice(k.name)].tolist(),
         "v": study.v0[model.v_slice(k.name)].tolist(),
         **dict(_fields(k.joint, k.name, number)),
         **{f"{side}_pose": _pose(f"{k.name}.{side}_pose", number) for side in ("parent", "child")}}
        for k in s.links
    ]  # fmt: skip
    others = ("forces", "loops", "constraints")
    return {
        "name": model.name, "bodies": bodies, "joints": joints, "nq": model.nq, "nv": model.nv,
        "mass": float(sum(b["mass"] for b in bodies)), "gravity": number("gravity"),
        "equations": equations_text(s),
        **{key: [_element(x, number) for x in getattr(s, key, ())] for key in others},
        "events": [_event(e, number) for e in s.events],
        "simulation": study.simulation.model_dump(exclude_none=True), "seed": study.seed,
        "dispersions": [
            {"name": d.name, "target": d.target.name, "apply": d.apply, "distribution": distribution(d),
             "nominal": np.asarray(d.target.nominal).tolist()}
            for d in study.dispersions.items
        ],
        "correlations": [
            {"draws": list(t.draws), "kind": t.kind, "matrix": [list(row) for row in t.matrix]}
            for t in study.dispersions.correlations
        ],
        "outputs": [
            {"name": name, "type": type_name(type(o)), "reduce": o.reduce, "unit": study.shown[name].name,
             "quantity": study.quantities[name], "of": _subject(o),
             **{key.rstrip("_"): instants.said(at) for key in INSTANTS if (at := getattr(o, key)) is not None}}
            for name, o in study.outputs.items()
        ],
        "criteria": [c.text for c in study.criteria], "warnings": study.warnings,
    }  # fmt: skip


def _subject(output: Any) -> str:
    """What an output looks at, as text: "disc on payload, tube on stage, inside"."""
    found, usual = [], type(output).__dataclass_fields__
    for d in declared(type(output)):
        value = getattr(output, d.name)
        if (
            d.name in ("reduce", "unit", "limit", *INSTANTS)
            or said(value) == said(usual[d.name].default)
            or value is None
        ):
            continue
        if d.kind is Kind.PART:
            found.append(
                f"{type_name(type(value))} on {value.body}" if hasattr(value, "body") else type_name(type(value))
            )
        elif value is True:
            found.append(d.name)
        elif np.ndim(value) < 2:
            found.append(f"{d.name} {said(value)}")
    return ", ".join(found).replace("_", " ")


class _Numbers:
    """Numbers of a model by name; None for a name that the model does not have."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, name: str) -> Any:
        return np.asarray(get(self.model, name), float).tolist() if name in self.model.parameter_names else None


def _element(x: Any, number: _Numbers) -> dict[str, Any]:
    made = getattr(x, "element", None) or getattr(x, "joint", None) or x
    found: dict[str, Any] = {"name": getattr(x, "name", ""), "type": type_name(type(made))}
    if hasattr(x, "body_a") and hasattr(x, "body_b"):
        found |= {"body_a": x.body_a, "body_b": x.body_b}
    poses = {key: _pose(f"{found['name']}.{key}", number) for key in ("pose_a", "pose_b")}
    return found | {k: x for k, x in poses.items() if x} | dict(_fields(made, found["name"], number))


def _event(e: Event, number: _Numbers) -> dict[str, Any]:
    """An event as plain data: its condition, its actions with their joints and elements, and what arms it."""
    when = {"type": type_name(type(e.when)), **dict(_fields(e.when, e.name, number))}
    then = [{"type": type_name(type(a)), **dict(_fields(a, e.prefix(a), number))} for a in e.then]
    armed = {"after": e.after} if e.after is not None else {}
    armed |= {d.name: number(f"{e.name}.{d.name}") for d in declared(Arming)} if e.waits else {}
    return {"name": e.name, "when": when, "then": then, "repeat": e.repeat, **armed}


def _pose(name: str, number: _Numbers) -> dict[str, Any] | None:
    """Position [m] and quaternion of a frame in its body; None if there is no such frame."""
    position, rotation = (number(f"{name}.{key}") for key in ("position", "rotation"))
    if position is None or rotation is None:
        return None
    quaternion = to_quaternion(Matrix3.of([x for row in rotation for x in row]))
    return {"position": position, "rotation": [float(x) for x in quaternion]}


def _fields(x: Any, prefix: str, number: _Numbers) -> Any:
    for d in declared(type(x)) if hasattr(type(x), "__dataclass_fields__") else ():
        if d.kind is Kind.PART:
            part = getattr(x, d.name)
            yield d.name, {"type": type_name(type(part)), **dict(_fields(part, f"{prefix}.{d.name}", number))}
        elif d.kind is Kind.FIXED_PART:
            part = getattr(x, d.name)
            yield d.name, {"type": type_name(type(part)), **plain(part)}
        elif d.kind is Kind.NUMBERS:
            yield from ((name, number(f"{prefix}.{name}")) for name, _ in getattr(x, d.name))
        elif d.kind.is_number:
            value = number(f"{prefix}.{d.name}")
            if value is not None:
                yield d.name, value
        elif (value := getattr(x, d.name)) is not None:
            if d.kind is Kind.FUNCTIONS:
                value = [getattr(fn, "__name__", "a function") for fn in value]
            yield d.name, getattr(value, "__name__", "a function") if d.kind is Kind.FUNCTION else value


# --- as text ----------------------------------------------------------------------------------------------------------


def pose_said(pose: Mapping[str, Any] | None) -> str:
    """A frame in its body, as text: "at (1, 0, 0) m, turned 90 deg about (0, 0, 1)"; "" for the body's own frame."""
    if pose is None:
        return ""
    w, *axis = pose["rotation"]
    size = math.hypot(*axis)
    angle = math.degrees(2 * math.atan2(size, abs(w)))
    parts = [f"at {said(pose['position'])} m"] if any(pose["position"]) else []
    if angle > 1e-9:
        around = [round(math.copysign(1.0, w) * x / size, 9) + 0.0 for x in axis]
        parts.append(f"turned {angle:.6g} deg about {said(around)}")
    return ", ".join(parts)


def joint_said(joint: Mapping[str, Any]) -> str:
    """A joint's type and directions, as text: "revolute (0, 0, 1)"."""
    return " ".join([joint["type"], *(said(joint[key]) for key in ("axis", "axis_1", "axis_2") if key in joint)])


def condition_said(event: Mapping[str, Any]) -> str:
    """What an event waits for, as text: "joint_reaches hinge, value 1.5, direction up, after go"."""
    armed = [f"after {event['after']}"] if "after" in event else []
    armed += [f"not before {event['armed_from']:g} s"] if "armed_from" in event else []
    return ", ".join([element_said(event["when"]), *armed, *(["each time"] if event["repeat"] else [])])


def element_said(x: Mapping[str, Any]) -> str:
    """A condition or an action as text, with the names in it first: "lock hinge, restitution 0"."""
    named = [str(x[key]) for key in ("joint", "name", "element") if key in x]
    rest = [f"{k} {said(y)}" for k, y in x.items() if k not in ("type", "joint", "name", "element")]
    return ", ".join([" ".join([x["type"], *named]), *rest])


def reduction_said(output: Mapping[str, Any]) -> str:
    """How the history of an output becomes one number, as text: "min, from event release"."""
    return ", ".join(
        [output["reduce"], *(f"{key} {output[key]}" for key in ("when", "from", "until") if key in output)]
    )


def said(x: Any) -> str:
    """Numbers, lists of them and tables as text; diagonal matrices by their diagonals."""
    if isinstance(x, dict):
        return ", ".join(f"{k} {said(y)}" for k, y in x.items())
    if isinstance(x, (list, tuple)):
        if len(x) == 3 and np.ndim(x) == 2 and not np.any(np.asarray(x) - np.diag(np.diag(x))):
            x = np.diag(x)
        return "(" + ", ".join(said(y) for y in x) + ")"
    return f"{x:g}" if isinstance(x, float) else str(x)
