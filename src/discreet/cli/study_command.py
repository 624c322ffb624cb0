"""`discreet study plan`: how wide the answers of a study would be, before there is any data."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from discreet.adaptive.planning import plan
from discreet.cli.pictures import check_picture
from discreet.errors import InvalidArgument


def main(
    rows: Sequence[str],
    questions: Sequence[str],
    *,
    confidence: float = 0.95,
    overfits: int = 10,
    accuracy: Sequence[str] = (),
    chart: Path | None = None,
    as_json: bool = False,
) -> None:
    """Print the widths of every method, the rows that each accuracy takes, and draw the widths where asked to."""
    sizes, asked = _numbers(rows, "--rows"), _numbers(questions, "--questions")
    wished = _numbers(accuracy, "--accuracy", whole=False)
    if chart is not None:
        check_picture(chart, "discreet study plan --chart")
    with Console(stderr=True).status("Comparing methods …"):
        made = plan(sizes, asked, confidence, overfits=overfits)
        needed = made.sizes(wished) if wished else None
        if chart is not None:
            _draw(made, chart)
    if as_json:
        data: dict[str, Any] = {"confidence": made.confidence, "overfits": made.overfits, "widths": made.rows}
        print(json.dumps(data | ({"sizes": needed.rows} if needed else {}), ensure_ascii=False, allow_nan=False))
        return
    print(made)
    if needed is not None:
        print(f"\n{needed}")


def _numbers(given: Sequence[str], option: str, *, whole: bool = True) -> list[Any]:
    """Numbers that are repeated or listed with commas; 1_000_000 and 1e6 are the same number of rows."""
    found: list[Any] = []
    for text in (part.strip() for one in given for part in one.split(",")):
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or (whole and not number.is_integer()):
            kind, example = ("whole numbers", "10000,100000") if whole else ("numbers", "0.05,0.01")
            raise InvalidArgument(f"{option} takes {kind}. Write {option} {example}.", code="not-a-number")
        found.append(int(number) if whole else number)
    return found


def _draw(made: Any, path: Path) -> None:
    try:
        made.plot(path)
    except OSError as error:
        raise InvalidArgument(
            f"{path} cannot be written: {error.strerror}. Name another with --chart.", code="file-not-writable"
        ) from None
