"""Kernels compiled for a GPU that is not there, by XLA and by NVIDIA's assembler: `make test-gpu`, with CUDA's wheels."""

import importlib.util
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import topologies

import jaxmbs as mbs
from benchmarks import ptx as table
from jaxmbs.batching import mapped_program
from jaxmbs.batching.gpu import PTX
from jaxmbs.geometry import Before, Piece, Union, Unions, separation
from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.study import read
from jaxmbs.study.samples.batch import GPU_ROWS, keys_of, precision, samples_of
from tests.study.conftest import EXAMPLE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        table.tool("ptxas") is None or importlib.util.find_spec("jax_cuda13_plugin") is None, reason="no wheels of CUDA"
    ),
]
ARM = mbs.library.arm7().build()
GROWTH = 1.05


def forward(q, v, tau):
    return mbs.forward_dynamics(ARM, q, v, tau)


def motion(q, v):
    def step(state, _):
        q, v = state
        return (q + 1e-3 * v, v + 1e-3 * forward(q, v, jnp.zeros(7))), q

    return jax.lax.scan(step, (q, v), None, length=100)


@pytest.fixture(scope="module")
def devices():
    """Two in one machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
        described = Path(__file__).with_name("h100.txtpb").read_text(encoding="utf-8")
        yield topologies.get_topology_desc(
            platform="cuda", topology_name="h100", topology="1x1x2", target_config=described
        ).devices


@pytest.fixture(scope="module")
def device(devices):
    return devices[0]


@pytest.mark.parametrize(
    ("fn", "operands"),
    [
        (jax.vmap(forward), 3), (jax.vmap(mbs.rows(motion)), 2), (mbs.jit(forward, in_axes=0), 3),
        (jax.vmap(mbs.rows(jax.jacfwd(forward))), 3),
    ],
)  # fmt: skip
def test_a_batch_is_one_kernel_and_nothing_else(fn, operands, device):
    here = jax.sharding.SingleDeviceSharding(device)
    args = [jax.ShapeDtypeStruct((65_536, 7), np.float64, sharding=here)] * operands
    compiled = jax.jit(fn).trace(*args).lower().compile()
    text = compiled.as_text()
    assert (text.count("custom-call("), text.count(" fusion("), text.count(" while(")) == (1, 0, 0)
    assert compiled.memory_analysis().temp_size_in_bytes == 0


def test_loops_of_rows_that_end_when_they_may_are_one_kernel(device):
    """Distances of bodies: loops within loops, and tables."""
    corners = np.random.default_rng(0).normal(size=(2, 4, 12, 3))
    unions = Unions([Union.of([Piece.of_points(x) for x in body]) for body in corners], np.float64)

    def gap(R, p):
        return separation(unions, 0, 1, Matrix3.of(list(jnp.ravel(R))), Vector3.of(list(p)), Before()).gap

    here = jax.sharding.SingleDeviceSharding(device)
    args = [jax.ShapeDtypeStruct((65_536, *s), np.float64, sharding=here) for s in ((3, 3), (3,))]
    text = jax.jit(mbs.jit(gap, in_axes=0)).trace(*args).lower().compile().as_text()
    assert (text.count("custom-call("), text.count(" fusion("), text.count(" while(")) == (1, 0, 0)


def test_two_devices_share_the_rows(devices, monkeypatch):
    """Each computes the half that it holds, and nothing is moved between them."""
    monkeypatch.setattr(jax, "device_count", lambda: 2)  # programs for one device do not ask how rows are divided
    mesh = jax.sharding.Mesh(np.array(devices), ("rows",))
    halves = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("rows"))
    args = [jax.ShapeDtypeStruct((65_536, 7), np.float64, sharding=halves)] * 3
    text = jax.jit(jax.vmap(forward)).trace(*args).lower().compile().as_text()
    assert (text.count("custom-call("), text.count(" fusion("), text.count("f64[32768,7]") > 0) == (1, 0, True)
    assert not any(name in text for name in ("all-gather", "all-reduce", "all-to-all", "collective-permute"))


def test_a_study_is_one_kernel(device, monkeypatch):
    """Draws are XLA's, as on a CPU; the motions with their events are one kernel."""
    monkeypatch.setattr(mapped_program.machine, "MACHINE", PTX)  # a study asks which device computes here
    here, study = jax.sharding.SingleDeviceSharding(device), read(EXAMPLE)
    keys = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=here), keys_of(study))
    index = jax.ShapeDtypeStruct((GPU_ROWS,), np.uint32, sharding=here)
    text = samples_of(study, precision()).trace(keys, index).lower().compile().as_text()
    assert text.count("custom-call(") == 1


def test_xla_takes_the_handler_that_launches_by_the_driver(device, fake, later):
    here = jax.sharding.SingleDeviceSharding(device)
    args = [jax.ShapeDtypeStruct((65_536, 7), np.float64, sharding=here)] * 3
    text = jax.jit(jax.vmap(forward)).trace(*args).lower().compile().as_text()
    assert (text.count("custom-call("), text.count("jaxmbs_ptx_"), text.count(" fusion(")) == (1, 1, 0)


@pytest.mark.parametrize("case", table.cases(), ids=lambda c: f"{c.function}, {c.robot}, {c.dtype}")
def test_registers_spills_and_instructions_have_not_grown(case):
    kept = json.loads(table.RESULT.read_text(encoding="utf-8"))["kernels"]
    for row in table.row(case):
        (old,) = (
            x for x in kept if (x["function"], x["robot"], x["dtype"], x["architecture"])
            == (row.function, row.robot, row.dtype, row.architecture)
        )  # fmt: skip
        for name in ("registers", "stored", "loaded", "instructions"):
            assert getattr(row, name) <= GROWTH * old[name], (row, name, old[name])
