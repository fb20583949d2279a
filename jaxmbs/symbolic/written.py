"""The result of `write_out`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxmbs.model import ModelError
from jaxmbs.symbolic.constants import Constant
from jaxmbs.symbolic.names import SYMBOL, Names
from jaxmbs.symbolic.printing import Latex, c_code, python_code
from jaxmbs.symbolic.statements import Operations


@dataclass(frozen=True, eq=False)
class WrittenOut:
    """Formulas of one function of a model, ready to print.

    what: the function; model: name of the model; inputs: the arguments (name, length), where "t" is a single number;
    shape: of the result; method: the algorithm from which the formulas come; numeric: whether the constants are numbers
    of the model, not computed from its parameters.

    >>> formulas = mbs.textbook.write_out(mbs.library.double_pendulum().build(), "mass_matrix", constants="numbers")
    >>> formulas.function()([0.5, 0.3])[1][1]
    1.0
    """

    what: str
    model: str
    inputs: tuple[tuple[str, int], ...]
    shape: tuple[int, ...]
    method: str
    numeric: bool
    _names: Names

    @property
    def operations(self) -> Operations:
        """The operations of one evaluation, without those of the constants."""
        return self._names.listing.operations

    @property
    def constants(self) -> dict[str, float]:
        """Values of the named constants in the model."""
        n, w = self._names, self._names.formulas.workspace
        return {n.code[x]: n.formulas.literals[x][1].value(w.values) for x in n.listing.constants}

    @property
    def parameters(self) -> dict[str, float]:
        """Values of the model's parameters that the constants are computed from, by their names in the code."""
        w = self._names.formulas.workspace
        return {
            code: value for i, (code, _, value) in self._names.parameters.items()
            if not isinstance(w.parameters[i][1], Constant)
        }  # fmt: skip

    def __str__(self) -> str:
        return f"{self.what} of {self.model!r} by {self.method}: {self.operations}"

    # Python

    def python(self, module: str = "math") -> str:
        """Source of a Python function of the same name.

        Its arguments are sequences; with module "math" it works on floats, with "numpy" also on arrays over instances
        (q[0] is then an array). If constants are symbols, its last argument is the constants, which the function
        `constants` computes from parameters. It returns nested lists, or a number for the kinetic energy.
        """
        if module not in ("math", "numpy"):
            raise ModelError(f"python: module {module!r} is not known; pass 'math' or 'numpy'")
        n, code = self._names, python_code(self._names, module)
        body, constants = code.body(), [] if self.numeric else code.constants()
        functions = [f for f in ("cos", "sin", "sqrt", "tanh", "where") if any(f"{f}(" in x for x in body + constants)]
        lines = [f'"""{_said(self)}."""', ""]
        lines += [f"from {module} import {', '.join(functions)}", ""] if functions else []
        arguments = [name for name, _ in self.inputs]
        names = [n.code[x] for x in n.listing.constants]
        if self.numeric:
            lines += [f"{name} = {value!r}" for name, value in self.constants.items()] + ["", ""]
        elif names:
            lines += (
                ["PARAMETERS = {"] + [f'    "{name}": {value!r},' for name, value in self.parameters.items()] + ["}"]
            )
            lines += ["", "", "def constants(p=PARAMETERS):"]
            lines += [f'    {name} = p["{name}"]' for name in self.parameters]
            lines += [f"    {line}" for line in constants] + [f"    return {_tuple(names)}", "", ""]
            arguments.append("k=constants()")
        lines.append(f"def {self.what}({', '.join(arguments)}):")
        if names and not self.numeric:
            lines.append(f"    {_tuple(names)} = k")
        lines += [f"    {line}" for line in body]
        lines.append(f"    return {self._nested()}")
        return "\n".join(lines) + "\n"

    def _nested(self) -> str:
        code, outputs = self._names.code, self._names.formulas.outputs
        if not self.shape:
            return code[outputs[()]]
        if len(self.shape) == 1:
            return "[" + ", ".join(code[outputs[i,]] for i in range(self.shape[0])) + "]"
        n = range(self.shape[0])
        rows = ("[" + ", ".join(code[outputs[max(i, j), min(i, j)]] for j in n) + "]" for i in n)
        return "[" + ", ".join(rows) + "]"

    def function(self, module: str = "math") -> Callable[..., Any]:
        """The function whose source `python` returns, ready to call; module: "math" or "numpy", as for `python`."""
        space: dict[str, Any] = {}
        exec(compile(self.python(module), f"<{self.what}>", "exec"), space)
        return space[self.what]

    # C

    def c(self) -> str:
        """Source of a C99 function of the same name, which needs the mathematical library (cc -lm).

        Its arguments are arrays of double: the inputs, the constants if they are symbols (computed by <what>_constants from
        parameters, whose values in the model are <what>_parameters), and the result, row by row; the kinetic energy
        is returned instead.
        """
        n, code = self._names, c_code(self._names)
        names = [n.code[x] for x in n.listing.constants]
        lines = [f"/* {_said(self)}. */", "#include <math.h>", ""]
        arguments = ["double t" if name == "t" else f"const double {name}[{size}]" for name, size in self.inputs]
        if names and not self.numeric:
            p = self.parameters
            lines += [f"const double {self.what}_parameters[{len(p)}] = {{"]
            lines += [f"    {value!r}, /* {name} */" for name, value in p.items()] + ["};", ""]
            lines += [f"void {self.what}_constants(const double p[{len(p)}], double k[{len(names)}])", "{"]
            lines += [f"    const double {name} = p[{i}];" for i, name in enumerate(p)]
            lines += [f"    const double {line};" for line in code.constants()]
            lines += [f"    k[{i}] = {name};" for i, name in enumerate(names)] + ["}", ""]
            arguments.append(f"const double k[{len(names)}]")
        if self.shape:
            size = self.shape[0] * (self.shape[1] if len(self.shape) == 2 else 1)
            arguments.append(f"double {SYMBOL[self.what]}[{size}]")
        lines += [f"{'void' if self.shape else 'double'} {self.what}({', '.join(arguments)})", "{"]
        if self.numeric:
            lines += [f"    const double {name} = {value!r};" for name, value in self.constants.items()]
        else:
            lines += [f"    const double {name} = k[{i}];" for i, name in enumerate(names)]
        lines += [f"    const double {line};" for line in code.body()] + self._stores()
        return "\n".join([*lines, "}"]) + "\n"

    def _stores(self) -> list[str]:
        code, symbol = self._names.code, SYMBOL[self.what]
        if not self.shape:
            return [f"    return {code[self._names.formulas.outputs[()]]};"]
        out = []
        for index, literal in self._names.formulas.outputs.items():
            places = {index, index[::-1]} if len(index) == 2 else {index}
            for place in sorted(places):
                flat = place[0] if len(place) == 1 else place[0] * self.shape[1] + place[1]
                out.append(f"    {symbol}[{flat}] = {code[literal]};")
        return out

    # mathematics

    def latex(self) -> str:
        """The formulas as LaTeX: an align* of the evaluation and, if there are any constants, another align* of
        them."""
        n, tex = self._names, Latex(self._names)
        lines = [rf"{n.tex[x]} &= {tex.trig(t)}" for x, t in n.listing.trig]
        lines += [rf"{n.tex[s.literal]} &= {tex.formula(s)}" for s in n.listing.statements]
        text = _aligned(lines)
        if n.listing.constants:
            if self.numeric:
                given = [rf"{n.tex[x]} &= {self.constants[n.code[x]]:.9g}" for x in n.listing.constants]
            else:
                given = tex.derived()
                given += [rf"{n.tex[x]} &= {tex.constant(n.formulas.literals[x][1])}" for x in n.listing.constants]
            text += "with the constants\n" + _aligned(given)
        return text

    @property
    def formulas(self) -> list[tuple[Any, Any]]:
        """The evaluation as SymPy (Symbol, expression), in order, not simplified further.

        Raises ImportError if SymPy is missing: pip install 'jaxmbs[symbolic]'.
        """
        from jaxmbs.symbolic.expressions import expressions

        return expressions(self._names)


def _said(w: WrittenOut) -> str:
    return f"{w.what} of {w.model.replace('*/', '')}: {w.operations}".replace("\\", "/").replace('"', "'")


def _tuple(names: list[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _aligned(lines: list[str]) -> str:
    return "\\begin{align*}\n" + " \\\\\n".join(lines) + "\n\\end{align*}\n"
