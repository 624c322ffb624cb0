"""Demonstrations: synthetic people, real questions, private answers, and the ledger that pays for them.

`run` is the main demo. Each other module shows the capability it is named after.
"""
