"""Models over binned columns: additive models and trees."""
