"""Declared fields: one declaration makes parameters, checks, file tables and docs, of the library's and of own elements."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.io.catalogue import builtin
from jaxmbs.io.generated import in_files, table_of
from jaxmbs.model.events import Action
from jaxmbs.model.field_rules import RULES, Kind, checked, checked_rows, refused
from jaxmbs.model.fields import Element, declared, element, field, type_name
from jaxmbs.model.forces.base import Force
from jaxmbs.study import units

ALL = [c for c in builtin() if declared(c)]


@pytest.mark.parametrize("cls", ALL, ids=lambda c: c.__name__)
def test_every_field_is_said_once_and_in_full(cls):
    for d in declared(cls):
        assert d.doc and "\n" not in d.doc, d.name
        assert all(units.quantity(u) for u in d.unit.split(" or ")), f"{d.name}: {d.unit!r} is no unit of a study file"
        assert f"{d.name}" in cls.__doc__ and d.doc in cls.__doc__


@pytest.mark.parametrize("cls", in_files(Element, ALL), ids=lambda c: c.__name__)
def test_a_table_has_the_fields_and_defaults_of_its_class(cls):
    table = table_of(cls, builtin())
    fields = {n: f for n, f in table.model_fields.items() if n != "type"}
    assert list(fields) == [d.name for d in declared(cls)]
    for f in dataclasses.fields(cls):
        assert fields[f.name].is_required() == (f.default is dataclasses.MISSING), f.name
        if not fields[f.name].is_required():
            assert fields[f.name].default == f.default, f.name


def test_type_names():
    assert [type_name(c) for c in (mbs.LinearSpring, mbs.Pusher, mbs.KnifeEdge)] == [
        "linear_spring",
        "pusher",
        "knife_edge",
    ]


GOOD = {
    Kind.NUMBER: [-1.0, 0.0], Kind.NOT_NEGATIVE: [0.0, 2.0], Kind.POSITIVE: [1e-9, 2.0],
    Kind.VECTOR: [(-1.0, 0.0, 2.0)], Kind.NOT_NEGATIVE_VECTOR: [(0.0, 1.0, 2.0)],
    Kind.DIRECTION: [(0.0, 0.0, -1.0), (0.6, 0.8, 0.0)], Kind.LIST: [(1.0, -2.0)],
    Kind.ROTATION: [np.eye(3), (0.0, 2.0, 0.0, 0.0)], Kind.INERTIA: [(1.0, 1.0, 2.0), np.diag([0.1, 0.2, 0.3]), (0, 0, 0)],
}  # fmt: skip
BAD = {
    Kind.NUMBER: [np.nan, np.inf], Kind.NOT_NEGATIVE: [-1e-9, np.nan], Kind.POSITIVE: [0.0, -1.0],
    Kind.VECTOR: [(0.0, np.inf, 0.0)], Kind.NOT_NEGATIVE_VECTOR: [(0.0, 1.0, -1e-9)],
    Kind.DIRECTION: [(0.0, 0.0, 1.1), (0.0, 0.0, 0.0)], Kind.LIST: [(1.0, np.nan)],
    Kind.ROTATION: [-np.eye(3), (0.0, 0.0, 0.0, 0.0)], Kind.INERTIA: [(1.0, 1.0, 2.1), (1.0, -1.0, 1.0), np.eye(3, k=1)],
}  # fmt: skip


@pytest.mark.parametrize("kind", RULES)
def test_one_rule_serves_values_batches_and_traced_samples(kind):
    for value in GOOD[kind]:
        x = np.asarray(value, float)
        assert checked(kind, value, "x").shape == x.shape
        checked_rows(kind, x[None], "x")
        assert not refused(kind, jnp.asarray(x)[None])[0]
    for value in BAD[kind]:
        x = np.asarray(value, float)
        with pytest.raises(mbs.ModelError, match="x"):
            checked(kind, value, "x")
        fine = next(np.asarray(g, float) for g in GOOD[kind] if np.shape(g) == x.shape)
        with pytest.raises(mbs.ModelError, match="x: instance 1"):
            checked_rows(kind, np.stack([fine, x]), "x")
        assert refused(kind, jnp.asarray(x)[None])[0]


@element
class Magnet(Force):
    """Repels two bodies by strength / distance²."""

    body_a: str = field(Kind.BODY_OR_WORLD, "", "one body")
    body_b: str = field(Kind.BODY_OR_WORLD, "", "other body")
    strength: Any = field(Kind.POSITIVE, "N", "force at a distance of 1 m")
    reach: Any = field(Kind.POSITIVE, "m", "distance beyond which it is off", default=1.0)
    least: Any = field(Kind.POSITIVE, "m", "distance within which it is off", default=0.1)

    def requirements(self, p):
        return {"reach must be more than least": p["reach"] > p["least"]}


def magnetic(**numbers):
    mech = mbs.Mechanism("m")
    mech.add_body("a", 1.0, inertia=(1, 1, 1))
    mech.add_joint("free", mbs.Free(), "world", "a")
    mech.add_force("magnet", Magnet("world", "a", **({"strength": 2.0} | numbers)))
    return mech


def test_a_users_own_element_has_parameters_and_checks():
    model = magnetic().build()
    assert mbs.get(mbs.set(model, {"magnet.strength": 3.0}), "magnet.strength") == 3.0
    assert model.structure.table["magnet.strength"][0].unit == "N"
    assert "strength [N]: force at a distance of 1 m (number > 0)" in Magnet.__doc__
    with pytest.raises(mbs.ModelError, match=r"force 'magnet': strength: 0\.0 must be more than zero"):
        magnetic(strength=0.0)
    with pytest.raises(mbs.ModelError, match=r"instance 1: -1\.0 must be more than zero"):
        mbs.vary(model, {"magnet.strength": np.array([1.0, -1.0])})


def test_what_numbers_must_satisfy_together_is_checked_everywhere():
    with pytest.raises(mbs.ModelError, match="force 'magnet': reach must be more than least"):
        magnetic(reach=0.05)
    model = magnetic().build()
    with pytest.raises(mbs.ModelError, match="set 'magnet': reach must be more than least"):
        mbs.set(model, {"magnet.reach": 0.05})
    with pytest.raises(mbs.ModelError, match="vary 'magnet': instance 2: reach must be more than least"):
        mbs.vary(model, {"magnet.reach": np.array([1.0, 2.0, 0.05])})
    mbs.vary(model, {"magnet.reach": np.array([0.3, 0.4]), "magnet.least": np.array([0.2, 0.3])})


@element
class Rebound(Action):
    """Two numbers that depend on one another."""

    joint: str = field(Kind.JOINT, "", "joint")
    low: Any = field(Kind.NUMBER, "", "less than high")
    high: Any = field(Kind.NUMBER, "", "more than low")

    def requirements(self, p):
        return {"high must be more than low": p["high"] > p["low"]}


def test_numbers_of_conditions_and_actions_are_checked_together():
    mech = mbs.library.double_pendulum()
    actions = Rebound("elbow", 1.0, 2.0), Rebound("shoulder", 3.0, 4.0)
    mech.add_event("stop", mbs.Distance("upper", "lower", value=2.0), actions)
    mech.add_event("pass", mbs.Distance("upper", "lower", value=-2.0, along=(1, 0, 0)), mbs.Finish())
    model = mech.build()
    with pytest.raises(mbs.ModelError, match="set 'stop': value: a distance must be more than zero"):
        mbs.set(model, {"stop.value": -1.0})
    with pytest.raises(mbs.ModelError, match="vary 'stop': instance 1: value: a distance must be more than zero"):
        mbs.vary(model, {"stop.value": np.array([1.0, -1.0])})
    with pytest.raises(mbs.ModelError, match="set 'pass': value: a distance must be more than zero"):
        mbs.set(model, {"pass.along": (0, 0, 0)})
    with pytest.raises(mbs.ModelError, match=r"set 'stop\.shoulder': high must be more than low"):
        mbs.set(model, {"stop.shoulder.high": 2.5})
    mbs.set(model, {"stop.elbow.high": 2.5, "stop.value": 1.0, "pass.value": -1.0})


def test_thrust_profiles_are_checked_in_set_and_vary():
    mech = mbs.Mechanism("m")
    mech.add_body("a", 1.0, inertia=(1, 1, 1))
    mech.add_joint("free", mbs.Free(), "world", "a")
    mech.add_force("engine", mbs.Thruster("a", thrust=1.0, times=(0, 1, 2), values=(1, 1, 0)))
    model = mech.build()
    with pytest.raises(mbs.ModelError, match=r"engine.*must increase"):
        mbs.set(model, {"engine.times": (0.0, 2.0, 1.0)})
    with pytest.raises(mbs.ModelError, match=r"engine.*instance 1.*must increase"):
        mbs.vary(model, {"engine.times": np.array([(0.0, 1.0, 2.0), (0.0, 1.0, 1.0)])})


def test_a_field_must_be_declared():
    with pytest.raises(TypeError, match=r"Loose\.stiffness is not declared"):

        @element
        class Loose(Force):
            stiffness: float = 0.0
