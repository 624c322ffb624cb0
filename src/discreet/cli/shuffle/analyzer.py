"""`discreet shuffle analyzer`: serve the analyzer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.shuffle.options import (
    SERVED,
    BehindProxy,
    Certificate,
    CertificateKey,
    Host,
    KeyFile,
    StoreAt,
    TaskFile,
    files_of,
)
from discreet.guarantees.guarantee import Approx
from discreet.guarantees.unit import row
from discreet.ledger import Ledger
from discreet.ledger.stores.store import URLS

if TYPE_CHECKING:
    from discreet.shuffle.channel.task import Task


def analyzer(
    task: TaskFile,
    port: Annotated[
        int,
        typer.Option(help="The port to listen on; 0 finds a free one.", min=0, max=65535, rich_help_panel=SERVED),
    ] = 7001,
    host: Host = "127.0.0.1",
    store: StoreAt = None,
    key: KeyFile = None,
    ledger: Annotated[
        str | None,
        typer.Option(help="The ledger to charge; by default one for this task alone.", show_default=False),
    ] = None,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    behind_proxy: BehindProxy = False,
) -> None:
    """Serve the analyzer: it charges its ledger, opens shuffled messages, and publishes noisy counts.

    It runs until it is stopped, and continues where it was when it is started again. Its address is printed once it
    answers. Opened in a browser, the address shows the result with error bars, once there is one.

    Examples:
      $ discreet shuffle analyzer poll.toml --port 7001
      $ discreet shuffle analyzer poll.toml --ledger clinic.ledger
      $ discreet shuffle analyzer poll.toml --host 0.0.0.0 \\
                         --certificate tls.pem --certificate-key tls.key
    """
    from discreet.shuffle.channel import keys
    from discreet.shuffle.channel.analyzer import Analyzer
    from discreet.shuffle.channel.opening import Openers
    from discreet.shuffle.channel.results import AnalyzerStore
    from discreet.shuffle.channel.services import analyzer as analyzer_service
    from discreet.shuffle.channel.services import service
    from discreet.shuffle.channel.task import Task

    at = service.Listening(
        host=host, port=port, certificate=certificate, certificate_key=certificate_key, behind_proxy=behind_proxy
    )
    known, files = Task.load(task), files_of(task)
    key_file = key or files.analyzer_key
    secrets = keys.AnalyzerKeys.load(key_file)
    kept = AnalyzerStore(store or str(files.analyzer_store), known.hash)
    purse = _ledger(ledger or str(files.ledger), known)
    one = Analyzer(known, secrets, kept, purse, openers=Openers(), key_file=key_file)
    service.serve(analyzer_service.application(one, secrets.operator), at, "analyzer")


def _ledger(target: str, task: Task) -> Ledger:
    """The ledger at `target`. A new file is created for exactly this task."""
    if target.startswith(URLS) or Path(target).exists():
        return Ledger.open(target)
    limit = Approx(epsilon=task.epsilon, delta=task.delta)
    return Ledger.open(target, protects=row(neighbors="replace"), limit=limit, rule="basic")
