"""`discreet shuffle issuer`: serve the issuer of tickets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.shuffle.options import (
    SERVED,
    BehindProxy,
    Certificate,
    CertificateKey,
    Host,
    KeyFile,
    StoreAt,
    TaskFile,
    files_of,
)
from discreet.errors import InvalidArgument


def issuer(
    task: TaskFile,
    people: Annotated[Path, typer.Option(help="The list of vouchers, one in each line.")],
    port: Annotated[
        int,
        typer.Option(help="The port to listen on; 0 finds a free one.", min=0, max=65535, rich_help_panel=SERVED),
    ] = 7003,
    host: Host = "127.0.0.1",
    store: StoreAt = None,
    key: KeyFile = None,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    behind_proxy: BehindProxy = False,
) -> None:
    """Serve the issuer: it signs one ticket for each voucher of the list, without seeing the ticket.

    It runs until it is stopped, and continues where it was when it is started again. It must not be the shuffler's
    operator who watches when people ask and when they report.

    Examples:
      $ discreet shuffle issuer poll.toml --people people.txt
    """
    from discreet.shuffle.channel import admission
    from discreet.shuffle.channel.issuer import Issuer, IssuerStore
    from discreet.shuffle.channel.services import issuer as issuer_service
    from discreet.shuffle.channel.services import service
    from discreet.shuffle.channel.task import Task

    at = service.Listening(
        host=host, port=port, certificate=certificate, certificate_key=certificate_key, behind_proxy=behind_proxy
    )
    known, files = Task.load(task), files_of(task)
    if not known.issuer_key:
        raise InvalidArgument(
            "This task has no issuer. Make it with: discreet shuffle init --admission", code="shuffle-no-issuer"
        )
    private = admission.load_key(key or files.issuer_key, known.issuer_key)
    vouchers = admission.read_vouchers(people)
    one = Issuer(known, private, IssuerStore(store or str(files.issuer_store), known.hash), vouchers)
    service.serve(issuer_service.application(one), at, "issuer")
