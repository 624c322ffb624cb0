"""`discreet tables`: what may be asked."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Annotated

import typer

from discreet.cli.explain import PlanFormat
from discreet.cli.terminal.connecting import connected
from discreet.cli.terminal.options import SHOWN, Analyst, Policy


def tables(
    policy: Policy = None,
    form: Annotated[
        PlanFormat, typer.Option("--format", help="How the tables are printed.", rich_help_panel=SHOWN)
    ] = PlanFormat.text,
    analyst: Analyst = None,
) -> None:
    """Show what may be asked: tables and columns, types, ranges and choices, who is protected, and what remains of the
    budget. Spends nothing.

    Examples:
      $ discreet tables clinic.toml
      $ discreet tables clinic.toml --format json

    What SQL is understood, and how people are protected: docs/sql.md
    """
    main(policy, form=form, analyst=analyst)


def main(policy: str | None = None, *, form: str = "text", analyst: str | None = None) -> None:
    """Print the tables of a policy, as "text" or "json"."""
    database = connected(policy, analyst)
    with closing(database):
        described = database.tables
    print(described if form == "text" else json.dumps(described.as_json(), ensure_ascii=False, default=str))
