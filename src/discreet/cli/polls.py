"""`discreet shuffle`: a poll that trusts nobody with raw answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli import completion
from discreet.cli.manual import manual

COUNTRIES = "BR,DE,FR,IL,IN,JP,KE,MX,US,other"
ASKED, PROMISED, SERVED = "What is asked", "What is promised", "Where the services are"

TaskFile = Annotated[
    Path,
    typer.Argument(
        help="The task file (*.toml); keys and databases lie beside it.", autocompletion=completion.policies
    ),
]
Host = Annotated[str, typer.Option(help="The address to listen on.", rich_help_panel=SERVED)]
KeyFile = Annotated[Path | None, typer.Option("--key", help="The service's key file.", show_default=False)]
StoreAt = Annotated[
    str | None, typer.Option(help="The database: a path, or postgresql://host/database#schema.", show_default=False)
]


def shuffle() -> None:
    """A poll that trusts nobody with raw answers: two services and clients.

    Every client randomizes and seals its answer. The shuffler sees who answers but not what, and hands on one batch in
    a random order; the analyzer opens it and publishes noisy counts. Neither alone learns who said what.

    Examples:
      $ discreet shuffle init poll.toml --choices tea,coffee --clients 100
      $ discreet shuffle analyzer poll.toml &
      $ discreet shuffle shuffler poll.toml &
      $ discreet shuffle tokens poll.toml 100 > tokens.txt
      $ discreet shuffle report poll.toml tea --token "$(head -1 tokens.txt)"
      $ discreet shuffle close poll.toml

    How answers travel: docs/channel.md. How wrong counts are: docs/shuffle.md
    """


app = typer.Typer(no_args_is_help=True, help=manual(shuffle))


def init(
    task: TaskFile,
    choices: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME",
            help=f"What can be answered; by default {COUNTRIES}.",
            rich_help_panel=ASKED,
        ),
    ] = None,
    bit: Annotated[
        bool,
        typer.Option("--bit", help="Ask for yes or no instead, and publish how many say yes.", rich_help_panel=ASKED),
    ] = False,
    clients: Annotated[int, typer.Option(help="How many are expected to report.", min=1, rich_help_panel=ASKED)] = 1000,
    epsilon: Annotated[
        float, typer.Option(help="What the result may tell about one client.", rich_help_panel=PROMISED)
    ] = 1.0,
    delta: Annotated[float, typer.Option(help="The δ of that promise.", rich_help_panel=PROMISED)] = 1e-6,
    honest: Annotated[
        float,
        typer.Option(help="The share of clients that add noise as they should.", rich_help_panel=PROMISED),
    ] = 0.8,
    minimum: Annotated[
        int | None,
        typer.Option(
            help="With fewer reports nothing is released; by default --clients.",
            show_default=False,
            rich_help_panel=PROMISED,
        ),
    ] = None,
    shuffler: Annotated[
        str, typer.Option(help="Where clients will find the shuffler.", rich_help_panel=SERVED)
    ] = "http://127.0.0.1:7002",
    analyzer: Annotated[
        str, typer.Option(help="Where the analyzer will be.", rich_help_panel=SERVED)
    ] = "http://127.0.0.1:7001",
) -> None:
    """Write a task file for everybody, and a key file for each of the two services.

    Give the task file to every client, and each key file to its service alone.

    Examples:
      $ discreet shuffle init poll.toml
      $ discreet shuffle init lunch.toml --choices tea,coffee --clients 200
      $ discreet shuffle init vote.toml --bit --epsilon 0.5 --minimum 500
    """
    from discreet.cli import shuffle_command

    terms: dict[str, Any] = {"clients": clients, "epsilon": epsilon, "delta": delta, "honest": honest}
    named = COUNTRIES if choices is None and not bit else choices
    shuffle_command.init(task, choices=named, bit=bit, shuffler=shuffler, analyzer=analyzer, minimum=minimum, **terms)


def tokens(task: TaskFile, count: Annotated[int, typer.Argument(help="How many.", min=1, max=10_000_000)]) -> None:
    """Print tokens, one for each client that may report; needs the shuffler's key file.

    Each token is good for one report, so nobody is counted twice.

    Examples:
      $ discreet shuffle tokens poll.toml 1000 > tokens.txt
    """
    from discreet.cli import shuffle_command

    shuffle_command.tokens(task, count)


def analyzer(
    task: TaskFile,
    port: Annotated[
        int,
        typer.Option(help="The port to listen on; 0 finds a free one.", min=0, max=65535, rich_help_panel=SERVED),
    ] = 7001,
    host: Host = "127.0.0.1",
    store: StoreAt = None,
    key: KeyFile = None,
    ledger: Annotated[
        str | None,
        typer.Option(help="The ledger to charge; by default one for this task alone.", show_default=False),
    ] = None,
) -> None:
    """Serve the analyzer: it charges its ledger, opens shuffled messages, and publishes noisy counts.

    It runs until it is stopped, and goes on where it was when it is started again.

    Examples:
      $ discreet shuffle analyzer poll.toml --port 7001
      $ discreet shuffle analyzer poll.toml --ledger clinic.ledger
    """
    from discreet.cli import shuffle_command

    shuffle_command.analyzer(task, host=host, port=port, store=store, key=key, ledger=ledger)


def shuffler(
    task: TaskFile,
    port: Annotated[
        int,
        typer.Option(help="The port to listen on; 0 finds a free one.", min=0, max=65535, rich_help_panel=SERVED),
    ] = 7002,
    host: Host = "127.0.0.1",
    store: StoreAt = None,
    key: KeyFile = None,
    analyzer: Annotated[
        str | None,
        typer.Option(
            help="Where the analyzer is; by default as the task says.", show_default=False, rich_help_panel=SERVED
        ),
    ] = None,
) -> None:
    """Serve the shuffler: it takes one report a client, and hands on one batch in a random order.

    It runs until it is stopped, and goes on where it was when it is started again.

    Examples:
      $ discreet shuffle shuffler poll.toml --port 7002
    """
    from discreet.cli import shuffle_command

    shuffle_command.shuffler(task, host=host, port=port, store=store, key=key, analyzer=analyzer)


def report(
    task: TaskFile,
    answer: Annotated[
        str,
        typer.Argument(help="Your answer; randomized and sealed before it leaves.", autocompletion=completion.answers),
    ],
    token: Annotated[
        str | None, typer.Option(help="The token you were issued; or DISCREET_TOKEN.", show_default=False)
    ] = None,
) -> None:
    """Answer, as one client.

    The task is checked first: one whose noise does not keep its promise is refused, and nothing is sent.

    Examples:
      $ discreet shuffle report poll.toml IL --token 5f0c…
      $ DISCREET_TOKEN=5f0c… discreet shuffle report poll.toml IL
    """
    from discreet.cli import shuffle_command

    shuffle_command.report(task, answer, token=token)


def close(
    task: TaskFile,
    discard: Annotated[bool, typer.Option("--discard", help="Delete all reports; nothing is released.")] = False,
    wait: Annotated[float, typer.Option(help="Seconds to wait for the result.", min=0)] = 600.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for another program.")] = False,
) -> None:
    """End the collection, and print the counts with their error bars; too few reports are not released.

    Needs one of the two key files. With too few reports the collection goes on, and the exit code is 3.

    Examples:
      $ discreet shuffle close poll.toml
      $ discreet shuffle close poll.toml --json > counts.json
    """
    from discreet.cli import shuffle_command

    raise typer.Exit(shuffle_command.close(task, discard=discard, wait=wait, as_json=as_json))


def simulate(
    clients: Annotated[int, typer.Option(help="How many made-up clients are asked.", min=10)] = 10_000,
    epsilon: Annotated[float, typer.Option(help="What the answer may tell about one client.")] = 1.0,
    delta: Annotated[float, typer.Option(help="The δ of that promise.")] = 1e-6,
    choices: Annotated[int, typer.Option(help="2 for a bit; up to 64 choices.", min=2, max=64)] = 2,
    runs: Annotated[int, typer.Option(help="How often each model is asked.", min=2)] = 100,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the errors too.", show_default=False)
    ] = None,
) -> None:
    """Show how wrong the same question is in each model: local, shuffled as taught, shuffled here, and central.

    Clients are made up, and no service is needed.

    Examples:
      $ discreet shuffle simulate
      $ discreet shuffle simulate --clients 100000 --choices 8 --chart errors.png
    """
    from discreet.cli.pictures import check_picture
    from discreet.shuffle.simulation import simulate

    if chart is not None:
        check_picture(chart, "discreet shuffle simulate --chart")
    done = simulate(clients=clients, epsilon=epsilon, delta=delta, choices=choices, runs=runs)
    typer.echo(str(done))
    if chart is not None:
        done.plot(str(chart))
        typer.echo(f"\ndrawn to {chart}")


for command in (init, tokens, analyzer, shuffler, report, close, simulate):
    app.command(help=manual(command))(command)
