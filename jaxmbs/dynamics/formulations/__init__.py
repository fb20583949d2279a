"""The formulations of the literature, with explicit matrices and vectors: one formulation per file.

The public functions are in `public`; `methods` lists the names that `method=` accepts.
"""
