"""Noise on the integers, added to exact sums."""
