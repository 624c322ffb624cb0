"""The pages of the console, each with the forms on it."""
