"""Statistics people can publish: estimates for the population, tests and regression tables, private throughout."""
