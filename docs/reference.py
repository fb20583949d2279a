"""Pages that are generated from the code: keys of files, commands, functions and classes, equations, benchmarks."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
import itertools
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
ROOMS = {  # pages of the API: title, and the modules whose public names they show
    "model": ("Mechanisms and models", ("jaxmbs.building", "jaxmbs.model")),
    "joints": ("Joints", ("jaxmbs.model.joints",)),
    "forces": ("Force elements", ("jaxmbs.model.forces",)),
    "constraints": ("Constraints", ("jaxmbs.model.constraints",)),
    "control": ("Sensors and controllers", ("jaxmbs.model.control",)),
    "events": ("Events", ("jaxmbs.model.events",)),
    "dynamics": ("Dynamics", ("jaxmbs.dynamics",)),
    "simulate": ("Simulation", ("jaxmbs.simulate", "jaxmbs.batching")),
    "stability": ("Rest and small motions", ("jaxmbs.stability",)),
    "files": ("Files and pictures", ("jaxmbs.io", "jaxmbs.exporting", "jaxmbs.view")),
    "study": ("Studies", ("jaxmbs.study.public",)),
    "design": ("Synthesis", ("jaxmbs.design",)),
    "absolute": ("Absolute coordinates", ("jaxmbs.absolute",)),
    "textbook": ("Formulations of the literature", ("jaxmbs.textbook",)),
    "library": ("Library of mechanisms", ("jaxmbs.library",)),
    "elements": ("Elements of your own", ("jaxmbs.elements",)),
}
WHOLE = (
    "jaxmbs.design",
    "jaxmbs.library",
    "jaxmbs.elements",
    "jaxmbs.study.public",
    "jaxmbs.absolute",
    "jaxmbs.textbook",
)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(x.replace("|", r"\|") for x in row) + " |" for row in lines) + "\n"


# --- keys and commands ------------------------------------------------------------------------------------------------


def keys() -> str:
    """Every key of a file, table by table."""
    from jaxmbs.design.file import file_table
    from jaxmbs.io.reference import keys as all_of

    out = [
        "# Keys of a file\n",
        "`jaxmbs keys PATH` shows a part of this in the terminal. A function is "
        '[named](../tutorials/6-files.md#functions-of-yours): `fn = "my_functions.drag"`.\n',
    ]
    for (path, header, of), found in itertools.groupby(
        all_of(file_table()), key=lambda k: (k.path.rpartition(".")[0], k.header, k.of)
    ):
        rows = [
            (f"`{k.name}`", escaped(k.kind), escaped(k.unit), "required" if k.default is None else code(k.default),
             escaped(k.doc)) for k in found
        ]  # fmt: skip
        title = path or "top level"
        out += [f"## {title}\n", *([f"`{header}`\n"] if header else []), f"{escaped(of)}\n"]
        out.append(table(("key", "holds", "unit", "default", "what"), rows))
    return "\n".join(out)


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def commands() -> str:
    """What `--help` prints for every command."""
    import click
    import typer

    from jaxmbs.cli.app import app

    group: Any = typer.main.get_command(app)
    out = ["# Commands\n", "`jaxmbs COMMAND --help` prints this, too.\n", f"```text\n{group.help.strip()}\n```\n"]
    for name, command in group.commands.items():
        context = click.Context(command, info_name=f"jaxmbs {name}", max_content_width=100, terminal_width=100)
        said = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
        out.append(f"## jaxmbs {name}\n\n```text\n{said}\n```\n")
    return "\n".join(out)


# --- the API ----------------------------------------------------------------------------------------------------------


@functools.cache
def sources_of_names() -> dict[str, str]:
    """{public name of jaxmbs: the package that `jaxmbs/public.py` takes it from}."""
    found: dict[str, str] = {}
    for node in ast.parse((ROOT / "jaxmbs" / "public.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            names, package = [a.name for a in node.names], node.module
            if names == ["*"]:
                names, package = _names(importlib.import_module(node.module)), node.module.rpartition(".")[0]
            found |= dict.fromkeys(names, package)
    return found


def api_pages() -> dict[str, Callable[[], str]]:
    return {room: functools.partial(api, room) for room in ROOMS}


def api(room: str) -> str:
    """The functions and classes of a room: signature, docstring, methods."""
    title, modules = ROOMS[room]
    out = [f"# {title}\n"]
    for module in modules:
        top = importlib.import_module("jaxmbs" if module not in WHOLE else module)
        prefix = "mbs" if module not in WHOLE else module.replace("jaxmbs", "mbs", 1).removesuffix(".public")
        if module in ("jaxmbs.design", "jaxmbs.library", "jaxmbs.elements", "jaxmbs.textbook"):
            out.append(prose(inspect.getdoc(top) or ""))
        if module == "jaxmbs.elements":
            prefix = "jaxmbs.elements"
        named = [n for n, m in sources_of_names().items() if m == module] if module not in WHOLE else _names(top)
        for name in named:
            x = getattr(top, name)
            if inspect.isclass(x) or inspect.isfunction(x):
                out.append(entry(f"{prefix}.{name}", x))
    return "\n".join(out)


def _names(module: Any) -> list[str]:
    return [n for n in vars(module) if not n.startswith("_")]


def entry(name: str, x: Any) -> str:
    """One function or class, with its methods."""
    out = [f"## {name}\n", signature(name, x), prose(inspect.getdoc(x) or "")]
    if inspect.isclass(x):
        held = {f.name for f in dataclasses.fields(x)} if dataclasses.is_dataclass(x) else set()
        for method, y in vars(x).items():
            inherited = any(hasattr(base, method) for base in x.__mro__[1:])
            said = inspect.getdoc(getattr(x, method, None))
            if method.startswith("_") or method in held or inherited or not said:
                continue
            if inspect.isfunction(y) or isinstance(y, (property, staticmethod, classmethod)):
                shown = "" if isinstance(y, property) else signature(f"{name}.{method}", getattr(x, method))
                out += [f"### {name.rpartition('.')[2]}.{method}\n", shown, prose(said)]
    return "\n".join(out)


def signature(name: str, x: Any) -> str:
    """The call as a code block, with one parameter per line if it is long."""
    try:
        found = inspect.signature(x)
    except ValueError:  # enumerations and errors have none
        return ""
    parts, star = [], False
    for p in found.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        if p.name not in ("self", "cls") and not p.name.startswith("_"):
            parts.append(plain(str(p)))
    back = (
        "" if found.return_annotation in (inspect.Signature.empty, None, "None") else f" -> {found.return_annotation}"
    )
    line = f"{name}({', '.join(parts)}){plain(back)}"
    if len(line) > 100:
        line = f"{name}(\n" + "".join(f"    {p},\n" for p in parts) + f"){plain(back)}"
    return f"```python\n{line}\n```\n"


def plain(text: str) -> str:
    """A parameter as it is written, without the quotes of postponed annotations."""
    text = re.sub(r"ForwardRef\((['\"])(.*?)\1\)", r"\2", text)
    text = re.sub(r"<(?:[^<>]|<\w+>)* at 0x[0-9a-f]+>", "...", text)
    text = re.sub(r"Pose\(position=\(0\.0, 0\.0, 0\.0\), rotation=\(1\.0, 0\.0, 0\.0, 0\.0\)\)", "Pose()", text)
    name, colon, rest = text.partition(": ")
    text = (
        name + colon + re.sub(r"^(['\"])(.*?)\1(?= = |$)", r"\2", rest) if colon else re.sub(r"'([^']*)'$", r"\1", text)
    )
    return re.sub(r"\[jax\.Array, ' ?([^']*)'\]", r'[jax.Array, "\1"]', text)  # a shape


def escaped(text: str) -> str:
    return re.sub(r"([*_\[\]])", r"\\\1", text).replace("<", "&lt;")


def prose(text: str) -> str:
    """A docstring as Markdown: examples become code, lines "name: what it is" a list."""
    out = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        if lines and lines[0].startswith(">>> "):
            out.append("```pycon\n" + block + "\n```")
        elif lines and all(x.startswith("    ") for x in lines):
            out.append("```python\n" + inspect.cleandoc(block) + "\n```")
        elif len(lines) > 1 and all(re.match(r"[\w, ]+( \[[^]]*\])?: ", x) for x in lines):
            out.append("\n".join("- " + _escaped_apart_from_code(x) for x in lines))
        else:
            out.append(_escaped_apart_from_code(block))
    return "\n\n".join(out) + "\n"


def _escaped_apart_from_code(text: str) -> str:
    return "".join(x if k % 2 else escaped(x) for k, x in enumerate(re.split(r"(`[^`]*`)", text)))


# --- equations --------------------------------------------------------------------------------------------------------

CITED = re.compile(r"\[((?:Y|T|W|Wi|K)(?: (?:Introduction|fig\.|table|\(?\d)[^]\[]*)?)\]")


def equations() -> str:
    """Which file contains which equation, from the references in docstrings and comments."""
    found: dict[str, dict[str, set[str]]] = {}
    for path in sorted((ROOT / "jaxmbs").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for where, text in cited_in(path.read_text(encoding="utf-8")):
            for cited in citations(text):
                found.setdefault(cited, {}).setdefault(name, set()).add(where)
    rows = []
    for cited in sorted(found, key=_order):
        places = (f"[{n.removeprefix('jaxmbs/')}](../../{n}): " + ", ".join(sorted(w)) for n, w in found[cited].items())
        rows.append((cited, "; ".join(places)))
    head = (
        "# Equations and their files\n\nRead off the references in the code. "
        "The letters are [the sources](../theory/index.md#sources); a number is that of an equation or a section.\n\n"
    )
    return head + table(("equation", "file: function or class"), rows)


def citations(text: str) -> list[str]:
    """The places that a text refers to: "[Y 3.86, 3.170; W 3.1]" refers to three."""
    out = []
    for match in CITED.findall(" ".join(text.split())):
        letter = ""
        for part in re.split(r"[;,] ", match):
            named = re.search(r"(?:^|\b)(Y|T|Wi|W|K)(?: |$)(.*)", part)
            letter, place = (named[1], named[2]) if named else (letter, part)
            place = (re.match(r"(?:fig\. |table )?\(?[\d.]+(?:-[\d.]+)?\)?|Introduction|", place) or [""])[0]
            out.append(f"{letter} {place}".strip())
    return out


def cited_in(text: str) -> list[tuple[str, str]]:
    """(function or class, its text) for all of a file; "whole file" for the text outside of these."""
    lines, tree, out = text.splitlines(), ast.parse(text), []
    rest = list(lines)
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            out.append((f"`{node.name}`", "\n".join(lines[first:last])))
            rest[first:last] = [""] * (last - first)
    return [*out, ("whole file", "\n".join(rest))]


def _order(cited: str) -> tuple[int, list[int], str]:
    letter, _, place = cited.partition(" ")
    return "YTWK".index(letter[0]) * 10 + len(letter), [int(x) for x in re.findall(r"\d+", place)], place


# --- benchmarks -------------------------------------------------------------------------------------------------------


def benchmarks() -> str:
    """The saved results, machine by machine."""
    out = [
        "# Benchmarks\n",
        "ns per evaluation, medians; a ratio above 1 says that jaxmbs is faster. All of one row ran in one process, in "
        "turns, on the same inputs, and the results were compared: the error is the largest difference, relative. "
        "[How fast](../performance.md) says what to expect and how to use it; `make bench` measures this machine.\n",
    ]
    folder = ROOT / "benchmarks" / "results"
    for path in sorted(folder.glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        kept.pop("made_from", None)  # identifies the measured code, for a test, not for readers
        if path.stem in _STATISTICS:
            machine = kept.pop("machine", None)  # that of early tables is not known
            out += _STATISTICS[path.stem](kept) + ([f"{_machine(machine)}. {_versions(machine)}\n"] if machine else [])
            continue
        if "rows" not in kept or path.stem.startswith("beside-mjx"):  # which the page on GPUs shows
            continue
        if path.stem == "loops":
            out += ["## Rows of four-bar windows\n", table(_WINDOWS, (_windows(r) for r in kept["rows"]))]
            out += ["The last three: a motion of half a second to 1e-6 rad, milliseconds of the processor.\n"]
            continue
        m = kept["machine"]
        out += [f"## {_machine(m)}\n", f"{_versions(m)}\n"]
        if "peaks" in m:
            out.append(_peaks(m["peaks"]))
        if path.with_suffix(".png").exists():
            out.append(f"![Forward dynamics per second](../../benchmarks/results/{path.stem}.png)\n")
        out.append(table(("function", "robot", "precision", "batch", "jaxmbs ns", "limit, ns", "reached",
                          "others: ns (ratio)", "first call", "error"), (_benchmark(r) for r in kept["rows"])))  # fmt: skip
    out += [
        "On a GPU, these are calls one at a time; [what kernels take](../../benchmarks/gpu.md) is a page of its own.\n"
    ]
    out += [
        "## Who takes part\n",
        (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8").split("## Who takes part\n\n")[1],
    ]
    out += ["## Integrators\n", "![Error against evaluations](../../benchmarks/results/work-precision.png)\n"]
    out.append("[Which method](../../jaxmbs/simulate/README.md) explains the picture.\n")
    return "\n".join(out)


def _machine(m: dict[str, Any]) -> str:
    return f"{m['cpu']}, {m['cores']} cores, {m['device']}"


def _versions(m: dict[str, Any]) -> str:
    """The date of a measurement and what was installed."""
    return f"{m['date']}, Python {m['python']}, {', '.join(f'{k} {v}' for k, v in m['versions'].items())}."


def _separation(kept: dict[str, Any]) -> list[str]:
    head = ("", "samples per second", "per second of one core", "error of the speed")
    rows = ((n, f"{r['per_second']:,.0f}", f"{r['per_cpu_second']:,.0f}", f"{r['error']:.0e}") for n, r in kept.items())
    said = "Two free bodies and a spring, 300 steps of 1 ms, each sample with its own masses and stiffness.\n"
    return ["## Samples of a separation\n", said, table(head, rows)]


def _rare_failure(kept: dict[str, Any]) -> list[str]:
    """A rare failure by brute force and by importance sampling, compared with the closed form."""
    rare = kept["rare"]
    rows = [
        (name, f"{p:.3g}", f"{r['low']:.3g} .. {r['high']:.3g}", f"{n:,}", f"{r['cpu_s']:.1f}")
        for name, p, n, r in (
            ("brute force", kept["brute_force"], kept["samples"], kept),
            ("importance sampling", rare["probability"], rare["simulations"], rare),
        )
    ]
    head = ("", "probability", "95 % interval", "simulations", "processor time, s")
    return ["## A rare failure\n", f"In closed form {kept['exact']:.4g}.\n", table(head, rows)]


def _many_samples(kept: dict[str, Any]) -> list[str]:
    n, memory, time = kept["samples"], kept["peak_MB"] - kept["peak_before_MB"], kept["cpu_s"]
    said = f"{n:,} samples of an output: {memory:,.0f} MB of memory, {time:,.0f} s of processor time.\n"
    return ["## Statistics of many samples\n", said]


def _workers(kept: dict[str, Any]) -> list[str]:
    head = ("worker processes", "samples per second", "processor time of a sample, µs", "load of the machine")
    rows = (
        (f"{r['workers']}", f"{r['per_second']:,.0f}", f"{r['cpu_us']:.0f}", f"{r['load']:.1f}") for r in kept["runs"]
    )
    said = (
        f"The stage separation of the examples on workers of Dask, each of which may use all {kept['cores']} cores.\n"
    )
    return ["## Samples on worker processes\n", said, table(head, rows)]


def _solvers(kept: dict[str, Any]) -> list[str]:
    from benchmarks import solvers

    head = ("problem", "solver", "evaluations", "processor time, s", "error of the optimum", "ended properly")
    said = (
        "HS: published by Hock and Schittkowski. Wrongly: the solver said that it was at an optimum, and was not. "
        "[Which solver](../theory/formulas.md#which-solver) has the sums.\n"
    )
    return ["## Solvers for problems under conditions\n", said, table(head, map(solvers.cells, kept["problems"]))]


def _within_jax(kept: dict[str, Any]) -> list[str]:
    """What programs of JAX around functions of the library cost, compared with one outermost call."""
    head = ("program of JAX", "instances", "s", "outermost `mbs.jit`, s", "ratio", "first call, s", "of the outermost, s",
            "difference")  # fmt: skip
    rows = (
        (
            r["what"], f"{r['rows']:,}", f"{r['within_s']:.3g}", f"{r['outermost_s']:.3g}", f"{r['ratio']:.2f}",
            f"{r['first_within_s']:.1f}", f"{r['first_outermost_s']:.1f}", f"{r['error']:.0e}",
        )
        for r in kept["comparisons"]
    )  # fmt: skip
    return [
        "## Programs of JAX around functions of the library\n",
        "An arm of seven joints, float64; times of a call after the first, the fastest of nine.\n",
        table(head, rows),
    ]


def _controller(kept: dict[str, Any]) -> list[str]:
    """A satellite with wheels, with and without its controller."""
    head = ("instances", "step, ms", "ns", "without controller, ns", "ratio", "first call, s", "without controller, s",
            "error")  # fmt: skip
    rows = (
        (
            f"{r['rows']:,}", f"{r['dt_ms']:g}", f"{r['sampled_ns']:.0f}", f"{r['without_ns']:.0f}", f"{r['ratio']:.2f}",
            f"{r['first_sampled_s']:.1f}", f"{r['first_without_s']:.1f}", f"{r['error']:.0e}",
        )
        for r in kept["motions"]
    )  # fmt: skip
    return [
        "## A controller that samples\n",
        "A satellite with three wheels, whose controller samples a hundred times a second; times per step and instance. The "
        "error is beside a loop over the samples in NumPy.\n",
        table(head, rows),
    ]


def _air(kept: dict[str, Any]) -> list[str]:
    """A free body with aerodynamics from tables, and without air."""
    head = ("air", "step, ns", "times without air", "first call, s", "error of the force")
    rows = (
        (
            r["air"], f"{r['ns_per_step']:.0f}", f"{r['times_without']:.2f}", f"{r['first_call_s']:.1f}",
            "–" if r["error"] is None else f"{r['error']:.0e}",
        )
        for r in kept["rows"]
    )  # fmt: skip
    return [
        "## A body in air\n",
        f"A free body in {kept['instances']:,} instances, {kept['steps']} steps of `rk4`; times per step and instance. The "
        "tables are over Mach number and angle of attack; the error is relative, beside an interpolation of SciPy.\n",
        table(head, rows),
    ]


def _flexible_arms(kept: dict[str, Any]) -> list[str]:
    """Arms with two flexible links beside Exudyn, and bodies with many modes beside rigid links."""
    arms = kept["arms"]
    rows = (
        (
            r["what"], f"{r['arms']:,}", f"{r['steps']:,}", f"{r['error']:.0e}", f"{r['ms_per_arm']:.3g}",
            f"{r['processor_ms_per_arm']:.3g}",
        )
        for r in arms["rows"]
    )  # fmt: skip
    bodies = ((r["what"], f"{r['ns']:,.0f}", f"{r['beside_links']:.2f}") for r in kept["modes"])
    return [
        "## Arms with two flexible links\n",
        f"Every arm with its own stiffness, {arms['t_end']:g} s of motion, the fewest steps (doubled from few) with which "
        f"the tips are {arms['error_below']:g} m off at most.\n",
        table(("", "arms", "steps", "error, m", "ms per arm", "of the processor, ms"), rows),
        "Forward dynamics in a batch, of rigid links and of bodies with as many modes.\n",
        table(("", "ns", "beside the links"), bodies),
    ]


def _clearances(kept: dict[str, Any]) -> list[str]:
    """Distances of bodies of many pieces beside Coal, and what clearances cost in a study."""
    d = kept["distances"]
    head = ("clearance", "motion, ms", "with the clearance, ms", "more, in times of the motion", "first call, s",
            "of the motion, s")  # fmt: skip
    rows = (
        (
            r["clearance"], f"{r['motion_ms']:.2f}", f"{r['with_ms']:.2f}", f"{r['ratio']:.1f}", f"{r['first_with_s']:.1f}",
            f"{r['first_motion_s']:.1f}",
        )
        for r in kept["studies"]
    )  # fmt: skip
    return [
        "## Distances and clearances\n",
        f"The distance of two bodies of {d['pieces']} hulls each takes {d['ours_us']:.1f} µs in a batch of "
        f"{d['placements']:,}, on all cores, and {d['coal_us']:.0f} µs as one mesh each in Coal, on one core; the results "
        f"differ by {d['error']:.0e} m. In the study of the demo, a thousand steps, times per sample in a batch:\n",
        table(head, rows),
    ]


_STATISTICS = {
    "separation": _separation, "rare_failure": _rare_failure, "many_samples": _many_samples, "workers": _workers,
    "solvers": _solvers, "within_jax": _within_jax, "flexible_arms": _flexible_arms, "controller": _controller,
    "air": _air, "clearances": _clearances,
}  # fmt: skip
_WINDOWS = ("windows", "build, s", "first result, s", "step, µs", "step in a batch of 1024, µs", "acceleration, µs",
            "Pinocchio, µs", "error", "jaxmbs, ms", "Exudyn index 3, ms", "index 2, ms")  # fmt: skip


def _windows(row: dict[str, Any]) -> tuple[str, ...]:
    own, other = row["jaxmbs"], row["Pinocchio"]
    times = [f"{row['step_us']:.0f}", f"{row['step_in_batch_us']:.3g}", f"{own['us']:.0f}"]
    theirs = f"{other['us']:.0f}" if "us" in other else "–"
    motion = row.get("motion", {})
    whole = (motion.get(x, {}) for x in ("jaxmbs", "Exudyn, index 3", "Exudyn, index 2"))
    return (f"{row['windows']}", f"{row['build_s']:.1f}", f"{row['first_result_s']:.1f}", *times, theirs,
            f"{own['error']:.0e}", *(f"{x['processor_ms']:.3g}" if x else "–" for x in whole))  # fmt: skip


def _benchmark(row: dict[str, Any]) -> tuple[str, ...]:
    case, times = row["case"], {k: x[0] for k, x in row["times"].items()}
    own = times.pop("jaxmbs")
    others = "<br>".join(f"{k} {_ns(x)} ({x / own:.2g}×)".replace(" ", "\u00a0") for k, x in times.items()) or "–"
    error = f"{max(row['errors'].values()):.0e}" if row["errors"] else "–"
    size = (case["function"], case["robot"], case["dtype"], f"{case['batch']:,}")
    limit = row.get("limit")
    limited = (f"{limit['ns']:,.3g} ({limit['by']})", f"{limit['reached']:.0%}") if limit else ("–", "–")
    return *size, _ns(own), *limited, others, f"{row['first_call']:.1f} s", error


def _ns(x: float) -> str:
    return f"{x:,.0f}" if x >= 10 else f"{x:.2g}"


def _peaks(peaks: dict[str, Any]) -> str:
    """What the limits are computed from."""
    copied = ", ".join(f"{int(size) / 2**20:g} MB: {rate / 1e9:.0f}" for size, rate in peaks["copy"].items())
    return (
        f"The limit is the larger of two times: that of the operations of an evaluation at the machine's peak, "
        f"{peaks['float64'] / 1e9:.0f} per ns ({peaks['float32'] / 1e9:.0f} in float32; large matrices multiplied on all "
        f"cores), and that of reading its arguments and writing its results at the speed of copying (bytes per ns, by the "
        f"size of what each core copies: {copied}). A fused multiply-add is two operations, a sine or cosine those of its "
        "polynomial, anything else one. What an evaluation waits for between, divisions and roots, is in no limit; "
        "additions that run beside multiplications and branches that are not taken can bring a fraction above 100 %.\n"
    )
