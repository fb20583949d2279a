"""Reports and pictures of a run: for the terminal, notebooks, and as a page."""
