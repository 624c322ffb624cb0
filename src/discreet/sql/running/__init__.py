"""From a plan to an answer: the engine's statement, exact numbers, noise, intervals and output."""
