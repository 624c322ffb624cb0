"""What version 0.1.0 wrote is opened as it is: its ledgers under every rule, and its policies."""

from __future__ import annotations

import json
import lzma
import os
import shutil
from pathlib import Path

import pytest

import discreet as dp
from discreet.guarantees.rules.best_of import RULES
from discreet.ledger.stores.checkpoint import Checkpoint

WRITTEN = Path(__file__).parents[1] / "fixtures" / "v01"
SAID = json.loads((WRITTEN / "said.json").read_text("utf-8"))
"""What 0.1.0 said about each of its ledgers."""
BY_RULE = sorted(SAID.keys() - {"clinic", "postgres"})
POLICIES = sorted((WRITTEN / "policies").glob("*.toml"))


def put(name: str, folder: Path) -> Path:
    """A ledger and its checkpoint, as if the file had always been in this folder."""
    file = folder / f"{name}.ledger"
    file.write_bytes(lzma.decompress((WRITTEN / "ledgers" / f"{name}.ledger.xz").read_bytes()))
    seen = Checkpoint(WRITTEN / "ledgers" / f"{name}.ledger.checkpoint").read()
    assert seen is not None
    Checkpoint(Path(f"{file}.checkpoint")).advance(seen._replace(file=file.stat().st_ino))
    return file


def check_unchanged(ledger: dp.Ledger, said: dict) -> None:
    """Everything that 0.1.0 said about this ledger is said again."""
    accounts = {name: ledger.for_analyst(name) for name in ledger.analysts}
    entries = ledger.entries()
    assert {
        "limit": repr(ledger.limit),
        "protects": repr(ledger.protects),
        "rule": ledger.rule.name,
        "spent": repr(ledger.spent),
        "remaining": repr(ledger.remaining),
        "analysts": {name: [repr(one.spent), repr(one.remaining)] for name, one in accounts.items()},
        "verified": ledger.verify(),
        "entries": [{name: entry.exported()[name] for name in said["entries"][0]} for entry in entries],
        "answers": {one.receipt: repr(ledger.answer(one)[0]) for one in entries if one.state == "answered"},
    } == said
    assert {entry.code_version for entry in entries} == {"0.1.0"}


def check_in_use(ledger: dp.Ledger, said: dict) -> None:
    """A retry of 0.1.0 finds its answer, and what comes next is charged on top of what was spent."""
    noise = dp.Laplace(scale=10)
    retry = next(one for one in said["entries"] if one["key"] == "request-17")
    before = ledger.remaining
    if ledger.rule.name == "gaussian":
        tradeoff = dp.GaussianTradeoff(mu=0.1)
        again = ledger.charge(tradeoff, asked="patients", key="request-17")
        assert repr(ledger.answer(again)[0]) == said["answers"][retry["receipt"]]
        charged = ledger.charge(tradeoff, asked="patients over 85").receipt
    else:
        found = dp.release(1234, noise, sensitivity=1, ledger=ledger, asked="patients", key="request-17")
        assert (found.replayed, repr(found.value)) == (True, said["answers"][retry["receipt"]])
        charged = dp.release(1234, noise, sensitivity=1, ledger=ledger).receipt
    assert charged.partition("-")[0] == str(len(said["entries"]) + 1)
    assert repr(ledger.remaining) != repr(before)
    assert ledger.verify() == said["verified"] + 1
    newest = ledger.entries()[-1]
    assert (newest.receipt, newest.code_version) == (charged, dp.__version__)


def test_every_rule_has_a_ledger() -> None:
    assert {said["rule"] for said in SAID.values()} == set(RULES)


@pytest.mark.parametrize("name", BY_RULE)
def test_a_ledger_is_opened_unchanged(name: str, tmp_path: Path) -> None:
    file = put(name, tmp_path)
    ledger = dp.Ledger.open(file)
    check_unchanged(ledger, SAID[name])
    check_in_use(ledger, SAID[name])
    ledger.close()


def test_a_ledger_in_postgresql_is_opened_unchanged(postgres: str, tmp_path: Path) -> None:
    import psycopg

    schema = f"v01_{os.getpid()}"
    with psycopg.connect(postgres) as connection:
        connection.execute((WRITTEN / "ledgers" / "postgres.sql").read_text("utf-8").replace("v01", schema).encode())
    place = tmp_path / "checkpoint"
    shutil.copy(WRITTEN / "ledgers" / "postgres.checkpoint", place)
    ledger = dp.Ledger.open(f"{postgres}#{schema}", checkpoint=place)
    check_unchanged(ledger, SAID["postgres"])
    check_in_use(ledger, SAID["postgres"])
    ledger.close()
    with psycopg.connect(postgres) as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE")


def test_a_policy_goes_on_with_its_ledger(tmp_path: Path) -> None:
    for file in (*(WRITTEN / "data").iterdir(), WRITTEN / "policies" / "tutorial.toml"):
        shutil.copy(file, tmp_path)
    put("clinic", tmp_path)
    said = SAID["clinic"]
    clinic = dp.connect(tmp_path / "tutorial.toml")
    check_unchanged(clinic.ledger, said)
    answer = clinic.sql("SELECT city, COUNT(*) AS visits FROM visits GROUP BY city", epsilon=0.1)
    assert answer.table["city"].to_pylist() == ["Haifa", "Koper", "Ljubljana"]
    assert clinic.ledger.verify() == said["verified"] + 1
    clinic.close()


@pytest.mark.parametrize("policy", POLICIES, ids=lambda path: path.stem)
def test_a_policy_is_read_unchanged(policy: Path, tmp_path: Path) -> None:
    for file in (*(WRITTEN / "data").iterdir(), policy):
        shutil.copy(file, tmp_path)
    database = dp.connect(tmp_path / policy.name)
    for table in database.tables:
        assert database.explain(f"SELECT COUNT(*) AS rows FROM {table}", epsilon=0.1) is not None
    private = next(iter(database.tables))
    assert database.sql(f"SELECT COUNT(*) AS rows FROM {private}", epsilon=0.1).receipt
    database.close()
    assert (tmp_path / policy.name).read_bytes() == policy.read_bytes()


@pytest.mark.parametrize("name", json.loads((WRITTEN / "names.json").read_text("utf-8")))
def test_a_public_name_is_there_or_its_new_place_is_said(name: str) -> None:
    if name in dp.__all__:
        return
    with pytest.raises(AttributeError) as refused:
        getattr(dp, name)
    module = str(refused.value).rpartition(" ")[2].split(".")
    assert module[0] == "discreet"
    assert hasattr(getattr(dp, module[1]), module[2])
