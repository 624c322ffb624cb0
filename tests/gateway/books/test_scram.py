"""SCRAM at the vault: the holder of a token logs in, and nobody else learns anything."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
import scramp

from discreet.errors import DiscreetError, NotAllowed
from discreet.gateway.books import scram
from discreet.gateway.books.scram import MECHANISMS, PLUS, Exchanges, Proven, Sessions
from discreet.gateway.books.tokens import Callers

from ...refusing import refuses
from ..clinics import Clinic

CERTIFICATE = base64.b64encode(b"hash of a certificate").decode()


class Login:
    """A login with scramp as the client. It names a user, who does not count."""

    def __init__(self, exchanges: Exchanges, account: str, password: str, now: float, **given: Any) -> None:
        self.exchanges, self.now = exchanges, now
        binding = given.pop("binding", None)
        self.client = scramp.ScramClient(["SCRAM-SHA-256", *([PLUS] if binding else [])], "x", password, binding)
        self.given = {"account": account, "mechanism": self.client.mechanism_name} | given

    def first(self) -> dict[str, Any]:
        message = self.client.get_client_first()
        self.said = self.exchanges.first({"message": message} | self.given)
        self.client.set_server_first(self.said["message"])
        return self.said

    def final(self) -> Proven:
        self.sent = {"exchange": self.said["exchange"], "message": self.client.get_client_final()}
        found = self.exchanges.final(self.sent, self.now)
        self.client.set_server_final(found.server_final)
        return found

    def run(self) -> Proven:
        self.first()
        return self.final()


@pytest.fixture
def exchanges(clinic: Clinic) -> Exchanges:
    clinic.open("alice")
    return Exchanges(clinic.store)


def token_of(clinic: Clinic, account: str = "alice", **given: Any) -> str:
    return str(clinic.do("token", account=account, **given)["token"])


def test_any_token_of_an_account_logs_in_and_the_vault_proves_that_it_knows_it(
    clinic: Clinic, exchanges: Exchanges
) -> None:
    tokens = [token_of(clinic) for _ in range(20)]
    for token in tokens:
        found = Login(exchanges, "alice", token, clinic.time).run()
        assert (found.account, found.token) == ("alice", token.split("_")[1])
    assert Login(exchanges, "Alice", tokens[0], clinic.time).run().account == "alice"


def test_a_rotated_token_logs_in_with_its_new_secret_only(clinic: Clinic, exchanges: Exchanges) -> None:
    old = token_of(clinic)
    new = clinic.do("rotate", id=old.split("_")[1])["token"]
    assert Login(exchanges, "alice", new, clinic.time).run().token == new.split("_")[1]
    with refuses(NotAllowed, "gateway-login"):
        Login(exchanges, "alice", old, clinic.time).run()


def test_every_refusal_is_the_same(clinic: Clinic, exchanges: Exchanges) -> None:
    clinic.open("bob")
    right, others = token_of(clinic), token_of(clinic, "bob")
    revoked, expired = token_of(clinic), token_of(clinic, expires="1d")
    clinic.do("revoke", id=revoked.split("_")[1])
    clinic.time += 86_400
    said = set()
    cases = [("alice", others), ("bob", right), ("carol", right), ("", right), ("alice", revoked), ("alice", expired)]
    for account, password in cases:
        login = Login(exchanges, account, password, clinic.time)
        first = login.first()
        assert re.fullmatch(r"r=[^,]+,s=[A-Za-z0-9+/]{22}==,i=4096", first["message"])
        with pytest.raises(NotAllowed) as info:
            login.final()
        said.add((info.value.code, str(info.value)))
    assert len(said) == 1
    assert Login(exchanges, "alice", right, clinic.time).run()


def test_a_suspended_account_is_told_so_only_with_a_right_token(clinic: Clinic, exchanges: Exchanges) -> None:
    right = token_of(clinic)
    clinic.do("suspend", name="alice")
    with refuses(NotAllowed, "gateway-suspended"):
        Login(exchanges, "alice", right, clinic.time).run()
    with refuses(NotAllowed, "gateway-login"):
        Login(exchanges, "alice", right[:-1] + "g", clinic.time).run()


def test_the_salt_is_that_of_the_account_known_or_not(clinic: Clinic, exchanges: Exchanges) -> None:
    def salt(account: str, source: Exchanges) -> str:
        said = Login(source, account, "y", clinic.time).first()["message"]
        return str(said.split(",")[1])

    again = Exchanges(clinic.store)
    names = ("alice", "bob", "nobody", "")
    assert len({salt(name, exchanges) for name in names}) == len(names)
    assert [salt(name, again) for name in names] == [salt(name, exchanges) for name in names]
    assert salt("ALICE", again) == salt("alice", again)


def test_nothing_is_read_about_an_account_before_its_proof(
    clinic: Clinic, exchanges: Exchanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clinic.store, "read", None)
    for account in ("alice", "nobody"):
        Login(exchanges, account, "x", clinic.time).first()


def test_the_same_number_of_verifiers_is_tried_for_anybody(
    clinic: Clinic, exchanges: Exchanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []
    real = scram._which
    monkeypatch.setattr(scram, "_which", lambda keys, *rest: (tried.append(len(keys)), real(keys, *rest))[1])
    for _ in range(3):
        token_of(clinic)
    for account in ("alice", "nobody"):
        with refuses(NotAllowed, "gateway-login"):
            Login(exchanges, account, "x", clinic.time).run()
    assert tried == [16, 16]


def test_an_exchange_is_finished_once_and_in_time(clinic: Clinic) -> None:
    clinic.open("alice")
    right, at = token_of(clinic), [0.0]
    exchanges = Exchanges(clinic.store, clock=lambda: at[0])
    login = Login(exchanges, "alice", right, clinic.time)
    login.run()
    with refuses(NotAllowed, "gateway-login"):  # a replay
        exchanges.final(login.sent, clinic.time)
    late = Login(exchanges, "alice", right, clinic.time)
    late.first()
    at[0] += scram.PATIENCE + 1
    with refuses(NotAllowed, "gateway-login"):
        late.final()


def test_a_wrong_proof_cannot_be_tried_again(clinic: Clinic, exchanges: Exchanges) -> None:
    login = Login(exchanges, "alice", token_of(clinic), clinic.time)
    login.first()
    right = login.client.get_client_final()
    wrong = right[:-5] + "AAAA="
    for message in (wrong, right):
        with refuses(NotAllowed, "gateway-login"):
            exchanges.final({"exchange": login.said["exchange"], "message": message}, clinic.time)


def test_exchanges_are_bounded(clinic: Clinic, exchanges: Exchanges, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scram, "MOST_EXCHANGES", 3)
    token = token_of(clinic)
    logins = [Login(exchanges, "alice", token, clinic.time) for _ in range(4)]
    for login in logins:
        login.first()
    with refuses(NotAllowed, "gateway-login"):
        logins[0].final()
    assert logins[3].final()


def plus(**given: Any) -> dict[str, Any]:
    return {"certificate": CERTIFICATE} | given


def test_a_login_that_is_bound_to_the_certificate(clinic: Clinic, exchanges: Exchanges) -> None:
    token = token_of(clinic)
    bound = ("tls-server-end-point", b"hash of a certificate")
    login = Login(exchanges, "alice", token, clinic.time, binding=bound, **plus())
    assert login.client.mechanism_name == PLUS
    assert login.run().account == "alice"
    with refuses(NotAllowed, "gateway-login"):  # somebody in between shows another certificate
        other = ("tls-server-end-point", b"hash of another")
        Login(exchanges, "alice", token, clinic.time, binding=other, **plus()).run()
    assert Login(exchanges, "alice", token, clinic.time, **plus()).client.mechanism_name == MECHANISMS[1]


@pytest.mark.parametrize(
    ("header", "mechanism", "certificate", "fine"),
    [
        ("n,,", "SCRAM-SHA-256", None, True),
        ("n,,", "SCRAM-SHA-256", CERTIFICATE, True),  # the client has no support for binding
        ("y,,", "SCRAM-SHA-256", None, True),
        ("y,,", "SCRAM-SHA-256", CERTIFICATE, False),  # it has, and somebody removed the offer
        ("p=tls-server-end-point,,", "SCRAM-SHA-256-PLUS", CERTIFICATE, True),
        ("p=tls-server-end-point,,", "SCRAM-SHA-256-PLUS", None, False),
        ("p=tls-server-end-point,,", "SCRAM-SHA-256", CERTIFICATE, False),
        ("p=tls-unique,,", "SCRAM-SHA-256-PLUS", CERTIFICATE, False),
        ("n,,", "SCRAM-SHA-256-PLUS", CERTIFICATE, False),
        ("y,,", "SCRAM-SHA-256-PLUS", CERTIFICATE, False),
        ("n,a=bob,", "SCRAM-SHA-256", None, False),
        ("n,,", "SCRAM-SHA-1", None, False),
    ],
)
def test_flags_must_fit_what_was_offered(
    exchanges: Exchanges, header: str, mechanism: str, certificate: str | None, fine: bool
) -> None:
    given = {"account": "alice", "mechanism": mechanism, "message": f"{header}n=,r=abc", "certificate": certificate}
    if fine:
        assert exchanges.first(given)["message"].startswith("r=abc")
        return
    with refuses(NotAllowed, "gateway-login"):
        exchanges.first(given)


@pytest.mark.parametrize(
    "message",
    ["", "n,,", "n,,n=", "n,,n=,r=", "n,,n=,r=a b", "n,,m=x,n=,r=a", "n,,r=a,n=", "n,,n=,r=a\n", "n,,n=,r=ä", 7, None],
)
def test_what_is_no_first_message(exchanges: Exchanges, message: Any) -> None:
    with pytest.raises(DiscreetError):
        exchanges.first({"account": "alice", "mechanism": "SCRAM-SHA-256", "message": message})


@pytest.mark.parametrize("change", ["r=x", "c=biws", "p=", "", "c=biws,r=NONCE", "c=eSws,r=NONCE,p=PROOF"])
def test_what_is_no_final_message(clinic: Clinic, exchanges: Exchanges, change: str) -> None:
    login = Login(exchanges, "alice", token_of(clinic), clinic.time)
    login.first()
    right = dict(part.split("=", 1) for part in login.client.get_client_final().split(","))
    message = change.replace("NONCE", right["r"]).replace("PROOF", right["p"])
    with refuses(NotAllowed, "gateway-login"):
        exchanges.final({"exchange": login.said["exchange"], "message": message}, clinic.time)


# --- sessions -----------------------------------------------------------------------------------------------


def test_a_session_stands_for_its_token(clinic: Clinic, exchanges: Exchanges) -> None:
    at = [0.0]
    sessions, callers = Sessions(clock=lambda: at[0]), Callers(clinic.store)
    token = token_of(clinic, epsilon=0.5)
    text = sessions.begin(Login(exchanges, "alice", token, clinic.time).run())

    def caller() -> Any:
        found = sessions.find(text)
        return callers.holder(found.token, found.digest, clinic.time)

    assert caller() == callers.caller(token, clinic.time)
    assert len(text) == 68
    with refuses(NotAllowed, "gateway-login"):
        sessions.find(text[:-1] + ("0" if text[-1] != "0" else "1"))
    clinic.do("suspend", name="alice")
    with refuses(NotAllowed, "gateway-suspended"):
        caller()
    clinic.do("resume", name="alice")
    assert caller()
    clinic.do("rotate", id=token.split("_")[1])
    with refuses(NotAllowed, "gateway-login"):
        caller()


def test_a_session_ends_with_its_token_its_connection_or_its_time(clinic: Clinic, exchanges: Exchanges) -> None:
    at = [0.0]
    sessions, callers = Sessions(clock=lambda: at[0]), Callers(clinic.store)
    token = token_of(clinic)
    proven = Login(exchanges, "alice", token, clinic.time).run()
    texts = [sessions.begin(proven) for _ in range(3)]
    sessions.end(texts[0])
    with refuses(NotAllowed, "gateway-login"):
        sessions.find(texts[0])
    found = sessions.find(texts[1])
    at[0] += 12 * 3600
    with refuses(NotAllowed, "gateway-login"):
        sessions.find(texts[2])
    clinic.do("revoke", id=token.split("_")[1])
    with refuses(NotAllowed, "gateway-login"):
        callers.holder(found.token, found.digest, clinic.time)


def test_sessions_are_bounded_and_do_not_show_themselves(
    clinic: Clinic, exchanges: Exchanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scram, "MOST_SESSIONS", 2)
    sessions = Sessions()
    proven = Login(exchanges, "alice", token_of(clinic), clinic.time).run()
    texts = [sessions.begin(proven) for _ in range(3)]
    assert len(sessions) == 2
    assert not any(text in repr(vars(sessions)) for text in texts)
