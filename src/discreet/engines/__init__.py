"""Where data lives and exact aggregates are made: each engine owns its words for the same few things."""
