"""The three parties of a poll as web services."""
