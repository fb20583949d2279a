"""The recipe for conda asks for what pyproject.toml asks for."""

import re
import tomllib

import pytest

from tests.pages import ROOT

yaml = pytest.importorskip("yaml")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CALLED = {"matplotlib": "matplotlib-base"}  # there without a toolkit for windows


@pytest.fixture(scope="module")
def recipe():
    """The recipe with the values of its context put in."""
    text = (ROOT / ".conda" / "recipe.yaml").read_text(encoding="utf-8")
    context = yaml.safe_load(text)["context"]
    return yaml.safe_load(re.sub(r"\$\{\{ (\w+) \}\}", lambda m: context.get(m[1], m[1]), text))


def split(requirements):
    """{name: versions} of requirements as pip or conda write them."""
    found = {}
    for text in requirements:
        name, versions = re.fullmatch(r"([\w-]+) ?(.*)", text).groups()
        name = CALLED.get(name, name)
        assert found.setdefault(name, versions) == versions, f"{name} is asked for twice, differently"
    return found


def test_name_version_and_license(recipe):
    project = PROJECT["project"]
    assert recipe["package"] == {"name": project["name"], "version": project["version"]}
    about = recipe["about"]
    assert (about["license"], [about["license_file"]]) == (project["license"], project["license-files"])
    assert about["summary"] == project["description"]


def test_requirements(recipe):
    project, asked = PROJECT["project"], recipe["requirements"]
    wanted = split([*project["dependencies"], *project["optional-dependencies"]["study"]])
    assert split(asked["run"]) == {"python": project["requires-python"], **wanted}
    python, pip, *host = asked["host"]
    assert (python, pip) == (f"python {project['requires-python'].removeprefix('>=')}.*", "pip")
    assert split(host) == split(PROJECT["build-system"]["requires"])


def test_commands(recipe):
    scripts = [f"{name} = {place}" for name, place in PROJECT["project"]["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
