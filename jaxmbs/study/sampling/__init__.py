"""Where samples lie: what a dispersion acts on, correlations of draws, and designs of all samples."""
