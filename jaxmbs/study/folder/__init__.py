"""The folder of a run, at the level of files: which there are, how they are written, locked, sealed and checked."""
