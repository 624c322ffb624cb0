"""Clients with vouchers: from a voucher to a ticket, a report, and the counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from discreet.cli.shuffle import report
from discreet.cli.shuffle import ticket as ticket_command
from discreet.cli.shuffle.options import files_of
from discreet.errors import InvalidArgument, NotAllowed, ServiceUnavailable
from discreet.shuffle.channel import admission, blind_rsa, client
from discreet.shuffle.channel.admission import TicketRequest
from discreet.shuffle.channel.client import Client
from discreet.shuffle.channel.task import Task

from ....refusing import refuses
from ..polls import CHOICES, Poll, free_port, serve, signer
from .tickets import an_issuer, ticket, upload


@pytest.fixture
def answers(poll: Poll, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[bytes]]:
    """An issuer without a network, which may answer something else."""

    def play(*codes: int, voucher: str = "") -> list[bytes]:
        at, left, asked = an_issuer(poll, voucher), list(codes), list[bytes]()

        def post(url: str, *, content: bytes, headers: dict[str, str]) -> httpx.Response:
            assert url.endswith("/v1/admit")
            asked.append(content)
            code = left.pop(0) if left else 0
            if code:
                return httpx.Response(code)
            said = at.admit(headers["Authorization"].removeprefix("Bearer "), content)
            return httpx.Response({"signed": 200, "used": 409, "malformed": 400}[said.outcome], content=said.signature)

        monkeypatch.setattr(httpx, "post", post)
        monkeypatch.setattr(client.time, "sleep", lambda seconds: None)
        return asked

    return play


def test_a_client_gets_its_ticket(poll: Poll, answers: Callable[..., list[bytes]], tmp_path: Path) -> None:
    voucher, kept = admission.new_voucher(), tmp_path / "request"
    asked = answers(500, 503, voucher=voucher)
    first = Client.admitted(poll.task, voucher, save=kept)
    assert len(set(asked)) == 1  # the same bytes, as often as it takes
    assert kept.stat().st_mode & 0o777 == 0o600
    request = TicketRequest.load(kept, poll.task.issuer_key, poll.task.hash)
    assert Client.admitted(poll.task, voucher, request)._token == first._token
    assert request.drawn.hex() not in repr(request)
    assert str(request.inverse) not in repr(request)
    with refuses(NotAllowed, "shuffle-voucher-used"):
        Client.admitted(poll.task, voucher)
    with refuses(InvalidArgument, "shuffle-not-accepted"):
        Client.admitted(poll.task, admission.new_voucher())
    with refuses(InvalidArgument, "shuffle-not-accepted"):
        Client.admitted(poll.task, "Ada")
    with refuses(InvalidArgument, "file-exists"):
        Client.admitted(poll.task, voucher, save=kept)
    kept.write_text("{}")
    with refuses(InvalidArgument, "file-not-readable"):
        TicketRequest.load(kept, poll.task.issuer_key, poll.task.hash)
    answers(*[500] * 5, voucher=voucher)
    with pytest.raises(ServiceUnavailable):
        Client.admitted(poll.task, voucher)
    answers(200, voucher=voucher)  # an empty answer
    with refuses(InvalidArgument, "shuffle-issuer-answer"):
        Client.admitted(poll.task, voucher)


def a_request_is_for_one_task(folder: Path) -> None:
    """Another task's issuer would sign it too, and its voucher would be lost."""
    modulus, own, other = signer().modulus, bytes(32), bytes(31) + b"1"
    TicketRequest.made(modulus, own).save(folder / "request")
    TicketRequest.load(folder / "request", modulus, own)
    with refuses(InvalidArgument, "file-not-readable"):
        TicketRequest.load(folder / "request", modulus, other)
    names = {admission.request_file(folder / "poll.toml", task, "ab" * 16) for task in (own, other)}
    assert len(names) == 2


def test_a_request_is_for_one_task(tmp_path: Path) -> None:
    a_request_is_for_one_task(tmp_path)


def a_report_with_a_voucher_is_drawn_once(poll: Poll) -> None:
    """If the shuffler does not answer, the next try sends the same bytes. In the end no file is left."""
    voucher, others, task, sent = admission.new_voucher(), admission.new_voucher(), poll.task, list[bytes]()
    at, codes = an_issuer(poll, voucher, others), [500] * 5 + [200]

    def post(address: str, path: str, token: str, content: bytes, name: str) -> tuple[int, bytes]:
        if name == "issuer":
            return 200, at.admit(token, content).signature
        sent.append(content)
        if (code := codes.pop(0)) == 500:
            raise ServiceUnavailable("")
        return code, b""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "_post", post)
        for _ in range(5):
            with pytest.raises(ServiceUnavailable):
                report._report_with(poll.path, task, voucher, CHOICES[0])
        files = [*poll.path.parent.glob("*.ticket"), *poll.path.parent.glob("*.report")]
        assert len(files) == 2
        assert {one.stat().st_mode & 0o777 for one in files} == {0o600}
        report._report_with(poll.path, task, voucher, CHOICES[1])
        assert len(set(sent)) == 1, "a report is drawn again"
        assert not any(one.exists() for one in files)
        codes += [409]  # as after a lost answer: nothing is left that links a person to a ticket
        with refuses(NotAllowed, "shuffle-reported-already"):
            report._report_with(poll.path, task, others, CHOICES[1])
        assert not [*poll.path.parent.glob("*.ticket"), *poll.path.parent.glob("*.report")]


def test_a_report_with_a_voucher_is_drawn_once(poll: Poll) -> None:
    a_report_with_a_voucher_is_drawn_once(poll)


def test_a_ticket_can_be_had_before_the_report(poll: Poll, answers: Callable[..., list[bytes]], capsys) -> None:
    voucher = admission.new_voucher()
    asked = answers(voucher=voucher)
    ticket_command.ticket(poll.path, f" {voucher.upper()}\n")
    own = bytes.fromhex(capsys.readouterr().out)
    assert poll.shuffler().accept([upload(poll.task, own)]) == ["accepted"]
    assert len(asked) == 1
    assert not [*poll.path.parent.glob("*.ticket")]


def test_every_person_sends_the_same_number_of_bytes(poll: Poll) -> None:
    made = [TicketRequest.made(poll.task.issuer_key, poll.task.hash) for _ in range(50)]
    assert {len(one.blinded) for one in made} == {256}
    assert {len(ticket(poll.task)) for _ in range(5)} == {336} == {poll.task.shape.token}


@pytest.mark.slow
def test_people_vote_with_vouchers(tmp_path: Path, monkeypatch, capsys) -> None:
    """From `discreet shuffle init --admission` to the counts, through three services."""
    from discreet.cli import main

    def run(*arguments: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as caught:
            main(["shuffle", *map(str, arguments)])
        said = capsys.readouterr()
        return caught.value.code or 0, said.out + said.err

    monkeypatch.chdir(tmp_path)
    small = ("--clients", 12, "--epsilon", 8, "--delta", 0.01, "--choices", "IL,US,DE")
    status, said = run("init", "poll.toml", *small, "--admission")
    assert (status, "poll.issuer.key: for the issuer only." in said) == (0, True)
    assert len(Task.load(Path("poll.toml")).issuer_key) == blind_rsa.USUAL // 8
    status, listed = run("vouchers", "poll.toml", 12)
    Path("people.txt").write_text(listed)
    files = files_of(tmp_path / "poll.toml")
    poll = Poll(tmp_path / "poll.toml", str(files.shuffler_store), str(files.analyzer_store), str(files.ledger))
    port = free_port()
    analyzer = serve(poll, "analyzer", tmp_path / "analyzer.log", port=port)
    shuffler = serve(poll, "shuffler", tmp_path / "shuffler.log", "--analyzer", f"http://127.0.0.1:{port}")
    signs = serve(
        replace(poll, analyzer_at=str(files.issuer_store)), "issuer", tmp_path / "issuer.log", "--people", "people.txt"
    )
    try:
        text = poll.path.read_text().replace("http://127.0.0.1:7002", shuffler.url)
        text = text.replace("http://127.0.0.1:7003", signs.url)
        poll.path.write_text(text.replace("http://127.0.0.1:7001", analyzer.url))
        people = listed.split()
        for number, voucher in enumerate(people):
            status, said = run("report", "poll.toml", ("IL", "US", "DE")[number % 3], "--voucher", voucher)
            assert (status, "Your report was taken." in said) == (0, True), said
        assert not list(tmp_path.glob("*.ticket"))
        status, said = run("report", "poll.toml", "IL", "--voucher", people[0])
        assert (status != 0, "shuffle-voucher-used" in said) == (True, True)
        assert run("report", "poll.toml", "IL")[0] != 0
        status, said = run("close", "poll.toml")
        assert (status, "12 reports" in said) == (0, True)
    finally:
        for service in (analyzer, shuffler, signs):
            service.stop()
