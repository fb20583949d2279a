"""What help() says of every public name: arguments, shapes, and an example that runs."""

import dataclasses
import doctest
import inspect
import re
import typing

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs import elements
from jaxmbs.model import given

ROOMS = {"mbs": mbs, "mbs.library": mbs.library, "mbs.absolute": mbs.absolute, "mbs.design": mbs.design,
         "mbs.textbook": mbs.textbook}  # fmt: skip
EVERYWHERE = {"self", "model", "t", "mode", "gravity"}  # explained once, in help(jaxmbs) and help(jaxmbs.library)
SHAPES = {"q": "(nq,)", "q0": "(nq,)", "q_guess": "(nq,)"} | dict.fromkeys(("v", "v0", "a", "tau", "dv"), "(nv,)")
INNER = {"Structure", "Names", "Values", "Sides"}  # for the algorithms; users have names and numbers otherwise


def public():
    """Functions and classes by the name that users type."""
    for room, module in ROOMS.items():
        for name, x in vars(module).items():
            if not name.startswith("_") and (inspect.isclass(x) or inspect.isfunction(x)):
                yield f"{room}.{name}", x


PUBLIC = dict(public())
METHODS = {
    f"{name}.{method}": inspect.unwrap(getattr(x, "fget", x))
    for name, cls in PUBLIC.items()
    if inspect.isclass(cls)
    for method, x in vars(cls).items()
    if not method.startswith("_")
    and (inspect.isfunction(x) or isinstance(x, property))
    and not any(hasattr(base, method) for base in cls.__mro__[1:])  # explained where it is asked for
    and not (dataclasses.is_dataclass(cls) and method in cls.__dataclass_fields__)
}


def parameters(x):
    if dataclasses.is_dataclass(x):
        return [f.name for f in dataclasses.fields(x) if not f.name.startswith("_")]
    if inspect.isclass(x) and (issubclass(x, Exception) or hasattr(x, "__members__")):
        return []
    return [p for p in inspect.signature(x).parameters if not p.startswith("_")]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_explained_with_an_example(name):
    x = PUBLIC[name]
    said = x.__doc__ or ""
    assert ">>> " in said, f"{name}: no example"
    assert not _unmentioned(x, said), f"{name} does not mention {_unmentioned(x, said)}"
    if inspect.isfunction(x) and "." not in name.removeprefix("mbs."):
        lacking = [p for p in parameters(x) if p in SHAPES and SHAPES[p] not in said]
        assert not lacking, f"{name} does not give the shapes of {lacking}"


def _unmentioned(x, said):
    text = re.sub(r"^\s*(>>>|\.\.\.) .*$", "", said, flags=re.MULTILINE)
    return [p for p in parameters(x) if p not in EVERYWHERE and not re.search(rf"\b{p}\b", text)]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_explained(name):
    x = METHODS[name]
    said = inspect.getdoc(getattr(PUBLIC[name.rpartition(".")[0]], name.rpartition(".")[2])) or ""
    assert said, f"{name} has no docstring"
    assert not _unmentioned(x, said), f"{name} does not mention {_unmentioned(x, said)}"


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    space = {"mbs": mbs, "jax": jax, "jnp": jnp, "np": np}
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner, failures = doctest.DocTestRunner(verbose=False, optionflags=flags), []
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(PUBLIC[name]), space, name, None, 0)
    runner.run(example, out=failures.append)
    assert not failures, "".join(failures)


def classes(hint):
    """The classes of the library in an annotation."""
    if inspect.isclass(hint) and hint.__module__.startswith("jaxmbs"):
        yield hint
    for part in typing.get_args(hint):
        yield from classes(part)


@pytest.mark.parametrize("name", [name for name, x in (PUBLIC | METHODS).items() if inspect.isfunction(x)])
def test_what_is_returned_is_public(name):
    """Also what fields of results hold."""
    known = set(PUBLIC.values()) | {x for x in vars(elements).values() if inspect.isclass(x)}
    x = inspect.unwrap((PUBLIC | METHODS)[name])
    try:
        result = typing.get_type_hints(x).get("return")
    except NameError:  # a type that is imported for the checker only
        return
    for cls in classes(result):
        assert cls in known or cls.__name__ in INNER, f"{name} returns {cls.__qualname__}, which is not public"
        hints = typing.get_type_hints(cls) if cls in known else {}
        lacking = [c.__qualname__ for h in hints.values() for c in classes(h) if c not in known]
        assert not [c for c in lacking if c not in INNER], f"fields of {cls.__qualname__} hold {lacking}"


ANYTHING = {  # what may be of any kind there
    "mbs.jit": {"fn", "in_axes", "return"},
    "mbs.rows": {"fn", "return"},
    "mbs.explain": {"fn", "args", "in_axes"},
    "mbs.export": {"fn", "args"},
    "mbs.load": {"options"},
}


@pytest.mark.parametrize("name", [name for name, x in PUBLIC.items() if inspect.isfunction(x)])
def test_a_function_says_what_it_takes_and_returns(name):
    """To type checkers: no Any, but for what is listed."""
    found = inspect.signature(inspect.unwrap(PUBLIC[name]))
    said = {p.name: p.annotation for p in found.parameters.values()} | {"return": found.return_annotation}
    vague = {k for k, annotation in said.items() if re.search(r"\bAny\b", str(annotation))}
    assert vague <= ANYTHING.get(name, set())


ELEMENTS = {  # those with declared fields
    name: dataclasses.fields(x)
    for name, x in PUBLIC.items()
    if dataclasses.is_dataclass(x) and all("declared" in f.metadata for f in dataclasses.fields(x))
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_an_element_says_what_its_fields_take(name):
    """A pose is both given, as numbers in any form, and computed, as arrays."""
    said = {f.name: str(f.type).replace("Callable[..., Any]", "") for f in ELEMENTS[name]}
    vague = {k for k, annotation in said.items() if re.search(r"\bAny\b", annotation)}
    assert vague <= ({"position", "rotation"} if name == "mbs.Pose" else set())


SHAPED = r"\b(Bool|Complex|Float|Int)\[jax\.Array, '[^']*'\]"
ANY_SHAPE = {"mbs.derivative", "mbs.get"}  # that of the parameter
FUNCTIONS = [
    name
    for name, x in (PUBLIC | METHODS).items()
    if inspect.isfunction(x) and name.rpartition(".")[0] not in ELEMENTS  # what elements compute is for the algorithms
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_the_shapes_of_its_states_and_results(name):
    """To type checkers and readers: nq or nv where a state goes in, and no array without its axes comes out."""
    found = inspect.signature(inspect.unwrap((PUBLIC | METHODS)[name]))
    for p in found.parameters.values():
        if p.name in SHAPES:
            kinds = [str(x) for kind, x in vars(given).items() if kind in re.findall(r"\w+", str(p.annotation))]
            assert f"' {SHAPES[p.name][1:3]}'" in "".join(kinds), f"{name}: {p.name} is {p.annotation}"
    back = str(found.return_annotation)
    assert name in ANY_SHAPE or "jax.Array" not in re.sub(SHAPED, "", back), f"{name} returns {back}"


@pytest.mark.parametrize("name", [name for name, x in PUBLIC.items() if inspect.isclass(x) and name not in ELEMENTS])
def test_a_field_of_a_result_says_its_shape(name):
    said = {k: getattr(x, "__forward_arg__", str(x)) for k, x in inspect.get_annotations(PUBLIC[name]).items()}
    assert not {k: x for k, x in said.items() if "jax.Array" in re.sub(SHAPED, "", x)}
