"""Clusters, mixtures and radii: no neighbor moves a release further than declared, and seeded bugs are seen."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.mechanisms.learning import cell_sums, cluster_sums, cluster_tree, lloyd, mixture, radius_moments
from discreet.mechanisms.learning.lloyd import Lloyd
from discreet.mechanisms.learning.mixture import MixtureSteps
from discreet.mechanisms.learning.radius_moments import RadiusMoments
from discreet.rows.rounding import RoundedRows

from ..replayed import moments_distance, run_moments, run_stages, stage_distance

REPLACED = dp.row(neighbors="replace")
ASKED = {"gaussian": dp.Approx(epsilon=3, delta=1e-6), "laplace": dp.Pure(epsilon=9)}
ODD = [[np.nan] * 20, [np.inf] + [0.1] * 19, [1e38, -1e38] * 10, [1.0] * 20, [-1.0] * 20, [0.0] * 20, [0.9, -0.7] * 10]


def data(features: int, n: int = 120) -> Any:
    draw = np.random.default_rng(features)
    centers = draw.uniform(-0.6, 0.6, (3, features))
    return centers[draw.integers(0, 3, n)] + 0.1 * draw.normal(size=(n, features))


def rounded(rows: Any, norm: Any) -> RoundedRows:
    features = np.shape(rows)[1]
    return RoundedRows(np.array(rows), **({"feature_norm": norm} if norm else {"feature_ranges": [(-1, 1)] * features}))


def clusters(noise: str, features: int = 2, norm: Any = None, many: int = 3, **given: Any) -> Lloyd:
    return Lloyd.for_guarantee(
        ASKED[noise], clusters=many, features=features, rounds=2, levels=3, feature_norm=norm, **given
    )


def components(noise: str, covariance: str = "full", features: int = 2, **given: Any) -> MixtureSteps:
    fixed = {"components": 3, "features": features, "rounds": 2, "levels": 2, "covariance": covariance}
    return MixtureSteps.for_guarantee(ASKED[noise], **fixed, **given)


def moments(norm: Any = 1, **given: Any) -> RadiusMoments:
    shares = {"square": 15, "sum": 4, "count": 1}
    return RadiusMoments.for_guarantee(ASKED["gaussian"], features=2, feature_norm=norm, shares=shares, **given)


def furthest(make: Callable[..., Any], features: int, norm: Any, run: Any, distance: Any) -> tuple[float, float]:
    """The largest distance of neighbors, as a part of what is declared: of added rows, and of replaced ones."""
    odd = [row[:features] for row in ODD]
    if features > 16:  # along a public direction, the numbers of the tree are largest
        odd.append(cluster_tree.Directions(features, lloyd.exactly(norm or 4), True).matrix()[:, 0].tolist())
    base = data(features).tolist()
    found = []
    for unit in (dp.row(), REPLACED):
        m = make(unit=unit)
        declared = m.sensitivity(unit).exact
        declared = declared**2 if getattr(m, "noise", "gaussian") == "gaussian" else declared
        most = 0.0
        with testing.frozen(3):
            for one in odd:
                first = run(m, rounded([*base, one], norm))
                others = [base] if unit == dp.row() else [[*base, other] for other in odd]
                for other in others:
                    most = max(most, float(distance(first, run(m, rounded(other, norm), first)) / declared))
        found.append(most)
    return found[0], found[1]


CASES: dict[str, Any] = {
    "clusters": (lambda **g: clusters("gaussian", **g), 2, None, run_stages, stage_distance),
    "clusters, pure": (lambda **g: clusters("laplace", **g), 2, None, run_stages, stage_distance),
    "clusters in a ball": (lambda **g: clusters("gaussian", norm=1, **g), 2, 1, run_stages, stage_distance),
    "many columns": (lambda **g: clusters("gaussian", 20, 4, **g), 20, 4, run_stages, stage_distance),
    "many columns, pure": (lambda **g: clusters("laplace", 20, 4, **g), 20, 4, run_stages, stage_distance),
    "components": (lambda **g: components("gaussian", **g), 2, None, run_stages, stage_distance),
    "components, pure": (lambda **g: components("laplace", **g), 2, None, run_stages, stage_distance),
    "variances": (lambda **g: components("gaussian", "diag", 3, **g), 3, None, run_stages, stage_distance),
    "variances, pure": (lambda **g: components("laplace", "diag", 3, **g), 3, None, run_stages, stage_distance),
    "moments": (lambda **g: moments(**g), 2, 1, run_moments, moments_distance),
    "long rows": (lambda **g: moments(40, **g), 2, 40, run_moments, moments_distance),
}


def no_neighbor_is_further_than_declared(*names: str) -> None:
    for name in names or CASES:
        added, replaced = furthest(*CASES[name])
        assert added <= 1, f"{name}: an added row moves the release too far"
        assert replaced <= 1, f"{name}: a replaced row moves the release too far"


def every_stage_is_drawn_as_charged() -> None:
    """As often, and with the noise, that was charged: on no rows, what is released is that noise."""
    for noise in ("gaussian", "laplace"):
        for m in (clusters(noise, 30, 4), components(noise, features=8)):
            norm = 4 if isinstance(m, Lloyd) else None
            calls = run_stages(m, rounded(np.full((1, m.features), np.nan), norm))
            charged = [(stage.parts, stage.cells) for stage in m.stages for _ in range(stage.times)]
            assert [(stage.parts, stage.cells) for stage, _, _ in calls] == charged, "not every stage is drawn"
            seen = np.concatenate(
                [np.ravel(part) / stage.deviation(i) for stage, _, drawn in calls for i, part in enumerate(drawn)]
            )
            # at least 280 numbers of deviation 1: beyond 35% with a probability below 1e-7; half the noise is outside
            assert len(seen) > 280
            assert seen.std() == pytest.approx(1, rel=0.35), "the noise is not the one charged"


def every_row_counts_for_itself() -> None:
    """The sums of all rows are the sums of each row alone, whatever was released before."""
    rows, m = data(3, 150), components("gaussian", features=3)
    known = m._first(np.array([[0.3] * 3, [-0.2] * 3, [0.0] * 3]), np.ones(3), np.ones(3) * 0.5)
    unit = float(RoundedRows(rows, feature_ranges=[(-1, 1)] * 3).unit)
    tree = cluster_tree.Tree(m._clusters._directions)
    cluster_tree.grow(tree, [np.ones(1) * 9, np.zeros((1, 3)), np.ones((1, 3))], 1.0, 9)
    centers = m._clusters.whole(known.means)
    work: list[Callable[[Any], list[Any]]] = [
        lambda given: mixture.exact_mixture_sums(given, known, unit, *m._pairs),
        lambda given: cluster_tree.exact_leaf_sums(given, tree, 4, full=False),
        lambda given: cluster_tree.exact_leaf_sums(given, tree, 4, full=True),
        lambda given: cluster_sums.exact_centered_sums(given, centers, np.array([0.1, 0.2, 0.9]) / unit),
        lambda given: [cluster_sums.exact_rings(given, centers, m._clusters._edges)],
    ]
    for sums in work:
        together = sums(rounded(rows, None))
        alone = [sums(rounded(rows[i : i + 1], None)) for i in range(len(rows))]
        for place, part in enumerate(together):
            assert (part == sum(one[place] for one in alone)).all(), "a row changes what another counts for"


def no_row_is_more_than_one() -> None:
    """The responsibilities of a row add up to one, less what rounding down takes."""
    m, rows = components("gaussian", features=3), rounded(data(3, 150), None)
    known = m._first(np.array([[0.1] * 3, [-0.1] * 3, [0.0] * 3]), np.ones(3), np.ones(3) * 0.9)
    for whole, _ in rows.blocks():
        shares = mixture.responsibilities(whole, known, float(rows.unit)).sum(1)
        assert shares.max() <= 2**10, "a row counts more than once"
        assert shares.min() > 2**10 - 3


def no_move_is_longer_than_a_radius() -> None:
    """A row far from every mean moves the sums by at most one radius."""
    m, far = components("gaussian", features=3), rounded([[0.9, -0.8, 0.7]], None)
    known = m._first(np.zeros((3, 3)), np.ones(3), np.ones(3) * 0.01)
    _, sums, squares = mixture.exact_mixture_sums(far, known, float(far.unit), *m._pairs)
    assert sum(int(x) ** 2 for x in np.ravel(sums)) <= 2**44, "a move is longer than its radius"
    assert sum(int(x) ** 2 for x in np.ravel(squares)) <= 2**68, "products are larger than a squared radius"


CHECKS = (
    no_neighbor_is_further_than_declared,
    every_stage_is_drawn_as_charged,
    every_row_counts_for_itself,
    no_row_is_more_than_one,
    no_move_is_longer_than_a_radius,
)


@pytest.mark.parametrize("check", CHECKS[1:], ids=lambda check: check.__name__)
def test_sound_code_passes(check: Callable[[], None]) -> None:
    check()


# --- seeded bugs ------------------------------------------------------------------------------------------------


def changed(patch: pytest.MonkeyPatch, owner: Any, name: str, old: str, new: str) -> None:
    """Put a function into place whose text has `new` where it had `old`."""
    plain = inspect.getattr_static(owner, name)
    function = plain.fget if isinstance(plain, property) else plain
    text = textwrap.dedent(inspect.getsource(function)).replace("@property\n", "")
    assert old in text
    module = sys.modules[function.__module__]
    made: dict[str, Any] = {}
    exec(text.replace(old, new), vars(module), made)
    planted = property(made[name]) if isinstance(plain, property) else made[name]
    patch.setattr(owner, name, planted)


FAR = no_neighbor_is_further_than_declared
MUTANTS: dict[str, Any] = {
    "moves_not_shortened": (
        (lloyd, "exact_centered_sums", "np.maximum(length, radii[nearest])", "radii[nearest]"),
        lambda: FAR("clusters"),
    ),
    "numbers_not_clamped": (
        (cluster_tree.Directions, "of_rows", "-self._units, self._units", "-np.inf, np.inf"),
        lambda: FAR("many columns"),
    ),
    "starts_not_charged": (
        (Lloyd, "stages", "[*starts, self._radii, self._round]", "[self._radii, self._round]"),
        every_stage_is_drawn_as_charged,
    ),
    "rounds_charged_once": (
        (cell_sums.Stage, "moved", "self.times * whole", "whole"),
        lambda: FAR("clusters in a ball"),
    ),
    "a_replaced_row_counts_once": (
        (cell_sums.Stage, "moved", "if replaced", "if False"),
        lambda: FAR("clusters"),
    ),
    "half_of_the_noise": (
        (cell_sums.Stage, "_noisy", "step, size**2", "step, size**2 / 4"),
        every_stage_is_drawn_as_charged,
    ),
    "half_of_the_noise_pure": (
        (cell_sums.Stage, "_noisy", "size / step", "size / step / 2"),
        every_stage_is_drawn_as_charged,
    ),
    "tree_without_noise": (
        (
            Lloyd,
            "_private_starts",
            "growing.noisy(exact_leaf_sums(rows, tree, cells, full=False))",
            "[np.asarray(part, float) for part in exact_leaf_sums(rows, tree, cells, full=False)]",
        ),
        every_stage_is_drawn_as_charged,
    ),
    "responsibilities_above_one": (
        (mixture, "responsibilities", "likely.sum(1)[:, None]", "likely.max(1)[:, None]"),
        no_row_is_more_than_one,
    ),
    "products_not_shortened": (
        (
            mixture,
            "exact_mixture_sums",
            "np.maximum(length, known.radii[k] / unit)",
            "(known.radii[k] / unit + 0 * length)",
        ),
        no_move_is_longer_than_a_radius,
    ),
    "rows_beyond_the_radius": (
        (
            radius_moments,
            "shortened",
            "np.minimum(1 / part, room / np.maximum(length, 1.0))",
            "(1 / part + 0 * length)",
        ),
        lambda: FAR("long rows"),
    ),
    "rings_not_charged": (
        (RadiusMoments, "sensitivity", "(1 + replaced) / exactly(self.rings) ** 2", "0"),
        lambda: FAR("moments"),
    ),
    "weights_by_the_other_rows": (
        (mixture, "responsibilities", "logs.max(1)[:, None]", "logs.max(1).mean()"),
        every_row_counts_for_itself,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_seeded_bug_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planted, check = MUTANTS[name]
    changed(monkeypatch, *planted)
    with pytest.raises(AssertionError):
        check()
