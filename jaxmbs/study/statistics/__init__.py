"""What a run's samples show: intervals, summaries, comparisons, and which inputs matter."""
