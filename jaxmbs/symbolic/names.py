"""Names of everything in a listing, for readers (LaTeX) and for compilers (identifiers)."""

from __future__ import annotations

import re
from typing import Any

from jaxmbs.model import Model
from jaxmbs.model.field_rules import Kind
from jaxmbs.symbolic.constants import Constant
from jaxmbs.symbolic.quantities import Angle
from jaxmbs.symbolic.statements import Listing

SYMBOL = {
    "mass_matrix": "A", "bias_forces": "b", "inverse_dynamics": "tau", "forward_dynamics": "a", "kinetic_energy": "T",
}  # fmt: skip
_GREEK = {"tau": r"\tau"}
_PARTS = {
    Kind.VECTOR: "xyz", Kind.NOT_NEGATIVE_VECTOR: "xyz", Kind.DIRECTION: "xyz",
    Kind.ROTATION: ("11", "12", "13", "21", "22", "23", "31", "32", "33"),
    Kind.INERTIA: ("xx", "yy", "zz", "xy", "xz", "yz"),
}  # fmt: skip
_LETTERS = {
    "mass": "m", "com": "c", "inertia": "I", "parent_pose.position": "r", "child_pose.position": "s",
    "parent_pose.rotation": "R", "child_pose.rotation": "S", "axis": "u", "armature": "B",
}  # fmt: skip


class Names:
    """Identifier and LaTeX of every literal, angle and parameter."""

    def __init__(self, listing: Listing, what: str, model: Model):
        self.listing, self.formulas, self.what = listing, listing.formulas, what
        w = self.formulas.workspace
        self.code: dict[int, str] = {}
        self.tex: dict[int, str] = {}
        for n, literal in enumerate(listing.constants, 1):
            self._set(literal, f"k{n}", f"k_{{{n}}}")
        for literal, (kind, content) in self.formulas.literals.items():
            if kind == "output":
                self._set(literal, *self._output(content))
            elif kind == "atom" and isinstance(w.atoms[content], tuple):
                name, i = w.atoms[content]
                self._set(literal, f"{name}[{i}]" if name != "t" else "t", _tex_input(name, i))
        for literal, trig in listing.trig:
            letter, tag = trig.function[0], _tag(trig.angle)
            self._set(literal, f"{letter}{_code_tag(trig.angle)}", f"{letter}_{{{tag}}}")
        n = 0
        for s in listing.statements:
            if s.literal not in self.code:
                n += 1
                self._set(s.literal, f"x{n}", f"x_{{{n}}}")
        self.parameters = _parameters(self, model)

    def _set(self, literal: int, code: str, tex: str) -> None:
        self.code[literal], self.tex[literal] = code, tex

    def _output(self, index: tuple[int, ...]) -> tuple[str, str]:
        symbol = SYMBOL[self.what]
        many = any(i >= 9 for i in index)
        tag = [str(i + 1) for i in index]
        tex = _GREEK.get(symbol, symbol)
        if not index:
            return symbol, tex
        return f"{symbol}_{('_' if many else '').join(tag)}", f"{tex}_{{{(',' if many else '').join(tag)}}}"

    def angle(self, angle: Angle) -> str:
        return f"q{_code_tag(angle)}"


def _tag(angle: Angle) -> str:
    """23 for q2 + q3, 2-3 for q2 - q3, 2,13 for larger numbers."""
    items = _items(angle)
    many = any(i > 9 for i, _ in items)
    out = ""
    for k, (i, n) in enumerate(items):
        out += ("-" if n < 0 else "," if many and k else "") + str(i)
    return out


def _code_tag(angle: Angle) -> str:
    return _tag(angle).replace("-", "m").replace(",", "_")


def _items(angle: Angle) -> list[tuple[int, int]]:
    return sorted((i + 1, n) for i, n in angle)


def _tex_input(name: str, i: int) -> str:
    return "t" if name == "t" else f"{_GREEK.get(name, name)}_{{{i + 1}}}"


def _parameters(names: Names, model: Model) -> dict[int, tuple[str, str, float]]:
    """{parameter: (identifier, LaTeX, value)} of every parameter that the constants need."""
    w = names.formulas.workspace
    used: set[int] = set()
    stack = [names.formulas.literals[x][1] for x in names.listing.constants]
    while stack:
        c = stack.pop()
        for i in {i for key in getattr(c, "terms", {}) for i in key} - used:
            used.add(i)
            if isinstance(w.parameters[i][1], Constant):
                stack.append(w.parameters[i][1])
    taken: set[str] = set()
    out: dict[int, tuple[str, str, float]] = {}
    derived = 0
    for i in sorted(used):
        if isinstance(w.parameters[i][1], Constant):  # 1/m and the like
            derived += 1
            code, tex = f"d{derived}", f"d_{{{derived}}}"
        else:
            code, tex = _parameter(w.parameters[i], model)
        while code in taken:
            code += "_"
        taken.add(code)
        out[i] = (code, tex, w.values[i])
    return out


def _parameter(content: tuple[str, Any], model: Model) -> tuple[str, str]:
    name, k = content
    if name == "value":  # formulas with numbers, which print no parameters
        return f"p_{k!r}", f"{k:.6g}"
    p = model.structure.table[name][0]
    parts = _PARTS.get(p.kind)
    part = "" if parts is None and len(p.pattern) == 1 else parts[k] if parts else str(k + 1)
    element, _, field = name.partition(".")
    letter = _LETTERS.get(field, rf"\mathrm{{{_escaped(field or element)}}}")
    below = rf"_{{\mathrm{{{_escaped(element)}}}}}" if field else ""
    above = f"^{{{part}}}" if part else ""
    code = re.sub(r"[^0-9a-zA-Z_]", "_", name) + (f"_{part}" if part else "")
    return code if code[0].isalpha() else "p_" + code, f"{letter}{above}{below}"


_SPECIAL = {"\\": r"\backslash ", "~": r"\sim ", "^": r"\wedge ", " ": r"\ "}


def _escaped(text: str) -> str:
    """Text escaped for use inside \\mathrm."""
    return "".join(_SPECIAL.get(c, "\\" + c if c in "_%&#${}" else c) for c in text)
