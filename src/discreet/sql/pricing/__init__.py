"""How much one person can change an answer, and the noise that hides it."""
