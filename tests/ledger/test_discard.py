"""Answers that came too late are discarded: nobody gets them, and to ask again is a new charge."""

from __future__ import annotations

import pytest

from discreet import Ledger, Pure, person
from discreet.door import through
from discreet.errors import DiscreetError
from discreet.ledger import Identity
from discreet.ledger.texts.request import request_of
from discreet.mechanisms.noise.laplace import Laplace

QUESTION = Identity(question="how many", data_version="1")
NOISE = Laplace(scale=10)


@pytest.fixture
def ledger(tmp_path):
    whole = Ledger.open(tmp_path / "a.ledger", protects=person("id"), limit=Pure(epsilon=1))
    return whole.for_analyst("alice", limit=Pure(epsilon=0.5))


def charge(ledger, **given):
    known = {"asked": "how many", "mechanism": NOISE, "identity": QUESTION} | given
    return ledger.charge(Pure(epsilon=0.1), **known)


def named(ledger, key=None, identity=QUESTION):
    made = request_of(Pure(epsilon=0.1).stated_for(ledger.protects), "how many", NOISE, key, identity)
    return made.retry_key, made.identity


def test_a_discarded_reservation_is_charged_again(ledger):
    first = charge(ledger)
    assert charge(ledger).number == first.number
    [done] = ledger.discard([named(ledger)], after=first.number - 1)
    assert (done.number, done.state) == (first.number, "discarded")
    again = charge(ledger)
    assert again.number != first.number
    assert again.state == "reserved"
    assert charge(ledger).number == again.number  # and from then on the same one
    assert [entry.state for entry in ledger.entries() if entry.kind == "charge"] == ["discarded", "reserved"]
    assert ledger.verify() == 4


def test_a_stored_answer_is_gone_once_it_is_discarded(ledger):
    entry = charge(ledger)
    ledger.keep(entry, 42)
    ledger.discard([named(ledger)], after=0)
    with pytest.raises(DiscreetError) as refused:
        ledger.answer(entry)
    assert refused.value.code == "ledger-discarded"
    assert not ledger.knows(Pure(epsilon=0.1), asked="how many", mechanism=NOISE, key=None, identity=QUESTION)
    assert ledger.verify() == 3


def test_what_is_drawn_after_the_discard_does_not_leave(ledger):
    with pytest.raises(DiscreetError) as refused:
        through(
            lambda: ledger.discard([named(ledger)], after=0) and 7,
            NOISE,
            Pure(epsilon=0.1),
            ledger=ledger,
            asked="how many",
            identity=QUESTION,
        )
    assert refused.value.code == "ledger-discarded"


def test_a_key_is_never_charged_twice(ledger):
    charge(ledger, key="k")
    ledger.discard([named(ledger, "k")], after=0)
    count = ledger.count
    with pytest.raises(DiscreetError) as refused:
        charge(ledger, key="k")
    assert refused.value.code == "ledger-discarded"
    assert ledger.count == count
    assert charge(ledger, key="other").number == count + 1


def test_earlier_answers_stay(ledger):
    entry = charge(ledger)
    ledger.keep(entry, 42)
    assert ledger.discard([named(ledger)], after=ledger.count) == ()
    assert ledger.answer(entry) == (42, False)


def test_the_second_attempt_can_be_discarded_too(ledger):
    charge(ledger)
    ledger.discard([named(ledger)], after=0)
    second = charge(ledger)
    [done] = ledger.discard([named(ledger)], after=0)
    assert done.number == second.number
    third = charge(ledger)
    assert third.number > second.number
    assert ledger.remaining == Pure(epsilon=0.2)
    assert ledger.verify() == 5


def test_a_reservation_from_before_a_crash_is_discarded_too_and_what_is_owed_is_charged(ledger):
    first = charge(ledger)
    [done] = ledger.discard([named(ledger)], after=ledger.count, owed=[Pure(epsilon=0.2)], asked="how many", key="k")
    assert done.number == first.number
    assert ledger.remaining == Pure(epsilon=0.2)  # 0.1 before, and 0.2 that was not charged yet
    with pytest.raises(DiscreetError):
        charge(ledger, key="k")
    assert ledger.verify() == 4


def test_what_was_not_charged_is_charged(ledger):
    before = ledger.count
    charge(ledger)
    owed = [Pure(epsilon=0.1), Pure(epsilon=0.05), Pure(epsilon=0.05)]
    assert len(ledger.discard([named(ledger)], after=before, owed=owed)) == 1
    assert ledger.remaining == Pure(epsilon=0.3)
    assert ledger.discard([], after=ledger.count, owed=[Pure(epsilon=0.4)]) == ()  # it does not fit, and is left out
    assert ledger.remaining == Pure(epsilon=0.3)
    assert ledger.verify() == 5
