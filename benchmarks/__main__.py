"""python -m benchmarks [--quick] [--repeats 9] [--only WORD] [--keep]: the table; --keep saves it as JSON."""

from __future__ import annotations

from typing import Annotated

import jax
import typer

import jaxmbs as mbs
from benchmarks import limits, suite

HEAD = "| function | robot | precision | batch | jaxmbs ns (spread) | first call | error | peers: ns (ratio) | before |"


def line(row: suite.Row, before: suite.Row | None) -> str:
    """A row of the table; a result that does not agree with a peer's is marked WRONG."""
    c, (median, low, high) = row.case, row.times["jaxmbs"]
    error = max(row.errors.values(), default=None)
    right = error is None or error <= suite.AGREE[c.dtype]
    said = ("-" if error is None else f"{error:.0e}") + ("" if right else " WRONG")
    peers = ", ".join(f"{n} {t[0]:.3g} ({row.ratio(n):.1f})" for n, t in row.times.items() if n != "jaxmbs") or "-"
    was = f"{before.times['jaxmbs'][0] / median:.2f}x" if before else "-"
    return (
        f"| {c.function} | {c.robot} | {c.dtype} | {c.batch} | {median:.3g} ({low:.3g} .. {high:.3g}) | "
        f"{row.first_call:.1f} s | {said} | {peers} | {was} |"
    )


def main(
    quick: Annotated[bool, typer.Option(help="The main cases only, under three minutes.")] = False,
    repeats: Annotated[int, typer.Option(min=7, help="Timed rounds of every case.")] = 9,
    only: Annotated[str, typer.Option(help="Cases whose function or robot contains this.")] = "",
    keep: Annotated[bool, typer.Option(help="Keep the results as this machine's baseline.")] = False,
) -> None:
    """Measure jaxmbs and the peers that are installed."""
    jax.config.update("jax_enable_x64", True)
    mbs.use_all_cores()
    here = suite.machine()
    path = suite.file_of(here)
    before, found, absent = suite.kept(path), {}, {}
    print(f"{here['cpu']}, {here['cores']} cores, Python {here['python']}, {here['date']}")
    print(", ".join(f"{p} {v}" for p, v in here["versions"].items()))
    peaks = limits.peaks_of(here["device"]) if keep else None
    if peaks:
        here["peaks"] = peaks
        print(f"peaks: {peaks['float64'] / 1e9:.0f} and {peaks['float32'] / 1e9:.0f} (float32) operations per ns")
    print(HEAD, "|" + "---|" * 9, sep="\n")
    cases = [c for c in suite.CASES if (c.quick or not quick) and only in f"{c.function} {c.robot} {c.dtype}"]
    for row in suite.rows(cases, repeats, peaks):
        print(line(row, before.get(row.case)), flush=True)
        found[row.case] = row
        absent |= row.absent
        if row.limit:
            calls = row.compiled.get("library calls", 0)
            said = f"{row.limit['reached']:.1%} of the limit by {row.limit['by']}, {row.limit['ns']:.3g} ns"
            print(f"  {said}{f'; library calls: {calls:.0f}' if calls else ''}")
        if keep:  # after every row, so that nothing is lost when the run is stopped
            suite.keep(path, here, found)
    for slower in suite.regressions(found, before):
        print(f"SLOWER than kept: {slower}")
    for peer, reason in sorted(absent.items()):
        if "not installed" in reason or "took" in reason:
            print(f"{peer}: {reason}")
    print("ratio: time of the peer over that of jaxmbs; before: time kept for this machine over that of now")


typer.run(main)
