"""Five questions about a synthetic clinic: answers with error bars next to the truth, and their costs.

Each of the other demos has its own module, which `tell` imports when it is needed.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from discreet.datasets.connect import connect
from discreet.datasets.database import Database
from discreet.demo.data import PEOPLE, VISITS, Truth, make_clinic
from discreet.demo.story import Story, type_next
from discreet.errors import BudgetExhausted

STORIES = {
    "sql": "a question by city, and one that is refused",
    "learning": "a model of who comes back, by ε",
    "density": "the density of costs, with its band",
    "shuffle": "a poll in three models of trust",
    "adaptive": "a false finding in pure noise, which a study avoids",
}
QUESTIONS = (
    ("How many patients are 65 or older?", "SELECT COUNT(*) AS patients\nFROM people WHERE age >= 65", 0.1),
    (
        "What does a visit cost, on average, and how much do costs differ?",
        "SELECT COUNT(*) AS visits, AVG(cost) AS cost, STDDEV(cost) AS spread\nFROM visits",
        0.5,
    ),
    (
        "What differs between cities? (two private tables, joined on the patient)",
        "SELECT city, COUNT(*) AS visits, AVG(cost) AS cost\nFROM visits JOIN people USING (patient_id)\n"
        "GROUP BY city ORDER BY visits DESC",
        0.6,
    ),
    (
        "Which diagnoses are there? (they are not declared: a rare one stays hidden)",
        "SELECT diagnosis, COUNT(*) AS visits, COUNT(DISTINCT patient_id) AS patients\nFROM visits\n"
        "GROUP BY diagnosis ORDER BY visits DESC",
        0.8,
    ),
    (
        "What share of each season's spending is for the young?",
        "SELECT EXTRACT(quarter FROM day) AS quarter, SUM(cost) AS spent,\n"
        "       100 * SUM(cost) FILTER (WHERE age < 40) / SUM(cost) AS percent_young\n"
        "FROM visits JOIN people USING (patient_id) GROUP BY quarter",
        0.8,
    ),
)


def main(console: Console | None = None) -> None:
    """Generate the data, ask, and show answers, error bars and the ledger."""
    out = console or Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="discreet_demo_") as folder:
        policy = make_clinic(Path(folder))
        clinic = connect(policy)
        out.print(opening(clinic))
        truth = Truth(Path(folder))
        for title, question, epsilon in QUESTIONS:
            ask(out, clinic, truth, title, question, epsilon)
        _accuracy_first(out, clinic)
        _refusal(out, clinic)
        account(out, clinic)
        clinic.close()
    _next(out)


def tell(story: str, folder: Path, console: Console | None = None) -> None:
    """Run one of `STORIES`, and save its plot in `folder`."""
    importlib.import_module(f"discreet.demo.{story}").tell(Story(story, folder, console or Console(highlight=False)))


def opening(clinic: Database) -> Panel:
    """What the data is, who is protected, and what a ± means."""
    return Panel.fit(
        f"[bold]{PEOPLE:,} synthetic patients and {VISITS:,} visits[/], queried in SQL.\n"
        "Protected: all rows of one patient, in both tables.\n"
        f"Limit: {clinic.ledger.limit} for everything below together.\n"
        "The truth is next to each answer only because nobody here is real.\n"
        "Nobody declared how many visits a patient has, or what one costs: limits are\n"
        "found privately. Each ± holds with 95% confidence; it includes an estimate of\n"
        "what is lost to the limits.",
        title="discreet demo",
    )


def ask(out: Console, clinic: Database, truth: Truth, title: str, question: str, epsilon: float) -> None:
    """Ask one question, and show its answer next to the truth."""
    answer = clinic.sql(question, epsilon=epsilon)
    keys = len(answer.question.keys)
    exact = truth.rows(question, keys)
    names = [output.name for output in answer.question.outputs]
    table = Table(header_style="bold")
    for number, name in enumerate(names):
        table.add_column(name, justify="left" if number < keys else "right")
        if number >= keys:
            table.add_column("truth", justify="right", style="dim")
    seen = set()
    for row in answer.table.to_pylist():
        key = tuple(row[name] for name in names[:keys])
        seen.add(key)
        true = exact.get(key, (None,) * (len(names) - keys))
        table.add_row(*map(str, key), *_cells(answer.shown(row), names[keys:], true))
    out.print(f"\n[bold]{title}[/]")
    out.print(Text(f"  {question}".replace("\n", "\n  "), style="cyan"))
    out.print(table)
    if hidden := sorted(str(key[0]) for key in exact if key not in seen):
        out.print(f"  Not shown, because too few patients have it: {', '.join(hidden)}.")
    out.print(f"  cost {answer.cost}; {answer.remaining or 'nothing'} remains; receipt {answer.receipt}")


def _cells(shown: dict[str, str], names: Sequence[str], true: Sequence[Any]) -> list[str]:
    cells = []
    for name, value in zip(names, true, strict=True):
        cells += [shown[name], "" if value is None else f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"]
    return cells


def _accuracy_first(out: Console, clinic: Database) -> None:
    question = "SELECT COUNT(*) AS patients FROM people WHERE age BETWEEN 20 AND 30"
    answer = clinic.sql(question, within={"patients": 40}, confidence=0.95)
    [row] = answer.table.to_pylist()
    out.print(
        f"\n[bold]Accuracy first.[/] “How many are 20 to 30, within 40?” costs {answer.cost}, known in advance.\n"
        f"  Answer: [bold]{answer.shown(row)['patients']}[/]"
    )
    again = clinic.sql(question, within={"patients": 40}, confidence=0.95)
    out.print(f"  Asked again: the same answer, receipt {again.receipt}, for free.")


def _refusal(out: Console, clinic: Database) -> None:
    try:
        clinic.sql("SELECT COUNT(*) AS patients FROM people WHERE age < 18", epsilon=3)
    except BudgetExhausted as refused:
        out.print(f"\n[bold]One question too many.[/] {refused}")


def account(out: Console, clinic: Database) -> None:
    """Show what was asked, what it cost and what still fits."""
    ledger = clinic.ledger
    table = Table(title="The ledger", title_style="bold", title_justify="left", expand=True)
    table.add_column("receipt", no_wrap=True, min_width=7)
    table.add_column("asked", no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column("guarantee", no_wrap=True, min_width=12)
    for entry in ledger.entries():
        table.add_row(entry.receipt, Text(entry.asked), str(entry.guarantee))
    out.print()
    out.print(table)
    left = f"Still fits: [bold]{ledger.remaining or 'nothing'}[/] of {ledger.limit}."
    out.print(f"{left} All {ledger.verify()} entries verify, the opening included.")


def _next(out: Console) -> None:
    lines = {f"discreet demo {story}": words for story, words in STORIES.items()} | {
        "discreet demo gateway": "a server for analysts who are not trusted",
        "discreet init FILE": "a policy for your own Parquet, CSV or JSON",
        "discreet --help": "every command, and who uses it",
    }
    type_next(out, [f"{line:<24}{words}" for line, words in lines.items()], "index.md")
