"""`discreet explain`: how a question would be answered, what it would cost and how large its error may be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from enum import StrEnum
from typing import Annotated, Any

import typer

from discreet.cli.terminal.connecting import connected
from discreet.cli.terminal.options import SHOWN, about_a_question
from discreet.guarantees.accuracy import check_confidence


class PlanFormat(StrEnum):
    """How a plan is printed."""

    text = "text"
    json = "json"


@about_a_question
def explain(
    asked: dict[str, Any],
    form: Annotated[
        PlanFormat, typer.Option("--format", help="How the plan is printed.", rich_help_panel=SHOWN)
    ] = PlanFormat.text,
) -> None:
    """Explain how a question would be answered, what it would cost and how large its error may be. Spends nothing.

    It shows the plan, how far one person can move each number, the noise, and the expected error. No row is read.

    Examples:
      $ discreet explain clinic.toml "SELECT COUNT(*) FROM visits" --epsilon 0.1
      $ discreet explain clinic.toml "SELECT COUNT(*) AS n FROM visits" \\
                                     --within n=50

    What SQL is understood, and how people are protected: docs/sql.md
    """
    main(**asked, form=form)


def main(
    policy: str | None,
    question: str,
    *,
    form: str = "text",
    confidence: float = 0.95,
    analyst: str | None = None,
    parts: Sequence[str] | None = None,
    **cost: Any,
) -> None:
    """Print how a question would be answered, as "text" or "json". Nothing is spent and no row is read."""
    sure, database = check_confidence(confidence), connected(policy, analyst)
    with closing(database.ledger), closing(database.engine):
        database = database.part(*parts) if parts else database
        explained = database.explain(question, confidence=sure, **cost)
        print(json.dumps(explained.data, ensure_ascii=False) if form == "json" else explained)
