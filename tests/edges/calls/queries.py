"""Queries, and mechanisms that take rows themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import discreet as dp
from discreet.queries import (
    Ball,
    Categories,
    CountingQuery,
    Domain,
    Grid,
    Histogram,
    Mean,
    MedianScore,
    Popularity,
    QuantileScore,
    Ratings,
    VectorSum,
    Workload,
)

from ..checking import Call
from ..containers import LISTS, NUMBERS, TEXTS, Container, objects, of_plain, rows_in
from ..distances import BY_NORM, largest

ADDED, REPLACED = dp.row(), dp.row(neighbors="replace")
BIG = 2**53 + 1
"""A whole number that no double is."""
MIXED = [17, 3.5, BIG, 40, 99.25, -3, 0, 61, 88, 5, 2, 33]
BOOKS = {
    unit: dp.Ledger.open(":memory:", protects=unit, limit=dp.Approx(epsilon=10**6, delta=0.5))
    for unit in (ADDED, REPLACED)
}


def of_query(
    query: Any,
    base: Any,
    containers: Mapping[str, Container],
    *,
    name: str,
    ways: Any = None,
    units: Any = (ADDED, REPLACED),
    extremes: Any = (),
    answer: Any = lambda found: found,
    together: int = 1,
) -> list[Call]:
    """The query itself, in both relations: its answer is the true one, exactly."""
    made = []
    for unit in units:
        bound = query.sensitivity(unit)
        made.append(
            Call(
                name=f"{name}, {'replaced' if unit is REPLACED else 'added'}",
                covers=(f"{name}.__call__", *(("Workload.answers", "Workload.tables") if name == "Workload" else ())),
                base=base,
                run=lambda data: answer(query(data)),
                moved=BY_NORM[bound.norm],
                most=float(bound.exact),
                containers=containers,
                ways=ways or {"record": lambda odd: odd},
                extremes=extremes,
                replaced=unit is REPLACED,
                together=3 if unit is REPLACED and len(units) > 1 else together,
                heavy=int(unit is REPLACED and len(units) > 1),
            )
        )
    return made


def scores(found: Any) -> list[Any]:
    """Scores in their unit."""
    return [step * found.unit for step in found.steps.tolist()]


def at_least_four(rows: Any) -> list[bool]:
    """A predicate that looks at each row, as people write them."""
    return [bool(row >= 4) for row in rows]


CHOICES = ("a", "b", 7, BIG, 2.5)
PICKED = ["a", "b", 7, BIG, 2.5, "a", "a", BIG, 7, "zz", "b"]
DOMAIN = Domain({"age": 5, "sex": ("f", "m")})
PEOPLE = [[0, "f"], [1, "m"], [4, "f"], [2, "m"], [2, "f"], [3, "m"], [1, "f"]]
IN_A_ROW = {
    "record": lambda odd: odd,
    "number": lambda odd: [odd, "f"],
    "choice": lambda odd: [2, odd],
    "longer": lambda odd: [2, "f", odd],
}
COLUMNS = {
    name: rows_in(2, names="xy")[name] for name in ("rows", "tuples", "tuple of rows", "objects", "objects of rows")
} | {
    "dict of lists": of_plain(lambda rows: {"age": [row[0] for row in rows], "sex": [row[1] for row in rows]}),
    "pandas objects": of_plain(
        lambda rows: __import__("pandas").DataFrame(
            {"age": objects([row[0] for row in rows]), "sex": objects([row[1] for row in rows])}
        )
    ),
}
VECTORS = [[0.5, 0.25], [BIG, 0.0], [0.1, -0.7], [0.0, 0.5], [0.25, 0.25], [0.6, 0.6]]
IN_A_VECTOR = {
    "record": lambda odd: odd,
    "cell": lambda odd: [0.5, odd],
    "first cell": lambda odd: [odd, 0.5],
    "longer": lambda odd: [0.5, 0.5, odd],
    "shorter": lambda odd: [odd],
}
LIKES = [{"Heat"}, ["Heat", "Alien"], ("Alien",), {"Heat", 7}, ["Alien", "Alien"], set(), {7}, [7, "Heat"]]
RATED = [{"Heat": 4}, {"Heat": 9, "Alien": 1}, {"Alien": 3, 7: 2}, {}, {"Heat": 2.5}, {"Alien": 5}]
ARRAYS = {
    name: NUMBERS[name]
    for name in NUMBERS
    if "columns" not in name and name not in ("iterator", "one-cell rows but the odd")
}
FEW_LISTS = {name: LISTS[name] for name in ("list", "tuple", "iterator", "objects", "pandas objects")}
GRID = Grid(0, 10, 1)
RANKED = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7]

QUERIES: list[Call] = [
    *of_query(dp.Count(), MIXED, NUMBERS, name="Count"),
    *of_query(Mean((0, 100)).parts()[1], MIXED, NUMBERS, name="Count", extremes=(1.0,)),
    *of_query(dp.Count(at_least_four), MIXED, FEW_LISTS, name="Count", extremes=(5,)),
    *of_query(CountingQuery(at_least_four, size=12), MIXED, FEW_LISTS, name="CountingQuery", units=(REPLACED,)),
    *of_query(Histogram(CHOICES), PICKED, TEXTS, name="Histogram", extremes=("a",)),
    *of_query(Histogram(Categories(CHOICES, other="b")), PICKED, TEXTS, name="Histogram", extremes=(BIG,)),
    *of_query(dp.Sum((0, 100)), MIXED, NUMBERS, name="Sum", extremes=(100.0, 0.0)),
    *of_query(dp.Sum((-1, 1), about=0.5), MIXED, NUMBERS, name="Sum", extremes=(-1.0,)),
    *of_query(Mean((0, 100), size=12), MIXED, NUMBERS, name="Mean", units=(REPLACED,), extremes=(100.0,)),
    *of_query(Mean((0, 100)).parts()[0], MIXED, NUMBERS, name="Mean", extremes=(100.0,)),
    *of_query(
        VectorSum(Ball(2, 1)), VECTORS, rows_in(2), name="VectorSum", ways=IN_A_VECTOR,
        extremes=([1.0, 0.0],), together=2,
    ),
    *of_query(VectorSum(Ball(1, 1)), [0.5, 0.25, -0.5, BIG, 0, 1], NUMBERS, name="VectorSum", extremes=(1.0,)),
    *of_query(
        Popularity(("Heat", "Alien", 7)), LIKES, FEW_LISTS, name="Popularity", answer=scores,
        ways={"record": lambda odd: odd, "item": lambda odd: ["Heat", odd], "in a tuple": lambda odd: (odd, odd)},
        extremes=({"Heat", "Alien", 7},),
    ),
    *of_query(
        Ratings(("Heat", "Alien", 7), (0, 5)), RATED, FEW_LISTS, name="Ratings", answer=scores,
        ways={"record": lambda odd: odd, "score": lambda odd: {"Heat": odd}},
        extremes=({"Heat": 5, "Alien": 5, 7: 5},),
    ),
    *of_query(MedianScore(GRID), RANKED, NUMBERS, name="MedianScore", answer=scores, extremes=(10,)),
    *of_query(QuantileScore(GRID, 0.25), RANKED, NUMBERS, name="QuantileScore", answer=scores, extremes=(10,)),
    *of_query(
        QuantileScore(dp.Integers(BIG, BIG + 9), 0.5), [BIG + k % 10 for k in range(12)], NUMBERS,
        name="QuantileScore", answer=scores, extremes=(BIG,),
    ),
    *(
        call
        for workload in (
            Workload.marginals(DOMAIN, 2),
            Workload.prefixes(DOMAIN, "age"),
            Workload.conjunctions(DOMAIN, [{"sex": "f"}, {"age": 2, "sex": "m"}]),
        )
        for call in of_query(workload, PEOPLE, COLUMNS, name="Workload", ways=IN_A_ROW, extremes=([2, "m"],))
    ),
    *of_query(
        Workload.marginals(Domain({"age": BIG + 1}), [()]), [BIG, 3, 4, BIG, BIG + 5, 0], NUMBERS,
        name="Workload", extremes=(BIG,),
    ),
    Call(
        name="Domain.histogram", covers=("Domain.histogram", "Domain.codes"), base=PEOPLE, run=DOMAIN.histogram,
        moved=largest, most=1, containers=COLUMNS, ways=IN_A_ROW, extremes=([2, "m"],),
    ),
]  # fmt: skip

CALLS: list[Call] = QUERIES
