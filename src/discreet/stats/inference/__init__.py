"""Inference from noisy numbers: laws, intervals and p-values. Nothing here reads a row."""
