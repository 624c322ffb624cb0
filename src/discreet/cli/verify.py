"""`discreet verify`: checks a publication with the ledger alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def verify(
    out: Annotated[Path, typer.Argument(help="The folder of a publication.", file_okay=False)],
    ledger: Annotated[str, typer.Argument(help="The ledger, a copy of it, or its URL.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Check a publication with the ledger alone: its files, receipts, charges and totals, and that its numbers are the
    stored answers. No data are needed.

    That noise was drawn cannot be checked. If a check fails, the exit code is 1.

    Examples:
      $ discreet verify out/ clinic.ledger
      $ discreet verify out/ clinic.ledger --json

    What is checked: docs/publish.md
    """
    from discreet.publication.verifying import verify_publication

    checked = verify_publication(out, ledger)
    if as_json:
        checks = [{"check": one.what, "holds": one.holds, "found": one.found} for one in checked.checks]
        facts = {"holds": checked.holds, "cost": checked.cost, "checks": checks, "not_checked": checked.not_checked}
        print(json.dumps(facts, ensure_ascii=False))
    else:
        print("\n".join(_printable(line) for line in str(checked).split("\n")))
    if not checked.holds:
        raise typer.Exit(1)


def _printable(line: str) -> str:
    """A line without control characters: the names in a publication may be anybody's."""
    return "".join(one if one.isprintable() else "?" for one in line)
