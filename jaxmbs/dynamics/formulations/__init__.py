"""The formulations of the literature: explicit matrices and vectors, one formulation per file.

The public functions are in `public`; `methods` has the names that `method=` takes.
"""
