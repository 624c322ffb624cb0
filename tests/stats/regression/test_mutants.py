"""Seeded bugs in what a regression releases: each is planted, and the check that sound code passes must see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.guarantees.unit import row
from discreet.mechanisms.noise import steps
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.noise.steps import Steps
from discreet.queries import products
from discreet.queries.products import WeightedSums
from discreet.stats.regression import likelihood
from discreet.stats.regression import rows as regression_rows
from discreet.stats.regression.designs import Coded, Design
from discreet.stats.regression.formula import parse_formula
from discreet.stats.regression.released_moments import Layout, sums_layout, table_layout

Check = Callable[[], bool]
Plant = Callable[[pytest.MonkeyPatch], None]
BINARY = Design(parse_formula("y ~ x + z"), (Coded("x", (0, 1)), Coded("z", (0, 1)), Coded("y", levels=(False, True))))
DESIGN = Design(parse_formula("y ~ x + z"), tuple(Coded(name, (0, 1)) for name in "xzy"))


def layouts() -> list[Layout]:
    found = [table_layout(DESIGN), sums_layout(DESIGN, 1 / 4)]
    return [layout for layout in found if layout is not None]


def answers(layout: Layout) -> Any:
    """The answers about one row, for rows at corners, inside, and far outside."""
    rng = np.random.default_rng(1)
    rows = [*rng.choice([-1.0, 1.0], (30, 3)), *rng.uniform(-1, 1, (30, 3))]
    return np.array([layout.query([layout.coded([np.array([z]) for z in one])]).astype(float) for one in rows])


def no_row_moves_sums_too_far() -> bool:
    """Added rows in both norms, and replaced ones."""
    for layout in layouts():
        every = answers(layout)
        moves = {"add_or_remove": every, "replace": (every[:, None] - every[None]).reshape(-1, every.shape[1])}
        for neighbors, moved in moves.items():
            for norm, sizes in (("L1", np.abs(moved).sum(1)), ("L2", np.sqrt((moved**2).sum(1)))):
                bound = layout.query.sensitivity(row(neighbors=neighbors), 1, norm=norm)  # type: ignore[arg-type]
                if sizes.max() > float(bound.exact) * (1 + 1e-6):
                    return False
    return True


def no_cell_reaches_farther_than_its_range() -> bool:
    codes = regression_rows.codes_of(DESIGN.columns, {name: np.array([-9.0, 0.5, 1e300, np.inf]) for name in "xzy"}, {})
    return all(np.abs(code).max() <= 1 for code in codes)


def no_unit_moves_squares_by_more_than_one() -> bool:
    squares = regression_rows.sum_of_squares(np.array([[3.0, -7.0, 90.0]])).astype(float)
    return bool(squares.max() <= 1)


def people_move_as_many_rows() -> bool:
    query = layouts()[0].query
    return query.sensitivity(row(), 4).exact == 4 * query.sensitivity(row(), 1).exact


def steps_are_charged_together() -> bool:
    noise = Steps(noises=(Laplace(scale=1), Laplace(scale=2)))
    return float(noise.guarantee((1, 1)).epsilon_at(delta=0)) >= 1.5 - 1e-9


def steps_keep_what_was_allowed() -> bool:
    for allowed in (dp.Pure(epsilon=1), dp.Approx(epsilon=1, delta=1e-6)):
        made = Steps.for_guarantee(allowed, sensitivity=(2, 3), parts=(Fraction(3, 4), Fraction(1, 4)))
        if made.guarantee((2, 3)).delta_at(epsilon=1) > float(getattr(allowed, "delta", 0)) + 1e-15:
            return False
    return True


def later_steps_see_noisy_answers_only() -> bool:
    seen: list[Any] = []

    class Rows:
        def answer(self, earlier: list[Any]) -> Any:
            seen.append([float(one[0]) for one in earlier])
            return np.array([Fraction(5)], dtype=object)

    drawn = Steps(noises=(Laplace(scale=100), Laplace(scale=100)))._draw(Rows())
    return seen == [[], [float(drawn[0][0])]] and seen[1] != [5.0]


def no_row_moves_a_newton_step_too_far() -> bool:
    """A row at a corner, at coefficients with the largest variance."""
    features, link = likelihood.Features(BINARY), likelihood.Link("logistic")
    values = BINARY.values([np.array([1.0]), np.array([1.0]), np.array([0.0])])
    parts = likelihood.score_parts(features, link, np.zeros(3), values)[0]
    parts[3:] *= float(likelihood.INFORMATION)
    bound = float(features.sensitivity(link, row(), "L1").exact)
    return float(np.abs(parts).sum()) <= bound - 3 * 0.5 + 1e-9  # all three residuals are a half here, of at most 1


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        no_row_moves_sums_too_far,
        no_cell_reaches_farther_than_its_range,
        no_unit_moves_squares_by_more_than_one,
        people_move_as_many_rows,
        steps_are_charged_together,
        steps_keep_what_was_allowed,
        later_steps_see_noisy_answers_only,
        no_row_moves_a_newton_step_too_far,
    )
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_sound_code_passes(check: Check) -> None:
    assert check()


def shares_not_multiplied_by_their_half(patch: pytest.MonkeyPatch) -> None:
    sound = products._whole_shares
    patch.setattr(products, "_whole_shares", lambda *given: 2 * sound(*given))


def sums_left_out_of_the_sensitivity(patch: pytest.MonkeyPatch) -> None:
    sound = WeightedSums.sensitivity

    def without(self: WeightedSums, *given: Any, **options: Any) -> Any:
        less = replace(self, most=Fraction(0), most_squared=Fraction(0)) if self.cells else self
        return sound(less, *given, **options)

    patch.setattr(WeightedSums, "sensitivity", without)


def replaced_taken_for_added(patch: pytest.MonkeyPatch) -> None:
    sound = WeightedSums.sensitivity
    patch.setattr(WeightedSums, "sensitivity", lambda self, unit, *given, **more: sound(self, row(), *given, **more))


def rows_of_a_person_forgotten(patch: pytest.MonkeyPatch) -> None:
    sound = WeightedSums.sensitivity
    patch.setattr(WeightedSums, "sensitivity", lambda self, unit, rows=1, **more: sound(self, unit, 1, **more))


def codes_not_clipped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(regression_rows, "part_of_range", lambda values, low, high: (values - low) / (high - low))


def squares_not_cut_off(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(regression_rows.np, "clip", lambda values, low, high: values)


def the_second_step_not_charged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steps, "compose", lambda guarantees: next(iter(guarantees)))


def each_step_at_the_whole(patch: pytest.MonkeyPatch) -> None:
    sound = Laplace.for_guarantee
    patch.setattr(
        steps.Laplace,
        "for_guarantee",
        lambda asked, **more: sound(dp.Pure(epsilon=1), **more),
    )


def later_steps_see_exact_answers(patch: pytest.MonkeyPatch) -> None:
    def draw(self: Steps, value: Any) -> list[Any]:
        exact: list[Any] = []
        for _ in self.noises:
            exact.append(np.asarray(value.answer(list(exact)), dtype=float))
        return [noise._draw(one) for noise, one in zip(self.noises, exact, strict=True)]

    patch.setattr(Steps, "_draw", draw)


def information_left_out_of_the_sensitivity(patch: pytest.MonkeyPatch) -> None:
    sound = likelihood.Features.sensitivity

    def without(self: likelihood.Features, *given: Any) -> Any:
        found = sound(self, *given)
        return replace(found, amount=Fraction(self.size))

    patch.setattr(likelihood.Features, "sensitivity", without)


MUTANTS: list[tuple[Plant, Check]] = [
    (shares_not_multiplied_by_their_half, no_row_moves_sums_too_far),
    (sums_left_out_of_the_sensitivity, no_row_moves_sums_too_far),
    (replaced_taken_for_added, no_row_moves_sums_too_far),
    (rows_of_a_person_forgotten, people_move_as_many_rows),
    (codes_not_clipped, no_cell_reaches_farther_than_its_range),
    (squares_not_cut_off, no_unit_moves_squares_by_more_than_one),
    (the_second_step_not_charged, steps_are_charged_together),
    (each_step_at_the_whole, steps_keep_what_was_allowed),
    (later_steps_see_exact_answers, later_steps_see_noisy_answers_only),
    (information_left_out_of_the_sensitivity, no_row_moves_a_newton_step_too_far),
]


@pytest.mark.parametrize(
    ("plant", "check"), MUTANTS, ids=[f"{plant.__name__}-{check.__name__}" for plant, check in MUTANTS]
)
def test_a_seeded_bug_is_seen(plant: Plant, check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert not check()
