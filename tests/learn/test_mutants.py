"""Seeded bugs of private learning: each is planted, and a check of ours must see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.exact import samplers
from discreet.guarantees.privacy_loss.compose import compose
from discreet.mechanisms.learning.descent import descent as descending
from discreet.mechanisms.learning.descent import noise as noises
from discreet.mechanisms.learning.descent.descent import Descent
from discreet.rows.gradients import examples as summing
from discreet.rows.gradients.examples import Examples, unit_of
from discreet.rows.gradients.losses import Logistic

ROWS = np.array([[0.1, 0.2], [-0.3, 0.4], [0.5, -0.5], [0.2, 0.1]])
GOAL = np.array([0.0, 1.0, 1.0, 0.0])
HARD = [[40.0, -30.0], [1e38, 1e38], [np.nan, 1.0], [np.inf, 0.0], [0.5, 0.5]]
CLIP = 0.4


def made(**kept: Any) -> Descent:
    given: dict[str, Any] = {"loss": Logistic(), "clip": CLIP, "dimension": 3, "steps": 4, "learning_rate": 1.0}
    return Descent.for_guarantee(dp.Approx(epsilon=1, delta=1e-6), **(given | {"size": 100} | kept))


def no_row_moves_sums_too_far() -> None:
    """Exact sums with and without each hard row differ by at most the clip, at weights that push."""
    most = (Fraction(2, 5) / unit_of(CLIP)) ** 2
    for weights in (np.zeros(3), np.array([60.0, 60.0, -9.0]), np.array([-60.0, -60.0, 9.0])):
        known = Examples(ROWS, GOAL).sums(weights, Logistic(), CLIP)
        for row in HARD:
            for target in (0.0, 1.0):
                more = Examples(np.vstack([ROWS, [row]]), np.append(GOAL, target)).sums(weights, Logistic(), CLIP)
                assert sum(int(x) ** 2 for x in more - known) <= most, "a row moves the sum by more than the clip"


def nothing_but_sums_depends_on_rows() -> None:
    """Steps, rates, draws and their scales are the same for a neighbor."""
    seen = []
    for count in (4, 3):
        with testing.frozen(2) as tape:
            drawn = made()._draw(Examples(ROWS[:count], GOAL[:count]))
        seen.append((tape.calls, drawn["size"]))
    assert seen[0] == seen[1], "what is public depends on the rows"


def noise_is_what_is_charged() -> None:
    """Every sum gets its own draw of the charged noise: on no rows at all the steps are that noise."""
    m = made(steps=400, region=None, size=1, learning_rate=1.0)
    empty = Examples(np.zeros((1, 2)), np.array([np.nan]))
    moves: list[Any] = []
    noisy = Descent._noisy_sum

    def watched(self: Descent, *given: Any) -> Any:
        moves.append(noisy(self, *given))
        return moves[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Descent, "_noisy_sum", watched)
        m._draw(empty)
    steps = np.array(moves)
    # 1,200 draws: a deviation within 12% has a false alarm below 1e-8, and half the noise is far outside
    assert steps.std() == pytest.approx(float(m.noise.stddev), rel=0.12), "the noise is not the one charged"
    assert len(np.unique(steps)) > 1100, "a draw is used twice"
    assert abs(np.corrcoef(steps[:-1, 0], steps[1:, 0])[0, 1]) < 0.3, "a draw is used twice"


def samples_are_poisson() -> None:
    """The number of rows in a sample is binomial: over 400 samples its variance is within 50% of n·q(1−q)."""
    rows = Examples(np.zeros((400, 2)), np.zeros(400))
    sizes: list[int] = []

    class Watched:
        count, dimension, large = 400, 3, False

        def sample(self, chosen: Any) -> Examples:
            sizes.append(int(np.sum(chosen)))
            return rows.sample(np.zeros(400, dtype=bool))

        def sums(self, *given: Any) -> Any:
            return rows.sums(*given)

    m = made(sampling=0.25, steps=400)
    m._draw(Watched())
    assert np.var(sizes) == pytest.approx(400 * 0.25 * 0.75, rel=0.5), "samples are not drawn row by row"


def the_charge_covers_all_that_is_drawn() -> None:
    m = made(size=None)
    alone = [m.noise.guarantee(m.sensitivity())] * m.steps
    count = m.counting.guarantee(dp.Sensitivity(1, grain=1))  # type: ignore[union-attr]
    whole = compose([*alone, count]).epsilon_at(delta=1e-6)
    assert m.guarantee().epsilon_at(delta=1e-6) >= whole * (1 - 1e-6), "something drawn is not charged"


CHECKS = (
    no_row_moves_sums_too_far,
    nothing_but_sums_depends_on_rows,
    noise_is_what_is_charged,
    samples_are_poisson,
    the_charge_covers_all_that_is_drawn,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_sound_code_passes(check: Callable[[], None]) -> None:
    check()


def drop_clip(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(summing._Step, "clipped", lambda self, z, y, inverse: self.loss.derivative(z[0], y)[None, :])


def clip_a_copy_but_use_the_raw(patch: pytest.MonkeyPatch) -> None:
    sound = summing._Step.clipped

    def clipped(self: Any, z: Any, y: Any, inverse: Any) -> Any:
        sound(self, z, y, inverse)
        return self.loss.derivative(z[0], y)[None, :]

    patch.setattr(summing._Step, "clipped", clipped)


def a_nan_is_large_and_not_clipped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(summing, "flags_to_numbers", lambda flags, like: np.ones(len(flags)))
    sound = Examples._whole

    def whole(self: Any, rows: Any, *given: Any) -> Any:
        return sound(self, np.where(np.isnan(rows), 1e6, rows), *given)

    patch.setattr(Examples, "_whole", whole)
    patch.setattr(summing._Step, "clipped", lambda self, z, y, inverse: self.loss.derivative(z[0], y)[None, :])


def the_intercept_does_not_count_in_the_norm(patch: pytest.MonkeyPatch) -> None:
    sound = Examples._whole

    def whole(self: Any, *given: Any) -> Any:
        kept, self.intercept = self.intercept, False
        try:
            return sound(self, *given)
        finally:
            self.intercept = kept

    patch.setattr(Examples, "_whole", whole)


def norm_from_the_data(patch: pytest.MonkeyPatch) -> None:
    sound = Examples.sums
    patch.setattr(Examples, "sums", lambda self, w, loss, clip: sound(self, w, loss, clip) * (1 + len(self._rows) % 2))


def true_n_as_the_size(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Descent, "_counted", lambda self, value: float(value.count))


def noise_halved(patch: pytest.MonkeyPatch) -> None:
    sound = dp.Gaussian._noise
    patch.setattr(dp.Gaussian, "_noise", lambda self, size: sound(self, size) // 2)


def same_draw_twice(patch: pytest.MonkeyPatch) -> None:
    kept: dict[int, Any] = {}
    sound = dp.Gaussian._noise
    patch.setattr(dp.Gaussian, "_noise", lambda self, size: kept.setdefault(size, sound(self, size)))


def shuffled_batches(patch: pytest.MonkeyPatch) -> None:
    def fixed(probability: Any, size: int) -> Any:
        return samplers.permutation(size) < int(probability * size)

    patch.setattr(descending.samplers, "bernoulli", fixed)


def the_count_is_not_charged(patch: pytest.MonkeyPatch) -> None:
    sound = noises.StepNoise.guarantee
    patch.setattr(noises.StepNoise, "guarantee", lambda self, noise, counting: sound(self, noise, None))


def one_step_is_charged(patch: pytest.MonkeyPatch) -> None:
    sound = noises.StepNoise.guarantee
    patch.setattr(noises.StepNoise, "guarantee", lambda self, noise, count: sound(replace(self, steps=1), noise, count))


MUTANTS: list[tuple[Callable[[pytest.MonkeyPatch], None], Callable[[], None]]] = [
    (drop_clip, no_row_moves_sums_too_far),
    (clip_a_copy_but_use_the_raw, no_row_moves_sums_too_far),
    (a_nan_is_large_and_not_clipped, no_row_moves_sums_too_far),
    (the_intercept_does_not_count_in_the_norm, no_row_moves_sums_too_far),
    (norm_from_the_data, no_row_moves_sums_too_far),
    (true_n_as_the_size, nothing_but_sums_depends_on_rows),
    (noise_halved, noise_is_what_is_charged),
    (same_draw_twice, noise_is_what_is_charged),
    (shuffled_batches, samples_are_poisson),
    (the_count_is_not_charged, the_charge_covers_all_that_is_drawn),
    (one_step_is_charged, the_charge_covers_all_that_is_drawn),
]


@pytest.mark.parametrize(("mutant", "check"), MUTANTS, ids=lambda one: one.__name__)
def test_a_mutant_is_killed(
    mutant: Callable[[pytest.MonkeyPatch], None], check: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    noises.calibrate_noise.cache_clear()
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        check()
    noises.calibrate_noise.cache_clear()
