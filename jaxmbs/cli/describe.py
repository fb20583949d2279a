"""What `info` says of a file: everything that stands in it, numbers as the model has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from jaxmbs.model.fields import declared, type_name
from jaxmbs.model.kinds import Kind

if TYPE_CHECKING:
    from jaxmbs.study import Study


def document(study: Study) -> dict[str, Any]:
    """A file's content as plain data; SI units but where a unit stands beside."""
    from jaxmbs.dynamics.constrained.order import equations_text
    from jaxmbs.study.words import described as distribution

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
         "v": study.v0[model.v_slice(k.name)].tolist()}
        for k in s.links
    ]  # fmt: skip
    others = ("forces", "loops", "constraints", "events")
    return {
        "name": model.name, "bodies": bodies, "joints": joints, "nq": model.nq, "nv": model.nv,
        "mass": float(sum(b["mass"] for b in bodies)), "gravity": number("gravity"),
        "equations": equations_text(s),
        **{key: [_element(x, number) for x in getattr(s, key, ())] for key in others},
        "simulation": study.simulation.model_dump(exclude_none=True), "seed": study.seed,
        "dispersions": [
            {"name": d.name, "target": d.target.name, "apply": d.apply, "distribution": distribution(d),
             "nominal": np.asarray(d.target.nominal).tolist()}
            for d in study.dispersions.items
        ],
        "outputs": [
            {"name": name, "type": type_name(type(o)), "reduce": o.reduce, "unit": study.shown[name].name,
             "quantity": study.quantities[name]}
            for name, o in study.outputs.items()
        ],
        "criteria": [c.text for c in study.criteria], "warnings": study.warnings,
    }  # fmt: skip


class _Numbers:
    """The numbers of a model by name."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, name: str) -> Any:
        from jaxmbs.model import get

        return np.asarray(get(self.model, name), float).tolist() if name in self.model.parameter_names else None


def _element(x: Any, number: _Numbers) -> dict[str, Any]:
    made = getattr(x, "element", None) or getattr(x, "joint", None) or x
    found: dict[str, Any] = {"name": getattr(x, "name", ""), "type": type_name(type(made))}
    if hasattr(x, "when"):
        found |= {"when": type_name(type(x.when)), "then": [type_name(type(a)) for a in x.then]}
        made = x.when
    if hasattr(x, "body_a") and hasattr(x, "body_b"):
        found |= {"body_a": x.body_a, "body_b": x.body_b}
    return found | dict(_fields(made, found["name"], number))


def _fields(x: Any, prefix: str, number: _Numbers) -> Any:
    for d in declared(type(x)) if hasattr(type(x), "__dataclass_fields__") else ():
        if d.kind is Kind.PART:
            part = getattr(x, d.name)
            yield d.name, {"type": type_name(type(part)), **dict(_fields(part, f"{prefix}.{d.name}", number))}
        elif d.kind.is_number:
            value = number(f"{prefix}.{d.name}")
            if value is not None:
                yield d.name, value
        elif getattr(x, d.name) is not None:
            value = getattr(x, d.name)
            yield d.name, getattr(value, "__name__", "a function") if d.kind is Kind.FUNCTION else value


def described(study: Study) -> RenderableType:
    """The same in tables."""
    found = document(study)
    size = f"{_count(len(found['bodies']), 'body', 'bodies')}, {_count(found['nv'], 'degree', 'degrees')} of freedom"
    head = f"{found['name']}: {size} (nq {found['nq']}), "
    gravity = f"gravity {_said(found['gravity'])} m/s2"
    parts: list[RenderableType] = [Text(f"{head}{found['mass']:,.6g} kg, {gravity}", style="bold")]
    if found["equations"]:
        parts.append(Text(found["equations"]))
    bodies = [(b["name"], _said(b["mass"]), _said(b["com"]), _said(b["inertia"])) for b in found["bodies"]]
    parts.append(_table("bodies", ("body", "mass [kg]", "com [m]", "inertia [kg m2]"), bodies))
    joints = [
        (
            j["name"],
            j["type"],
            j["parent"],
            j["child"],
            str(j["dof"]),
            _said(j["q"]),
            _said(j["v"]) + j["held"] * " held",
        )
        for j in found["joints"]
    ]
    parts.append(_table("joints", ("joint", "type", "parent", "child", "dof", "q at t = 0", "v"), joints))
    for key in ("loops", "forces", "constraints", "events"):
        rows = [
            (x["name"], x["type"], ", ".join(f"{k} {_said(y)}" for k, y in x.items() if k not in ("name", "type")))
            for x in found[key]
        ]
        parts += [_table(key, (key.removesuffix("s"), "type", "numbers (SI)"), rows)] if rows else []
    if found["dispersions"]:
        rows = [(d["name"], d["distribution"], d["apply"], _said(d["nominal"])) for d in found["dispersions"]]
        parts.append(_table("dispersions", ("dispersion", "distribution", "acts by", "nominal (SI)"), rows))
    if found["outputs"]:
        rows = [(o["name"], o["type"], o["reduce"], o["unit"]) for o in found["outputs"]]
        parts.append(_table("outputs", ("output", "type", "kept", "unit"), rows))
    parts += [Text(f"criterion: {text}") for text in found["criteria"]]
    time = found["simulation"]
    parts.append(
        Text(
            f"simulation: 0 to {time['t_end']:g} s by steps of {time['dt']:g} s ({time['method']}); seed {found['seed']}"
        )
    )
    return Group(*parts)


def _count(n: int, one: str, several: str) -> str:
    return f"{n} {one if n == 1 else several}"


def _said(x: Any) -> str:
    if isinstance(x, dict):
        return ", ".join(f"{k} {_said(y)}" for k, y in x.items())
    if isinstance(x, (list, tuple)):
        if len(x) == 3 and np.ndim(x) == 2 and not np.any(np.asarray(x) - np.diag(np.diag(x))):
            x = np.diag(x)
        return "(" + ", ".join(_said(y) for y in x) + ")"
    return f"{x:g}" if isinstance(x, float) else str(x)


def _table(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name in ("dof", "mass [kg]") else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
