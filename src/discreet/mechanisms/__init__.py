"""How questions are answered: each mechanism is a frozen value whose fields are the noise that is drawn."""
