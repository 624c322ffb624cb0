"""The results of the lectures and the examples of the thesis, one module for each lecture: taught next to tight."""
