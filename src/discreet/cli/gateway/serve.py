"""`discreet serve`: the gateway for analysts who are not trusted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.terminal.completion import policies
from discreet.errors import InvalidArgument


def serve(
    policy: Annotated[
        str | None,
        typer.Argument(
            help="The policy of the data (*.toml). With --new, the file to write; by default it is named like the "
            "data.",
            autocompletion=policies,
            show_default=False,
        ),
    ] = None,
    new: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATA",
            help="A first run: set up a policy for a file, a folder or a postgresql:// database in the browser, and "
            "serve it. Repeat it for several files: --new a.csv --new b.csv.",
            show_default=False,
        ),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="With --new: whether first lines of CSV files, and keys of JSON files, are names.",
            show_default=False,
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help='With --new: names for the columns of a text file whose first line is a row: "mrn, visited, cost". '
            'Repeat it for several files, with the table: "stays: mrn, visited, cost". You can also name them in the '
            "browser.",
            show_default=False,
        ),
    ] = None,
    encoding: Annotated[
        list[str] | None,
        typer.Option(
            help="With --new: the encoding of text files that are not UTF-8, such as windows-1252. Repeat it with the "
            'table if only some are not: "stays: windows-1252". A copy in UTF-8 is written next to the policy.',
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check that the desk cannot read the data. Fails if it can.")
    ] = False,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Only measure how long answers take, and propose answer_after.")
    ] = False,
    not_isolated: Annotated[
        bool, typer.Option("--not-isolated", help="Start even though the desk could read the data, to try things out.")
    ] = False,
) -> None:
    """Serve a data set over HTTP, to clients of PostgreSQL, and to AI agents: they see only what the ledger pays for.

    Two processes are started. The vault has the data, the ledger and the accounts. The desk is what analysts reach, and
    has nothing. Started as root, each gets its own user, and the desk cannot read the data even if somebody takes it
    over. A charged answer leaves at a fixed time, answer_after, so that time tells nothing.

    SIGHUP replaces the running pair by a new one, after an upgrade or a change of the policy, and nothing is lost.
    SIGTERM and Ctrl-C let running answers finish.

    With --new there is no policy yet: open the printed link in a browser, and decide who is protected and what may be
    spent. Names and types of columns are read, and no row is shown. An existing file is not changed.

    Examples:
      $ discreet serve --new visits.parquet
      $ discreet serve --new visits.csv --new labs.csv
      $ discreet serve clinic.toml --calibrate
      $ discreet account clinic.toml open alice --epsilon 3
      $ sudo discreet serve clinic.toml

    The settings, the accounts and what is promised: docs/gateway.md
    """
    from discreet.gateway.desk.mcp import is_installed
    from discreet.gateway.serve import Supervisor
    from discreet.gateway.serve import check as check_isolation

    if new:
        known = {"header": header, "columns": columns or (), "encoding": encoding}
        _first_run(new, policy, isolated=not not_isolated, **known)
        return
    if policy is None:
        raise InvalidArgument(
            "Name a policy, such as clinic.toml, or data to begin with: discreet serve --new visits.parquet.",
            code="command-policy",
        )
    if check:
        for text in check_isolation(policy):
            _warn(text)
        print("isolated: the desk can read neither the data, nor the ledger, nor the accounts")
        return
    if calibrate:
        _calibrate(policy)
        return
    supervisor = Supervisor(policy, isolated=not not_isolated)
    for problem in supervisor.problems:
        print(f"NOT ISOLATED: {problem}", file=sys.stderr)
    for text in supervisor.warnings:
        _warn(text)
    if not supervisor.settings.answer_after:
        print("answer_after is 0: answers leave when they are ready, and time tells about people", file=sys.stderr)
    if not is_installed():
        print('/mcp is not served: it needs mcp. Install it with: pip install "discreet[mcp]"', file=sys.stderr)
    with supervisor.running():
        if supervisor.beginning:
            print(supervisor.beginning, file=sys.stderr)
        print("ready", *(f"  {name:9} {address}" for name, address in supervisor.addresses().items()), sep="\n")
        sys.stdout.flush()
        supervisor.watch()


def _warn(text: str) -> None:
    """Tell the owner, on standard error."""
    print(f"WARNING: {text}", file=sys.stderr)


def _first_run(data: list[str], policy: str | None, *, isolated: bool, **known: Any) -> None:
    """Set up and serve. `known` is what the owner knows about text files."""
    from discreet.gateway.first_run import FirstRun

    first_run = FirstRun(data, policy, isolated=isolated, **known)
    for problem in first_run.problems:
        print(f"NOT ISOLATED: {problem}", file=sys.stderr)
    with first_run.running():
        print("ready", f"  http      http://{first_run.address}", f"  owner     {first_run.link}", sep="\n")
        print("Open the owner's link in a browser on this machine. It works once.", file=sys.stderr)
        sys.stdout.flush()
        first_run.watch()
    if not first_run.policy_file.exists():
        print("Stopped. Nothing was written.", file=sys.stderr)


def _calibrate(policy: str) -> None:
    from discreet.gateway.calibrate import proposed, time_questions
    from discreet.gateway.isolation import as_vault
    from discreet.gateway.settings import load_served

    known, settings = load_served(Path(policy))
    slowest = 0.0
    with as_vault(known, settings):  # what is published meanwhile belongs to the vault
        for timed in time_questions(known, settings):
            print(f"{timed.seconds:8.3f} s  {timed.question}", flush=True)
            slowest = max(slowest, timed.seconds)
    print(
        f'\nThese times are about your data: keep them to yourself. Write in [gateway]:\n\n    answer_after = "'
        f'{proposed(slowest)}"\n\nIt is five times the slowest answer or more. Choose more if other questions are '
        "heavier, or the machine is shared."
    )
