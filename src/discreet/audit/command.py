"""`discreet audit MECHANISM`: attack one of our own mechanisms and print what was found."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from discreet.audit.auditor import Audit, audit
from discreet.audit.mechanisms import Subject, subject


def main(
    mechanism: str,
    epsilon: float = 1.0,
    delta: float = 0.0,
    samples: int = 1_000_000,
    confidence: float = 0.99999,
    broken: bool = False,
) -> int:
    """Audit a mechanism by name and print the result: 0 when its claim survives, 1 when the audit fires.

    With `broken` the mechanism draws half the noise it claims, to show what firing looks like.
    """
    audited = subject(mechanism, epsilon=epsilon, delta=delta, broken=broken)
    console = Console()
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("drawing on both neighbors", total=None)
        result = audit(
            audited.draw,
            audited.first,
            audited.second,
            samples=samples,
            epsilon=epsilon,
            delta=delta,
            confidence=confidence,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    console.print(_table(audited, result, samples, broken))
    return 0 if result.passed else 1


def _table(audited: Subject, result: Audit, samples: int, broken: bool) -> Table:
    p, q = result.finding.probabilities
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    claim = f"ε = {result.claimed:g}" + (f", δ = {result.delta:g}" if result.delta else "")
    likelier = audited.neighbors[result.finding.likelier == "second"]
    for name, words in (
        ("mechanism", audited.words + (", drawn with half its noise on purpose" if broken else "")),
        ("neighbors", f"{audited.neighbors[0]} and {audited.neighbors[1]}, {samples:,} outputs on each"),
        ("claim", claim),
        ("lower bound", f"ε ≥ {result.epsilon_lower:.4g} with confidence {result.confidence:.10g}"),
        ("event", f"{result.event}: {p:.4g} on {likelier}, {q:.4g} on the other"),
        ("power", str(result.power)),
        ("verdict", "passed" if result.passed else "FIRED: the claim is false"),
    ):
        style = ("green" if result.passed else "bold red") if name == "verdict" else None
        table.add_row(name, words, style=style)
    return table
