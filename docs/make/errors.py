"""Makes docs/reference/errors.md from the tables of `discreet.error_codes`: `python docs/make/errors.py`.

`tests/test_errors.py` fails when the page is not what the tables make.
"""

from __future__ import annotations

from pathlib import Path

from discreet.error_codes import SECTIONS, Explained

PAGE = Path(__file__).parents[1] / "reference" / "errors.md"
START = """# Error codes

Every error has a `code`. It stays the same between versions, so compare the code and not the message:

```python
import numpy as np

import discreet as dp

ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=0.5))
table = dp.table({"age": np.array([31, 47, 64])}, ledger=ledger)
try:
    table.mean("age", between=(0, 120), epsilon=1)
except dp.DiscreetError as error:
    if error.code == "budget-exhausted":
        print("Nothing was charged. Ask for less:", error.remaining)
    else:
        raise
```

The message says what is wrong and what to write instead. It never contains a private value. The
command line prints both: `error [budget-exhausted]: …`. The classes are on the page
[Errors](api-errors.md).
"""


def page() -> str:
    """The page: one table per section, one row per code."""
    return START + "".join(_section(title, rows) for title, rows in SECTIONS.items())


def _section(title: str, rows: dict[str, Explained]) -> str:
    lines = [f"\n## {title}", "", "| code | you wrote | why it is refused | write this instead |", "|---|---|---|---|"]
    for code, row in sorted(rows.items()):
        lines.append("| " + " | ".join([f"`{code}`", *(_cell(text) for text in row)]) + " |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(PAGE)
