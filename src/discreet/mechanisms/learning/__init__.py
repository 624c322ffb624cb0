"""Learning from examples: gradients, moments, and private minimizers."""
