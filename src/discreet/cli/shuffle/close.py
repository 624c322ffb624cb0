"""`discreet shuffle close`: end the collection, and print the counts."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from discreet.cli.shuffle.options import TaskFile, files_of
from discreet.cli.terminal.output import clean
from discreet.errors import BudgetExhausted, DiscreetError, InvalidArgument, ServiceUnavailable
from discreet.extras import need

if TYPE_CHECKING:
    from discreet.shuffle.channel.task import Task


def close(
    task: TaskFile,
    discard: Annotated[bool, typer.Option("--discard", help="Delete all reports; nothing is released.")] = False,
    wait: Annotated[float, typer.Option(help="Seconds to wait for the result.", min=0)] = 600.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for another program.")] = False,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Write the result as a page with error bars, too.", show_default=False),
    ] = None,
) -> None:
    """End the collection, and print the counts with their error bars. Too few reports are not released.

    Needs one of the two key files. With too few reports the collection continues, and the exit code is 3.

    Examples:
      $ discreet shuffle close poll.toml
      $ discreet shuffle close poll.toml --json > counts.json
      $ discreet shuffle close poll.toml --page results.html
      $ discreet shuffle close poll.toml --discard
    """
    from discreet.shuffle.channel import keys
    from discreet.shuffle.channel.services.page import draw_page
    from discreet.shuffle.channel.task import Task

    known, files = Task.load(task), files_of(task)
    if page is not None:
        _check_writable(page)  # before the poll is closed
    secrets: Any = (
        keys.ShufflerKeys.load(files.shuffler_key)
        if files.shuffler_key.exists()
        else keys.AnalyzerKeys.load(files.analyzer_key)
    )
    headers = {"Authorization": f"Bearer {secrets.operator.hex()}"}
    body = b'{"discard": true}' if discard else b""
    state = _request("POST", f"{known.shuffler}/v1/close", "shuffler", headers=headers, content=body)
    if state["state"] in ("collecting", "discarded"):
        print(f"{state['reports']} of {state['minimum']} reports: nothing is released")
        raise typer.Exit(3)
    with Console(stderr=True).status("The analyzer opens the messages …"):
        found = _result(known, wait, headers)
    if page is not None:
        page.write_bytes(draw_page(known, found))
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
    elif "value" in found:
        _show(found)
    else:
        print(f"{found['heard']} of {found['needed']} reports can be read: nothing is released")
    raise typer.Exit(0 if "value" in found else 3)


def _check_writable(page: Path) -> None:
    if not page.name or page.is_dir() or not os.access(page.absolute().parent, os.W_OK):
        raise InvalidArgument(
            f"{page} cannot be written. Name a file in a folder that exists, such as results.html.",
            code="file-not-writable",
        )


def _result(task: Task, wait: float, headers: dict[str, str]) -> dict[str, Any]:
    """What the analyzer publishes, as soon as it does."""
    deadline, pause = time.monotonic() + wait, 0.05
    while True:
        found = _request("GET", f"{task.analyzer}/v1/result", "analyzer", headers=headers)
        if "heard" in found:
            return found
        if "refused" in found:
            kind: type[DiscreetError] = BudgetExhausted if found["refused"] == "budget" else ServiceUnavailable
            raise kind(found.get("why", "The analyzer refuses the batch. Look at what it printed."))
        state = _request("GET", f"{task.shuffler}/v1/state", "shuffler", headers=headers) if pause > 1 else {}
        trouble: Sequence[str] = state.get("trouble", ())
        if trouble or time.monotonic() > deadline:
            why = " ".join(trouble) or f"The analyzer is not done after {wait:.0f} s."
            raise ServiceUnavailable(f"{why} The batch is safe: run discreet shuffle close again.")
        time.sleep(pause)
        pause = min(2 * pause, 2.0)


def _request(method: str, url: str, name: str, **given: Any) -> dict[str, Any]:
    httpx = need("httpx", "shuffle", "discreet shuffle close")
    try:
        found = httpx.request(method, url, timeout=600, **given)
    except (httpx.HTTPError, httpx.InvalidURL):
        raise ServiceUnavailable(f"The {name} at {url} does not answer. Start it: discreet shuffle {name} …") from None
    if found.status_code == 400:
        raise InvalidArgument(
            f"The {name} does not accept the keys next to the task file: they are not its own. Use those made with it.",
            code="shuffle-wrong-keys",
        )
    if found.status_code >= 500:
        raise ServiceUnavailable(f"The {name} failed. Look at what it printed, and try again.")
    try:
        said = found.json()
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise ServiceUnavailable(
            f"{url} is not a {name}, or a proxy answers for it. Check the addresses in the task file."
        )
    return said


def _show(found: dict[str, Any]) -> None:
    """The counts with their error bars."""
    value, error = found["value"], found["error"]
    rows = value if isinstance(value, list) else [["total", value]]
    bars = "" if error is None else f"± {error:.4g}"
    sure = f"{found['confidence']:.0%}"
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("answer", overflow="fold")
    table.add_column("count", justify="right")
    table.add_column(f"error ({sure})", justify="right")
    for name, count in rows:
        table.add_row(clean(str(name)), f"{count:,.1f}".removesuffix(".0"), bars)
    out = Console(highlight=False, markup=False)
    out.print(table)
    unreadable = "" if found["heard"] == found["reports"] else f", {found['heard']} of which can be read"
    out.print(
        f"{found['reports']} reports{unreadable}; {found['guarantee']}; receipt {found['receipt']}", soft_wrap=True
    )
    if found["not_private"]:
        out.print("NOT PRIVATE: made in test mode")
