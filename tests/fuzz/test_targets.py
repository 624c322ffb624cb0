"""Every fuzzer on its seeds and on a few changes of them; and every oracle on a bug that it must see."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import discreet as dp
from discreet import closing
from discreet.datasets.database import Database
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import NotAllowed
from discreet.gateway.books.tokens import ROLES, Caller
from discreet.gateway.desk.http import Desk
from discreet.gateway.frames import Frame
from discreet.ledger import book, opening
from discreet.shuffle.channel.analyzer import Analyzer
from discreet.shuffle.channel.shuffler import Shuffler
from discreet.shuffle.channel.store import ShufflerStore
from fuzz import http, ledger, policy, sql, tasks
from fuzz.__main__ import TARGETS, Campaign, opened
from fuzz.oracle import CANARY, Broken

SEEDS = {"sql": 10, "cli": 4}
CHANGES = {"sql": 25, "cli": 12}
"""A question is planned and asked of three clinics, and a command line takes a third of a second."""
QUICK = {"sql": (5, 4), "cli": (3, 3), "wire": (6, 6), "ledger": (16, 12), "policy": (20, 20), "postgres": (15, 40)}
QUICK |= {"http": (20, 20), "tasks": (16, 20)}
"""So many seeds and changes are tried in the quick tests."""


@contextmanager
def made(name: str, folder: Path) -> Iterator[Any]:
    target = opened(name, folder)
    try:
        yield target
    finally:
        target.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_few_seeds_and_changes_keep_every_promise(name: str, tmp_path: Path) -> None:
    assert len(tried(name, tmp_path, *QUICK[name])) > 3


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_their_changes_keep_every_promise(name: str, tmp_path: Path) -> None:
    assert len(tried(name, tmp_path, SEEDS.get(name, 50), CHANGES.get(name, 50))) > 8


def tried(name: str, folder: Path, seeds: int, changes: int) -> set[Any]:
    """The different outcomes of so many seeds and changes; each keeps what is promised."""
    with made(name, folder) as target:
        some = target.seeds[:: max(1, len(target.seeds) // seeds)]
        outcomes = {target.check(one) for one in some}

        @seed(5)
        @settings(
            max_examples=changes,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(target.inputs())
        def changed(one: Any) -> None:
            outcomes.add(target.check(one))

        changed()
    return outcomes


def test_the_ledgers_of_others_stay_open(tmp_path: Path) -> None:
    """The fuzzer of ledgers closes what a change left open: a ledger in memory would be gone."""
    other = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=1))
    with made("ledger", tmp_path) as target:
        target.check(target.seeds[0])
    assert float(other.remaining.epsilon) == 1


class Numbers:
    """A target that two kinds of numbers break."""

    def __init__(self) -> None:
        self.seeds = [0]

    def inputs(self) -> st.SearchStrategy[int]:
        return st.integers(-1000, 1000)

    def check(self, one: int) -> str:
        if abs(one) > 100:
            raise Broken("too large" if one > 0 else "too small", one)
        return str(one % 7)


@pytest.mark.slow
def test_a_campaign_tells_each_cause_once_and_reduces_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    campaign = Campaign("numbers", Numbers(), minutes=0.01)
    campaign.run(1)
    campaign.report()
    assert {kind: one for kind, (one, _) in campaign.found.items()} == {"too large": 101, "too small": -101}
    assert capsys.readouterr().out.count("FOUND in numbers") == 2
    assert set(campaign.outcomes) == set(map(str, range(7)))
    assert 0 < len(campaign.target.seeds) <= 8


# --- bugs that must be seen ---------------------------------------------------------------------------------

Bug = Callable[[pytest.MonkeyPatch], None]
COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture(scope="module")
def clinics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with made("sql", tmp_path_factory.mktemp("clinics")) as target:
        yield target


def engine_words_pass(patch: pytest.MonkeyPatch) -> None:
    def plan(self: Database, question: Any, **given: Any) -> Any:
        raise NotAllowed("Conversion Error: Could not convert string to INT32")

    patch.setattr(Database, "plan", plan)


def a_value_hangs_on_an_error(patch: pytest.MonkeyPatch) -> None:
    def plan(self: Database, question: Any, **given: Any) -> Any:
        try:
            raise ValueError(f"could not convert {CANARY}")
        except ValueError:
            raise NotAllowed("This is not answered.") from None

    patch.setattr(Database, "plan", plan)
    patch.setattr(closing, "drop_references", lambda error, before: None)  # which would take it off as the error leaves


def an_error_depends_on_the_data(patch: pytest.MonkeyPatch) -> None:
    def plan(self: Database, question: Any, **given: Any) -> Any:
        [(rows,)] = self.engine.rows(f"SELECT count(*) FROM {self.engine.relations['visits']}")
        raise NotAllowed(f"This is about {rows} rows.")

    patch.setattr(Database, "plan", plan)


def another_exception(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Database, "plan", lambda self, question, **given: {}["plan"])


def a_refusal_costs(patch: pytest.MonkeyPatch) -> None:
    sound = Database.sql

    def sql(self: Database, question: Any, **given: Any) -> Any:
        self.ledger.charge(dp.Pure(epsilon=1), asked="?")
        return sound(self, question, **given)

    patch.setattr(Database, "sql", sql)


def an_answer_costs_twice(patch: pytest.MonkeyPatch) -> None:
    sound = Database.sql
    patch.setattr(Database, "sql", lambda self, *a, **b: (sound(self, *a, **b), sound(self, *a, **b))[1])


def the_engine_fails_after_the_charge(patch: pytest.MonkeyPatch) -> None:
    sound = DuckDB._run
    patch.setattr(DuckDB, "_run", lambda self, text, fetch: sound(self, f"SELECT error('{CANARY}')", fetch))


def it_never_ends(patch: pytest.MonkeyPatch) -> None:
    def plan(self: Database, question: Any, **given: Any) -> Any:
        while True:
            pass

    patch.setattr(Database, "plan", plan)
    patch.setattr(sql, "SECONDS", 0.1)


@pytest.mark.some_quick(3)
@pytest.mark.parametrize(
    ("bug", "text", "kind"),
    [
        (engine_words_pass, COUNT, "an error says Error:"),
        (a_value_hangs_on_an_error, COUNT, f"an error says {CANARY}"),
        (an_error_depends_on_the_data, COUNT, "one person can be seen"),
        (another_exception, COUNT, "KeyError from nowhere of ours"),
        (a_refusal_costs, "SELECT * FROM visits", "a refusal was charged"),
        (an_answer_costs_twice, COUNT, "the charge is not that of the plan"),
        (the_engine_fails_after_the_charge, COUNT, "a question with a plan is not answered"),
        (it_never_ends, COUNT, "more than 0.1 s for one input"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_bug_around_questions_is_seen(
    bug: Bug, text: str, kind: str, clinics: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clinics.check(text)
    bug(monkeypatch)
    with pytest.raises(Broken) as broken:
        clinics.check(text)
    assert broken.value.kind == kind


def refused_in_pythons_words(patch: pytest.MonkeyPatch) -> None:
    def load(file: Path) -> Any:
        raise dp.InvalidArgument("'NoneType' object has no attribute 'items'")

    patch.setattr(policy, "load", load)


def refused_by_something_else(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(policy, "load", lambda file: {}[file])


def the_data_are_read_too(patch: pytest.MonkeyPatch) -> None:
    sound = policy.load
    patch.setattr(policy, "load", lambda file: ((file.parent / "visits.csv").read_text(), sound(file))[1])


def a_file_is_left(patch: pytest.MonkeyPatch) -> None:
    sound = policy.connect
    patch.setattr(policy, "connect", lambda file: ((file.parent / "left").write_text("x"), sound(file))[1])


@pytest.mark.some_quick(1)
@pytest.mark.parametrize(
    ("bug", "kind"),
    [
        (refused_in_pythons_words, "an error in Python's words: NoneType"),
        (refused_by_something_else, "KeyError from nowhere of ours"),
        (the_data_are_read_too, "reading a policy opened other files"),
        (a_file_is_left, "files were made beside the ledger"),
    ],
)
def test_a_bug_around_policies_is_seen(bug: Bug, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with made("policy", tmp_path) as target:
        target.check(target.seeds[0])
        bug(monkeypatch)
        with pytest.raises(Broken) as broken:
            target.check(target.seeds[0])
    assert broken.value.kind == kind


def the_chain_is_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(book.EntryRow, "chained_to", lambda self, before: self.chain)


def the_checkpoint_is_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(opening, "check_seen", lambda *given, **named: None)


def types_are_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(book, "_row", lambda values: book.EntryRow(*values))


SMALLER = "UPDATE entries SET totals = replace(totals, '3', '2')"
CUT = (
    *(f"DELETE FROM {table} WHERE number > 3" for table in ("answers", "entries", "parts")),
    "UPDATE head SET answers = 2",
)


@pytest.mark.some_quick(2)
@pytest.mark.parametrize(
    ("bug", "change", "kind"),
    [
        (the_chain_is_not_checked, ledger.Change(statements=(SMALLER,)), "less is spent, opened"),
        (the_checkpoint_is_not_looked_at, ledger.Change(statements=CUT, forged="chain"), "another limit, opened"),
        (types_are_not_checked, ledger.Change(statements=("UPDATE entries SET asked = x'00'",)), "TypeError from"),
    ],
)
def test_a_bug_around_ledgers_is_seen(
    bug: Bug, change: ledger.Change, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made("ledger", tmp_path) as target:
        assert target.check(change).startswith("refused: LedgerDamaged")
        bug(monkeypatch)
        with pytest.raises(Broken) as broken:
            target.check(change)
    assert broken.value.kind.startswith(kind)


def a_second_report_is_counted(patch: pytest.MonkeyPatch) -> None:
    sound = ShufflerStore.accept
    patch.setattr(
        ShufflerStore, "accept", lambda self, rows: sound(self, [row._replace(client=row.digest) for row in rows])
    )


def what_is_malformed_is_counted(patch: pytest.MonkeyPatch) -> None:
    sound = Shuffler.accept

    def accept(self: Shuffler, uploads: Any) -> Any:
        answers = sound(self, uploads)
        with self.store.database.transaction(write=True) as execute:
            for (token, _), said in zip(uploads, answers, strict=True):
                if said == "malformed":
                    self.store.clients.add(execute, [(hashlib.sha256(token).digest(), bytes(32))])
        return answers

    patch.setattr(Shuffler, "accept", accept)


def the_server_fails(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Shuffler, "accept", lambda self, uploads: {}["report"])


def a_second_batch_is_taken(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Analyzer, "receive", lambda self, data: "received")


@pytest.mark.slow
def test_bugs_around_the_wire_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with made("wire", tmp_path) as target:
        twice = [target._report(*target.uploads[0]), target._report(*target.uploads[12])]
        stranger = [target._report(*target.uploads[-2])]
        batches = [target._batch(target.batches[0]), target._batch(target.batches[1])]
        for bug, requests, kind in (
            (a_second_report_is_counted, twice, "POST /v1/report of the shuffler answers 200, not [409]"),
            (what_is_malformed_is_counted, stranger, "the shuffler counts others than it should"),
            (the_server_fails, twice, "KeyError from shuffler.py, write"),
            (a_second_batch_is_taken, batches, "the analyzer keeps another batch than it took"),
        ):
            target.check(requests)
            with monkeypatch.context() as patch:
                bug(patch)
                with pytest.raises(Broken) as broken:
                    target.check(requests)
            assert broken.value.kind == kind


@pytest.mark.slow
def test_bugs_around_the_command_line_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["ledger", "missing.ledger"]

    def fails(*given: Any, **named: Any) -> Any:
        raise KeyError("ledger")

    def says(text: str) -> Callable[..., Any]:
        def raised(*given: Any, **named: Any) -> Any:
            raise NotAllowed(text)

        return raised

    with made("cli", tmp_path) as target:
        for where, bug, kind in (
            ("discreet.cli.ledger.main", fails, "KeyError from"),
            ("discreet.cli.ledger.main", says("one\ntwo\nthree"), "an error of several lines"),
            ("discreet.cli.ledger.main", says(f"of {CANARY}"), "an error says a value of the data"),
            ("discreet.cli.app.exit_code", lambda error: 7, "the status 7"),
            ("fuzz.cli.main", lambda words: exit(3), "the status 3 without a word of ours"),
        ):
            target.check(words)
            with monkeypatch.context() as patch:
                patch.setattr(where, bug)
                with pytest.raises(Broken) as broken:
                    target.check(words)
            assert broken.value.kind.startswith(kind)


def answers_with(change: Callable[[Any], Any]) -> Callable[..., Any]:
    """A desk whose replies of the vault are changed."""
    sound = Desk._call

    async def call(self: Desk, *given: Any, **named: Any) -> Any:
        return change(await sound(self, *given, **named))

    return call


def fails(frame: Any) -> Any:
    raise KeyError("value")


def quotes(frame: Any) -> Any:
    return Frame(frame.header, frame.body[:-1] + f', "note": "{CANARY}"}}'.encode())


@pytest.mark.slow
def test_bugs_around_http_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with made("http", tmp_path) as target:
        reads = http.Request("alice", "GET", "/v1/me")
        page = http.Request("alice", "GET", "/ask", query=b"sql=%3Czq7x%20")
        asks, refused = target.seeds[0], target.seeds[0]._replace(body=b'{"sql": "SELECT COUNT(*) FROM nowhere"}')
        for where, bug, one, kind in (
            ("discreet.gateway.desk.http.Desk._call", answers_with(fails), reads, "GET /v1/me answers 500"),
            ("discreet.gateway.desk.http.Desk._call", answers_with(quotes), reads, "/v1/me says a value of the data"),
            ("discreet.gateway.desk.http.SAFE", (), reads, "GET /v1/me is sent without headers"),
            ("discreet.gateway.books.tokens.holder", lambda store, *_: target_owner(), nobody(reads), "/v1/me answers"),
        ):
            target.check(one)
            with monkeypatch.context() as patch:
                patch.setattr(where, bug)
                with pytest.raises(Broken) as broken:
                    target.check(one)
            assert broken.value.kind.startswith(kind)
        assert "200" in target.check(page)
        monkeypatch.setattr(target._desk._transport.app._console._templates, "autoescape", False)
        monkeypatch.setattr(target._desk._transport.app._console._templates, "cache", {})
        with pytest.raises(Broken, match="holds markup"):
            target.check(page)
        for one, charged in ((reads, 1), (refused, 1), (asks._replace(who="vera"), 1)):
            with pytest.raises(Broken, match="charge"):
                target._check_charges(one, 400 if one is refused else 200, charged)


def nobody(request: Any) -> Any:
    return request._replace(who="a stranger")


def target_owner() -> Any:
    return Caller(account="olga", role="owner", scopes=frozenset(ROLES["owner"]), token="x")


@pytest.mark.slow
def test_bugs_around_tasks_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with made("tasks", tmp_path) as target:
        sound = {one.kind: one for one in reversed(target.seeds)}
        other = sound["survey"]._replace(content=sound["survey"].content.replace(b'"epsilon":1', b'"epsilon":2'))
        card = sound["card.md"]._replace(content=sound["card.md"].content + b" ")
        survey = dp.local.from_task(sound["survey"].content)
        plan = tasks.load_plan
        for where, bug, one, kind in (
            ("discreet.local.from_task", lambda data, memory: survey, other, "a survey is read as another one"),
            ("discreet.local.from_task", lambda data, memory: {}[data], other, "KeyError from"),
            (
                "fuzz.tasks.load_plan",
                lambda path: (tmp_path / "x").write_text("x") and plan(path),
                sound["plan"],
                "reading",
            ),
            ("discreet.publication.verifying.digest", lambda data: "same", sound["card.md"], "a publication whose"),
            ("discreet.publication.verifying.Checked.holds", True, card, "a publication whose card.md is changed"),
        ):
            target.check(one)
            with monkeypatch.context() as patch:
                patch.setattr(where, bug)
                with pytest.raises(Broken) as broken:
                    target.check(one)
            assert broken.value.kind.startswith(kind)
