"""The one door: charge, then draw, then report; and what a refusal costs."""

import copy
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.guarantees.accuracy import Accuracy
from discreet.sealed import Sealed

from .refusing import refuses

SECRET = 8675309


def open_ledger(limit=None, **terms):
    terms = {"protects": dp.row()} | terms
    return dp.Ledger.open(":memory:", limit=limit or dp.Pure(epsilon=1), **terms)


class Crashes:
    """A mechanism that fails while drawing, or looks at the ledger when it draws."""

    def __init__(self, on_draw):
        self.on_draw = on_draw

    def guarantee(self, sensitivity=None):
        return dp.Pure(epsilon=0.25)

    def error(self, confidence=0.95):
        return Accuracy(amount=1.0, confidence=confidence)

    def _draw(self, value):
        return self.on_draw(value)


def test_the_charge_comes_before_the_draw():
    ledger = open_ledger()
    seen = []
    dp.release(SECRET, Crashes(lambda _: seen.append(ledger.spent["ε"])), ledger=ledger)
    assert seen == [0.25]


def test_a_crash_while_drawing_stays_charged():
    ledger = open_ledger()

    def crash(_):
        raise RuntimeError("power failure")

    with pytest.raises(RuntimeError):
        dp.release(SECRET, Crashes(crash), ledger=ledger)
    assert ledger.spent["ε"] == 0.25
    assert len(ledger.entries()) == 1


def test_a_refusal_spends_nothing_and_draws_nothing():
    ledger = open_ledger(dp.Pure(epsilon=0.2))

    def never(_):
        raise AssertionError("a refused release was drawn")

    with refuses(dp.BudgetExhausted, "budget-exhausted") as refusal:
        dp.release(SECRET, Crashes(never), ledger=ledger)
    assert ledger.spent["ε"] == 0
    assert ledger.entries() == ()
    assert refusal.value.remaining.epsilon == 0.2
    assert str(SECRET) not in str(refusal.value)


def test_ten_tenths_are_one():
    ledger = open_ledger(dp.Pure(epsilon=1))
    for number in range(10):
        answer = dp.release(5, dp.Laplace(scale=10), sensitivity=1, ledger=ledger)
        assert answer.receipt.startswith(f"{number + 1}-")
    assert ledger.remaining is None
    assert ledger.spent == {"δ": 0.0, "ε": 1.0}
    before = ledger.entries()
    with refuses(dp.BudgetExhausted, "budget-exhausted") as refusal:
        dp.release(5, dp.Laplace(scale=10), sensitivity=1, ledger=ledger)
    assert refusal.value.remaining is None
    assert ledger.entries() == before
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        dp.release(5, dp.Laplace(scale=10**17), sensitivity=1, ledger=ledger)


def test_three_hundred_hundredths_are_three_and_threads_share_them():
    ledger = open_ledger(dp.Pure(epsilon=3))
    answered = []

    def ask():
        for _ in range(60):
            try:
                answered.append(dp.release(5, dp.Laplace(scale=100), sensitivity=1, ledger=ledger).receipt)
            except dp.BudgetExhausted:
                return

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answered) == 300 == len(set(answered)) == len(ledger.entries())


def test_the_release_says_what_was_charged():
    ledger = open_ledger(dp.Pure(epsilon=1))
    answer = dp.release(41, dp.Laplace(scale=4), sensitivity=1, ledger=ledger)
    assert answer.guarantee == ledger.entries()[0].guarantee
    assert answer.guarantee.protects == ledger.protects
    assert answer.remaining == dp.Pure(epsilon=0.75)
    assert answer.receipt == ledger.entries()[0].receipt
    assert float(answer.error(0.95)) == float(dp.Laplace(scale=4).error(0.95))
    assert not answer.not_private
    assert "NOT PRIVATE" not in str(answer)
    alone = dp.release(41, dp.Laplace(scale=4), sensitivity=1)
    assert alone.receipt is None
    assert alone.guarantee.pure == dp.Pure(epsilon=Fraction(1, 4))


def test_every_call_draws_anew():
    """Two draws of this noise agree with probability below 2^-40: a false alarm rate far below 1e-6."""
    values = {dp.release(0.0, dp.Laplace(scale=1), sensitivity=1).value for _ in range(2)}
    assert len(values) == 2


@pytest.mark.parametrize("mode", ["frozen", "no_noise", "exact_law"])
def test_what_is_made_in_test_mode_says_so(mode):
    found = []

    def ask():
        found.append(dp.release(5, dp.Laplace(scale=1, step=1), sensitivity=1))

    if mode == "frozen":
        with testing.frozen(3):
            ask()
    elif mode == "no_noise":
        with testing.no_noise():
            ask()
        assert found[0].value == 5
    else:
        testing.exact_law(ask, window=1)
    assert all(answer.not_private for answer in found)
    assert "NOT PRIVATE" in str(found[0])
    assert not dp.release(5, dp.Laplace(scale=1), sensitivity=1).not_private


def test_a_sealed_value_stays_shut():
    sealed = Sealed(SECRET)
    assert str(SECRET) not in repr(sealed) + str([sealed])
    for look in (
        lambda: sealed == SECRET,
        lambda: sealed != SECRET,
        lambda: sealed < SECRET,
        lambda: bool(sealed),
        lambda: int(sealed),
        lambda: float(sealed),
        lambda: list(sealed),
        lambda: len(sealed),
        lambda: f"{sealed:d}",
        lambda: np.asarray(sealed),
        lambda: pickle.dumps(sealed),
        lambda: copy.copy(sealed),
        lambda: copy.deepcopy(sealed),
    ):
        with pytest.raises(dp.errors.SealedValue) as refusal:
            look()
        assert str(SECRET) not in str(refusal.value)
    with pytest.raises(TypeError):
        hash(sealed)
    assert not hasattr(sealed, "__dict__")


def test_a_copy_of_a_ledger_is_the_ledger():
    ledger = open_ledger()
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy(ledger) is ledger
    assert copy.deepcopy({"a": [ledger]})["a"][0] is ledger
    dp.release(5, dp.Laplace(scale=10), sensitivity=1, ledger=pickle.loads(pickle.dumps(ledger)))
    assert ledger.spent["ε"] == 0.1


def test_the_wrong_relation_is_refused_and_spends_nothing():
    ledger = open_ledger()
    response = dp.RandomizedResponse.for_guarantee(dp.Pure(epsilon=0.1), choices=["a", "b"])
    with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
        dp.release(["a"], response, ledger=ledger)
    assert ledger.entries() == ()
    replaced = open_ledger(protects=dp.row(neighbors="replace"))
    assert dp.release(["a"], response, ledger=replaced).value[0] in ("a", "b")


def test_add_or_remove_is_converted_for_a_ledger_of_replaced_rows():
    ledger = open_ledger(protects=dp.row(neighbors="replace"))
    bound = dp.Sensitivity(1, unit=dp.row())
    answer = dp.release(5, dp.Laplace(scale=10), sensitivity=bound, ledger=ledger)
    assert ledger.spent["ε"] == 0.2
    assert answer.guarantee.protects == ledger.protects
    with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
        dp.release(5, dp.Laplace(scale=10), sensitivity=dp.Sensitivity(1, unit=dp.person("id")), ledger=ledger)


def test_mechanisms_proved_for_one_relation_say_so_to_the_ledger():
    """Undeclared keys and samples are proved for added or removed people, whatever the plain number says."""
    ledger = open_ledger(dp.Approx(epsilon=5, delta=1e-3), protects=dp.person("id", neighbors="replace"), rule="basic")
    keys = dp.mechanisms.KeySelection(scale=1, threshold=20)
    dp.release({"a": 30}, keys, ledger=ledger)
    assert ledger.spent["ε"] == 2
    assert ledger.spent["δ"] >= 2 * keys.delta * (1 - 1e-9)
    sampled = dp.Subsampled(mechanism=dp.Laplace(scale=1), rate=0.5, query=len)
    composed = dp.Composed(mechanisms=(dp.Laplace(scale=1), sampled))
    for mechanism, data in ((sampled, [1, 2, 3]), (composed, (1, [1, 2]))):
        with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
            dp.release(data, mechanism, sensitivity=1, ledger=ledger)
    added = open_ledger(dp.Approx(epsilon=5, delta=1e-3), protects=dp.person("id"), rule="basic")
    dp.release({"a": 30}, keys, ledger=added)
    assert added.spent["ε"] == 1


def test_a_query_is_asked_behind_the_door():
    ledger = open_ledger(dp.Pure(epsilon=1))
    asked = []

    class Asked(dp.Count):
        def __call__(self, data):
            asked.append((len(ledger.entries()), len(data)))
            return super().__call__(data)

    dp.release([1, 2, 3], dp.Laplace(scale=2), query=Asked(), ledger=ledger)
    assert asked == [(0, 0), (1, 3)]  # of no records, to see that it can be, and of all after the charge
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        dp.release([1, 2, 3], dp.Laplace(scale=1), query=Asked(), ledger=ledger)
    assert asked[2:] == [(1, 0)]
    with refuses(dp.InvalidArgument, "sensitivity-not-taken"):
        dp.release([1], dp.Laplace(scale=1), query=dp.Count(), sensitivity=1, ledger=ledger)


@pytest.mark.parametrize(
    "ask",
    [
        lambda v: dp.release(v, dp.Laplace(scale=1), sensitivity=0),
        lambda v: dp.release(str(v), dp.Laplace(scale=1), sensitivity=1),
        lambda v: dp.release([v, str(v)], dp.Laplace(scale=1), sensitivity=1),
        lambda v: dp.release([v, None], dp.Gaussian(stddev=1), sensitivity=1),
        lambda v: dp.release([v, v], dp.Exponential(rate=1, choices=["a"]), sensitivity=1),
        lambda v: dp.release([], dp.Exponential(rate=1), sensitivity=1),
        lambda v: dp.release((v,), dp.Composed(mechanisms=(dp.Laplace(scale=1),) * 2), sensitivity=1),
        lambda v: dp.release([v], dp.Subsampled(mechanism=dp.Laplace(scale=1), rate=0.5), sensitivity=1),
        lambda v: dp.release(v, dp.Laplace(scale=1e-9), sensitivity=1, ledger=open_ledger()),
    ],
)
def test_error_texts_hold_no_value(ask):
    with pytest.raises(dp.DiscreetError) as refusal:
        ask(SECRET)
    shown = "".join(map(str, (refusal.value, refusal.value.args, vars(refusal.value))))
    assert str(SECRET) not in shown
    assert refusal.value.__cause__ is None


def test_terms_of_a_ledger_are_checked():
    for terms in ({"limit": 1}, {"protects": "person"}, {"rule": "whatever"}):
        with pytest.raises(dp.InvalidArgument):
            open_ledger(**terms)
    with pytest.raises(dp.InvalidArgument):
        dp.Ledger.open("/nowhere/at/all.ledger", protects=dp.row(), limit=dp.Pure(epsilon=1))


def test_bad_numbers_are_answered_all_the_same():
    """NaN goes to 0 and infinity to a large number: no error tells that a value is odd."""
    for odd in (float("nan"), float("inf"), -float("inf"), 1e308, 2**70, -(2**63)):
        for mechanism in (
            dp.Laplace(scale=1),
            dp.Laplace(scale=1e-20),
            dp.Gaussian(stddev=3),
            dp.Laplace(scale=2, step=1),
        ):
            assert np.isfinite(dp.release(odd, mechanism, sensitivity=1).value)
        for mechanism in (dp.Exponential(rate=1), dp.mechanisms.PermuteAndFlip(rate=1), dp.NoisyArgmax(scale=1)):
            assert dp.release([odd, 0], mechanism, sensitivity=1).value in (0, 1)
    saturated = dp.release(2**62, dp.Laplace(scale=2**60, step=1), sensitivity=1).value
    assert -(2**63) <= saturated < 2**63
