"""One odd record affects only itself: whatever it contains, the other records do not change."""

from __future__ import annotations

import numpy as np

import discreet as dp
from discreet import testing

LARGE = [2**60 + 1, 2**60 + 3, 2**60 + 5]  # integers that no double can represent
ODD = [None, "unknown", 0.5, 10**400, [1, 2], float("nan")]

print("Positions of three large integers, next to one odd record:")
space = dp.Integers(2**60, 2**60 + 9)
for odd in ODD:
    shown = repr(odd) if odd != 10**400 else "10**400"
    print(f"  {shown:>12}: {space.positions([*LARGE, odd])[:3].tolist()}")

print("\nA table of lists declares its types, and a value that does not fit is NULL:")
people = {"pid": list(range(200)), "age": [40, "unknown", *[40] * 198]}
ledger = dp.Ledger.open(":memory:", protects=dp.person("pid"), limit=dp.Pure(epsilon=100))
table = dp.table(people, ledger=ledger, rows_per_person=1, types={"pid": "integer", "age": "integer"})
with testing.no_noise():  # to show the rule; a real answer has noise
    print("  ages known:", table.count(where="age IS NOT NULL", epsilon=1).value, "of", table.count(epsilon=1).value)

print("\nA matrix is not a column:")
try:
    dp.Sum((0, 10))(np.ones((8, 3)))
except dp.InvalidArgument as error:
    print(" ", error)
