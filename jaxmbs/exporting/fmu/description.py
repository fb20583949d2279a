"""modelDescription.xml: the variables of an FMU, their units, and how it may be used."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

TIME, INPUT, STATE, RATE, INDICATOR = range(5)  # where the numbers of a variable are


@dataclass(frozen=True)
class Variable:
    """A variable of an FMU. kind, offset, size: where its numbers are; start: its values at the start, None if they are
    calculated; of: for a rate, the index of its state among the variables."""

    name: str
    kind: int
    offset: int
    size: int
    causality: str
    unit: str = ""
    description: str = ""
    start: Any = None
    of: int | None = None


def written(name: str, identifier: str, token: str, version: str, variables: list[Variable], dt: float) -> str:
    """The XML text."""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<fmiModelDescription fmiVersion="3.0" modelName={quoteattr(name)} instantiationToken={quoteattr(token)}',
        f'  generationTool="jaxmbs {version}" variableNamingConvention="{_convention(variables)}">',
    ]
    able = 'canGetAndSetFMUState="true" canSerializeFMUState="true"'
    more = 'providesDirectionalDerivatives="true" needsCompletedIntegratorStep="false"'
    lines.append(f'  <ModelExchange modelIdentifier="{identifier}" {able} {more}/>')
    lines.append(
        f'  <CoSimulation modelIdentifier="{identifier}" {able} canHandleVariableCommunicationStepSize="true"/>'
    )
    units = sorted({v.unit for v in variables if v.unit})
    if units:
        lines += ["  <UnitDefinitions>", *(f"    {_unit(u)}" for u in units), "  </UnitDefinitions>"]
    lines.append('  <LogCategories><Category name="logStatusError"/></LogCategories>')
    lines.append(f'  <DefaultExperiment startTime="0" stepSize="{dt!r}"/>')
    lines.append("  <ModelVariables>")
    lines += [_variable(k, v) for k, v in enumerate(variables)]
    lines += ["  </ModelVariables>", "  <ModelStructure>"]
    for k, v in enumerate(variables):
        if v.causality == "output":  # a state, which depends on itself alone
            lines.append(f'    <Output valueReference="{k}" dependencies="{k}"/>')
    rates = [k for k, v in enumerate(variables) if v.kind == RATE]
    lines += [f'    <ContinuousStateDerivative valueReference="{k}"/>' for k in rates]
    lines += [f'    <InitialUnknown valueReference="{k}"/>' for k in rates]
    indicators = [k for k, v in enumerate(variables) if v.kind == INDICATOR]
    lines += [f'    <EventIndicator valueReference="{k}"/>' for k in indicators]
    lines += ["  </ModelStructure>", "</fmiModelDescription>", ""]
    return "\n".join(lines)


def _variable(k: int, v: Variable) -> str:
    more = {"parameter": 'variability="tunable"'}.get(v.causality, 'variability="continuous"')
    if v.kind == STATE:
        more += ' initial="exact" reinit="true"'
    elif v.kind == RATE:
        more += f' initial="calculated" derivative="{v.of}"'
    elif v.kind == INDICATOR:
        more += ' initial="calculated"'
    if v.start is not None:
        more += f' start="{" ".join(repr(float(x)) for x in np.ravel(v.start))}"'
    if v.unit:
        more += f" unit={quoteattr(v.unit)}"
    if v.description:
        more += f" description={quoteattr(v.description)}"
    head = f'    <Float64 name={quoteattr(v.name)} valueReference="{k}" causality="{v.causality}" {more}'
    return f"{head}/>" if v.size == 1 else f'{head}><Dimension start="{v.size}"/></Float64>'


_PART = r"[A-Za-z_]\w*(\[\d+\])?"


def _convention(variables: list[Variable]) -> str:
    """The naming convention of FMI that all names follow."""
    one = rf"{_PART}(\.{_PART})*"
    fits = all(re.fullmatch(rf"{one}|der\({one}\)", v.name, re.ASCII) for v in variables)
    return "structured" if fits else "flat"


_BASE = {
    "kg": {"kg": 1}, "m": {"m": 1}, "s": {"s": 1}, "rad": {"rad": 1}, "N": {"kg": 1, "m": 1, "s": -2},
    "J": {"kg": 1, "m": 2, "s": -2}, "W": {"kg": 1, "m": 2, "s": -3}, "Pa": {"kg": 1, "m": -1, "s": -2}, "Hz": {"s": -1},
    "K": {"K": 1}, "A": {"A": 1},
}  # fmt: skip


def _unit(unit: str) -> str:
    """A unit by its base units, if its words are known."""
    powers: dict[str, int] = {}
    sign = 1
    for part in (
        unit.replace("/", " / ").replace("(", " ").replace(")", " ").replace("²", "^2").replace("³", "^3").split()
    ):
        if part == "/":
            sign = -1
            continue
        word, _, power = part.partition("^")
        if word == "1" and not power:
            continue
        if word[-1:].isdigit():
            word, power = word[:-1], word[-1]
        if word not in _BASE or (power and not power.lstrip("-").isdigit()):
            return f"<Unit name={quoteattr(unit)}/>"
        for base, n in _BASE[word].items():
            powers[base] = powers.get(base, 0) + sign * n * int(power or 1)
    listed = " ".join(f'{base}="{n}"' for base, n in powers.items() if n)
    return f"<Unit name={quoteattr(unit)}><BaseUnit {listed}/></Unit>" if listed else f"<Unit name={quoteattr(unit)}/>"
