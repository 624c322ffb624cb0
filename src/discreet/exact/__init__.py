"""Exact numbers and exact draws: what everything else stands on."""
