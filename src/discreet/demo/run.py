"""`discreet demo`: six questions about made-up people, answered privately, next to the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from discreet.demo.data import CITIES, DIAGNOSES, PEOPLE, make_people
from discreet.door import release
from discreet.errors import BudgetExhausted
from discreet.guarantees.guarantee import Approx, Pure
from discreet.guarantees.unit import person
from discreet.ledger import Ledger
from discreet.mechanisms.exponential import Exponential
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.quantile import Quantile
from discreet.queries import Integers, Sensitivity
from discreet.releases import Release

PATIENT = person("person_id")
Ask = Callable[[str], Any]


def main(console: Console | None = None) -> None:
    """Make the data, ask, and show answers, error bars and the ledger."""
    out = console or Console(highlight=False)
    database = make_people()
    limit = Approx(epsilon=2, delta=1e-6)
    ledger = Ledger.open(":memory:", protects=PATIENT, limit=limit)

    def ask(query: str) -> Any:
        """What DuckDB answers; one person has one row, so one person moves a count by 1."""
        return database.execute(query).fetchall()

    out.print(
        Panel.fit(
            f"[bold]{PEOPLE:,} made-up patients[/] in embedded DuckDB, one row for each.\n"
            f"Protected: one person. Limit: {limit} for everything below together.\n"
            "The truth is shown beside each answer only because nobody here is real.",
            title="discreet demo",
        )
    )
    answers = Table(title="Private answers", title_style="bold", header_style="bold")
    for column, justify in (("question", "left"), ("private answer", "right"), ("truth", "right"), ("cost", "right")):
        answers.add_column(column, justify=justify)  # type: ignore[arg-type]
    for rows in (_count(ask, ledger), _median(ask, ledger), _mean(ask, ledger), _favorite(ask, ledger)):
        answers.add_row(*rows)
    out.print(answers)
    out.print(_cities(ask, ledger))
    _accuracy_first(out, ask, ledger)
    _refusal(out, ledger)
    _account(out, ledger)


def _cost(answer: Release) -> str:
    return f"{answer.guarantee}"


def _count(ask: Ask, ledger: Ledger) -> tuple[str, ...]:
    [(truth,)] = ask("SELECT count(*) FROM people WHERE diagnosis = 'diabetes' AND age >= 40")
    noise = Laplace.for_guarantee(Pure(epsilon=0.1), sensitivity=1, step=1)
    answer = release(truth, noise, sensitivity=1, ledger=ledger, asked="people of 40 or more with diabetes")
    shown = f"{answer.value:,} ± {float(answer.error(0.95)):.0f}"
    return "How many people of 40 or more have diabetes?", shown, f"{truth:,}", _cost(answer)


def _median(ask: Ask, ledger: Ledger) -> tuple[str, ...]:
    ages = [age for (age,) in ask("SELECT age FROM people")]
    [(truth,)] = ask("SELECT median(age) FROM people")
    median = Quantile.for_guarantee(Pure(epsilon=0.1), space=Integers(0, 120), unit=PATIENT)
    answer = release(ages, median, sensitivity=median.sensitivity(PATIENT), ledger=ledger, asked="median age")
    shown = f"{answer.value}, within {float(answer.error(0.95)):.0f} ranks"
    return "What is the median age?", shown, f"{truth:.0f}", _cost(answer)


def _mean(ask: Ask, ledger: Ledger) -> tuple[str, ...]:
    # a mean is a sum and a count: whole cents, clamped to a declared range and added exactly by DuckDB
    low, high = 0, 500_000
    [(total, count)] = ask(
        f"SELECT sum(least(greatest(round(cost * 100)::HUGEINT, {low}), {high})), count(*) FROM people"
    )
    [(truth,)] = ask("SELECT avg(cost) FROM people")
    middle = (low + high) // 2
    noise = [Laplace.for_guarantee(Pure(epsilon=0.1), sensitivity=s, step=1) for s in (middle, 1)]
    about_middle = int(total) - middle * count
    first = release(about_middle, noise[0], sensitivity=middle, ledger=ledger, asked="sum of costs around the middle")
    second = release(count, noise[1], sensitivity=1, ledger=ledger, asked="number of people")
    mean = (middle + first.value / max(second.value, 1)) / 100
    spread = (float(first.error(0.975)) + middle * float(second.error(0.975))) / max(second.value, 1) / 100
    return "What does a patient cost on average?", f"{mean:,.2f} ± {spread:.2f}", f"{truth:,.2f}", "ε = 0.1 + 0.1"


def _favorite(ask: Ask, ledger: Ledger) -> tuple[str, ...]:
    counts = dict(ask("SELECT diagnosis, count(*) FROM people GROUP BY diagnosis"))
    scores = [counts.get(name, 0) for name in DIAGNOSES]
    bound = Sensitivity(1, "Linf", PATIENT, len(DIAGNOSES), grain=1, monotone=True)
    choose = Exponential.for_guarantee(Pure(epsilon=0.1), sensitivity=bound, choices=DIAGNOSES)
    answer = release(scores, choose, sensitivity=bound, ledger=ledger, asked="most common diagnosis")
    return "Which diagnosis is the most common?", str(answer.value), max(counts, key=counts.__getitem__), _cost(answer)


def _cities(ask: Ask, ledger: Ledger) -> Table:
    counts = dict(ask("SELECT city, count(*) FROM people GROUP BY city"))
    bound = Sensitivity(1, "L1", PATIENT, len(CITIES), grain=1)
    noise = Laplace.for_guarantee(Pure(epsilon=0.1), sensitivity=bound, step=1)
    people = [counts.get(city, 0) for city in CITIES]
    answer = release(people, noise, sensitivity=bound, ledger=ledger, asked="people in each city")
    table = Table(title=f"How many people live in each city? ({_cost(answer)} for all six)", title_style="bold")
    for column in ("city", "private answer", "truth", ""):
        table.add_column(column, justify="left" if column in ("city", "") else "right")
    largest, error = max(answer.value), float(answer.error(0.95))
    for city, value in zip(CITIES, answer.value.tolist(), strict=True):
        table.add_row(city, f"{value:,} ± {error:.0f}", f"{counts[city]:,}", "█" * round(30 * max(value, 0) / largest))
    return table


def _accuracy_first(out: Console, ask: Ask, ledger: Ledger) -> None:
    noise = Laplace.for_error(25, confidence=0.95, step=1)
    promise = noise.guarantee(1)
    [(truth,)] = ask("SELECT count(*) FROM people WHERE age >= 65")
    answer = release(truth, noise, sensitivity=1, ledger=ledger, asked="people who are 65 or older")
    out.print(
        f"\n[bold]Accuracy first.[/] “How many are 65 or older, within 25?” costs {promise}, known in advance.\n"
        f"  Answer: [bold]{answer.value:,} ± {float(answer.error(0.95)):.0f}[/] (truth: {truth:,})"
    )


def _refusal(out: Console, ledger: Ledger) -> None:
    try:
        release(0, Laplace(scale=0.2, step=1), sensitivity=1, ledger=ledger)
    except BudgetExhausted as refused:
        out.print(f"\n[bold]A question too many.[/] {refused}")


def _account(out: Console, ledger: Ledger) -> None:
    table = Table(title="The ledger", title_style="bold")
    for column in ("receipt", "asked", "mechanism", "guarantee"):
        table.add_column(column)
    for entry in ledger.entries():
        table.add_row(entry.receipt, entry.asked, entry.mechanism.split("(")[0], str(entry.guarantee))
    out.print(table)
    left = f"Still fits: [bold]{ledger.remaining or 'nothing'}[/] of {ledger.limit}."
    out.print(f"{left} All {ledger.verify()} entries verify, the opening included.")
