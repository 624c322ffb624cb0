"""`discreet demo`: synthetic data, real questions, private answers."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class StoryName(StrEnum):
    """What a demo can be about."""

    sql = "sql"
    learning = "learning"
    density = "density"
    shuffle = "shuffle"
    adaptive = "adaptive"
    gateway = "gateway"


def demo(
    story: Annotated[
        StoryName | None, typer.Argument(help="The story to show: by default a clinic in SQL.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for the picture of a story.", file_okay=False)] = Path(
        "discreet-demo"
    ),
    once: Annotated[bool, typer.Option("--once", help="End the gateway after one answer.")] = False,
) -> None:
    """Generate data, ask questions, and show the answers, their error bars and the ledger.

    The people in a demo are synthetic, so the true value can be shown next to each private answer. Every story fits a
    screen and draws one picture: sql (visits by city), learning (a model by ε), density (of costs, with its band),
    shuffle (a poll in three models of trust), adaptive (a finding in pure noise). The story gateway starts a server on
    this machine instead, with an account to try it, and runs until Ctrl-C.

    Examples:
      $ discreet demo
      $ discreet demo sql
      $ discreet demo adaptive --out pictures
      $ discreet demo gateway
    """
    from discreet.demo import run

    if story is StoryName.gateway:
        from rich.console import Console

        from discreet.demo import gateway

        gateway.tell(Console(highlight=False), once=once or not (sys.stdin.isatty() and sys.stdout.isatty()))
        return
    if story is None:
        run.main()
    else:
        run.tell(story.value, out)
