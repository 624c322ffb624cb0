"""What it looks like: made-up people, real questions, private answers, and a ledger going down.

`run` is the front door: the main demo, and a story for each capability, told by the module of its name.
"""
