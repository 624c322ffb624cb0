"""`discreet shuffle shuffler`: serve the shuffler."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.shuffle.options import SERVED, Host, KeyFile, StoreAt, TaskFile, files_of


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
    """Serve the shuffler: it accepts one report per client, and passes on one batch in a random order.

    It runs until it is stopped, and continues where it was when it is started again.

    Examples:
      $ discreet shuffle shuffler poll.toml --port 7002
    """
    from discreet.shuffle.channel import keys, service, shuffler_service
    from discreet.shuffle.channel.opening import Openers
    from discreet.shuffle.channel.shuffler import Shuffler
    from discreet.shuffle.channel.store import ShufflerStore
    from discreet.shuffle.channel.task import Task

    known, files = Task.load(task), files_of(task)
    key_file = key or files.shuffler_key
    secrets = keys.ShufflerKeys.load(key_file)
    kept = ShufflerStore(store or str(files.shuffler_store), known.hash)
    one = Shuffler(known, secrets, kept, openers=Openers(), key_file=key_file)
    app = shuffler_service.application(one, secrets.operator, (analyzer or known.analyzer).rstrip("/"))
    service.serve(app, host, port, "shuffler")
