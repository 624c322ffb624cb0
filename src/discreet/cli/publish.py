"""`discreet publish`: the tables of a plan for the public, with a card and a proof."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from discreet.cli.terminal.options import Analyst
from discreet.cli.terminal.output import clean
from discreet.errors import InvalidArgument

EXAMPLE = "plan.toml"


def publish(
    plan: Annotated[
        Path | None, typer.Argument(help="The plan, a TOML file.", dir_okay=False, show_default=False)
    ] = None,
    out: Annotated[Path | None, typer.Argument(help="The folder to create.", show_default=False)] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what it would cost and how large errors may be. Spends nothing.")
    ] = False,
    example: Annotated[
        bool, typer.Option("--example", help=f"Write an example with comments to the plan, by default {EXAMPLE}.")
    ] = False,
    analyst: Analyst = None,
) -> None:
    """Publish tables, cubes and synthetic rows, with a card for the public and a proof that the ledger confirms.

    Everything is charged before it is read. A run that was interrupted is run again with the same plan, and nothing is
    paid twice. If a criterion of the plan is not met, nothing is written.

    Examples:
      $ discreet publish --example
      $ discreet publish plan.toml --explain
      $ discreet publish plan.toml out/
      $ discreet verify out/ clinic.ledger

    What a plan says, and what is checked: docs/publish.md
    """
    if example:
        _write_example(plan or Path(EXAMPLE))
        return
    if plan is None:
        raise InvalidArgument(
            "Name a plan: discreet publish plan.toml out/. To write one: discreet publish --example.",
            code="publish-arguments",
        )
    from discreet.publication.publishing import explain_publication
    from discreet.publication.publishing import publish as run

    if explain:
        print(explain_publication(plan, analyst=analyst))
        return
    if out is None:
        raise InvalidArgument(
            f"Name the folder to create: discreet publish {plan} out/. Or add --explain.", code="publish-arguments"
        )
    console = Console(stderr=True)
    with console.status("Publishing …") as status:
        made = run(plan, out, analyst=analyst, progress=lambda line: status.update(f"Publishing … {clean(line)}"))
    facts = made.facts
    if made.already:
        print(f"{made.out} was published before. Nothing was charged.")
    for part in facts["parts"]:
        print(f"{part['title']}: {part['rows']:,} rows in {part['name']}.csv and {part['name']}.parquet")
        for one in part["criteria"]:
            error = "" if one["error"] is None else f" ± {one['error']:g}"
            limit = f"{one['value']:g}{error}, at most {one['at_most']:g}"
            print(f"  {'met    ' if one['met'] else 'NOT MET'}  {one['criterion']}: {limit}")
    print(f"\ncost     {facts['cost']['text']}, for {facts['ledger']['protected']}")
    print(f"spent    {facts['spent_by_then']['text']} of {facts['limit']['text']}")
    print(f"card     {made.out / 'card.html'}")
    if facts["not_private"]:
        print("NOT PRIVATE: made in test mode", file=sys.stderr)


def _write_example(plan: Path) -> None:
    from discreet.publication.example import EXAMPLE as text

    try:
        with plan.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InvalidArgument(f"{plan} exists and is left as it is. Name another file.", code="file-exists") from None
    except OSError as error:
        raise InvalidArgument(
            f"{plan} cannot be written: {error.strerror}. Name another file.", code="file-not-writable"
        ) from None
    print(f"{plan}: read it, change it, then: discreet publish {plan} --explain")
