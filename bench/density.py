"""A private density: the noise beside the taught constant, and time beside two that are not private.

`python bench/density.py` releases the density of the thesis's mixture ½N(1,1) + ½N(5,1) on [-1, 7], a row replaced and
n public, and takes the largest and the root-mean-square noise of 50 draws; then fits 10^4 to 10^7 points and evaluates
at 10^4 to 10^6, on one core, beside scikit-learn's KernelDensity and scipy's gaussian_kde. A step that is not done
after 30 s is stopped, and what is larger is not run.
"""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import peers

import discreet as dp
from discreet.functions.density import Density, process_for
from discreet.queries.rkhs import FourierFeatures

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
    print(f"largest noise on [{LOW}, {HIGH}], mean of {DRAWS} draws; a row is replaced, n is public")
    print(
        "      n      h   (ε, δ)        largest    goal          taught    ratio   95% band   beyond   "
        "rms noise   rms error, no noise   private"
    )
    for rows, h, epsilon, delta, goal in GOALS:
        asked = dp.Approx(epsilon=epsilon, delta=delta)
        tight, taught = (
            process_for(asked, between=(LOW, HIGH), bandwidth=h, size=rows, unit=UNIT, calibration=kind)
            for kind in ("tight", "taught")
        )
        found, other = draws(tight, rows, h), draws(taught, rows, h)
        band = tight.anywhere(0.05) * tight.features.height / rows
        largest, usual = np.mean(found.largest), np.mean(other.largest)
        met = "" if goal is None else f"{goal:.4f} {'met' if largest <= goal else 'MISSED'}"
        beyond = sum(value > band for value in found.largest)
        print(
            f"{rows:7} {h:6g}   {f'({epsilon:g}, {delta:g})':11} {largest:9.3g}    {met:11} {usual:8.3g} "
            f"{usual / largest:7.2f}× {band:10.3g} {f'{beyond} of {DRAWS}':>8} {np.mean(found.noise):11.2g} "
            f"{np.mean(found.estimate):21.2g} {np.mean(found.private):9.2g}",
            flush=True,
        )


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


def one_job(system: str, fitted: int, evaluated: int, answers: Any) -> None:
    """Sends the time to fit, then the time to evaluate and how far from the truth it is: here the best of three."""
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


def times() -> None:
    fits: dict[int, dict[str, str]] = {}
    evaluations: dict[tuple[int, int], dict[str, str]] = {}
    for system in SYSTEMS:
        slow: list[tuple[int, int]] = []
        for fitted in FITTED:
            for evaluated in EVALUATED:
                cells, late = evaluations.setdefault((fitted, evaluated), {}), "not run"
                fit = fits.setdefault(fitted, {})
                beyond = any(fitted >= n and evaluated >= m for n, m in slow)
                if beyond and system in fit:
                    cells[system] = late
                    continue
                found = timed(system, fitted, 1 if beyond else evaluated)
                if found:
                    fit.setdefault(system, f"{found[0]:.3f}")
                if beyond or len(found) < 2:
                    slow.append((fitted, evaluated))
                    cells[system] = late if beyond else f"over {PATIENCE:g}"
                else:
                    cells[system] = f"{found[1][0]:.4f}"
                    cells[f"{system} off"] = f"{found[1][1]:.4f}"
    print(f"\nseconds on one core, h = {BANDWIDTH}, at (1, 1e-6) here; both peers are not private")
    print(f"{'fit':24}" + "".join(f"{system:>14}" for system in SYSTEMS))
    for fitted, fit in fits.items():
        print(f"{power(fitted):24}" + "".join(f"{fit.get(system, 'stopped'):>14}" for system in SYSTEMS))
    print(f"\n{'fitted':9}{'evaluated':15}" + "".join(f"{system:>14}{'×':>9}{'rms error':>11}" for system in SYSTEMS))
    for (fitted, evaluated), cells in evaluations.items():
        line = f"{power(fitted):9}{power(evaluated):15}"
        for system in SYSTEMS:
            done = f"{system} off" in cells
            ratio = f"{float(cells[system]) / float(cells['here']):,.0f}" if done else ""
            line += f"{cells[system]:>14}{ratio:>9}{cells.get(f'{system} off', ''):>11}"
        print(line, flush=True)


def power(count: int) -> str:
    return f"10^{round(math.log10(count))}"


def main() -> None:
    peers.one_core()
    print(f"load {os.getloadavg()[0]:.1f} at the start")
    noise()
    times()


if __name__ == "__main__":
    main()
