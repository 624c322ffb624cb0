"""Private minimizers of a loss: no steps, one release."""
