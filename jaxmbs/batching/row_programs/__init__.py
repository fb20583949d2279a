"""The JAX primitive `rows`: a function of one instance whose batches are machine code under every transformation."""
