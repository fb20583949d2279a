"""Evaluates functions of one row, an instance, for all rows of a batch. This package contains no mechanics.

`rows` makes such a function a JAX equation that preserves the knowledge that the rows are independent, in any program
(`row_programs`); `jit` maps and compiles one, as the outermost function; `explain` says what became of a function. A
compiler that is given a batch as whole arrays stores every intermediate value as an array. Here the function is recorded
once, as a program of scalar operations, and all of it becomes one loop over the rows that holds its intermediate values
in registers.

`recording` records the program, `simplification` creates its operations, `ordering` sorts them. `machine` compiles whole
programs, loops included, to machine code for the CPU at hand; where that is not possible, XLA computes the function as
`jax.vmap` makes it. `gpu` builds such kernels for an NVIDIA GPU, and calls them.

Results are those of `jax.vmap`, to rounding. A product with a known zero is not computed, yet the result is NaN where the
other factor is not finite (`zeros`). A row with an angle too large for polynomials is computed by the C library. Functions
that have effects or depend on the batch as a whole are left to `jax.vmap` (`separable`).
"""

from jaxmbs.batching.batches import jit as jit
from jaxmbs.batching.batches import over_rows as over_rows
from jaxmbs.batching.batches import use_all_cores as use_all_cores
from jaxmbs.batching.row_programs.explain import explain as explain
from jaxmbs.batching.row_programs.explanation import Explanation as Explanation
from jaxmbs.batching.row_programs.explanation import RowProgram as RowProgram
from jaxmbs.batching.row_programs.public import rows as rows
