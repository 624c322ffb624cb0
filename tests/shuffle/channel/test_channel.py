"""Shuffler and analyzer in one process: what is counted, what leaves, what is charged. On SQLite and PostgreSQL."""

from __future__ import annotations

import sqlite3
import tempfile
from collections import Counter
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from scipy.stats import chi2

import discreet as dp
from discreet import shuffle
from discreet.cli.shuffle.options import files_of
from discreet.errors import BudgetExhausted, InvalidArgument
from discreet.ledger.stores.sqlite import log_ahead
from discreet.shuffle.channel import database, keys, wire
from discreet.shuffle.channel.client import Client
from discreet.shuffle.channel.shuffler import Shuffler
from discreet.shuffle.channel.store import CutBatch, ShufflerStore, StoredReport
from discreet.shuffle.channel.unordered import EntryRows
from discreet.shuffle.histograms import METHODS

from ...refusing import refuses
from .polls import EMPTY, Poll, counts, finish, make_poll


def fill(poll: Poll, shuffler: Shuffler, reports: int, first: int = 0) -> list[tuple[bytes, bytes]]:
    uploads = [poll.exact(number, number % 3) for number in range(first, first + reports)]
    assert shuffler.accept(uploads) == ["accepted"] * reports
    return uploads


@pytest.mark.slow
def test_every_honest_report_is_counted_once(poll: Poll) -> None:
    shuffler, analyzer = poll.shuffler(), poll.analyzer()
    uploads = fill(poll, shuffler, 11)
    assert shuffler.accept(uploads[:3] + uploads[:3]) == ["accepted"] * 6  # the same bytes again
    assert shuffler.accept([poll.exact(1, 2), poll.exact(2, 2)]) == ["other bytes"] * 2
    result = finish(shuffler, analyzer)
    assert counts(result) == [4, 4, 3]
    assert result["reports"] == 11
    assert (result["guarantee"], result["not_private"]) == ("ε = 8, δ = 0.05", False)
    assert shuffler.store.standing() == ("acknowledged", 11)
    assert shuffler.accept([uploads[0], poll.exact(50, 0)]) == ["closed", "closed"]
    assert poll.ledger().count == 1


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("method", [*METHODS, "bit", "two bits"])
def test_every_protocol_goes_through_the_channel(method: str, tmp_path: Path) -> None:
    """[L8.DEF]: what is published is what the protocol makes of the same messages without a channel."""
    terms = {"clients": 40, "epsilon": 8, "delta": 0.05}
    if method in METHODS:
        protocol, values = shuffle.histogram(choices=[*"abc"], method=method, **terms), ["a", "b", "c", "c"] * 10
    else:
        protocol = shuffle.bit_sum(method="response" if method == "bit" else "two messages", **terms)
        values = [0, 1, 1, 1] * 10
    poll = make_poll(tmp_path, description=protocol.described())
    messages = protocol.encode_many(values).reshape(40, -1)
    tokens = [poll.token(number) for number in range(40)]
    uploads = [(token, Client(poll.task, token).envelope(own)) for token, own in zip(tokens, messages, strict=True)]
    shuffler, analyzer = poll.shuffler(), poll.analyzer()
    assert shuffler.accept(uploads) == ["accepted"] * 40
    result = finish(shuffler, analyzer)
    expected = protocol.analyze(messages.reshape(-1))
    got = dict(result["value"]) if isinstance(result["value"], list) else result["value"]
    assert got == pytest.approx(expected.value)
    assert result["error"] == pytest.approx(float(expected.error(0.95)))
    assert result["guarantee"] == "ε = 8, δ = 0.05"


def test_what_is_malformed_leaves_no_trace(poll: Poll) -> None:
    shuffler = poll.shuffler()
    token, report = poll.exact(1, 0)
    elsewhere = replace(poll.task, epsilon=9.0)
    bad = [
        (token, report[:-1]),
        (token, report + b"\0"),
        (token, b""),
        (token, bytes(len(report))),
        (token, report[:-1] + bytes([report[-1] ^ 1])),
        (b"", report),
        (bytes(48), report),
        (token[:-1] + bytes([token[-1] ^ 1]), report),
        (poll.token(2), report),  # another client sends it again
        (token, Client(elsewhere, token).envelope([0, EMPTY])),
        (token, keys.seal(bytes(98), poll.task.analyzer_key, wire.outer(poll.task.hash, token[:16]))),
    ]
    assert shuffler.accept(bad) == ["malformed"] * len(bad)
    assert shuffler.store.standing() == ("collecting", 0)
    assert shuffler.accept([(token, report), poll.exact(2, 1)]) == ["accepted"] * 2  # their one report is not used up


def test_messages_that_are_none_are_dropped_by_the_analyzer(poll: Poll) -> None:
    shuffler, analyzer = poll.shuffler(), poll.analyzer()
    fill(poll, shuffler, 12)
    task, bad = poll.task, []
    for number in range(100, 103):  # out of the domain, bound elsewhere, and for another key
        token = poll.token(number)
        info, to = (wire.inner(task.hash), task.analyzer_key) if number == 100 else (b"elsewhere", task.analyzer_key)
        to = task.shuffler_key if number == 102 else to
        inside = b"".join(keys.seal(b"\xfa", to, info) for _ in range(2))
        bad.append((token, keys.seal(inside, task.shuffler_key, wire.outer(task.hash, token[:16]))))
    assert shuffler.accept(bad) == ["accepted"] * 3
    result = finish(shuffler, analyzer)
    # fifteen reports, of which three said nothing: they are not heard, and move no count
    assert counts(result) == [4, 4, 4]
    assert (result["reports"], result["heard"]) == (15, 12)


def junk(poll: Poll, number: int) -> tuple[bytes, bytes]:
    """An upload that the shuffler takes, of messages that the analyzer cannot read."""
    token, task = poll.token(number), poll.task
    inside = b"".join(keys.seal(b"\xfa", task.analyzer_key, wire.inner(task.hash)) for _ in range(2))
    return token, keys.seal(inside, task.shuffler_key, wire.outer(task.hash, token[:16]))


def a_batch_of_junk_is_withheld(poll: Poll) -> None:
    """Ten reports, of which seven can be read where eight must be honest: no count leaves, at any price."""
    shuffler, analyzer = poll.shuffler(), poll.analyzer()
    fill(poll, shuffler, 7)
    assert shuffler.accept([junk(poll, number) for number in range(50, 53)]) == ["accepted"] * 3
    result = finish(shuffler, analyzer)
    assert result == {"reports": 10, "heard": 7, "needed": 8}, "a batch was published that should be withheld"
    assert shuffler.store.standing() == ("acknowledged", 10)  # it is over: nothing is sent again
    assert (analyzer.analyze(), poll.ledger().count) == (result, 1)
    assert poll.issuer.outer == keys.AnalyzerKeys.load(files_of(poll.path).analyzer_key).inner == b""


def test_a_batch_of_junk_is_withheld(poll: Poll) -> None:
    a_batch_of_junk_is_withheld(poll)


def test_an_analyzer_that_counts_messages_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffle.Protocol, "at_least", 0)
    with pytest.raises(AssertionError, match="should be withheld"):
        a_batch_of_junk_is_withheld(make_poll(tmp_path))


def test_eight_of_ten_are_enough_and_what_was_heard_is_published(poll: Poll) -> None:
    shuffler, analyzer = poll.shuffler(), poll.analyzer()
    fill(poll, shuffler, 8)
    shuffler.accept([junk(poll, number) for number in range(50, 52)])
    result = finish(shuffler, analyzer)
    assert (result["reports"], result["heard"], counts(result)) == (10, 8, [3, 3, 2])


def test_a_copy_in_a_batch_counts_once_at_the_analyzer(poll: Poll) -> None:
    """A shuffler that fills up a batch with copies of few reports."""
    analyzer, task = poll.analyzer(), poll.task
    one = b"".join(keys.seal(bytes([m]), task.analyzer_key, wire.inner(task.hash)) for m in (0, EMPTY))
    blob = one * 10
    batch = wire.Batch(task.hash, 10, wire.digest(task.hash, 10, blob), blob)
    assert analyzer.receive(wire.pack_batch(batch)) == "received"
    assert analyzer.analyze() == {"reports": 10, "heard": 1, "needed": 8}


def test_what_was_heard_is_found_again_after_a_crash(poll: Poll, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the ledger's answer and the store's: the stored answer is published, with what was heard."""
    shuffler, analyzer = poll.shuffler(), poll.analyzer()
    fill(poll, shuffler, 12)
    shuffler.accept([junk(poll, 50)])
    shuffler.seal()
    with monkeypatch.context() as patch:
        patch.setattr(analyzer.store, "publish", lambda result: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            shuffler.deliver(lambda batch: analyzer.receive(batch) and analyzer.analyze(), lambda: "waiting")
    result = poll.analyzer().analyze()
    assert (result["heard"], result["reports"], counts(result)) == (12, 13, [4, 4, 4])
    assert poll.ledger().count == 1


def test_a_copied_message_is_left_out(poll: Poll) -> None:
    shuffler, task = poll.shuffler(), poll.task
    fill(poll, shuffler, 10)
    once = keys.seal(b"\0", task.analyzer_key, wire.inner(task.hash))
    fresh = keys.seal(b"\0", task.analyzer_key, wire.inner(task.hash))
    bad = []
    for number, inside in ((60, once + once), (61, once + fresh), (62, fresh + once)):
        token = poll.token(number)
        bad.append((token, keys.seal(inside, task.shuffler_key, wire.outer(task.hash, token[:16]))))
    assert shuffler.accept(bad) == ["accepted"] * 3
    assert shuffler.seal() == ("sealed", 11)  # the first report twice in itself; of the other two, one


def test_below_the_minimum_nothing_leaves(poll: Poll) -> None:
    shuffler = poll.shuffler()
    sent = []
    fill(poll, shuffler, 9)
    for _ in range(3):
        assert shuffler.seal() == ("collecting", 9)
        shuffler.deliver(lambda batch: sent.append(batch) or "received", lambda: "waiting")
    assert shuffler.store.batch() == ("collecting", None)
    assert sent == []
    assert shuffler.store.discard() == "discarded"
    assert shuffler.accept([poll.exact(20, 0)]) == ["closed"]
    assert shuffler.seal() == ("discarded", 9)
    shuffler.deliver(lambda batch: sent.append(batch) or "received", lambda: "waiting")
    assert sent == []
    assert poll.issuer.outer == b""


def test_reports_are_counted_again_after_damaged_and_copied_ones_are_left_out(poll: Poll) -> None:
    shuffler, task = poll.shuffler(), poll.task
    uploads = fill(poll, shuffler, 9)
    once = keys.seal(b"\0", task.analyzer_key, wire.inner(task.hash))
    token = poll.token(99)
    twice = keys.seal(once + once, task.shuffler_key, wire.outer(task.hash, token[:16]))
    assert shuffler.accept([(token, twice)]) == ["accepted"]
    assert shuffler.store.standing() == ("collecting", 10)
    assert shuffler.seal() == ("collecting", 9)
    assert shuffler.store.batch() == ("collecting", None)
    fill(poll, shuffler, 1, first=30)
    store = shuffler.store
    with store.database.transaction(write=True) as execute:  # one row is damaged: nine are left, and the copy
        mine = keys.keyed_hash(poll.issuer.nullifiers, b"row", uploads[0][1])[:16]
        rows = dict(store.reports.all(execute))
        store.reports.clear(execute)
        store.reports.add(execute, [*(rows | {mine: bytes(len(rows[mine]))}).items()])
    assert shuffler.seal() == ("collecting", 9)
    fill(poll, shuffler, 1, first=31)
    assert shuffler.seal() == ("sealed", 10)


def test_a_smaller_batch_is_refused_by_the_analyzer_too(poll: Poll) -> None:
    analyzer, task = poll.analyzer(), poll.task
    blob = bytes(9 * 2 * task.shape.message)
    small = wire.pack_batch(wire.Batch(task.hash, 9, wire.digest(task.hash, 9, blob), blob))
    assert analyzer.receive(small) == "not accepted"
    other = replace(task, epsilon=9.0).hash
    blob = bytes(10 * 2 * task.shape.message)
    assert (
        analyzer.receive(wire.pack_batch(wire.Batch(other, 10, wire.digest(other, 10, blob), blob))) == "not accepted"
    )
    right = wire.pack_batch(wire.Batch(task.hash, 10, wire.digest(task.hash, 10, blob), blob))
    assert analyzer.receive(right[:-1] + b"x") == "not accepted"
    assert analyzer.store.standing() == ("waiting", None)
    assert analyzer.receive(right) == "received"


def test_a_second_batch_of_a_task_is_refused(poll: Poll, tmp_path: Path) -> None:
    """A shuffler that was put back to an old state would cut a batch that differs in a few people."""
    shuffler, analyzer = poll.shuffler(), poll.analyzer()
    fill(poll, shuffler, 10)
    shuffler.seal()
    first = wire.pack_batch(wire.Batch(poll.task.hash, *shuffler.store.batch()[1]))
    again = Poll(poll.path, str(tmp_path / "again.db"), poll.analyzer_at, poll.ledger_at).shuffler()
    fill(poll, again, 11)
    again.seal()
    second = wire.pack_batch(wire.Batch(poll.task.hash, *again.store.batch()[1]))
    assert analyzer.receive(first) == "received"
    assert analyzer.receive(second) == "another batch"
    result = analyzer.analyze()
    assert analyzer.receive(second) == "another batch"
    assert analyzer.receive(first) == "analyzed"
    assert analyzer.analyze() == result
    assert poll.ledger().count == 1


def test_the_charge_comes_before_the_first_look(poll: Poll, monkeypatch: pytest.MonkeyPatch) -> None:
    shuffler, analyzer = poll.shuffler(), poll.analyzer()
    fill(poll, shuffler, 10)
    seen = []
    opened = analyzer._openers.messages
    monkeypatch.setattr(analyzer._openers, "messages", lambda *a: seen.append(poll.ledger().count) or opened(*a))
    finish(shuffler, analyzer)
    assert seen == [1]


def test_a_refused_charge_opens_nothing_and_can_be_mended(poll: Poll, monkeypatch: pytest.MonkeyPatch) -> None:
    shuffler, analyzer = poll.shuffler(), poll.analyzer()
    dp.release(0, dp.Laplace(scale=1), sensitivity=1, ledger=poll.ledger())
    fill(poll, shuffler, 10)
    opened = analyzer._openers.messages
    monkeypatch.setattr(analyzer._openers, "messages", lambda *a: pytest.fail("it looked"))
    with refuses(BudgetExhausted, "budget-exhausted"):
        finish(shuffler, analyzer)
    assert shuffler.store.standing()[0] == "sealed"
    assert keys.AnalyzerKeys.load(files_of(poll.path).analyzer_key).inner
    monkeypatch.setattr(analyzer._openers, "messages", opened)
    poll.ledger().raise_limit(dp.Approx(epsilon=20, delta=0.1), why="a test")
    assert counts(finish(shuffler, analyzer)) == [4, 3, 3]


def test_keys_are_deleted_when_they_are_not_needed_any_more(poll: Poll) -> None:
    shuffler, analyzer = poll.shuffler(), poll.analyzer()
    fill(poll, shuffler, 10)
    result = finish(shuffler, analyzer)
    inner = keys.AnalyzerKeys.load(files_of(poll.path).analyzer_key).inner
    assert (inner, poll.issuer.outer, poll.issuer.storage, poll.issuer.nullifiers) == (b"", b"", b"", b"")
    assert poll.analyzer().analyze() == result  # a new one still serves the result
    assert poll.shuffler().seal() == ("acknowledged", 10)


def test_the_same_blob_is_sent_again(poll: Poll) -> None:
    shuffler = poll.shuffler()
    fill(poll, shuffler, 10)
    sent = []
    assert shuffler.seal() == shuffler.seal() == ("sealed", 10)
    for _ in range(3):
        shuffler.deliver(lambda batch: sent.append(batch) or "received", lambda: "waiting")
    assert shuffler.store.standing()[0] == "forwarded"
    poll.shuffler().deliver(lambda batch: sent.append(batch) or "received", lambda: "waiting")
    assert len(sent) == 4
    assert len(set(sent)) == 1
    shuffler.deliver(lambda batch: pytest.fail("it has the batch"), lambda: "received")
    assert shuffler.store.standing()[0] == "forwarded"
    assert shuffler.deliver(lambda batch: pytest.fail("it is done"), lambda: "analyzed") == "acknowledged"


def test_no_ledger_for_added_rows(poll: Poll, tmp_path: Path) -> None:
    wrong = dp.Ledger.open(tmp_path / "wrong", protects=dp.row(), limit=dp.Approx(epsilon=9, delta=0.1))
    one = poll.analyzer()
    with refuses(InvalidArgument, "shuffle-ledger-unit"):
        type(one)(one.task, one._keys, one.store, wrong)


def test_a_database_belongs_to_one_task(poll: Poll) -> None:
    poll.shuffler()
    with refuses(InvalidArgument, "shuffle-other-task"):
        ShufflerStore(poll.shuffler_at, bytes(32))


# --- nothing about who or when --------------------------------------------------------------------------------


def test_the_tables_tell_neither_who_nor_when(poll: Poll) -> None:
    shuffler = poll.shuffler()
    uploads = fill(poll, shuffler, 12)
    with shuffler.store.database.transaction(write=False) as execute:
        names = [one for one, _ in shuffler.store.clients.all(execute)]
        rows = shuffler.store.reports.all(execute)
    stored = b"".join(names) + b"".join(one + body for one, body in rows)
    for token, report in uploads:
        inside = keys.open_seal(report, poll.issuer.outer, wire.outer(poll.task.hash, token[:16]))
        assert token[:16] not in stored
        assert report[:32] not in stored
        assert inside[:32] not in stored  # encrypted at rest: a stolen database does not help the analyzer
    assert not {one for one, _ in rows} & {name[:16] for name in names}


def some_rows(count: int, length: int = 200) -> list[StoredReport]:
    drawn = [keys.random_bytes(80 + length) for _ in range(count)]
    return [StoredReport(one[:32], one[32:64], one[64:80], one[80:]) for one in drawn]


def files_after(folder: Path, rows: list[StoredReport], together: int = 1) -> dict[str, bytes]:
    """All bytes that a store has on disk once it has taken these rows, so many in a commit; still open."""
    folder.mkdir()
    store = ShufflerStore(str(folder / "reports.db"), bytes(32))
    for start in range(0, len(rows), together):
        group = rows[start : start + together]
        assert store.accept(group) == ["accepted"] * len(group)
    found = {file.name: file.read_bytes() for file in folder.iterdir()}
    store.close()
    return found


def disk_tells_no_order(folder: Path, count: int = 50) -> None:
    """At no moment do the files of a store depend on the order in which the same reports came, in a single byte."""
    rows = some_rows(count)
    for many in (2, 17, count):
        backward, mixed = rows[:many][::-1], rows[1:many:2] + rows[:many:2]
        forward = files_after(folder / f"{many}", rows[:many])
        assert all(row.id in forward["reports.db"] and row.client in forward["reports.db"] for row in rows[:many])
        for place, other in enumerate((backward, mixed)):
            assert files_after(folder / f"{many}-{place}", other) == forward


@pytest.mark.slow
def test_sqlite_keeps_no_order_of_arrival(tmp_path: Path) -> None:
    disk_tells_no_order(tmp_path)


def test_a_store_of_rows_would_be_seen_to_keep_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = type("Rows", (EntryRows,), {"clear": lambda self, execute: execute(f"DELETE FROM {self._name}")})
    monkeypatch.setattr(database.SqliteDatabase, "entries", lambda self, *names: rows(*names))
    with pytest.raises(AssertionError):
        disk_tells_no_order(tmp_path, count=17)


def test_a_write_ahead_log_would_be_seen_to_keep_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "keep_no_log", log_ahead)
    with pytest.raises(AssertionError):
        disk_tells_no_order(tmp_path, count=17)


def test_what_was_deleted_is_on_disk_no_more(tmp_path: Path) -> None:
    rows = some_rows(40)
    files_after(tmp_path / "one", rows, together=7)
    store = ShufflerStore(str(tmp_path / "one" / "reports.db"), bytes(32))
    store.discard()
    left = b"".join(file.read_bytes() for file in (tmp_path / "one").iterdir())
    assert not any(part in left for row in rows for part in (row.client, row.id, row.body[:16]))
    store.close()


def test_reports_of_another_length_are_refused(tmp_path: Path) -> None:
    store = ShufflerStore(str(tmp_path / "reports.db"), bytes(32))
    store.accept(some_rows(2))
    with refuses(dp.DiscreetError, "shuffle-other-task"):
        store.accept(some_rows(1, length=100))
    assert store.standing() == ("collecting", 2)
    store.close()


def test_a_store_of_version_0_1_is_taken_over(tmp_path: Path) -> None:
    """Rows in tables of their own, and a write-ahead log."""
    path, rows = tmp_path / "reports.db", some_rows(40)
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("CREATE TABLE nullifier (client BLOB PRIMARY KEY, digest BLOB NOT NULL) WITHOUT ROWID")
    raw.execute("CREATE TABLE report (id BLOB PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID")
    raw.executemany("INSERT INTO nullifier VALUES (?, ?)", [(row.client, row.digest) for row in rows])
    raw.executemany("INSERT INTO report VALUES (?, ?)", [(row.id, row.body) for row in rows])
    raw.commit()
    raw.close()
    store = ShufflerStore(str(path), bytes(32))
    assert store.standing() == ("collecting", 40)
    assert store.accept([*rows[:2], rows[0]._replace(digest=bytes(32))]) == ["accepted", "accepted", "other bytes"]
    assert store.seal(40, lambda kept: CutBatch(len(kept), b"", b"".join(body for _, body in kept)))[1] == 40
    assert sorted(file.name for file in tmp_path.iterdir()) == ["reports.db", "reports.db-journal"]
    store.close()


def test_a_log_that_another_process_holds_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE", 0.05)
    path = tmp_path / "reports.db"
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("CREATE TABLE one (number INTEGER)")
    other = sqlite3.connect(path, timeout=0)
    with pytest.raises((dp.DiscreetError, sqlite3.OperationalError)) as caught:
        database.keep_no_log(other)
    assert getattr(caught.value, "code", "") == "ledger-busy" or "locked" in str(caught.value)
    other.close()
    raw.close()


@pytest.mark.slow
@pytest.mark.parametrize("order", ["report", "message"])
def test_the_order_is_uniform(order: str, tmp_path: Path) -> None:
    """[L8.DEF]. Five reports, 120 orders: chi-square at 1e-7; a fixed order, or one of a few, is seen at once."""
    poll = make_poll(tmp_path)
    shuffler, width = poll.shuffler(), poll.task.shape.message
    cipher_rows = []
    contents = [bytes([number]) * width + bytes([100 + number]) * width for number in range(5)]
    for number, content in enumerate(contents):
        row = bytes([number]) * 16
        nonce = bytes([number]) * 12
        cipher_rows.append((row, nonce + AESGCM(poll.issuer.storage).encrypt(nonce, content, row)))
    seen: Counter[tuple[int, ...]] = Counter()
    draws = 4000
    for _ in range(draws):
        sealed = shuffler._cut(cipher_rows)
        firsts = [sealed.blob[start] for start in range(0, len(sealed.blob), width)]
        wanted = range(5) if order == "report" else range(100, 105)
        seen[tuple(one for one in firsts if one in wanted)] += 1
    assert set(seen) <= set(permutations(wanted))
    statistic = sum((seen[one] - draws / 120) ** 2 / (draws / 120) for one in permutations(wanted))
    assert statistic < chi2.isf(1e-7, 119)


# --- the store, by any sequence of steps ----------------------------------------------------------------------


class StoreMachine(RuleBasedStateMachine):
    """The store beside a dictionary that does the same."""

    minimum = 3

    @initialize(tmp=st.integers(0, 2**62))
    def begin(self, tmp: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.store = ShufflerStore(f"{self.folder.name}/{tmp}.db", bytes(32))
        self.model: dict[int, int] = {}
        self.state, self.cut, self.count = "collecting", None, 0

    @rule(uploads=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=6))
    def accept(self, uploads: list[tuple[int, int]]) -> None:
        rows = [StoredReport(bytes([c]) * 32, bytes([b]) * 32, bytes([c, b]) * 8, bytes([c, b])) for c, b in uploads]
        said = self.store.accept(rows)
        if self.state == "collecting":
            for client, body in sorted(uploads):
                self.model.setdefault(client, body)
        for (client, body), one in zip(uploads, said, strict=True):
            known = self.model.get(client)
            assert one == ("closed" if known is None else "accepted" if known == body else "other bytes")

    @rule()
    def seal(self) -> None:
        def cut(rows: list[tuple[bytes, bytes]]) -> CutBatch:
            return CutBatch(len(rows), b"digest", b"".join(body for _, body in rows))

        state, count = self.store.seal(self.minimum, cut)
        if self.state == "collecting" and len(self.model) >= self.minimum:
            self.state, self.count = "sealed", len(self.model)
            self.cut = {bytes([client, body]) for client, body in self.model.items()}
        assert state == self.state
        assert count == (len(self.model) if self.state == "collecting" else self.count)

    @rule()
    def forward(self) -> None:
        self.store.forwarded()
        self.state = "forwarded" if self.state == "sealed" else self.state

    @rule()
    def acknowledge(self) -> None:
        self.store.acknowledged()
        if self.state in ("sealed", "forwarded"):
            self.state, self.model = "acknowledged", {}

    @precondition(lambda self: len(self.model) < 2)
    @rule()
    def discard(self) -> None:
        self.store.discard()
        if self.state == "collecting":
            self.state, self.count, self.model = "discarded", len(self.model), {}

    @rule()
    def reopen(self) -> None:
        target = self.store.database.shown
        self.store.close()
        self.store = ShufflerStore(target, bytes(32))

    @invariant()
    def nothing_else_is_there(self) -> None:
        if not hasattr(self, "store"):
            return
        state, sealed = self.store.batch()
        assert state == self.state
        assert (sealed is not None) == (state in ("sealed", "forwarded"))
        if sealed is not None:
            assert sealed.reports == self.count >= self.minimum
            assert {sealed.blob[place : place + 2] for place in range(0, len(sealed.blob), 2)} == self.cut
            assert len(sealed.blob) == 2 * self.count
        with self.store.database.transaction(write=False) as execute:
            rows = len(self.store.reports.all(execute))
            assert rows == self.store.reports.count(execute)
        assert rows == (len(self.model) if state == "collecting" else 0)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.folder.cleanup()


TestStore = StoreMachine.TestCase
TestStore.settings = settings(
    max_examples=10, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)
