"""The key reference: all keys of a file, made from the declarations."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import jaxmbs as mbs
from jaxmbs.cli.app import app
from jaxmbs.design.file import file_table
from jaxmbs.io import InputError
from jaxmbs.io.reference import keys, table_of_contents
from jaxmbs.io.toml import parse
from jaxmbs.model.fields import declared

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_every_key_says_what_it_is():
    found = keys(file_table())
    assert len({k.path for k in found}) == len(found) > 300
    assert not [k.path for k in found if not k.doc or not k.kind or "  " in k.doc]
    assert not [k.path for k in found if "\n" in k.doc + k.of]


def test_an_elements_keys_are_its_declared_fields():
    found = {k.name: k for k in keys(file_table(), "pusher")}
    assert list(found) == ["name", "type", *(d.name for d in declared(mbs.Pusher))]
    stroke = found["stroke"]
    assert (stroke.path, stroke.kind, stroke.unit, stroke.default) == (
        "mechanism.forces.pusher.stroke", "number > 0", "m", None,
    )  # fmt: skip
    assert found["delay"].default == "0.0" and found["type"].kind == '"pusher"'
    assert found["stroke"].header == '[[mechanism.forces]] type = "pusher"'


@pytest.mark.parametrize("example", ["stage_separation", "separation_synthesis"])
def test_every_key_of_an_example_is_in_the_reference(example):
    known = {k.path for k in keys(file_table())}
    used = set()

    def walk(x, path):
        if isinstance(x, list) and x and isinstance(x[0], dict):
            for item in x:
                walk(item, path)
        elif isinstance(x, dict):
            for table in x.values() if path in ("initial", "dispersions", "outputs") else [x]:
                word = table.get("type", table.get("distribution"))
                for key, value in table.items():
                    walk(value, ".".join(filter(None, (path, word, key))))
        else:
            used.add(path)

    walk(parse((EXAMPLES / f"{example}.toml").read_bytes()), "")
    assert len(used) > 25 and not used - known


def test_a_path_that_does_not_exist_has_near_matches():
    with pytest.raises(InputError, match='pushr: is not a key of a file; did you mean "pusher"'):
        keys(file_table(), "pushr")


def test_the_command_prints_tables_or_json():
    run = CliRunner()
    text = run.invoke(app, ["keys", "mechanism.forces.pusher"], env={"COLUMNS": "160"}).output
    for word in ('[[mechanism.forces]] type = "pusher"', "stroke", "number > 0", "required", "Coulomb friction"):
        assert word in text
    (key,) = json.loads(run.invoke(app, ["keys", "simulation.dt", "--json"]).output)
    assert key["unit"] == "s" and key["default"] == "0.001"
    assert run.invoke(app, ["keys", "nothing_like_it"]).exit_code != 0


@pytest.mark.slow
def test_the_command_alone_is_a_table_of_contents():
    """A page with every table that stands in a file, and every type; the rest is a command away."""
    run = CliRunner()
    text = run.invoke(app, ["keys"], env={"COLUMNS": "160"}).output
    assert len(text.splitlines()) < 70
    every = keys(file_table())
    for word in (
        "[[design.free]]",
        "[mechanism.events.when]",
        "[outputs.NAME]",
        "criteria, modules",
        "t_end",
        "jaxmbs keys all",
    ):
        assert word in text, word
    types = {t for e in table_of_contents(every) for t in e.types}
    assert {"pusher", "normal", "joint_reaches", "clearance", "lock"} <= types
    assert all(t in text for t in types)
    everything = run.invoke(app, ["keys", "all"], env={"COLUMNS": "160"}).output
    assert len(everything.splitlines()) > 1000 and "min_over" in everything
    assert len(json.loads(run.invoke(app, ["keys", "--json"]).output)) == len(every)
