"""`discreet ledger TARGET`: show the remaining budget and the last entries, or check or export the whole record."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import set_cell_size
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from discreet.cli.terminal.options import LedgerTarget
from discreet.cli.terminal.output import clean
from discreet.datasets.discovery import find_policy
from discreet.errors import DiscreetError, InvalidArgument
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit, few_rows
from discreet.ledger import Entry, Ledger, PartBudget
from discreet.ledger.accounts import size_of
from discreet.ledger.stores.store import URLS

if TYPE_CHECKING:
    from discreet.datasets.policy import Policy
    from discreet.gateway.settings import Settings

_BATCH = 1000
_NARROWEST = 72
"""On fewer columns, lines that the terminal breaks read better than columns of single letters."""
_MOVED = "For a ledger that was moved"
_LIMIT = "For a policy whose limit was edited"
_AS_ROOT = (
    "WARNING: this is done as root, because the vault's user, or the owner of the ledger, does not exist or cannot use "
    "it. What is written now belongs to root: discreet serve may still refuse this ledger."
)
_GAP = 2
"""Spaces between columns."""


class Export(StrEnum):
    """What a record can be exported as."""

    json = "json"
    csv = "csv"


def ledger(
    target: LedgerTarget = None,
    verify: Annotated[bool, typer.Option("--verify", help="Check the whole record instead of showing it.")] = False,
    export: Annotated[
        Export | None, typer.Option(help="Print the whole record for another program.", show_default=False)
    ] = None,
    adopt: Annotated[
        str | None,
        typer.Option(
            metavar="WHY",
            help="For a ledger that was moved or restored without its checkpoint: record why it is to be trusted.",
            show_default=False,
            rich_help_panel=_MOVED,
        ),
    ] = None,
    raised: Annotated[
        str | None,
        typer.Option(
            "--raise",
            metavar="WHY",
            help="Record that the limit is now that of the policy: less is promised to the same people.",
            show_default=False,
            rich_help_panel=_LIMIT,
        ),
    ] = None,
    renew: Annotated[
        str | None,
        typer.Option(
            metavar="WHY",
            help="Begin a period with the limit of the policy: the people are new. For others, both limits add up.",
            show_default=False,
            rich_help_panel=_LIMIT,
        ),
    ] = None,
    last: Annotated[int, typer.Option(help="How many of the last entries to show.", min=0)] = 20,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            help="The ledger's checkpoint, if it is not next to it.", show_default=False, rich_help_panel=_MOVED
        ),
    ] = None,
) -> None:
    """Show the remaining budget of a ledger and its last entries, or check its record, or export it.

    A check verifies every hash, cost, total and stored answer. If it fails, the exit code is 1.

    Examples:
      $ discreet ledger clinic.toml
      $ discreet ledger clinic.ledger --verify
      $ discreet ledger clinic.ledger --export csv > record.csv
      $ discreet ledger clinic.toml --raise "the board agreed on 3 May"
      $ discreet ledger clinic.ledger --adopt "restored from the backup of 3 May"

    One budget for many processes, and what to do when it is refused: docs/ledger.md
    """
    if raised is not None or renew is not None:
        change_limit(target, raised, renew, checkpoint)
    raise typer.Exit(main(target, verify=verify, export=export, adopt=adopt, last=last, checkpoint=checkpoint))


def main(
    target: str | None,
    *,
    verify: bool = False,
    export: str | None = None,
    adopt: str | None = None,
    last: int = 20,
    checkpoint: str | None = None,
    console: Console | None = None,
) -> int:
    """Open the ledger that `target` names and show, check or export it. Returns 0 unless an error is raised."""
    out = console or Console(highlight=False)
    where, policy = ledger_at(target)
    if adopt is not None and not adopt.strip():
        raise InvalidArgument(
            'An adoption needs a reason, for the record. Write --adopt "restored on 3 May".', code="ledger-no-reason"
        )
    named = (target or find_policy()) if policy else None
    with _as_its_user(where, named), ExitStack() as stack:
        if policy and adopt is None:
            check_begun(where, checkpoint)
        ledger = stack.enter_context(closing(_open(where, adopt, checkpoint, named)))
        if verify:
            _verify(ledger, Console(stderr=True, highlight=False) if export else out)
        if export:
            _export(ledger, export, out.file)
        elif not verify:
            _show(ledger, last, out)
    return 0


def change_limit(target: str | None, raised: str | None, renew: str | None, checkpoint: str | None) -> None:
    """Record the limit of a policy in its ledger: raised for the same people, or renewed for new ones."""
    if (raised is None) is (renew is None) or (target is not None and not target.endswith(".toml")):
        raise InvalidArgument(
            'Name a policy that has the new limit, and one of --raise "why" and --renew "why".', code="command-limit"
        )
    from discreet.datasets.policy import load

    policy = target or find_policy()
    known = load(policy)
    with _as_its_user(known.ledger, policy), ExitStack() as stack:
        ledger = stack.enter_context(closing(Ledger.open(known.ledger, protects=known.unit, checkpoint=checkpoint)))
        if raised is not None:
            ledger.raise_limit(known.limit, why=raised)
        else:
            assert renew is not None
            ledger.renew(known.limit, why=renew)


def ledger_at(target: str | None) -> tuple[str, bool]:
    """Where the ledger is that `target` names, and whether a policy names it."""
    if target is None or (target.endswith(".toml") and not target.startswith(URLS)):
        from discreet.datasets.policy import ledger_of

        return ledger_of(target or find_policy()), True
    return target, False


@contextmanager
def _as_its_user(where: str | Path, policy: str | Path | None) -> Iterator[None]:
    """Let root be the user who charges a ledger, so that checkpoints which it makes belong to that user: the vault's if
    a policy has a gateway, or else the owner of the file. Nothing changes for others.
    """
    with _user_of(where, policy) if os.geteuid() == 0 else nullcontext(True) as is_that_user:
        if not is_that_user:
            print(_AS_ROOT, file=sys.stderr)
        yield


def _user_of(where: str | Path, policy: str | Path | None) -> AbstractContextManager[bool]:
    from discreet.gateway.isolation import as_owner, as_vault

    served = _gateway_of(policy)
    if served is not None:
        return as_vault(*served)
    return nullcontext(True) if str(where).startswith(URLS) else as_owner(Path(where).expanduser())


def _gateway_of(policy: str | Path | None) -> tuple[Policy, Settings] | None:
    """A policy with the settings of its gateway. None if it has none."""
    from discreet.gateway.settings import load_served

    with suppress(DiscreetError):  # the ledger of a policy with mistakes can be shown and adopted all the same
        return load_served(policy) if policy else None
    return None


def check_begun(where: str, checkpoint: str | None) -> None:
    """Report that a policy names a ledger that no question has created yet. A lost ledger has left its checkpoint."""
    if not where.startswith(URLS) and not any(map(os.path.exists, (where, checkpoint or f"{where}.checkpoint"))):
        raise InvalidArgument(
            f"Nothing was asked yet. The first question creates the ledger at {where}.", code="ledger-not-begun"
        )


def _open(where: str, adopt: str | None, checkpoint: str | None, policy: str | Path | None) -> Ledger:
    if adopt is None:
        return Ledger.open(where, checkpoint=checkpoint)
    from discreet.gateway.books.opening import adopt_books

    served = _gateway_of(policy)
    if served is not None:
        return adopt_books(*served, adopt, checkpoint)
    return Ledger.adopt(where, why=adopt, checkpoint=checkpoint)


def _verify(ledger: Ledger, out: Console) -> None:
    with Console(stderr=True).status("Checking every hash, cost, total and answer …"):
        checked = ledger.verify()
    out.print(
        f"The record is whole: {_count(checked, 'entry', 'entries')} checked, the opening among them.", style="green"
    )


# --- for people -------------------------------------------------------------------------------------------


def _show(ledger: Ledger, last: int, out: Console) -> None:
    out.width = max(out.width, _NARROWEST)
    number, analysts = ledger.count, ledger.analysts
    out.print(_heading(ledger, number))
    out.print(_bars(ledger, analysts, out.width))
    if budgets := ledger.parts:
        out.print()
        out.print(_part_bars(budgets, ledger.limit, last, out.width))
        if hidden := len(budgets) - min(last, len(budgets)):
            out.print(f"{_count(hidden, 'part is', 'parts are')} not shown: --last {len(budgets)} shows all.")
    entries = ledger.entries(max(1, number - last + 1), number)
    if entries:
        out.print()
        out.print(_table(entries, out.width, analysts=bool(analysts)))
    if older := number - len(entries):
        out.print(f"{_count(older, 'older entry is', 'older entries are')} not shown: --last {number} shows all.")


def _heading(ledger: Ledger, number: int) -> Panel:
    [opening] = ledger.entries(0, 0)
    rule = ledger.rule
    rows = {
        "ledger": clean(ledger.target),
        "protects": clean(_unit_text(ledger.protects)),
        "limit": str(rule.limit),
        "rule": rule.name,
        "entries": f"{number:,} since it was opened on {_time(opening):%Y-%m-%d}",
    }
    grid = Table.grid(padding=(0, _GAP, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, words in rows.items():
        grid.add_row(name, Text(words))
    return Panel.fit(grid, title="discreet ledger")


def _unit_text(unit: Unit) -> str:
    rows = "all rows" if unit.per is None else f"all rows in one {unit.per}"
    who = few_rows(unit) if unit.column is None else f"one person, {rows} of one {unit.column}"
    who = who if unit.lives_in is None else f"{who}, who lives in one {unit.lives_in}"
    return who if unit.neighbors == "add_or_remove" else f"{who}; neighbors by replacement"


def _bars(ledger: Ledger, analysts: tuple[str, ...], width: int) -> Table:
    """What still fits: for the whole data set, then for each analyst."""
    accounts = [("the data set", ledger), *((clean(name), ledger.for_analyst(name)) for name in analysts)]
    left = [(name, account.remaining, account.limit) for name, account in accounts]
    words = [f"{remaining or 'nothing'} of {limit} still fits" for _, remaining, limit in left]
    names = min(max(len(name) for name, _ in accounts), width // 4) if analysts else 0
    room = min(40, max(10, width - names - max(map(len, words)) - 3 * _GAP))
    grid = Table.grid(padding=(0, _GAP, 0, 0))
    if analysts:
        grid.add_column(overflow="fold", max_width=names)
    grid.add_column(no_wrap=True)
    grid.add_column()
    for (name, remaining, limit), said in zip(left, words, strict=True):
        grid.add_row(*[Text(name, "bold")][: len(analysts)], _bar(remaining, limit, room), Text(said))
    return grid


def _part_bars(budgets: Mapping[str, PartBudget], limit: Guarantee, last: int, width: int) -> Table:
    """What still fits in each part that was charged alone, the last ones by name."""
    shown = sorted(budgets.items())[len(budgets) - min(last, len(budgets)) :]
    words = [f"{one.remaining or 'nothing'} still fits" for _, one in shown]
    names = min(max((len(clean(name)) for name, _ in shown), default=0), width // 4)
    room = min(40, max(10, width - names - max(map(len, words), default=0) - 3 * _GAP))
    grid = Table.grid(padding=(0, _GAP, 0, 0))
    grid.add_column(overflow="fold", max_width=names)
    grid.add_column(no_wrap=True)
    grid.add_column()
    for (name, one), said in zip(shown, words, strict=True):
        grid.add_row(Text(clean(name)), _bar(one.remaining, limit, room), Text(said))
    return grid


def _bar(remaining: Guarantee | None, limit: Guarantee, room: int) -> Text:
    # under a limit with δ a pure release may be a little larger than the limit's ε
    share = 0.0 if remaining is None else min(1.0, float(size_of(remaining) / size_of(limit)))
    full = room if share == 1 else min(room - 1, math.ceil(share * room))
    style = "green" if share > 0.5 else "yellow" if share > 0.1 else "red"
    return Text.assemble(("█" * full, style), ("░" * (room - full), "dim" if full else style))


def _table(entries: tuple[Entry, ...], width: int, *, analysts: bool) -> Table:
    """Two lines for an entry, three for a long question, at 80 columns and at 120."""
    promises = [_promise(entry) for entry in entries]
    states = [_state(entry, width // 8 if analysts else 0) for entry in entries]
    taken = len("2000-01-01 00:00:00") + max(len("guarantee"), _widest(promises)) + _widest(states)
    room = max(20, width - taken - 3 * _GAP)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0), header_style="bold")
    table.add_column("receipt\ntime (UTC)", no_wrap=True)
    table.add_column("asked\nmechanism", overflow="fold")
    table.add_column("guarantee", no_wrap=True)
    table.add_column("state\nanalyst" if analysts else "state", overflow="fold")
    for entry, promise, state in zip(entries, promises, states, strict=True):
        receipt = Text.assemble(entry.receipt, (f"\n{_time(entry):%Y-%m-%d %H:%M:%S}", "dim"))
        table.add_row(receipt, _request_text(entry, room), promise, state)
    return table


def _request_text(entry: Entry, room: int) -> Text:
    """The question, or the kind of the owner's entry and its reason; below it the mechanism."""
    owners = "" if entry.kind == "charge" else f"{entry.kind}: "
    owners += f"{', '.join(entry.parts)}: " if entry.parts else ""
    shown = Text(_shorten(owners + entry.asked, room, lines=2))
    shown.stylize("bold", 0, len(owners))
    return shown.append(f"\n{_shorten(entry.mechanism, room, lines=1)}", "dim") if entry.mechanism else shown


def _promise(entry: Entry) -> Text:
    """A charge's guarantee, or the limit that the owner's entry set. A line may break before δ, never inside it."""
    words = str(entry.guarantee) if entry.kind == "charge" else f"limit {entry.guarantee}"
    return Text("\n".join(_lines(words.replace(", δ", ",\nδ").replace(" at ", "\nat "), 22)))


def _state(entry: Entry, room: int) -> Text:
    """The state, and below it the analyst, if there is room for names."""
    shown = Text(entry.state, {"answered": "green", "reserved": "yellow", "discarded": "red"}.get(entry.state, "dim"))
    return shown.append(f"\n{_shorten(entry.analyst or '', room, lines=4)}", "default") if room else shown


def _widest(cells: list[Text]) -> int:
    return max(line.cell_len for cell in cells for line in cell.split())


def _shorten(text: str, room: int, *, lines: int) -> str:
    """The beginning of a text, on this many lines. The export has all of it."""
    found = _lines(clean(text), room)
    if len(found) > lines:
        found[lines - 1 :] = [f"{set_cell_size(found[lines - 1], room - 2).rstrip()} …"]
    return "\n".join(found)


def _lines(text: str, room: int) -> list[str]:
    # unlike textwrap, rich knows that a Chinese character takes two columns
    return [line.plain for line in Text(text).wrap(Console(), room)]


def _time(entry: Entry) -> datetime:
    return datetime.fromtimestamp(entry.time, UTC)


def _count(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}"


# --- for other programs -----------------------------------------------------------------------------------


def _export(ledger: Ledger, kind: str, out: IO[str]) -> None:
    """The record from entry 1 on, one batch at a time: a million entries need no more memory than a thousand."""
    from discreet.sql.running.written import csv_lines

    number = ledger.count
    batches = (ledger.entries(first, min(first + _BATCH - 1, number)) for first in range(1, number + 1, _BATCH))
    entries = (entry.exported() for batch in batches for entry in batch)
    if kind == "csv":
        [opening] = ledger.entries(0, 0)
        out.write(csv_lines([opening.exported()]))
        out.writelines(csv_lines([entry.values()]) for entry in entries)
        return
    out.write(json.dumps(_facts(ledger), ensure_ascii=False)[:-1] + ', "entries": [')
    for index, entry in enumerate(entries):
        out.write((",\n" if index else "\n") + json.dumps(entry, ensure_ascii=False))
    out.write("\n]}\n")


def _facts(ledger: Ledger) -> dict[str, Any]:
    rule, remaining = ledger.rule, ledger.remaining
    left = {part: None if one.remaining is None else str(one.remaining) for part, one in ledger.parts.items()}
    return {
        "target": ledger.target,
        "protects": repr(ledger.protects),
        "limit": str(rule.limit),
        "rule": rule.name,
        "spent": {label: used if math.isfinite(used) else None for label, used in ledger.spent.items()},
        "remaining": None if remaining is None else str(remaining),
    } | ({"parts": left} if left else {})
