"""The tables that `jaxmbs info` prints of a file: all of its content, with the numbers of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from jaxmbs.io.reports import printed
from jaxmbs.study.problem.contents import (
    condition_said,
    contents,
    element_said,
    joint_said,
    pose_said,
    reduction_said,
    said,
)

if TYPE_CHECKING:
    from jaxmbs.study import Study


def described(study: Study) -> RenderableType:
    """The content of a file (`contents`) in tables."""
    found = contents(study)
    size = f"{_count(len(found['bodies']), 'body', 'bodies')}, {_count(found['nv'], 'degree', 'degrees')} of freedom"
    head = f"{found['name']}: {size} (nq {found['nq']}), "
    gravity = f"gravity {said(found['gravity'])} m/s2"
    parts: list[RenderableType] = [Text(f"{head}{found['mass']:,.6g} kg, {gravity}", style="bold")]
    if found["equations"]:
        parts.append(Text(found["equations"]))
    bodies = [(b["name"], said(b["mass"]), said(b["com"]), said(b["inertia"])) for b in found["bodies"]]
    parts.append(printed("bodies", ("body", "mass [kg]", "com [m]", "inertia [kg m2]"), bodies, ("mass [kg]",)))
    joints = [
        (
            j["name"],
            joint_said(j),
            j["parent"],
            j["child"],
            str(j["dof"]),
            said(j["q"]),
            said(j["v"]) + j["held"] * " held",
        )
        for j in found["joints"]
    ]
    columns = ("joint", "type", "parent", "child", "dof", "q at t = 0", "v")
    parts.append(printed("joints", columns, joints, ("dof",)))
    placed = [(j["name"], *(pose_said(j[f"{side}_pose"]) for side in ("parent", "child"))) for j in found["joints"]]
    placed = [row for row in placed if any(row[1:])]
    parts += [printed("frames of joints", ("joint", "in the parent", "in the child"), placed)] if placed else []
    loops = [
        (x["name"], joint_said(x), x["body_a"], pose_said(x["pose_a"]), x["body_b"], pose_said(x["pose_b"]))
        for x in found["loops"]
    ]
    columns = ("loop", "type", "body a", "frame in a", "body b", "frame in b")
    parts += [printed("loops", columns, loops)] if loops else []
    for key in ("forces", "constraints"):
        rows = [
            (x["name"], x["type"], ", ".join(f"{k} {said(y)}" for k, y in x.items() if k not in ("name", "type")))
            for x in found[key]
        ]
        parts += [printed(key, (key.removesuffix("s"), "type", "numbers (SI)"), rows)] if rows else []
    events = [(e["name"], condition_said(e), "; ".join(map(element_said, e["then"]))) for e in found["events"]]
    parts += [printed("events", ("event", "when", "then"), events)] if events else []
    if found["dispersions"]:
        rows = [(d["name"], d["distribution"], d["apply"], said(d["nominal"])) for d in found["dispersions"]]
        parts.append(printed("dispersions", ("dispersion", "distribution", "acts by", "nominal (SI)"), rows))
    if found["correlations"]:
        rows = [(", ".join(c["draws"]), c["kind"], said(c["matrix"])) for c in found["correlations"]]
        parts.append(printed("correlations", ("correlated draws", "of", "matrix"), rows))
    if found["outputs"]:
        rows = [(o["name"], o["type"], reduction_said(o), o["unit"]) for o in found["outputs"]]
        parts.append(printed("outputs", ("output", "type", "kept", "unit"), rows))
    parts += [Text(f"criterion: {text}") for text in found["criteria"]]
    time = found["simulation"]
    parts.append(
        Text(
            f"simulation: 0 to {time['t_end']:g} s in steps of {time['dt']:g} s ({time['method']}); seed {found['seed']}"
        )
    )
    return Group(*parts)


def _count(n: int, one: str, several: str) -> str:
    return f"{n} {one if n == 1 else several}"
