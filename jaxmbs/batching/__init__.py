"""Evaluates functions of one row, an instance, for all rows of a batch. This package contains no mechanics.

`jit` compiles such a function, either as `jax.jit` does or with the knowledge that the rows are independent; `rows`
makes it a JAX equation that preserves this knowledge in any program (`row_programs`); `explain` says what became of a
function. `over_rows(fn)` computes what `jax.vmap(fn)` computes. A compiler that is given a batch as whole arrays stores
every intermediate value as an array. Here the function is recorded once, as a program of scalar operations, and long
sections of it become kernels: each is one loop over the rows that holds its intermediate values in registers.

`batches` cuts a batch into blocks and splits it over devices; `recording` records the program, `simplification` creates its
operations, `ordering` cuts it into kernels, `execution` runs it. `machine` compiles whole programs, loops included, to
machine code for the CPU at hand; where that is not possible, `cpu` builds XLA loops; `gpu` builds kernels for a GPU.

Results are those of `jax.vmap`, to rounding. A product with a known zero is not computed, yet the result is NaN where the
other factor is not finite (`zeros`). A row with an angle too large for `trigonometry` is computed by the C library or by
`jax.vmap`. Functions that have effects or depend on the batch as a whole are left to `jax.vmap` (`separable`).
"""

from jaxmbs.batching.batches import jit as jit
from jaxmbs.batching.batches import use_all_cores as use_all_cores
from jaxmbs.batching.mapping import over_rows as over_rows
from jaxmbs.batching.row_programs.explain import explain as explain
from jaxmbs.batching.row_programs.explanation import Explanation as Explanation
from jaxmbs.batching.row_programs.explanation import RowProgram as RowProgram
from jaxmbs.batching.row_programs.public import rows as rows
