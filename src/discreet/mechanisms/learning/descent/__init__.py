"""Noisy gradient descent: its steps, its noise, and its error."""
