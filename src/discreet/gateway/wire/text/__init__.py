"""The text of a client's statements: its tokens, its kind, its parameters, and the question in it."""
