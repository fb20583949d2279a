"""Evidence on the results of a run: steps checked, another machine compared, everything in one file."""
