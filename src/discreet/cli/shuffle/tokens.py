"""`discreet shuffle tokens`: print one token for each client that may report."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.shuffle.options import TaskFile, files_of
from discreet.errors import InvalidArgument


def tokens(task: TaskFile, count: Annotated[int, typer.Argument(help="How many.", min=1, max=10_000_000)]) -> None:
    """Print tokens, one for each client that may report. Needs the shuffler's key file.

    Each token is valid for one report, so nobody is counted twice.

    Examples:
      $ discreet shuffle tokens poll.toml 1000 > tokens.txt
    """
    from discreet.shuffle.channel import keys
    from discreet.shuffle.channel.task import Task

    known, secrets = Task.load(task), keys.ShufflerKeys.load(files_of(task).shuffler_key)
    if known.issuer_key:
        raise InvalidArgument(
            "This task admits people by tickets of its issuer. Print vouchers instead: discreet shuffle vouchers "
            f"{task} {count}",
            code="shuffle-has-issuer",
        )
    for _ in range(count):
        print(keys.token_for(secrets.registration, known.hash).hex())
