"""Where data lives: each engine computes exact aggregates in its own SQL dialect."""
