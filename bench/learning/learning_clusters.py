"""Clusters, mixtures and principal components, beside scikit-learn without privacy and diffprivlib.

    python -m bench.learning.learning_clusters              everything
    python -m bench.learning.learning_clusters diffprivlib  the peer alone, inside its environment
    ADULT=FOLDER                                   where adult.data and adult.test of UCI's Adult are

How the defaults were chosen is said in the notes at the end. Inertia is the mean
squared distance to the nearest center, of all rows, which is not private and only measures.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench import peers
from bench.learning.learning_sets import folder, lacking
from bench.report import line, machine, notes, section, table, verdict

DELTA, SEEDS = 1e-6, 5
GOOGLE = "100,000 × 100 in a ball, k = 64"
GOOGLE_LSH, EARLIER = 0.1405, 0.0693
"""Google's LSH clustering, and k-means from public starts, as it was here before: both measured earlier at ε = 1 and
δ = 10⁻⁶, on a set made in the same way.
"""
ABOUT = f"""k-means, mixtures and principal components at δ = 10⁻⁶, or pure where it says so, over {SEEDS} fits each;
the mean, and the worst in brackets"""


def blobs(n: int, columns: int, many: int, spread: float, seed: int, uneven: bool = False) -> Any:
    """Round clusters in a cube, of equal or of very different sizes."""
    draw = np.random.default_rng(seed)
    centers = draw.uniform(-0.8, 0.8, (many, columns))
    sizes = draw.dirichlet(np.full(many, 1.0)) if uneven else np.full(many, 1 / many)
    rows = centers[draw.choice(many, n, p=sizes)] + spread * draw.normal(size=(n, columns))
    return np.clip(rows, -1, 1)


def ball() -> Any:
    """64 clusters of deviation 0.0125 a column, with centers uniform in the ball of radius 7/8."""
    draw = np.random.default_rng(7)
    centers = draw.normal(size=(64, 100))
    centers *= (0.875 * draw.random(64) ** 0.01 / np.linalg.norm(centers, axis=1))[:, None]
    rows = np.repeat(centers, 1563, axis=0)[:100_000] + 0.0125 * draw.normal(size=(100_000, 100))
    return rows / np.maximum(np.linalg.norm(rows, axis=1), 1)[:, None]


def adult_columns() -> Any:
    """Age, years of education and hours a week, each in [−1, 1] by public ranges."""
    import csv

    ends = {0: (17, 90), 4: (1, 16), 12: (1, 99)}
    rows = []
    for name in ("adult.data", "adult.test"):
        with open(folder() / name, newline="") as file:
            rows += [row for row in csv.reader(file, skipinitialspace=True) if len(row) == 15]
    columns = [(np.array([float(row[i]) for row in rows]) - a) / (b - a) * 2 - 1 for i, (a, b) in ends.items()]
    return np.clip(np.stack(columns, axis=1), -1, 1)


def sets() -> Iterator[tuple[str, Any, int, bool]]:
    """Name, rows, clusters, and whether the rows are in a ball."""
    yield "8 clusters, 20,000 × 8", blobs(20_000, 8, 8, 0.06, 1001), 8, False
    yield "8 clusters, 50,000 × 2", blobs(50_000, 2, 8, 0.05, 1002), 8, False
    yield "8 uneven clusters, 20,000 × 10", blobs(20_000, 10, 8, 0.1, 1003, True), 8, False
    yield "8 uneven clusters, 20,000 × 4", blobs(20_000, 4, 8, 0.05, 1004, True), 8, False
    yield "Adult, 48,842 × 3, k = 8", adult_columns(), 8, False
    yield GOOGLE, ball(), 64, True


def inertia(rows: Any, centers: Any) -> float:
    total = 0.0
    for part in np.array_split(rows, max(1, len(rows) // 5000)):
        total += float(((part**2).sum(1)[:, None] + (centers**2).sum(1) - 2 * part @ centers.T).min(1).sum())
    return total / len(rows)


def here(epsilon: float, delta: float = DELTA) -> Callable[[Any, int, bool], Any]:
    from discreet.learn import KMeans

    def fit(rows: Any, many: int, in_ball: bool) -> Any:
        bounds = {"feature_norm": 1} if in_ball else {"feature_ranges": [(-1, 1)] * rows.shape[1]}
        return KMeans(many, epsilon=epsilon, delta=delta, **bounds).fit(rows).cluster_centers_

    return fit


def theirs(seed: int) -> Callable[[Any, int, bool], Any]:
    from diffprivlib.models import KMeans

    warnings.simplefilter("ignore")
    return lambda rows, many, in_ball: (
        KMeans(many, epsilon=1.0, bounds=(-1.0, 1.0), random_state=seed).fit(rows).cluster_centers_
    )


def peer() -> Iterator[dict[str, Any]]:
    for name, rows, many, in_ball in sets():
        seeds = 1 if in_ball else SEEDS  # where it takes long
        yield {"name": name, "found": [inertia(rows, theirs(seed)(rows, many, in_ball)) for seed in range(seeds)]}


def several(found: list[float]) -> str:
    return f"{np.mean(found):.4f} ({max(found):.4f})"


def clusters() -> dict[str, bool]:
    from sklearn.cluster import KMeans

    other = {row["name"]: row["found"] for row in peers.measure(__spec__.name, "diffprivlib")}
    print("\nk-means, mean squared distance to the nearest center:\n")
    table("set", "not private", "here, ε = 1", "ε = 0.2", "pure ε = 1", "diffprivlib, pure ε = 1", "s a fit")
    goals = {}
    for name, rows, many, in_ball in sets():
        plain = KMeans(many, n_init=2 if in_ball else 5, random_state=0).fit(rows).inertia_ / len(rows)
        start = time.perf_counter()
        ours = [inertia(rows, here(1.0)(rows, many, in_ball)) for _ in range(SEEDS)]
        seconds = (time.perf_counter() - start) / SEEDS
        less = [inertia(rows, here(0.2)(rows, many, in_ball)) for _ in range(SEEDS)]
        pure = [inertia(rows, here(1.0, 0)(rows, many, in_ball)) for _ in range(SEEDS)]
        beside = several(other[name]) if name in other else None
        line(name, f"{plain:.4f}", f"**{several(ours)}**", several(less), several(pure), beside, f"{seconds:.2f}")
        if name.startswith("8 clusters"):
            goals[f"{name}: at most 1.1 × not private ({np.mean(ours) / plain:.3f})"] = np.mean(ours) <= 1.1 * plain
        if name == GOOGLE:
            goals[f"{name}: at most .055 ({np.mean(ours):.4f})"] = np.mean(ours) <= 0.055
    return goals


def mixture(n: int, columns: int, many: int, seed: int) -> tuple[Any, Any]:
    """Rows of a mixture of normal laws, and as many new ones."""
    draw = np.random.default_rng(seed)
    centers, sizes = draw.uniform(-0.7, 0.7, (many, columns)), draw.dirichlet(np.full(many, 5.0))
    roots = 0.12 / np.sqrt(columns) * draw.normal(size=(many, columns, columns)) + 0.03 * np.eye(columns)

    def rows() -> Any:
        which = draw.choice(many, n, p=sizes)
        return np.clip(centers[which] + np.einsum("ni,nij->nj", draw.normal(size=(n, columns)), roots[which]), -1, 1)

    return rows(), rows()


def mixtures() -> None:
    from sklearn.mixture import GaussianMixture as Plain

    from discreet.learn import GaussianMixture

    print("\n`GaussianMixture`, mean logarithm of the density at new rows (higher is better):\n")
    table("set", "covariances", "one normal law", "not private", "here, ε = 3", "ε = 1", "ε = 0.3", "pure ε = 1")
    for n, columns, many in ((20_000, 2, 4), (50_000, 3, 8), (50_000, 8, 8)):
        rows, new = mixture(n, columns, many, 2000 + columns)
        for kind in ("full", "diag"):
            single = Plain(1, covariance_type=kind).fit(rows).score(new)
            plain = Plain(many, covariance_type=kind, n_init=3, random_state=0).fit(rows).score(new)
            cells = []
            for epsilon, delta in ((3, DELTA), (1, DELTA), (0.3, DELTA), (1, 0)):
                given = {"epsilon": epsilon, "delta": delta, "feature_ranges": [(-1, 1)] * columns}
                found = [
                    GaussianMixture(many, covariance_type=kind, **given).fit(rows).score(new) for _ in range(SEEDS)
                ]
                cells.append(f"{np.mean(found):.2f} ({min(found):.2f})")
            line(f"{n:,} × {columns}, {many} components", kind, f"{single:.2f}", f"{plain:.2f}", *cells)


def held(rows: Any, components: Any) -> float:
    """The part of the variance along these components."""
    apart = rows - rows.mean(0)
    return float(((apart @ components.T) ** 2).sum() / (apart**2).sum())


def component_sets() -> Iterator[tuple[str, Any, Any]]:
    from sklearn.datasets import load_breast_cancer, load_digits

    draw = np.random.default_rng(3000)
    for n, columns in ((20_000, 10), (20_000, 50)):
        turned = np.linalg.qr(draw.normal(size=(columns, columns)))[0]
        rows = draw.normal(size=(n, columns)) * (0.6 / np.arange(1, columns + 1)) @ turned
        yield f"{n:,} × {columns}, in ranges", np.clip(rows, -1, 1), [(-1, 1)] * columns
        yield f"{n:,} × {columns}, norm 1", rows / np.maximum(np.linalg.norm(rows, axis=1), 1)[:, None], None
    heavy = draw.standard_t(2.5, size=(20_000, 10)) * (0.1 / np.arange(1, 11))
    yield "20,000 × 10, heavy tails", np.clip(heavy, -1, 1), [(-1, 1)] * 10
    yield "digits ten times, 17,970 × 64", np.repeat(load_digits().data / 16, 10, axis=0), [(0, 1)] * 64
    cancer = load_breast_cancer().data
    cancer = (cancer - cancer.min(0)) / (cancer.max(0) - cancer.min(0))
    yield "breast cancer 20 times, 11,380 × 30", np.repeat(cancer, 20, axis=0), [(0, 1)] * 30


def at_the_norm(rows: Any, ranges: Any, epsilon: float) -> float:
    """The variance held by three components if the radius stays at the norm, and nothing is paid for finding it."""
    import discreet.learn.structure.decomposition as ours
    from discreet.mechanisms.learning.moments import Moments
    from discreet.mechanisms.learning.radius_moments import RadiusMoments

    class Fixed(RadiusMoments):
        @classmethod
        def for_guarantee(cls, guarantee: Any, **given: Any) -> Any:
            return cls(moments=Moments.for_guarantee(guarantee, **given), rings=10**9)

        def _chosen(self, rings: Any) -> float:
            return 1.0

    plain, ours.RadiusMoments = ours.RadiusMoments, Fixed
    try:
        model = ours.PCA(3, epsilon=epsilon, delta=DELTA, center="private", feature_ranges=ranges)
        return held(rows, model.fit(rows).components_)
    finally:
        ours.RadiusMoments = plain


def components() -> dict[str, bool]:
    from discreet.learn import PCA

    print(
        "\n`PCA(3)`, part of the variance along the components, with the radius found / with the noise at the norm:\n"
    )
    epsilons = (0.1, 0.3, 1.0)
    table("set", "not private", *(f"ε = {epsilon:g}" for epsilon in epsilons))
    worst = 0.0
    for name, rows, ranges in component_sets():
        apart = rows - rows.mean(0)
        best = held(rows, np.linalg.eigh(apart.T @ apart)[1][:, -3:].T)
        cells = []
        for epsilon in epsilons:
            model = PCA(3, epsilon=epsilon, delta=DELTA, center="private", feature_ranges=ranges)
            found = float(np.mean([held(rows, model.fit(rows).components_) for _ in range(SEEDS)]))
            fixed = float(np.mean([at_the_norm(rows, ranges, epsilon) for _ in range(SEEDS)]))
            worst = max(worst, fixed - found)
            cells.append(f"**{found:.3f}** / {fixed:.3f}")
        line(name, f"{best:.3f}", *cells)
    return {f"the radius found is never worse by more than .03 of the variance ({worst:.3f})": worst <= 0.03}


def large() -> float:
    from discreet.learn import KMeans

    rows = blobs(10**6, 10, 8, 0.1, 5)
    return peers.best(lambda: KMeans(8, feature_ranges=[(-1, 1)] * 10).fit(rows), 2)[0]


def main() -> None:
    peers.one_core()
    section("Clusters and components", "learning.learning_clusters", f"{ABOUT}. On one of {machine()}.")
    goals = clusters()
    mixtures()
    goals |= components()
    verdict(goals)
    notes(
        f"""{GOOGLE}: made as Google's own page describes its set. Not in this run, but measured earlier on a set made
        in the same way: Google's LSH clustering {GOOGLE_LSH}, k-means from public starts, as it was here before,
        {EARLIER}.""",
        "diffprivlib takes ranges only: the rows in the ball are in [−1, 1] for it, and fitted once.",
        """Shares, thresholds and rounds of k-means were chosen among about 25 settings, on sets made by the same
        generators as the first four with other seeds, and after a look at a set made as the one in the ball. One
        bound of mixtures was changed after a look at such mixtures. The settings of components were not changed
        after a look.""",
        f"A fit of k-means to 1,000,000 × 10 rows, 8 clusters, takes {large():.1f} s.",
    )


if __name__ == "__main__":
    if reason := lacking("adult"):
        print(reason, file=sys.stderr)
        sys.exit(2)
    if sys.argv[1:2] == ["diffprivlib"]:
        print(*map(json.dumps, peer()), sep="\n")
    else:
        main()
