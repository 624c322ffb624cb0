"""`discreet shuffle vouchers`: print one voucher for each person that may report."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.shuffle.options import TaskFile
from discreet.errors import InvalidArgument


def vouchers(task: TaskFile, count: Annotated[int, typer.Argument(help="How many.", min=1, max=10_000_000)]) -> None:
    """Print vouchers, one for each person that may report. Keep the list for the issuer.

    Give each person one line. You may write their name after it, and the issuer ignores that.

    Examples:
      $ discreet shuffle vouchers poll.toml 1000 > people.txt
    """
    from discreet.shuffle.channel import admission
    from discreet.shuffle.channel.task import Task

    if not Task.load(task).issuer_key:
        raise InvalidArgument(
            "This task has no issuer, so it takes no vouchers. Make it with: discreet shuffle init --admission",
            code="shuffle-no-issuer",
        )
    for _ in range(count):
        print(admission.new_voucher())
