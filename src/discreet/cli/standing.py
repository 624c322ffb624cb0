"""`discreet standing` opens a question that is asked of each new block of time, and `discreet schedule` answers what
is due.
"""

from __future__ import annotations

import datetime
import json
import sys
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from discreet.cli.explain import PlanFormat
from discreet.cli.terminal.connecting import connected
from discreet.cli.terminal.exits import exit_code
from discreet.cli.terminal.options import COST, RECORD, SHOWN, Analyst, Delta, NamedPolicy, Weight, read_amounts
from discreet.cli.terminal.output import clean
from discreet.errors import DiscreetError, InvalidArgument

if TYPE_CHECKING:
    from discreet.datasets.database import Database
    from discreet.datasets.standing import Standing

Form = Annotated[PlanFormat, typer.Option("--format", help="How it is printed.", rich_help_panel=SHOWN)]


def standing(
    policy: NamedPolicy,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question, in SQL; in quotes.")],
    every: Annotated[str, typer.Option(help="The block of time: day, week, month, quarter or year.")],
    times: Annotated[int, typer.Option(help="Of how many blocks it is asked.")],
    epsilon: Annotated[
        float, typer.Option(help="What all answers together may cost, charged now.", rich_help_panel=COST)
    ],
    delta: Delta = None,
    first: Annotated[
        str | None,
        typer.Option(help="The first block, such as 2024-01; by default the present one.", show_default=False),
    ] = None,
    totals: Annotated[
        bool, typer.Option("--totals", help="Running totals over all blocks, with little noise.")
    ] = False,
    blocks_per_person: Annotated[
        int | None,
        typer.Option(
            help="Count only the first blocks of each person: less noise, but later rows of frequent people are left "
            "out.",
            show_default=False,
            rich_help_panel=COST,
        ),
    ] = None,
    weight: Weight = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what it would cost and its errors. Spends nothing.")
    ] = False,
    form: Form = PlanFormat.text,
    analyst: Analyst = None,
) -> None:
    """Open a standing question: the same question about each of the next blocks of time, for one charge.

    It is charged now, and answered by discreet schedule after each block has ended. The same question is not opened
    twice while its horizon lasts.

    Examples:
      $ discreet standing clinic.toml "SELECT city, COUNT(*) AS n FROM visits
                                       GROUP BY city" \\
                          --every month --times 24 --epsilon 2
      $ discreet standing clinic.toml "SELECT COUNT(*) AS n FROM visits" \\
                          --every day --times 365 --epsilon 1 --totals --explain

    What it costs whom, and why: docs/standing.md
    """
    database = connected(policy, analyst)
    options: dict[str, Any] = {"every": every, "times": times, "epsilon": epsilon, "delta": delta, "first": first}
    options |= {"totals": totals, "blocks_per_person": blocks_per_person, "weights": read_amounts(weight, "--weight")}
    with closing(database):
        if explain:
            explained = database.explain_standing(question, **options)
            print(json.dumps(explained.data, ensure_ascii=False) if form == "json" else explained)
            return
        opened = database.standing(question, **options)
        said = describe(opened, ()) | {"remaining": str(database.ledger.remaining or "nothing")}
    print(json.dumps(said, ensure_ascii=False) if form == "json" else _text(said))


def schedule(
    policy: NamedPolicy,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="DAY",
            help="Answer as if it were this day, such as 2025-01-31; by default today.",
            show_default=False,
        ),
    ] = None,
    only_list: Annotated[bool, typer.Option("--list", help="Show what is open and due. Answers nothing.")] = False,
    form: Form = PlanFormat.text,
    analyst: Annotated[
        str | None,
        typer.Option(help="Only the questions of this analyst.", show_default=False, rich_help_panel=RECORD),
    ] = None,
) -> None:
    """Answer the standing questions that are due: each block once, after it has ended. Spends nothing.

    Blocks that were missed are answered now. Run it as often as you like, from several machines too: a block that was
    answered is not answered again.

    Examples:
      $ discreet schedule clinic.toml
      $ discreet schedule clinic.toml --list
      0 6 * * *  discreet schedule /srv/clinic.toml --format json   # cron
    """
    from discreet.datasets.connect import connect
    from discreet.datasets.policy import load

    day, failed = _day(until), None
    known = load(policy)  # the owner answers the questions of all analysts, who paid before
    database, console = connect(replace(known, analyst_required=False), analyst=analyst), Console(stderr=True)
    found: list[dict[str, Any]] = []
    with closing(database), console.status("Answering …") as status:
        for one in database.standings:
            facts, error = _run(database, one, day, None if only_list else status)
            found.append(facts)
            failed = failed or error
    if form == "json":
        print(json.dumps(found, ensure_ascii=False, default=str))
    else:
        print("\n\n".join(map(_text, found)) or "There are no standing questions.")
    if failed is not None:
        print(f"error [{failed.code}]: {' '.join(str(failed).split())}", file=sys.stderr)
        raise typer.Exit(exit_code(failed))


def _run(
    database: Database, one: Standing, day: datetime.date, status: Any
) -> tuple[dict[str, Any], DiscreetError | None]:
    """Answer what is due of one question. An error of one does not stop the others."""
    error, answered = None, tuple[str, ...]()
    try:
        if status is not None:
            answered = tuple(one.run(today=day, progress=lambda block: status.update(f"Answering {block} …")))
    except DiscreetError as stopped:
        error = stopped
    facts = describe(one, one.due(today=day)) | {"answered_now": list(answered)}
    return facts | ({} if error is None else {"error": error.code}), error


def describe(one: Standing, due: tuple[str, ...]) -> dict[str, Any]:
    """A standing question as plain values."""
    return {
        "receipt": one.receipt,
        "analyst": one.analyst,
        "question": clean(one.question),
        "every": one.horizon.every,
        "from": one.blocks[0],
        "to": one.blocks[-1],
        "totals": one.horizon.totals,
        "cost": str(one.horizon.limit),
        "answered": len(one.answered),
        "times": one.horizon.times,
        "due": list(due),
    }


def _text(facts: dict[str, Any]) -> str:
    from discreet.sql.running.explanation import lines

    shown = {name: facts[name] for name in ("question", "cost", "receipt", "remaining") if facts.get(name)}
    shown["blocks"] = f"every {facts['every']} from {facts['from']} to {facts['to']}"
    shown["answered"] = f"{facts['answered']} of {facts['times']}"
    if facts.get("answered_now"):
        shown["now"] = ", ".join(facts["answered_now"])
    if facts["due"]:
        shown["due"] = ", ".join(facts["due"])
    if facts.get("analyst"):
        shown["asked by"] = clean(facts["analyst"])
    return lines(shown)


def _day(until: str | None) -> datetime.date:
    from discreet.datasets.horizon import check_day

    try:
        return check_day(None if until is None else datetime.date.fromisoformat(until))
    except ValueError:
        raise InvalidArgument("--until takes a day, such as 2025-01-31.", code="command-day") from None
