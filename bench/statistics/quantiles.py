"""Quantiles: time and rank error here, by OpenDP and by diffprivlib.

`python -m bench.statistics.quantiles` takes the median and the nine deciles of 10^6 and 10^7 values in [0, 10^5] at ε =
1, on one core, the data already in memory; then 99 quantiles of 1000 normal draws at (1, 1e-6), by the method chosen
for the mean and for the largest error; then how wide the intervals of a table's quantiles are, and how long nine
deciles take next to a sort.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench import peers
from bench.report import line, machine, notes, section, table, verdict

LOW, HIGH, EPSILON = 0.0, 1e5, 1.0
DECILES = [i / 10 for i in range(1, 10)]
JOBS = {"median": [0.5], "nine deciles": DECILES}
ROWS = (10**6, 10**7)
CANDIDATES = 1001  # OpenDP chooses among given candidates
RUNS = {"here": (30, 5), "OpenDP": (3, 1), "diffprivlib": (1, 1)}
"""How often each is asked, of 10^6 rows and of 10^7."""
MEAN, LARGEST = 11, 35
"""The goals for 99 quantiles: rank errors on average, and of the worst."""
ABOUT = f"""Median and nine deciles of values in [0, 10^5] at ε = 1, with the data in memory, compared with OpenDP
{peers.version("opendp-polars")}, which chooses among {CANDIDATES} candidates, and diffprivlib
{peers.version("diffprivlib")}"""


def data(rows: int) -> Any:
    import numpy as np

    return np.clip(np.random.default_rng(0).lognormal(9, 1, rows), LOW, HIGH)


def rank_errors(ordered: Any, shares: list[float], found: Any) -> Any:
    """By how many ranks each answer misses; ties have all their ranks at once."""
    import numpy as np

    asked = np.array(shares) * len(ordered)
    below, up_to = (np.searchsorted(ordered, np.ravel(found), side) for side in ("left", "right"))
    return np.maximum(0, np.maximum(below - asked, asked - up_to))


def measured(ask: Callable[[], Any], shares: list[float], ordered: Any, repeat: int) -> dict[str, float]:
    """The shortest time, and the mean over the runs of the mean and of the largest rank error."""
    times, misses = [], []
    for _ in range(repeat):
        start = time.perf_counter()
        found = ask()
        times.append(time.perf_counter() - start)
        misses.append(rank_errors(ordered, shares, found))
    return {
        "seconds": min(times),
        "mean": float(sum(m.mean() for m in misses) / repeat),
        "largest": float(sum(m.max() for m in misses) / repeat),
    }


def jobs(system: str, ask: Callable[[Any, list[float]], Any]) -> Iterator[dict[str, Any]]:
    import numpy as np

    for rows, repeat in zip(ROWS, RUNS[system], strict=True):
        x = data(rows)
        ordered = np.sort(x)
        for job, shares in JOBS.items():
            found = measured(lambda x=x, shares=shares: ask(x, shares), shares, ordered, repeat)
            yield {"system": system, "job": job, "rows": rows, **found}


def diffprivlib() -> Iterator[dict[str, Any]]:
    """The exponential mechanism over the gaps between the values; ε is shared out evenly."""
    from diffprivlib.tools import quantile

    yield from jobs("diffprivlib", lambda x, q: quantile(x, q, epsilon=EPSILON, bounds=(LOW, HIGH)))


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

    yield from jobs("OpenDP", ask)


def here() -> Iterator[dict[str, Any]]:
    import discreet as dp
    from discreet.mechanisms.quantiles.quantiles import Quantiles

    def ask(x: Any, shares: list[float]) -> Any:
        made = Quantiles.for_guarantee(dp.Pure(epsilon=EPSILON), space=dp.Interval(LOW, HIGH), quantiles=shares)
        return made._draw(x)

    yield from jobs("here", ask)


def many(runs: int = 200) -> None:
    """99 quantiles of 1000 normal draws, by what is asked for."""
    import numpy as np

    import discreet as dp
    from discreet.mechanisms.quantiles.cumulative import best_quantiles, predicted_error

    shares = [i / 100 for i in range(1, 100)]
    asked = dp.Approx(epsilon=1, delta=1e-6)
    rng = np.random.default_rng(0)
    print(f"\n99 quantiles of 1000 normal draws (sd 5) on [−100, 100], ε = 1, δ = 1e-6, {runs} runs, in ranks:\n")
    table("asked for", "method chosen", "mean error", "largest", "predicted", "goal")
    goals = {}
    for least, most in (("mean", MEAN), ("largest", LARGEST)):
        made = best_quantiles(asked, space=dp.Interval(-100, 100), quantiles=shares, least=least, rows=1000)
        misses = []
        for _ in range(runs):
            x = np.clip(rng.normal(0, 5, 1000), -100, 100)
            misses.append(rank_errors(np.sort(x), shares, made._draw(x)))
        found = {"mean": np.mean(misses), "largest": np.mean([m.max() for m in misses])}
        bins = f", {made.counts.sums.points} bins" if hasattr(made, "counts") else ""
        errors = (f"{error:.1f}" for error in (found["mean"], found["largest"], predicted_error(made, least)))
        line(f"least {least}", f"`{type(made).__name__}`{bins}", *errors, f"{least} ≤ {most}")
        goals[f"of 99 quantiles, {least} error ≤ {most}"] = found[least] <= most
    verdict(goals)


def drawn_lines(rows: Any, shares: list[float], delta: float, runs: int) -> tuple[float | None, Any]:
    """The promised ranks, and (lower, value, upper) of each quantile in each run, as `table.quantiles` draws them on
    2^16 points. Its count of the rows takes a twentieth of ε; a single quantile without δ is chosen by itself.
    """
    import numpy as np

    import discreet as dp
    from discreet.mechanisms.quantiles.quantile_interval import QuantileInterval
    from discreet.tables.bands import bands_for

    space = dp.Integers(0, 2**16 - 1)
    if len(shares) == 1 and not delta:
        one = QuantileInterval.for_guarantee(
            dp.Pure(epsilon=EPSILON), space=space, quantile=shares[0], unit=dp.row(), confidence=0.95
        )
        return float(one.error(0.95)), np.array([[one._draw(rows)] for _ in range(runs)])
    left = EPSILON * 19 / 20
    asked = dp.Approx(epsilon=left, delta=delta) if delta else dp.Pure(epsilon=left)
    made = bands_for(asked, space=space, quantiles=shares, rows=len(rows), unit=dp.row())
    lines = np.array([made.read(made.mechanism._draw(rows), space) for _ in range(runs)])
    return made.mechanism.error(0.95).amount, lines


def intervals(runs: int = 200) -> None:
    """How many ranks the intervals of quantiles span, and how often all of them hold."""
    import numpy as np

    print(
        f"\nQuantiles of normal values on 2^16 points by `table.quantiles`, ε = 1, {runs} runs, in ranks. Half of the "
        "intervals are narrower than the width shown; all of them hold together in at least 95% of the runs:\n"
    )
    table("rows", "quantiles", "δ", "promised", "width of an interval", "largest error", "held")
    held_always, rng = True, np.random.default_rng(0)
    for size, delta in itertools.product((50_000, 10**6), (0.0, 1e-6)):
        rows = np.clip(np.rint(rng.normal(2**15, 2**16 / 10, size)), 0, 2**16 - 1).astype(np.int64)
        ordered = np.sort(rows)
        for count in (1, 3, 9, 19, 99):
            shares = [round(i / (count + 1), 6) for i in range(1, count + 1)]
            promised, lines = drawn_lines(rows, shares, delta, runs)
            true = np.quantile(ordered, shares)
            held = np.mean(np.all((lines[:, :, 0] <= true) & (true <= lines[:, :, 2]), axis=1))
            wide = np.searchsorted(ordered, lines[:, :, 2], "right") - np.searchsorted(ordered, lines[:, :, 0], "left")
            worst = np.mean([rank_errors(ordered, shares, line[:, 1]).max() for line in lines])
            shown = "–" if promised is None else short(promised)
            line(f"{size:,}", count, f"{delta:g}", shown, short(float(np.median(wide))), short(worst), f"{held:.1%}")
            held_always = held_always and held >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / runs)
    verdict({"all intervals hold together in 95% of the runs": held_always})


def against_a_sort(rows: int = 10**6, runs: int = 9) -> None:
    """Nine deciles of floats by the public call, on DuckDB, and one sort of the same array, in turns."""
    import numpy as np
    import pyarrow as pa

    import discreet as dp

    values = np.random.default_rng(0).normal(50, 10, rows)
    limit = dp.Approx(epsilon=10**5, delta=0.5)
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=limit)
    asked = dp.table(pa.table({"x": values}), ledger=ledger)
    goals = {}
    print(f"\nNine deciles of {rows:,} floats by `table.quantiles`, the median of {runs} runs:\n")
    table("δ", "one `np.sort`", "nine deciles", "ratio", "goal")
    for delta in (0, 1e-6):
        times: list[list[float]] = [[], []]
        for _ in range(runs):
            for place, ask in enumerate(
                (
                    lambda: np.sort(values),
                    lambda delta=delta: asked.quantiles(
                        "x", DECILES, between=(0.0, 100.0), epsilon=EPSILON, delta=delta
                    ),
                )
            ):
                start = time.perf_counter()
                ask()
                times[place].append(time.perf_counter() - start)
        alone, ours = (float(np.median(each)) for each in times)
        line(f"{delta:g}", f"{short(alone)} s", f"{short(ours)} s", f"{ours / alone:.1f}×", "≤ 3×")
        goals[f"nine deciles within 3 sorts, δ = {delta:g}"] = ours <= 3 * alone
    verdict(goals)


def main() -> None:
    peers.one_core()
    section("Quantiles", "statistics.quantiles", f"{ABOUT}. On one of {machine()}.")
    found = list(here())
    for peer in PEERS:
        found += peers.measure(__spec__.name, peer)
    shown({(row["rows"], row["job"], row["system"]): row for row in found})
    many()
    intervals()
    against_a_sort()


def shown(found: dict[tuple[int, str, str], dict[str, Any]]) -> None:
    """Seconds, with how many times ours they are, and errors in ranks."""
    print("\nThe shortest time. Errors are in ranks, averaged over the runs:\n")
    table("rows", "job", *RUNS, f"mean error {' / '.join(RUNS)}", "largest")
    for rows in ROWS:
        for job in JOBS:
            ours = found[rows, job, "here"]["seconds"]
            asked = [found.get((rows, job, system)) for system in RUNS]
            times = [
                None if one is None else f"{short(one['seconds'])} s ({one['seconds'] / ours:,.0f}×)"
                for one in asked[1:]
            ]
            misses = [
                " / ".join("–" if one is None else short(one[kind]) for one in asked) for kind in ("mean", "largest")
            ]
            line(f"10^{round(math.log10(rows))}", job, f"{short(ours)} s", *times, *misses)
    counts = "; ".join(f"{system} {few} and {more}" for system, (few, more) in RUNS.items())
    notes(f"Runs at 10^6 and at 10^7 rows: {counts}.")


def short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 1 else f"{number:#.2g}"


PEERS = {"opendp-polars": opendp, "diffprivlib": diffprivlib}  # the one of OpenDP's environments that has numpy

if __name__ == "__main__":
    if sys.argv[1:]:
        for found in PEERS[sys.argv[1]]():
            print(json.dumps(found), flush=True)
    else:
        main()
