"""The desk: the process that analysts reach. It has no data and no books, and carries requests to the vault."""
