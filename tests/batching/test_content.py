"""Digests of functions: another one where anything that they read is another, the same in another process, none where
something is not known."""

import os
import subprocess
import sys
from types import ModuleType

import jax
import pytest

from jaxmbs.batching.content import NotKnownError, digest

TEXT = """
import functools
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np

RATIO = 2.0
TABLE = np.array([1.0, 2.0, 3.0])
ON_DEVICE = jnp.array([1.0, 2.0])
NESTED = {"a": [1, (2.0, "x")], "names": {"front", "rear", "left"}}

def helper(x):
    return x * 1.5

def outer(k):
    def inner(x):
        return k * x
    return inner

inner = outer(3.0)

@dataclass
class Spring:
    rate: float = 4.0
    rates: list = field(default_factory=list)
    @property
    def twice(self):
        return 2 * self.rate
    def force(self, x):
        return -self.rate * x

SPRING = Spring(7.0, [1.0])

@jax.jit
def jitted(x):
    return jnp.sin(x) * 0.25

@jax.custom_jvp
def custom(x):
    return x * 0.125

@custom.defjvp
def _(x, dx):
    return custom(*x), 0.125 * dx[0]

part = functools.partial(helper, 9.0)

def fn(model, t, q, v, gain=5.0, *, shift=6.0):
    scale = [11.0 * y for y in (1, 2)][0]
    lists = np.interp(q[0], TABLE, TABLE) + jnp.sum(ON_DEVICE) + NESTED["a"][1][0] + len(NESTED["names"])
    own = (lambda x: x + 13.0)(t)
    found = RATIO * helper(q) + inner(q) + SPRING.force(gain) + SPRING.twice + jitted(shift) + custom(t)
    return found + part + scale + own + lists
"""

CHANGES = [
    ("RATIO = 2.0", "RATIO = 2.5"),
    ("RATIO = 2.0", "RATIO = np.float64(2.0)"),
    ("[1.0, 2.0, 3.0]", "[1.0, 2.0, 3.5]"),
    ("np.array([1.0, 2.0, 3.0])", "np.array([1.0, 2.0, 3.0], np.float32)"),
    ("jnp.array([1.0, 2.0])", "jnp.array([1.0, 2.5])"),
    ('(2.0, "x")', '(2.5, "x")'),
    ('"rear"', '"near"'),
    ("x * 1.5", "x * 1.25"),
    ("x * 1.5", "x + 1.5"),
    ("return k * x", "return k + x"),
    ("outer(3.0)", "outer(-3.0)"),
    ("rate: float = 4.0", "rate: float = 4.5"),
    ("2 * self.rate", "3 * self.rate"),
    ("-self.rate * x", "self.rate * x"),
    ("Spring(7.0, [1.0])", "Spring(7.5, [1.0])"),
    ("Spring(7.0, [1.0])", "Spring(7.0, [1.5])"),
    ("jnp.sin(x) * 0.25", "jnp.cos(x) * 0.25"),
    ("x * 0.125", "x * 0.625"),
    ("0.125 * dx[0]", "0.625 * dx[0]"),
    ("partial(helper, 9.0)", "partial(helper, 9.5)"),
    ("gain=5.0", "gain=5.5"),
    ("shift=6.0", "shift=6.5"),
    ("11.0 * y", "11.5 * y"),
    ("x + 13.0", "x + 13.5"),
    ("np.interp", "np.add"),
]


def of(text, name="fn"):
    module = ModuleType("elsewhere")
    sys.modules["elsewhere"] = module
    try:
        exec(compile(text, "elsewhere.py", "exec"), module.__dict__)
        return digest({name: module.__dict__[name]})
    finally:
        del sys.modules["elsewhere"]


def test_whatever_a_function_reads_is_in_its_digest():
    found = {TEXT: of(TEXT)}
    for old, new in CHANGES:
        assert old in TEXT
        found[TEXT.replace(old, new)] = of(TEXT.replace(old, new))
    assert len(found) == len(CHANGES) + 1
    assert len(set(found.values())) == len(found), "two contents have one digest"
    assert of(TEXT) == found[TEXT]
    assert of(TEXT + "\nUNREAD = 3.0\nimport os\n") == found[TEXT], "what is not read is not in it"
    assert of("# a comment\n" + TEXT) == found[TEXT]


@pytest.mark.slow
def test_the_digest_is_the_same_in_another_process():
    code = "from tests.batching.test_content import TEXT, of\nprint(of(TEXT), of(TEXT, 'Spring'))"
    found = {f"{of(TEXT)} {of(TEXT, 'Spring')}"}
    same = {"JAX_ENABLE_X64": str(jax.config.jax_enable_x64), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": "7", **same},
        capture_output=True, text=True, encoding="utf-8", check=True,
    )  # fmt: skip
    assert {done.stdout.strip()} == found


def test_what_a_module_reads_when_it_is_imported(tmp_path):
    """Also of a module that another one imports: the data are in a global that is read."""
    file = tmp_path / "data.txt"
    text = f"import numpy as np\nTABLE = np.loadtxt({str(file)!r})\ndef fn(x):\n    return TABLE[0] * x\n"
    found = set()
    for data in ("1 2 3", "1 2 4", "1 2 3"):
        file.write_text(data, encoding="utf-8")
        found.add(of(text))
    assert len(found) == 2


def test_functions_of_other_modules_are_known_by_content(monkeypatch):
    text = "import beside\ndef fn(x):\n    return beside.area(x)\n"
    found = []
    for factor in (1.0, 2.0, 1.0):
        beside = ModuleType("beside")
        exec(f"K = {factor}\ndef area(x):\n    return K * x\n", beside.__dict__)
        monkeypatch.setitem(sys.modules, "beside", beside)
        found.append(of(text))
    assert found[0] == found[2] != found[1]
    with pytest.raises(NotKnownError, match="fn reads beside: the module beside"):
        of("import beside\ndef fn(x):\n    return use(beside)\ndef use(m):\n    return m.K")


NOT_KNOWN = [
    ("import sys\nF = sys.__stdin__", "F.read()", "reads F: an object of Python's _io"),
    ("import threading\nX = [threading.Lock()]", "X", "reads X: an object of Python's _thread"),
    ("", "open('data')", r"fn: open\(\)"),
    ("import numpy as np", "np.loadtxt('data') * x", "fn: numpy.loadtxt"),
    ("from numpy import load as get", "get('data') * x", "fn reads get: numpy.load"),
    ("import numpy as np", "(lambda n: n.load('data'))(np)", "load, of a module"),
    ("import numpy as np", "getattr(np, 'load')('data')", "getattr, of a module"),
    ("import numpy as np", "np.random.normal() * x", "numpy.random"),
    ("import time", "time.time() * x", "fn reads time.time: an object of Python's time"),
    ("import os", "os.environ['A']", "fn reads os.environ: an object of Python's os"),
    ("from pathlib import Path\nP = Path('a')", "P.read_text()", "fn reads P: an object of Python's pathlib"),
    ("import functools\n@functools.cache\ndef table():\n    return 1", "table()", "reads table: remembers earlier"),
    ("import jax", "jax.pure_callback(abs, x, x)", "fn: jax.pure_callback"),
    ("class A:\n    def __reduce__(self):\n        return (A, ())\nX = A()", "X.k", "reads X: a A defines itself"),
    ("X = (y for y in (1, 2))", "next(X)", "reads X: a generator"),
    ("X = {(1, 2)}", "X", "no fixed order"),
]


@pytest.mark.parametrize(("before", "value", "said"), NOT_KNOWN)
def test_what_is_not_known_has_no_digest(before, value, said):
    with pytest.raises(NotKnownError, match=said):
        of(f"{before}\ndef fn(x):\n    return {value}\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def fn(x):\n    import numpy as n\n    return n.load('data')", "load, of a module"),
        ("def fn(x):\n    import pandas\n    return x", "fn: imports pandas"),
        (
            "def outer():\n    import numpy as n\n    return lambda x: n.fromfile('data')\nfn = outer()",
            "fromfile, of a",
        ),
    ],
)
def test_imports_of_functions(text, said):
    with pytest.raises(NotKnownError, match=said):
        of(text)
