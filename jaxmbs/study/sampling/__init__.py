"""Where samples lie: distributions of single draws, correlations of draws, and designs of all samples."""
