"""Exact numbers and exact random draws, on which everything else is built."""
