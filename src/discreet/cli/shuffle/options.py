"""What the commands of a poll share: the task file and the files next to it, and the options of a service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from discreet.cli.terminal import completion
from discreet.errors import InvalidArgument

ASKED, PROMISED, SERVED = "What is asked", "What is promised", "Where the services are"

TaskFile = Annotated[
    Path,
    typer.Argument(
        help="The task file (*.toml). Keys and databases are next to it.", autocompletion=completion.policies
    ),
]
Host = Annotated[
    str,
    typer.Option(
        help="The address to listen on. Other addresses than this machine's own need TLS.", rich_help_panel=SERVED
    ),
]
Certificate = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="The certificate for TLS, a PEM file.", show_default=False, rich_help_panel=SERVED
    ),
]
CertificateKey = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The private key of the certificate, a PEM file.",
        show_default=False,
        rich_help_panel=SERVED,
    ),
]
BehindProxy = Annotated[
    bool,
    typer.Option(
        "--behind-proxy",
        help="A reverse proxy in front of it has TLS: listen on any address without.",
        rich_help_panel=SERVED,
    ),
]
KeyFile = Annotated[Path | None, typer.Option("--key", help="The service's key file.", show_default=False)]
StoreAt = Annotated[
    str | None, typer.Option(help="The database: a path, or postgresql://host/database#schema.", show_default=False)
]


class Files(NamedTuple):
    """The files next to a task file."""

    shuffler_key: Path
    analyzer_key: Path
    shuffler_store: Path
    analyzer_store: Path
    ledger: Path
    issuer_key: Path
    issuer_store: Path


def files_of(task: Path) -> Files:
    """poll.toml has poll.shuffler.key, poll.shuffler.db, the same of the analyzer and the issuer, and poll.ledger."""
    if not task.name:
        raise InvalidArgument(
            f"{task} is a folder. Name a file for the task, such as poll.toml.", code="file-not-writable"
        )
    ends = ("shuffler.key", "analyzer.key", "shuffler.db", "analyzer.db", "ledger", "issuer.key", "issuer.db")
    return Files(*(task.with_name(f"{task.stem}.{end}") for end in ends))
