"""`discreet check`: what an owner should know about a policy before others ask."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.terminal.options import Policy
from discreet.cli.terminal.output import clean, is_terminal
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.datasets.checking import PolicyCheck, Problem


def check(
    policy: Policy = None,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(help="The ε of a typical question. May be given several times.", show_default="0.01, 0.1, 0.5"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON. It never contains anything about rows.")] = False,
    rows: Annotated[
        bool, typer.Option("--rows", help="Count rows, people and missing values. Exact, so on your terminal only.")
    ] = False,
) -> None:
    """Check a policy before others ask: what is left to decide, what happens to missing and undeclared values, how many
    typical questions the limit pays for, and what is wrong with files. Spends nothing, and reads no row without --rows.

    Examples:
      $ discreet check clinic.toml
      $ discreet check clinic.toml --epsilon 0.2 --json

    \b
    Exit codes:
      0  nothing is wrong, and nothing left to decide
      1  questions can be asked, but something is left to decide, or may go wrong
      2  no question can be asked
    """
    raise typer.Exit(main(policy, epsilons=epsilon, as_json=as_json, rows=rows))


def main(
    policy: str | None, *, epsilons: Sequence[float] | None = None, as_json: bool = False, rows: bool = False
) -> int:
    """Print what was found. The exit code."""
    from discreet.datasets.checking import EPSILONS, check_policy
    from discreet.datasets.discovery import find_policy
    from discreet.datasets.looking import look_at_rows
    from discreet.datasets.policy import load
    from discreet.exact.rational import check_epsilon

    if rows and (as_json or not is_terminal(sys.stdout)):
        raise InvalidArgument(
            "--rows prints exact counts, which are not private: only on a terminal, and not as JSON.",
            code="command-terminal",
        )
    for one in epsilons or ():
        check_epsilon(one)
    path = find_policy() if policy is None else Path(policy)
    found = check_policy(path, epsilons or EPSILONS)
    found = replace(found, problems=[*found.problems, *_problems_of_gateway(path)])
    if as_json:
        print(json.dumps(found.as_json(), ensure_ascii=False))
    else:
        _show(found)
    if rows:
        print("\nfrom the rows: exact, and for you alone")
        print(
            *(f"  {clean(line) if line[0] != ' ' else '  ' + clean(line)}" for line in look_at_rows(load(path))),
            sep="\n",
        )
    return 0 if found.is_ready else 1 if found.is_usable else 2


def _problems_of_gateway(path: Path) -> Iterator[Problem]:
    """What is wrong with the settings of the gateway or does not fit together, and whether an old copy of the ledger
    would be noticed.
    """
    from discreet.datasets.checking import Problem
    from discreet.gateway.isolation import this_user, vault_of, why_unnoticed
    from discreet.gateway.settings import contradictions, load_settings
    from discreet.guarantees.guarantee import Approx

    try:
        policy, settings = load_settings(path)
        if isinstance(policy.limit, Approx):
            yield from map(Problem, contradictions(settings, policy.limit.epsilon))
        if policy.gateway is not None and os.geteuid() != 0:
            return  # the vault may run as another user
        vault = None if policy.gateway is None else vault_of(settings)
        name = "this user" if vault is None else settings.users[0]
        if text := why_unnoticed(policy, vault or this_user(), name):
            yield Problem(f"{text[0].upper()}{text[1:]}.")
    except InvalidArgument as error:
        yield Problem(str(error), error.code)


def _show(found: PolicyCheck) -> None:
    for title, lines in (
        ("wrong", [f"[{one.code}] {one.text}" for one in found.problems if one.code]),
        ("may go wrong", [one.text for one in found.problems if not one.code]),
        ("left to decide", [f"line {one.line}: {one.text}" for one in found.decisions]),
    ):
        if lines:
            print(f"{title}", *(f"  {clean(line)}" for line in lines), "", sep="\n")
    for table, fates in found.fates.items():
        print(f"{table}", *(f"  {clean(line)}" for line in fates), "", sep="\n")
    if found.budget:
        print(f"all of {found.limit} pays for one of these, so often, if nothing else is asked")
        questions = dict.fromkeys(one.question for one in found.budget)
        each = {(one.question, one.epsilon): one.times for one in found.budget}
        epsilons = sorted({one.epsilon for one in found.budget})
        print("".join(f"{f'ε = {epsilon:g}':>12}" for epsilon in epsilons))
        for question in questions:
            times = (each.get((question, epsilon)) for epsilon in epsilons)
            print("".join(f"{'' if many is None else f'{many:,}':>12}" for many in times) + f"   {clean(question)}")
        print()
    if found.ledger:
        print(f"ledger: {found.ledger}")
    print("ready" if found.is_ready else "usable, but look at the above" if found.is_usable else "NOT usable")
