"""The results of a run: what they are, where they come from, whether they are sound, and their repair."""
