"""Bugs planted in the protocol and in its logins: the very check that the sound code passes catches each of them."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import scramp

from discreet.errors import NotAllowed
from discreet.gateway.books import scram, tokens
from discreet.gateway.books.scram import Exchanges
from discreet.gateway.books.tokens import Callers
from discreet.gateway.wire import dialog, handshake
from discreet.gateway.wire.cancels import Cancels
from discreet.gateway.wire.dialog import Dialog

from ..books.test_scram import CERTIFICATE, Login, token_of
from . import raw
from .conftest import Doors


class Bug(NamedTuple):
    """A piece of source, what it is replaced by, and the check that must notice."""

    owner: Any
    name: str
    old: str
    new: str
    check: Callable[[Doors], None]


def plant(monkeypatch: pytest.MonkeyPatch, bug: Bug) -> None:
    """Put a changed copy of a function or a method in place of the right one."""
    right = getattr(bug.owner, bug.name)
    source = textwrap.dedent(inspect.getsource(right))
    assert source.count(bug.old) == 1, "the source has changed: plant the bug again"
    names = vars(bug.owner if isinstance(bug.owner, ModuleType) else inspect.getmodule(bug.owner))
    wrong: dict[str, Any] = {}
    exec(compile(source.replace(bug.old, bug.new), "planted", "exec"), names, wrong)
    monkeypatch.setattr(bug.owner, bug.name, wrong[bug.name])
    for kind, handler in list(dialog._HANDLERS.items()):
        if handler is right:
            monkeypatch.setitem(dialog._HANDLERS, kind, wrong[bug.name])


# --- the checks -------------------------------------------------------------------------------------------


def describing_runs_nothing(doors: Doors) -> None:
    client = doors.client()
    client.ask(raw.parse("rows 3", "s"), raw.describe("S", "s"), raw.bind("p", "s"), raw.describe("P", "p"), raw.SYNC)
    assert doors.log.runs == []


def a_portal_runs_once(doors: Doors) -> None:
    client = doors.client()
    client.ask(raw.parse("rows 3"), raw.bind("p"), *[raw.execute("p", 1)] * 3, raw.SYNC)
    assert len(doors.log.runs) == 1


def after_an_error_nothing_is_run(doors: Doors) -> None:
    client = doors.client()
    client.send(raw.parse("rows 3"), raw.bind(), raw.execute("nobody"), raw.execute(), raw.SYNC)
    client.until_ready()
    assert doors.log.runs == []


def only_the_right_key_cancels(doors: Doors) -> None:
    cancelled: list[int] = []
    cancels = Cancels()
    process, key = cancels.add(lambda: cancelled.append(1))
    assert not cancels.cancel(process, key ^ 1)
    assert not cancelled


def no_login_without_encryption(doors: Doors) -> None:
    client = doors.raw()
    client.send(raw.startup(user="alice"))
    assert client.read().kind == "E"


def portals_end_with_their_transaction(doors: Doors) -> None:
    client = doors.client()
    client.ask(raw.parse("rows 3"), raw.bind("p"), raw.execute("p", 1), raw.SYNC)
    assert client.ask(raw.execute("p", 1), raw.SYNC)[0].kind == "E"


def a_failed_portal_says_nothing_more(doors: Doors) -> None:
    client = doors.client()
    client.ask(raw.query("begin"))
    client.ask(raw.parse("rows 3"), raw.bind("p"), raw.execute("p", 1), raw.SYNC)
    client.ask(raw.parse("rows 1"), raw.bind("nobody", "nothing"), raw.SYNC)
    assert client.kinds(raw.execute("p", 1), raw.SYNC) == "EZ"


def _refused(work: Callable[[], Any]) -> None:
    try:
        work()
    except NotAllowed as error:
        found = str(error.code)
    except scramp.ScramException:  # the client would notice, but the server let it in
        found = "nothing was refused"
    else:
        found = "nothing was refused"
    assert found == "gateway-login"


def a_removed_offer_is_noticed(doors: Doors) -> None:
    given = {"account": "alice", "mechanism": "SCRAM-SHA-256", "message": "y,,n=,r=abc", "certificate": CERTIFICATE}
    _refused(lambda: Exchanges(doors.clinic.store).first(given))


def a_proof_is_used_once(doors: Doors) -> None:
    login = Login(Exchanges(doors.clinic.store), "alice", doors.token, doors.clinic.time)
    login.run()
    _refused(lambda: login.exchanges.final(login.sent, login.now))


def another_certificate_is_noticed(doors: Doors) -> None:
    bound = ("tls-server-end-point", b"hash of another")
    given = {"binding": bound, "certificate": CERTIFICATE}
    _refused(Login(Exchanges(doors.clinic.store), "alice", doors.token, doors.clinic.time, **given).run)


def a_wrong_secret_does_not_log_in(doors: Doors) -> None:
    wrong = doors.token[:-1] + ("0" if doors.token[-1] != "0" else "1")
    _refused(Login(Exchanges(doors.clinic.store), "alice", wrong, doors.clinic.time).run)


def a_revoked_token_does_not_log_in(doors: Doors) -> None:
    other = token_of(doors.clinic)
    doors.clinic.do("revoke", id=other.split("_")[1])
    _refused(Login(Exchanges(doors.clinic.store), "alice", other, doors.clinic.time).run)


def another_account_s_token_does_not_log_in(doors: Doors) -> None:
    doors.clinic.open("bob")
    other = token_of(doors.clinic, "bob")
    _refused(Login(Exchanges(doors.clinic.store), "alice", other, doors.clinic.time).run)


def a_session_ends_when_its_token_is_rotated(doors: Doors) -> None:
    proven = Login(Exchanges(doors.clinic.store), "alice", token_of(doors.clinic), doors.clinic.time).run()
    doors.clinic.do("rotate", id=proven.token)
    callers = Callers(doors.clinic.store)
    _refused(lambda: callers.holder(proven.token, proven.digest, doors.clinic.time))


# --- the bugs ---------------------------------------------------------------------------------------------

MUTANTS = {
    "describe_runs": Bug(
        Dialog,
        "_described",
        "    found = await",
        "    await self._run(prepared.statement)\n    found = await",
        describing_runs_nothing,
    ),
    "portal_run_at_every_execute": Bug(
        Dialog, "_execute", "first = not portal.has_begun", "first = True", a_portal_runs_once
    ),
    "messages_after_an_error_answered": Bug(
        Dialog,
        "_refuse",
        'self._is_skipping = kind not in (b"Q", b"F", b"S")',
        "self._is_skipping = False",
        after_an_error_nothing_is_run,
    ),
    "portals_kept_after_their_transaction": Bug(
        Dialog, "_ready", 'status != "T"', 'status == "X"', portals_end_with_their_transaction
    ),
    "any_key_cancels": Bug(
        Cancels, "cancel", "not same or cancel is None", "cancel is None", only_the_right_key_cancels
    ),
    "login_without_encryption": Bug(
        handshake, "_startup", "if not stream.secure and not", "if stream.secure and not", no_login_without_encryption
    ),
    "downgrade_not_noticed": Bug(
        scram, "_binding", 'flag == "n" or certificate is None', "True", a_removed_offer_is_noticed
    ),
    "certificate_not_compared": Bug(
        Exchanges,
        "final",
        "not hmac.compare_digest(binding, begun.binding) or not same_nonce",
        "not same_nonce",
        another_certificate_is_noticed,
    ),
    "proof_replayed": Bug(Exchanges, "final", "self._begun.pop(", "self._begun.get(", a_proof_is_used_once),
    "proof_not_checked": Bug(
        scram,
        "_which",
        "if hmac.compare_digest(hashlib.sha256(client_key).digest(), stored):",
        "if stored != _DECOY[0]:",
        a_wrong_secret_does_not_log_in,
    ),
    "revoked_token_logs_in": Bug(
        Exchanges, "final", '"AND tokens.revoked = 0 AND', '"AND', a_revoked_token_does_not_log_in
    ),
    "rotated_token_keeps_its_sessions": Bug(
        tokens, "holder", "hmac.compare_digest(given, digest)", "True", a_session_ends_when_its_token_is_rotated
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_noticed(name: str, doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = MUTANTS[name]
    if bug.check is no_login_without_encryption:
        monkeypatch.setattr(handshake, "is_local", lambda address: False)
    bug.check(doors)
    doors.log.runs.clear()
    plant(monkeypatch, bug)
    with pytest.raises(AssertionError):
        bug.check(doors)


@pytest.mark.parametrize("check", [a_failed_portal_says_nothing_more, another_account_s_token_does_not_log_in])
def test_a_check_without_a_bug(check: Callable[[Doors], None], doors: Doors) -> None:
    check(doors)
