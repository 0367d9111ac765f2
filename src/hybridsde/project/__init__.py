"""Settings files, splits, comparisons: what the commands do, without a terminal."""
