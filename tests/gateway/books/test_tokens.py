"""Tokens: a right one is recognized, and any other is refused in the same way."""

from __future__ import annotations

import base64
import hashlib
import hmac
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.errors import InvalidArgument, NotAllowed
from discreet.gateway.books import tokens
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.books.tokens import Callers, authenticate

from ...refusing import refuses
from ..clinics import Clinic


def refusal(clinic: Clinic, token: object) -> tuple[type, str, str]:
    with pytest.raises(NotAllowed) as info:
        authenticate(clinic.store, token, clinic.time)  # type: ignore[arg-type]
    return type(info.value), info.value.code, str(info.value)


def test_every_refusal_is_the_same(clinic: Clinic) -> None:
    clinic.open("alice")
    right = clinic.do("token", account="alice", expires="1d")["token"]
    revoked = clinic.do("token", account="alice")
    clinic.do("revoke", id=revoked["id"])
    wrong = right[:-1] + ("0" if right[-1] != "0" else "1")
    unknown = f"dsc_{'0' * 16}_{right[-64:]}"
    assert clinic.caller(right).account == "alice"
    found = {refusal(clinic, one) for one in (wrong, unknown, revoked["token"], "", "dsc_x_y", None, 7, right.upper())}
    clinic.time += 86_400
    found.add(refusal(clinic, right))
    assert len(found) == 1
    assert next(iter(found))[1] == "gateway-login"


def test_only_the_holder_of_a_right_token_learns_of_a_suspension(clinic: Clinic) -> None:
    clinic.open("alice")
    right = clinic.do("token", account="alice")["token"]
    clinic.do("suspend", name="alice")
    assert refusal(clinic, right)[1] == "gateway-suspended"
    assert refusal(clinic, right[:-1] + "g")[1] == "gateway-login"
    clinic.do("resume", name="alice")
    assert clinic.caller(right).account == "alice"


def test_no_secret_is_in_the_database_or_in_a_repr(clinic: Clinic, tmp_path: Path) -> None:
    link = clinic.open("alice")
    session = clinic.do("login", None, link=link)["token"]
    made = clinic.do("token", account="alice")["token"]
    rotated = clinic.do("rotate", id=made.split("_")[1])["token"]
    clinic.store.backup(tmp_path / "copy")
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert b"alice" in stored
    for secret in (link, *(token.split("_")[2] for token in (session, made, rotated))):
        assert secret.encode() not in stored
        assert bytes.fromhex(secret) not in stored
    assert made not in repr(tokens.new_token(made.split("_")[1]))


def test_a_secret_has_256_bits_and_the_verifier_is_that_of_postgresql(clinic: Clinic) -> None:
    made = tokens.new_token()
    assert len(made.text.split("_")[2]) == 64
    assert made.digest == hashlib.sha256(made.text.split("_")[2].encode()).hexdigest()
    clinic.open("alice")
    with clinic.store.write() as execute:
        tokens.add_token(execute, made, "alice", name="a", scopes=(), now=clinic.time, lifetime=1)
        [(scram,)] = execute("SELECT scram FROM tokens WHERE id = ?", made.id)
    head, _, rest = scram.partition(":")
    salt, _, keys = rest.partition("$")
    stored, server = (base64.b64decode(part) for part in keys.split(":"))
    assert (head, len(base64.b64decode(salt))) == ("SCRAM-SHA-256$4096", 16)
    salted = hashlib.pbkdf2_hmac("sha256", made.text.encode(), base64.b64decode(salt), 4096)
    assert stored == hashlib.sha256(hmac.new(salted, b"Client Key", "sha256").digest()).digest()
    assert server == hmac.new(salted, b"Server Key", "sha256").digest()


def test_the_verifier_of_the_rfc() -> None:
    """RFC 7677 has user "user" with password "pencil": from its messages follows its server key."""
    made = tokens.scram_verifier("pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
    message = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    server = base64.b64decode(made.rpartition(":")[2])
    signature = base64.b64encode(hmac.new(server, message, "sha256").digest())
    assert signature == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_a_token_without_scopes_cannot_make_others(clinic: Clinic) -> None:
    clinic.open("alice")
    plain = clinic.caller(clinic.do("token", account="alice")["token"])
    assert plain.scopes == {"ask", "replay", "explain"}
    for verb, arguments in (("token", {}), ("tokens", {}), ("revoke", {"id": plain.token}), ("rotate", {"id": "0"})):
        with refuses(NotAllowed, "gateway-role"):
            clinic.do(verb, plain, **arguments)


def test_scopes_stay_within_the_role_and_within_the_token_that_makes_them(clinic: Clinic) -> None:
    alice = clinic.login("alice")
    with refuses(InvalidArgument, "gateway-scope"):
        clinic.do("token", alice, scopes=["metrics"])
    for odd in ([], "ask", [7], ["ask", "sudo"]):
        with refuses(InvalidArgument, "gateway-scope"):
            clinic.do("token", alice, scopes=odd)
    narrow = clinic.caller(clinic.do("token", alice, scopes=["manage", "explain"])["token"])
    with refuses(NotAllowed, "gateway-role"):
        clinic.do("token", narrow, scopes=["ask"])
    with refuses(NotAllowed, "gateway-role"):
        clinic.do("rotate", narrow, id=alice.token)
    assert clinic.caller(clinic.do("token", narrow, scopes=["explain"])["token"]).scopes == {"explain"}


def test_a_token_with_its_own_limit_makes_no_others(clinic: Clinic) -> None:
    alice = clinic.login("alice")
    small = clinic.caller(clinic.do("token", alice, scopes=["ask", "manage"], epsilon=0.1)["token"])
    with refuses(NotAllowed, "gateway-role"):
        clinic.do("token", small)


def test_other_people_s_tokens_look_like_none(clinic: Clinic) -> None:
    alice, bob = clinic.login("alice"), clinic.login("bob")
    for verb in ("revoke", "rotate"):
        errors = []
        for identity in (bob.token, "0" * 16, "x", 7):
            with pytest.raises(InvalidArgument) as info:
                clinic.do(verb, alice, id=identity)
            errors.append((info.value.code, str(info.value)))
        assert set(errors) == {("gateway-not-found", "There is no token with this id.")}
    with refuses(NotAllowed, "gateway-role"):
        clinic.do("tokens", alice, account="bob")
    with refuses(NotAllowed, "gateway-role"):
        clinic.do("revoke", alice, account="bob")
    assert [one["id"] for one in clinic.do("tokens", alice)["tokens"]] == [alice.token]
    assert {one["account"] for one in clinic.do("tokens")["tokens"]} == {"alice", "bob"}


def test_a_rotated_token_keeps_all_but_its_secret(clinic: Clinic) -> None:
    clinic.open("alice")
    old = clinic.do("token", account="alice", epsilon=0.5, expires="1d")
    new = clinic.do("rotate", id=old["id"])
    assert refusal(clinic, old["token"])[1] == "gateway-login"
    assert {**old, "token": new["token"]} == new
    clinic.time += 86_400
    with refuses(InvalidArgument, "gateway-token-ended"):
        clinic.do("rotate", id=old["id"])


def test_revoking_an_account_ends_its_tokens_and_links(clinic: Clinic) -> None:
    clinic.open("alice")
    made = [clinic.do("token", account="alice")["token"] for _ in range(2)]
    link = clinic.do("link", name="alice")["link"].split("#")[1]
    assert len(clinic.do("revoke", account="alice")["revoked"]) == 2
    assert {refusal(clinic, one)[1] for one in made} == {"gateway-login"}
    with refuses(NotAllowed, "gateway-login"):
        clinic.do("login", None, link=link)


def test_a_leaked_token_is_revoked_by_whoever_has_it_and_the_reply_tells_nothing(clinic: Clinic) -> None:
    clinic.open("alice")
    made = clinic.do("token", account="alice")["token"]
    replies = [clinic.do("leaked", None, token=one) for one in ("x", 7, made[:-1] + "0z", f"{made[:20]}_{'0' * 64}")]
    assert clinic.caller(made).account == "alice"
    replies += [clinic.do("leaked", None, token=made) for _ in range(2)]
    assert refusal(clinic, made)[1] == "gateway-login"
    assert replies == [{"received": True}] * 6


@pytest.mark.parametrize(
    "odd", [{"expires": "0s"}, {"expires": "x"}, {"expires": "4000d"}, {"name": ""}, {"name": "\n"}]
)
def test_odd_terms_of_a_token(clinic: Clinic, odd: dict[str, str]) -> None:
    clinic.open("alice")
    with pytest.raises(InvalidArgument):
        clinic.do("token", account="alice", **odd)


# --- callers that were seen before ------------------------------------------------------------------------


def test_a_caller_is_looked_up_once_as_long_as_nothing_changes(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    clinic.open("alice")
    made, looked = clinic.do("token", account="alice", expires="1d")["token"], []
    right, original = clinic.caller(made), tokens.holder
    monkeypatch.setattr(tokens, "holder", lambda *given: looked.append(1) or original(*given))
    callers = Callers(clinic.store)
    assert callers.caller(made, clinic.time) == callers.caller(made, clinic.time) == right
    assert len(looked) == 1
    with refuses(NotAllowed, "gateway-login"):
        callers.caller(made, clinic.time + 86_400)
    with refuses(NotAllowed, "gateway-login"):
        callers.caller(None, clinic.time)


CHANGES: dict[str, Callable[[Clinic, str], object]] = {
    "suspend": lambda clinic, identity: clinic.do("suspend", name="alice"),
    "revoke": lambda clinic, identity: clinic.do("revoke", id=identity),
    "revoke all": lambda clinic, identity: clinic.do("revoke", account="alice"),
    "rotate": lambda clinic, identity: clinic.do("rotate", id=identity),
    "leaked": lambda clinic, identity: clinic.do("leaked", None, token=clinic.made),  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_by_another_process_is_seen_at_once(anywhere: Clinic, change: str) -> None:
    anywhere.open("alice")
    made = anywhere.do("token", account="alice")
    anywhere.made = made["token"]  # type: ignore[attr-defined]
    other = GatewayStore(anywhere.target)  # what another process would have
    callers = Callers(other)
    assert callers.caller(made["token"], anywhere.time).account == "alice"
    CHANGES[change](anywhere, made["id"])
    with refuses(NotAllowed, "gateway-suspended" if change == "suspend" else "gateway-login"):
        callers.caller(made["token"], anywhere.time)
    other.close()


@pytest.mark.slow
def test_a_suspension_by_a_real_process_is_seen_at_once(clinic: Clinic) -> None:
    clinic.open("alice")
    made = clinic.do("token", account="alice")["token"]
    callers = Callers(clinic.store)
    callers.caller(made, clinic.time)
    code = (
        "import sys\n"
        "from discreet.gateway.books.accounts import set_suspended\n"
        "from discreet.gateway.books.store import GatewayStore\n"
        "from discreet.gateway.books.tokens import COMMAND_LINE\n"
        "with GatewayStore(sys.argv[1]) as store:\n"
        "    set_suspended(store, 'alice', suspended=True, by=COMMAND_LINE, now=1e9)\n"
    )
    subprocess.run([sys.executable, "-c", code, clinic.target], check=True)
    with refuses(NotAllowed, "gateway-suspended"):
        callers.caller(made, clinic.time)


def test_an_account_makes_few_tokens_in_a_day(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MOST_A_DAY", 2)
    alice = clinic.login("alice")
    for _ in range(2):
        clinic.do("revoke", alice, id=clinic.do("token", alice)["id"])
    with refuses(NotAllowed, "gateway-role"):
        clinic.do("token", alice)
    clinic.do("token", account="alice")  # the owner may
    clinic.time += 86_401
    clinic.do("token", alice)
