"""Tables for the terminal. rich is imported when one is made, since many callers make none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


def printed(
    title: str, head: Sequence[str], rows: Iterable[Sequence[str | Text]], right: Collection[str] = ()
) -> Table:
    """A table with a title ("": none) and the columns `head`, of which those named in `right` are aligned to the right.

    All texts are shown as they are: brackets in them, as of units, are not read as markup.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title, style="bold") if title else None, title_justify="left")
    for name in head:
        table.add_column(Text(name), justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(x) if isinstance(x, str) else x for x in row))
    return table
