"""`discreet audit MECHANISM`: attack one of our own mechanisms and print the result."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from discreet.cli import completion
from discreet.guarantees.guarantee import Approx

if TYPE_CHECKING:
    from discreet.audit.auditor import Audit
    from discreet.audit.mechanisms import Subject


def audit(
    mechanism: Annotated[
        str,
        typer.Argument(help="The mechanism to test, such as laplace.", autocompletion=completion.mechanisms),
    ],
    epsilon: Annotated[float, typer.Option(help="The ε it claims.", rich_help_panel="The claim")] = 1.0,
    delta: Annotated[float, typer.Option(help="The δ it claims.", rich_help_panel="The claim")] = 0.0,
    samples: Annotated[
        int | None,
        typer.Option(
            help="Draws on each of two neighboring inputs. By default as many as are fast.", show_default=False
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="How sure the lower bound is.")] = 0.99999,
    halve_noise: Annotated[bool, typer.Option(help="Break the mechanism, to see the audit fire.")] = False,
) -> None:
    """Attack a mechanism: a lower bound on ε from its answers alone must stay below the claim.

    The mechanism runs on two inputs that differ in one person. The audit searches for the event that distinguishes them
    best. The exit code is 0 if the claim survives, and 1 if the audit fires.

    Examples:
      $ discreet audit laplace --epsilon 1
      $ discreet audit gaussian --epsilon 1 --delta 1e-6
      $ discreet audit laplace --epsilon 1 --halve-noise

    How privacy is tested: docs/testing.md
    """
    raise typer.Exit(main(mechanism, epsilon, delta, samples, confidence, broken=halve_noise))


def main(
    mechanism: str,
    epsilon: float = 1.0,
    delta: float = 0.0,
    samples: int | None = None,
    confidence: float = 0.99999,
    broken: bool = False,
) -> int:
    """Audit a mechanism by name and print the result: 0 if its claim survives, 1 if the audit fires.

    `samples` is by default a million for mechanisms that answer arrays and 50,000 for those that answer one by one.
    With `broken` the mechanism draws half the noise it claims, to show the audit firing.
    """
    from discreet.audit.auditor import audit
    from discreet.audit.mechanisms import subject

    audited = subject(mechanism, epsilon=epsilon, delta=delta, broken=broken)
    console = Console()
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("drawing on both neighbors", total=None)
        result = audit(
            audited.draw,
            audited.first,
            audited.second,
            samples=audited.samples if samples is None else samples,
            epsilon=audited.claim.epsilon,
            delta=audited.claim.delta,
            confidence=confidence,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    console.print(_table(audited, result, Approx(epsilon=epsilon, delta=delta), broken))
    return 0 if result.passed else 1


def _table(audited: Subject, result: Audit, promise: Approx, broken: bool) -> Table:
    p, q = result.finding.probabilities
    inputs = reprlib.repr(audited.first), reprlib.repr(audited.second)
    likelier = inputs[result.finding.likelier == "second"]
    at = f" at δ = {result.delta:.4g}" if result.delta else ""
    tested = "" if audited.claim.delta == promise.delta else f"; its curve is tested at {audited.claim}"
    rows = {
        "mechanism": repr(audited.mechanism) + (" (half its noise, on purpose)" if broken else ""),
        "neighbors": f"{inputs[0]} and {inputs[1]}, {result.samples:,} outputs on each",
        "claim": f"{promise}{tested}",
        "lower bound": f"ε ≥ {result.epsilon_lower:.4g}{at}",
        "event": f"{result.event}: {p:.4g} on {likelier}, {q:.4g} on the other",
        f"δ at ε = {result.claimed:.4g}": f"≥ {result.delta_lower:.4g}",
        "confidence": f"{result.confidence:.10g} for both bounds together",
        "power": str(result.power),
        "verdict": "passed" if result.passed else "FIRED: the claim is false",
    }
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, words in rows.items():
        table.add_row(name, words)
    table.rows[-1].style = "green" if result.passed else "bold red"
    return table
