"""The folder of a run at the level of files: their layout, and how they are written, locked, sealed and checked."""
