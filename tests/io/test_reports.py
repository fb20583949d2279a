"""Tables for the terminal."""

import io

from rich.console import Console
from rich.text import Text

from jaxmbs.io.reports import printed


def test_brackets_are_texts_and_numbers_stand_on_the_right():
    table = printed(
        "bodies [2]", ("body", "mass [kg]"), [("a[b]c", "1"), ("d", Text("12.5", style="red"))], ("mass [kg]",)
    )
    console = Console(file=io.StringIO(), width=60)
    console.print(table)
    lines = console.file.getvalue().splitlines()
    assert lines[0].strip() == "bodies [2]"
    cells = [[x for x in line.translate(dict.fromkeys(map(ord, "┃│"), "|")).split("|") if x] for line in lines]
    assert cells[2] == [" body  ", " mass [kg] "]
    assert cells[4:6] == [[" a[b]c ", "         1 "], [" d     ", "      12.5 "]]
