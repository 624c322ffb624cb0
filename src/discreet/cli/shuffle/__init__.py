"""`discreet shuffle`: a poll that trusts nobody with raw answers."""

import typer

from discreet.cli.shuffle import (
    analyzer,
    check,
    close,
    form,
    influence,
    init,
    issuer,
    report,
    shuffler,
    simulate,
    ticket,
    tokens,
    vouchers,
)
from discreet.cli.terminal.manual import manual


def shuffle() -> None:
    """A poll that trusts nobody with raw answers: two services and clients.

    Every client randomizes and seals its answer. The shuffler sees who answers but not what, and passes on one batch in
    a random order. The analyzer opens it and publishes noisy counts. Neither alone learns who answered what.

    Examples:
      $ discreet shuffle init poll.toml --choices tea,coffee --clients 100
      $ discreet shuffle check poll.toml
      $ discreet shuffle analyzer poll.toml &
      $ discreet shuffle shuffler poll.toml &
      $ discreet shuffle tokens poll.toml 100 > tokens.txt
      $ discreet shuffle report poll.toml tea --token "$(head -1 tokens.txt)"
      $ discreet shuffle form poll.toml form.html --question "Tea or coffee?"
      $ discreet shuffle close poll.toml

    How answers travel: docs/channel.md. How wrong counts are: docs/shuffle.md
    """


app = typer.Typer(no_args_is_help=True, help=manual(shuffle))
for command in (
    init.init,
    check.check,
    tokens.tokens,
    vouchers.vouchers,
    form.form,
    analyzer.analyzer,
    shuffler.shuffler,
    issuer.issuer,
    ticket.ticket,
    report.report,
    close.close,
    influence.influence,
    simulate.simulate,
):
    app.command(help=manual(command))(command)
