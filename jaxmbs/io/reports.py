"""What reports share: tables for the terminal, documents for programs, and the security policy of HTML pages.

rich is imported when a table is made, since many callers make none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

# of HTML pages, which may only show their own content: only the page's own scripts run; nothing is loaded, and nothing
# can be sent anywhere
POLICY = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">"
)


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


def plain(x: Any) -> Any:
    """Content for JSON: plain Python objects, None for numbers that are not finite.

    >>> plain({"mass": np.array([1.0, np.nan]), 3: (True, "text")})
    {'mass': [1.0, None], '3': [True, 'text']}
    """
    if isinstance(x, dict):
        return {str(k): plain(y) for k, y in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(y) for y in x]
    if hasattr(x, "tolist"):
        return plain(x.tolist())
    if isinstance(x, Path):
        return str(x)
    if isinstance(x, float) and not abs(x) < float("inf"):
        return None
    return x
