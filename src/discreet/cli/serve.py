"""`discreet serve`: the gateway for analysts who are not trusted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import NamedPolicy


def serve(
    policy: NamedPolicy,
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

    Examples:
      $ discreet serve clinic.toml --calibrate
      $ discreet account clinic.toml open alice --epsilon 3
      $ sudo discreet serve clinic.toml

    The settings, the accounts and what is promised: docs/gateway.md
    """
    from discreet.gateway.mcp import is_installed
    from discreet.gateway.serve import Supervisor
    from discreet.gateway.serve import check as check_isolation

    if check:
        check_isolation(policy)
        print("isolated: the desk can read neither the data, nor the ledger, nor the accounts")
        return
    if calibrate:
        _calibrate(policy)
        return
    supervisor = Supervisor(policy, isolated=not not_isolated)
    for problem in supervisor.problems:
        print(f"NOT ISOLATED: {problem}", file=sys.stderr)
    if not supervisor.settings.answer_after:
        print("answer_after is 0: answers leave when they are ready, and time tells about people", file=sys.stderr)
    if not is_installed():
        print('/mcp is not served: it needs mcp. Install it with: pip install "discreet[mcp]"', file=sys.stderr)
    with supervisor.running():
        print("ready", *(f"  {name:9} {address}" for name, address in supervisor.addresses().items()), sep="\n")
        sys.stdout.flush()
        supervisor.watch()


def _calibrate(policy: str) -> None:
    from discreet.gateway.calibrate import proposed, time_questions
    from discreet.gateway.isolation import as_vault
    from discreet.gateway.settings import load_settings

    known, settings = load_settings(Path(policy))
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
