"""Regressions: formulas, designs, the numbers that are released, and the tables that people read."""
