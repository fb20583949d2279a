"""A function of one row, run for all rows of a batch as a few kernels of scalar operations.

`over_rows(fn)` computes what `jax.vmap(fn)` computes. A compiler that is given a batch as whole arrays keeps every
intermediate value as an array; here the function is recorded once, as a program of scalars, and whole stretches of it become
one loop over the rows that holds its intermediate values in registers.

`recording` makes the program, `simplification` its operations, `ordering` cuts it into kernels, `execution` runs it;
`loops` are the kernels of a CPU, `gpu` those of a GPU.
"""

from jaxmbs.rows.mapping import over_rows

__all__ = ["over_rows"]
