"""Logging in over the wire: TLS, SCRAM with and without channel binding, limits, and what each refusal says."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from discreet.errors import NotAllowed
from discreet.gateway.desk.rates import Rate, Rates
from discreet.gateway.desk.server import tls_context
from discreet.gateway.settings import Settings
from discreet.gateway.wire import handshake
from discreet.gateway.wire.format import messages
from discreet.gateway.wire.format.messages import Stream
from discreet.gateway.wire.login import certificate_hash
from discreet.gateway.wire.server import Places

from ...refusing import refuses
from ..certificates import write_certificate
from ..clinics import Clinic
from . import raw
from .a_wire import Accounts, eventually, wire
from .conftest import Doors
from .raw import Client, startup


@pytest.fixture
def secure(tmp_path: Path, clinic: Clinic) -> Iterator[Doors]:
    """A server with TLS."""
    write_certificate(tmp_path, "127.0.0.1")
    pem = tmp_path / "certificate.pem"
    context = tls_context(Settings(certificate=str(pem), key=str(tmp_path / "key.pem")))
    bound = certificate_hash(pem.read_bytes())
    with wire(Accounts(clinic.store, lambda: clinic.time), context=context, certificate=bound) as running:
        made = Doors(running, clinic)
        yield made
        made.close()


def encrypted(doors: Doors, folder: Path) -> Client:
    client = doors.raw()
    client.send(struct.pack("!ii", 8, 80877103))
    assert client.exactly(1) == b"S"
    context = ssl.create_default_context(cafile=str(folder / "certificate.pem"))
    client.socket = context.wrap_socket(client.socket, server_hostname="localhost")
    return client


def test_libpq_binds_the_login_to_the_certificate(secure: Doors, tmp_path: Path) -> None:
    given = {"sslmode": "verify-full", "sslrootcert": str(tmp_path / "certificate.pem")}
    with psycopg.connect(secure.dsn(**given, channel_binding="require"), autocommit=True) as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute("rows 1000").fetchall()[-1][0] == 999
    assert secure.wire.vault.frames[0][1]["mechanism"] == "SCRAM-SHA-256-PLUS"
    with psycopg.connect(secure.dsn(**given, channel_binding="disable")):
        pass
    assert [one["mechanism"] for verb, one in secure.wire.vault.frames if verb == "scram_first"][-1] == "SCRAM-SHA-256"


def test_channel_binding_cannot_be_had_without_tls(doors: Doors) -> None:
    with pytest.raises(psycopg.OperationalError, match="channel binding"):
        psycopg.connect(doors.dsn(channel_binding="require", sslmode="disable"))
    with psycopg.connect(doors.dsn(sslmode="prefer")) as connection:
        assert not connection.pgconn.ssl_in_use


def test_a_client_that_was_not_offered_binding_is_not_let_in(secure: Doors, tmp_path: Path) -> None:
    """Somebody in between has removed the offer: the client says that it would have bound its login."""
    client = encrypted(secure, tmp_path)
    client.send(startup(user="alice"))
    assert b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0" in client.read().body
    first = b"y,,n=,r=abcdefgh"
    client.send(raw.packed("p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first))
    assert client.read().fields["C"] == "28P01"


def test_scramp_logs_in_over_tls(secure: Doors, tmp_path: Path) -> None:
    client = encrypted(secure, tmp_path)
    assert client.log_in("alice", secure.token, mechanism="SCRAM-SHA-256")[-1].kind == "Z"
    assert client.kinds(raw.query("rows 300")) == "T" + "D" * 300 + "CZ"
    client.socket.close()


def test_nothing_unencrypted_is_taken_over_into_tls(secure: Doors) -> None:
    client = secure.raw()
    client.send(struct.pack("!ii", 8, 80877103) + startup(user="alice"))
    answer = client.socket.recv(1000)
    assert answer[:1] in (b"E", b"")
    assert secure.wire.vault.frames == []


def test_no_login_without_encryption_off_this_machine(
    secure: Doors, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(handshake, "is_local", lambda address: False)
    client = secure.raw()
    client.send(startup(user="alice"))
    assert client.read().fields["C"] == "28000"
    assert secure.wire.vault.frames == []
    with psycopg.connect(secure.dsn(sslmode="require")):
        pass


@pytest.mark.parametrize("far", ["peername", "sockname"])
def test_both_ends_must_be_on_this_machine(doors: Doors, monkeypatch: pytest.MonkeyPatch, far: str) -> None:
    """Whoever comes through a forwarded port, or to an address of another network, is not on this machine."""
    real = Stream.address
    monkeypatch.setattr(Stream, "address", lambda self, end: "10.0.0.1" if end == far else real(self, end))
    client = doors.raw()
    client.send(startup(user="alice"))
    assert client.read().fields["C"] == "28000"


def test_a_session_ends_with_its_connection(doors: Doors) -> None:
    client = doors.client()
    [token] = [one["token"] for one in doors.log.opened]
    doors.wire.vault.sessions.find(token)
    client.send(raw.TERMINATE)
    eventually(lambda: [verb for verb, _ in doors.wire.vault.frames][-1] == "logout")
    with refuses(NotAllowed, "gateway-login"):
        doors.wire.vault.sessions.find(token)


def test_nobody_sends_many_statements_or_cancels_at_once(clinic: Clinic) -> None:
    rates = Rates(address=Rate(0.001, 4), token=Rate(0.001, 3))
    with wire(Accounts(clinic.store, lambda: clinic.time), rates=rates) as running:
        doors, tried = Doors(running, clinic), []
        client = doors.client()
        said = [client.ask(raw.query("rows 0"))[0] for _ in range(5)]
        assert [one.kind for one in said] == ["T", "T", "T", "E", "E"]
        assert said[-1].fields["C"] == "53000"
        assert len(doors.log.runs) == 3
        running.server.shared.cancels.cancel = lambda *numbers: tried.append(numbers)
        for key in range(9):
            one = doors.raw()
            one.send(struct.pack("!iiii", 16, 80877102, 1, key))
            with pytest.raises(EOFError):
                one.read()
        assert 0 < len(tried) <= 4
        doors.close()


def test_what_is_local() -> None:
    for address in ("127.0.0.1", "::1", "127.9.9.9", "::ffff:127.0.0.1"):
        assert handshake.is_local(address)
    for address in ("10.0.0.1", "::", "0.0.0.0", "::ffff:10.0.0.1", "fe80::1%eth0", "", "localhost"):
        assert not handshake.is_local(address)
    assert ipaddress.ip_address("127.9.9.9").is_loopback


def test_refusals_of_known_and_unknown_users_are_alike(doors: Doors) -> None:
    wrong = doors.token[:-1] + ("0" if doors.token[-1] != "0" else "1")
    found = []
    for user, password in (("alice", wrong), ("nobody", doors.token)):
        answer = doors.raw().log_in(user, password)
        assert answer[0].fields["C"] == "28P01"
        found.append(answer[0].body.replace(user.encode(), b"USER"))
    assert found[0] == found[1]
    assert [verb for verb, _ in doors.wire.vault.frames] == ["scram_first", "scram_final"] * 2


def test_a_suspended_account(doors: Doors) -> None:
    doors.clinic.do("suspend", name="alice")
    assert doors.raw().log_in("alice", doors.token)[0].fields["C"] == "28000"


def test_the_user_of_the_startup_message_counts(doors: Doors) -> None:
    assert doors.raw().log_in("alice", doors.token, named="bob")[-1].kind == "Z"
    assert doors.raw().log_in("bob", doors.token, named="alice")[0].fields["C"] == "28P01"


def test_failed_logins_make_an_address_wait(clinic: Clinic) -> None:
    with wire(Accounts(clinic.store, lambda: clinic.time), rates=Rates(free_failures=2)) as running:
        doors = Doors(running, clinic)
        for _ in range(3):
            assert doors.raw().log_in("alice", "wrong")[0].fields["C"] == "28P01"
        assert doors.raw().log_in("alice", doors.token)[0].fields["C"] == "53000"
        doors.close()


@pytest.mark.parametrize(
    "sent",
    [
        raw.query("rows 1"),
        raw.packed("p", b"SCRAM-SHA-256\0"),
        raw.packed("p", b"MD5\0\0\0\0\0"),
        raw.packed("p", b"SCRAM-SHA-256-PLUS\0\0\0\0\0"),
        raw.packed("p", b"SCRAM-SHA-256\0\0\0\0\5abc"),
        raw.packed("p", b"SCRAM-SHA-256\0\0\0\0\1\xff"),
        raw.packed("p", b"x" * 20_000),
        b"p\x7f\xff\xff\xff",
    ],
)
def test_what_is_no_login(doors: Doors, sent: bytes) -> None:
    client = doors.raw()
    client.send(startup(user="alice"))
    client.read()
    client.send(sent)
    error = client.read()
    assert (error.fields["S"], error.fields["C"]) == ("FATAL", "08P01")
    assert doors.log.opened == []


def test_a_client_that_says_nothing_or_too_slowly_is_let_go(clinic: Clinic) -> None:
    with wire(Accounts(clinic.store, lambda: clinic.time), patience=0.2) as running:
        for sent in (b"", b"\0", startup(user="alice")[:-3], struct.pack("!ii", 8, 80877103), startup(user="alice")):
            client = Client(running.connect())
            client.send(sent)
            while client.socket.recv(1000):
                pass
            client.close()
        eventually(lambda: running.server.places.count == 0)


def test_a_message_that_does_not_end_is_given_up(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    client = doors.client()
    monkeypatch.setattr(messages, "PATIENCE", 0.1)
    client.send(b"Q\0\0\1\0rows")
    assert client.socket.recv(1000) == b""


def test_connections_before_the_login_are_few(clinic: Clinic) -> None:
    places = Places(most=6, waiting=4, each=2, account=3)
    with wire(Accounts(clinic.store, lambda: clinic.time), places=places) as running:
        doors = Doors(running, clinic)
        inside = [doors.client() for _ in range(3)]
        assert doors.raw().log_in("alice", doors.token)[-1].fields["C"] == "53300"  # of the account
        waiting = [doors.raw() for _ in range(2)]
        for one in waiting:
            one.send(startup(user="alice"))
            assert one.read().kind == "R"
        third = doors.raw()
        assert third.read().fields["C"] == "53300"  # of the address
        waiting[0].close()
        inside[0].send(raw.TERMINATE)
        with pytest.raises(EOFError):
            inside[0].read()
        eventually(lambda: places.count == 3)
        assert doors.client().kinds(raw.query("rows 0")) == "TCZ"
        doors.close()


def test_places() -> None:
    places = Places(most=3, waiting=2, each=1, account=1)
    assert places.enter("a")
    assert not places.enter("a")
    assert places.enter("b")
    assert not places.enter("c")
    assert places.move("a", "alice")
    assert places.enter("a")
    assert not places.enter("c")
    assert not places.move("a", "alice")
    places.leave("a", "alice")
    places.leave("a", "alice")
    places.leave("b", None)
    assert (places.count, places.waiting, places._waiting, places._accounts) == (0, 0, {}, {})


def test_a_hash_of_a_certificate_is_that_of_its_signature(tmp_path: Path) -> None:
    write_certificate(tmp_path)
    pem = (tmp_path / "certificate.pem").read_bytes()
    found = certificate_hash(pem)
    assert found is not None
    assert len(found) == 44  # SHA-256


def test_keepalive_is_on(doors: Doors) -> None:
    client = doors.client()
    [connection] = doors.wire.server._connections
    raw_socket = connection._stream._writer.get_extra_info("socket")
    assert raw_socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    client.close()
