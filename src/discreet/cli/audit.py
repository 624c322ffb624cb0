"""`discreet audit MECHANISM` or `discreet audit model NAME`: attack one of our own, and print the result."""

from __future__ import annotations

import reprlib
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from discreet.cli.terminal import completion
from discreet.cli.terminal.output import check_picture
from discreet.errors import InvalidArgument
from discreet.guarantees.guarantee import Approx

if TYPE_CHECKING:
    from discreet.audit.auditor import Audit
    from discreet.audit.mechanisms import Subject
    from discreet.audit.models import ModelAudit

_MODELS = "Of a model only"
MODEL = "model"
"""The word before the name of a model."""
MODEL_DELTA = 1e-6


def audit(
    mechanism: Annotated[
        str,
        typer.Argument(
            help="The mechanism to test, such as laplace, or the word model.", autocompletion=completion.mechanisms
        ),
    ],
    name: Annotated[
        str | None,
        typer.Argument(
            help="After model: an estimator, such as LogisticRegression, or synthetic.",
            autocompletion=completion.models,
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The ε it claims.", rich_help_panel="The claim")] = 1.0,
    delta: Annotated[
        float | None,
        typer.Option(
            help="The δ it claims. By default 0, and 1e-6 for a model.", rich_help_panel="The claim", show_default=False
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            help="Draws on each of two neighboring inputs. By default as many as are fast.", show_default=False
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(help="How sure the lower bound is. By default 0.99999, and 0.95 for a model.", show_default=False),
    ] = None,
    halve_noise: Annotated[
        bool, typer.Option(help="Break it, to see the audit fire: half the noise, or for a model twice the ε.")
    ] = False,
    remove_noise: Annotated[
        bool, typer.Option(help="Break a model: fit with almost no noise.", rich_help_panel=_MODELS)
    ] = False,
    canaries: Annotated[
        int | None,
        typer.Option(
            help="How many rows to hide in each fit. By default 500, and fewer for a slow model.",
            min=10,
            show_default=False,
            rich_help_panel=_MODELS,
        ),
    ] = None,
    runs: Annotated[int, typer.Option(help="How many fits.", min=1, rich_help_panel=_MODELS)] = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print it for another program.", rich_help_panel=_MODELS)
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw the ROC and what the claim allows: a .svg, .png or .pdf.",
            show_default=False,
            rich_help_panel=_MODELS,
        ),
    ] = None,
) -> None:
    """Attack a mechanism: a lower bound on ε from its answers alone must stay below the claim.

    The mechanism runs on two inputs that differ in one person. The audit searches for the event that distinguishes them
    best. The exit code is 0 if the claim survives, and 1 if the audit fires.

    `discreet audit model NAME` hides canaries in generated rows, each by a fair coin, fits the model, and guesses which
    ones it has seen. No data of anybody is read, and no ledger is charged.

    Examples:
      $ discreet audit laplace --epsilon 1
      $ discreet audit gaussian --epsilon 1 --delta 1e-6
      $ discreet audit laplace --epsilon 1 --halve-noise
      $ discreet audit model LogisticRegression --epsilon 1
      $ discreet audit model KMeans --epsilon 1 --remove-noise --plot roc.svg

    How privacy is tested: docs/testing.md
    """
    if mechanism != MODEL:
        if name is not None:
            raise InvalidArgument(
                f"{name} is one word too many. For a model write: discreet audit model {name}.", code="audit-no-model"
            )
        sure = 0.99999 if confidence is None else confidence
        raise typer.Exit(main(mechanism, epsilon, delta or 0.0, samples, sure, broken=halve_noise))
    raise typer.Exit(
        main_model(
            name,
            epsilon,
            MODEL_DELTA if delta is None else delta,
            confidence=0.95 if confidence is None else confidence,
            fitted_epsilon=1000 * epsilon if remove_noise else 2 * epsilon if halve_noise else epsilon,
            canaries=canaries,
            runs=runs,
            as_json=as_json,
            plot=plot,
        )
    )


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


def main_model(
    name: str | None,
    epsilon: float = 1.0,
    delta: float = MODEL_DELTA,
    *,
    confidence: float = 0.95,
    fitted_epsilon: float | None = None,
    canaries: int | None = None,
    runs: int = 1,
    as_json: bool = False,
    plot: Path | None = None,
) -> int:
    """Audit a model by name on generated rows and print the result: 0 if its claim survives, 1 if it is broken.

    With another `fitted_epsilon` the model is fitted for that ε and claims `epsilon`, to show the audit firing.
    """
    from discreet.audit.generated import audit_named, model_names

    if plot is not None:
        check_picture(plot, "discreet audit --plot")
    if name is None:
        raise InvalidArgument(
            f"Name a model after the word model: one of {', '.join(model_names())}.", code="audit-no-model"
        )
    console = Console()
    with console.status("fitting", spinner="dots") if console.is_terminal and not as_json else nullcontext() as status:
        result = audit_named(
            name,
            epsilon=epsilon,
            delta=delta,
            fitted_epsilon=fitted_epsilon,
            canaries=canaries,
            runs=runs,
            confidence=confidence,
            progress=None if status is None else status.update,
        )
    if plot is not None:
        result.plot(plot)
    if as_json:
        print(result.to_json())
    else:
        console.print(_model_table(name, result, fitted_epsilon or epsilon, epsilon))
    return 0 if result.passed else 1


def _model_table(name: str, result: ModelAudit, fitted: float, epsilon: float) -> Table:
    run, at = result.run, f" at δ = {result.delta:.4g}" if result.delta else ""
    rows = {
        "model": name + ("" if fitted == epsilon else f" (fitted with ε = {fitted:.6g}, on purpose)"),
        "claim": f"ε = {epsilon:.6g}{at}",
        "lower bound": f"ε ≥ {result.epsilon_lower:.4g}{at}, whatever the noise",
        "if it is Gaussian": f"ε ≥ {result.gaussian_lower:.4g}{at}",
        "guesses": f"{run.correct} of {run.guesses} right, {run.canaries} canaries in generated rows; {result.score}",
        "p-value": f"{result.p_value:.3g} under the curve of the claim",
        "confidence": f"{result.confidence:.10g}",
        "power": f"all guesses right would have shown ε ≥ {result.ceiling:.4g}",
        "verdict": result.verdict,
    }
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for label, words in rows.items():
        table.add_row(label, words)
    table.rows[-1].style = "green" if result.passed else "bold red"
    return table
