"""The vault: the process with the data and the books. It decides who gets what, and when."""
