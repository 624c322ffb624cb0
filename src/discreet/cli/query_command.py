"""`discreet query` and `discreet explain`: a question in SQL, answered; or what its answer would cost and be worth."""

from __future__ import annotations

import csv
import json
import math
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.cli.ledger_command import clean, harmless
from discreet.cli.pictures import check_picture
from discreet.datasets.connect import connect
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import InvalidArgument
from discreet.guarantees.accuracy import check_confidence
from discreet.ledger import Ledger
from discreet.sql.running.answer import Answer
from discreet.sql.running.explanation import explained, explained_data, lines, protected


def query(
    policy: str,
    question: str,
    *,
    form: str = "table",
    plot: Path | None = None,
    confidence: float = 0.95,
    key: str | None = None,
    analyst: str | None = None,
    **cost: Any,
) -> None:
    """Answer a question and print it as "table", "json" or "csv"; bad options are told before anything is charged."""
    sure = check_confidence(confidence)
    if plot is not None:
        check_picture(plot, "discreet query --plot")
    database, console = connect(policy, analyst=analyst), Console(stderr=True)
    with closing(database.ledger), closing(database.engine), console.status("Answering …") as status:
        if console.is_terminal and isinstance(database.engine, DuckDB):
            database.engine.progress = lambda percent: status.update(f"Answering … {percent}%")
        answer = database.sql(question, confidence=confidence, key=key, **cost)
        table = answer.with_errors(sure)
        told = _json(answer, table, sure) if form == "json" else lines(_told(answer, table, database.ledger, sure))
    if form == "json":
        print(told)
    elif form == "csv":
        rows = (map(harmless, row.values()) for row in table.to_pylist())
        csv.writer(sys.stdout).writerows([table.column_names, *rows])
        print(told, file=sys.stderr)
    else:
        Console(highlight=False).print(_table(answer, table) if table.num_rows else "(no group is shown)")
        print(f"\n{told}")
    if plot is not None:
        _draw(answer, sure, plot)


def explain(
    policy: str, question: str, *, form: str = "text", confidence: float = 0.95, analyst: str | None = None, **cost: Any
) -> None:
    """Print how a question would be answered, as "text" or "json"; nothing is spent and no row is read."""
    sure, database = check_confidence(confidence), connect(policy, analyst=analyst)
    with closing(database.ledger), closing(database.engine):
        plan = database.plan(question, confidence=confidence, **cost)
        asked: dict[str, Any] = {"ledger": database.ledger, "confidence": sure}
        data = json.dumps(explained_data(plan, **asked), ensure_ascii=False) if form == "json" else ""
        print(data or explained(plan, **asked))


def _json(answer: Answer, table: Any, confidence: float) -> str:
    noisy = [f"{o.name}_error" if answer.question.is_noisy(o) else None for o in answer.question.outputs]
    errors = [[name and row[name] for name in noisy] for row in table.to_pylist()]
    shown = answer.as_json() | {"errors": errors, "confidence": confidence}
    shown["rows"] = [[_plain(value) for value in row] for row in shown["rows"]]
    return json.dumps(shown, ensure_ascii=False, allow_nan=False, default=float)


def _plain(value: Any) -> Any:
    """A value as JSON has it: dates as text, and null for what is not a number."""
    number = not isinstance(value, float) or math.isfinite(value)
    return value.isoformat() if hasattr(value, "isoformat") else value if number else None


def _table(answer: Answer, table: Any) -> Table:
    shown = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    noisy = {output.name: answer.question.is_noisy(output) for output in answer.question.outputs}
    for name, right in noisy.items():
        shown.add_column(Text(name), justify="right" if right else "left", overflow="fold")
    for row in table.to_pylist():
        cells = answer.shown(row)
        shown.add_row(*(Text(clean(cells[name])) for name in noisy))
    return shown


def _told(answer: Answer, table: Any, ledger: Ledger, confidence: float) -> dict[str, str]:
    """What the answer cost, what remains of the ledger now, and how to find the answer again."""
    told = {
        "cost": f"{answer.cost}, for {protected(ledger.protects)}",
        "remains": f"{ledger.remaining or 'nothing'} of {ledger.limit}",
        "receipt": f"{answer.receipt}{'; answered before, at no new cost' if answer.replayed else ''}",
        **_errors(answer, table, confidence),
        **{f"note {number}": note for number, note in enumerate(answer.notes, 1)},
    }
    return told | ({"NOT PRIVATE": "made in test mode"} if answer.not_private else {})


def _errors(answer: Answer, table: Any, confidence: float) -> dict[str, str]:
    """What a ± says, where one is shown; that is public, like all that is shown."""
    if not table.num_rows or not any(map(answer.question.is_noisy, answer.question.outputs)):
        return {}
    of = ", for what the bounds below leave in" if answer.notes else " for the true value"
    return {"errors": f"each ± holds with {100 * confidence:.6g}% confidence{of}"}


def _draw(answer: Answer, confidence: float, path: Path) -> None:
    figure = answer.plot(confidence=confidence)
    try:
        figure.savefig(path, dpi=130)
    except OSError as error:
        raise InvalidArgument(
            f"{path} cannot be written: {error.strerror}. Name another: the same question is free now.",
            code="file-not-writable",
        ) from None
