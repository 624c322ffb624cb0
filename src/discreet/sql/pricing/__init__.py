"""How far one person moves an answer, and the noise that hides it."""
