"""Hostile input for every surface that reads what others wrote: `python -m fuzz [targets] --minutes 12 --seed 1`.

Each target makes its input with Hypothesis, from real seeds changed as bytes and as structures, and has an oracle that
says what must hold whatever the input is. An input whose outcome is new is kept, and changed further.
"""
