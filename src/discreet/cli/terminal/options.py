"""Options that commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any

import typer

from discreet.cli.terminal.completion import ledgers, policies
from discreet.errors import InvalidArgument

COST, RECORD, SHOWN = "What it may cost", "For the record", "How it is shown"

NamedPolicy = Annotated[
    str,
    typer.Argument(
        help="The policy of the data (*.toml): who is protected, what may be spent, where the tables are.",
        autocompletion=policies,
    ),
]
Policy = Annotated[
    str | None,
    typer.Argument(
        metavar="[POLICY]",
        help="The policy of the data (*.toml): who is protected, what may be spent, where the tables are. "
        "By default $DISCREET_POLICY, or discreet.toml in this folder or one above it.",
        autocompletion=policies,
        show_default=False,
    ),
]
LedgerTarget = Annotated[
    str | None,
    typer.Argument(
        metavar="[TARGET]",
        help="A ledger's path or postgresql:// URL, or a policy (*.toml) that names one. By default the policy "
        "$DISCREET_POLICY, or discreet.toml in this folder or one above it.",
        autocompletion=ledgers,
        show_default=False,
    ),
]
Question = Annotated[
    str | None, typer.Argument(metavar="QUESTION", help="The question, in SQL; in quotes.", show_default=False)
]
Epsilon = Annotated[
    float | None,
    typer.Option(
        help="What the whole answer may cost: less is more private, and noisier.",
        show_default=False,
        rich_help_panel=COST,
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(
        help="The δ it may use; by default the policy's delta_per_question.", show_default=False, rich_help_panel=COST
    ),
]
Within = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=ERROR",
        help="Instead of --epsilon: how wrong a column may be. The smallest ε that promises it is spent. "
        "May be repeated.",
        show_default=False,
        rich_help_panel=COST,
    ),
]
Weight = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=WEIGHT",
        help="A larger share of ε for a column; all have weight 1. May be repeated.",
        show_default=False,
        rich_help_panel=COST,
    ),
]
Confidence = Annotated[float, typer.Option(help="How sure --within and the errors shown are.", rich_help_panel=COST)]
Analyst = Annotated[
    str | None,
    typer.Option(help="Who asks: charged to their own account, too.", show_default=False, rich_help_panel=RECORD),
]
Part = Annotated[
    list[str] | None,
    typer.Option(
        help="Only the rows in this part count: a block of time such as 2024-01, or where people live. May be "
        "repeated.",
        show_default=False,
        rich_help_panel=COST,
    ),
]


def _question_options(
    policy: Policy = None,
    question: Question = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    within: Within = None,
    confidence: Confidence = 0.95,
    weight: Weight = None,
    analyst: Analyst = None,
    part: Part = None,
) -> dict[str, Any]:
    """The options of every command about a question."""
    from discreet.datasets.description import asks_for_tables

    if question is None:
        policy, question = None, policy  # a single argument is the question
    if question is None or (policy is None and question.endswith(".toml")):
        raise InvalidArgument(
            'Write a question in SQL, in quotes: "SELECT COUNT(*) FROM visits".', code="command-question"
        )
    options = {"policy": policy, "question": question, "confidence": confidence, "analyst": analyst, "parts": part}
    return options if asks_for_tables(question) else options | _cost(epsilon, delta, within, weight)


def about_a_question(command: Callable[..., None]) -> Callable[..., None]:
    """The command with those options before its own. It gets them as `asked`."""
    shared, own = (inspect.signature(function, eval_str=True).parameters for function in (_question_options, command))
    options = [*shared.values(), *(option for name, option in own.items() if name != "asked")]

    @wraps(command)
    def run(**given: Any) -> None:
        asked = _question_options(**{name: given.pop(name) for name in shared})
        try:
            command(asked, **given)
        except InvalidArgument as error:
            raise _no_cost() if error.code == "epsilon-or-within" else error from None

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def _cost(epsilon: Any, delta: Any, within: Sequence[str] | None, weight: Sequence[str] | None) -> dict[str, Any]:
    goals, weights = read_amounts(within, "--within"), read_amounts(weight, "--weight")
    if epsilon is not None and goals is not None:
        raise _no_cost()
    return {"epsilon": epsilon, "delta": delta, "within": goals, "weights": weights}


def _no_cost() -> InvalidArgument:
    """What is said of a question that is not free, if it may cost nothing, or if two options say what."""
    return InvalidArgument(
        "Write either what it may cost, --epsilon 0.5, or how wrong a column of the answer may be, --within COLUMN=50.",
        code="epsilon-or-within",
    )


def read_amounts(given: Sequence[str] | None, option: str) -> dict[str, float] | None:
    """Numbers for columns, each written as column=number. None if there are none."""
    found: dict[str, float] = {}
    for text in given or ():
        name, _, number = text.rpartition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            name = ""
        if not name.strip():
            raise InvalidArgument(
                f"{option} takes a column of the answer and a number. Write {option} COLUMN=50.", code="command-pair"
            )
    return found or None
