"""A survey from both sides: what leaves a device, what a collector makes of it, and who is charged.

Draws are real randomness; a false alarm has a probability below 1e-7 for each test.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet import local, testing
from discreet.local.estimates import nearest_counts

from ..refusing import refuses

EMOJI = ["🙂", "😐", "🙁"]
METHODS = ["direct", "subset", "unary", "hashing", "hadamard", "projective"]
methods = pytest.mark.parametrize("method", METHODS)


def device(limit: Any = 10) -> dp.Ledger:
    return dp.Ledger.open(":memory:", protects=dp.row(neighbors="replace"), limit=dp.Pure(epsilon=limit))


# --- the tour ---------------------------------------------------------------------------------------------------


def test_the_tour() -> None:
    survey = local.survey(choices=EMOJI, epsilon=2)
    reports = [survey.encode("🙂") for _ in range(300)]
    counted = survey.analyze(reports)
    assert list(counted.value) == EMOJI
    assert sum(counted.value.values()) == pytest.approx(300)
    assert abs(counted.raw["🙂"] - 300) < float(survey.error(1 - 1e-8, users=300))
    assert counted.guarantee.trust == "local"
    assert counted.guarantee.epsilon_at(delta=0) <= 2
    assert survey.method == counted.method == "direct"
    assert "randomized response" in str(survey)
    assert "95%" in str(counted)
    assert dp.verify(survey).epsilon_at(delta=0) <= 2
    assert dp.verify(survey).worst_pair()[0] in EMOJI


@methods
def test_counts_are_right(method: str) -> None:
    survey = local.survey(choices=list("abcdefgh"), epsilon=1, method=method)
    data = np.repeat(["a", "c", "h"], [6000, 3000, 1000])
    counted = survey.analyze(survey.encode_many(data))
    true = dict.fromkeys("abcdefgh", 0) | {"a": 6000, "c": 3000, "h": 1000}
    ends = counted.intervals(1 - 1e-8)
    assert all(ends[c][0] <= true[c] <= ends[c][1] for c in true)
    assert all(abs(counted.raw[c] - true[c]) < 7 * counted.stddev[c] for c in true)
    amount = float(counted.error(1 - 1e-8))
    assert all(abs(counted.value[c] - true[c]) <= amount for c in true)
    assert counted.interval("a", 0.5)[0] > counted.interval("a", 0.99)[0]
    assert counted.top(1)[0][0] == "a"


@methods
def test_an_array_of_reports_is_a_list_of_reports(method: str) -> None:
    survey = local.survey(choices=list("abcde"), epsilon=1, method=method)
    many = survey.encode_many(["a", "b", "c", "d", "e", "zzz"])
    as_array, as_list = survey.analyze(many), survey.analyze(many.tolist())
    assert as_array.raw == as_list.raw


@methods
def test_reports_have_one_form_whatever_the_value(method: str) -> None:
    survey = local.survey(choices=list("abcdefghijk"), epsilon=1, method=method)
    many = survey.encode_many(["a"] * 200 + ["k"] * 200 + [None, float("nan"), [], {}, object(), "not a choice"])
    assert many.shape[0] == 406
    singles = [survey.encode(value) for value in ("a", "k")]
    assert len({np.shape(one) for one in singles}) == 1
    assert np.shape(singles[0]) == many.shape[1:]
    assert len(survey.oracle.valid(many)) == 406


@methods
def test_what_is_not_a_choice_is_told_as_a_uniform_one(method: str) -> None:
    """All places are as likely below the report: a chi-square test of 20,000 with a false alarm of 1e-8."""
    survey = local.survey(choices=list("abcd"), epsilon=4, method=method)
    raw = survey.analyze(survey.encode_many(["zzz", None, float("nan"), ["a"]] * 5000)).raw
    off = np.array(list(raw.values())) - 5000
    assert (off**2).sum() / (5000 + 20_000 * survey.oracle.variance) < stats.chi2.isf(1e-8, 4)
    for value in ("zzz", None, float("nan"), ["a"]):
        with refuses(dp.InvalidArgument, "unknown-answer"):
            survey.encode(value)


def test_numbers_outside_the_domain_have_no_place() -> None:
    survey = local.survey(domain_size=10, epsilon=1)
    odd = [3, 10, -1, 2.0, "3", None, 2**70, True, np.int64(4), 2.5]
    assert survey.places(odd).tolist() == [3, -1, -1, 2, -1, -1, -1, 1, 4, -1]
    assert survey.places(np.array([3, 10, -1], dtype=np.int32)).tolist() == [3, -1, -1]
    assert survey.places(np.array([3, 2.5, np.nan, np.inf])).tolist() == [3, -1, -1, -1]
    assert survey.places(np.array([2**63 + 5, 7], dtype=np.uint64)).tolist() == [-1, 7]
    assert list(survey.analyze(survey.encode_many([1, 2, 3])).value) == list(range(10))


# --- bad reports ------------------------------------------------------------------------------------------------


@methods
def test_bad_reports_do_not_spoil_the_others(method: str) -> None:
    survey = local.survey(choices=list("abcde"), epsilon=1, method=method)
    good = survey.encode_many(list("abcde") * 20).tolist()
    bad: list[Any] = ["x", None, -1, 10**30, [], [1, 2], 1.5, {"a": 1}, [10**6] * len(np.atleast_1d(good[0]))]
    mixed = survey.analyze([*bad, *good])
    assert mixed.rejected == len(bad)
    assert mixed.reports == 100
    assert mixed.raw == survey.analyze(good).raw
    assert f"{len(bad)} not counted" in str(mixed)


def test_a_set_of_the_wrong_size_is_no_report() -> None:
    survey = local.survey(choices=range(12), epsilon=1, method="subset")
    assert survey.oracle.valid(np.array([[255, 240], [0, 0], [0, 1]], dtype=np.uint8)).size == 0


@pytest.mark.parametrize(
    ("reports", "code"),
    [
        ("text", "foreign-reports"),
        (None, "foreign-reports"),
        (5, "foreign-reports"),
        ([], "too-few-reports"),
        ({}, "foreign-reports"),
        (np.array([1.5]), "foreign-reports"),
        (np.array([[1, 2]]), "foreign-reports"),
        ([None, "a"], "too-few-reports"),
    ],
)
def test_no_reports_at_all_is_an_error(reports: Any, code: str) -> None:
    survey = local.survey(choices=EMOJI, epsilon=1)
    with refuses(dp.InvalidArgument, code):
        survey.analyze(reports)


# --- shapes of the answer ---------------------------------------------------------------------------------------


def test_the_simplex_is_the_nearest_answer() -> None:
    raw = np.array([5.0, -3.0, 2.0, 0.5])
    near = nearest_counts(raw, 4.0)
    assert near.tolist() == [3.5, 0.0, 0.5, 0.0]
    rng = np.random.default_rng(1)
    for _ in range(200):
        other = rng.dirichlet(np.ones(4)) * 4
        assert np.sum((near - raw) ** 2) <= np.sum((other - raw) ** 2) + 1e-9
    assert nearest_counts(np.array([1.0, -1.0]), 4.0, all_named=False).tolist() == [1.0, 0.0]


def test_raw_counts_are_said_to_be_raw() -> None:
    survey = local.survey(choices=EMOJI, epsilon=0.1)
    counted = survey.analyze(survey.encode_many(["🙂"] * 50), simplex=False)
    assert counted.value == counted.raw
    assert not counted.simplex
    with refuses(dp.InvalidArgument, "unknown-choice"):
        counted.interval("another")


@pytest.mark.slow
def test_intervals_hold_at_once() -> None:
    survey = local.survey(choices=range(10), epsilon=1)
    data, runs = np.repeat([0, 3], [300, 100]), 100
    true = np.bincount(data, minlength=10)
    missed = missed_value = 0
    for _ in range(runs):
        counted = survey.analyze(survey.encode_many(data))
        ends = np.array(list(counted.intervals(0.8).values()))
        missed += not ((ends[:, 0] <= true) & (true <= ends[:, 1])).all()
        told = np.array(list(counted.value.values()))
        missed_value += bool((np.abs(told - true) > float(counted.error(0.8)) + 1e-9).any())
    assert missed_value <= missed <= stats.binom.isf(1e-8, runs, 0.2)


# --- open domains -----------------------------------------------------------------------------------------------


def test_texts_nobody_listed() -> None:
    survey = local.survey(domain="strings", epsilon=2)
    data = ["naïve"] * 3000 + ["🙂 and more"] * 2000 + [f"rare {i}" for i in range(1000)]
    reports = survey.encode_many(data)
    assert reports.shape == (6000, 4)
    candidates = ["naïve", "🙂 and more", "rare 7", "never said"]
    counted = survey.analyze(reports, candidates=candidates)
    ends = counted.intervals(1 - 1e-8)
    for text, true in zip(candidates, (3000, 2000, 1, 0), strict=True):
        assert ends[text][0] <= true <= ends[text][1]
    assert sum(counted.value.values()) <= 6000 + 1e-6
    assert "any text" in str(survey)
    with refuses(dp.InvalidArgument, "candidates"):
        survey.analyze(reports)
    with refuses(dp.InvalidArgument, "candidates"):
        survey.analyze(reports, candidates=["a", "a"])


def test_a_domain_of_2_to_the_32_needs_no_more_memory() -> None:
    """The error does not grow with the domain, and only candidates are counted."""
    survey = local.survey(domain_size=2**32, epsilon=1)
    assert survey.method == "hashing"
    assert survey.oracle.variance == pytest.approx(
        local.survey(domain_size=2**20, epsilon=1, method="hashing").oracle.variance, rel=1e-3
    )
    data = np.repeat(np.array([2**32 - 1, 17]), [3000, 1000])
    counted = survey.analyze(survey.encode_many(data), candidates=[2**32 - 1, 17, 18])
    ends = counted.intervals(1 - 1e-8)
    assert all(ends[v][0] <= true <= ends[v][1] for v, true in ((2**32 - 1, 3000), (17, 1000), (18, 0)))


def test_some_of_the_choices_can_be_named() -> None:
    for method in METHODS:
        survey = local.survey(choices=list("abcdefgh"), epsilon=1, method=method)
        reports = survey.encode_many(list("abcdefgh") * 30)
        every, some = survey.analyze(reports), survey.analyze(reports, candidates=["c", "a"])
        assert some.raw == {"c": every.raw["c"], "a": every.raw["a"]}
        with refuses(dp.InvalidArgument, "candidates"):
            survey.analyze(reports, candidates=["z"])


# --- the ledger of the device -----------------------------------------------------------------------------------


@methods
def test_every_report_is_charged_to_the_device(method: str) -> None:
    ledger = device(limit=3)
    survey = local.survey(choices=EMOJI, epsilon=1, method=method, ledger=ledger)
    for _ in range(3):
        survey.encode("🙂")
    assert ledger.spent["ε"] == pytest.approx(3)
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        survey.encode("🙂")
    assert ledger.spent["ε"] <= 3


def test_a_retry_tells_the_same_for_nothing() -> None:
    ledger = device()
    survey = local.survey(choices=range(500), epsilon=1, method="subset", ledger=ledger)
    first = survey.encode(3, key="monday")
    assert survey.encode(3, key="monday") == first
    assert ledger.spent["ε"] == pytest.approx(1)


def test_a_key_without_a_ledger_would_be_forgotten_and_is_refused() -> None:
    surveys = (
        local.survey(choices=EMOJI, epsilon=1),
        local.mean(between=(0, 1), epsilon=1),
        local.heavy_hitters(bits=8, epsilon=1),
        local.sketch(epsilon=1),
    )
    for one, value in zip(surveys, ("🙂", 0.5, 3, "🙂"), strict=True):
        with refuses(dp.InvalidArgument, "missing-argument"):
            one.encode(value, key="monday")
    with refuses(dp.InvalidArgument, "missing-argument"):
        local.rows({"mood": EMOJI}, epsilon=1).encode({"mood": "🙂"}, key="monday")


def test_the_collector_is_charged_nothing_and_many_rows_once() -> None:
    ledger = device()
    survey = local.survey(choices=EMOJI, epsilon=1, ledger=ledger)
    reports = survey.encode_many(EMOJI * 10)
    assert ledger.spent["ε"] == pytest.approx(1)
    for _ in range(5):
        survey.analyze(reports)
    assert ledger.spent["ε"] == pytest.approx(1)


def test_a_ledger_for_another_unit_refuses() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.person("id"), limit=dp.Pure(epsilon=3))
    survey = local.survey(choices=EMOJI, epsilon=1, ledger=ledger)
    with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
        survey.encode("🙂")


def test_delta_buys_truth_and_is_stated() -> None:
    pure, approx = (local.survey(choices=range(6), epsilon=1, delta=d) for d in (0, 0.05))
    assert approx.oracle.variance < pure.oracle.variance
    assert approx.guarantee == dp.Approx(epsilon=1, delta=0.05, protects=dp.row(neighbors="replace"), trust="local")
    assert dp.verify(approx).delta_at(epsilon=1) <= 0.05


# --- the same question again ------------------------------------------------------------------------------------


def test_a_hundred_rounds_without_a_memory_cost_a_hundred_times() -> None:
    ledger = device(limit=100)
    rounds = local.repeated(local.survey(choices=EMOJI, epsilon=0.5, ledger=ledger))
    for _ in range(100):
        rounds.encode("🙂")
    assert ledger.spent["ε"] == pytest.approx(50)
    assert rounds.for_rounds(100).epsilon_at(delta=0) == pytest.approx(50)


@pytest.mark.parametrize("kind", ["dict", "file"])
def test_a_hundred_rounds_with_a_memory_cost_once(kind: str, tmp_path: Path) -> None:
    ledger = device(limit=1)
    memory: Any = {} if kind == "dict" else tmp_path / "answers.json"
    survey = local.survey(choices=range(200), epsilon=0.5, ledger=ledger)
    first = local.repeated(survey, memory=memory)
    told = [first.encode(7) for _ in range(50)]
    told += [local.repeated(survey, memory=memory).encode(7) for _ in range(50)]  # after a restart
    assert all(one == told[0] for one in told)
    assert ledger.spent["ε"] == pytest.approx(0.5)
    assert first.for_rounds(100).epsilon_at(delta=0) <= 0.5
    first.encode(8)  # another value costs again
    assert ledger.spent["ε"] == pytest.approx(1)
    assert first.for_values(2).epsilon_at(delta=0) == pytest.approx(1)
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        first.encode(9)
    first.encode(7)  # what is remembered stays free


def test_a_memory_that_cannot_be_read_is_not_replaced(tmp_path: Path) -> None:
    memory = tmp_path / "answers.json"
    memory.write_text("{torn")
    with refuses(dp.InvalidArgument, "survey-memory"):
        local.repeated(local.survey(choices=EMOJI, epsilon=1), memory=memory).encode("🙂")
    assert memory.read_text() == "{torn"


@pytest.mark.slow
def test_fresh_noise_on_a_permanent_answer() -> None:
    survey = local.survey(choices=EMOJI, epsilon=3, method="direct")
    devices = [local.repeated(survey, memory={}, each_round=1.5) for _ in range(400)]
    rounds = [[device.encode("😐") for device in devices] for _ in range(3)]
    assert rounds[0] != rounds[1]
    one = devices[0].one_round
    assert one is not None
    assert one.guarantee().epsilon_at(delta=0) < 1.5  # less than either layer
    counted = devices[0].analyze(rounds[0])
    low, high = counted.interval("😐", 1 - 1e-8)
    assert low <= 400 <= high
    assert counted.guarantee.epsilon_at(delta=0) == pytest.approx(3)  # for all rounds together
    first, second = dp.verify(survey.oracle), dp.verify(one)
    assert second.epsilon_at(delta=0) < first.epsilon_at(delta=0)


def test_two_layers_are_one_response() -> None:
    survey = local.survey(choices=range(3), epsilon=2, method="direct")
    layers = local.repeated(survey, memory={}, each_round=1)
    assert layers.fresh is not None
    assert layers.one_round is not None
    first, second = survey.oracle.laws(), layers.fresh.laws()
    both = {x: {z: sum(first[x][y] * second[y][z] for y in range(3)) for z in range(3)} for x in range(3)}
    assert layers.one_round.laws() == both


def test_bad_memories_are_refused() -> None:
    survey = local.survey(choices=range(100), epsilon=1)
    for bad, code in (
        ({"memory": 5}, "wrong-type"),
        ({"memory": {}, "each_round": 1}, "conflicting-arguments"),
        ({"each_round": 1}, "conflicting-arguments"),
    ):
        with refuses(dp.InvalidArgument, code):
            local.repeated(survey, **bad)
    with refuses(dp.InvalidArgument, "wrong-type"):
        local.repeated("survey")  # type: ignore[arg-type]


# --- bad arguments ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "code"),
    [
        (0, "out-of-range"),
        (-1, "out-of-range"),
        (float("nan"), "not-a-number"),
        (float("inf"), "not-a-number"),
        (1e-300, "out-of-range"),
        (1e300, "out-of-range"),
        ("1", "not-a-number"),
        (True, "not-a-number"),
        (None, "not-a-number"),
    ],
)
def test_bad_epsilons_are_refused(epsilon: Any, code: str) -> None:
    for make in (
        lambda: local.survey(choices=EMOJI, epsilon=epsilon),
        lambda: local.mean(between=(0, 1), epsilon=epsilon),
        lambda: local.rows({"a": EMOJI}, epsilon=epsilon),
        lambda: local.heavy_hitters(bits=8, epsilon=epsilon),
        lambda: local.sketch(epsilon=epsilon),
    ):
        with refuses(dp.InvalidArgument, code):
            make()


@pytest.mark.parametrize(
    ("delta", "code"),
    [(-1, "out-of-range"), (1, "out-of-range"), (float("nan"), "not-a-number"), ("0", "not-a-number")],
)
def test_bad_deltas_are_refused(delta: Any, code: str) -> None:
    with refuses(dp.InvalidArgument, code):
        local.survey(choices=EMOJI, epsilon=1, delta=delta)


@pytest.mark.parametrize("epsilon", [1e-18, 1e-6, 30, 1e6])
def test_extreme_epsilons_work(epsilon: float) -> None:
    survey = local.survey(choices=EMOJI, epsilon=epsilon)
    counted = survey.analyze(survey.encode_many(EMOJI * 5))
    assert counted.guarantee.epsilon_at(delta=0) <= epsilon
    assert sum(counted.value.values()) == pytest.approx(15)
    local.mean(between=(0, 1), epsilon=epsilon).encode(0.5)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "survey-domain"),
        ({"choices": EMOJI, "domain_size": 3}, "survey-domain"),
        ({"choices": ["one"]}, "too-few-choices"),
        ({"choices": "text"}, "wrong-type"),
        ({"choices": ["a", "a"]}, "duplicates"),
        ({"choices": ["a", None]}, "out-of-range"),
        ({"domain_size": 1}, "out-of-range"),
        ({"domain_size": 2**61}, "too-large"),
        ({"domain": "floats"}, "survey-domain"),
        ({"domain": "strings", "method": "subset"}, "survey-domain"),
        ({"choices": EMOJI, "method": "best"}, "not-an-option"),
        ({"choices": EMOJI, "ledger": "device.ledger"}, "wrong-type"),
    ],
)
def test_bad_surveys_are_refused(arguments: dict[str, Any], code: str) -> None:
    with refuses(dp.InvalidArgument, code):
        local.survey(epsilon=1, **arguments)


@pytest.mark.parametrize("values", ["secret", b"secret", 5, None])
def test_errors_show_no_value(values: Any) -> None:
    with refuses(dp.InvalidArgument, "not-a-column") as caught:
        local.survey(choices=EMOJI, epsilon=1).encode_many(values)
    assert "secret" not in str(caught.value)


def test_test_mode_is_not_hidden_from_a_ledger() -> None:
    ledger = device()
    with testing.frozen(1):
        first = local.survey(choices=EMOJI, epsilon=1).encode("🙂")
    with testing.frozen(1):
        assert local.survey(choices=EMOJI, epsilon=1, ledger=ledger).encode("🙂") == first
    with testing.no_noise():  # ends, for every method
        for method in METHODS:
            for epsilon in (1, 4):
                local.survey(choices=range(300), epsilon=epsilon, method=method).encode_many(range(300))


def test_a_memory_belongs_to_its_survey(tmp_path: Path) -> None:
    loud = dp.local.survey(choices=["a", "b", "c"], epsilon=5, method="direct")
    quiet = dp.local.survey(choices=["a", "b", "c"], epsilon=0.1, method="direct")
    told = 0
    for _ in range(200):
        memory: dict[str, Any] = {}
        dp.local.repeated(loud, memory=memory).encode("b")
        told += dp.local.repeated(quiet, memory=memory).encode("b") == dp.local.repeated(loud, memory=memory).encode(
            "b"
        )
    assert told < 130  # a third is chance: the loud answer would come always
    file = tmp_path / "memory.json"
    first = dp.local.repeated(loud, memory=file).encode("b")
    assert dp.local.repeated(loud, memory=file).encode("b") == first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_was_made_without_noise_says_so() -> None:
    survey, mean = dp.local.survey(choices=["a", "b", "c"], epsilon=1), dp.local.mean(between=(0, 1), epsilon=1)
    with testing.no_noise():
        assert survey.analyze(survey.encode_many(list("abcabc"))).not_private
        assert mean.analyze(mean.encode_many([0.1, 0.9])).not_private
    assert not survey.analyze(survey.encode_many(list("abcabc"))).not_private
