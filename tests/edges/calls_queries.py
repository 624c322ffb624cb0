"""Queries, and mechanisms that take rows themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import discreet as dp
from discreet.mechanisms.quantile_interval import QuantileInterval
from discreet.mechanisms.residuals import ResidualMarginals

from .checking import BY_NORM, Call, largest, reports
from .records import LISTS, NUMBERS, TEXTS, Container, objects, of_plain, rows_in

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
                covers=(f"{name}.__call__",) + (("Workload.answers", "Workload.tables") if name == "Workload" else ()),
                base=base,
                run=lambda data: answer(query(data)),
                moved=BY_NORM[bound.norm],
                most=float(bound.exact),
                containers=containers,
                ways=ways or {"record": lambda odd: odd},
                extremes=extremes,
                replaced=unit is REPLACED,
                together=together,
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
DOMAIN = dp.Domain({"age": 5, "sex": ("f", "m")})
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
ARRAYS = {name: NUMBERS[name] for name in NUMBERS if "columns" not in name and name not in ("iterator", "one-cell rows but the odd")}
FEW_LISTS = {name: LISTS[name] for name in ("list", "tuple", "iterator", "objects", "pandas objects")}
GRID = dp.Grid(0, 10, 1)
RANKED = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7]

QUERIES: list[Call] = [
    *of_query(dp.Count(), MIXED, NUMBERS, name="Count"),
    *of_query(dp.Mean((0, 100)).parts()[1], MIXED, NUMBERS, name="Count", extremes=(1.0,)),
    *of_query(dp.Count(at_least_four), MIXED, FEW_LISTS, name="Count", extremes=(5,)),
    *of_query(dp.CountingQuery(at_least_four, size=12), MIXED, FEW_LISTS, name="CountingQuery", units=(REPLACED,)),
    *of_query(dp.Histogram(CHOICES), PICKED, TEXTS, name="Histogram", extremes=("a",)),
    *of_query(dp.Histogram(dp.Categories(CHOICES, other="b")), PICKED, TEXTS, name="Histogram", extremes=(BIG,)),
    *of_query(dp.Sum((0, 100)), MIXED, NUMBERS, name="Sum", extremes=(100.0, 0.0)),
    *of_query(dp.Sum((-1, 1), about=0.5), MIXED, NUMBERS, name="Sum", extremes=(-1.0,)),
    *of_query(dp.Mean((0, 100), size=12), MIXED, NUMBERS, name="Mean", units=(REPLACED,), extremes=(100.0,)),
    *of_query(dp.Mean((0, 100)).parts()[0], MIXED, NUMBERS, name="Mean", extremes=(100.0,)),
    *of_query(
        dp.VectorSum(dp.Ball(2, 1)), VECTORS, rows_in(2), name="VectorSum", ways=IN_A_VECTOR, extremes=([1.0, 0.0],)
    ),
    *of_query(dp.VectorSum(dp.Ball(1, 1)), [0.5, 0.25, -0.5, BIG], NUMBERS, name="VectorSum", extremes=(1.0,)),
    *of_query(
        dp.Popularity(("Heat", "Alien", 7)), LIKES, FEW_LISTS, name="Popularity", answer=scores,
        ways={"record": lambda odd: odd, "item": lambda odd: ["Heat", odd], "in a tuple": lambda odd: (odd, odd)},
        extremes=({"Heat", "Alien", 7},),
    ),
    *of_query(
        dp.Ratings(("Heat", "Alien", 7), (0, 5)), RATED, FEW_LISTS, name="Ratings", answer=scores,
        ways={"record": lambda odd: odd, "score": lambda odd: {"Heat": odd}},
        extremes=({"Heat": 5, "Alien": 5, 7: 5},),
    ),
    *of_query(dp.MedianScore(GRID), RANKED, NUMBERS, name="MedianScore", answer=scores, extremes=(10,)),
    *of_query(dp.QuantileScore(GRID, 0.25), RANKED, NUMBERS, name="QuantileScore", answer=scores, extremes=(10,)),
    *of_query(
        dp.QuantileScore(dp.Integers(BIG, BIG + 9), 0.5), [BIG + k % 10 for k in range(12)], NUMBERS,
        name="QuantileScore", answer=scores, extremes=(BIG,),
    ),
    *(
        call
        for workload in (
            dp.Workload.marginals(DOMAIN, 2),
            dp.Workload.prefixes(DOMAIN, "age"),
            dp.Workload.conjunctions(DOMAIN, [{"sex": "f"}, {"age": 2, "sex": "m"}]),
        )
        for call in of_query(workload, PEOPLE, COLUMNS, name="Workload", ways=IN_A_ROW, extremes=([2, "m"],))
    ),
    *of_query(
        dp.Workload.marginals(dp.Domain({"age": BIG + 1}), [()]), [BIG, 3, 4, BIG, BIG + 5, 0], NUMBERS,
        name="Workload", extremes=(BIG,),
    ),
    Call(
        name="Domain.histogram", covers=("Domain.histogram", "Domain.codes"), base=PEOPLE, run=DOMAIN.histogram,
        moved=largest, most=1, containers=COLUMNS, ways=IN_A_ROW, extremes=([2, "m"],),
    ),
]  # fmt: skip


def released(mechanism: Any, **given: Any) -> Any:
    """What leaves by the door, of rows that the mechanism reads itself."""
    return lambda data: dp.release(data, mechanism, **given).value


PURE = dp.Pure(epsilon=1)
WIDE = dp.Integers(0, 2**60)
HEAP = [BIG] * 25 + [7, 2**54 + 1, BIG + 2, BIG - 2, 2.5, 3]
"""Of these every middle quantile is `BIG`, whoever else there is."""
NEAR = dp.Integers(2**53, 2**53 + 15)
NEARBY = [BIG + k % 14 for k in range(40)]
CODED = dp.Domain({"age": 4, "sex": ("f", "m")})
PAIRS = dp.Workload.marginals(CODED, 1)
MANY = [[k % 4, "fm"[k % 2]] for k in range(24)] + [[3, "m"]] * 12


def of_rows(name: str, mechanism: Any, base: Any, containers: Any, most: Any, **given: Any) -> Call:
    """A mechanism that takes rows."""
    return Call(
        name=given.pop("name", name), covers=(f"release({name})",), base=base, run=released(mechanism), most=most,
        moved=given.pop("moved", largest), containers=containers, **given,
    )  # fmt: skip


RATES = {"record": lambda odd: odd, "number": lambda odd: (odd, "a"), "choice": lambda odd: (1.0, odd)}
LETTERS = ["a", "b", "c", "a", "b", "b"]
RESPONSE = dp.RandomizedResponse.for_guarantee(PURE, choices=["a", "b", "c"])
NUMBER = dp.Each.for_guarantee(PURE, spaces=dp.Interval(0, 100))

INTERVAL = QuantileInterval.for_guarantee(PURE, space=WIDE, unit=ADDED)

MECHANISMS: list[Call] = [
    of_rows("Quantile", dp.Quantile.for_guarantee(PURE, space=WIDE), HEAP, NUMBERS, 0),
    of_rows("Quantile", dp.Quantile.for_guarantee(PURE, space=dp.Grid(0, 9, 0.5)), [4.5] * 9 + [1, 2], NUMBERS, 0),
    of_rows("Quantile", dp.Quantile.for_guarantee(PURE, space=dp.Interval(0, 9)), [4] * 9 + [1, 2], NUMBERS, 0),
    of_rows("Quantiles", dp.Quantiles.for_guarantee(PURE, space=WIDE, quantiles=[0.4, 0.5, 0.6]), HEAP, NUMBERS, 0),
    Call(name="QuantileInterval", covers=("release(QuantileInterval)",), base=HEAP, moved=largest, most=0,
         run=released(INTERVAL, sensitivity=INTERVAL.sensitivity(ADDED)), containers=NUMBERS),
    of_rows("CumulativeCounts", dp.CumulativeCounts.for_guarantee(PURE, space=NEAR), NEARBY, NUMBERS, 1 + 1e-6,
            extremes=(BIG,)),
    of_rows("CumulativeCounts", dp.CumulativeCounts.for_guarantee(dp.Approx(epsilon=1, delta=1e-6), space=GRID),
            RANKED, NUMBERS, 1 + 1e-6, extremes=(0,)),
    of_rows("QuantilesFromCounts", dp.QuantilesFromCounts.for_guarantee(PURE, space=NEAR, quantiles=[0.5]),
            [BIG] * 20 + NEARBY[:5], NUMBERS, 0),
    of_rows("RandomizedResponse", RESPONSE, LETTERS, TEXTS, 1, moved=reports, replaced=True),
    of_rows("Each", NUMBER, MIXED, NUMBERS, 1, moved=reports, replaced=True),
    of_rows("Each", dp.Each.for_guarantee(PURE, spaces=dp.Integers(0, 2**60)), [BIG, 3, BIG + 2, 0, 2**60], NUMBERS, 1,
            moved=reports, replaced=True),
    of_rows("Each", dp.Each.for_guarantee(PURE, spaces=dp.Grid(0, 9, 0.5)), RANKED, NUMBERS, 1, moved=reports,
            replaced=True),
    of_rows("Each", dp.Each.for_guarantee(PURE, spaces=dp.Categories(("a", "b", "c"))), LETTERS, TEXTS, 1,
            moved=reports, replaced=True),
    of_rows("Each", dp.Each.for_guarantee(PURE, spaces=[dp.Interval(0, 9), dp.Categories(("a", "b"))]),
            [(1.0, "a"), (2.5, "b"), (BIG, "a"), (3, "b")],
            {name: COLUMNS[name] for name in ("rows", "tuples", "tuple of rows", "objects")}, 1, moved=reports,
            replaced=True, ways=RATES | {"longer": lambda odd: (1.0, "a", odd), "shorter": lambda odd: (odd,)}),
    of_rows("Each", dp.Each((dp.Gaussian(stddev=1),), (dp.Interval(0, 100),)), MIXED, NUMBERS, 1, moved=reports,
            replaced=True),
    of_rows("Shuffled", dp.Shuffled(local=RESPONSE, clients=6), LETTERS, TEXTS, 1, moved=reports, replaced=True),
    of_rows("SmallDatabase", dp.SmallDatabase(workload=PAIRS, size=36, rows=4, rate=1), MANY, COLUMNS, 2,
            ways=IN_A_ROW),
    of_rows("MultiplicativeWeights",
            dp.MultiplicativeWeights.for_guarantee(dp.Approx(epsilon=5, delta=1e-5), workload=PAIRS, size=36, rounds=2),
            MANY, COLUMNS, None, ways=IN_A_ROW, together=6, extremes=([0, "f"], [3, "m"], [1, "m"])),
    of_rows("ResidualMarginals",
            ResidualMarginals.for_guarantee(dp.Approx(epsilon=5, delta=1e-5), workload=PAIRS), MANY, COLUMNS, 1,
            ways=IN_A_ROW, together=2, extremes=([0, "f"],)),
    Call(
        name="Subsampled", covers=("release(Subsampled)",), base=MIXED,
        run=released(dp.Subsampled(mechanism=dp.Laplace(scale=1), rate=0.5, query=dp.Sum((0, 100))), sensitivity=100),
        moved=largest, most=100, containers=NUMBERS, extremes=(100.0,),
    ),
    Call(
        name="OnlineMultiplicativeWeights", covers=("release(OnlineMultiplicativeWeights)",), base=MANY,
        run=lambda data: dp.release((data, [0, 1, 2]), ONLINE).value["answers"],
        moved=largest, most=2, containers=COLUMNS, ways=IN_A_ROW, together=6, extremes=([0, "f"], [3, "m"]),
    ),
]  # fmt: skip
ONLINE = dp.OnlineMultiplicativeWeights.for_guarantee(
    dp.Pure(epsilon=5), workload=PAIRS, size=36, updates=3, questions=3
)


def at_the_door(query: Any, mechanism: Any, unit: Any = REPLACED, **given: Any) -> Any:
    """A query asked behind the door, under a ledger."""
    return lambda data: dp.release(data, mechanism, query=query, ledger=BOOKS[unit], **given).value


TALLY = {"covers": ("release",), "together": 4}
DOOR: list[Call] = [
    Call(name="release(query=Sum)", base=MIXED, run=at_the_door(dp.Sum((0, 100)), dp.Laplace(scale=100)), most=100,
         moved=largest, containers=NUMBERS, replaced=True, extremes=(100.0,), **TALLY),
    Call(name="release(query=Count)", base=MIXED, run=at_the_door(dp.Count(at_least_four), dp.Laplace(scale=1)),
         most=1, moved=largest, containers=FEW_LISTS, replaced=True, **TALLY),
    Call(name="release(query=Histogram)", base=PICKED, run=at_the_door(dp.Histogram(CHOICES), dp.Laplace(scale=1)),
         most=1, moved=largest, containers=TEXTS, replaced=True, **TALLY),
    Call(name="release(query=Popularity)", base=[{"Heat"}] * 9,
         run=at_the_door(dp.Popularity(("Heat", "Alien")), dp.Exponential(rate=1, choices=("Heat", "Alien"))),
         most=0, moved=largest, containers=FEW_LISTS, replaced=True, **TALLY),
    Call(name="release(query=Popularity, TopK)", base=[{"Heat"}] * 9 + [{"Alien"}] * 5,
         run=at_the_door(dp.Popularity(("Heat", "Alien", "X")), dp.TopK(k=2, rate=1)),
         most=0, moved=largest, containers=FEW_LISTS, replaced=True, **TALLY),
    Call(name="release(query=VectorSum)", base=VECTORS,
         run=at_the_door(dp.VectorSum(dp.Ball(2, 1)), dp.Gaussian(stddev=1)), most=2, moved=largest,
         containers=rows_in(2), ways=IN_A_VECTOR, replaced=True, **TALLY),
]  # fmt: skip

def brought(name: str, run: Any, base: Any, containers: Any, **given: Any) -> Call:
    """Many values brought into a space: each by itself."""
    return Call(name=name, covers=(name,), base=base, run=run, moved=reports, most=1, containers=containers,
                replaced=True, **given)  # fmt: skip


WIDE_VALUES = [BIG, 3, BIG + 2, 2.5, -7, 2**60, 2**61]
SPACES: list[Call] = [
    brought("Interval.clamp", dp.Interval(0, 100).clamp, MIXED, ARRAYS),
    brought("Grid.clamp", dp.Grid(0, 9, 0.5).clamp, RANKED, ARRAYS),
    brought("Grid.positions", dp.Grid(0, 9, 0.5).positions, RANKED, ARRAYS),
    brought("Integers.clamp", WIDE.clamp, WIDE_VALUES, ARRAYS),
    brought("Integers.positions", dp.Integers(BIG - 5, BIG + 5).positions, WIDE_VALUES, ARRAYS),
    brought("Categories.positions", dp.Categories(CHOICES).positions, PICKED, TEXTS),
    brought("Categories.clamp", dp.Categories(CHOICES, other="b").clamp, PICKED,
            {name: TEXTS[name] for name in ("list", "objects", "U20")}),
    brought("Ball.rows", dp.Ball(2, 1).rows, VECTORS, rows_in(2), ways=IN_A_VECTOR),
    brought("Ball.clamp", dp.Ball(2, 1).clamp, VECTORS, rows_in(2), ways=IN_A_VECTOR),
    brought("Functions.clamp", dp.Functions((0, 1), dp.Interval(0, 1)).clamp, VECTORS, rows_in(2), ways=IN_A_VECTOR),
    Call(name="RandomizedResponse.analyze", covers=("RandomizedResponse.analyze",), base=LETTERS * 3,
         run=RESPONSE.analyze, moved=largest, most=None, containers=TEXTS, extremes=("a", "b", "c")),
]  # fmt: skip


def running(counts: Any) -> Any:
    """A stream of counts; they are the caller's own sums, so that only errors and types are looked at."""
    session = dp.stream(dp.PrefixSums(points=16, stddev=1), sensitivity=1)
    return session.add(counts)


STREAMS: list[Call] = [
    Call(name="Session.add", covers=("Session.add", "stream", "release(PrefixSums)"), base=[1, 2, 3, BIG, 0, 4],
         run=running, moved=largest, most=float("inf"), replaced=True, together=3,
         containers={name: NUMBERS[name] for name in ("list", "tuple", "objects", "int64", "pandas objects")}),
]  # fmt: skip

CALLS: list[Call] = [*QUERIES, *MECHANISMS, *DOOR, *SPACES, *STREAMS]
