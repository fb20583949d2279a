"""Optimisers that search from many starts at once."""
