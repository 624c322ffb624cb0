"""Answers that are functions: densities, regression curves, and rows that are curves."""
