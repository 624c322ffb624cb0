"""`discreet shuffle check`: what a task promises, and the hash that names it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.terminal import completion
from discreet.cli.terminal.output import clean
from discreet.errors import InvalidArgument, ServiceUnavailable
from discreet.extras import need

if TYPE_CHECKING:
    from discreet.shuffle.channel.task import Task

PATH = "/v1/task"


def check(
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK",
            help=f"The task file (*.toml), or where a service has it: https://shuffler.example{PATH}.",
            autocompletion=completion.policies,
        ),
    ],
    pinned: Annotated[
        str | None,
        typer.Option("--hash", metavar="HEX", help="The hash that it must have.", show_default=False),
    ] = None,
) -> None:
    """Check that the noise of a task keeps its promise, and print the promise, the hash to pin, and the sizes.

    For whoever publishes a poll or puts it on a page. A task with another hash is refused, and so is one whose noise
    does not keep its ε and δ.

    Examples:
      $ discreet shuffle check poll.toml
      $ discreet shuffle check https://shuffler.example/v1/task --hash 3b1f…
    """
    from discreet.shuffle.channel.task import Task

    if task.startswith(("http://", "https://")):
        data = _fetch(task)
        _compare(hashlib.sha256(data).digest(), pinned)  # before anything in it is believed
        known = Task.from_bytes(data, shuffler=task.removesuffix(PATH), analyzer="its address is in the task file")
    else:
        known = Task.load(Path(task))
        _compare(known.hash, pinned)
    for name, text in _facts(known).items():
        print(f"{name:9} {clean(text)}")


def _facts(task: Task) -> dict[str, str]:
    shape, protocol = task.shape, task.protocol
    length = f"{shape.length} byte" if shape.length == 1 else f"{shape.length} bytes"
    return {
        "kept": f"The noise keeps ε = {float(task.epsilon):g}, δ = {float(task.delta):g}.",
        "promise": task.promise,
        "error": expected_error(protocol),
        "protocol": f"{protocol.kind}; takes {protocol.takes}",
        "hash": task.hash.hex(),
        "task": f"{len(task.canonical):,} bytes",
        "report": f"{shape.report:,} bytes: {shape.messages:,} messages of {length}, sealed twice; and a token",
    }


def expected_error(protocol: Any) -> str:
    """How wrong the result will be if all clients report."""
    amount = protocol.error(0.95).amount
    return "No error is known." if amount is None else f"Each number will be within ± {amount:,.3g} (95%)."


def _compare(found: bytes, pinned: str | None) -> None:
    if pinned is not None and found.hex() != pinned.strip().lower():
        raise InvalidArgument(
            f"The task has the hash {found.hex()}, and not the one given with --hash. Do not take part. Ask "
            "whoever published the poll.",
            code="shuffle-wrong-task",
        )


def _fetch(url: str) -> bytes:
    httpx = need("httpx", "shuffle", "discreet shuffle check")
    try:
        found = httpx.get(url, timeout=60)
    except (httpx.HTTPError, httpx.InvalidURL):
        raise ServiceUnavailable(f"{clean(url)} does not answer. Is the service running?") from None
    if found.status_code != 200:
        raise InvalidArgument(
            f"{clean(url)} has no task. Write the address of a service and {PATH}.", code="shuffle-task-unreadable"
        )
    data: bytes = found.content
    return data
