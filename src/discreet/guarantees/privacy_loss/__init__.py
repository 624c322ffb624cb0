"""Privacy loss: the worst pair of neighbors, convolutions, and amplification by sampling and shuffling."""
