"""The program of a row as a primitive of JAX, `rows`: its batches are machine code under every transformation."""
