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
def device():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
        described = Path(__file__).with_name("h100.txtpb").read_text(encoding="utf-8")
        yield topologies.get_topology_desc(
            platform="cuda", topology_name="h100", topology="1x1x1", target_config=described
        ).devices[0]


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


def test_registers_spills_and_instructions_have_not_grown():
    kept = json.loads(table.RESULT.read_text(encoding="utf-8"))["kernels"]
    before = {(x["function"], x["dtype"], x["architecture"]): x for x in kept}
    for row in table.rows(("sm_90",)):
        old = before[row.function, row.dtype, row.architecture]
        for name in ("registers", "stored", "loaded", "instructions"):
            assert getattr(row, name) <= GROWTH * old[name], (row, name, old[name])
