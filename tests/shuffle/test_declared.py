"""What is declared is compared with what is in hand: reports that can be read are counted, before anything is charged.

Noise of fewer clients than a promise counts on does not keep it, so a batch of fewer readable reports is refused. Which
reports can be read does not depend on anybody's answer, and their number is public: a client is replaced, not removed.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import door, testing
from discreet.mechanisms import protocol as mechanism_protocol
from discreet.mechanisms.combine import PerGroup
from discreet.mechanisms.reports import shuffled
from discreet.mechanisms.reports.bit_response import SubsetSelection, UnaryResponse
from discreet.mechanisms.reports.frequency_oracle import DirectResponse
from discreet.mechanisms.reports.geometric_response import HadamardResponse, ProjectiveResponse
from discreet.mechanisms.reports.local_hashing import LocalHashing
from discreet.mechanisms.reports.local_mean import HybridResponse, WindowResponse
from discreet.mechanisms.reports.local_records import inside
from discreet.shuffle.messages import whole_messages
from discreet.shuffle.protocol import MOST_CLIENTS, from_description

from ..refusing import refuses
from .every_poll import POLLS
from .every_poll import poll as poll_of


def own_ledger(folder: Path) -> dp.Ledger:
    limit = dp.Approx(epsilon=50, delta=0.2)
    return dp.Ledger.open(folder / "own.ledger", limit=limit, protects=dp.row(neighbors="replace"))


# --- Shuffled ---------------------------------------------------------------------------------------------------


def shuffled_needs_its_clients(folder: Path, clients: int = 100_000) -> None:
    """100,000 clients are promised; one person's report is not released, and costs nothing."""
    local = dp.RandomizedResponse.for_guarantee(dp.Pure(epsilon=3), choices=["a", "b"])
    poll, ledger = dp.Shuffled(local=local, clients=clients), own_ledger(folder)
    for records in (["a"], ["a"] * (clients - 1), np.array(["a", "b"]), ()):
        with refuses(dp.NotAllowed, "too-few-reports"):
            dp.release(records, poll, ledger=ledger)
    assert len(list(ledger.entries())) == 0
    assert len(dp.release(["a"] * 51, dp.Shuffled(local=local, clients=50)).value) == 51  # more hide each other more


def test_shuffled_needs_its_clients(tmp_path: Path) -> None:
    shuffled_needs_its_clients(tmp_path)


def test_groups_and_samples_hide_how_many_there_are() -> None:
    poll = dp.Shuffled(local=dp.RandomizedResponse(choices=("a", "b"), lie=0.25), clients=100)
    for made in (lambda: PerGroup(mechanism=poll), lambda: dp.Subsampled(mechanism=poll, rate=0.5)):
        with refuses(dp.InvalidArgument, "size-is-private"):
            made()


def test_a_door_that_does_not_count_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (door, mechanism_protocol, shuffled):
        monkeypatch.setattr(module, "check_enough_records", lambda *_: None)
    with pytest.raises(pytest.fail.Exception):
        shuffled_needs_its_clients(tmp_path, clients=5)


def test_shuffled_counts_what_a_query_brings_and_what_others_hand_it(tmp_path: Path) -> None:
    """Inside of another mechanism nobody counts for it: it does so itself."""
    local = dp.RandomizedResponse(choices=["a", "b"], lie=0.25)
    poll = dp.Shuffled(local=local, clients=3)
    both = dp.Composed(mechanisms=(poll, poll))
    with refuses(dp.NotAllowed, "too-few-reports"):
        dp.release((["a"] * 3, ["a"] * 2), both, sensitivity=(None, None))
    for one in ("aaa", {"a": 1, "b": 2, "c": 3}, {"a", "b", "c"}, 5, None, np.array("aaa")):
        with refuses(dp.InvalidArgument, "not-a-column"):
            dp.release(one, poll)
    with refuses(dp.InvalidArgument, "not-a-column"):
        dp.release(np.full((3, 2), "a"), poll)


ORACLES: list[Any] = [
    DirectResponse(size=4, odds=10**18),
    SubsetSelection(size=4, odds=10**18),
    SubsetSelection(size=64, odds=10**18, width=2),
    SubsetSelection(size=80, odds=10**18, width=40),
    UnaryResponse(size=4, odds=10**18),
    HadamardResponse(size=4, odds=10**18),
    ProjectiveResponse(size=4, odds=10**18, prime=3),
    LocalHashing(size=4, odds=10**18, cells=3),
    WindowResponse(odds=10**18, grid=6),
    HybridResponse(wide=WindowResponse(odds=9, outputs=8, grid=6), coin=WindowResponse(odds=9, grid=6), share=0.5),
    dp.RandomizedResponse(choices=["a", "b", "c"], lie=1e-12),
    dp.local.heavy_hitters(bits=6, epsilon=4).mechanism,
    dp.local.sketch(width=8, hashes=4, epsilon=4).mechanism,
    dp.local.mean(between=(0, 1), epsilon=4, method="laplace").mechanism,
]


class Odd:
    """A record that fails whatever is asked of it."""

    def _fails(self, *_: Any) -> Any:
        raise RuntimeError("canary")

    __float__ = __int__ = __index__ = __len__ = __eq__ = __hash__ = __bool__ = __iter__ = __str__ = _fails  # type: ignore[assignment]


FOREIGN: list[Any] = [
    99,
    -1,
    2**62,
    10**30,
    10**5000,
    0.5,
    math.nan,
    math.inf,
    "zzz",
    b"a",
    None,
    [1],
    (1, 2),
    {},
    Odd(),
]


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda one: f"{type(one).__name__} {getattr(one, 'size', '')}")
def test_a_foreign_record_is_told_as_one_of_the_domain(oracle: Any) -> None:
    """Whatever it is, its report is one that people of the domain send; it never shows what it was."""
    drawn = list(dp.Shuffled(local=oracle, clients=len(FOREIGN))._draw(FOREIGN))
    assert len(drawn) == len(FOREIGN)
    if isinstance(oracle, dp.RandomizedResponse):
        assert set(drawn) <= {"a", "b", "c"}
    elif hasattr(oracle, "valid"):
        found = oracle.valid(drawn)
        assert len(found[0] if isinstance(found, tuple) else found) == len(FOREIGN)
    else:
        assert np.isfinite(drawn).all()
    assert len(oracle._draw([])) == 0


@pytest.mark.parametrize("oracle", ORACLES[:8], ids=lambda one: f"{type(one).__name__} {one.size}")
def test_a_foreign_record_changes_no_other_and_asks_for_no_more_draws(oracle: Any) -> None:
    """With the same noise all other reports are the same, bit for bit, and so are the draws that were asked for."""
    reports, calls = [], []
    for odd in (1, *FOREIGN):
        with testing.frozen(3) as tape:
            drawn = oracle._draw([0, odd, 2, 3])
        reports.append(np.delete(np.asarray(drawn), 1, axis=0).tolist())
        calls.append(tape.calls[:4])
    assert all(one == reports[0] for one in reports)
    assert all(one == calls[0] for one in calls)


def test_foreign_places_are_uniform() -> None:
    """20,000 of them over four places: six deviations have a false alarm below 1e-8."""
    counts = np.bincount(inside(np.tile([-1, 4, 10**9, -(2**62)], 5000), 4), minlength=4)
    assert np.abs(counts - 5000).max() < 6 * math.sqrt(20_000 * 3 / 16)


# --- polls ------------------------------------------------------------------------------------------------------

TERMS: dict[str, Any] = {"clients": 40, "epsilon": 8, "delta": 0.05}
every_poll = pytest.mark.parametrize("name", [*POLLS, "fractional fakes"])


def made(name: str) -> Any:
    """A poll of few clients; of one, a client sends a fake more with a chance only."""
    if name == "fractional fakes":
        return dp.shuffle.Fakes(clients=40, minimum=40, choices=[0, 1, 2], fakes=1.5)
    return poll_of(name, **TERMS, choices=(0, 1, 2))


def junk_of(poll: Any, reports: int) -> list[Any]:
    """Messages that nobody who follows the protocol sends, in every form."""
    kinds = [None, "x", b"\0", -1, poll.alphabet, 2**63, 2**70, 0.5, True, [0], Odd(), math.nan]
    return (kinds * reports)[: reports * poll.messages]


@pytest.mark.some_quick(5)
@every_poll
def test_only_reports_that_can_be_read_count(name: str, tmp_path: Path) -> None:
    poll = made(name)
    ledger = own_ledger(tmp_path)
    few = poll.encode_many([0, 1] * 5).tolist()
    for messages, claimed in (
        ([*few, *junk_of(poll, 30)], None),  # ten reports and thirty of junk
        ([*few, *junk_of(poll, 990)], None),
        (few, 40),  # the caller's word
        (few, 44),
        ([*junk_of(poll, 30), *few], 40),
        (np.array(few, dtype=object), 40),
        ([], 40),
    ):
        with pytest.raises((dp.NotAllowed, dp.InvalidArgument)) as refused:
            poll.analyze(messages, reports=claimed, ledger=ledger)
        assert refused.value.code in ("too-few-reports", "shuffle-too-many-reports")
    with refuses(dp.NotAllowed, "too-few-reports"):
        dp.release((few, 40), poll, ledger=ledger)  # past `analyze`
    assert len(list(ledger.entries())) == 0
    with refuses(dp.NotAllowed, "too-few-reports"):  # brought once it is charged: nothing leaves then either
        poll.analyze(lambda: np.array(few), reports=40, ledger=ledger)
    enough = [*poll.encode_many([0, 1] * 20).tolist(), *junk_of(poll, 5)]
    told = poll.analyze(enough, reports=45)
    assert (told.heard, told.reports) == (40, 45)
    assert "40 of 45 reports could be read" in str(told)


@pytest.mark.some_quick(7)
@every_poll
def test_the_dishonest_may_send_junk(name: str) -> None:
    """Of 50 reports 40 must be honest, and these can always be read: below 40 the batch is refused."""
    poll = made(name)
    fields = poll.described() | {"clients": 50, "minimum": 50, "honest": 0.8}
    loose = from_description(fields)
    assert loose.at_least == 40
    messages = loose.encode_many([0, 1] * 20).tolist()
    told = loose.analyze([*messages, *junk_of(loose, 10)], reports=50)
    assert (told.heard, told.reports) == (40, 50)
    with refuses(dp.NotAllowed, "too-few-reports"):
        loose.analyze([*messages[loose.messages :], *junk_of(loose, 11)], reports=50)
    with refuses(dp.NotAllowed, "too-few-reports"):
        loose.analyze(messages, reports=49)


@pytest.mark.slow
def test_messages_that_make_no_whole_reports_do_not_count() -> None:
    """Each is of the alphabet, but nobody sends such reports: all empty, all of one digit, all of one choice."""
    fakes, parallel, digits, hashed = (made(name) for name in ("fractional fakes", "parallel", "digits", "hashed"))
    for poll, message in ((fakes, 3), (parallel, 1), (digits, 0), (hashed, hashed.alphabet - 1)):
        few = poll.encode_many([0] * 10)
        padded = np.concatenate([few, np.full(30 * poll.messages, message)])
        with refuses(dp.NotAllowed, "too-few-reports"):
            poll.analyze(padded)


def test_what_was_heard_is_said_for_a_stored_answer_too(tmp_path: Path) -> None:
    poll, ledger = made("fakes"), own_ledger(tmp_path)
    messages = np.concatenate([poll.encode_many([0, 1] * 20), np.full(3 * poll.messages, -1)])
    first, again = (poll.analyze(lambda: messages, reports=43, ledger=ledger, key="one") for _ in range(2))
    assert (first.heard, again.heard, again.replayed) == (40, 40, True)
    assert first.value == again.value


def test_messages_of_every_type_are_read_alike() -> None:
    whole = [0, 5, 2**61]
    for kind in (np.uint64, np.int64, object):
        assert whole_messages(np.array(whole, dtype=kind)).tolist() == whole
    assert whole_messages(np.array([2**63, 3], dtype=np.uint64)).tolist() == [-1, 3]
    assert whole_messages(np.array([250, 3], dtype=np.uint8)).tolist() == [250, 3]
    for bad in ("text", b"bytes", {1: 2}, {1}, 5, None):
        with refuses(dp.InvalidArgument, "foreign-reports"):
            made("bit").analyze(bad, reports=40)


def test_a_poll_of_more_clients_than_people_is_refused() -> None:
    described = made("bit").described() | {"clients": 10**18, "minimum": 10**18}
    with refuses(dp.InvalidArgument, "too-large"):
        from_description(described)
    lots = made("bit").described() | {"clients": MOST_CLIENTS, "minimum": MOST_CLIENTS, "lie": 4e-9}
    assert from_description(lots).clients == MOST_CLIENTS
    hashed = made("hashed").described()
    with refuses(dp.InvalidArgument, "too-large"):
        from_description(hashed | {"rows": 10**12})
    with refuses(dp.InvalidArgument, "too-large"):
        from_description(hashed | {"fakes": 10**9})
    with refuses(dp.InvalidArgument, "out-of-range"):
        dp.shuffle.sum(between=(0, 1e-301), **TERMS)


@every_poll
def test_a_matrix_is_not_a_column_of_clients(name: str) -> None:
    poll = made(name)
    for many in (np.zeros((5, 2)), "text", {0: 1}, {0, 1}, 5, None):
        with refuses(dp.InvalidArgument, "not-a-column"):
            poll.encode_many(many)
    pd = pytest.importorskip("pandas")
    with refuses(dp.InvalidArgument, "not-a-column"):
        poll.encode_many(pd.DataFrame({"a": [0, 1], "b": [0, 1]}))
    assert len(poll.encode_many(pd.Series([0, 1, None]))) == 3 * poll.messages


@every_poll
def test_no_record_stops_the_others(name: str) -> None:
    poll = made(name)
    assert len(poll.encode_many([0, *FOREIGN, 1])) == (len(FOREIGN) + 2) * poll.messages
    for one in (None, math.nan, [0], Odd(), {}):
        with refuses(dp.InvalidArgument, "unknown-answer"):
            poll.encode(one)


def test_hashed_values_are_one_value_when_they_are_equal() -> None:
    poll = made("hashed")
    keys = poll._places([7, 7.0, np.int64(7), "7", b"7", 1, True, "x", 1.5, np.float64(1.5)])
    assert len(set(keys[:5].tolist())) == 1
    assert keys[5] == keys[6]
    assert keys[8] == keys[9]
    assert poll._places([None, math.nan, math.inf, 10**5000, (1, 2), Odd()]).tolist() == [-1] * 6
    with refuses(dp.InvalidArgument, "candidates"):
        poll.analyze(poll.encode_many([0] * 40), candidates=[None])
