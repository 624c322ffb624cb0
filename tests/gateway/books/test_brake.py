"""Which database an owner in need means, although the policy has a mistake: nothing else in the policy may hide it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from discreet.cli import main
from discreet.gateway.books.store import GatewayStore, number_in_meta
from discreet.gateway.settings import SECTIONS, USERS, load_books, load_served

LEDGER = '[ledger]\npath = "klinik.ledger"\nepsilon = 8\ndelta = 1e-6\n'
TABLES = '[unit]\nperson = "id"\n[tables.visits]\nsource = "visits.parquet"\n'
VALUES = {
    "gateway": {
        "http": '"127.0.0.1:0"',
        "postgres": '"127.0.0.1:0"',
        "metrics": '"127.0.0.1:0"',
        "answer_after": '"2s"',
        "late_allowed": "1",
        "lanes": "2",
        "lane_memory": '"1GB"',
        "version": '"2"',
        "share": '"own"',
        "certificate": '"certificate.pem"',
        "key": '"key.pem"',
        "users": '["64101", "64102"]',
        "log": '"klinik.log"',
    },
    "gateway.question": {"default": "0.1", "most": "1"},
    "gateway.limits": {"session": "1", "day": "2", "approve_above": "0.5", "alert_at": "0.5"},
    "gateway.mcp": {"session": "1", "confirm_above": "0.1"},
    "gateway.oidc": {
        "issuer": '"https://x.org"',
        "client": '"x"',
        "audience": '"x"',
        "claim": '"sub"',
        "secret": '"s"',
    },
}
"""Every setting but `store`."""
GATEWAY = "".join(
    f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in values.items()) for name, values in VALUES.items()
)
MISTAKES = {
    "a setting of a section": ("[gateway.question]\n", "[gateway.question]\nmosst = 0.7\n"),
    "a key of a table": ('source = "visits.parquet"\n', 'source = "visits.parquet"\npublik = true\n'),
    "the end": ('secret = "s"\n', 'secret = "s"\n[[[\n'),
    "a heading": ("[tables.visits]", "[tables.visits"),
    "a setting that is not closed": ('postgres = "127.0.0.1:0"', 'postgres = "127.0.0.1:0'),
    "a setting that is misspelled": ("postgres = ", "posgres = "),
    "no number": ("epsilon = 8", "epsilon = 8,0"),
    "users": ('["64101", "64102"]', '["64101"]'),
}


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A policy with every setting, and its gateway's database."""
    pa.parquet.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "visits.parquet")
    (tmp_path / "klinik.toml").write_text(LEDGER + TABLES + GATEWAY)
    monkeypatch.chdir(tmp_path)
    GatewayStore("klinik.gateway").close()
    return tmp_path / "klinik.toml"


def edit(policy: Path, old: str, new: str) -> None:
    text = policy.read_text()
    assert text.count(old) == 1
    policy.write_text(text.replace(old, new))


def test_every_setting_is_there(policy: Path) -> None:
    told = {
        name: set(keys) - {"store", *VALUES, "question", "limits", "mcp", "oidc"} for name, keys in SECTIONS.items()
    }
    assert {name: set(values) for name, values in VALUES.items()} == told
    assert load_served(policy)[1].store == str(policy.with_suffix(".gateway"))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_no_other_setting_hides_the_database(policy: Path, mistake: str) -> None:
    edit(policy, *MISTAKES[mistake])
    books = load_books(policy)
    assert books is not None
    assert books.store == str(policy.with_suffix(".gateway"))
    assert books.users == (USERS if mistake == "users" else ("64101", "64102"))


def test_all_is_stopped_with_every_setting(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(policy, *MISTAKES["a setting of a section"])
    for words in (("suspend",), ("tokens",), ("requests",), ("audit",), ("backup", "copy")):
        with pytest.raises(SystemExit) as ended:
            main(["account", "klinik.toml", *words])
        assert not ended.value.code, capsys.readouterr().err
    with GatewayStore("klinik.gateway") as store, store.read() as execute:
        assert number_in_meta(execute, "stopped") == 1


@pytest.mark.parametrize(
    "line",
    [
        'stor = "real.gateway"',
        'sotre = "real.gateway"',
        'Store = "real.gateway"',
        'store: "real.gateway"',
        'storage = "real.gateway"',
        '[gateway.limits\nstore = "real.gateway"',
        '[gateway store = "real.gateway"',
    ],
)
def test_a_mistyped_database_is_noticed(policy: Path, line: str) -> None:
    """Between all other settings. Another gateway would be stopped."""
    edit(policy, "[gateway]\n", f"[gateway]\n{line}\n")
    assert load_books(policy) is None


@pytest.mark.parametrize("line", ['paht = "klinik.ledger"', 'path "klinik.ledger"', '[x\npath = "klinik.ledger"'])
def test_a_mistyped_ledger_is_noticed(policy: Path, line: str) -> None:
    """It may be in PostgreSQL, and the database of the gateway with it."""
    edit(policy, 'path = "klinik.ledger"', line)
    assert load_books(policy) is None


def test_a_database_that_is_named_needs_no_ledger(policy: Path) -> None:
    GatewayStore("real.gateway").close()
    edit(policy, "[gateway]\n", '[gateway]\nstore = "real.gateway"\n')
    edit(policy, 'path = "klinik.ledger"', "path = ")
    books = load_books(policy)
    assert books is not None
    assert books.store == str(policy.with_name("real.gateway"))
