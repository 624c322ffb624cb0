"""Surveys as bytes: every kind comes back as it was, and bytes that promise less than they say are refused."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet.exact.canonical import canonical

from ..refusing import refuses

PAGE = Path(__file__).parents[2] / "clients" / "js" / "page" / "page.js"
MANY = [f"choice {number}" for number in range(200)]
SURVEYS = {
    "choices": dp.local.survey(choices=["yes", "no", 3, "täglich"], epsilon=1),
    "with δ": dp.local.survey(choices=["yes", "no"], epsilon=1, delta=1e-6),
    "numbers": dp.local.survey(domain_size=1000, epsilon=0.5),
    "many numbers": dp.local.survey(domain_size=2**59 + 1, epsilon=1),
    "text": dp.local.survey(domain="strings", epsilon=Fraction(1, 3)),
    **{method: dp.local.survey(choices=MANY, epsilon=2, method=method) for method in
       ("direct", "subset", "unary", "hashing", "hadamard", "projective")},
    **{f"mean, {method}": dp.local.mean(between=(-0.5, 120), epsilon=1, method=method) for method in
       ("hybrid", "piecewise", "duchi", "laplace", "taught")},
    "sketch": dp.local.sketch(epsilon=1, width=64, hashes=8, seed=3),
    "prefixes of text": dp.local.heavy_hitters(length=4, epsilon=2),
    "prefixes of numbers": dp.local.heavy_hitters(bits=20, epsilon=2, top=3),
    "rows": dp.local.rows({"city": ["a", "b"], "age": (0, 120)}, epsilon=2),
}  # fmt: skip


@pytest.mark.parametrize("name", SURVEYS)
def test_a_survey_comes_back_from_its_bytes(name: str) -> None:
    survey = SURVEYS[name]
    task = dp.local.task(survey)
    again = dp.local.from_task(task)
    assert again == survey
    assert dp.local.task(again) == task
    assert task == canonical(json.loads(task))


def test_repetition_is_part_of_the_task() -> None:
    survey = dp.local.survey(choices=["a", "b"], epsilon=1, method="direct")
    for fresh in (None, 0.5):
        repeated = dp.local.repeated(survey, memory={}, each_round=fresh)
        kept: dict[str, object] = {}
        again = dp.local.from_task(dp.local.task(repeated), memory=kept)
        assert again == repeated
        again.encode("a")
        assert len(kept) == 1


def test_noise_that_does_not_keep_its_promise_is_refused() -> None:
    facts = json.loads(dp.local.task(SURVEYS["direct"]))
    facts["survey"]["epsilon"] = 1.9
    with refuses(dp.InvalidArgument, "survey-promise-not-kept"):
        dp.local.from_task(canonical(facts))
    facts = json.loads(dp.local.task(SURVEYS["rows"]))
    for _, column in facts["survey"]["columns"]:
        column["epsilon"] = 0.5  # and then the columns do not keep their own
    with refuses(dp.InvalidArgument, "survey-promise-not-kept"):
        dp.local.from_task(canonical(facts))


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts.update(format="discreet/survey/v2"),
        lambda facts: facts.update(more=1),
        lambda facts: facts["survey"].update(more=1),
        lambda facts: facts["survey"]["oracle"].update(more=1),
        lambda facts: facts["survey"]["oracle"].update(method="unknown"),
        lambda facts: facts["survey"]["oracle"].update(size=199),
        lambda facts: facts["survey"]["choices"].pop(),
        lambda facts: facts["survey"].pop("epsilon"),
        lambda facts: facts["survey"].update(kind="mean"),
        lambda facts: facts["survey"]["oracle"].update(odds={"fraction": ["1", "0"]}),
        lambda facts: facts["survey"]["oracle"].update(odds="7"),
        lambda facts: facts.update(repeated={"each_round": {"method": "unary", "size": 2, "odds": 2}}),
    ],
)
def test_bytes_that_say_something_else_are_refused(change) -> None:
    facts = json.loads(dp.local.task(SURVEYS["direct"]))
    change(facts)
    with pytest.raises(dp.DiscreetError):
        dp.local.from_task(canonical(facts))


def test_one_survey_has_one_hash() -> None:
    data = dp.local.task(SURVEYS["direct"])
    twice = data.replace(b'"kind"', b'"kind":"numbers","kind"')
    for other in (data + b" ", b"\xef\xbb\xbf" + data, data.decode().encode("utf-16"), twice):
        with refuses(dp.InvalidArgument, "survey-task-unreadable"):
            dp.local.from_task(other)


def test_a_place_that_the_oracle_does_not_have_would_be_told_as_it_is() -> None:
    three = json.loads(dp.local.task(dp.local.survey(choices=["a", "b", "c"], epsilon=1, method="direct")))
    three["survey"] = {name: one for name, one in three["survey"].items() if name != "choices"} | {"kind": "text"}
    bits = json.loads(dp.local.task(dp.local.heavy_hitters(bits=4, epsilon=1)))
    bits["survey"]["alphabet"] = "abcdefghijklmnopqrstuvwxyz"
    for facts in (three, bits):
        with refuses(dp.InvalidArgument, "survey-task-unreadable"):
            dp.local.from_task(canonical(facts))


def test_what_no_device_could_hold_or_no_survey_would_make_is_refused() -> None:
    def changed(survey: Any, *path: Any, to: Any) -> bytes:
        facts = json.loads(dp.local.task(survey))
        inside = facts
        for name in path[:-1]:
            inside = inside[name]
        inside[path[-1]] = to
        return canonical(facts)

    subset = dp.local.survey(domain_size=1000, epsilon=1, method="subset")
    points = dp.local.survey(domain_size=1000, epsilon=1, method="projective")
    fresh = dp.local.repeated(
        dp.local.survey(choices=["a", "b", "c"], epsilon=1, method="direct"), memory={}, each_round=1
    )
    rows = json.loads(dp.local.task(SURVEYS["rows"]))["survey"]
    for data in (
        changed(subset, "survey", "oracle", "size", to=10**12),
        changed(points, "survey", "oracle", "dimension", to=10**6),
        changed(points, "survey", "oracle", "prime", to=10**18),
        *(changed(fresh, "repeated", "each_round", "size", to=size) for size in (2, 4, 3.7, "3")),
        changed(fresh, "repeated", "each_round", "more", to=1),
        changed(dp.local.mean(between=(0, 1), epsilon=1), "repeated", to={"each_round": None}),
        changed(SURVEYS["rows"], "survey", "columns", to=[["inside", rows]]),
    ):
        with refuses(dp.InvalidArgument, "survey-task-unreadable"):
            dp.local.from_task(data)
    with refuses(dp.InvalidArgument, "duplicates"):
        dp.local.from_task(changed(fresh, "survey", "choices", to=["a", "a", "b"]))


@pytest.mark.slow
@given(
    st.binary(max_size=60)
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)
    ).map(lambda v: json.dumps(v).encode())
)
def test_any_other_bytes_are_refused(data: bytes) -> None:
    with refuses(dp.InvalidArgument, "survey-task-unreadable"):
        dp.local.from_task(data)


def test_what_is_no_survey_has_no_task() -> None:
    for wrong in (None, 3, "survey", dp.shuffle.bit_sum(clients=1000, epsilon=1, delta=1e-6)):
        with refuses(dp.InvalidArgument, "wrong-type"):
            dp.local.task(wrong)


def test_the_survey_on_the_page_keeps_its_promise() -> None:
    said = re.search(r"const SURVEY =\s*'([^']*)'", PAGE.read_text(encoding="utf-8"))
    assert said is not None
    dp.local.from_task(said[1].encode())  # checks it
