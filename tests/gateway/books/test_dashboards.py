"""Dashboards: who sees one, that looking is free, and that a new version is paid for once, by whoever said so."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from discreet.gateway.books import audit, dashboard_store
from discreet.gateway.books.accounts import set_suspended
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.books.tables import MIGRATIONS
from discreet.gateway.books.tokens import COMMAND_LINE, ROLES, Caller
from discreet.gateway.vault import tiles
from discreet.gateway.vault.purchase import late_error
from discreet.gateway.vault.vault import Vault

from ..house import BY_CITY, COUNT, House
from ..small_house import SmallHouse

GATEWAY = 'answer_after = 0\nlate_allowed = 100\nversion = "v1"\n[gateway.limits]\nday = 2'

_AUTHOR = Caller(account="ada", role="analyst", scopes=frozenset(ROLES["analyst"]))


class Slot(NamedTuple):
    """A question that is being answered."""

    account: str
    before: int


class Board(SmallHouse):
    """A gateway whose author has a dashboard with two tiles."""

    def __init__(self, folder, gateway=GATEWAY, **given):
        super().__init__(folder, gateway, **given)
        self.ada, self.bob = self.open("ada"), self.open("bob")
        self.olga, self.vera = self.open("olga", "owner"), self.open("vera", "viewer")
        self.stefan = self.open("stefan", "steward")

    def begin(self):
        self.start()
        receipts = [json.loads(self.ask(self.ada, sql, epsilon=0.1).body)["receipt"] for sql in (COUNT, BY_CITY)]
        self.number = self.value(self.ada, "make_dashboard", title="Visits")["number"]
        self.tiles = [self.add(one)["tile"] for one in receipts]
        return self

    def add(self, receipt, title="a tile"):
        return self.value(self.ada, "add_tile", number=self.number, receipt=receipt, title=title)

    def shown(self, token):
        return self.value(token, "dashboard", number=self.number)

    def publish(self):
        self.value(self.ada, "publish_dashboard", number=self.number)
        assert self.value(self.olga, "publish_dashboard", number=self.number)["state"] == "published"

    def serve(self, version):
        """Stop, and serve another version until the rule is through."""
        self.stop()
        text = self.policy.read_text()
        self.policy.write_text(text.replace(text.split('version = "')[1].split('"')[0], version))
        self.start()
        return self

    def settled(self):
        """Wait until the rule has done what it does at the start, and what it did is in the audit."""
        for _ in range(400):
            if self.vault._keeping_up.done():
                return self
            time.sleep(0.02)
        raise AssertionError


@pytest.fixture(autouse=True)
def seen_vault(monkeypatch):
    """Lets a test see the vault that a house started."""
    from .. import small_house

    real, current = small_house.small, []
    monkeypatch.setattr(small_house, "small", lambda vault: current.append(vault) or real(vault))
    monkeypatch.setattr(Board, "vault", property(lambda self: current[-1]), raising=False)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    made = Board(tmp_path_factory.mktemp("boards") / "house").begin()
    yield made
    made.stop()


@pytest.fixture
def board(tmp_path):
    made = Board(tmp_path / "house").begin()
    yield made
    made.stop()
    made.ledger.verify()
    audit.verify(made.store)


def refused(reply, code):
    assert reply.header.get("code") == code, reply.header


# --- who sees it --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_dashboard_of_others_looks_like_none_until_it_is_published(shared):
    for token in (shared.bob, shared.vera, shared.olga, shared.stefan):
        hidden = shared.call("dashboard", token, number=shared.number)
        assert hidden == shared.call("dashboard", token, number=999)
        refused(hidden, "gateway-not-found")
        assert shared.value(token, "dashboards")["dashboards"] == []
        for verb in ("rename_dashboard", "remove_dashboard", "publish_dashboard", "unpublish_dashboard", "set_rule"):
            given = {"rename_dashboard": {"title": "x"}, "set_rule": {"rule": "by hand"}}.get(verb, {})
            mine, none = (shared.call(verb, token, number=number, **given) for number in (shared.number, 999))
            assert mine == none, verb
        mine, none = (
            shared.call("refresh_tile", token, number=number, tile=shared.tiles[0], most=1)
            for number in (shared.number, 999)
        )
        assert mine == none
    assert len(shared.shown(shared.ada)["tiles"]) == 2


@pytest.mark.slow
def test_publishing_needs_a_second_person_and_looking_is_free(board):
    assert board.value(board.ada, "publish_dashboard", number=board.number)["state"] == "waiting"
    refused(board.call("dashboard", board.vera, number=board.number), "gateway-not-found")
    assert board.shown(board.stefan)["may_publish"]
    refused(board.call("publish_dashboard", board.bob, number=board.number), "gateway-not-found")
    assert board.value(board.stefan, "publish_dashboard", number=board.number)["state"] == "published"
    before, left = board.ledger.count, board.value(board.ada, "budget")
    for _ in range(100):
        shown = board.shown(board.vera)
    assert board.ledger.count == before
    assert board.value(board.ada, "budget") == left
    assert [one["version"] for one in shown["tiles"]] == ["v1", "v1"]
    answers = [one["answer"] for one in shown["tiles"]]
    assert answers[0]["errors"] == [[90.0]]
    assert all("remaining" not in one for one in answers)  # what is left to the author is the author's own
    assert not {"rule", "most", "spent"} & shown.keys()
    for verb in ("rename_dashboard", "remove_tile", "remove_dashboard"):
        given = {"rename_dashboard": {"title": "x"}, "remove_tile": {"tile": board.tiles[0]}}.get(verb, {})
        refused(board.call(verb, board.olga, number=board.number, **given), "gateway-role")
    refused(board.call("unpublish_dashboard", board.vera, number=board.number), "gateway-role")
    receipt = shown["tiles"][0]["receipt"]
    board.add(receipt)  # the author shows something else: the second person looks again
    refused(board.call("dashboard", board.vera, number=board.number), "gateway-not-found")
    said = [one.what for one in audit.lines(board.store)]
    assert {"dashboard made", "tile added", "publication asked for", "dashboard published"} <= set(said)


@pytest.mark.slow
def test_with_everyone_authors_publish(tmp_path):
    made = Board(tmp_path / "house", GATEWAY.replace("version", 'share = "everyone"\nversion')).begin()
    try:
        assert made.value(made.ada, "publish_dashboard", number=made.number)["state"] == "published"
        made.add(made.shown(made.ada)["tiles"][0]["receipt"])
        assert len(made.shown(made.vera)["tiles"]) == 3
    finally:
        made.stop()


def test_only_own_receipts_become_tiles(shared):
    receipt = shared.shown(shared.ada)["tiles"][0]["receipt"]
    number = shared.value(shared.bob, "make_dashboard", title="Mine")["number"]
    given = {"number": number, "title": "t"}
    refused(shared.call("add_tile", shared.bob, receipt=receipt, **given), "gateway-not-found")
    refused(shared.call("add_tile", shared.bob, receipt="1-aaaa", **given), "gateway-not-found")
    refused(shared.call("add_tile", shared.ada, receipt=receipt, **given), "gateway-not-found")  # not her dashboard
    refused(shared.call("make_dashboard", shared.vera, title="t"), "gateway-role")
    for title in ("", " ", "a\nb", "x" * 121, 7, None):
        reply = shared.call("make_dashboard", shared.ada, title=title)
        assert reply.header["code"] in ("gateway-dashboard", "gateway-argument")


def test_a_tile_is_the_answer_that_was_released(shared):
    tile = shared.shown(shared.ada)["tiles"][1]
    again = json.loads(shared.call("again", shared.ada, receipt=tile["receipt"]).body)
    again = {name: value for name, value in again.items() if name not in ("remaining", "replayed")}
    assert tile["answer"] == again


def test_tiles_move_and_go(shared):
    number = shared.value(shared.ada, "make_dashboard", title="Other")["number"]
    receipt = shared.shown(shared.ada)["tiles"][0]["receipt"]
    given = {"number": number, "receipt": receipt, "title": "t"}
    first, second = (shared.value(shared.ada, "add_tile", **given)["tile"] for _ in range(2))
    shared.value(shared.ada, "move_tile", number=number, tile=second, steps=-1)
    assert [one["number"] for one in shared.value(shared.ada, "dashboard", number=number)["tiles"]] == [second, first]
    shared.value(shared.ada, "rename_tile", number=number, tile=first, title="<b>New</b>")
    with shared.store.write() as execute:  # a changed tile is not shown
        execute("UPDATE tiles SET answer = ? WHERE number = ?", b'{"rows": [[7]]}', second)
    shown = shared.value(shared.ada, "dashboard", number=number)["tiles"]
    assert [one["answer"] is None for one in shown] == [True, False]
    shared.value(shared.ada, "remove_tile", number=number, tile=second)
    assert [one["title"] for one in shared.value(shared.ada, "dashboard", number=number)["tiles"]] == ["<b>New</b>"]
    refused(shared.call("move_tile", shared.ada, number=number, tile=second, steps=1), "gateway-not-found")
    shared.value(shared.ada, "remove_dashboard", number=number)
    refused(shared.call("dashboard", shared.ada, number=number), "gateway-not-found")
    assert shared.value(shared.ada, "make_dashboard", title="Next")["number"] > number  # numbers are used once


# --- a new version ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_new_version_is_paid_for_by_hand(board):
    board.publish()
    old, charged = board.shown(board.vera), len(board.charges())
    board.serve("v2").settled()
    shown = board.shown(board.vera)
    assert len(board.charges()) == charged  # nothing by itself
    assert [one["answer"] for one in shown["tiles"]] == [one["answer"] for one in old["tiles"]]
    assert [(one["version"], one["is_old"]) for one in shown["tiles"]] == [("v1", True)] * 2
    assert "price" not in shown["tiles"][0]
    assert board.shown(board.ada)["tiles"][0]["price"] == 0.1
    given = {"number": board.number, "tile": board.tiles[0]}
    for token, code in ((board.vera, "gateway-role"), (board.bob, "gateway-role"), (board.stefan, "gateway-role")):
        refused(board.call("refresh_tile", token, **given, most=1), code)
    dear = board.call("refresh_tile", board.ada, **given, most=0.05)
    refused(dear, "gateway-tile-price")
    assert dear.header["more"] == {"epsilon": 0.1}
    assert len(board.charges()) == charged
    for _ in range(2):
        board.value(board.ada, "refresh_tile", **given, most=0.1)
    assert len(board.charges()) == charged + 1
    assert [one["version"] for one in board.shown(board.vera)["tiles"]] == ["v2", "v1"]
    given["tile"] = board.tiles[1]
    board.value(board.olga, "refresh_tile", **given, most=0.1)  # the owner pays from the data set's own
    assert board.charges()[-1].analyst is None
    assert board.value(board.ada, "budget")["remaining"]["epsilon"] == pytest.approx(2.7)


@pytest.mark.slow
def test_a_rule_buys_each_version_once_up_to_its_limit(board):
    board.value(board.ada, "set_rule", number=board.number, rule="rule", epsilon=0.35)
    charged = len(board.charges())
    board.serve("v2").settled()
    assert len(board.charges()) == charged + 2
    assert [one["version"] for one in board.shown(board.ada)["tiles"]] == ["v2", "v2"]
    board.serve("v2").settled()
    assert len(board.charges()) == charged + 2
    board.serve("v3").settled()  # one more fits
    shown = board.shown(board.ada)
    assert len(board.charges()) == charged + 3
    assert [one["version"] for one in shown["tiles"]] == ["v3", "v2"]
    assert shown["tiles"][1]["refused"] == "gateway-rule-limit"
    assert (shown["spent"], shown["most"]) == (pytest.approx(0.3), pytest.approx(0.35))
    board.value(board.ada, "set_rule", number=board.number, rule="by hand")
    board.serve("v4").settled()
    assert len(board.charges()) == charged + 3


@pytest.mark.slow
def test_a_rule_keeps_the_limits_of_the_account(board):
    board.value(board.ada, "set_rule", number=board.number, rule="rule", epsilon=3)
    for sql, epsilon in ((COUNT, 0.8), (f"{COUNT} WHERE cost > 3", 0.9)):  # of the first, 0.1 is paid already
        assert board.ask(board.ada, sql, epsilon=epsilon).header["ok"]
    charged = len(board.charges())
    board.serve("v2").settled()  # of 2 for the day, 0.1 is left
    shown = board.shown(board.ada)
    assert len(board.charges()) == charged + 1
    assert [one["refused"] for one in shown["tiles"] if one["is_old"]] == ["gateway-day-limit"]
    assert shown["spent"] == pytest.approx(0.1)  # what was not charged is not counted
    assert "tile not bought" in [one.what for one in audit.lines(board.store)]


@pytest.mark.slow
def test_a_rule_of_a_suspended_author_buys_nothing(board):
    board.value(board.ada, "set_rule", number=board.number, rule="rule", epsilon=3)
    set_suspended(board.store, "ada", suspended=True, by=COMMAND_LINE, now=time.time())
    charged = len(board.charges())
    board.serve("v2").settled()
    assert len(board.charges()) == charged


def test_only_who_may_spend_sets_a_rule(shared):
    given = {"number": shared.number, "rule": "rule", "epsilon": 1}
    refused(shared.call("set_rule", shared.token("ada", scopes=["ask", "replay", "explain"]), **given), "gateway-role")
    refused(shared.call("set_rule", shared.token("ada", scopes=["replay", "manage"]), **given), "gateway-role")
    small = shared.value(shared.ada, "token", epsilon=0.1, scopes=["ask", "replay", "manage"])["token"]
    refused(shared.call("set_rule", small, **given), "gateway-role")
    for wrong in (
        {"rule": "rule"},
        {"rule": "by hand", "epsilon": 1},
        {"rule": "always"},
        {"rule": "rule", "epsilon": -1},
    ):
        assert not shared.call("set_rule", shared.ada, number=shared.number, **wrong).header["ok"]
    refused(shared.call("dashboards", shared.token("ada", scopes=["explain"])), "gateway-role")


@pytest.mark.slow
def test_only_what_was_looked_at_is_published(board):
    board.value(board.ada, "publish_dashboard", number=board.number)
    seen = board.shown(board.stefan)["content"]
    board.value(board.ada, "rename_tile", number=board.number, tile=board.tiles[0], title="something else")
    refused(board.call("publish_dashboard", board.stefan, number=board.number, content=seen), "gateway-dashboard")
    seen = board.shown(board.stefan)["content"]
    board.value(board.ada, "remove_tile", number=board.number, tile=board.tiles[0])
    refused(board.call("publish_dashboard", board.stefan, number=board.number, content=seen), "gateway-dashboard")
    assert board.shown(board.stefan)["state"] == "waiting"
    seen = board.shown(board.stefan)["content"]
    assert board.value(board.stefan, "publish_dashboard", number=board.number, content=seen)["state"] == "published"


@pytest.mark.slow
def test_a_tile_is_bought_anew_in_a_slot_as_long_as_its_own(board):
    reply = board.ask(board.ada, COUNT, epsilon=0.2, answer_after="1s")
    receipt = json.loads(reply.body)["receipt"]
    tile = board.add(receipt)["tile"]
    assert board.value(board.ada, "again", receipt=receipt)["receipt"] == receipt
    with board.store.read() as execute:
        found = dashboard_store.find_dashboard(execute, _AUTHOR, board.number)
        lengths = [
            tiles._asked(board.vault, found, dashboard_store.find_tile(execute, found, one)).length
            for one in (tile, board.tiles[0])
        ]
    assert lengths == [1.0, 0.0]
    longer = SimpleNamespace(settings=replace(board.vault.settings, answer_after=5.0))
    with board.store.read() as execute:
        assert tiles._asked(longer, found, dashboard_store.find_tile(execute, found, tile)).length == 5.0


def test_an_answer_that_came_while_another_slot_runs_is_there_soon(board):
    receipt = board.shown(board.ada)["tiles"][0]["receipt"]
    running = Slot("ada", 0)  # it began before the answer was charged
    board.vault.purchases.add(running)
    try:
        refused(board.call("again", board.ada, receipt=receipt), "gateway-busy")
    finally:
        board.vault.purchases.discard(running)
    assert board.value(board.ada, "again", receipt=receipt)["receipt"] == receipt


def test_a_rule_waits_for_the_slots_of_a_vault_before_it():
    async def never(*_):
        raise AssertionError

    class Ending:
        settings, in_books, looks = SimpleNamespace(answer_after=3600.0), never, 0

        @property
        def is_ending(self):
            self.looks += 1
            return self.looks > 2

    asyncio.run(tiles.keep_up(Ending()))


def test_a_token_that_shows_no_dashboard_changes_none(shared):
    weak = shared.token("ada", scopes=["explain"])
    for verb in ("publish_dashboard", "unpublish_dashboard", "remove_dashboard"):
        refused(shared.call(verb, weak, number=shared.number), "gateway-role")
    assert shared.shown(shared.ada)["state"] == "draft"


def test_answers_on_a_dashboard_have_little_room(shared, monkeypatch):
    receipt = shared.shown(shared.ada)["tiles"][0]["receipt"]
    with monkeypatch.context() as patch:
        patch.setattr(dashboard_store, "LARGEST_DASHBOARD", 100)
        given = {"number": shared.number, "receipt": receipt, "title": "one more"}
        refused(shared.call("add_tile", shared.ada, **given), "gateway-tile")
    assert len(shared.shown(shared.ada)["tiles"]) == 2


def test_what_a_rule_should_buy_is_found_without_reading_answers(shared, monkeypatch):
    def read(*_):
        raise AssertionError

    monkeypatch.setattr(dashboard_store, "tiles_of", read)
    with shared.store.write() as execute:
        execute("UPDATE dashboards SET rule = 'rule'")
        try:
            assert dashboard_store.tiles_by_rule(execute, "v1") == []
            assert dashboard_store.tiles_by_rule(execute, "v2") == [(shared.number, one) for one in shared.tiles]
        finally:
            execute("UPDATE dashboards SET rule = 'by hand'")


@pytest.mark.slow
def test_a_purchase_that_may_be_charged_stays_counted(board, monkeypatch):
    board.value(board.ada, "set_rule", number=board.number, rule="rule", epsilon=0.2)

    def killed(*given):
        raise RuntimeError("as if it were killed")

    with monkeypatch.context() as patch:
        patch.setattr(tiles, "_renew", killed)
        board.serve("v2").settled()
    charged = len(board.charges())
    set_suspended(board.store, "ada", suspended=True, by=COMMAND_LINE, now=time.time())
    board.serve("v2").settled()  # refused, although both were charged
    set_suspended(board.store, "ada", suspended=False, by=COMMAND_LINE, now=time.time())
    assert board.shown(board.ada)["spent"] == pytest.approx(0.2)
    board.serve("v3").settled()
    assert len(board.charges()) == charged


@pytest.mark.slow
def test_an_author_who_is_suspended_while_a_purchase_waits_pays_nothing(board, monkeypatch):
    board.value(board.ada, "set_rule", number=board.number, rule="rule", epsilon=3)
    charged, real = len(board.charges()), tiles._set_aside

    def suspended(*given):
        set_suspended(board.store, "ada", suspended=True, by=COMMAND_LINE, now=time.time())
        return real(*given)

    monkeypatch.setattr(tiles, "_set_aside", suspended)
    board.serve("v2").settled()
    assert len(board.charges()) == charged
    set_suspended(board.store, "ada", suspended=False, by=COMMAND_LINE, now=time.time())
    assert board.shown(board.ada)["spent"] == 0


@pytest.mark.parametrize("step", ["_renew", pytest.param("_set_aside", marks=pytest.mark.slow)])
def test_a_vault_that_ends_between_charge_and_tile_does_not_pay_twice(board, monkeypatch, step):
    board.value(board.ada, "set_rule", number=board.number, rule="rule", epsilon=0.2)
    charged, real = len(board.charges()), getattr(tiles, step)

    def killed(*given):
        if step == "_set_aside":
            real(*given)
        raise RuntimeError("as if it were killed")

    with monkeypatch.context() as patch:
        patch.setattr(tiles, step, killed)
        board.serve("v2").settled()
        assert len(board.charges()) == charged + (2 if step == "_renew" else 0)
        assert [one["version"] for one in board.shown(board.ada)["tiles"]] == ["v1", "v1"]
    board.serve("v2").settled()
    assert len(board.charges()) == charged + 2
    shown = board.shown(board.ada)
    assert [one["version"] for one in shown["tiles"]] == ["v2", "v2"]
    assert shown["spent"] == pytest.approx(0.2)


@pytest.mark.slow
def test_a_late_tile_stays_charged_and_is_tried_again_only_by_hand(board, monkeypatch):
    asked = []

    async def late(self, caller, question):
        asked.append(question.key)
        raise late_error()

    board.value(board.ada, "set_rule", number=board.number, rule="rule", epsilon=3)
    with monkeypatch.context() as patch:
        patch.setattr(Vault, "answer", late)
        board.serve("v2").settled()
        shown = board.shown(board.ada)
        assert [one["refused"] for one in shown["tiles"]] == ["gateway-late"] * 2
        assert shown["spent"] == pytest.approx(0.2)  # what is charged stays counted
        given = {"number": board.number, "tile": board.tiles[0], "most": 0.1}
        for _ in range(2):
            refused(board.call("refresh_tile", board.ada, **given), "gateway-late")
    by_rule, by_hand, again = asked[0], *asked[-2:]
    assert by_rule == by_hand  # the same purchase: the ledger charges its key once
    assert by_hand != again  # to ask again is a new charge, so it has a new key
    board.value(board.ada, "refresh_tile", **given)
    assert board.shown(board.ada)["tiles"][0]["version"] == "v2"


def test_a_key_is_of_one_tile_and_one_version(shared):
    with shared.store.read() as execute:
        first, second = dashboard_store.tiles_of(execute, shared.number)
    keys = [first.key("v1"), first.key("v2"), second.key("v1"), replace(first, tries=1).key("v1")]
    assert len(set(keys)) == 4


# --- the database -------------------------------------------------------------------------------------------


def test_a_database_of_the_version_before_gets_dashboards(tmp_path):
    target = str(tmp_path / "old.gateway")
    with GatewayStore(target, MIGRATIONS[:3]) as old, old.write() as execute:
        execute(
            "INSERT INTO questions (account, number, receipt, sql, options, at) "
            "VALUES ('ada', 1, '1-abcd', 'SELECT 1', '{}', 0)"
        )
    with GatewayStore(target) as new, new.read() as execute:
        assert execute("SELECT version, since FROM questions") == [("", 0)]
        assert dashboard_store.all_dashboards(execute) == []


def test_a_backup_has_the_dashboards(shared, tmp_path):
    shared.store.backup(tmp_path / "copy")
    copy = sqlite3.connect(tmp_path / "copy")
    assert copy.execute("SELECT COUNT(*) FROM tiles").fetchone()[0] >= 2
    assert copy.execute("SELECT title FROM dashboards WHERE number = ?", (shared.number,)).fetchone() == ("Visits",)
    copy.close()


@pytest.mark.slow
@pytest.mark.parametrize("step", ["before renew", "after set aside"])
def test_a_killed_vault_does_not_pay_twice(tmp_path, monkeypatch, step):
    made = Board(tmp_path / "house").begin()
    made.value(made.ada, "set_rule", number=made.number, rule="rule", epsilon=0.2)
    made.stop()
    real = House(tmp_path / "other", GATEWAY)  # the same files, served by processes that can be killed
    real.folder, real.policy, real.socket = made.folder, made.policy, made.socket
    real.policy.write_text(real.policy.read_text().replace('"v1"', '"v2"'))
    charged = len(made.charges())
    monkeypatch.setenv("STEP", f"vault:{step}")
    monkeypatch.setenv("STEP_DONE", str(tmp_path / "done"))
    real.start(str(Path(__file__).parents[1] / "programs/stopped.py"))
    assert real.process.wait(60) != 0
    real.start()
    for _ in range(200):
        shown = real.value(made.ada, "dashboard", number=made.number)
        if all(one["version"] == "v2" for one in shown["tiles"]):
            break
        time.sleep(0.1)
    assert [one["version"] for one in shown["tiles"]] == ["v2", "v2"]
    assert len(made.charges()) == charged + 2
    assert shown["spent"] == pytest.approx(0.2)
    real.stop()
