"""Finite mechanisms as exact tables: checked, repeated, and solved for the least error."""
