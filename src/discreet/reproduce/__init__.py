"""The tables and experiments of the founding documents, reproduced with the taught formulas and with tight ones."""
