"""`discreet shuffle`: from an empty folder to a table with error bars, and one line for whatever goes wrong."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from discreet.cli import main
from discreet.cli.shuffle.options import files_of
from discreet.errors import InvalidArgument
from discreet.shuffle.channel import client, keys
from discreet.shuffle.channel.services.page import draw_page
from discreet.shuffle.channel.task import Task
from discreet.shuffle.simulation import Simulation, TrustModel

from ...refusing import refuses
from .polls import Poll, free_port, serve

SMALL = ("--clients", 12, "--epsilon", 8, "--delta", 0.01, "--choices", "IL,US,DE")


class Said(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Said]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(client, "TRIES", 1)

    def command(*arguments: object) -> Said:
        with pytest.raises(SystemExit) as caught:
            main(["shuffle", *map(str, arguments)])
        code = caught.value.code
        return Said(code if isinstance(code, int) else 0, *capsys.readouterr())

    return command


@pytest.mark.slow
def test_from_an_empty_folder_to_a_table(run, tmp_path: Path, capsys, monkeypatch) -> None:
    assert run("init", "poll.toml", *SMALL).status == 0
    files = files_of(tmp_path / "poll.toml")
    poll = Poll(tmp_path / "poll.toml", str(files.shuffler_store), str(files.analyzer_store), str(files.ledger))
    port = free_port()
    analyzer = serve(poll, "analyzer", tmp_path / "analyzer.log", port=port)
    shuffler = serve(poll, "shuffler", tmp_path / "shuffler.log", "--analyzer", f"http://127.0.0.1:{port}")
    try:
        text = poll.path.read_text().replace("http://127.0.0.1:7002", shuffler.url)
        poll.path.write_text(text.replace("http://127.0.0.1:7001", analyzer.url))
        said = run("report", "poll.toml", "IL")
        assert (said.status, said.err) == (0, "")
        promised, taken = said.out.splitlines()
        assert promised.startswith("Promised to you: ε = 8, δ = 0.01")  # before anything is sent
        assert "do not work together" in promised
        assert taken == "Your report was taken."
        token = run("tokens", "poll.toml", 2).out.split()[1]
        assert run("report", "poll.toml", "IL", "--token", token).status == 0
        said = run("report", "poll.toml", "US", "--token", token)
        assert (said.status, "This client has already reported." in said.err) == (3, True)
        said = run("report", "poll.toml", "US", "--token", "00" * 48)
        assert (said.status, "the token or the task file" in said.err) == (2, True)
        assert run("close", "poll.toml") == Said(3, "2 of 12 reports: nothing is released\n", "")
        for _ in range(10):
            assert run("report", "poll.toml", "DE").status == 0
        said = run("close", "poll.toml")
        assert said.status == 0, said.err
        lines = said.out.splitlines()
        assert [line.split()[0] for line in lines[2:5]] == ["IL", "US", "DE"]
        assert all("±" in line for line in lines[2:5])
        assert "12 reports; ε = 8, δ = 0.01; receipt 1-" in lines[5]
        found = json.loads(run("close", "poll.toml", "--json").out)
        assert found["reports"] == 12
        assert found["error"] > 0
        assert run("report", "poll.toml", "DE").err.startswith("error [shuffle-closed]: ")
        assert keys.AnalyzerKeys.load(files.analyzer_key).inner == b""
    finally:
        shuffler.stop()
        analyzer.stop()
    said = run("close", "poll.toml")
    assert (said.status, said.out, "does not answer" in said.err) == (1, "", True)
    assert run("report", "poll.toml", "DE").status == 1
    assert (tmp_path / "shuffler.log").read_text() == f"shuffler: {shuffler.url}\n"


def test_init_by_default(run, tmp_path: Path) -> None:
    said = run("init", "poll.toml")
    assert said.status == 0
    assert "1000 reports or more" in said.out
    found = tomllib.loads((tmp_path / "poll.toml").read_text())
    assert (found["protocol"]["honest"], found["protocol"]["minimum"], found["epsilon"]) == (0.8, 1000, 1.0)
    assert "IL" in found["protocol"]["choices"]
    for name in ("poll.shuffler.key", "poll.analyzer.key"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    text = (tmp_path / "poll.toml").read_text()
    secrets = [
        keys.ShufflerKeys.load(tmp_path / "poll.shuffler.key"),
        keys.AnalyzerKeys.load(tmp_path / "poll.analyzer.key"),
    ]
    assert secrets[0].operator == secrets[1].operator
    assert not any(value.hex() in text + said.out for one in secrets for value in vars(one).values())
    again = run("init", "poll.toml")
    assert (again.status, "exists" in again.err) == (2, True)


def test_init_of_a_bit(run, tmp_path: Path) -> None:
    assert run("init", "bit.toml", "--bit", "--clients", 500, "--minimum", 400, "--honest", 0.9).status == 0
    task = Task.load(tmp_path / "bit.toml")
    assert (task.protocol.minimum, task.protocol.messages, task.protocol.length) == (400, 1, 1)
    assert run("report", "bit.toml", "maybe").err == "error [unknown-answer]: This poll takes yes or no, or 1 or 0.\n"


@pytest.mark.some_quick(10)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("init", "x.toml", "--bit", "--choices", "a,b"), "Remove one of them"),
        (("init", "x.toml", "--choices", "a,,b"), "at least two choices"),
        (("init", "x.toml", "--choices", "a"), "two choices"),
        (("init", "x.toml", "--epsilon", 0), "epsilon"),
        (("init", "x.toml", "--delta", 0), "delta"),
        (("init", "x.toml", "--honest", 1.5), "honest"),
        (("init", "x.toml", "--minimum", 2000), "minimum"),
        (("init", "nowhere/x.toml"), "cannot be written"),
        (("report", "none.toml", "IL"), "Make it with: discreet shuffle init none.toml"),
        (("shuffler", "none.toml"), "Make it with"),
        (("analyzer", "none.toml"), "Make it with"),
        (("close", "none.toml"), "Make it with"),
        (("tokens", "none.toml", 1), "Make it with"),
        (("report", "bad.toml", "IL"), "cannot be read as a task"),
        (("report", "old.toml", "IL"), "not a task of this version"),
        (("report", "empty.toml", "IL"), "no section [keys]"),
        (("report", "odd.toml", "IL"), "kind must be one of"),
        (("report", "good.toml", "my secret"), "not one of the poll's choices: IL, US, DE."),
        (("report", "good.toml", "IL", "--token", "xyz"), "must be hexadecimal digits"),
        (("report", "good.toml", "IL", "--token", "00"), "96 hexadecimal digits"),
        (("shuffler", "good.toml", "--host", "0.0.0.0"), "--behind-proxy"),
        (("analyzer", "good.toml", "--host", "10.1.2.3"), "--certificate"),
        (("shuffler", "good.toml", "--certificate", "x.pem"), "both --certificate and --certificate-key"),
        (("analyzer", "good.toml", "--certificate", "x.pem", "--certificate-key", "y.pem"), "cannot be read"),
        (("close", "good.toml", "--page", "nowhere/results.html"), "cannot be written"),
        (("check", "none.toml"), "Make it with"),
        (("check", "good.toml", "--hash", "00"), "not the one given with --hash"),
        (("check", "weak.toml"), "does not guarantee"),
        (("shuffler", "alone.toml"), "alone.shuffler.key cannot be read: No such file"),
        (("shuffler", "good.toml", "--key", "good.analyzer.key"), "not a key file"),
        (("shuffler", "good.toml", "--store", "nowhere/x.db"), "does not exist. Create it"),
        (("shuffler", "good.toml", "--key", "open.key"), "chmod 600"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path: Path, arguments: tuple[object, ...], words: str) -> None:
    assert run("init", "good.toml", *SMALL).status == 0
    good = (tmp_path / "good.toml").read_text()
    (tmp_path / "alone.toml").write_text(good)
    (tmp_path / "bad.toml").write_bytes(b"\xff= nothing")
    (tmp_path / "old.toml").write_text('format = "discreet/shuffle/v0"')
    (tmp_path / "empty.toml").write_text(good.splitlines()[2])
    (tmp_path / "odd.toml").write_text(good.replace('"histogram with fakes"', '"poetry"'))
    (tmp_path / "weak.toml").write_text(re.sub(r"fakes = [0-9.]+", "fakes = 0.001", good))
    (tmp_path / "open.key").write_text((tmp_path / "good.shuffler.key").read_text())
    (tmp_path / "open.key").chmod(0o644)
    said = run(*arguments)
    assert said.status == 2
    assert words in said.err
    assert said.err.startswith("error [")
    assert said.err.count("\n") == 1
    assert "my secret" not in said.err


def test_help_names_every_step(run) -> None:
    said = run("--help")
    assert all(name in said.out for name in ("init", "check", "tokens", "analyzer", "shuffler", "report", "close"))


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        ({"state": "received", "refused": "budget", "why": "The limit is reached."}, 4, "The limit is reached."),
        ({"state": "received", "refused": "failed", "why": "The disk is full."}, 1, "The disk is full."),
        ({"state": "received"}, 1, "The batch is safe: run discreet shuffle close again."),
    ],
)
def test_what_the_analyzer_refuses_is_told(run, monkeypatch, answer: dict, status: int, words: str) -> None:
    assert run("init", "poll.toml", *SMALL).status == 0
    told = {"state": "sealed", "reports": 12, "minimum": 12, "trouble": []}

    def request(method: str, url: str, **given: object) -> httpx.Response:
        return httpx.Response(200, json=answer if url.endswith("/result") else told)

    monkeypatch.setattr(httpx, "request", request)
    said = run("close", "poll.toml", "--wait", 0)
    assert said.status == status
    assert words in said.err
    assert said.out == ""


@pytest.mark.parametrize(("status", "body"), [(404, b"not found"), (301, b""), (200, b"[]")])
def test_what_is_no_service_is_told(run, monkeypatch, status: int, body: bytes) -> None:
    assert run("init", "poll.toml", *SMALL).status == 0
    monkeypatch.setattr(httpx, "request", lambda *_, **__: httpx.Response(status, content=body))
    said = run("close", "poll.toml")
    assert (said.status, said.out) == (1, "")
    assert "is not a shuffler" in said.err


def test_a_batch_that_is_withheld_is_told(run, monkeypatch) -> None:
    assert run("init", "poll.toml", *SMALL).status == 0
    told = {"state": "sealed", "reports": 12, "minimum": 12, "trouble": []}
    found = {"reports": 12, "heard": 6, "needed": 9}
    monkeypatch.setattr(
        httpx, "request", lambda method, url, **_: httpx.Response(200, json=found if url.endswith("/result") else told)
    )
    assert run("close", "poll.toml") == Said(3, "6 of 9 reports can be read: nothing is released\n", "")
    said = run("close", "poll.toml", "--json")
    assert (said.status, json.loads(said.out)) == (3, found)


def test_the_page_is_written_to_a_file(run, monkeypatch, tmp_path: Path) -> None:
    assert run("init", "poll.toml", *SMALL).status == 0
    told = {"state": "sealed", "reports": 12, "minimum": 12, "trouble": []}
    found = {"reports": 12, "heard": 12, "value": [["IL", 9.5], ["US", 2], ["DE", 1]], "error": 3.25}
    found |= {"confidence": 0.95, "guarantee": "ε = 8, δ = 0.01", "receipt": "1-0f49", "not_private": False}
    monkeypatch.setattr(
        httpx, "request", lambda method, url, **_: httpx.Response(200, json=found if url.endswith("/result") else told)
    )
    assert run("close", "poll.toml", "--page", "results.html").status == 0
    assert (tmp_path / "results.html").read_bytes() == draw_page(Task.load(tmp_path / "poll.toml"), found)


def test_a_client_without_a_token_asks_the_shuffler_of_an_open_poll(run, monkeypatch, tmp_path: Path) -> None:
    assert run("init", "poll.toml", *SMALL).status == 0
    task, secrets = Task.load(tmp_path / "poll.toml"), keys.ShufflerKeys.load(tmp_path / "poll.shuffler.key")
    (tmp_path / "alone.toml").write_text((tmp_path / "poll.toml").read_text())
    token, sent = keys.token_for(secrets.registration, task.hash), []

    def post(url: str, *, headers: dict[str, str], content: bytes) -> httpx.Response:
        sent.append((url.removeprefix(task.shuffler), headers.get("Authorization"), len(content)))
        return httpx.Response(200, content=token if url.endswith("/v1/token") else b"accepted\n")

    monkeypatch.setattr(httpx, "post", post)
    said = run("report", "alone.toml", "IL")
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith("Promised to you")
    assert sent == [("/v1/token", None, 0), ("/v1/report", f"Bearer {token.hex()}", task.shape.report)]
    # a wrong answer is refused before anything is sent
    assert run("report", "alone.toml", "XX").status == 2
    assert len(sent) == 2
    monkeypatch.setattr(httpx, "post", lambda *_, **__: httpx.Response(400, content=b"not accepted\n"))
    said = run("report", "alone.toml", "IL")
    assert (said.status, "error [command-token]: This poll is not open" in said.err) == (2, True)


def test_check_says_what_to_pin(run, monkeypatch, tmp_path: Path) -> None:
    assert run("init", "poll.toml", *SMALL).status == 0
    task = Task.load(tmp_path / "poll.toml")
    said = run("check", "poll.toml", "--hash", task.hash.hex().upper())
    assert said.status == 0
    assert task.hash.hex() in said.out
    assert "The noise keeps ε = 8, δ = 0.01." in said.out
    assert f"{task.shape.report} bytes" in said.out
    seen: list[str] = []

    def get(url: str, **_: object) -> httpx.Response:
        seen.append(url)
        return httpx.Response(200, content=task.canonical)

    monkeypatch.setattr(httpx, "get", get)
    at = "https://shuffler.example/v1/task"
    said = run("check", at, "--hash", task.hash.hex())
    assert (said.status, seen, task.hash.hex() in said.out) == (0, [at], True)
    assert "(https://shuffler.example)" in said.out
    assert run("check", at, "--hash", "00" * 32).err.startswith("error [shuffle-wrong-task]: ")
    monkeypatch.setattr(httpx, "get", lambda *_, **__: httpx.Response(404))
    assert run("check", at).err.startswith("error [shuffle-task-unreadable]: ")

    def fail(*_: object, **__: object) -> httpx.Response:
        raise httpx.ConnectError("nobody")

    monkeypatch.setattr(httpx, "get", fail)
    assert run("check", at).status == 1


@pytest.mark.parametrize("path", [".", "/", ""])
def test_a_folder_is_no_task(path: str) -> None:
    with refuses(InvalidArgument, "file-not-writable"):
        files_of(Path(path))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chart.toml", "missing/chart.png"])
def test_a_simulation_that_cannot_be_drawn_says_so(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = Simulation("bits", 10, 1.0, 1e-6, 2, (TrustModel("local", 1, 1.0, 1.0, 1.0),))
    with refuses(InvalidArgument, "picture-not-written"):
        done.plot(str(tmp_path / name))
