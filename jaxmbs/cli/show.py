"""The tables and progress columns that the commands print."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from jaxmbs.io.reports import printed

if TYPE_CHECKING:
    from rich.progress import ProgressColumn, Task

    from jaxmbs.io.reference import Entry, Key
    from jaxmbs.study import History, Store, Study
    from jaxmbs.study.results.examination import Examination


def pace() -> ProgressColumn:
    """Column of a progress bar: samples per second and the time left. Samples of earlier processes do not count."""
    from rich.progress import ProgressColumn

    class Pace(ProgressColumn):
        def render(self, task: Task) -> Text:
            if not task.speed or task.total is None:
                return Text("")
            left = (task.total - task.completed) / task.speed
            return Text(f"{task.speed:,.0f}/s" + (f", {left:.0f} s left" if left > 0 else ""), style="cyan")

    return Pace()


def reference(keys: Iterable[Key]) -> RenderableType:
    """The key reference, with one printed table for each table of a file."""
    parts: list[RenderableType] = []
    for (header, of), rows in itertools.groupby(keys, lambda k: (k.header, k.of)):
        parts += [Text(), Text(header or "at the top level, before the first [table]", style="bold"), Text(of)]
        cells = [(k.name, k.kind, k.unit, "required" if k.default is None else k.default, k.doc) for k in rows]
        parts.append(printed("", ("key", "holds", "unit", "default", ""), cells))
    return Group(*parts)


def overview(found: Iterable[Entry]) -> RenderableType:
    """The table of contents of the key reference."""
    rows = [(e.table, ", ".join(e.types or e.keys), e.doc) for e in found]
    table = printed("", ("table", "types, or keys", "what it is for"), rows)
    table.columns[0].no_wrap = True
    more = (
        "jaxmbs keys NAME describes a table (mechanism.joints), a type (pusher) or a key (t_end) in full, with units and "
        "defaults; jaxmbs keys all describes everything."
    )
    return Group(table, Text(more))


def one_run(study: Study, history: History, store: Store | None, sample: int | None) -> RenderableType:
    """Outputs of one simulation, next to those of the same sample in the run `store`, if there is one."""
    from jaxmbs.simulate.status import Status

    what = f"sample {sample}" if sample is not None else "nominal motion"
    data = store.outputs(study, [sample]) if store and sample is not None else {}
    rows = []
    for name, unit in study.shown.items():
        both = [history.outputs[name], *([data[name]] if data else [])]
        rows.append((name, *(f"{float(x[0]) / unit.factor:.8g}" for x in both), unit.name))
    values = ("value", *(["in the run"] if store else []))
    table = printed(what, ("output", *values, "unit"), rows, right=values)
    error = abs(float(history.energy_error[0]))
    end = f"{len(history.t)} times, 0 to {history.t[-1]:g} s; error of the energy balance {error:.2g} J"
    said = [] if history.status[0] == Status.OK else [Text(_outcome(study, history), style="red")]
    return Group(*([table] if history.outputs else []), *said, Text(end, style="dim"))


def one_run_document(study: Study, history: History, store: Store | None, sample: int | None) -> dict[str, Any]:
    """The content of `one_run` as plain data."""
    from jaxmbs.simulate.status import Status

    data = store.outputs(study, [sample]) if store and sample is not None else {}
    outputs = {}
    for name, unit in study.shown.items():
        stored = {"in_the_run": float(data[name][0]) / unit.factor} if data else {}
        outputs[name] = {"value": float(history.outputs[name][0]) / unit.factor, "unit": unit.name, **stored}
    status = Status(int(history.status[0]))
    return {
        "study": study.model.name, "sample": sample, "outputs": outputs, "status": status.name.lower(),
        "message": _outcome(study, history), "energy_error": float(history.energy_error[0]), "times": len(history.t),
        "t_end": float(history.t[-1]),
    }  # fmt: skip


def _outcome(study: Study, history: History) -> str:
    from jaxmbs.simulate.status import Status, message

    status = int(history.status[0])
    if status != Status.INCONSISTENT or history.violated is None:
        return Status(status).message
    return message(status, study.model, history.violated[0])


def inventory(found: Examination, trust: bool) -> RenderableType:
    """The findings of `verify`, as lines for the terminal."""
    from jaxmbs.study.folder.shell import command

    again = command("resume", found.folder, trust=trust)
    head = f"{found.folder}: {found.done:,} of {found.samples:,} samples, {found.size / 1e6:,.1f} MB"
    parts: list[RenderableType] = [Text(head, style="bold")]
    parts += [Text(f"restored: {name}", style="yellow") for name in found.repaired]
    parts += [Text(f"being computed by {found.computing}", style="yellow")] if found.computing else []
    parts += [Text(f"damaged: {d}", style="red") for d in found.damage]
    if not found.sound:
        samples = any(d.stop > d.first or "metadata" in d.what for d in found.damage)
        remedy = f"{again} recomputes what is damaged" if samples else ""
        parts += [Text(remedy)] if remedy else []
    else:
        said = f", fingerprint {found.fingerprint}" if found.fingerprint else ""
        sealed = ", sealed with this key" if found.sealed else ""
        parts.append(Text(f"every stored number is the one that was computed{sealed}{said}", style="green"))
        if found.done < found.samples and not found.computing:
            parts.append(Text(f"{again} computes the rest", style="yellow"))
    return Group(*parts)
