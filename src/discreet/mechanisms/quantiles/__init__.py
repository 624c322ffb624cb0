"""Quantiles and cumulative counts of one column."""
