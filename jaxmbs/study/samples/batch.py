"""The compiled core of a study: computes samples by index, in blocks of one shape, on all devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import jaxmbs as mbs
from jaxmbs.batching import over_rows
from jaxmbs.batching.compiling import compiled as compiles_quickly
from jaxmbs.batching.disk_cache import cached as cached_on_disk
from jaxmbs.building.changes import varied
from jaxmbs.model.parameters import is_traced
from jaxmbs.simulate.chance import needs_key
from jaxmbs.study.folder.layout import DRAWS, labels
from jaxmbs.study.outputs.folding import counted, folded, results_of, staying
from jaxmbs.study.problem.programs import content

if TYPE_CHECKING:
    from jaxmbs.study.problem.schema import SimulationTable
    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.sampling.designs import SamplingPlan
    from jaxmbs.study.sampling.targets import Numbers

Array = Any
Results = dict[str, Any]

# each device runs its loops on one core: there is one device per core, and no bit of a result may depend on their number
_ONE_CORE: dict[str, str | bool] = {"xla_disable_hlo_passes": "cpu-parallel-task-assigner"}
GENERATOR = "threefry2x32"  # named here, so that a change of JAX's default does not change results
_NOISE = 0x6E6F6973  # folded into the key of a study, it gives the key of the noise
_DRAWN, _APPLIED = 128, 2000  # the programs that draw samples and that apply draws take multiples of these
# Samples of a block: few, so that a small run occupies all cores (in machine code, larger blocks are no faster);
# a GPU needs as many as it has threads if each takes all registers that it can: 132 multiprocessors of 256 (an H100)
BLOCK_ROWS = 64
GPU_ROWS = 33_792
_CALL_ROWS, _CALL_BLOCKS = 33_280, 32  # most samples of a device in one call, or this many blocks if that is more


def usual_rows() -> int:
    """Number of samples in a block, unless a run gives another one. It does not depend on the size of the run, because
    the last bits of a sample depend on the size of its block."""
    return BLOCK_ROWS if jax.default_backend() == "cpu" else GPU_ROWS


def most_blocks(rows: int) -> int:
    """Most blocks that a device computes in one call; part of the program's shapes, so it is the same for all runs."""
    return max(_CALL_BLOCKS, _CALL_ROWS // rows)


def precision() -> np.dtype:
    """The precision in which this process computes, decided by jax_enable_x64."""
    return jax.dtypes.canonicalize_dtype(float)


def halves(seed: int) -> tuple[np.uint32, np.uint32]:
    """The lower and the upper 32 bits of a seed."""
    return np.uint32(seed % 2**32), np.uint32(seed // 2**32)


def study_key(low: Any, high: Any) -> jax.Array:
    """The key of a study from the halves of its seed."""
    return jax.random.fold_in(jax.random.key(low, impl=GENERATOR), high)


def keys_of(study: Study) -> jax.Array:
    """Keys of the inputs of a study, and then that of its noise if it has any, from one cached program: about thirty
    small programs would take longer than a small run."""

    def keys(low: Array, high: Array) -> Array:
        key = study_key(low, high)
        found = study.dispersions.keys(key)
        if is_random(study):
            found = jnp.concatenate([found, jax.random.fold_in(key, _NOISE)[None]])
        return jax.random.key_data(found)

    return jax.random.wrap_key_data(cached_result(study, "keys", keys, *halves(study.seed)), impl=GENERATOR)


def is_random(study: Study) -> bool:
    """Whether its motions depend on random numbers of their own: the noise of sensors, and what controllers draw."""
    return bool(needs_key(study.model.structure))


def noise_of(study: Study, samples: Sequence[int] | None) -> Array | None:
    """(S,) keys of the random numbers in the motions of samples; if `samples` is None, (1,) that of the nominal motion.
    None if the motions have no random numbers."""
    if not is_random(study):
        return None
    of = jax.random.fold_in(study_key(*halves(study.seed)), _NOISE)
    return of[None] if samples is None else jax.vmap(partial(jax.random.fold_in, of))(np.asarray(samples, np.uint32))


def nominal_noise(study: Study) -> Array | None:
    """The key of the random numbers of the nominal motion, which are also those of searches by gradient, where all trials
    have the same noise."""
    keys = noise_of(study, None)
    return None if keys is None else keys[0]


def sample_of(study: Study, dtype: Any) -> Callable[..., Results]:
    """Function (model, q, v, key) -> {label: results} of one sample; without random numbers (model, q, v)."""
    start, fold = folded(study.outputs, dtype)
    time, label = study.simulation, labels(study).outputs

    def one(model: mbs.Model, q: Array, v: Array, key: Array | None = None) -> Results:
        run = simulated(time, model, q, v, key=key, save_every=None, fold=(start, fold))
        found = results_of(study.outputs, run.folded, run.events, model, q, v)
        return {
            **{label[name]: x for name, x in found.items()},
            **counted(run.events, len(model.event_names)),
            **staying(study.outputs, run.folded),
            "energy_error": run.energy_error[-1],
            "constraint_error": run.constraint_error[-1],
            "status": run.status,
        }

    return one


def samples_of(study: Study, dtype: Any) -> jax.stages.Wrapped:
    """Function (keys of the inputs, indices (rows,), points (rows, m)) -> {label: results of the samples, with the
    samples on the first axis}; DRAWS (rows, k) are among them. points: those of the sampling plan, None without a plan.
    """
    one, random = sample_of(study, dtype), is_random(study)

    def samples(keys: Array, index: Array, points: Array | None = None) -> Results:
        own = (jax.vmap(partial(jax.random.fold_in, keys[-1]))(index),) if random else ()
        draws = drawn(study, keys, index, points, dtype)
        model, axes, q, v = instances(study, draws, dtype)
        found = over_rows(one, (axes, 0, 0, *(0 for _ in own)))(model, q, v, *own)
        return found | {"status": status_of(study, model, found["status"]), DRAWS: draws}

    return jax.jit(samples)


def on_all_devices(samples: Callable[..., Results]) -> jax.stages.Wrapped:
    """Function (keys, indices (rows,), points (rows, m)) -> what `samples` returns, with the rows divided among the
    devices."""
    mesh = Mesh(np.array(jax.devices()), ("devices",))
    split, whole = PartitionSpec("devices"), PartitionSpec()
    return jax.jit(jax.shard_map(samples, mesh=mesh, in_specs=(whole, split, split), out_specs=split, check_vma=False))


def drawn(study: Study, keys: Array, index: Array, points: Array | None, dtype: Any) -> Array:
    """(rows, k) draws of samples: from their index, or from their points (rows, m) in a sampling plan."""
    if points is None:
        inputs = keys[:-1] if is_random(study) else keys
        return jax.vmap(lambda i: study.dispersions.draw(inputs, i, dtype))(index)
    return jax.vmap(lambda u: study.dispersions.of_uniform(2 * u - 1, dtype))(points)


def draws_of(study: Study, samples: Sequence[int], dtype: Any) -> Array:
    """(S, k) draws of the given samples."""
    several, design = filled(np.asarray(samples), _DRAWN), study.design
    points = np.concatenate([design.points(i, i + 1) for i in several]).astype(dtype) if design else None
    keys = keys_of(study)

    def draw(keys: Array, index: Array, points: Array | None) -> Array:
        return drawn(study, keys, index, points, dtype)

    return cached_result(study, "draws", draw, keys, several.astype(np.uint32), points)[: len(samples)]


def cached_result(study: Study, name: str, fn: Callable[..., Any], *arrays: Any) -> Any:
    """fn(*arrays), computed by a program for few samples that compiles quickly and is cached under `name`."""
    return cached_program(study, name, compiles_quickly(fn), *arrays)(*arrays)


def cached_program(study: Study, name: str, fn: Any, *arrays: Any) -> jax.stages.Compiled:
    """The compiled program of a jitted function for arrays of these shapes on one device, cached under `name`."""
    own, _ = content(study)
    shapes = [f"{x.shape} {x.dtype}" for x in jax.tree.leaves(arrays)]
    return cached_on_disk(own and [*own, name, *shapes], lambda: fn.lower(*arrays).compile())


def simulated(simulation: SimulationTable, model: mbs.Model, q: Array, v: Array, **more: Any) -> mbs.Solution:
    """Simulates the motion that a study asks for. more: further options of `mbs.simulate`."""
    s = simulation
    limits = {"tolerance": s.tolerance, "max_steps": s.max_steps, "max_events": s.max_events}
    return mbs.simulate(model, q, v, s.t_end, s.dt, method=s.method, **limits, **more)


def numbers_of(study: Study, draws: Array, dtype: Any) -> Numbers:
    """The numbers of samples from their draws (B, k), batch axis first."""

    def apply(draws: Array) -> Numbers:
        return jax.vmap(lambda d: study.dispersions.apply(d, dtype))(draws)

    if is_traced(draws):
        return apply(draws)
    found = cached_result(study, "numbers", apply, filled(np.asarray(draws), _APPLIED))
    return jax.tree.map(lambda x: np.asarray(x)[: len(draws)], found)


def filled(x: np.ndarray, multiple: int) -> np.ndarray:
    """x with its rows repeated up to a multiple of `multiple`, so that one compiled program serves many sizes."""
    return np.resize(x, (-(-len(x) // multiple) * multiple, *x.shape[1:]))


def instances(study: Study, draws: Array, dtype: Any) -> tuple[mbs.Model, mbs.Model, Array, Array]:
    """(model, its in_axes, q, v) of samples from their draws (B, k), batch axis first."""
    return placed(study, numbers_of(study, draws, dtype))


def placed(study: Study, numbers: Numbers) -> tuple[mbs.Model, mbs.Model, Array, Array]:
    """(model, its in_axes, q, v) of samples from their numbers, batch axis first."""
    model, axes = varied(study.model, numbers.parameters)  # unphysical samples get a status, and do not stop the others
    return model, axes, numbers.q, numbers.v


def status_of(study: Study, model: mbs.Model, status: Array) -> Array:
    """(B,) status of samples: that of their motion, or UNPHYSICAL if no mechanism can have their parameters."""
    return jnp.where(study.dispersions.unphysical(model), int(mbs.Status.UNPHYSICAL), status).astype(status.dtype)


@dataclass(frozen=True)
class Compiled:
    """A compiled program that computes consecutive blocks, divided among devices.

    The number of blocks is an argument, not a shape: the program, and with it every bit of a sample, is the same
    however the blocks are divided.
    """

    program: Any
    keys: Array
    rows: int
    devices: int
    sharding: NamedSharding
    design: SamplingPlan | None = None

    @property
    def most(self) -> int:
        """Most blocks that one call computes."""
        return self.devices * most_blocks(self.rows)

    def __call__(self, first: int, count: int) -> Results:
        """Results of the blocks first ... first + count - 1, leaves (count * rows, ...) in the order of samples."""
        each = -(-count // self.devices)
        counts = np.clip(count - each * np.arange(self.devices), 0, each).astype(np.int32)
        firsts = (first + each * np.arange(self.devices)).astype(np.int32)
        points = _points(self.design, firsts, counts, self.rows) if self.design else None
        results = self.program(self.keys, *jax.device_put((firsts, counts, points), self.sharding))

        def joined(x: Array) -> np.ndarray:
            parts = np.asarray(x).reshape(self.devices, most_blocks(self.rows) * self.rows, *x.shape[2:])
            return np.concatenate([part[: n * self.rows] for part, n in zip(parts, counts, strict=True)])

        return jax.tree.map(joined, results)


def _points(design: SamplingPlan, firsts: np.ndarray, counts: np.ndarray, rows: int) -> np.ndarray:
    """(devices, most blocks, rows, m) points of the blocks that each device computes."""
    found = np.full((len(firsts), most_blocks(rows), rows, len(design.names)), 0.5, precision())
    for device, (first, count) in enumerate(zip(firsts, counts, strict=True)):
        if count:
            own = design.points(int(first) * rows, int(first + count) * rows)
            found[device, :count] = own.reshape(count, rows, -1)
    return found


def compiled(study: Study, rows: int) -> Compiled:
    """Compile the study, in blocks of `rows` samples, for the precision and the devices of this process."""
    dtype = precision()
    samples = samples_of(study, dtype)
    keys = keys_of(study)
    devices = jax.devices()
    mesh = Mesh(np.array(devices), ("devices",))
    split, whole = PartitionSpec("devices"), PartitionSpec()

    sharding = NamedSharding(mesh, split)
    keys = jax.device_put(keys, NamedSharding(mesh, whole))

    def block(keys: Array, number: Array, points: Array | None) -> Results:
        return samples(keys, number.astype(jnp.uint32) * rows + jnp.arange(rows, dtype=jnp.uint32), points)

    def program() -> jax.stages.Compiled:
        one = jax.ShapeDtypeStruct((rows, len(study.dispersions.inputs)), dtype) if study.design else None
        # traced once: inside `shard_map` a jitted function would be traced again
        traced, shapes = jax.make_jaxpr(block, return_shape=True)(keys, jnp.int32(0), one)

        @partial(jax.shard_map, mesh=mesh, in_specs=(whole, split, split, split), out_specs=split, check_vma=False)
        def blocks(keys: Array, first: Array, count: Array, points: Array | None) -> Results:
            def body(i: Array, results: Results) -> Results:
                given = () if points is None else (points[0, i],)
                new = jax.tree.unflatten(jax.tree.structure(shapes), jaxpr_as_fun(traced)(keys, first[0] + i, *given))
                return jax.tree.map(lambda all, one: jax.lax.dynamic_update_index_in_dim(all, one, i, 0), results, new)

            empty = jax.tree.map(lambda s: jnp.zeros((most_blocks(rows), *s.shape), s.dtype), shapes)
            return jax.lax.fori_loop(0, count[0], body, empty)

        none = np.zeros(len(devices), np.int32)
        points = _points(study.design, none, none, rows) if study.design else None
        numbers = jax.device_put((none, none, points), sharding)
        return jax.jit(blocks).lower(keys, *numbers).compile(_ONE_CORE if devices[0].platform == "cpu" else None)

    own, _ = content(study)
    found = cached_on_disk(own and [*own, f"{rows} rows"], program)
    return Compiled(found, keys, rows, len(devices), sharding, study.design)
