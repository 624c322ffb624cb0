"""Bugs planted in the gateway: the very check that the sound gateway passes must catch each of them."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import discreet as dp
from discreet.datasets.database import Database
from discreet.datasets.prepared import Prepared
from discreet.gateway.settings import load_settings
from discreet.gateway.vault import worker
from discreet.gateway.vault.snapshot import published
from discreet.gateway.vault.worker import Worker

from ..house import COUNT, House, answer_in

PROGRAM = str(Path(__file__).parents[1] / "programs/planted.py")
COMBINED = "SELECT a.n + b.m AS x FROM (SELECT COUNT(*) AS n FROM visits) a, (SELECT SUM(cost) AS m FROM visits) b"


class Seen(Exception):
    """A check found a bug."""


def expect(holds):
    if not holds:
        raise Seen


def left(house, token):
    return house.value(token, "budget")["remaining"]["epsilon"]


# --- workers, in this process ---------------------------------------------------------------------------------


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path / "house")
    made.open("ada")
    return made


def opened(house, kind):
    opening = {"policy": house.policy.read_text(), "folder": str(house.folder), "version": "1"}
    policy, settings = load_settings(house.policy)
    published(policy, "1", settings.copies, ())  # by the vault
    link, _ = socket.socketpair()
    with link, _:
        return Worker(link, kind, opening | {"copies": settings.copies})


def a_reader_has_no_private_row(house):
    seen = opened(house, "reader").database
    ledger = dp.Ledger.open(":memory:", protects=dp.person("id"), limit=dp.Pure(epsilon=10**6))
    answer = Database(seen.schema, seen.engine, ledger, delta_per_question=1e-9, policy="")
    expect(answer.sql(COUNT, epsilon=10**5).table["n"].to_pylist() == [0])


def all_parts_of_a_statement_are_owed(house):
    costs = opened(house, "reader").do_ask(COMBINED, {"epsilon": 0.2}, "ada", "json").header
    expect(len(costs["owed"]) == 2)
    expect(Fraction(costs["epsilon"]) == Fraction(1, 5))


def the_name_alone_is_the_version(house):
    """A file that was touched, and a gateway that was moved, have the same answers."""
    lane = opened(house, "lane")
    lane._tell = lambda *names: None
    first = lane.do_ask(COUNT, {"epsilon": 0.1}, "ada", "json")
    os.utime(house.folder / "visits.parquet", (1, 1))
    found = opened(house, "reader").do_ask(COUNT, {"epsilon": 0.1}, "ada", "json")
    expect(answer_in(found) == answer_in(first))


def reader_opens_private_rows(monkeypatch):
    monkeypatch.setattr(worker, "without_private_rows", lambda engine, public: engine)


def only_the_first_part_is_owed(monkeypatch):
    real = Prepared.owed
    monkeypatch.setattr(Prepared, "owed", lambda self, **named: real(self, **named)[:1])


def version_from_the_time_of_a_file(monkeypatch):
    real = worker.named

    def by_time(policy, version):
        times = {name: str(Path(table.source).stat().st_mtime_ns) for name, table in policy.tables.items()}
        return replace(
            policy,
            tables={name: replace(table, version=times[name]) for name, table in real(policy, version).tables.items()},
        )

    monkeypatch.setattr(worker, "named", by_time)


WORKERS = [
    (reader_opens_private_rows, a_reader_has_no_private_row),
    (only_the_first_part_is_owed, all_parts_of_a_statement_are_owed),
    (version_from_the_time_of_a_file, the_name_alone_is_the_version),
]


@pytest.mark.parametrize("check", [check for _, check in WORKERS])
def test_nothing_is_wrong(house, check):
    check(house)


@pytest.mark.parametrize(("mutant", "check"), WORKERS)
def test_a_mutant_of_a_worker_is_killed(house, monkeypatch, mutant, check):
    mutant(monkeypatch)
    with pytest.raises(Seen):
        check(house)


# --- running vaults -------------------------------------------------------------------------------------------


def slots_last(house):
    token, begun = house.open("ada"), time.monotonic()
    expect(house.ask(token, answer_after="5s").header["ok"])
    expect(time.monotonic() - begun >= 5)


def late_answers_stay_in(house):
    token = house.open("ada")
    expect(house.ask(token, answer_after="1ms").header.get("code") == "gateway-late")


def late_questions_cost_all(house):
    token = house.open("ada")
    house.ask(token, COMBINED, epsilon=0.2, answer_after="1ms")
    expect(abs(left(house, token) - 2.8) < 1e-9)


def late_draws_are_lost(house):
    """The lane drew and stored, and was late with the rest: to ask again is a new charge."""
    token = house.open("ada")
    house.ask(token, answer_after="5s")
    house.ask(token, answer_after="5s")
    expect(abs(left(house, token) - 2.8) < 1e-9)


def answers_are_charged(house):
    token = house.open("ada")
    house.ask(token)
    expect(len(house.charges()) == 1)


def accounts_pay_for_themselves(house):
    one, two = house.open("ada"), house.open("bea")
    for token in (one, one, two):
        house.ask(token)
    expect(sorted(entry.analyst for entry in house.charges()) == ["ada", "bea"])


VAULTS = [
    ("slot_ends_when_ready", slots_last),
    ("late_answer_handed_out", late_answers_stay_in),
    ("late_question_not_topped_up", late_questions_cost_all),
    ("late_charge_not_discarded", late_draws_are_lost),
    ("charge_after_answer", answers_are_charged),
    ("cache_shared_between_accounts", accounts_pay_for_themselves),
]


@pytest.fixture
def planted(tmp_path):
    """A running gateway, with a seeded bug or without."""
    made = House(tmp_path / "planted", "answer_after = 0\nlate_allowed = 9")

    def start(mutant, check):
        made.environment = {"MUTANT": mutant, "SLOW": "30" if check is late_draws_are_lost else ""}
        return made.start(PROGRAM)

    yield start
    made.stop()


@pytest.mark.slow
@pytest.mark.parametrize("check", [check for _, check in VAULTS])
def test_sound_code_passes(planted, check):
    check(planted("", check))


@pytest.mark.slow
@pytest.mark.parametrize(("mutant", "check"), VAULTS)
def test_a_mutant_of_the_vault_is_killed(planted, mutant, check):
    house = planted(mutant, check)
    with pytest.raises(Seen):
        check(house)
