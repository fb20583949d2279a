"""Optimisers of many starts at once: a state for each, and a step of all."""
