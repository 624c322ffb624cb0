"""`discreet shuffle influence`: what fake clients can do to a poll at most."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.shuffle.options import TaskFile


def influence(
    task: TaskFile,
    fakes: Annotated[int, typer.Option(help="How many clients send whatever they like.", min=0)],
    reports: Annotated[
        int | None, typer.Option(help="Of how many reports; by default the minimum.", min=1, show_default=False)
    ] = None,
) -> None:
    """Show how far fake clients can move what is published, and what is left of the promise for the others.

    Examples:
      $ discreet shuffle influence poll.toml --fakes 50
    """
    from discreet.shuffle.channel.task import Task

    known = Task.load(task)
    print(known.protocol.influence(fakes, reports=reports, delta=known.delta))
