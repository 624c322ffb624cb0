"""A gateway on this machine alone, for a synthetic clinic: its pages, an account, its token, and a question."""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from discreet.datasets.ledgers import open_policy_ledger
from discreet.demo.data import PEOPLE, VISITS, Truth, make_clinic
from discreet.demo.story import ONLY_HERE, TRUTH, type_next
from discreet.extras import need
from discreet.gateway.books.offices import VERBS, Office
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.books.tokens import COMMAND_LINE
from discreet.gateway.remote import remote
from discreet.gateway.serve import Supervisor
from discreet.gateway.settings import HTTP, load_settings

ANSWER_AFTER = "3s"
GATEWAY = """
[gateway]
http = "127.0.0.1:{port}"
postgres = "127.0.0.1:0"
answer_after = {answer_after}
[gateway.question]
default = 0.1
most = 1.0
"""
QUESTION = "SELECT city, COUNT(*) AS patients FROM people GROUP BY city"


def tell(out: Console, *, once: bool) -> None:
    """Start a gateway, open an account, ask a question through it, and show the answer. It runs until Ctrl-C, unless
    `once`.
    """
    for module in ("uvicorn", "httptools", "httpx", "jinja2"):
        need(module, "gateway", "discreet demo gateway")
    with tempfile.TemporaryDirectory(prefix="discreet_demo_") as folder:
        policy = make_clinic(Path(folder))
        with policy.open("a", encoding="utf-8") as file:
            file.write(GATEWAY.format(port=free_port(), answer_after=_quoted(ANSWER_AFTER)))
        out.print(_opening())
        supervisor = Supervisor(policy, isolated=False)
        with supervisor.running():
            url, postgres = (supervisor.addresses()[name] for name in ("http", "postgres"))
            with _office(policy) as office:
                owner = VERBS["open"](office, COMMAND_LINE, {"name": "olga", "role": "owner"})["link"]
                link = VERBS["open"](office, COMMAND_LINE, {"name": "alice", "epsilon": 3})["link"]
                token = VERBS["token"](office, COMMAND_LINE, {"account": "alice", "name": "demo"})["token"]
            _show_access(out, url, postgres, {"owner": owner, "alice": link}, token)
            _ask(out, url, token, Truth(Path(folder)))
            if not once:
                _next(out, policy)
                supervisor.watch()
    out.print("\nThe gateway has stopped, and its files are gone.")


def free_port() -> int:
    """The usual port of a gateway, or another one if it is used."""
    for port in (HTTP.port, 0):
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind((HTTP.host, port))
            except OSError:
                continue
            return int(one.getsockname()[1])
    return HTTP.port


def _quoted(answer_after: str) -> str:
    return answer_after if answer_after == "0" else f'"{answer_after}"'


def _opening() -> Panel:
    return Panel.fit(
        f"[bold]{PEOPLE:,} synthetic patients and {VISITS:,} visits[/], behind a gateway on this machine.\n"
        "One process, the vault, has the data. The other, the desk, is what analysts reach.\n"
        "In a demo both run as you. Started as root, each has a user of its own (docs/gateway.md).\n"
        f"Every charged answer leaves after {ANSWER_AFTER}, so that time tells nothing.",
        title="discreet demo gateway",
    )


@contextmanager
def _office(policy: Path) -> Iterator[Office]:
    known, settings = load_settings(policy)
    with closing(open_policy_ledger(known)) as ledger, GatewayStore(settings.store) as store:
        yield Office(store=store, open_ledger=lambda: ledger, settings=settings, now=time.time)


def _show_access(out: Console, url: str, database: str, links: dict[str, str], token: str) -> None:
    """What the owner would send to an analyst. Lines to copy are not broken."""
    shown: dict[str, str] = {
        "The owner opens an account for alice, with ε = 3. She logs in with this link, in a browser, once:": (
            links["alice"]
        ),
        "The owner has a link, too (in another browser, or a private window):": links["owner"],
        "Programs use a token:": token,
        "This works in another terminal:": curl(url, token),
        "And so does psql, like all that speaks PostgreSQL:": psql(database, token),
    }
    for about, text in shown.items():
        out.print(f"\n[bold]{about}[/]")
        out.print(Text(text, style="cyan"), soft_wrap=True)


def curl(url: str, token: str) -> str:
    """The question as a command line."""
    body = f'{{"sql": "{QUESTION}"}}'
    head = f"-H 'Authorization: Bearer {token}' -H 'Content-Type: application/json'"
    return f"curl -s {url}/v1/questions {head} -d '{body}'"


def psql(database: str, token: str) -> str:
    """The question for psql, with the token as the password."""
    return f"PGPASSWORD={token} psql {database.replace('//', '//alice@')} -c '{QUESTION}'"


def _ask(out: Console, url: str, token: str, truth: Truth) -> None:
    exact = truth.rows(QUESTION, 1)
    with closing(remote(url, token=token)) as clinic:
        begun = time.monotonic()
        answer = clinic.sql(QUESTION, epsilon=0.1)
        took = time.monotonic() - begun
        out.print("\n[bold]In Python[/]")
        out.print(Text(f'  dp.remote("{url}", token=…).sql("{QUESTION}", epsilon=0.1)', style="cyan"), soft_wrap=True)
        table = Table(header_style="bold")
        table.add_column("city")
        table.add_column("patients", justify="right")
        table.add_column(TRUTH, justify="right", style="dim")
        for row in answer.table.to_pylist():
            table.add_row(row["city"], _with_error(row), f"{exact[(row['city'],)][0]:,}")
        out.print(table)
        out.print(f"  {ONLY_HERE}")
        again = clinic.sql(QUESTION, epsilon=0.1)
        out.print(
            f"  It took {took:.1f} s and cost {answer.cost}; {answer.remaining} remains; receipt {answer.receipt}.\n"
            f"  Asked again: the same answer, receipt {again.receipt}, at once and for free."
        )


def _with_error(row: dict[str, Any]) -> str:
    return f"{row['patients']:,} ± {row['patients_error']:,.0f}"


def _next(out: Console, policy: Path) -> None:
    lines = [f"discreet account {policy} list", f"discreet account {policy} suspend alice"]
    type_next(out, lines, "gateway.md")
    out.print("\nThe gateway runs until you press Ctrl-C.")
