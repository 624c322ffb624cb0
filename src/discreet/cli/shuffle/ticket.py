"""`discreet shuffle ticket`: get the ticket of a voucher now, to report with it later."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.shuffle.options import TaskFile
from discreet.cli.shuffle.report import admitted
from discreet.errors import InvalidArgument


def ticket(
    task: TaskFile,
    voucher: Annotated[str, typer.Option(help="The voucher you were given.")],
) -> None:
    """Print the ticket of a voucher, to report with it later: an issuer and a shuffler who compare times learn less.

    Keep it to yourself. Whoever has it can report in your place.

    Examples:
      $ discreet shuffle ticket poll.toml --voucher 91ab… > ticket.txt
      $ discreet shuffle report poll.toml IL --token "$(cat ticket.txt)"
    """
    from discreet.shuffle.channel.task import Task

    known = Task.load(task)
    if not known.issuer_key:
        raise InvalidArgument(
            "This task has no issuer, so it takes no vouchers. Give a token.", code="shuffle-no-issuer"
        )
    client, kept = admitted(task, known, voucher)
    print(client.token.hex(), flush=True)
    kept.unlink()
