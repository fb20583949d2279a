"""What all reports are made of: their document, panels and tables, with one style for wide and narrow screens, light and
dark mode, and printing on A4."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from jaxmbs.io.reports import POLICY

# colours of the plots, with the names of the page's colours that replace them
COLOURS = {
    "#1d2b3a": "ink",
    "#6b7a8c": "muted",
    "#e3e8ee": "line",
    "#2b6cb0": "good",
    "#c2513a": "bad",
    "#94a3b5": "dim",
}

CSS = """
:root { color-scheme:light dark; --ink:#1d2b3a; --muted:#5d6b7c; --line:#e3e8ee; --good:#2b6cb0; --bad:#c2513a;
  --dim:#94a3b5; --paper:#fff; --back:#f4f6f9; --warn:#fff6e0; --edge:#f0d58a; --trough:#f3dcd6; --band:rgba(29,43,58,.28) }
@media (prefers-color-scheme:dark) { :root { --ink:#e4eaf1; --muted:#9dabba; --line:#2d3947; --good:#63a4e8; --bad:#ee8a72;
  --dim:#7b8a9b; --paper:#17202b; --back:#0e151d; --warn:#3a3014; --edge:#6d5a20; --trough:#4a2d27;
  --band:rgba(228,234,241,.4) } }
* { box-sizing:border-box }
body { margin:0; background:var(--back); color:var(--ink); font:15px/1.5 system-ui,"Segoe UI",Roboto,sans-serif }
main { max-width:1060px; margin:0 auto; padding:40px 24px 64px }
h1 { font-size:30px; line-height:1.2; margin:0 0 4px; letter-spacing:-.01em }
h2 { font-size:19px; margin:44px 0 12px; break-after:avoid }
p { margin:6px 0 } .lead,.note { color:var(--muted) } .note { font-size:13px }
nav { display:flex; flex-wrap:wrap; gap:2px 16px; margin-top:10px; font-size:13px } nav a { color:var(--good) }
.verdict { border-left:6px solid var(--good); background:var(--paper); border-radius:8px; padding:14px 20px; margin-top:20px;
  font-size:20px; font-weight:650 } .verdict.failed { border-color:var(--bad) }
.verdict p { font-size:14px; font-weight:400 }
.banner { background:var(--warn); border:1px solid var(--edge); border-radius:8px; padding:10px 14px; margin:18px 0 0 }
.cards { display:grid; grid-template-columns:repeat(auto-fit,minmax(215px,1fr)); gap:14px; margin-top:22px }
.card,.panel { background:var(--paper); border:1px solid var(--line); border-radius:10px; padding:16px 18px;
  break-inside:avoid }
.panel.long { break-inside:auto }
.card .big { font-size:32px; font-weight:650; letter-spacing:-.02em; font-variant-numeric:tabular-nums }
.card .what { font-weight:600; overflow-wrap:anywhere } .yes { color:var(--good) } .no { color:var(--bad); font-weight:600 }
.bar { position:relative; height:8px; border-radius:4px; background:var(--trough); margin:10px 0 8px }
.bar i { position:absolute; left:0; top:0; bottom:0; border-radius:4px; background:var(--good) }
.bar b { position:absolute; top:-3px; bottom:-3px; background:var(--band); border-radius:3px; min-width:2px }
.grid { display:grid; grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr)); gap:14px }
.panel { overflow-x:auto } .panel + .panel { margin-top:14px } .grid .panel { margin-top:0 }
svg { width:100%; height:auto; display:block } svg text { font-family:inherit !important }
.motion { width:100%; height:480px; border:1px solid var(--line); border-radius:10px }
table { border-collapse:collapse; width:100%; font-size:13.5px; font-variant-numeric:tabular-nums }
th,td { border-bottom:1px solid var(--line); padding:5px 14px 5px 0; text-align:left; vertical-align:top }
th { color:var(--muted); font-weight:600 } tr:last-child td { border-bottom:0 } tr { break-inside:avoid }
th.n,td.n { text-align:right } td.n,.one { white-space:nowrap }
code { font:12.5px ui-monospace,Menlo,Consolas,monospace; overflow-wrap:anywhere }
@media screen and (max-width:640px) {
  main { padding:24px 14px 40px } .panel { padding:12px } .broad svg { min-width:600px }
  .long thead { display:none } .long :is(table,tbody,tr,td) { display:block } .long tr { padding:8px 0 }
  .long tr:not(:last-child) { border-bottom:1px solid var(--line) }
  .long td { border:0; padding:2px 0; text-align:left } .long td:empty { display:none }
  .long td::before { content:attr(data-head); display:block; font-size:12px; color:var(--muted) } }
@page { size:A4; margin:14mm 12mm }
@media print {
  :root { --ink:#000; --muted:#444; --line:#ccc; --good:#2b6cb0; --bad:#c2513a; --paper:#fff; --back:#fff; --trough:#f3dcd6;
    --band:rgba(0,0,0,.28); --dim:#777; --warn:#fff; --edge:#aaa }
  body { font-size:11px; print-color-adjust:exact; -webkit-print-color-adjust:exact } main { max-width:none; padding:0 }
  .panel { overflow:visible; padding:8px 10px } .panel.long { border:0; padding:0 }
  .grid { grid-template-columns:1fr 1fr; gap:8px }
  table { font-size:9px } th,td { padding:3px 6px 3px 0 } td { overflow-wrap:anywhere } code { font-size:8.5px }
  .moving { display:none } .note { font-size:10px; break-after:avoid } .verdict { font-size:15px; padding:8px 14px }
  .verdict p { font-size:11px } .cards { grid-template-columns:repeat(auto-fit,minmax(150px,1fr)); gap:8px }
  h2 { margin:22px 0 8px; font-size:15px } h1 { font-size:22px } .card .big { font-size:22px } .card { padding:8px 10px }
}
"""


def document(title: str, content: str) -> str:
    """A self-contained page. title and content are HTML."""
    head = f'<meta charset="utf-8">{POLICY}<meta name="viewport" content="width=device-width"><title>{title}</title>'
    body = f"<body><main>{content}</main></body>"
    return f'<!doctype html><html lang="en"><head>{head}<style>{CSS}</style></head>{body}</html>'


def themed(svg: str) -> str:
    """A picture with its colours replaced by those of the page."""
    for colour, name in COLOURS.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg


def panel(content: str, kind: str = "") -> str:
    """Content in a frame of the page."""
    return f'<div class="panel {kind}">{content}</div>'


def picture(svg: str, kind: str = "") -> str:
    """A plot in a frame, in the colours of the page."""
    return panel(themed(svg), kind)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0) -> str:
    """An HTML table; the last `numbers` columns are numbers. Cells are HTML; each carries the name of its column, for
    screens that are too narrow for columns."""
    kinds = [" class=n" if i >= len(head) - numbers else "" for i in range(len(head))]

    def cells(row: Sequence[str]) -> str:
        cells = zip(head, kinds, row, strict=True)
        return "".join(f'<td{kind} data-head="{name}">{x}</td>' for name, kind, x in cells)

    body = "".join(f"<tr>{cells(row)}</tr>" for row in rows)
    names = "".join(f"<th{kind}>{name}</th>" for name, kind in zip(head, kinds, strict=True))
    top = f"<thead><tr>{names}</tr></thead>" if any(head) else ""
    return f"<table>{top}<tbody>{body}</tbody></table>"


def table_of_texts(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table whose heads and cells are texts, not HTML."""
    return table([*map(escape, head)], ([*map(escape, row)] for row in rows))
