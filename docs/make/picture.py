"""Draws docs/images/demo.svg, the picture of the README: one question of the demo. `python docs/make/picture.py`."""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path

from rich.console import Console

from discreet.datasets.connect import connect
from discreet.demo.data import Truth, make_clinic
from discreet.demo.run import QUESTIONS, account, ask, opening


def recorded() -> Console:
    """The clinic, its question by city, and the ledger."""
    console = Console(record=True, width=88, file=io.StringIO(), force_terminal=True, highlight=False)
    by_city = next(question for question in QUESTIONS if "GROUP BY city" in question[1])
    with tempfile.TemporaryDirectory() as folder:
        clinic = connect(make_clinic(Path(folder)))
        console.print(opening(clinic))
        ask(console, clinic, Truth(Path(folder)), *by_city)
        account(console, clinic)
        clinic.close()
    return console


if __name__ == "__main__":
    picture = Path(__file__).parents[1] / "images" / "demo.svg"
    picture.parent.mkdir(exist_ok=True)
    svg = recorded().export_svg(title="discreet demo")
    picture.write_text(re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL))  # no font from another host
    print(picture)
