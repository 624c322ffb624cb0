"""`discreet shuffle report`: send one client's answer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.shuffle.options import TaskFile, files_of
from discreet.cli.terminal import completion
from discreet.cli.terminal.output import clean
from discreet.errors import InvalidArgument, NotAllowed

if TYPE_CHECKING:
    from discreet.shuffle.channel.client import Client
    from discreet.shuffle.channel.task import Task

TOKEN = "DISCREET_TOKEN"
_BITS = {"1": 1, "yes": 1, "true": 1, "0": 0, "no": 0, "false": 0}


def report(
    task: TaskFile,
    answer: Annotated[
        str,
        typer.Argument(help="Your answer; randomized and sealed before it leaves.", autocompletion=completion.answers),
    ],
    token: Annotated[
        str | None,
        typer.Option(
            help="The token you were issued; or DISCREET_TOKEN. By default one is made with the shuffler's key file if "
            "it is next to the task, and otherwise the shuffler of an open poll is asked for one.",
            show_default=False,
        ),
    ] = None,
    voucher: Annotated[
        str | None, typer.Option(help="The voucher you were given, of a task with an issuer.", show_default=False)
    ] = None,
) -> None:
    """Send one client's answer.

    The task is checked first. If its noise does not satisfy its promise, it is refused, and nothing is sent.

    Examples:
      $ discreet shuffle report poll.toml IL --token 5f0c…
      $ DISCREET_TOKEN=5f0c… discreet shuffle report poll.toml IL
      $ discreet shuffle report poll.toml IL
      $ discreet shuffle report poll.toml IL --voucher 91ab…

    The third one is for an open poll, whose shuffler issues a token to everybody who asks.
    """
    from discreet.shuffle.channel.client import Client, ask_for_token
    from discreet.shuffle.channel.task import Task

    known = Task.load(task)
    value = _answer(known, answer)
    own = None if voucher else _token(task, known, token or os.environ.get(TOKEN))
    client = None if own is None else Client(known, own)
    print(clean(known.promise), flush=True)  # before anything is sent
    if voucher:
        _report_with(task, known, voucher, value)
    else:
        client = client or Client(known, ask_for_token(known))
        client.report(value)
    print("Your report was taken.")


def _report_with(path: Path, task: Task, voucher: str, value: Any) -> None:
    """Report with a ticket for a voucher.

    Until the report is taken, the request of the ticket and the sealed report are kept in files: a report that is drawn
    again on the next try would tell more than one does.
    """
    from discreet.shuffle.channel import keys

    client, kept = admitted(path, task, voucher)
    sealed = kept.with_suffix(".report")
    if not sealed.exists():
        keys.save_new(sealed, client.sealed(value).hex())
    try:
        client.send(bytes.fromhex(sealed.read_text("ascii")))
    except NotAllowed:  # the ticket is of no use any more, and its files link it to this person
        _delete(kept, sealed)
        raise
    _delete(kept, sealed)


def admitted(path: Path, task: Task, voucher: str) -> tuple[Client, Path]:
    """A client with the ticket of a voucher, and the file that keeps the request of the ticket."""
    from discreet.shuffle.channel import admission
    from discreet.shuffle.channel.client import Client

    said = voucher.strip().lower()
    kept = admission.request_file(path, task.hash, said)
    if not kept.exists():
        return Client.admitted(task, said, save=kept), kept
    request = admission.TicketRequest.load(kept, task.issuer_key, task.hash)
    return Client.admitted(task, said, request), kept


def _delete(*files: Path) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _token(path: Path, task: Task, given: str | None) -> bytes | None:
    """The given token. Or, on the machine that holds the registration secret, a new one for a client of its own.

    None if there is neither.
    """
    from discreet.shuffle.channel import keys

    if given is not None:
        try:
            return bytes.fromhex(given.strip())
        except ValueError:
            raise InvalidArgument(
                "The token must be hexadecimal digits. Copy all of it.", code="shuffle-not-accepted"
            ) from None
    if task.issuer_key:
        raise InvalidArgument(
            "This task admits people by tickets. Give the voucher that you were given: --voucher …",
            code="command-token",
        )
    issuer = files_of(path).shuffler_key
    if not issuer.exists():
        return None
    return keys.token_for(keys.ShufflerKeys.load(issuer).registration, task.hash)


def _answer(task: Task, text: str) -> Any:
    """What a person types, as the task expects it. A client on the network learns nothing of this."""
    if hasattr(task.protocol, "choices"):
        named = {str(choice): choice for choice in task.protocol.choices}
        if text not in named:
            raise InvalidArgument(
                f"This is not one of the poll's choices: {', '.join(list(named)[:20])}.", code="unknown-answer"
            )
        return named[text]
    if text.lower() not in _BITS:
        raise InvalidArgument("This poll takes yes or no, or 1 or 0.", code="unknown-answer")
    return _BITS[text.lower()]
