"""`discreet shuffle init`: a task for everybody, and keys for the two services."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.shuffle.check import expected_error
from discreet.cli.shuffle.options import ASKED, PROMISED, SERVED, TaskFile, files_of
from discreet.errors import InvalidArgument

COUNTRIES = "BR,DE,FR,IL,IN,JP,KE,MX,US,other"


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
    admission: Annotated[
        bool,
        typer.Option(
            "--admission",
            help="One report per person: an issuer signs a ticket for each voucher.",
            rich_help_panel=PROMISED,
        ),
    ] = False,
    issuer: Annotated[
        str, typer.Option(help="Where the issuer will be, with --admission.", rich_help_panel=SERVED)
    ] = "http://127.0.0.1:7003",
) -> None:
    """Write a task file for everybody, and a key file for each of the services.

    Give the task file to every client, and each key file only to its service.

    Examples:
      $ discreet shuffle init poll.toml
      $ discreet shuffle init lunch.toml --choices tea,coffee --clients 200
      $ discreet shuffle init vote.toml --bit --epsilon 0.5 --minimum 500
      $ discreet shuffle init vote.toml --bit --admission
    """
    terms: dict[str, Any] = {"clients": clients, "epsilon": epsilon, "delta": delta, "honest": honest}
    named = COUNTRIES if choices is None and not bit else choices
    admitted = issuer.rstrip("/") if admission else None
    write_task(
        task, choices=named, bit=bit, shuffler=shuffler, analyzer=analyzer, issuer=admitted, minimum=minimum, **terms
    )


def write_task(
    path: Path,
    *,
    choices: str | None = None,
    bit: bool = False,
    shuffler: str,
    analyzer: str,
    issuer: str | None = None,
    **terms: Any,
) -> None:
    """Write a task and the keys of its services. With the address of an issuer, it admits people by tickets."""
    from discreet import shuffle
    from discreet.shuffle.channel import admission, blind_rsa, keys
    from discreet.shuffle.channel.task import Task

    if bit and choices is not None:
        raise InvalidArgument(
            "A poll asks for one of --choices, or with --bit for yes or no. Remove one of them.", code="command-poll"
        )
    if not terms["epsilon"] > 0:
        raise InvalidArgument("epsilon must be above 0.", code="out-of-range")
    if terms["minimum"] is None:
        del terms["minimum"]
    if bit:
        protocol: Any = shuffle.bit_sum(**terms)
    else:
        named = [one.strip() for one in (choices or "").split(",")]
        if len(named) < 2 or not all(named):
            raise InvalidArgument(
                "Name at least two choices: --choices red,green,blue, or use --bit.", code="too-few-choices"
            )
        protocol = shuffle.histogram(choices=named, **terms)
    files = files_of(path)
    for present in (path, files.shuffler_key, files.analyzer_key, *((files.issuer_key,) if issuer else ())):
        if os.path.exists(present):  # also where such a name cannot be
            raise InvalidArgument(
                f"{present} exists. A new task needs new keys: choose another name.", code="file-exists"
            )
    own, other = keys.ShufflerKeys.made(), keys.AnalyzerKeys.made()
    other = keys.AnalyzerKeys(operator=own.operator, inner=other.inner)
    signer = blind_rsa.generate() if issuer else None
    task = Task(
        description=protocol.described(),
        epsilon=terms["epsilon"],
        delta=terms["delta"],
        shuffler_key=keys.public_of(own.outer),
        analyzer_key=keys.public_of(other.inner),
        shuffler=shuffler.rstrip("/"),
        analyzer=analyzer.rstrip("/"),
        issuer_key=signer.modulus if signer else b"",
        issuer=issuer or "",
    )
    own.save(files.shuffler_key)
    other.save(files.analyzer_key)
    if signer:
        admission.save_key(signer, files.issuer_key)
    task.save(path)
    print(f"{path}: the task, for everybody. {protocol.minimum} reports or more are released, no fewer.")
    print(expected_error(protocol))
    if 4 * protocol.error(0.95).amount > protocol.minimum:
        print(f"That is too much for counts of {protocol.minimum:,} reports. Ask more people, or use a larger ε.")
    print(f"{files.shuffler_key}: for the shuffler only.\n{files.analyzer_key}: for the analyzer only.")
    if signer:
        print(f"{files.issuer_key}: for the issuer only.")
