"""Formulas, and the polynomials that they stand for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.guarantees.unit import row
from discreet.queries.products import CodedRows, WeightedSums
from discreet.stats.regression.designs import Coded, Design
from discreet.stats.regression.formula import parse_formula
from discreet.stats.regression.released_moments import best_layout, sums_layout, table_layout


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("y ~ a", ((), ("a",))),
        ("y ~ a + b:a - 1", (("a",), ("b", "a"))),
        ("y~a*b", ((), ("a",), ("b",), ("a", "b"))),
        ("y ~ 1", ((),)),
        ("y ~ 0 + a", (("a",),)),
        ("y ~ a*b - a:b", ((), ("a",), ("b",))),
        ('"the y" ~ `big a` + C(city)', ((), ("big a",), ("city",))),
        ("y ~ -1 + a + a", (("a",),)),
    ],
)
def test_terms(text: str, terms: tuple[tuple[str, ...], ...]) -> None:
    assert parse_formula(text).terms == terms


@pytest.mark.parametrize(
    "text", ["", "y", "y ~", "~ a", "y ~ a +", "y ~ y", "y ~ 2", "y ~ log(a)", "y ~ a::b", "y ~ a:a", "y ~ a b",
             "y ~ 0", "y ~ a:b*c", "y = a", "y ~ a ~ b", 7]
)  # fmt: skip
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse_formula(text)
    assert refused.value.code == "formula"


def design(text: str, **columns: Coded) -> Design:
    formula = parse_formula(text)
    known = {name: Coded(name, ends=(-1.0, 3.0)) for name in formula.columns} | columns
    return Design(formula, tuple(known[name] for name in formula.columns))


CITY, SICK = Coded("city", levels=("a", "b", "c")), Coded("sick", levels=(False, True))


def test_names_of_coefficients() -> None:
    assert design("y ~ x + sick + city", sick=SICK, city=CITY).names == ("Intercept", "x", "sick", "city[b]", "city[c]")
    assert design("y ~ city - 1", city=CITY).names == ("city[a]", "city[b]", "city[c]")
    assert design("y ~ x:city", city=CITY).names == ("Intercept", "x:city[b]", "x:city[c]")


@pytest.mark.parametrize("text", ["y ~ x", "y ~ x*sick + z", "y ~ city + x - 1", "y ~ x:z", "sick ~ x + city"])
@pytest.mark.parametrize("kind", ["table", "sums"])
def test_the_released_numbers_give_the_second_moments(text: str, kind: str) -> None:
    """Without noise, the sums give exactly XᵀX, Xᵀy and yᵀy in units of half the ranges."""
    rng = np.random.default_rng(3)
    made = design(text, sick=SICK, city=CITY)
    layout = table_layout(made) if kind == "table" else sums_layout(made, 1 / 4)
    assert layout is not None
    rows = 500
    codes = [
        rng.uniform(-1, 1, rows) if one.levels is None else rng.integers(0, len(one.levels), rows).astype(float)
        for one in made.columns
    ]
    numbers = layout.query([layout.coded(codes)]).astype(float)
    values = made.values(codes)
    assert np.tensordot(numbers, layout.matrices, (0, 0)) == pytest.approx(values.T @ values, abs=0.01)
    assert numbers @ layout.of_count == pytest.approx(rows, abs=1e-3)
    # what the columns of the design are, in the units of the columns
    x = codes[list(parse_formula(text).columns).index("x")] * 2 + 1
    plain = [place for place, name in enumerate(made.names) if name == "x"]
    for place in plain:
        assert values[:, place] * made.terms[place][2] == pytest.approx(x)


@pytest.mark.some_quick(8)
@pytest.mark.parametrize("text", ["y ~ x", "y ~ x*sick + z", "y ~ city + x - 1", "y ~ x + z + u + v + w"])
@pytest.mark.parametrize("norm", ["L1", "L2"])
@pytest.mark.parametrize("neighbors", ["add_or_remove", "replace"])
def test_no_row_moves_the_sums_by_more_than_their_sensitivity(text: str, norm: str, neighbors: str) -> None:
    """Rows at corners and inside; the bound for an added row is attained."""
    rng = np.random.default_rng(5)
    made = design(text, sick=SICK, city=CITY)
    unit = row(neighbors=neighbors)
    largest = 0.0
    for layout in (best_layout(made, norm, unit, 1), table_layout(made), sums_layout(made, 1 / 3)):
        assert layout is not None
        bound = float(layout.query.sensitivity(unit, 1, norm=norm).exact)
        answers = [np.zeros(layout.query.size)]
        for _ in range(60):
            codes = [
                np.array([rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], p=[0.4, 0.4, 0.2])])
                if one.levels is None
                else np.array([float(rng.integers(0, len(one.levels)))])
                for one in made.columns
            ]
            answers.append(layout.query([layout.coded(codes)]).astype(float))
        every = np.array(answers)
        moves = every[:, None] - every[None] if neighbors == "replace" else every[:, None]
        sizes = np.abs(moves).sum(-1) if norm == "L1" else np.sqrt((moves**2).sum(-1))
        assert sizes.max() <= bound * (1 + 1e-6)
        largest = max(largest, sizes.max() / bound)
    if neighbors == "add_or_remove":
        assert largest > 0.99


def test_people_with_several_rows_move_the_sums_by_as_much_more() -> None:
    query = best_layout(design("y ~ x"), "L1", row(), 1).query
    assert query.sensitivity(row(), 3).exact == 3 * query.sensitivity(row(), 1).exact


def test_an_empty_table_has_empty_sums() -> None:
    query = WeightedSums((2, 2), Fraction(1), (), (), Fraction(0), Fraction(0))
    none = CodedRows((np.zeros((0, 2)), np.zeros((0, 2))), np.zeros((0, 0)))
    assert list(query([none])) == [0, 0, 0, 0] == list(query([]))


def test_a_row_without_a_value_is_left_out() -> None:
    layout = best_layout(design("y ~ x"), "L1", row(), 1)
    codes = [np.array([0.5, np.nan, 0.1]), np.array([0.1, 0.2, np.nan])]
    assert list(layout.query([layout.coded(codes)])) == list(layout.query([layout.coded([one[:1] for one in codes])]))
