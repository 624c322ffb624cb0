"""Draws docs/images/demo.svg, the picture of the README: `python docs/make_picture.py`."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console

from discreet.demo.run import main

if __name__ == "__main__":
    console = Console(record=True, width=96, file=io.StringIO(), force_terminal=True, highlight=False)
    main(console)
    picture = Path(__file__).parent / "images" / "demo.svg"
    picture.parent.mkdir(exist_ok=True)
    svg = console.export_svg(title="discreet demo")
    picture.write_text(re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL))  # no font from another host
    print(picture)
