"""Distributions of one column: many quantiles with intervals, and cumulative counts."""
