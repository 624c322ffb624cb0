"""From SQL text to a question over declared tables."""
