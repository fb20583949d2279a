"""Outside its own file nothing asks for the type of a joint: formulations ask for its properties."""

import ast
from pathlib import Path

from jaxmbs.model.events import public as events_public
from jaxmbs.model.forces import public as forces_public
from tests.model.joints.joints import TYPES

PACKAGE = Path(__file__).parents[3] / "jaxmbs"
# mechanisms and elements that add joints; the joints themselves
ALLOWED = (
    "library/", "model/joints/", "building/mechanism.py", "model/forces/slosh.py", "model/forces/reaction_wheel.py",
    "model/forces/rotor.py", "model/flexible_bodies/elements.py", "io/urdf.py", "io/sdf.py", "io/hinges.py", "io/mjcf.py",
    "io/usd.py",
)  # fmt: skip


def mentions(tree):
    """Names of joint types that a module imports, or compares a name with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jaxmbs.model.joints"):
            yield from (a.name for a in node.names if a.name in TYPES)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("joints", "mbs"):
            yield from (name for name in (node.attr,) if name in TYPES)
        if isinstance(node, ast.Compare):
            for constant in (c for c in ast.walk(node) if isinstance(c, ast.Constant)):
                if constant.value in TYPES:
                    yield constant.value


def test_no_module_asks_for_the_type_of_a_joint():
    found = {}
    for path in PACKAGE.rglob("*.py"):
        where = path.relative_to(PACKAGE).as_posix()
        names = set(mentions(ast.parse(path.read_text(encoding="utf-8"))))
        if names and path.name not in ("__init__.py", "public.py") and not where.startswith(ALLOWED):
            found[where] = names
    assert found == {}


def test_no_algorithm_asks_for_the_type_of_a_force_element_or_an_event():
    """Excepted: whether two elements are centres that attract everything is a question about these two."""
    elements = {name for name in (*vars(forces_public), *vars(events_public)) if name[0] != "_"}
    found = {}
    for room in ("dynamics", "building", "simulate", "stability", "design", "study"):
        for path in (PACKAGE / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                    asked = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)} & elements
                    if asked:
                        found.setdefault(path.relative_to(PACKAGE).as_posix(), set()).update(asked)
    assert found == {"building/built.py": {"Planet", "CentralGravity"}}


def test_the_search_finds_what_it_looks_for():
    for text in (
        "from jaxmbs.model.joints import Free\nisinstance(x, Free)",
        "isinstance(x, mbs.Revolute)",
        "joint_type in ('Free', 'Spherical')",
    ):
        assert set(mentions(ast.parse(text)))
