"""The command line: a switchboard that opens the front door of each command when it is asked for.

Exit codes: 0 answered · 1 the machine failed, or the ledger did · 2 does not parse as a query, unknown table or column,
bad argument · 3 parses and resolves but is not allowed · 4 budget exhausted.
"""

from __future__ import annotations

import inspect
import io
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet._version import __version__
from discreet.engines.engine import EngineFailed
from discreet.errors import (
    BudgetExhausted,
    DiscreetError,
    EntropyUnavailable,
    InvalidArgument,
    LedgerDamaged,
    LedgerUnavailable,
    NotAllowed,
    QueryError,
    ServiceUnavailable,
)

app = typer.Typer(
    name="discreet",
    help="Answers questions about people without exposing any one of them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a traceback with local variables could show private values
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit; an error of ours is one line on stderr, never a traceback.

    What is wrong with a question keeps the lines that underline it.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # ε on a terminal that knows ASCII only is no reason to stop
            stream.reconfigure(errors="backslashreplace")
    try:
        app(args=None if arguments is None else list(arguments), prog_name="discreet")
    except DiscreetError as error:
        lines = isinstance(error, QueryError | NotAllowed)
        print(f"discreet: {error if lines else ' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(exit_code(error))


def exit_code(error: DiscreetError) -> int:
    """The status a script can act on.

    >>> exit_code(BudgetExhausted("nothing is left")), exit_code(NotAllowed("SELECT * shows rows of single people"))
    (4, 3)
    """
    match error:
        case BudgetExhausted():
            return 4
        case NotAllowed():
            return 3
        case EntropyUnavailable() | LedgerDamaged() | LedgerUnavailable() | ServiceUnavailable() | EngineFailed():
            return 1
        case _:
            return 2


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"discreet {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Answers questions about people without exposing any one of them."""


@app.command()
def demo() -> None:
    """Make data, ask questions, and show the answers, their error bars and the ledger."""
    from discreet.demo import run

    run.main()


Policy = Annotated[str, typer.Argument(help="The policy of the data (*.toml).")]
Question = Annotated[str, typer.Argument(help="The question, in SQL.")]
Epsilon = Annotated[float | None, typer.Option(help="What the whole answer may cost.", show_default=False)]
Delta = Annotated[
    float | None, typer.Option(help="The δ it may use; by default what the policy says.", show_default=False)
]
Within = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=ERROR",
        help="Instead of --epsilon: how wrong a column may be. The smallest ε that promises it is spent.",
        show_default=False,
    ),
]
Weight = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=WEIGHT", help="A larger share of ε for a column.", show_default=False),
]
Confidence = Annotated[float, typer.Option(help="How sure --within and the errors shown are.")]
Analyst = Annotated[str | None, typer.Option(help="Who asks: charged to their own account, too.", show_default=False)]


def _asked(
    policy: Policy,
    question: Question,
    epsilon: Epsilon = None,
    delta: Delta = None,
    within: Within = None,
    confidence: Confidence = 0.95,
    weight: Weight = None,
    analyst: Analyst = None,
) -> dict[str, Any]:
    """What every command about a question takes."""
    told = {"policy": policy, "question": question, "confidence": confidence, "analyst": analyst}
    return told | _cost(epsilon, delta, within, weight)


def _about_a_question(command: Callable[..., None]) -> Callable[..., None]:
    """The command with those options before its own; it gets them as `asked`."""
    shared, own = (inspect.signature(function, eval_str=True).parameters for function in (_asked, command))
    options = [*shared.values(), *(option for name, option in own.items() if name != "asked")]

    @wraps(command)
    def run(**given: Any) -> None:
        command(_asked(**{name: given.pop(name) for name in shared}), **given)

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


class Format(StrEnum):
    """How an answer is printed."""

    table = "table"
    json = "json"
    csv = "csv"


@app.command()
@_about_a_question
def query(
    asked: dict[str, Any],
    form: Annotated[Format, typer.Option("--format", help="How the answer is printed.")] = Format.table,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the answer, too: a .png, .svg or .pdf.", show_default=False)
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="The id of this request: a retry with it gets the same answer, for free.", show_default=False
        ),
    ] = None,
) -> None:
    """Answer a question in SQL, each number with its error beside it."""
    from discreet.cli import query_command

    query_command.query(**asked, form=form, plot=plot, key=key)


class Explanation(StrEnum):
    """How a plan is printed."""

    text = "text"
    json = "json"


@app.command()
@_about_a_question
def explain(
    asked: dict[str, Any],
    form: Annotated[Explanation, typer.Option("--format", help="How the plan is printed.")] = Explanation.text,
) -> None:
    """Say how a question would be answered, what it would cost and how wrong it may be; spends nothing."""
    from discreet.cli import query_command

    query_command.explain(**asked, form=form)


def _cost(epsilon: Any, delta: Any, within: Sequence[str] | None, weight: Sequence[str] | None) -> dict[str, Any]:
    goals, weights = _amounts(within, "--within"), _amounts(weight, "--weight")
    if (epsilon is None) == (goals is None):
        raise InvalidArgument("Say what it may cost, --epsilon 0.5, or how wrong it may be, --within visits=50.")
    return {"epsilon": epsilon, "delta": delta, "within": goals, "weights": weights}


def _amounts(given: Sequence[str] | None, option: str) -> dict[str, float] | None:
    """Numbers for columns, each written as column=number; None when there are none."""
    found: dict[str, float] = {}
    for text in given or ():
        name, _, number = text.rpartition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            name = ""
        if not name.strip():
            raise InvalidArgument(f"{option} takes a column and a number. Write {option} visits=50.")
    return found or None


@app.command()
def init(
    data: Annotated[list[Path], typer.Argument(help="Files (Parquet, CSV, JSON) or folders of them: one table each.")],
    out: Annotated[Path, typer.Option(help="Where the policy is written.", dir_okay=False)] = Path("policy.toml"),
) -> None:
    """Write a first policy for review, from the names and types of columns only; every guess is marked."""
    from discreet.cli import init_command

    init_command.main(data, out)


@app.command()
def sanitize(
    policy: Policy,
    table: Annotated[str, typer.Argument(help="The table to copy, as the policy names it.")],
    epsilon: Annotated[float, typer.Option(help="What the whole copy may cost, shared equally by its columns.")],
    out: Annotated[Path, typer.Option(help="Where the copy is written: a .parquet or .csv.", dir_okay=False)],
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME", help="The columns to copy; by default all that are declared.", show_default=False
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help="The id of this request: a retry with it gets the same copy, for free.", show_default=False),
    ] = None,
    analyst: Analyst = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a copy of a table in which every record is randomized, its error beside the least possible one."""
    from discreet.cli import sanitize_command

    asked: dict[str, Any] = {"columns": columns, "key": key, "analyst": analyst, "force": force}
    sanitize_command.main(policy, table, epsilon=epsilon, out=out, **asked)


@app.command()
def audit(
    mechanism: Annotated[str, typer.Argument(help="The mechanism to test, such as laplace.")],
    epsilon: Annotated[float, typer.Option(help="The ε it claims.")] = 1.0,
    delta: Annotated[float, typer.Option(help="The δ it claims.")] = 0.0,
    samples: Annotated[
        int | None,
        typer.Option(
            help="Draws on each of two neighboring inputs; as many as are quick, by default.", show_default=False
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="How sure the lower bound is.")] = 0.99999,
    halve_noise: Annotated[bool, typer.Option(help="Break the mechanism, to see the audit fire.")] = False,
) -> None:
    """Attack a mechanism: a lower bound on ε from its answers alone must stay below the claim."""
    from discreet.audit import command

    raise typer.Exit(command.main(mechanism, epsilon, delta, samples, confidence, broken=halve_noise))


@app.command()
def reproduce(
    out: Annotated[Path, typer.Argument(help="Folder for the tables (CSV) and figures (PNG).", file_okay=False)],
    people: Annotated[int, typer.Option(help="How many people to generate.", min=1)] = 1000,
) -> None:
    """Remake the founding documents' tables and figures, taught and tight side by side."""
    from discreet.reproduce import run

    run.main(out, people=people)


class Export(StrEnum):
    """What a record can be exported as."""

    json = "json"
    csv = "csv"


@app.command()
def ledger(
    target: Annotated[
        str, typer.Argument(help="A ledger's path or postgresql:// URL, or a policy (*.toml) that names one.")
    ],
    verify: Annotated[bool, typer.Option("--verify", help="Check the whole record instead of showing it.")] = False,
    export: Annotated[
        Export | None, typer.Option(help="Print the whole record for another program.", show_default=False)
    ] = None,
    adopt: Annotated[
        str | None,
        typer.Option(
            metavar="WHY",
            help="For a ledger that was moved or restored without its checkpoint: record why it is to be trusted.",
            show_default=False,
        ),
    ] = None,
    last: Annotated[int, typer.Option(help="How many of the last entries to show.", min=0)] = 20,
    checkpoint: Annotated[
        str | None, typer.Option(help="The ledger's checkpoint, where it is not beside it.", show_default=False)
    ] = None,
) -> None:
    """Show what remains of a ledger and its last entries; or check its record, or export it."""
    from discreet.cli import ledger_command

    raise typer.Exit(
        ledger_command.main(target, verify=verify, export=export, adopt=adopt, last=last, checkpoint=checkpoint)
    )


studies = typer.Typer(no_args_is_help=True, help="Plan a study: many questions of one sample, asked one after another.")
app.add_typer(studies, name="study")
PLAN = "\n\n".join(
    (
        "Say how far answers may be from the population, for every method; no data is needed, and nothing is spent.",
        "Questions chosen after a look at earlier answers overfit a sample. A width is how far all answers may be from "
        "what holds on the population, together. A study answers every question; a holdout checks what a training set "
        "as large says, and corrects it a few times. Private methods add noise; the others publish functions of the "
        "sample, and are for rows that belong to nobody. Published widths stand beside them, and that of questions "
        "fixed in advance.",
        "Example: discreet study plan --rows 100000 --questions 1000,10000 --accuracy 0.05 --chart widths.png",
        "It takes some seconds for each pair of numbers.",
    )
)


@studies.command("plan", help=PLAN)
def study_plan(
    rows: Annotated[list[str], typer.Option(metavar="N,N", help="How many rows the sample has; several are compared.")],
    questions: Annotated[
        list[str], typer.Option(metavar="K,K", help="How many questions are asked; several are compared.")
    ],
    confidence: Annotated[float, typer.Option(help="How sure all answers together are.")] = 0.95,
    overfits: Annotated[int, typer.Option(help="How many guesses a holdout may correct.", min=1)] = 10,
    accuracy: Annotated[
        list[str] | None,
        typer.Option(metavar="WIDTH,WIDTH", help="Say how many rows such a width takes, too.", show_default=False),
    ] = None,
    chart: Annotated[
        Path | None, typer.Option(help="Draw the widths, too: a .png, .svg or .pdf.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the widths for another program.")] = False,
) -> None:
    """Say how far answers may be from the population, for every method; no data is needed, and nothing is spent."""
    from discreet.cli import study_command

    given: dict[str, Any] = {"accuracy": accuracy or (), "chart": chart, "as_json": as_json}
    study_command.main(rows, questions, confidence=confidence, overfits=overfits, **given)


shuffles = typer.Typer(
    no_args_is_help=True, help="A poll that trusts nobody with raw answers: two services and clients."
)
app.add_typer(shuffles, name="shuffle")
COUNTRIES = "BR,DE,FR,IL,IN,JP,KE,MX,US,other"
TaskFile = Annotated[Path, typer.Argument(help="The task file (*.toml); keys and databases lie beside it.")]
Host = Annotated[str, typer.Option(help="The address to listen on.")]
KeyFile = Annotated[Path | None, typer.Option("--key", help="The service's key file.", show_default=False)]
StoreAt = Annotated[
    str | None, typer.Option(help="The database: a path, or postgresql://host/database#schema.", show_default=False)
]


@shuffles.command("init")
def shuffle_init(
    task: TaskFile,
    choices: Annotated[
        str | None, typer.Option(metavar="NAME,NAME", help=f"What can be answered; by default {COUNTRIES}.")
    ] = None,
    bit: Annotated[
        bool, typer.Option("--bit", help="Ask for yes or no instead, and publish how many say yes.")
    ] = False,
    clients: Annotated[int, typer.Option(help="How many are expected to report.", min=1)] = 1000,
    epsilon: Annotated[float, typer.Option(help="What the result may tell about one client.")] = 1.0,
    delta: Annotated[float, typer.Option(help="The δ of that promise.")] = 1e-6,
    honest: Annotated[float, typer.Option(help="The share of clients that add noise as they should.")] = 0.8,
    minimum: Annotated[
        int | None,
        typer.Option(help="With fewer reports nothing is released; by default --clients.", show_default=False),
    ] = None,
    shuffler: Annotated[str, typer.Option(help="Where clients will find the shuffler.")] = "http://127.0.0.1:7002",
    analyzer: Annotated[str, typer.Option(help="Where the analyzer will be.")] = "http://127.0.0.1:7001",
) -> None:
    """Write a task file for everybody, and a key file for each of the two services."""
    from discreet.cli import shuffle_command

    terms: dict[str, Any] = {"clients": clients, "epsilon": epsilon, "delta": delta, "honest": honest}
    named = COUNTRIES if choices is None and not bit else choices
    shuffle_command.init(task, choices=named, bit=bit, shuffler=shuffler, analyzer=analyzer, minimum=minimum, **terms)


@shuffles.command("tokens")
def shuffle_tokens(
    task: TaskFile, count: Annotated[int, typer.Argument(help="How many.", min=1, max=10_000_000)]
) -> None:
    """Print tokens, one for each client that may report; needs the shuffler's key file."""
    from discreet.cli import shuffle_command

    shuffle_command.tokens(task, count)


@shuffles.command("analyzer")
def shuffle_analyzer(
    task: TaskFile,
    port: Annotated[int, typer.Option(help="The port to listen on; 0 finds a free one.", min=0, max=65535)] = 7001,
    host: Host = "127.0.0.1",
    store: StoreAt = None,
    key: KeyFile = None,
    ledger: Annotated[
        str | None,
        typer.Option(help="The ledger to charge; by default one for this task alone.", show_default=False),
    ] = None,
) -> None:
    """Serve the analyzer: it charges its ledger, opens shuffled messages, and publishes noisy counts."""
    from discreet.cli import shuffle_command

    shuffle_command.analyzer(task, host=host, port=port, store=store, key=key, ledger=ledger)


@shuffles.command("shuffler")
def shuffle_shuffler(
    task: TaskFile,
    port: Annotated[int, typer.Option(help="The port to listen on; 0 finds a free one.", min=0, max=65535)] = 7002,
    host: Host = "127.0.0.1",
    store: StoreAt = None,
    key: KeyFile = None,
    analyzer: Annotated[
        str | None, typer.Option(help="Where the analyzer is; by default as the task says.", show_default=False)
    ] = None,
) -> None:
    """Serve the shuffler: it takes one report a client, and hands on one batch in a random order."""
    from discreet.cli import shuffle_command

    shuffle_command.shuffler(task, host=host, port=port, store=store, key=key, analyzer=analyzer)


@shuffles.command("report")
def shuffle_report(
    task: TaskFile,
    answer: Annotated[str, typer.Argument(help="Your answer; randomized and sealed before it leaves.")],
    token: Annotated[
        str | None, typer.Option(help="The token you were issued; or DISCREET_TOKEN.", show_default=False)
    ] = None,
) -> None:
    """Answer, as one client."""
    from discreet.cli import shuffle_command

    shuffle_command.report(task, answer, token=token)


@shuffles.command("close")
def shuffle_close(
    task: TaskFile,
    discard: Annotated[bool, typer.Option("--discard", help="Delete all reports; nothing is released.")] = False,
    wait: Annotated[float, typer.Option(help="Seconds to wait for the result.", min=0)] = 600.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for another program.")] = False,
) -> None:
    """End the collection, and print the counts with their error bars; too few reports are not released."""
    from discreet.cli import shuffle_command

    raise typer.Exit(shuffle_command.close(task, discard=discard, wait=wait, as_json=as_json))


@shuffles.command("simulate")
def shuffle_simulate(
    clients: Annotated[int, typer.Option(help="How many made-up clients are asked.", min=10)] = 10_000,
    epsilon: Annotated[float, typer.Option(help="What the answer may tell about one client.")] = 1.0,
    delta: Annotated[float, typer.Option(help="The δ of that promise.")] = 1e-6,
    choices: Annotated[int, typer.Option(help="2 for a bit; up to 64 choices.", min=2, max=64)] = 2,
    runs: Annotated[int, typer.Option(help="How often each model is asked.", min=2)] = 100,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the errors too.", show_default=False)
    ] = None,
) -> None:
    """Show how wrong the same question is in each model: local, shuffled as taught, shuffled here, and central."""
    from discreet.shuffle.simulation import simulate

    done = simulate(clients=clients, epsilon=epsilon, delta=delta, choices=choices, runs=runs)
    typer.echo(str(done))
    if chart is not None:
        done.plot(str(chart))
        typer.echo(f"\ndrawn to {chart}")
