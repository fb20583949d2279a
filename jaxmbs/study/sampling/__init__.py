"""Where samples lie: laws of single draws, what ties draws together, and plans of all samples."""
