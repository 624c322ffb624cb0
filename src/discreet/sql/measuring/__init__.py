"""From a plan to exact numbers: the statements that an engine runs, and what it returns."""
