"""From a plan to an answer: the engine's statement, its exact numbers, intervals and what is shown."""
