"""The desk for agents in front of a vault that answers from a table: rates, sizes, faults, and a missing package."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from discreet.cli.gateway.serve import serve
from discreet.errors import MissingExtra
from discreet.gateway import serve as serving
from discreet.gateway.desk import mcp
from discreet.gateway.desk.rates import Rate, Rates
from discreet.gateway.frames import Frame

from ...refusing import refuses
from .a_desk import TOKEN, desk, refused, said
from .an_agent import call

BEARER = {"Authorization": f"Bearer {TOKEN}"}


def test_the_gate_holds_for_agents(tmp_path: Path) -> None:
    with desk(tmp_path, agents=True, rates=Rates(address=Rate(0.001, 2))) as running:
        replies = [httpx.post(f"{running.url}/mcp", json={}, headers=BEARER, trust_env=False) for _ in range(3)]
    assert [one.status_code for one in replies] == [400, 400, 429]
    assert replies[-1].json()["code"] == "gateway-too-fast"


def test_failed_logins_wait(tmp_path: Path) -> None:
    verbs = {"tables": refused("NotAllowed", "gateway-login")}
    with desk(tmp_path, verbs, agents=True, rates=Rates(free_failures=1)) as running:
        for _ in range(2):
            assert call(running.url, TOKEN, "tables").structured_content["code"] == "gateway-login"
        reply = httpx.post(f"{running.url}/mcp", json={}, headers=BEARER, trust_env=False)
    assert reply.status_code == 429


def test_a_fault_says_nothing_of_itself(tmp_path: Path) -> None:
    """What the vault says is passed on only if it is one of our errors, and nothing but the code and the message."""
    faults: dict[str, Any] = {
        "tables": refused("ValueError", "x", "a private value"),
        "history": said(b"not JSON: a private value"),
        "budget": refused("BudgetExhausted", "gateway-mcp-limit", "Wait.", secret="a private value"),
    }
    with desk(tmp_path, faults, agents=True) as running:
        for tool, code in (("tables", "gateway-failed"), ("budget", "gateway-mcp-limit")):
            result = call(running.url, TOKEN, tool)
            assert result.structured_content["code"] == code
            assert "private" not in result.model_dump_json()
        with pytest.raises(BaseExceptionGroup) as failed:
            call(running.url, TOKEN, "history")
    assert "private" not in repr(failed.value.exceptions)


def test_a_result_that_is_too_large_for_a_model(tmp_path: Path) -> None:
    rows = [["a" * 1000, n] for n in range(1100)]
    answer = {"columns": ["a", "n"], "rows": rows, "errors": [[None, 1]] * len(rows)}
    with desk(tmp_path, {"ask": said(json.dumps(answer).encode())}, agents=True) as running:
        result = call(running.url, TOKEN, "ask", sql="SELECT", why="A test asks.")
    assert result.structured_content["code"] == "gateway-answer-too-large"
    assert len(result.content[1].text) < 1000


def test_text_of_public_tables_is_data(tmp_path: Path) -> None:
    """Choices of public tables are read from their rows, so nobody declared them. Without tables, all text is data."""
    answer = {"columns": ["a", "b", "n"], "rows": [["Haifa", ["Koper", 1], 3]], "errors": [[None, None, 1]]}
    city = {"choices": ["Haifa", 7], "other": "elsewhere"}
    tables = [
        {"protects": "person", "columns": [city]},
        {"protects": None, "columns": [{**city, "choices": ["Koper"]}]},
    ]
    verbs: dict[str, Any] = {
        "ask": said(json.dumps(answer).encode()),
        "tables": said(json.dumps({"tables": tables}).encode()),
    }
    with desk(tmp_path, verbs, agents=True) as running:
        first = call(running.url, TOKEN, "ask", sql="SELECT", why="A test asks.")
        verbs["tables"] = refused("NotAllowed", "gateway-role")
        second = call(running.url, TOKEN, "ask", sql="SELECT", why="A test asks.")
    assert first.structured_content["undeclared"] == ["b"]
    assert second.structured_content["undeclared"] == ["a", "b"]


def test_a_question_that_nobody_would_read_is_not_shown(tmp_path: Path) -> None:
    from .an_agent import Person

    person = Person(confirm=True)
    with desk(tmp_path, {"ask": refused("NotConfirmed", "gateway-confirm", epsilon="1/2")}, agents=True) as running:
        result = call(running.url, TOKEN, "ask", person, sql="SELECT " + "a" * 20_000, why="A test asks.")
    assert result.structured_content["code"] == "gateway-confirm"
    assert not person.read


def test_without_the_package_nothing_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    with desk(tmp_path) as running:
        assert running.client.post("/mcp", json={}).json()["code"] == "gateway-unknown-path"
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert not mcp.is_installed()
    with refuses(MissingExtra, "missing-extra"):
        mcp.Agents()

    @contextmanager
    def running_pair() -> Any:
        yield

    made = SimpleNamespace(
        problems=[],
        warnings=[],
        beginning="",
        settings=SimpleNamespace(answer_after=2),
        running=running_pair,
        addresses=dict,
        watch=lambda: None,
    )
    monkeypatch.setattr(serving, "Supervisor", lambda policy, isolated: made)
    serve("clinic.toml")
    assert 'pip install "discreet[mcp]"' in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setattr(serving, "Supervisor", lambda policy, isolated: made)
    serve("clinic.toml")
    assert "mcp" not in capsys.readouterr().err


def test_every_reply_is_one_frame(tmp_path: Path) -> None:
    """A tool is one call of the vault with the token, and budget says that it is for an agent."""
    with desk(tmp_path, agents=True) as running:
        for tool in ("tables", "history", "budget"):
            call(running.url, TOKEN, tool)
        frames: list[Frame] = running.frames
    assert [(one.header["verb"], one.header["token"], one.arguments) for one in frames] == [
        ("tables", TOKEN, {}),
        ("history", TOKEN, {}),
        ("budget", TOKEN, {"via": "mcp"}),
    ]
