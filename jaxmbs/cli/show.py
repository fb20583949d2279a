"""What the commands print."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.progress import ProgressColumn, Task
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from jaxmbs.io.reference import Key
    from jaxmbs.study import History, Store, Study


class Pace(ProgressColumn):
    """Samples per second and the time left, from the samples of this process."""

    def render(self, task: Task) -> Text:
        if not task.speed or task.total is None:
            return Text("")
        left = (task.total - task.completed) / task.speed
        return Text(f"{task.speed:,.0f}/s" + (f", {left:.0f} s left" if left > 0 else ""), style="cyan")


def described(study: Study) -> RenderableType:
    """A file's content in tables."""
    import jaxmbs as mbs
    from jaxmbs.model.fields import type_name
    from jaxmbs.study.page import described as distribution

    model = study.model
    links = model.structure.links
    mass = sum(float(mbs.get(model, f"{link.body}.mass")) for link in links)
    head = f"{model.name}: {len(links)} bodies, {model.nv} degrees of freedom (nq {model.nq}), {mass:,.6g} kg"
    bodies = _table("bodies", "body", "mass [kg]", "joint", "type", "hangs on", "dof")
    for link in links:
        parent = "world" if link.parent < 0 else links[link.parent].body
        row = (f"{float(mbs.get(model, f'{link.body}.mass')):.6g}", link.name, link.joint.type_name, parent)
        bodies.add_row(link.body, *row, str(link.joint.nv))
    parts: list[RenderableType] = [Text(head, style="bold"), bodies]
    if model.structure.forces:
        forces = _table("forces", "force", "type")
        for f in model.structure.forces:
            forces.add_row(f.name, type(f.element).__name__)
        parts.append(forces)
    if study.dispersions.items:
        varied = _table("dispersions", "dispersion", "distribution", "acts by")
        for d in study.dispersions.items:
            varied.add_row(d.name, distribution(d), d.apply)
        parts.append(varied)
    if study.outputs:
        outputs = _table("outputs", "output", "type", "kept", "unit")
        for name, o in study.outputs.items():
            outputs.add_row(name, type_name(type(o)), o.reduce, study.shown[name].name)
        parts.append(outputs)
    parts += [Text(f"criterion: {c.text}") for c in study.criteria]
    return Group(*parts)


def reference(keys: Iterable[Key]) -> RenderableType:
    """The key reference, a table for each table of a file."""
    parts: list[RenderableType] = []
    for (header, of), rows in itertools.groupby(keys, lambda k: (k.header, k.of)):
        parts += [Text(), Text(header or "at the top, before the first [table]", style="bold"), Text(of)]
        table = _table("", "key", "holds", "unit", "default", "")
        for k in rows:
            cells = (k.name, k.kind, k.unit, "required" if k.default is None else k.default, k.doc)
            table.add_row(*map(Text, cells))  # as text: brackets are no markup
        parts.append(table)
    return Group(*parts)


def one_run(study: Study, history: History, store: Store | None, sample: int | None) -> RenderableType:
    """Outputs of one run, beside what the store has for the same sample."""
    import jaxmbs as mbs

    what = f"sample {sample}" if sample is not None else "nominal motion"
    table = _table(what, "output", "value", *(["in the run"] if store else []), "unit")
    data: Any = store.dataset() if store else None
    for name, unit in study.shown.items():
        x = history.outputs[name]
        stored = [f"{float(data[name][sample]) / unit.factor:.8g}"] if store else []
        table.add_row(name, f"{float(x[0]) / unit.factor:.8g}", *stored, unit.name)
    error = abs(float(history.energy_error[0]))
    end = f"{len(history.t)} times, 0 to {history.t[-1]:g} s; error of the energy balance {error:.2g} J"
    status = mbs.Status(int(history.status[0]))
    said = [] if status == mbs.Status.OK else [Text(status.message, style="red")]
    return Group(*([table] if history.outputs else []), *said, Text(end, style="dim"))


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title or None, title_justify="left", title_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name in ("dof", "mass [kg]", "value", "in the run") else "left")
    return table
