"""Exact sums of clipped gradients: rows in memory, in streams, on machines and on a GPU."""
