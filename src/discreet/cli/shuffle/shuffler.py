"""`discreet shuffle shuffler`: serve the shuffler."""

from __future__ import annotations

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
    anybody: Annotated[
        bool,
        typer.Option("--open", help="Issue a token to anybody who asks. Nothing limits fake reports then."),
    ] = False,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    behind_proxy: BehindProxy = False,
) -> None:
    """Serve the shuffler: it accepts one report per client, and passes on one batch in a random order.

    It runs until it is stopped, and continues where it was when it is started again. Its address is printed once it
    answers. Browsers of every origin can report to it.

    Who may report is decided by who gets a token (discreet shuffle tokens). With --open everybody gets one who asks, as
    often as they ask: one person can report many times, and fewer people than the task assumes may be honest.

    Examples:
      $ discreet shuffle shuffler poll.toml --port 7002
      $ discreet shuffle shuffler poll.toml --open
      $ discreet shuffle shuffler poll.toml --host 0.0.0.0 \\
                         --certificate tls.pem --certificate-key tls.key
      $ discreet shuffle shuffler poll.toml --host 10.0.0.5 --behind-proxy
    """
    from discreet.shuffle.channel import keys
    from discreet.shuffle.channel.opening import Openers
    from discreet.shuffle.channel.services import service
    from discreet.shuffle.channel.services import shuffler as shuffler_service
    from discreet.shuffle.channel.shuffler import Shuffler
    from discreet.shuffle.channel.store import ShufflerStore
    from discreet.shuffle.channel.task import Task

    at = service.Listening(
        host=host, port=port, certificate=certificate, certificate_key=certificate_key, behind_proxy=behind_proxy
    )
    known, files = Task.load(task), files_of(task)
    key_file = key or files.shuffler_key
    secrets = keys.ShufflerKeys.load(key_file)
    kept = ShufflerStore(store or str(files.shuffler_store), known.hash)
    one = Shuffler(known, secrets, kept, openers=Openers(), key_file=key_file)
    app = shuffler_service.application(one, secrets.operator, (analyzer or known.analyzer).rstrip("/"), anybody=anybody)
    service.serve(app, at, "shuffler")
