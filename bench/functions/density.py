"""A private density: the noise beside the taught constant, and time beside two that are not private.

`python -m bench.functions.density` releases the density of the thesis's mixture ½N(1,1) + ½N(5,1) on [-1, 7], a row
replaced and n public, and takes the largest and the root-mean-square noise of 50 draws; then fits 10^4 to 10^7 points
and evaluates at 10^4 to 10^6, on one core, beside scikit-learn's KernelDensity and scipy's gaussian_kde. A step that is
not done after 30 s is stopped, and larger sizes are not run.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

import discreet as dp
from bench import peers
from bench.report import line, machine, notes, section, table, verdict
from discreet.functions.density import Density, process_for
from discreet.rows.features import FourierFeatures

LOW, HIGH, DRAWS = -1, 7, 50
UNIT = dp.row(neighbors="replace")
GOALS = (  # rows, bandwidth, ε, δ, the largest noise on average
    (200, 0.485, 1, 0.1, 0.0145),
    (200, 0.485, 1, 1e-6, None),
    (2000, 0.306, 1, 1e-6, 0.0095),
    (20_000, 0.193, 0.1, 1e-6, 0.0145),
    (10**6, 0.15, 1, 1e-6, None),
)
FITTED, EVALUATED, BANDWIDTH = (10**4, 10**5, 10**6, 10**7), (10**4, 10**5, 10**6), 0.15
DECLARED = (-3, 9)  # of the timings: so wide that no row is clamped, as the peers clamp none
PATIENCE = 30.0
ABOUT = f"""The thesis's mixture ½N(1,1) + ½N(5,1) on [−1, 7], a row replaced, n public, mean of {DRAWS} draws"""


def rows_of(count: int, rng: Any) -> Any:
    return rng.normal(0, 1, count) + np.where(rng.random(count) < 0.5, 1.0, 5.0)


def truth(points: Any) -> Any:
    return (np.exp(-((points - 1) ** 2) / 2) + np.exp(-((points - 5) ** 2) / 2)) / (2 * math.sqrt(2 * math.pi))


# --- noise ------------------------------------------------------------------------------------------------


@dataclass
class Measured:
    """One entry for each draw."""

    largest: list[float]
    noise: list[float]
    estimate: list[float]
    private: list[float]


def root_mean_square(x: Any) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


def release(process: Any, rows: Any) -> tuple[Density, Density]:
    """The released density, and what it would be without noise."""
    counts = process.features.counts(rows)
    made = dp.release(counts, process, sensitivity=process.sensitivity(UNIT))
    density = Density(process, np.asarray(made.value["coefficients"]), made.value["size"], made)
    return density, replace(density, coefficients=process.features.sums(counts) * float(process.features.unit))


def draws(process: Any, rows: int, bandwidth: float) -> Measured:
    rng, points = np.random.default_rng(0), np.linspace(LOW, HIGH, 1601)
    wide = FourierFeatures.over([(-6, 12)], [bandwidth])  # wide enough that nothing is clamped: the plain estimate
    at, found = wide.features(points), Measured([], [], [], [])
    for _ in range(DRAWS):
        sample = rows_of(rows, rng)
        density, clean = release(process, sample)
        noise = density(points) - clean(points)
        plain = at @ (wide.sums(wide.counts(sample)) * float(wide.unit)) * (wide.height / rows)
        found.largest.append(float(np.abs(noise).max()))
        found.noise.append(root_mean_square(noise))
        found.estimate.append(root_mean_square(plain - truth(points)))
        found.private.append(root_mean_square(density(points) - truth(points)))
    return found


def noise() -> None:
    head = ("n", "h", "(ε, δ)", "largest noise", "goal", "taught constant", "ratio", "95% band", "draws beyond it")
    table(*head, "rms noise", "rms error without noise", "rms error, private")
    goals, moves = {}, []
    for rows, h, epsilon, delta, goal in GOALS:
        asked = dp.Approx(epsilon=epsilon, delta=delta)
        tight, taught = (
            process_for(asked, between=(LOW, HIGH), bandwidth=h, size=rows, unit=UNIT, calibration=kind)
            for kind in ("tight", "taught")
        )
        found, other = draws(tight, rows, h), draws(taught, rows, h)
        band = tight.anywhere(0.05) * tight.features.height / rows
        largest, usual = float(np.mean(found.largest)), float(np.mean(other.largest))
        settings = f"({epsilon:g}, {delta:g})".replace("e-0", "e-")
        line(
            power(rows) if rows >= 10**6 else f"{rows:,}",
            short(h),
            settings,
            short(largest),
            None if goal is None else short(goal),
            short(usual),
            f"{usual / largest:.2f}",
            short(band),
            f"{sum(value > band for value in found.largest)} of {DRAWS}",
            *(short(float(np.mean(each)), 2) for each in (found.noise, found.estimate, found.private)),
        )
        moves.append(float(np.std(found.largest, ddof=1)) / math.sqrt(DRAWS) / largest)
        if goal is not None:
            goals[f"largest noise ≤ {short(goal)} at n = {rows:,} and {settings}"] = largest <= goal
    verdict(goals)
    notes(
        f"""Between runs, the mean of {DRAWS} draws moves by about {max(moves):.0%}, its largest standard error.""",
        """Rows outside the range are moved to its ends. With many rows, this and not noise causes the error (last
        row).""",
    )


def short(number: float, digits: int = 3) -> str:
    """So many digits that count, without the zero before the point."""
    return f"{number:#.{digits}g}".removeprefix("0").removesuffix(".").replace("e-0", "e-")


def decimal(number: float, places: int) -> str:
    return f"{number:.{places}f}".removeprefix("0")


# --- time -------------------------------------------------------------------------------------------------


def here(rows: Any) -> Callable[[Any], Any]:
    process = process_for(
        dp.Approx(epsilon=1, delta=1e-6), between=DECLARED, bandwidth=BANDWIDTH, size=len(rows), unit=UNIT
    )
    made = dp.release(process.features.counts(rows), process, sensitivity=process.sensitivity(UNIT))
    return Density(process, np.asarray(made.value["coefficients"]), made.value["size"], made)


def scikit_learn(rows: Any) -> Callable[[Any], Any]:
    from sklearn.neighbors import KernelDensity

    fitted = KernelDensity(bandwidth=BANDWIDTH, kernel="gaussian").fit(rows[:, None])
    return lambda points: np.exp(fitted.score_samples(points[:, None]))


def scipy(rows: Any) -> Callable[[Any], Any]:
    from scipy.stats import gaussian_kde

    return gaussian_kde(rows, bw_method=BANDWIDTH / float(np.std(rows, ddof=1)))


SYSTEMS = {"here": here, "scikit-learn": scikit_learn, "scipy": scipy}
CALLED = {"scikit-learn": "KernelDensity", "scipy": "gaussian_kde"}
Evaluated = tuple[float, float] | str
"""Seconds and the error of it, or why there are none."""


def one_job(system: str, fitted: int, evaluated: int, answers: Any) -> None:
    """Sends the time to fit, then the time to evaluate and how far from the truth it is: here the best of three."""
    if system == "scikit-learn":
        import sklearn.neighbors  # noqa: F401  (imports are not timed)
    from scipy import stats  # noqa: F401

    rng = np.random.default_rng(0)
    rows, points = rows_of(fitted, rng), rng.uniform(LOW, HIGH, evaluated)
    work, repeat = SYSTEMS[system], 3 if system == "here" else 0
    first, made = peers.best(lambda: work(rows), repeat)
    answers.send(first)
    second, found = peers.best(lambda: made(points), repeat)
    answers.send((second, root_mean_square(found - truth(points))))


def timed(system: str, fitted: int, evaluated: int) -> list[Any]:
    """What `one_job` sent from a process of its own before it was done or stopped: each step may take PATIENCE."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    worker = fork.Process(target=one_job, args=(system, fitted, evaluated, sender))
    worker.start()
    sender.close()
    found = []
    while len(found) < 2 and receiver.poll(PATIENCE + (3 if not found else 0)):  # the data are made in those seconds
        found.append(receiver.recv())
    worker.terminate()
    worker.join()
    return found


def found_peers() -> dict[str, str]:
    """The versions of those that are there; the missing are told."""
    versions = {}
    for peer in CALLED:
        try:
            versions[peer] = version(peer)
        except PackageNotFoundError:
            notes(f"{peer} is missing: install it beside discreet.")
    return versions


def times() -> None:
    versions = found_peers()
    fits: dict[int, dict[str, float]] = {}
    evaluations: dict[tuple[int, int], dict[str, Evaluated]] = {}
    for system in ("here", *versions):
        slow: list[tuple[int, int]] = []
        for fitted in FITTED:
            for evaluated in EVALUATED:
                cells, fit = evaluations.setdefault((fitted, evaluated), {}), fits.setdefault(fitted, {})
                beyond = any(fitted >= n and evaluated >= m for n, m in slow)
                if beyond and system in fit:
                    cells[system] = "not run"
                    continue
                found = timed(system, fitted, 1 if beyond else evaluated)
                if found:
                    fit.setdefault(system, found[0])
                if beyond or len(found) < 2:
                    slow.append((fitted, evaluated))
                    cells[system] = "not run" if beyond else f"over {PATIENCE:g}"
                else:
                    cells[system] = found[1]
    shown_fits(fits, versions)
    shown_evaluations(evaluations, versions)
    notes(
        """Our evaluation time grows with the number of points, not with the rows. A fit always calibrates and
        tabulates features, even for few rows.""",
        "scikit-learn uses its default tolerances (rtol = atol = 0); a looser rtol would be faster.",
    )


def shown_fits(fits: dict[int, dict[str, float]], versions: dict[str, str]) -> None:
    print(
        f"\nSeconds on one core, h = {short(BANDWIDTH, 2)}, (1, 1e-6), range −3 to 9; the peers are not private. Ours "
        f"is the best of 3 runs, and peers ran once. A step over {PATIENCE:g} s is stopped, and "
        "larger sizes are not run.\n"
    )
    table("fit", "here", *(f"{peer} {number} {CALLED[peer]}" for peer, number in versions.items()))
    for fitted, fit in fits.items():
        line(power(fitted), *(decimal(fit[name], 3) if name in fit else "stopped" for name in ("here", *versions)))


def shown_evaluations(evaluations: dict[tuple[int, int], dict[str, Evaluated]], versions: dict[str, str]) -> None:
    """Seconds, how many times ours they are, and how far from the truth; both peers estimate the same."""
    print()
    beside = [title for peer in versions for title in (peer, "×")]
    table("fitted", "evaluated", "here", *beside, "rms error here", "peers")
    for (fitted, evaluated), cells in evaluations.items():
        done = {system: cell for system, cell in cells.items() if not isinstance(cell, str)}
        spent = {system: cell if isinstance(cell, str) else short(cell[0]) for system, cell in cells.items()}
        row: list[str | None] = [power(fitted), power(evaluated), spent["here"]]
        for peer in versions:
            both = peer in done and "here" in done
            row += [spent[peer], f"{done[peer][0] / done['here'][0]:,.0f}" if both else None]
        theirs = dict.fromkeys(decimal(done[peer][1], 4) for peer in versions if peer in done)
        line(*row, decimal(done["here"][1], 4) if "here" in done else None, ", ".join(theirs) or None)


def power(count: int) -> str:
    return f"10^{round(math.log10(count))}"


def main() -> None:
    peers.one_core()
    section("Densities", "functions.density", f"{ABOUT}. On one of {machine()}.")
    noise()
    times()


if __name__ == "__main__":
    main()
