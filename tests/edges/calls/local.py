"""Reports from devices, shuffled or not: everybody's own, whatever somebody else tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from discreet import local, shuffle, testing

from ..checking import Call
from ..containers import LISTS, NUMBERS, TEXTS, Container, objects, of_plain
from ..distances import largest, reports

BIG = 2**53 + 1
EPSILON = {"epsilon": 2}
LETTERS = ["a", "b", "c", "a", "b", "b", "c", "a"]
KINDS = [7, "a", BIG, 2.5, "a", 7]
WHOLE = [0, 5, 7, BIG % 8, 3, 2, 1, 0]
NUMBERED = [0.5, 99, 3, BIG, -7, 0, 12.25, 40]
WORDS = ["ana", "bor", "a", "zz", "ana", "", "bor"]


SURVEYS: list[tuple[str, Any, Sequence[Any], dict[str, Container]]] = [
    *(
        (f"Survey ({method})", local.survey(choices=["a", "b", "c"], method=method, **EPSILON), LETTERS, TEXTS)
        for method in ("direct", "subset", "unary", "hashing", "hadamard", "projective")
    ),
    ("Survey (mixed choices)", local.survey(choices=["a", 7, BIG, 2.5], **EPSILON), KINDS, LISTS),
    ("Survey (domain_size)", local.survey(domain_size=8, **EPSILON), WHOLE, NUMBERS),
    ("Survey (domain_size above 2^53)", local.survey(domain_size=2**54, **EPSILON), [BIG, 3, BIG + 2, 0], NUMBERS),
    ("Survey (strings)", local.survey(domain="strings", **EPSILON), WORDS, TEXTS),
    *(
        (f"MeanSurvey ({method})", local.mean(between=(0, 100), method=method, **EPSILON), NUMBERED, NUMBERS)
        for method in ("hybrid", "piecewise", "duchi", "laplace", "taught")
    ),
    ("HeavyHitters (bits)", local.heavy_hitters(bits=8, groups=2, **EPSILON), WHOLE, NUMBERS),
    ("HeavyHitters (bits above 53)", local.heavy_hitters(bits=56, **EPSILON), [BIG, 3, BIG + 2, 0], NUMBERS),
    ("HeavyHitters (length)", local.heavy_hitters(length=3, groups=2, **EPSILON), WORDS, TEXTS),
    ("Sketch", local.sketch(width=16, hashes=4, **EPSILON), WORDS, TEXTS),
]
ROWS = local.rows({"city": ["a", "b"], "age": (0, 120)}, **EPSILON)
PEOPLE = [{"city": "a", "age": 30}, {"city": "b", "age": 99.5}, {"city": "a", "age": BIG}, {"city": "b", "age": 1}]
AS_ROWS: dict[str, Container] = {
    "rows": of_plain(list),
    "tuple of rows": of_plain(tuple),
    "columns": of_plain(lambda rows: {name: [row[name] for row in rows] for name in ("city", "age")}),
    "columns of objects": of_plain(lambda rows: {name: objects([row[name] for row in rows]) for name in PEOPLE[0]}),
    "pandas": of_plain(lambda rows: {n: pd.Series([row[n] for row in rows], dtype=object) for n in PEOPLE[0]}),
}


def row_reports(table: Any) -> list[Any]:
    """The reports of rows, one for each."""
    told = ROWS.encode_many(table)
    return list(zip(*(column.tolist() for column in told.values()), strict=True))


LOCAL: list[Call] = [
    Call(name=f"{name}.encode_many", covers=(f"local.{name.split()[0]}.encode_many",), base=base, moved=reports, most=1,
         run=survey.encode_many, containers=containers, replaced=True)
    for name, survey, base, containers in SURVEYS
] + [
    Call(name="Rows.encode_many", covers=("local.Rows.encode_many",), base=PEOPLE * 8, run=row_reports, moved=reports,
         most=1, containers=AS_ROWS, replaced=True, together=8,
         ways={"record": lambda odd: odd, "choice": lambda odd: {"city": odd, "age": 5},
               "number": lambda odd: {"city": "a", "age": odd}, "more": lambda odd: PEOPLE[0] | {"x": odd},
               "fewer": lambda odd: {"age": odd}}),
]  # fmt: skip


def counted(analyze: Callable[..., Any], **given: Any) -> Callable[[Any], Any]:
    """The raw counts that a collector gets."""

    def run(held: Any) -> Any:
        found = analyze(held, **given)
        return {"raw": found.raw, "reports": found.reports} if hasattr(found, "raw") else found

    return run


SENT: dict[str, Container] = {name: LISTS[name] for name in ("list", "tuple", "objects", "pandas objects")}


def heard(name: str, survey: Any, base: Sequence[Any], **given: Any) -> Call:
    """One message that is no report is left out, whatever it is; one that is a report counts as one."""
    with testing.frozen(7):
        sent = [one.tolist() if isinstance(one, np.ndarray | np.generic) else one for one in survey.encode_many(base)]
    return Call(name=f"{name}.analyze", covers=(f"local.{name.split()[0]}.analyze",), base=sent * 3, moved=largest,
                run=counted(survey.analyze, **given), most=None, extremes=tuple(sent), containers=SENT)  # fmt: skip


ASKED: dict[str, dict[str, Any]] = {
    "Survey (domain_size above 2^53)": {"candidates": [3, BIG]},
    "Survey (strings)": {"candidates": ["ana", "bor"]},
    "Sketch": {"candidates": ["ana", "bor"]},
}
HITTERS = local.heavy_hitters(bits=2, groups=1, top=4, **EPSILON)
AGAIN = local.repeated(local.survey(choices=["a", "b", "c"], method="direct", **EPSILON), memory={}, each_round=1)
with testing.frozen(7):
    SENT_ROWS = [ROWS.encode(one) for one in PEOPLE]
    HIT = HITTERS.encode_many([k % 4 for k in range(40)]).tolist()
    SENT_AGAIN = [AGAIN.encode(one) for one in LETTERS]


def sorted_counts(held: Any) -> Any:
    """The most frequent values, in an order of their own."""
    return sorted(HITTERS.analyze(held).raw.items())


def counted_rows(held: Any) -> Any:
    """What is told of each column."""
    return {name: one.raw for name, one in ROWS.analyze(held).items()}


COLLECTED: list[Call] = [
    *(
        heard(name, survey, base, **ASKED.get(name, {}))
        for name, survey, base, _ in SURVEYS
        if not name.startswith("HeavyHitters")
    ),
    Call(name="HeavyHitters.analyze", covers=("local.HeavyHitters.analyze",), run=sorted_counts, moved=largest,
         base=HIT, most=None, extremes=tuple(HIT[:4]), containers=SENT),
    Call(name="Rows.analyze", covers=("local.Rows.analyze",), base=SENT_ROWS * 10, together=8, run=counted_rows,
         moved=largest,
         most=None, extremes=tuple(SENT_ROWS), containers=SENT,
         ways={"record": lambda odd: odd, "choice": lambda odd: SENT_ROWS[0] | {"city": odd},
               "number": lambda odd: SENT_ROWS[0] | {"age": odd}}),
    Call(name="Repeated.analyze", covers=("local.Repeated.analyze",), base=SENT_AGAIN * 3, moved=largest, most=None,
         run=lambda held: AGAIN.analyze(held).raw, extremes=tuple(SENT_AGAIN), containers=SENT),
]  # fmt: skip

POLL: dict[str, Any] = {"clients": 200, "minimum": 200}
"""With noise that is given: to work out the least that keeps a promise takes seconds, and changes nothing here."""
BITS = [0, 1, True, False, 1, 0] * 40
AMONG: dict[str, Any] = {"choices": ("a", "b", 7, BIG), **POLL}
CHOSEN = ["a", 7, BIG, "a", "b"] * 48
WITHIN: dict[str, Any] = {"low": 0, "high": 100, **POLL}
POLLS: list[tuple[str, Any, Sequence[Any], dict[str, Container]]] = [
    ("BitSum", shuffle.BitSum(lie=0.03, **POLL), BITS, NUMBERS),
    ("TwoMessageBitSum", shuffle.TwoMessageBitSum(chance=0.03, **POLL), BITS, NUMBERS),
    ("Fakes", shuffle.Fakes(fakes=0.17, **AMONG), CHOSEN, LISTS),
    ("ResponseHistogram", shuffle.ResponseHistogram(lie=0.04, **AMONG), CHOSEN, LISTS),
    ("ParallelSums", shuffle.ParallelSums(chance=0.04, inverted=False, **AMONG), CHOSEN, LISTS),
    ("HashedHistogram", shuffle.HashedHistogram(fakes=1, rows=8, buckets=23, seed="x", **AMONG), CHOSEN, LISTS),
    ("BitPlanes", shuffle.BitPlanes(lies=(0.04, 0.07, 0.12), **WITHIN), NUMBERED * 30, NUMBERS),
    ("SplitAndMix", shuffle.real_sum(between=(0, 100), method="split and mix", steps=16, clients=200, epsilon=1,
                                     delta=0.01), NUMBERED * 30, NUMBERS),
]  # fmt: skip


def of_clients(poll: Any) -> Callable[[Any], Any]:
    """The messages of each client."""
    return lambda values: poll.encode_many(values).reshape(-1, poll.messages)


SHUFFLED: list[Call] = [
    Call(name=f"{name}.encode_many", covers=(f"shuffle.{name}.encode_many",), base=base, run=of_clients(poll),
         moved=reports, most=1, containers=containers, replaced=True, frozen=True, heavy=1,
         together=8)
    for name, poll, base, containers in POLLS
]  # fmt: skip


def analyzed_poll(name: str, poll: Any, base: Sequence[Any], **given: Any) -> Call:
    """Messages to the analyzer: one that is none changes what one message can."""
    with testing.frozen(7):
        sent = poll.encode_many(base).tolist()
    alphabet = [0, poll.alphabet - 1, poll.alphabet // 2]
    return Call(name=f"{name}.analyze", covers=(f"shuffle.{name}.analyze",), base=sent, moved=largest, most=None,
                run=lambda messages: poll.analyze(messages, **given).value, containers=SENT, replaced=True,
                together=8, extremes=tuple(alphabet))  # fmt: skip


ANALYZED: list[Call] = [
    analyzed_poll(name, poll, base, **({"candidates": ["a", 7]} if name == "HashedHistogram" else {}))
    for name, poll, base, _ in POLLS
]

CALLS: list[Call] = [*LOCAL, *COLLECTED, *SHUFFLED, *ANALYZED]
