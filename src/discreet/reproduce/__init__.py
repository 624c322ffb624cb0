"""Tables and experiments of the founding documents, reproduced: taught formulas next to tight ones."""
