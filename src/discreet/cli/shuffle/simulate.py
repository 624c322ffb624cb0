"""`discreet shuffle simulate`: the error of the same question in each model of trust."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def simulate(
    clients: Annotated[int, typer.Option(help="How many synthetic clients to ask.", min=10)] = 10_000,
    epsilon: Annotated[float, typer.Option(help="What the answer may tell about one client.")] = 1.0,
    delta: Annotated[float, typer.Option(help="The δ of that promise.")] = 1e-6,
    choices: Annotated[int, typer.Option(help="2 for a bit; up to 64 choices.", min=2, max=64)] = 2,
    runs: Annotated[int, typer.Option(help="How often each model is asked.", min=2)] = 100,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the errors too.", show_default=False)
    ] = None,
) -> None:
    """Show the error of the same question in each model: local, shuffled as taught, shuffled here, and central.

    The clients are synthetic, and no service is needed.

    Examples:
      $ discreet shuffle simulate
      $ discreet shuffle simulate --clients 100000 --choices 8 --chart errors.png
    """
    from discreet.cli.terminal.output import check_picture
    from discreet.shuffle.simulation import simulate

    if chart is not None:
        check_picture(chart, "discreet shuffle simulate --chart")
    done = simulate(clients=clients, epsilon=epsilon, delta=delta, choices=choices, runs=runs)
    typer.echo(str(done))
    if chart is not None:
        done.plot(str(chart))
        typer.echo(f"\ndrawn to {chart}")
