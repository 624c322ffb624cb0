"""`discreet reproduce`: reproduce the tables and figures of the founding documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    out: Annotated[Path, typer.Argument(help="Folder for the tables (CSV) and figures (PNG).", file_okay=False)],
    people: Annotated[int, typer.Option(help="How many people to generate.", min=1)] = 1000,
    lectures: Annotated[
        bool, typer.Option("--lectures", help="The results of the lectures and the examples of the thesis instead.")
    ] = False,
) -> None:
    """Reproduce the founding documents' tables and figures, taught and tight side by side.

    What the documents print, what their formulas give, what is best, and what was observed among synthetic people.

    Examples:
      $ discreet reproduce out/
      $ discreet reproduce out/ --people 10000
      $ discreet reproduce --lectures out/

    What to look for in them: docs/reproduce.md, and docs/reproduce-course.md for the lectures
    """
    from discreet.reproduce import run

    run.main(out, people=people, lectures=lectures)
