"""Finite mechanisms as exact tables: verify them, repeat them, and find the least possible error."""
