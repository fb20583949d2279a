"""Functions of one row, run for all rows of a batch; nothing here knows mechanics.

`jit` compiles such a function: plainly, or told that the rows are independent. `over_rows(fn)` computes what `jax.vmap(fn)`
computes. A compiler that is given a batch as whole arrays keeps every intermediate value as an array; here the function is
recorded once, as a program of scalars, and whole stretches of it become one loop over the rows that holds its intermediate
values in registers: a kernel.

`batches` cuts a batch into blocks and splits it over devices; `recording` makes the program, `simplification` its
operations, `ordering` cuts it into kernels, `execution` runs it. `machine` makes machine code of whole programs, loops
included, for the CPU at hand; where that cannot be, `cpu` makes loops of XLA's; `gpu` makes the kernels of a GPU.

Results are those of `jax.vmap`, to rounding. A product with a known zero is not computed and yet NaN where the other factor
is not finite (`zeros`); a row with an angle too large for `trigonometry` is done by the C library, or by `jax.vmap`; what
has effects, or depends on the batch as a whole, is left to `jax.vmap` (`separable`).
"""

from jaxmbs.batching.batches import jit as jit
from jaxmbs.batching.batches import use_all_cores as use_all_cores
from jaxmbs.batching.mapping import over_rows as over_rows
