"""Quantiles and prefix sums: time and rank error here, by OpenDP and by diffprivlib.

`python bench/quantiles.py` takes the median and the nine deciles of 10^6 and 10^7 values in [0, 10^5] at ε = 1, on one
core, the data already in memory; then 99 quantiles of 1000 normal draws at (1, 1e-6), by the method chosen for the mean
and for the largest error; then the noise of prefix sums beside that of the dyadic tree.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import peers

LOW, HIGH, EPSILON = 0.0, 1e5, 1.0
DECILES = [i / 10 for i in range(1, 10)]
JOBS = {"median": [0.5], "deciles": DECILES}
ROWS = (10**6, 10**7)
CANDIDATES = 1001  # OpenDP chooses among given candidates


def data(rows: int) -> Any:
    import numpy as np

    return np.clip(np.random.default_rng(0).lognormal(9, 1, rows), LOW, HIGH)


def rank_errors(ordered: Any, shares: list[float], found: Any) -> Any:
    """By how many ranks each answer misses; ties have all their ranks at once."""
    import numpy as np

    asked = np.array(shares) * len(ordered)
    below, up_to = (np.searchsorted(ordered, np.ravel(found), side) for side in ("left", "right"))
    return np.maximum(0, np.maximum(below - asked, asked - up_to))


def measured(job: str, rows: int, ask: Callable[[], Any], x: Any, ordered: Any, repeat: int) -> dict[str, Any]:
    """The shortest time, and the mean over the runs of the mean and of the largest rank error."""
    times, misses = [], []
    for _ in range(repeat):
        start = time.perf_counter()
        found = ask()
        times.append(time.perf_counter() - start)
        misses.append(rank_errors(ordered, JOBS[job], found))
    return {
        "job": job,
        "rows": rows,
        "seconds": min(times),
        "mean": float(sum(m.mean() for m in misses) / repeat),
        "largest": float(sum(m.max() for m in misses) / repeat),
    }


def jobs(ask: Callable[[Any, list[float]], Any], repeat: Callable[[int], int]) -> Iterator[dict[str, Any]]:
    import numpy as np

    for rows in ROWS:
        x = data(rows)
        ordered = np.sort(x)
        for job, shares in JOBS.items():
            yield measured(job, rows, lambda x=x, shares=shares: ask(x, shares), x, ordered, repeat(rows))


def diffprivlib() -> Iterator[dict[str, Any]]:
    """The exponential mechanism over the gaps between the values; ε is shared out evenly."""
    from diffprivlib.tools import quantile

    yield from jobs(lambda x, q: quantile(x, q, epsilon=EPSILON, bounds=(LOW, HIGH)), lambda rows: 1)


def opendp() -> Iterator[dict[str, Any]]:
    """`make_private_quantile` on a grid of candidates; ε is shared out evenly."""
    import numpy as np
    import opendp.prelude as dp

    dp.enable_features("contrib")
    candidates = np.linspace(LOW, HIGH, CANDIDATES).tolist()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()

    def one(share: float, epsilon: float) -> Any:
        return dp.binary_search_chain(
            lambda scale: dp.m.make_private_quantile(
                *space, dp.max_divergence(), candidates=candidates, alpha=share, scale=scale
            ),
            d_in=1,
            d_out=epsilon,
        )

    def ask(x: Any, shares: list[float]) -> Any:
        return dp.c.make_composition([one(share, EPSILON / len(shares)) for share in shares])(x)

    yield from jobs(ask, lambda rows: 3 if rows < 10**7 else 1)


def here() -> Iterator[dict[str, Any]]:
    import discreet as dp
    from discreet.mechanisms.quantiles import Quantiles

    def ask(x: Any, shares: list[float]) -> Any:
        made = Quantiles.for_guarantee(dp.Pure(epsilon=EPSILON), space=dp.Interval(LOW, HIGH), quantiles=shares)
        return made._draw(x)

    yield from jobs(ask, lambda rows: 30 if rows < 10**7 else 5)


def many(runs: int = 200) -> None:
    """99 quantiles of 1000 normal draws, by what is asked for."""
    import numpy as np

    import discreet as dp
    from discreet.mechanisms.cumulative import best_quantiles, predicted_error

    shares = [i / 100 for i in range(1, 100)]
    asked = dp.Approx(epsilon=1, delta=1e-6)
    rng = np.random.default_rng(0)
    print(f"\n99 quantiles of 1000 normal draws (sd 5) on [-100, 100], (1, 1e-6), {runs} runs")
    print("asked for   method                mean   largest   predicted   goal")
    for least, goal in (("mean", "mean 11"), ("largest", "largest 35")):
        made = best_quantiles(asked, space=dp.Interval(-100, 100), quantiles=shares, least=least, rows=1000)
        misses = []
        for _ in range(runs):
            x = np.clip(rng.normal(0, 5, 1000), -100, 100)
            misses.append(rank_errors(np.sort(x), shares, made._draw(x)))
        mean, largest = np.mean(misses), np.mean([m.max() for m in misses])
        predicted = predicted_error(made, least)
        print(f"{least:11} {type(made).__name__:20} {mean:5.1f} {largest:9.1f} {predicted:11.1f}   {goal}")


def prefixes() -> None:
    """The largest standard deviation of a prefix sum, per unit of noise for sensitivity 1."""
    import numpy as np

    from discreet.mechanisms.count_tree import CountTree, best_branches, levels_of, prefix_variances
    from discreet.mechanisms.factorization import PrefixSums

    print("\nprefix sums: standard deviation of the noisiest, Gaussian noise of one sensitivity (add or remove)")
    print("points   square root   dyadic tree   ratio   tree at pure ε = 1 (branches)   seconds: root, tree")
    for points in (1024, 4096, 65536, 2**20):
        root = PrefixSums(points=points, stddev=1)
        dyadic = dyadic_tree(points)
        branches = best_branches(points)
        wide = levels_of(points, branches)
        pure = wide * math.sqrt(2 * float(prefix_variances(points, branches).max()))
        counts = np.random.default_rng(0).poisson(10, points)
        tree = CountTree(points=points, scale=wide, branches=branches)
        spent = [peers.best(lambda m=m, counts=counts: m._draw(counts), 3)[0] for m in (root, tree)]
        print(
            f"{points:7} {root.spread:12.3f} {dyadic:13.2f} {dyadic / root.spread:7.2f} {pure:12.1f} ({branches}) "
            f"{spent[0]:26.3f}, {spent[1]:.3f}"
        )


def dyadic_tree(points: int) -> float:
    """A row is in log2(points)+1 ranges, and the worst prefix is made of log2(points) of them: no reconciling."""
    levels = int(math.log2(points))
    return math.sqrt((levels + 1) * levels)


def main() -> None:
    peers.one_core()
    print(f"one core, load {os.getloadavg()[0]:.1f} at the start; ε = 1; rank errors are means over the runs")
    print("rows   job       system        seconds   ratio   mean error   largest")
    ours = {(row["rows"], row["job"]): row for row in here()}
    show("here", ours.values(), ours)
    for peer in PEERS:
        show(peer.partition("-")[0], peers.measure(__file__, peer), ours)
    many()
    prefixes()


def show(system: str, rows: Any, ours: dict[Any, Any]) -> None:
    for row in rows:
        ratio = row["seconds"] / ours[row["rows"], row["job"]]["seconds"]
        print(
            f"10^{round(math.log10(row['rows']))}   {row['job']:9} {system:12} {row['seconds']:8.3f} {ratio:6.1f}× "
            f"{row['mean']:12.1f} {row['largest']:9.1f}",
            flush=True,
        )


PEERS = {"opendp-polars": opendp, "diffprivlib": diffprivlib}  # the one of OpenDP's environments that has numpy

if __name__ == "__main__":
    if sys.argv[1:]:
        for found in PEERS[sys.argv[1]]():
            print(json.dumps(found), flush=True)
    else:
        main()
