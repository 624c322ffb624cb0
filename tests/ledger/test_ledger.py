"""What a ledger keeps, on both stores: charges, keys, identities, limits, accounts, and never a second purse."""

from __future__ import annotations

import copy
import datetime
import gc
import json
import os
import pickle
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pytest

import discreet as dp
from discreet import door, testing
from discreet.guarantees.rules.filters import RenyiRule
from discreet.ledger import Identity, version_of

from ..refusing import refuses

TENTH = dp.Laplace(scale=10)
LIMIT = dp.Approx(epsilon=10, delta=1e-5)


def ask(ledger, mechanism=TENTH, value=5, **options):
    return dp.release(value, mechanism, sensitivity=1, ledger=ledger, **options)


# --- opening ------------------------------------------------------------------------------------------


def test_a_ledger_is_made_once_and_found_again(place):
    with refuses(dp.InvalidArgument, "ledger-not-found"):
        place.open()
    made = place.open(LIMIT, dp.person("patient_id"))
    ask(made, key="a")
    found = place.open()
    assert (found.protects, found.limit, found.rule) == (dp.person("patient_id"), LIMIT, made.rule)
    assert found.entries() == made.entries()
    same = place.open(dp.Approx(epsilon=10.0, delta=Fraction(1, 10**5)), dp.person("patient_id"), rule="best")
    assert same.spent == made.spent
    assert "best" in repr(found)


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"limit": dp.Approx(epsilon=11, delta=1e-5)}, "ledger-other-terms"),
        ({"limit": dp.Approx(epsilon=10, delta=1e-6)}, "ledger-other-terms"),
        ({"limit": dp.Pure(epsilon=10)}, "ledger-other-terms"),
        ({"limit": dp.ZeroConcentrated(rho=1)}, "ledger-other-terms"),
        ({"limit": LIMIT, "rule": "basic"}, "ledger-other-terms"),
        ({"limit": LIMIT, "protects": dp.person("id")}, "ledger-other-unit"),
        ({"limit": LIMIT, "protects": dp.row(neighbors="replace")}, "ledger-other-unit"),
        ({"rule": "zcdp"}, "ledger-other-terms"),
    ],
)
def test_other_terms_are_refused(place, terms, code):
    place.open(LIMIT)
    with refuses(dp.InvalidArgument, code):
        place.open(**terms)


def test_the_rule_is_recorded_with_all_it_derived(place):
    made = place.open(LIMIT)
    assert place.open().rule.grid == made.rule.conversions
    assert place.open().rule == made.rule.fixed()


# --- charging -----------------------------------------------------------------------------------------


def test_ten_tenths_exhaust_one_and_the_eleventh_costs_nothing(place):
    ledger = place.open(dp.Pure(epsilon=1))
    for number in range(1, 11):
        assert ask(ledger).receipt.startswith(f"{number}-")
    assert ledger.remaining is None
    before = ledger.entries()
    for mechanism in (TENTH, dp.Laplace(scale=10**18)):
        with refuses(dp.BudgetExhausted, "budget-exhausted") as refused:
            ask(ledger, mechanism)
        assert refused.value.remaining is None
    assert ledger.entries() == before
    assert ledger.spent == {"δ": 0.0, "ε": 1.0}
    assert ledger.verify() == 11


def test_the_smallest_charge_is_not_lost(place):
    ledger = place.open(dp.Pure(epsilon=1))
    ask(ledger, dp.Laplace(scale=10**18))
    assert ledger.entries()[0].cost == (0, 1)
    assert place.open().entries()[0].totals == {"": (0, 1)}
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        ask(ledger, dp.Laplace(scale=1))


def test_an_entry_says_all(place):
    ledger = place.open(LIMIT, dp.person("patient_id"))
    started = time.time()
    answer = ask(ledger, asked="patients over 65", key="k-1")
    [entry] = ledger.entries()
    assert (entry.number, entry.kind, entry.analyst) == (1, "charge", None)
    assert (entry.asked, entry.mechanism, entry.key) == ("patients over 65", "Laplace(scale=10)", "k-1")
    assert (
        entry.guarantee == answer.guarantee == TENTH.guarantee(dp.Sensitivity(1, grain=1)).stated_for(ledger.protects)
    )
    assert (entry.code_version, entry.state, entry.receipt) == (dp.__version__, "answered", answer.receipt)
    assert started - 1 <= entry.time <= time.time() + 1
    assert entry.cost == entry.totals[""] == ledger.rule.coordinates(answer.guarantee)
    assert json.loads(json.dumps(entry.exported()))["receipt"] == answer.receipt
    assert ledger.recall(dp.__version__) == (entry,)
    assert ledger.recall("0.0.1") == ()


def test_every_kind_of_guarantee_is_recorded_and_verified(place):
    ledger = place.open(dp.Approx(epsilon=100, delta=1e-3))
    for mechanism, value in (
        (dp.Laplace(scale=3), 5),
        (dp.Gaussian(stddev=4), 5.5),
        (dp.Exponential(rate=Fraction(1, 3), choices=["a", "b"]), [1, 2]),
        (dp.mechanisms.KeySelection(scale=1, threshold=20), {"a": 30}),
        (dp.Composed(mechanisms=(dp.Laplace(scale=2), dp.Gaussian(stddev=9))), (1, 2)),
        (dp.NoisyArgmax(scale=2), [3, 4]),
        (dp.mechanisms.AboveThreshold.for_guarantee(dp.Pure(epsilon=1), sensitivity=1, threshold=10), [1, 20]),
    ):
        answer = dp.release(value, mechanism, sensitivity=1, ledger=ledger)
        assert place.open().entries()[-1].guarantee == answer.guarantee
    dp.release(5, dp.Gaussian(stddev=5), sensitivity=1, ledger=ledger, stated=dp.Approx(epsilon=2, delta=1e-4))
    assert ledger.verify() == 9
    replaced = dp.Ledger.open(":memory:", protects=dp.row(neighbors="replace"), limit=LIMIT)
    dp.release(["a"], dp.RandomizedResponse.for_guarantee(dp.Pure(epsilon=1), choices=list("abc")), ledger=replaced)
    assert replaced.verify() == 2


def test_a_crash_while_drawing_stays_charged_and_a_retry_finishes_it(place):
    ledger = place.open(dp.Pure(epsilon=1))

    def ask_with(read):
        return door.through(read, TENTH, TENTH.guarantee(1), ledger=ledger, asked="q", key="k")

    def power_failure():
        raise RuntimeError("power failure")

    with pytest.raises(RuntimeError):
        ask_with(power_failure)
    [entry] = ledger.entries()
    assert entry.state == "reserved"
    assert ledger.spent["ε"] == 0.1
    with refuses(dp.InvalidArgument, "ledger-no-answer"):
        ledger.answer(entry)
    answer = ask_with(lambda: 7)
    assert ledger.spent["ε"] == 0.1
    assert (answer.receipt, answer.replayed) == (entry.receipt, False)
    assert ask_with(power_failure).value == answer.value  # nothing is read any more
    assert ledger.entries()[0].state == "answered"


# --- keys and identities ------------------------------------------------------------------------------


def test_a_retry_gets_the_stored_answer_and_says_so(place):
    ledger = place.open(dp.Pure(epsilon=0.2))
    noise = dp.Laplace(scale=10, step=2.0**-30)  # two draws agree with probability below 1e-9
    first = ask(ledger, noise, 5.0, key="k")
    again = ask(place.open(), noise, 5.0, key="k")
    assert again.value == first.value
    assert (first.replayed, again.replayed) == (False, True)
    assert again.receipt == first.receipt
    assert "answered before, at no new cost" in str(again)
    assert "answered before" not in str(first)
    assert float(again.error(0.95)) == float(first.error(0.95))
    assert ledger.spent["ε"] == 0.1
    ask(ledger)  # without a key: charged and drawn anew
    assert ledger.remaining is None
    assert ask(ledger, noise, 5.0, key="k").value == first.value


@pytest.mark.parametrize("other", [dp.Laplace(scale=11), dp.Gaussian(stddev=40)])
def test_a_key_is_for_one_request_only(place, other):
    ledger = place.open(LIMIT)
    ask(ledger, key="k")
    for options in ({"mechanism": other}, {"asked": "something else"}):
        with refuses(dp.InvalidArgument, "ledger-key-reused"):
            ask(ledger, key="k", **options)
    assert len(ledger.entries()) == 1
    for bad in ("", "x" * 201, 7, "a\0b"):
        with refuses(dp.InvalidArgument, "ledger-key"):
            ask(ledger, key=bad)
    with refuses(dp.InvalidArgument, "missing-argument"):
        dp.release(5, TENTH, sensitivity=1, key="k")


def test_arrays_texts_and_dicts_come_back_as_they_were(place):
    ledger = place.open(dp.Approx(epsilon=100, delta=1e-3))
    array = dp.release(np.zeros(20_000), dp.Laplace(scale=10), sensitivity=1, ledger=ledger, key="array")
    again = dp.release(np.zeros(20_000), dp.Laplace(scale=10), sensitivity=1, ledger=ledger, key="array")
    assert again.value.dtype == array.value.dtype
    assert np.array_equal(again.value, array.value)
    keys = dp.mechanisms.KeySelection(scale=1, threshold=20)
    first = dp.release({"é": 300, "b": 200}, keys, ledger=ledger, key="dict")
    assert dp.release({"é": 300, "b": 200}, keys, ledger=ledger, key="dict").value == first.value


def test_a_large_answer_that_nobody_can_ask_for_is_kept_as_its_digest(place):
    ledger = place.open(LIMIT)
    answer = dp.release(np.zeros(20_000), dp.Laplace(scale=10), sensitivity=1, ledger=ledger)
    assert answer.value.shape == (20_000,)
    [entry] = ledger.entries()
    assert entry.state == "answered"
    with refuses(dp.DiscreetError, "ledger-answer-not-kept"):
        ledger.answer(entry)
    assert ledger.verify() == 2


def test_an_answer_that_cannot_be_kept_is_handed_out_once(place):
    @dataclass(frozen=True)
    class Choice:
        name: str

    ledger = place.open(LIMIT)
    choose = dp.Exponential(rate=1, choices=[Choice("a"), Choice("b")])
    assert isinstance(dp.release([0, 50], choose, sensitivity=1, ledger=ledger, key="k").value, Choice)
    with refuses(dp.DiscreetError, "ledger-answer-not-kept"):
        dp.release([0, 50], choose, sensitivity=1, ledger=ledger, key="k")
    assert len(ledger.entries()) == 1


class Source:
    """Data that counts how often it is read."""

    def __init__(self):
        self.reads = 0

    def __call__(self):
        self.reads += 1
        return 5


def ask_again(ledger, source, version="1", policy="p", question="SELECT count(*) FROM visits", **arguments):
    identity = Identity(question=question, data_version=version, policy=policy, arguments=arguments)
    noise = dp.Laplace(scale=10, step=2.0**-30)
    return door.through(source, noise, noise.guarantee(1), ledger=ledger, asked=question, identity=identity)


def test_the_same_public_question_is_answered_once(place):
    ledger, source = place.open(dp.Pure(epsilon=0.7)), Source()
    first = ask_again(ledger, source)
    again = ask_again(place.open(), source)
    assert (again.value, again.receipt, again.replayed) == (first.value, first.receipt, True)
    assert source.reads == 1
    assert ledger.spent["ε"] == pytest.approx(0.1)
    others = [
        ask_again(ledger, source, version="2"),
        ask_again(ledger, source, policy="q"),
        ask_again(ledger, source, question="SELECT count(*) FROM people"),
        ask_again(ledger, source, between=[0, 120]),
        ask_again(ledger.for_analyst("bob", limit=dp.Pure(epsilon=1)), source),
    ]
    assert source.reads == 6
    assert not any(other.replayed for other in others)
    assert len({other.value for other in [first, *others]}) == 6
    ask(ledger)
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        ask_again(ledger, source, version="3")
    assert ask_again(ledger, source).value == first.value  # also when nothing is left


def test_another_price_is_another_question(place):
    """The identity holds mechanism and guarantee too; with a key beside it, another identity is another request."""
    ledger = place.open(LIMIT)
    facts = {"question": "q", "data_version": "1"}

    def ask_for(scale, key=None, **changed):
        noise = dp.Laplace(scale=scale)
        identity = Identity(**{**facts, **changed})
        return door.through(lambda: 5, noise, noise.guarantee(1), ledger=ledger, asked="q", key=key, identity=identity)

    ask_for(10)
    assert ask_for(10).replayed
    assert not ask_for(11).replayed
    assert not ask_for(10, key="k", data_version="2").replayed
    with refuses(dp.InvalidArgument, "ledger-key-reused"):
        ask_for(10, key="k", data_version="3")
    assert not ask_for(10, arguments={1: "x"}).replayed
    assert not ask_for(10, arguments={"1": "x"}).replayed
    odd = {"f": Fraction(1, 3), "d": datetime.date(2020, 1, 1), "a": np.arange(2), "n": float("nan"), "s": "\ud800"}
    assert not ask_for(10, arguments=MappingProxyType(odd)).replayed
    assert ask_for(10, arguments=odd).replayed
    with refuses(dp.InvalidArgument, "wrong-type"):
        ask_for(10, arguments={"x": object()})


def test_one_number_has_one_spelling(place):
    """1, 1.0 and Fraction(1) are one promise; 0.1 and Fraction(0.1) are equal in Python and mean different decimals."""
    ledger = place.open(dp.Pure(epsilon=100))
    for one in (1, 1.0, Fraction(1), np.float64(1)):
        answer = ask(ledger, dp.Laplace(scale=1), stated=dp.Pure(epsilon=one), key="k")
    assert answer.replayed
    ask(ledger, dp.Laplace(scale=20), stated=dp.Pure(epsilon=0.1))
    ask(ledger, dp.Laplace(scale=20), stated=dp.Pure(epsilon=Fraction(0.1)))
    assert [entry.cost[1] for entry in ledger.entries()] == [10**18, 10**17, 10**17 + 6]
    assert [entry.guarantee.epsilon for entry in ledger.entries()[:2]] == [1, 0.1]


def test_rule_objects_and_odd_numbers_are_terms_too(place):
    limit = dp.Approx(epsilon=np.float64(0.3), delta=Fraction(1, 10**6), protects=dp.row())
    rule = RenyiRule(limit=dp.Approx(epsilon=0.3, delta=1e-6), order=16)
    made = place.open(limit, rule=rule)
    assert made.limit == dp.Approx(epsilon=0.3, delta=1e-6)
    place.open(limit, rule=rule)
    with refuses(dp.InvalidArgument, "ledger-other-terms"):
        place.open(limit, rule=RenyiRule(limit=dp.Approx(epsilon=0.3, delta=1e-6), order=17))


@pytest.mark.parametrize(
    "target", [None, 7, "", " ", "POSTGRESQL://me:hunter2@h/db", "mysql://me:hunter2@h/db", "host=h password=hunter2"]
)
def test_what_is_no_place_is_refused(target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with refuses(dp.InvalidArgument, "ledger-place") as refused:
        dp.Ledger.open(target, protects=dp.row(), limit=dp.Pure(epsilon=1))
    assert "hunter2" not in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_only_a_guarantee_is_charged(place):
    with refuses(dp.InvalidArgument, "wrong-type"):
        place.open(LIMIT).charge("everything", asked="x")


def test_the_version_of_a_file_is_public(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("secret\n1\n")
    first = version_of(path)
    assert version_of(str(path)) == first
    assert "secret" not in first
    path.write_text("secret\n1\n2\n")
    assert version_of(path) != first
    second = version_of(path)
    os.utime(path, ns=(1, 1))
    assert version_of(path) != second


def test_what_was_made_in_test_mode_stays_marked(place):
    ledger = place.open(LIMIT)
    with testing.no_noise():
        assert ask(ledger, key="k").not_private
    again = ask(ledger, key="k")
    assert (again.value, again.not_private, again.replayed) == (5, True, True)


# --- limits -------------------------------------------------------------------------------------------


def test_raising_a_limit_is_an_entry_of_the_owner(place):
    ledger = place.open(LIMIT)
    ask(ledger, dp.Laplace(scale=Fraction(1, 9)))
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        ask(ledger, dp.Laplace(scale=Fraction(1, 2)))
    labels = ledger.rule.labels
    larger = dp.Approx(epsilon=12, delta=1e-5)
    raised = ledger.raise_limit(larger, why="the board agreed")
    assert (raised.kind, raised.asked, raised.guarantee, raised.state) == (
        "limit",
        "the board agreed",
        larger,
        "recorded",
    )
    assert ledger.rule.labels == labels
    ask(ledger, dp.Laplace(scale=Fraction(1, 2)))
    again = place.open(larger)
    assert again.limit == larger
    assert again.verify() == 4
    with refuses(dp.InvalidArgument, "ledger-other-terms"):
        place.open(LIMIT)
    for smaller in (LIMIT, dp.Pure(epsilon=20), dp.ZeroConcentrated(rho=5)):
        with refuses(dp.InvalidArgument, "limit-shrinks"):
            ledger.raise_limit(smaller, why="no")
    with refuses(dp.InvalidArgument, "ledger-no-reason"):
        ledger.raise_limit(dp.Approx(epsilon=13, delta=1e-5), why=" ")
    assert len(ledger.entries()) == 3


def test_renewing_begins_a_period(place):
    ledger = place.open(dp.Pure(epsilon=1))
    ask(ledger, dp.Laplace(scale=1))
    assert ledger.remaining is None
    renewed = ledger.renew(why="a new year of data")
    assert renewed.kind == "renewal"
    assert ledger.spent["ε"] == 0
    ask(ledger, dp.Laplace(scale=1))
    ledger.renew(dp.Pure(epsilon=2), why="a larger year")
    assert (ledger.limit, ledger.remaining) == (dp.Pure(epsilon=2), dp.Pure(epsilon=2))
    assert place.open(dp.Pure(epsilon=2)).verify() == 5


def test_a_replay_after_a_renewal_says_what_remained_then(place):
    ledger = place.open(LIMIT)
    ask(ledger, key="k")
    for limit in (dp.Approx(epsilon=100, delta=1e-2), dp.Pure(epsilon=3)):
        ledger.renew(limit, why="another kind of year")
        assert str(ask(ledger, key="k").remaining) == "ε = 9.9"
    assert ledger.rule.name == "basic"
    assert ledger.verify() == 4


# --- accounts -----------------------------------------------------------------------------------------


def test_analysts_have_limits_of_their_own_under_one_cap(place):
    ledger = place.open(dp.Pure(epsilon=1))
    alice = ledger.for_analyst("alice", limit=dp.Pure(epsilon=0.5))
    bob = ledger.for_analyst("bob", limit=dp.Pure(epsilon=0.8))
    assert (alice.analyst, ledger.analyst, alice.limit) == ("alice", None, dp.Pure(epsilon=0.5))
    for _ in range(5):
        ask(alice)
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        ask(alice)
    assert alice.remaining is None
    assert bob.remaining == dp.Pure(epsilon=0.5)  # of his own 0.8, the data set has 0.5 left
    for _ in range(5):
        ask(bob)
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        ask(bob)
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        ask(ledger)
    assert (alice.spent["ε"], bob.spent["ε"], ledger.spent["ε"]) == (0.5, 0.5, 1.0)
    assert ledger.verify() == 13
    assert place.open().for_analyst("bob").spent["ε"] == 0.5


def test_one_analyst_sees_nothing_of_another(place):
    ledger = place.open(LIMIT)
    alice = ledger.for_analyst("alice", limit=dp.Approx(epsilon=1, delta=1e-6))
    bob = ledger.for_analyst("bob", limit=dp.Approx(epsilon=1, delta=1e-6))
    noise = dp.Laplace(scale=10, step=2.0**-30)
    hers = ask(alice, noise, 5.0, key="k", asked="hers")
    his = ask(bob, noise, 5.0, key="k", asked="his")
    assert hers.value != his.value
    assert not his.replayed
    assert [entry.asked for entry in bob.entries() if entry.kind == "charge"] == ["his"]
    assert {entry.analyst for entry in alice.entries()} == {"alice"}
    assert len(ledger.entries()) == 4
    assert len(alice.recall(dp.__version__)) == 1
    entry = alice.entries()[-1]
    for take in (lambda: bob.answer(entry), lambda: bob.keep(entry, 0)):
        with refuses(dp.InvalidArgument, "ledger-no-answer"):
            take()
    for take in (
        lambda: bob.answer(replace(entry, analyst="bob")),
        lambda: bob.keep(replace(entry, analyst="bob"), 0),
    ):
        with refuses(dp.errors.LedgerDamaged, "ledger-entry-changed"):
            take()
    for take in (
        lambda: bob.for_analyst("alice"),
        lambda: bob.raise_limit(dp.Approx(epsilon=9, delta=1e-6), why="I want"),
        lambda: bob.renew(why="I want"),
    ):
        with refuses(dp.InvalidArgument, "ledger-owner-only"):
            take()
    assert ledger.count == 4


def test_accounts_are_made_once_and_raised_apart(place):
    ledger = place.open(LIMIT)
    limit = dp.Approx(epsilon=1, delta=1e-6)
    alice = ledger.for_analyst("alice", limit=limit)
    ask(alice)
    assert ledger.for_analyst("alice", limit=limit).spent == alice.spent
    with refuses(dp.InvalidArgument, "ledger-other-terms"):
        ledger.for_analyst("alice", limit=dp.Approx(epsilon=2, delta=1e-6))
    with refuses(dp.InvalidArgument, "ledger-no-account"):
        ledger.for_analyst("carol")
    for name in ("", None, "a\0"):
        with refuses(dp.InvalidArgument, "ledger-analyst-name"):
            ledger.for_analyst(name, limit=limit)
    with refuses(dp.InvalidArgument, "ledger-limit-kind"):
        ledger.for_analyst("dave", limit=dp.ZeroConcentrated(rho=1))
    ledger.raise_limit(dp.Approx(epsilon=3, delta=1e-6), why="a longer study", analyst="alice")
    assert (ledger.limit, alice.limit.epsilon) == (LIMIT, 3)
    spent = ledger.spent
    ledger.renew(why="a second study", analyst="alice")
    assert ledger.spent == spent
    assert set(alice.spent.values()) == {0.0}
    assert ledger.verify() == 5


# --- never a second purse -----------------------------------------------------------------------------


def test_copies_and_pickles_are_the_same_ledger(place):
    ledger = place.open(dp.Pure(epsilon=1))
    alice = ledger.for_analyst("alice", limit=dp.Pure(epsilon=1))
    copies = [copy.copy(alice), copy.deepcopy(alice), pickle.loads(pickle.dumps(alice)), copy.deepcopy([alice])[0]]
    for number, one in enumerate([alice, *copies]):
        ask(one)
        assert (one.analyst, one.spent["ε"]) == ("alice", pytest.approx(0.1 * (number + 1)))
    assert ledger.spent["ε"] == 0.5
    assert pickle.loads(pickle.dumps(ledger)).spent["ε"] == 0.5


def test_a_pickle_does_not_open_another_ledger(file_place):
    pickled = pickle.dumps(file_place.open(dp.Pure(epsilon=1)))
    for path in file_place.path.parent.iterdir():
        path.unlink()
    file_place.open(dp.Pure(epsilon=1))
    with refuses(dp.errors.LedgerDamaged, "ledger-replaced"):
        pickle.loads(pickled)


@pytest.mark.slow
def test_a_ledger_in_memory_ends_with_its_process():
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=1))
    alice = ledger.for_analyst("alice", limit=dp.Pure(epsilon=1))
    pickled = pickle.dumps(alice)
    del ledger
    gc.collect()
    ask(pickle.loads(pickled))
    assert alice.spent["ε"] == 0.1
    del alice
    gc.collect()
    with refuses(dp.DiscreetError, "ledger-in-memory"):
        pickle.loads(pickled)
    closed = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=1))
    closed.close()
    with refuses(dp.DiscreetError, "ledger-in-memory"):
        ask(closed)


def majority(ledger):
    """An estimator that holds a ledger. It is made here for worker processes to get it by value."""
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Majority(ClassifierMixin, BaseEstimator):
        def __init__(self, ledger=None):
            self.ledger = ledger

        def fit(self, x, y):
            self.classes_ = np.array([0, 1])
            counts = [int(np.sum(y == label)) for label in self.classes_]
            choose = dp.Exponential(rate=0.05, choices=(0, 1))
            self.common_ = dp.release(counts, choose, sensitivity=1, ledger=self.ledger).value
            return self

        def predict(self, x):
            return np.full(len(x), self.common_)

    return Majority(ledger)


@pytest.mark.slow
def test_cross_validation_exhausts_the_one_ledger(place):
    """Clones and worker processes of scikit-learn all charge the same purse."""
    from sklearn.model_selection import cross_val_score

    ledger = place.open(dp.Pure(epsilon=1))
    x, y = np.zeros((40, 1)), np.array([0, 1] * 20)
    assert len(cross_val_score(majority(ledger), x, y, cv=4)) == 4
    assert ledger.spent["ε"] == 0.4
    cross_val_score(majority(ledger), x, y, cv=6, n_jobs=2)
    assert ledger.remaining is None
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        cross_val_score(majority(ledger), x, y, cv=2, error_score="raise")
    assert ledger.verify() == 11
