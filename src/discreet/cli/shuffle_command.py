"""`discreet shuffle`: a poll that trusts nobody with raw answers. Keys and a task, two services, reports, a result."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from discreet.cli.ledger_command import clean
from discreet.errors import BudgetExhausted, DiscreetError, InvalidArgument, ServiceUnavailable
from discreet.extras import need
from discreet.guarantees.guarantee import Approx
from discreet.guarantees.unit import row
from discreet.ledger import Ledger
from discreet.ledger.store import URLS
from discreet.shuffle.channel import keys
from discreet.shuffle.channel.task import Task

TOKEN = "DISCREET_TOKEN"
_BITS = {"1": 1, "yes": 1, "true": 1, "0": 0, "no": 0, "false": 0}


class Files(NamedTuple):
    """What lies beside a task file."""

    shuffler_key: Path
    analyzer_key: Path
    shuffler_store: Path
    analyzer_store: Path
    ledger: Path


def files_of(task: Path) -> Files:
    """poll.toml has poll.shuffler.key, poll.analyzer.key, poll.shuffler.db, poll.analyzer.db and poll.ledger."""
    if not task.name:
        raise InvalidArgument(
            f"{task} is a folder. Name a file for the task, such as poll.toml.", code="file-not-writable"
        )
    ends = ("shuffler.key", "analyzer.key", "shuffler.db", "analyzer.db", "ledger")
    return Files(*(task.with_name(f"{task.stem}.{end}") for end in ends))


def init(
    path: Path,
    *,
    choices: str | None = None,
    bit: bool = False,
    shuffler: str,
    analyzer: str,
    **terms: Any,
) -> None:
    """Write a task and the keys of both services."""
    from discreet import shuffle

    if bit and choices is not None:
        raise InvalidArgument(
            "A poll asks for one of --choices, or with --bit for yes or no. Remove one of them.", code="command-poll"
        )
    if not terms["epsilon"] > 0:
        raise InvalidArgument("epsilon must be above 0.", code="out-of-range")
    if terms["minimum"] is None:
        del terms["minimum"]
    if bit:
        protocol: Any = shuffle.bit_sum(**terms)
    else:
        named = [one.strip() for one in (choices or "").split(",")]
        if len(named) < 2 or not all(named):
            raise InvalidArgument(
                "Name at least two choices: --choices red,green,blue, or use --bit.", code="too-few-choices"
            )
        protocol = shuffle.histogram(choices=named, **terms)
    files = files_of(path)
    for present in (path, files.shuffler_key, files.analyzer_key):
        if os.path.exists(present):  # also where such a name cannot be
            raise InvalidArgument(
                f"{present} exists. A new task needs new keys: choose another name.", code="file-exists"
            )
    own, other = keys.ShufflerKeys.made(), keys.AnalyzerKeys.made()
    other = keys.AnalyzerKeys(operator=own.operator, inner=other.inner)
    task = Task(
        description=protocol.described(),
        epsilon=terms["epsilon"],
        delta=terms["delta"],
        shuffler_key=keys.public_of(own.outer),
        analyzer_key=keys.public_of(other.inner),
        shuffler=shuffler.rstrip("/"),
        analyzer=analyzer.rstrip("/"),
    )
    own.save(files.shuffler_key)
    other.save(files.analyzer_key)
    task.save(path)
    print(f"{path}: the task, for everybody. {protocol.minimum} reports or more are released, no fewer.")
    print(f"{files.shuffler_key}: for the shuffler only.\n{files.analyzer_key}: for the analyzer only.")


def tokens(path: Path, count: int) -> None:
    """Print so many tokens, one a line."""
    task, secrets = Task.load(path), keys.ShufflerKeys.load(files_of(path).shuffler_key)
    for _ in range(count):
        print(keys.token_for(secrets.registration, task.hash).hex())


# --- the services -------------------------------------------------------------------------------------------


def shuffler(path: Path, *, host: str, port: int, store: str | None, key: Path | None, analyzer: str | None) -> None:
    """Serve the shuffler until stopped."""
    from discreet.shuffle.channel import service, shuffler_service
    from discreet.shuffle.channel.opening import Openers
    from discreet.shuffle.channel.shuffler import Shuffler
    from discreet.shuffle.channel.store import ShufflerStore

    task, files = Task.load(path), files_of(path)
    key_file = key or files.shuffler_key
    secrets = keys.ShufflerKeys.load(key_file)
    kept = ShufflerStore(store or str(files.shuffler_store), task.hash)
    one = Shuffler(task, secrets, kept, openers=Openers(), key_file=key_file)
    app = shuffler_service.application(one, secrets.operator, (analyzer or task.analyzer).rstrip("/"))
    service.serve(app, host, port, "shuffler")


def analyzer(path: Path, *, host: str, port: int, store: str | None, key: Path | None, ledger: str | None) -> None:
    """Serve the analyzer until stopped."""
    from discreet.shuffle.channel import analyzer_service, service
    from discreet.shuffle.channel.analyzer import Analyzer
    from discreet.shuffle.channel.opening import Openers
    from discreet.shuffle.channel.results import AnalyzerStore

    task, files = Task.load(path), files_of(path)
    key_file = key or files.analyzer_key
    secrets = keys.AnalyzerKeys.load(key_file)
    kept = AnalyzerStore(store or str(files.analyzer_store), task.hash)
    purse = _ledger(ledger or str(files.ledger), task)
    one = Analyzer(task, secrets, kept, purse, openers=Openers(), key_file=key_file)
    service.serve(analyzer_service.application(one, secrets.operator), host, port, "analyzer")


def _ledger(target: str, task: Task) -> Ledger:
    """The ledger at `target`; a new file is opened for exactly this task."""
    if target.startswith(URLS) or Path(target).exists():
        return Ledger.open(target)
    limit = Approx(epsilon=task.epsilon, delta=task.delta)
    return Ledger.open(target, protects=row(neighbors="replace"), limit=limit, rule="basic")


# --- clients and the end ------------------------------------------------------------------------------------


def report(path: Path, value: str, *, token: str | None = None) -> None:
    """Send one answer."""
    from discreet.shuffle.channel.client import Client

    task = Task.load(path)
    client, answer = Client(task, _token(path, task, token or os.environ.get(TOKEN))), _answer(task, value)
    print(clean(task.promise), flush=True)  # before anything is sent
    client.report(answer)
    print("Your report was taken.")


def _token(path: Path, task: Task, given: str | None) -> bytes:
    """The token given, or, on the machine that holds the registration secret, a fresh one for a client of its own."""
    if given is not None:
        try:
            return bytes.fromhex(given.strip())
        except ValueError:
            raise InvalidArgument(
                "The token must be hexadecimal digits. Copy all of it.", code="shuffle-not-accepted"
            ) from None
    issuer = files_of(path).shuffler_key
    if not issuer.exists():
        raise InvalidArgument(
            f"Give the token that you were issued: --token …, or {TOKEN}=… in the environment.", code="command-token"
        )
    return keys.token_for(keys.ShufflerKeys.load(issuer).registration, task.hash)


def _answer(task: Task, text: str) -> Any:
    """What a person writes, as the task takes it. A client of the network is told nothing of this."""
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


def close(path: Path, *, discard: bool = False, wait: float = 600.0, as_json: bool = False) -> int:
    """End the collection and print the result; 3 when there were too few reports, or too few that can be read."""
    task, files = Task.load(path), files_of(path)
    secrets: Any = (
        keys.ShufflerKeys.load(files.shuffler_key)
        if files.shuffler_key.exists()
        else keys.AnalyzerKeys.load(files.analyzer_key)
    )
    headers = {"Authorization": f"Bearer {secrets.operator.hex()}"}
    body = b'{"discard": true}' if discard else b""
    told = _asked("POST", f"{task.shuffler}/v1/close", "shuffler", headers=headers, content=body)
    if told["state"] in ("collecting", "discarded"):
        print(f"{told['reports']} of {told['minimum']} reports: nothing is released")
        return 3
    with Console(stderr=True).status("The analyzer opens the messages …"):
        found = _result(task, wait, headers)
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
    elif "value" in found:
        _show(found)
    else:
        print(f"{found['heard']} of {found['needed']} reports can be read: nothing is released")
    return 0 if "value" in found else 3


def _result(task: Task, wait: float, headers: dict[str, str]) -> dict[str, Any]:
    """What the analyzer publishes, once it does."""
    deadline, pause = time.monotonic() + wait, 0.05
    while True:
        found = _asked("GET", f"{task.analyzer}/v1/result", "analyzer", headers=headers)
        if "heard" in found:
            return found
        if "refused" in found:
            kind: type[DiscreetError] = BudgetExhausted if found["refused"] == "budget" else ServiceUnavailable
            raise kind(found.get("why", "The analyzer refuses the batch. Look at what it printed."))
        told = _asked("GET", f"{task.shuffler}/v1/state", "shuffler", headers=headers) if pause > 1 else {}
        trouble: Sequence[str] = told.get("trouble", ())
        if trouble or time.monotonic() > deadline:
            why = " ".join(trouble) or f"The analyzer is not done after {wait:.0f} s."
            raise ServiceUnavailable(f"{why} The batch is safe: run discreet shuffle close again.")
        time.sleep(pause)
        pause = min(2 * pause, 2.0)


def _asked(method: str, url: str, name: str, **given: Any) -> dict[str, Any]:
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
    return found.json()  # type: ignore[no-any-return]


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
    unheard = "" if found["heard"] == found["reports"] else f", {found['heard']} of which can be read"
    out.print(f"{found['reports']} reports{unheard}; {found['guarantee']}; receipt {found['receipt']}", soft_wrap=True)
    if found["not_private"]:
        out.print("NOT PRIVATE: made in test mode")
