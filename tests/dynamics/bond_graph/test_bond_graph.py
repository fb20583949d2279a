"""Bond graphs: efforts at every node sum to zero, power balances, energies change by what the elements take up."""

import dataclasses
import functools
import importlib.util
import xml.etree.ElementTree as ET
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.bond_graph.text import watts
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.element_loads import element_loads
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.elements import Force, Kind, element, field
from jaxmbs.view import energy_flow
from tests.cases import case, relative
from tests.dynamics.formulations.helpers import quick

ROUNDING = 1e-12


def skate():
    mech = mbs.Mechanism("skate")
    mech.add_body("sled", mass=2.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.15))
    mech.add_joint("ice", mbs.Planar(), "world", "sled")
    mech.add_constraint("blade", mbs.KnifeEdge("sled"))
    return mech.build(), np.array([0.3, 0.1, 0.4]), 2.0 * np.array([np.cos(0.4), np.sin(0.4), 1.0]), np.ones(3), {}


def chain():
    """A cart, a link and another on a universal joint, with every kind of element."""
    mech = mbs.Mechanism("tree", gravity=(0.3, 0, -9.81))
    joints = (mbs.Planar(), mbs.Revolute((0, 1, 0)), mbs.Universal((1, 0, 0), (0, 1, 0)))
    for k, (joint, parent) in enumerate(zip(joints, ("world", "b0", "b1"), strict=True)):
        mech.add_body(f"b{k}", mass=1.0 + k, com=(0.1, 0.05, -0.3), inertia=(0.1, 0.12, 0.08))
        mech.add_joint(f"j{k}", joint, parent, f"b{k}", mbs.Pose((0.1, 0.2, -0.4), (1, 0.2, 0.1, 0)))
    mech.add_force("coil", mbs.TorsionSpring("j1", stiffness=5.0, damping=0.7, rest_angle=0.3))
    mech.add_force("oil", mbs.Damper("j2", damping=0.4))
    mech.add_force("strut", mbs.LinearSpring("b0", "b2", (0.1, 0, 0), stiffness=50.0, rest_length=0.4, damping=2.0))
    mech.add_force("rope", mbs.LinearSpring("world", "b1", stiffness=20.0))
    mech.add_force("jet", mbs.Thruster("b2", point=(0, 0.1, 0), direction=(1, 0, 0), thrust=3.0))
    mech.add_force("hand", mbs.External(lambda model, t, q, v: jnp.sin(q) * t))
    push = mbs.Pusher("b0", "b1", (0, 0, 0), (0, 0, 0), (1, 0, 0), 30.0, 9.0, 5.0, delay=0.8)
    mech.add_force("pusher", push)
    model = mech.build()
    q, v, tau = np.random.default_rng(3).normal(size=(3, model.nv))
    return model, q, v, tau, {"t": 0.7}


def pair():
    """Two pendulums with a strut and a jet."""
    mech = mbs.Mechanism("pair", gravity=(0, 0, -9.81))
    for k, parent in enumerate(("world", "b0")):
        mech.add_body(f"b{k}", mass=1.0 + k, com=(0.1, 0, -0.3), inertia=(0.1, 0.12, 0.08))
        mech.add_joint(f"j{k}", mbs.Revolute((0, 1, 0)), parent, f"b{k}", mbs.Pose((0, 0, -0.6 * k)))
    mech.add_force("strut", mbs.LinearSpring("world", "b1", stiffness=50.0, rest_length=0.4, damping=2.0))
    mech.add_force("jet", mbs.Thruster("b1", direction=(1, 0, 0), thrust=3.0))
    return mech


def four_bar():
    """Crank, coupler and rocker in the xz plane; the crank turns as it is told."""
    mech = mbs.Mechanism("four bar", gravity=(0, 0, -9.81))
    lengths = {"crank": 0.3, "coupler": 0.9, "rocker": 0.6}
    for name, length in lengths.items():
        mech.add_body(name, mass=2 * length, com=(length / 2, 0, 0), inertia=(0.001, 0.02, 0.02))
    mech.add_joint("crank", mbs.Revolute((0, 1, 0)), "world", "crank")
    mech.add_joint("pin", mbs.Revolute((0, 1, 0)), "crank", "coupler", mbs.Pose((0.3, 0, 0)))
    mech.add_joint("rocker", mbs.Revolute((0, 1, 0)), "world", "rocker", mbs.Pose((0.8, 0, 0)))
    mech.close_loop("cut", mbs.Spherical(), "coupler", "rocker", mbs.Pose((0.9, 0, 0)), mbs.Pose((0.6, 0, 0)))
    mech.add_force("oil", mbs.Damper("rocker", damping=0.3))
    model = mech.build()
    mode = model.mode(lock="crank")
    q, v, *_ = mbs.assemble(model, np.array([-1.2, 0.8, -1.3]), np.array([2.0, 0.0, 0.0]), fixed=("crank",))
    return model, q, v, np.array([0.1, 0.2, 0.3]), {"mode": mode}


def shaken():
    """A pendulum on a support that moves as a function of time, and a rheonomic constraint."""

    def z(q, t):
        return jnp.stack([0.3 * jnp.sin(2 * t), 0 * t, 0 * t])

    def G(q, t):
        c, s, one, zero = jnp.cos(q[0]), jnp.sin(q[0]), jnp.ones_like(q[0]), jnp.zeros_like(q[0])
        return jnp.stack([jnp.stack(r) for r in ((c, zero, s), (zero, one, zero), (-s, zero, c))])

    mech = mbs.Mechanism("shaken", gravity=(0, 0, -9.81))
    for k, (joint, parent) in enumerate(((mbs.General(z, G, 1), "world"), (mbs.Revolute((0, 1, 0)), "b0"))):
        mech.add_body(f"b{k}", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
        mech.add_joint(f"j{k}", joint, parent, f"b{k}", mbs.Pose((0, 0, -k)))
    mech.add_constraint("cam", mbs.Holonomic(lambda model, t, q, v: q[1:] - 0.2 * jnp.sin(3 * t)))
    t = 0.4
    return mech.build(), np.array([0.3, 0.2 * np.sin(1.2)]), np.array([0.7, 0.6 * np.cos(1.2)]), np.ones(2), {"t": t}


CASES = {"skate": skate, "tree": chain, "loop": four_bar, "rheonomic": shaken}


@functools.cache
def motion(name):
    """(graph at given accelerations, that of the motion, its accelerations, what made it)."""
    model, q, v, tau, options = CASES[name]()

    @quick
    def graphs(a):
        own = mbs.textbook.bond_graph(model, q, v, tau=tau, **options)
        return (
            mbs.textbook.bond_graph(model, q, v, a, tau, **options),
            own,
            mbs.forward_dynamics(model, q, v, tau, **options),
        )

    _, own, a = graphs(jnp.zeros(model.nv))
    return lambda a: graphs(a)[0], own, a, (model, q, v, options)


@pytest.fixture(scope="module", params=CASES)
def found(request):
    return motion(request.param)


def size(graph, node, what):
    """Largest effort (flow) at the node."""
    return max([float(jnp.abs(getattr(b, what)).max(initial=0)) for b in graph.bonds if node in (b.tail, b.head)] + [1])


def taken(graph, *roles):
    """Power that the elements of these roles take up."""
    return sum(float(p) for x, p in graph.powers().items() if x.split(":")[0] in roles)


@pytest.mark.usually("tree", "skate")
def test_efforts_sum_to_zero_at_every_node(found):
    graph_at, _, a, _ = found
    graph = graph_at(a)
    for node, residual in graph.residuals().items():
        what = "effort" if graph.kind(node) == "1" else "flow"
        assert np.abs(residual).max() <= ROUNDING * size(graph, node, what), node


def test_power_balances(found):
    graph_at, _, a, (model, *_, options) = found
    graph = graph_at(a)
    powers = graph.powers()
    largest = max(abs(float(b.power)) for b in graph.bonds)
    assert abs(sum(powers.values())) < ROUNDING * largest
    for name, power in powers.items():
        if graph.kind(name) in ("MTF", "MGY"):
            assert abs(power) < ROUNDING * largest, name
        if graph.kind(name) == "R" and not name.endswith("pusher"):
            assert power >= 0
    if not model.structure.rheonomic and "t" not in options:
        assert abs(taken(graph, "given")) < ROUNDING * largest  # scleronomic constraints do no work


def test_elements_take_up_the_rates_of_the_energies(found):
    _, graph, a, (model, q, v, options) = found
    t = options.get("t", 0.0)

    def energies(q, v, t):
        return jnp.stack(mbs.energy(model, q, v, t=t))

    rates = quick(lambda a: jax.jvp(energies, (q, v, jnp.asarray(t)), (jnp.asarray(v), a, jnp.asarray(1.0)))[1])(a)
    got = (taken(graph, "inertia"), taken(graph, "store", "gravity"))
    assert relative(got, rates) < 1e-11


def test_a_wrong_acceleration_leaves_an_effort_at_the_rates(found):
    graph_at, _, a, (model, q, _, options) = found
    free = jnp.asarray(True) if "mode" not in options else ~options["mode"].lock
    da = jnp.where(free, jnp.asarray(np.random.default_rng(5).normal(size=model.nv)), 0.0)
    residuals = graph_at(a + da).residuals()
    got = jnp.concatenate([residuals[f"rate:{joint}"] for joint in model.joint_names])
    want = jnp.where(free, mbs.mass_matrix(model, q, t=options.get("t", 0.0)) @ da, 0.0)  # the lock takes its part
    assert np.abs(want).max() > 0.01
    assert relative(-got, want) < 1e-11  # outwards: what the inertias take


def test_the_graph_finds_the_acceleration_itself(found):
    graph_at, own, a, _ = found
    for x, y in zip(graph_at(a).bonds, own.bonds, strict=True):
        assert relative(x.effort, y.effort) < 1e-11


@element
class Differential(Force):
    """Loses power at two joints, in two parts."""

    joint_a: str = field(Kind.JOINT, "", "one")
    joint_b: str = field(Kind.JOINT, "", "the other")
    damping: float = field(Kind.NOT_NEGATIVE, "N m s/rad", "of each part", default=0.5)

    def apply(self, p, scene, loads):
        for joint in (self.joint_a, self.joint_b, self.joint_a):
            loads.joint(joint, [-p["damping"] * scene.rates(joint)[0]])

    def power(self, p, scene):
        return -p["damping"] * sum(scene.rates(x)[0] ** 2 for x in (self.joint_a, self.joint_b, self.joint_a))


def test_what_an_element_does_at_several_joints_of_a_body_adds():
    """Two cut joints of one body, and a joint of the tree twice; in plain floats."""
    mech = mbs.Mechanism("differential")
    for name in "abc":
        mech.add_body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        mech.add_joint(f"hinge {name}", mbs.Revolute((0, 0, 1)), "world", name)
    mech.close_loop("one", mbs.Revolute((0, 0, 1)), "a", "b")
    mech.close_loop("two", mbs.Revolute((0, 0, 1)), "b", "c")
    mech.add_force("cut", Differential("one", "two"))
    mech.add_force("tree", Differential("hinge a", "hinge b"))
    state = State(Tree(mech.build()), [0.0, 0.0, 0.0], [1.0, 3.0, 7.0])
    total = {}
    for _, _, _, efforts in element_loads(state):
        for node, f in efforts.items():
            total[node] = np.add(total.get(node, 0.0), f)
    moments = {node: f[0] if node.startswith("rate") else f[2] for node, f in total.items()}
    assert moments == pytest.approx(
        {"body:a": 2.0, "body:b": -2.0 + 2.0, "body:c": -2.0, "rate:hinge a": -1.0, "rate:hinge b": -1.5}
    )
    assert {k: f.moment.z for k, f in state.loads.on_link.items()} == pytest.approx({0: 2.0, 1: 0.0, 2: -2.0})
    assert state.loads.on_joint == pytest.approx({0: -1.0, 1: -1.5})


def test_without_a_damper_nothing_balances():
    _, graph, _, (model, _, v, _) = motion("tree")
    without = dataclasses.replace(graph, bonds=tuple(b for b in graph.bonds if b.head != "loss:coil"))
    rate = v[model.v_slice("j1")]
    assert relative(without.residuals()["rate:j1"], 0.7 * rate) < 1e-11
    assert abs(sum(without.powers().values()) + 0.7 * float(rate @ rate)) < 1e-11


@pytest.mark.slow
def test_joints_transmit_their_reactions():
    """All joint types, against the recursion."""
    c = case(104, 4)
    q, v, a, tau = next(c.rows())
    graph, reactions = quick(
        lambda q, v, a, tau: (mbs.textbook.bond_graph(c.model, q, v, a, tau), mbs.joint_reactions(c.model, q, v, tau))
    )(q, v, a, tau)
    for link, wrench in zip(c.model.structure.links, reactions, strict=True):
        assert relative(graph.bond(f"joint:{link.name}", f"body:{link.body}").effort, wrench) < 1e-10
    assert max(float(jnp.abs(r).max(initial=0)) for r in graph.residuals().values()) < 1e-10


def test_a_lock_is_a_source_with_the_drive_as_its_effort():
    model, tau = pair().build(), np.array([0.3, -0.2])
    driven = mbs.textbook.controlled_dynamics(
        model, [0.3, 0], [0.5, 0], tau, motions={"j1": lambda t: jnp.sin(3 * t)}, t=0.2
    )
    graph_at = quick(lambda mode: mbs.textbook.bond_graph(model, driven.q, driven.v, driven.a, tau, mode=mode))
    graph = graph_at(model.mode(lock="j1"))
    assert relative(graph.bond("lock:j1", "rate:j1").effort, driven.drive[1:]) < ROUNDING
    assert float(jnp.abs(graph.bond("lock:j0", "rate:j0").effort).max()) == 0
    assert graph.powers()["lock:j1"] == pytest.approx(-float(driven.drive @ driven.v))
    assert max(float(jnp.abs(r).max()) for r in graph.residuals().values()) < ROUNDING * 100
    off = graph_at(model.mode(off=("strut", "jet"))).powers()
    assert [float(off[x]) for x in ("store:strut", "loss:strut", "source:jet")] == [0, 0, 0]


def test_a_violated_constraint_leaves_a_flow():
    model, q, v, _, _ = skate()
    slip = 0.3 * np.array([-np.sin(0.4), np.cos(0.4), 0.0])
    graph_at = quick(lambda mode: mbs.textbook.bond_graph(model, q, v + slip, mode=mode))
    residual = graph_at(model.mode()).residuals()["constraint:blade"]
    assert relative(np.abs(residual), [0.3]) < ROUNDING
    off = graph_at(model.mode(off="blade"))
    assert float(jnp.abs(off.bond("given:blade", "constraint:blade").effort).max()) < 1e-14
    assert float(jnp.abs(off.residuals()["constraint:blade"]).max()) == 0


@pytest.mark.interpreted
def test_a_cut_joint_that_moves_in_time_gives_the_power_that_it_needs():
    """A body that a closure lifts, z = 0.3 sin 2t, on a rail, also on one that moves by itself; and as a function."""

    def closure(z, G, t):
        return jnp.stack([z[2] - 0.3 * jnp.sin(2 * t)])

    def upwards(q, t):
        return jnp.stack([0 * t, 0 * t, q[0] + 0.1 * jnp.cos(t)])

    t, m, g = 0.4, 2.0, 9.81
    z, rate, acceleration = 0.3 * np.sin(2 * t), 0.6 * np.cos(2 * t), -1.2 * np.sin(2 * t)
    for kind in ("closure", "function", "closure on a moving rail"):
        mech, rail, own = mbs.Mechanism("lift", gravity=(0, 0, -g)), mbs.Prismatic((0, 0, 1)), (0.0, 0.0)
        if kind.endswith("moving rail"):
            rail, own = mbs.General(upwards, lambda q, t: jnp.eye(3), 1), (0.1 * np.cos(t), -0.1 * np.sin(t))
        mech.add_body("load", m, (0.1, 0, 0), (0.1, 0.2, 0.1))
        mech.add_joint("rail", rail, "world", "load")
        if kind == "function":
            lifted = mbs.Holonomic(lambda model, t, q, v: jnp.stack([q[0] - 0.3 * jnp.sin(2 * t)]))
            mech.add_constraint("drive", lifted)
        else:
            joint = mbs.General(lambda q, t: jnp.zeros(3), lambda q, t: jnp.eye(3), 5, closure=closure)
            mech.close_loop("drive", joint, "world", "load")
        model = mech.build()
        graph = mbs.textbook.bond_graph(model, [z - own[0]], [rate - own[1]], t=t)
        powers = {name: float(power) for name, power in graph.powers().items()}
        assert powers["given:drive"] == pytest.approx(-m * (g + acceleration) * rate, rel=1e-12), kind
        assert abs(sum(powers.values())) < 1e-12, kind
        assert max(float(jnp.abs(r).max(initial=0)) for r in graph.residuals().values()) < 1e-12, kind
    off = mbs.textbook.bond_graph(model, [z - own[0]], [rate - own[1]], t=t, mode=model.mode(off="drive"))
    assert float(off.bond("given:drive", "constraint:drive").flow[0]) == 0


def test_the_nodes_of_the_source_pass_energy_through_the_transformer():
    """[K 1, fig. 2]: nodes x', y', phi'; what x loses on the circle, y gets, through the constraint."""
    mech = mbs.Mechanism("skate")
    for name, below, joint in (
        ("x", "world", mbs.Prismatic((1, 0, 0))), ("y", "on_x", mbs.Prismatic((0, 1, 0))),
        ("phi", "on_y", mbs.Revolute((0, 0, 1))),
    ):  # fmt: skip
        mech.add_body(f"on_{name}", **({"mass": 2.0, "inertia": (0, 0.2, 0.2)} if name == "phi" else {}))
        mech.add_joint(name, joint, below, f"on_{name}")
    edge = mbs.Nonholonomic(lambda model, t, q, v: jnp.stack([jnp.sin(q[2]) * v[0] - jnp.cos(q[2]) * v[1]]))
    mech.add_constraint("blade", edge)
    model, phi = mech.build(), 0.6
    v = np.array([2 * np.cos(phi), 2 * np.sin(phi), 2.0])
    graph = mbs.textbook.bond_graph(model, np.array([0.0, 0.0, phi]), v)
    given_to_y = float(graph.bond("row:blade/y", "rate:y").power)
    assert given_to_y == pytest.approx(2.0 * v[1] * v[0] * v[2], rel=1e-12)  # m y' y" with y" = x' phi'
    assert float(graph.bond("row:blade/x", "rate:x").power) == pytest.approx(-given_to_y, rel=1e-12)
    assert abs(taken(graph, "given")) < 1e-14


def test_jit_vmap_and_derivatives():
    model, q, v, tau, _ = skate()
    rows = jnp.asarray(np.array([[1.0], [0.5], [2.0]]) * np.asarray(v))

    def graph(v):
        return mbs.textbook.bond_graph(model, q, v, tau=tau)

    mapped, alone = quick(jax.vmap(graph))(rows), quick(graph)
    assert isinstance(mapped, mbs.textbook.BondGraph)
    assert mapped.powers()["inertia:sled"].shape == (3,)
    for k, row in enumerate(rows):
        assert relative(mapped.residuals()["rate:ice"][k], np.zeros(3)) < ROUNDING
        for a, b in zip(mapped.bonds, alone(row).bonds, strict=True):
            assert relative(a.effort[k], b.effort) < ROUNDING
    # the power of a given force is linear in the velocity
    rate = quick(jax.grad(lambda v: -graph(v).powers()["tau:ice"]))(jnp.asarray(v))
    assert relative(rate, tau) < ROUNDING
    for export in (mapped.graphml, mapped.dot, lambda: energy_flow(mapped)):
        with pytest.raises(mbs.ModelError, match="batch of states"):
            export()


def test_exports(tmp_path):
    graph = motion("loop")[1]
    text = graph.graphml(tmp_path / "out" / "graph.graphml")
    assert (tmp_path / "out" / "graph.graphml").read_text(encoding="utf-8") == text
    space = {"g": "http://graphml.graphdrawing.org/xmlns"}
    root = ET.fromstring(text)
    assert {x.get("id") for x in root.iterfind(".//g:node", space)} == {*graph.nodes, *graph.elements}
    edges = list(root.iterfind(".//g:edge", space))
    assert [(e.get("source"), e.get("target")) for e in edges] == [(b.tail, b.head) for b in graph.bonds]
    data = [{d.get("key"): d.text for d in e.iterfind("g:data", space)} for e in edges]
    for b, read in zip(graph.bonds, data, strict=True):
        effort, flow = (np.array((read[x] or "").split(), float) for x in ("effort", "flow"))
        assert effort @ flow == pytest.approx(float(read["power"]), rel=1e-9, abs=1e-9)
        assert relative(effort, b.effort) == 0
    dot = graph.dot(tmp_path / "graph.dot")
    assert all(f'"{x}" [label=' in dot for x in (*graph.nodes, *graph.elements))
    assert dot.count(" -> ") == len(graph.bonds)
    shown = {t.get_text() for t in energy_flow(graph).texts}
    for x in graph.vertices:
        if x.kind != "MTF" and not x.id.startswith("body:"):
            assert any(x.id.replace(":", "\n", 1) in text for text in shown), x.id


def test_names_may_hold_any_character():
    mech = mbs.Mechanism('a "b" <c> & \\d')
    mech.add_body('x "y" <&>', mass=1.0, inertia=(1, 1, 1))
    mech.add_joint("h", mbs.Revolute((0, 0, 1)), "world", 'x "y" <&>')
    graph = mbs.textbook.bond_graph(mech.build(), np.zeros(1), np.ones(1))
    assert 'body:x "y" <&>' in [x.get("id") for x in ET.fromstring(graph.graphml()).iter()]
    assert '"body:x \\"y\\" <&>"' in graph.dot()


def test_networkx_reads_it(tmp_path):
    networkx = pytest.importorskip("networkx")
    graph = motion("skate")[1]
    graph.graphml(tmp_path / "graph.graphml")
    read = networkx.read_graphml(tmp_path / "graph.graphml")
    assert set(read.nodes) == {*graph.nodes, *graph.elements}


def test_errors_name_what_is_wrong():
    model, q, v, _, _ = skate()
    with pytest.raises(mbs.ModelError, match=r"a has shape \(2,\)"):
        mbs.textbook.bond_graph(model, q, v, np.zeros(2))
    graph = motion("skate")[1]
    with pytest.raises(mbs.ModelError, match="body:slad"):
        graph.kind("body:slad")
    with pytest.raises(mbs.ModelError, match="bond"):
        graph.bond("body:sled", "tau:ice")


@pytest.mark.slow
def test_the_skate_of_the_source(tmp_path):
    path = Path(__file__).parents[3] / "examples" / "skate.py"
    spec = importlib.util.spec_from_file_location("skate", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    assert example.main(tmp_path / "skate.png") < 1e-9
    assert {x.suffix for x in tmp_path.iterdir()} == {".png", ".graphml", ".dot"}
    solution, _ = example.circle()
    quarter = np.argmin(np.abs(np.asarray(solution.t) - np.pi / 4))
    assert relative(solution.q[quarter], [1.0, 1.0, np.pi / 2]) < 1e-9


def test_powers_in_words():
    assert [watts(x, 1e3) for x in (1e3, -0.5, 1e-5, 1e-8)] == ["1000 W", "-0.5 W", "1e-05 W", "0 W"]
