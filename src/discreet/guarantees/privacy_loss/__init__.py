"""Privacy loss: the worst pair of neighbors of a mechanism, its convolutions, and what sampling and shuffling add."""
