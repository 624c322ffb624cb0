"""Mechanisms that take rows themselves, queries asked behind the door, spaces that rows are brought into."""

from __future__ import annotations

from typing import Any

import discreet as dp
from discreet.mechanisms import (
    CumulativeCounts,
    MultiplicativeWeights,
    OnlineMultiplicativeWeights,
    PrefixSums,
    Quantile,
    Quantiles,
    QuantilesFromCounts,
    SmallDatabase,
    StreamSums,
    TopK,
)
from discreet.mechanisms.counts.residuals import ResidualMarginals
from discreet.mechanisms.quantiles.quantile_interval import QuantileInterval
from discreet.queries import Ball, Categories, Domain, Functions, Grid, Histogram, Popularity, VectorSum, Workload

from ..checking import Call
from ..containers import NUMBERS, TEXTS, rows_in
from ..distances import largest, reports
from .queries import (
    ADDED,
    ARRAYS,
    BIG,
    BOOKS,
    CHOICES,
    COLUMNS,
    FEW_LISTS,
    GRID,
    IN_A_ROW,
    IN_A_VECTOR,
    MIXED,
    PICKED,
    RANKED,
    REPLACED,
    VECTORS,
    at_least_four,
)


def released(mechanism: Any, **given: Any) -> Any:
    """What leaves by the door, of rows that the mechanism reads itself."""
    return lambda data: dp.release(data, mechanism, **given).value


PURE = dp.Pure(epsilon=1)
WIDE = dp.Integers(0, 2**60)
HEAP = [BIG] * 25 + [7, 2**54 + 1, BIG + 2, BIG - 2, 2.5, 3]
"""Of these every middle quantile is `BIG`, whoever else there is."""
NEAR = dp.Integers(2**53, 2**53 + 15)
NEARBY = [BIG + k % 14 for k in range(40)]
CODED = Domain({"age": 4, "sex": ("f", "m")})
PAIRS = Workload.marginals(CODED, 1)
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

ROBUST = {name: one for name, one in NUMBERS.items() if name != "one-cell rows but the odd"}
"""Without the container in which only the odd record may be a number: it alone would be every quantile."""

MECHANISMS: list[Call] = [
    of_rows("Quantile", Quantile.for_guarantee(PURE, space=WIDE), HEAP, ROBUST, 0, together=4),
    of_rows("Quantile", Quantile.for_guarantee(PURE, space=Grid(0, 9, 0.5)), [4.5] * 25 + [1, 2], ROBUST, 0,
            together=4),
    of_rows("Quantile", Quantile.for_guarantee(PURE, space=dp.Interval(0, 9)), [4] * 25 + [1, 2], ROBUST, 0,
            together=4),
    of_rows("Quantiles", Quantiles.for_guarantee(PURE, space=WIDE, quantiles=[0.4, 0.5, 0.6]), HEAP, ROBUST, 0,
            together=4, heavy=1),
    Call(name="QuantileInterval", covers=("release(QuantileInterval)",), base=HEAP, moved=largest, most=0,
         run=released(INTERVAL, sensitivity=INTERVAL.sensitivity(ADDED)), containers=ROBUST, heavy=1, together=4),
    of_rows("CumulativeCounts", CumulativeCounts.for_guarantee(PURE, space=NEAR), NEARBY, NUMBERS, 1 + 1e-6,
            extremes=(BIG,)),
    of_rows("CumulativeCounts", CumulativeCounts.for_guarantee(dp.Approx(epsilon=1, delta=1e-6), space=GRID),
            RANKED, NUMBERS, 1 + 1e-6, extremes=(0,)),
    of_rows("QuantilesFromCounts", QuantilesFromCounts.for_guarantee(PURE, space=NEAR, quantiles=[0.5]),
            [BIG] * 25 + NEARBY[:5], ROBUST, 0, together=4, heavy=1),
    of_rows("RandomizedResponse", RESPONSE, LETTERS, TEXTS, 1, moved=reports, replaced=True),
    of_rows("Each", NUMBER, MIXED, NUMBERS, 1, moved=reports, replaced=True),
    of_rows("Each", dp.Each.for_guarantee(PURE, spaces=dp.Integers(0, 2**60)), [BIG, 3, BIG + 2, 0, 2**60], NUMBERS, 1,
            moved=reports, replaced=True),
    of_rows("Each", dp.Each.for_guarantee(PURE, spaces=Grid(0, 9, 0.5)), RANKED, NUMBERS, 1, moved=reports,
            replaced=True),
    of_rows("Each", dp.Each.for_guarantee(PURE, spaces=Categories(("a", "b", "c"))), LETTERS, TEXTS, 1,
            moved=reports, replaced=True),
    of_rows("Each", dp.Each.for_guarantee(PURE, spaces=[dp.Interval(0, 9), Categories(("a", "b"))]),
            [(1.0, "a"), (2.5, "b"), (BIG, "a"), (3, "b")] * 10,
            {name: COLUMNS[name] for name in ("rows", "tuples", "tuple of rows", "objects")}, 1, moved=reports,
            replaced=True, together=10,
            ways=RATES | {"longer": lambda odd: (1.0, "a", odd), "shorter": lambda odd: (odd,)}),
    of_rows("Each", dp.Each((dp.Gaussian(stddev=1),), (dp.Interval(0, 100),)), MIXED, NUMBERS, 1, moved=reports,
            replaced=True),
    of_rows("Shuffled", dp.Shuffled(local=RESPONSE, clients=6), LETTERS, TEXTS, 1, moved=reports, replaced=True),
    of_rows("SmallDatabase", SmallDatabase(workload=PAIRS, size=36, rows=4, rate=1), MANY, COLUMNS, 2,
            ways=IN_A_ROW, together=6, heavy=1),
    of_rows("MultiplicativeWeights",
            MultiplicativeWeights.for_guarantee(dp.Approx(epsilon=5, delta=1e-5), workload=PAIRS, size=36, rounds=2),
            MANY, COLUMNS, None, ways=IN_A_ROW, together=12, heavy=1, extremes=([0, "f"], [3, "m"], [1, "m"])),
    of_rows("ResidualMarginals",
            ResidualMarginals.for_guarantee(dp.Approx(epsilon=5, delta=1e-5), workload=PAIRS), MANY, COLUMNS, 1,
            ways=IN_A_ROW, together=2, extremes=([0, "f"],)),
    of_rows("ResidualMarginals",
            ResidualMarginals.for_guarantee(dp.Approx(epsilon=5, delta=1e-5), workload=PAIRS, ranges=["age"],
                                            weights={("sex",): 4}, least="largest"),
            MANY, COLUMNS, 1, ways=IN_A_ROW, together=2, extremes=([0, "f"],)),
    Call(
        name="Subsampled", covers=("release(Subsampled)",), base=MIXED,
        run=released(dp.Subsampled(mechanism=dp.Laplace(scale=1), rate=0.5, query=dp.Sum((0, 100))), sensitivity=100),
        moved=largest, most=100, containers=NUMBERS, extremes=(100.0,),
    ),
    Call(
        name="OnlineMultiplicativeWeights", covers=("release(OnlineMultiplicativeWeights)",), base=MANY,
        run=lambda data: dp.release((data, [0, 1, 2]), ONLINE).value["answers"],
        moved=largest, most=2, containers=COLUMNS, ways=IN_A_ROW, together=6, heavy=1, extremes=([0, "f"], [3, "m"]),
    ),
]  # fmt: skip
ONLINE = OnlineMultiplicativeWeights.for_guarantee(dp.Pure(epsilon=5), workload=PAIRS, size=36, updates=3, questions=3)


def at_the_door(query: Any, mechanism: Any, unit: Any = REPLACED, **given: Any) -> Any:
    """A query asked behind the door, under a ledger."""
    return lambda data: dp.release(data, mechanism, query=query, ledger=BOOKS[unit], **given).value


TALLY = {"covers": ("release",), "together": 4}
DOOR: list[Call] = [
    Call(name="release(query=Sum)", base=MIXED, run=at_the_door(dp.Sum((0, 100)), dp.Laplace(scale=100)), most=100,
         moved=largest, containers=NUMBERS, replaced=True, extremes=(100.0,), **TALLY),
    Call(name="release(query=Count)", base=MIXED, run=at_the_door(dp.Count(at_least_four), dp.Laplace(scale=1)),
         most=1, moved=largest, containers=FEW_LISTS, replaced=True, **TALLY),
    Call(name="release(query=Histogram)", base=PICKED, run=at_the_door(Histogram(CHOICES), dp.Laplace(scale=1)),
         most=1, moved=largest, containers=TEXTS, replaced=True, **TALLY),
    Call(name="release(query=Popularity)", base=[{"Heat"}] * 9,
         run=at_the_door(Popularity(("Heat", "Alien")), dp.Exponential(rate=1, choices=("Heat", "Alien"))),
         most=0, moved=largest, containers=FEW_LISTS, replaced=True, **TALLY),
    Call(name="release(query=Popularity, TopK)", base=[{"Heat"}] * 9 + [{"Alien"}] * 5,
         run=at_the_door(Popularity(("Heat", "Alien", "X")), TopK(k=2, rate=1)),
         most=0, moved=largest, containers=FEW_LISTS, replaced=True, **TALLY),
    Call(name="release(query=VectorSum)", base=VECTORS * 2,
         run=at_the_door(VectorSum(Ball(2, 1)), dp.Gaussian(stddev=1)), most=2, moved=largest,
         containers=rows_in(2), ways=IN_A_VECTOR, replaced=True, **TALLY),
]  # fmt: skip


def brought(name: str, run: Any, base: Any, containers: Any, **given: Any) -> Call:
    """Many values brought into a space: each by itself."""
    return Call(name=name, covers=(name,), base=base, run=run, moved=reports, most=1, containers=containers,
                replaced=True, **given)  # fmt: skip


WIDE_VALUES = [BIG, 3, BIG + 2, 2.5, -7, 2**60, 2**61]
SPACES: list[Call] = [
    brought("Interval.clamp", dp.Interval(0, 100).clamp, MIXED, ARRAYS),
    brought("Grid.clamp", Grid(0, 9, 0.5).clamp, RANKED, ARRAYS),
    brought("Grid.positions", Grid(0, 9, 0.5).positions, RANKED, ARRAYS),
    brought("Integers.clamp", WIDE.clamp, WIDE_VALUES, ARRAYS),
    brought("Integers.positions", dp.Integers(BIG - 5, BIG + 5).positions, WIDE_VALUES, ARRAYS),
    brought("Categories.positions", Categories(CHOICES).positions, PICKED, TEXTS),
    brought("Categories.clamp", Categories(CHOICES, other="b").clamp, PICKED,
            {name: TEXTS[name] for name in ("list", "objects", "U20")}),
    brought("Ball.rows", Ball(2, 1).rows, VECTORS, rows_in(2), ways=IN_A_VECTOR),
    brought("Ball.clamp", Ball(2, 1).clamp, VECTORS, rows_in(2), ways=IN_A_VECTOR),
    brought("Functions.clamp", Functions((0, 1), dp.Interval(0, 1)).clamp, VECTORS, rows_in(2), ways=IN_A_VECTOR),
    Call(name="RandomizedResponse.analyze", covers=("RandomizedResponse.analyze",), base=LETTERS * 3,
         run=RESPONSE.analyze, moved=largest, most=None, containers=TEXTS, extremes=("a", "b", "c")),
]  # fmt: skip


def running(counts: Any) -> Any:
    """A stream of counts; they are the caller's own sums, so that only errors and types are looked at."""
    session = dp.stream(PrefixSums(points=16, stddev=1), sensitivity=1)
    return session.add(counts)


def running_with_buffers(counts: Any) -> Any:
    """As `running`, with a few decaying sums as memory."""
    session = dp.stream(StreamSums(points=16, stddev=1), sensitivity=1)
    return session.add(counts)


STREAMS: list[Call] = [
    Call(name="Session.add", covers=("Session.add", "stream", "release(PrefixSums)"), base=[1, 2, 3, BIG, 0, 4],
         run=running, moved=largest, most=float("inf"), replaced=True, together=3,
         containers={name: NUMBERS[name] for name in ("list", "tuple", "objects", "int64", "pandas objects")}),
    Call(name="StreamSums", covers=("Session.add", "stream", "release(StreamSums)"), base=[1, 2, 3, BIG, 0, 4],
         run=running_with_buffers, moved=largest, most=float("inf"), replaced=True, together=3,
         containers={name: NUMBERS[name] for name in ("list", "tuple", "objects", "int64", "pandas objects")}),
]  # fmt: skip

CALLS: list[Call] = [*MECHANISMS, *DOOR, *SPACES, *STREAMS]
