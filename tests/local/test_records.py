"""Records as people have them: each is read by itself, and bounds, numbers and noise meet in whole places."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import local, testing
from discreet.exact.rational import exactly
from discreet.guarantees.privacy_loss.pairs import LaplacePair
from discreet.mechanisms.reports import local_mean
from discreet.mechanisms.reports.local_records import one_column, places_among, places_below, steps_between
from discreet.mechanisms.reports.local_reports import whole_numbers

from ..refusing import refuses


class Odd:
    """A record that fails whatever is asked of it."""

    def _fails(self, *_: Any) -> Any:
        raise RuntimeError("canary")

    __float__ = __int__ = __index__ = __len__ = __eq__ = __hash__ = __bool__ = __iter__ = __lt__ = __getitem__ = _fails  # type: ignore[assignment]


class OddNumber(float):
    """A number that fails when it is looked at."""

    def _fails(self, *_: Any) -> Any:
        raise RuntimeError("canary")

    __float__ = __le__ = __ge__ = __lt__ = __gt__ = __int__ = __sub__ = __hash__ = __eq__ = _fails  # type: ignore[assignment]


HOSTILE: list[Any] = [
    None, math.nan, math.inf, -math.inf, -0.0, 10**30, -(10**400), 10**5000, 2**53 + 1, "text", b"bytes", True, [1], [],
    (1, 2), {"a": 1}, {1}, Decimal("0.5"), Decimal("sNaN"), Decimal("1E+999999999"), Decimal("1E-999999999"),
    Fraction(1, 3), datetime.datetime(2020, 1, 1), np.float32(0.5), np.int8(-5), np.str_("a"), np.datetime64("2020"),
    np.array([1, 2]), np.array(3), 1j, Odd(), OddNumber(0.5), object(), range(3), "",
]  # fmt: skip
SURVEYS: dict[str, Any] = {
    **{
        method: local.survey(choices=["a", "b", 1], epsilon=1, method=method)
        for method in ("direct", "subset", "unary", "hashing", "hadamard", "projective")
    },
    "numbers": local.survey(domain_size=10, epsilon=1),
    "strings": local.survey(domain="strings", epsilon=1),
    "hitters": local.heavy_hitters(bits=6, epsilon=1),
    "letters": local.heavy_hitters(length=3, epsilon=1),
    "sketch": local.sketch(width=8, hashes=4, epsilon=1),
    **{method: local.mean(between=(0, 1), epsilon=1, method=method) for method in ("hybrid", "duchi", "laplace")},
}
every_survey = pytest.mark.parametrize("name", SURVEYS)


@every_survey
def test_no_record_changes_another(name: str) -> None:
    """With the same noise the reports of all others are the same, whatever one record is."""
    survey = SURVEYS[name]
    first, last = (0.25, 0.75) if isinstance(survey, local.MeanSurvey) else ("a", "b")
    if name in ("numbers", "hitters"):
        first, last = 2, 5
    seen = []
    for odd in (first, *HOSTILE):
        with testing.frozen(5):
            told = survey.encode_many([first, odd, last, last])
        assert len(told) == 4
        seen.append((np.asarray(told)[[0, 2, 3]].tolist(), told.dtype, told.shape))
    assert all(one == seen[0] for one in seen)


@every_survey
def test_one_person_is_told_what_cannot_be_told(name: str) -> None:
    survey = SURVEYS[name]
    for one in (None, [1], {"a": 1}, Odd(), math.nan, datetime.datetime(2020, 1, 1), np.array([1, 2])):
        with refuses(dp.InvalidArgument, "unknown-answer") as refused:
            survey.encode(one)
        assert refused.value.__context__ is None
        assert refused.value.__cause__ is None


def test_a_choice_that_is_misspelled_is_not_counted_as_the_first() -> None:
    survey = local.survey(choices=["daily", "weekly", "never"], epsilon=3)
    with refuses(dp.InvalidArgument, "unknown-answer"):
        survey.encode("Daily")
    with refuses(dp.InvalidArgument, "unknown-answer"):
        local.repeated(survey, memory={}).encode("Daily")
    with testing.no_noise():
        assert survey.encode("weekly") == 1
    response = dp.RandomizedResponse(choices=["daily", "weekly"], lie=0.1)
    for one in ("Daily", ["daily"], [1, [2]], None, Odd()):
        with refuses(dp.InvalidArgument, "unknown-choice"):
            response.encode(one)
    assert set(dp.release([*HOSTILE, "daily"], response).value) <= {"daily", "weekly"}
    assert dp.release({"a": 1}, response).value in ("daily", "weekly")
    assert sum(response.analyze([*HOSTILE, "daily"]).values()) == pytest.approx(1)


CONTAINERS: list[Callable[[], Any]] = [
    lambda: np.zeros((4, 2)),
    lambda: np.zeros((4, 1)),
    lambda: np.array(3.0),
    lambda: "text",
    lambda: b"bytes",
    lambda: {"a": [1, 2]},
    lambda: {1, 2},
    lambda: 5,
    lambda: None,
    lambda: (one for one in (1, 2)),
    lambda: pytest.importorskip("pandas").DataFrame({"a": [1, 2], "b": [3, 4]}),
    lambda: pytest.importorskip("pyarrow").table({"a": [1, 2]}),
]


@pytest.mark.some_quick(6)
@every_survey
def test_what_is_no_column_is_refused_by_its_shape(name: str) -> None:
    for make in CONTAINERS:
        with refuses(dp.InvalidArgument, "not-a-column"):
            SURVEYS[name].encode_many(make())
    rows = local.rows({"city": ["a", "b"], "age": (0, 120)}, epsilon=1)
    with refuses(dp.InvalidArgument, "not-a-column"):
        rows.encode_many({"city": np.full((2, 2), "a"), "age": [1, 2]})


def test_every_container_of_one_column_is_read_alike() -> None:
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    known = {1: 0, 2: 1}
    plain = [1, 2, None]
    containers = [plain, tuple(plain), np.array(plain), pa.array(plain), pa.chunked_array([plain]), pd.Series(plain)]
    for many in (*containers, pd.Series(plain, dtype="Int64"), np.ma.masked_array([1, 2, 9], [0, 0, 1])):
        assert places_among(many, known).tolist() == [0, 1, -1]
        assert places_below(many, 3).tolist() == [1, 2, -1]
    days = np.array(["2020-01-01", "NaT"], dtype="datetime64[ns]")
    assert places_below(days, 2**60).tolist() == [-1, -1]  # a moment is no number, though numpy would count it
    assert isinstance(one_column(np.arange(3)), np.ndarray)
    large = [2**53 + 1, None, 2**53 + 3]
    assert places_below(large, 2**60).tolist() == [2**53 + 1, -1, 2**53 + 3]
    bounds = Fraction(2**53), Fraction(2**53 + 8)
    assert steps_between(large, *bounds, 8).tolist() == [1, -1, 3]
    assert steps_between(np.array([2**53 + 1, 2**53 + 3]), *bounds, 8).tolist() == [1, 3]


def test_rows_read_each_cell_by_itself() -> None:
    rows = local.rows({"city": ["a", "b"], "age": (0, 120)}, epsilon=1)
    good = {"city": "a", "age": 30}
    seen = []
    for odd in (good, *HOSTILE, {"city": Odd(), "age": [1]}):
        with testing.frozen(2):
            told = rows.encode_many([good, odd, good])
        seen.append({name: np.asarray(column)[[0, 2]].tolist() for name, column in told.items()})
    assert all(one == seen[0] for one in seen)


# --- reports --------------------------------------------------------------------------------------------------------


@every_survey
def test_no_report_stops_the_others(name: str) -> None:
    survey = SURVEYS[name]
    values = [0.5] * 400 if isinstance(survey, local.MeanSurvey) else ["a", 1] * 200
    good = survey.encode_many(values).tolist()
    bad = [one for one in HOSTILE if isinstance(one, bool) or not isinstance(one, int | float | np.number | list)]
    given: dict[str, Any] = {"candidates": ["a"]} if name in ("strings", "sketch") else {}
    told, alone = survey.analyze([*bad, *good], **given), survey.analyze(good, **given)
    assert told.raw == alone.raw
    assert (told.reports, told.rejected) == (400, len(bad))


def test_a_list_of_reports_is_read_cell_by_cell() -> None:
    assert whole_numbers([1, True, 2**63, 2.0, np.int8(3), "1", Odd(), -4]).tolist() == [1, -1, -1, -1, 3, -1, -1, -1]
    assert whole_numbers([[1, 2], [1], [1, 2, 3], (3, 4), "12", None, [1, Odd()]], 2).tolist() == [
        [1, 2], [-1, -1], [-1, -1], [3, 4], [-1, -1], [-1, -1], [1, -1],
    ]  # fmt: skip
    assert whole_numbers(np.array([[1, 2]], dtype=object), 2).tolist() == [[1, 2]]
    assert whole_numbers(pytest.importorskip("pyarrow").array([1, None])).tolist() == [1, -1]


# --- one lattice ----------------------------------------------------------------------------------------------------

RANGES: list[tuple[Any, Any]] = [
    (0, 1), (1e15 + 0.1, 1e15 + 0.3), (2**52 + 0.1, 2**52 + 2.3), (-1e17, -1e17 + 48), (0.1, 0.3), (1e-9, 3e-9),
    (Fraction(1, 3), Fraction(2, 3)), (2**60, 2**60 + 2048), (1e200, 1.1e200), (-1e-200, 1e-200),
]  # fmt: skip


def ends_cost_no_more_than_is_charged(low: Any, high: Any, method: str) -> None:
    """Noise and noised number of every input at either end, in whole places: the exact loss is at most the promise."""
    survey = local.mean(between=(low, high), epsilon=1, method=method)
    m = survey.mechanism
    near = [low, high, float(low), float(high), np.nextafter(float(low), -np.inf), np.nextafter(float(high), np.inf)]
    inputs = [
        *near,
        exactly(low),
        exactly(high),
        -math.inf,
        math.inf,
        10**400,
        -(10**400),
        None,
        (float(low) + float(high)) / 2,
    ]
    told: dict[int, None] = {}
    original = type(m.noise)._draw

    def watched(noise: Any, value: Any) -> Any:  # what noise is really added to
        told.update(dict.fromkeys(int(one) for one in value))
        return original(noise, value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(m.noise), "_draw", watched)
        survey.encode_many(inputs)
        for kind in (np.float64, np.float32, object):
            with np.errstate(over="ignore"):
                survey.encode_many(np.array(near, dtype=kind))
    moved = max(told) - min(told)
    steps = exactly(m.noise.scale) / exactly(m.noise.step)
    drawn = dp.guarantees.LossDistribution(factors=((LaplacePair(int(moved / exactly(m.noise.step)), steps), 1),))
    assert drawn.epsilon_at(delta=0) <= 1, "the true loss is above the claim"
    assert drawn.epsilon_at(delta=0) == pytest.approx(1, rel=1e-6)  # and the range is used whole


@pytest.mark.parametrize("method", ["laplace", "taught"])
@pytest.mark.parametrize(("low", "high"), RANGES, ids=str)
def test_ends_cost_no_more_than_is_charged(low: Any, high: Any, method: str) -> None:
    ends_cost_no_more_than_is_charged(low, high, method)


def test_a_number_that_is_not_clamped_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_mean, "in_the_middle", lambda places, steps: 3 * places)
    with pytest.raises(AssertionError, match="above the claim"):
        ends_cost_no_more_than_is_charged(0, 1, "laplace")


@pytest.mark.some_quick(4)
@pytest.mark.parametrize(("low", "high"), RANGES, ids=str)
def test_means_far_from_zero_are_right(low: Any, high: Any) -> None:
    """Each place is that of the number, bounds read as they were written."""
    low, high = exactly(low), exactly(high)
    whole = [low + (high - low) * Fraction(part, 8) for part in range(9)]
    assert steps_between(whole, low, high, 8).tolist() == list(range(9))
    with testing.no_noise():
        for method in ("hybrid", "laplace"):
            survey = local.mean(between=(low, high), epsilon=1, method=method)
            told = float(survey.analyze(survey.encode_many(whole[4:5] * 3)).raw) if method == "laplace" else None
            assert told is None or told == pytest.approx(float(whole[4]), rel=1e-12)


def test_ranges_that_no_double_spans_are_refused() -> None:
    for between in ((0, Fraction(1, 10**301)), (-(2**1023), 2**1023)):
        with refuses(dp.InvalidArgument, "out-of-range"):
            local.mean(between=between, epsilon=1)
    with refuses(dp.InvalidArgument, "part-does-not-fit"):
        local_mean.LaplaceResponse(space=dp.Interval(0, 1), noise=dp.Laplace(scale=1))


@pytest.mark.parametrize("epsilon", [1.0, np.float64(1), Fraction(1), Decimal("1.0")], ids=repr)
@pytest.mark.parametrize("choices", [[0, 1], [0.0, 1.0], [False, True], np.array([0, 1]), (0, 1)], ids=repr)
def test_a_repeated_survey_is_known_by_what_it_is(epsilon: Any, choices: Any) -> None:
    """Written in another way it draws no second permanent answer."""
    memory: dict[str, Any] = {}
    dp.local.repeated(dp.local.survey(choices=[0, 1], epsilon=1), memory=memory).encode(1)
    dp.local.repeated(dp.local.survey(choices=choices, epsilon=epsilon), memory=memory).encode(1)
    assert len(memory) == 1
    dp.local.repeated(dp.local.survey(choices=choices, epsilon=2), memory=memory).encode(1)
    assert len(memory) == 2


def test_permanent_answers_of_the_first_version_stay() -> None:
    memory: dict[str, Any] = {}
    asked = dp.local.repeated(dp.local.survey(choices=["a", "b"], epsilon=1), memory=memory)
    memory[f"{asked._digest_before}/0"] = 1
    assert asked.encode("a") == 1
    assert len(memory) == 1


@pytest.mark.parametrize("kind", ["arrow", "polars", "pandas"])
def test_a_gap_changes_no_number_of_others(kind: str) -> None:
    """A column of whole numbers with a gap is read as objects: by the same arithmetic."""
    low, high = Fraction(32, 5), Fraction(104393036512, 540828915)
    container: Callable[[list[Any]], Any] = {
        "arrow": pytest.importorskip("pyarrow").array,
        "polars": pytest.importorskip("polars").Series,
        "pandas": lambda values: pytest.importorskip("pandas").Series(values, dtype="Int64"),
    }[kind]
    for ends in ((low, high), (Fraction(1, 10), Fraction(1003, 10))):
        numbers = [*range(-3, 120), 2**53 + 1, -(2**62)]
        alone = steps_between(container(numbers), *ends, 2**30)
        assert steps_between(container([*numbers, None]), *ends, 2**30)[:-1].tolist() == alone.tolist()
