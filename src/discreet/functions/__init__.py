"""Answers that are functions: densities, regression curves, and data whose rows are curves."""
