"""Recursions over a tree, from the root to the leaves and back: one algorithm per file."""
