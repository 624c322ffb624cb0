"""A server for analysts who are not trusted: the vault has the data and decides, the desk is what they reach."""
