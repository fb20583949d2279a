"""Where samples lie: the targets of dispersions, correlations of draws, and sampling plans."""
