"""What an attack on statistics found, each with the test that would have found it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import discreet as dp
from discreet.stats.inference.proportions import ShareOfKnown
from discreet.stats.regression.designs import by_row
from discreet.stats.regression.formula import parse_formula

from ..refusing import refuses

REPLACED = dp.row(neighbors="replace")


def opened(unit: dp.Unit) -> dp.Ledger:
    return dp.Ledger.open(":memory:", protects=unit, limit=dp.Pure(epsilon=90))


def test_the_number_of_lines_of_a_text_file_is_not_public(tmp_path: Path) -> None:
    """A line that cannot be read is left out, so its content would change a number that is shown without noise."""
    path = tmp_path / "votes.csv"
    path.write_text("yes\n" + "true\n" * 20)
    votes = dp.table(str(path), ledger=opened(REPLACED), types={"yes": "boolean"})
    assert not isinstance(votes.stats.proportion("yes", complete=True, epsilon=1)._inference, ShareOfKnown)
    held = dp.table({"yes": np.ones(20, dtype=bool)}, ledger=opened(REPLACED))
    assert isinstance(held.stats.proportion("yes", epsilon=1)._inference, ShareOfKnown)


def test_looks_at_people_need_the_number_of_their_rows() -> None:
    with refuses(dp.InvalidArgument, "rows-per-person-missing"):
        dp.stats.sequential(looks=10, epsilon=1, ledger=opened(dp.person("who")))
    assert dp.stats.sequential(looks=10, epsilon=1, ledger=opened(dp.person("who")), rows_per_person=2) is not None


def test_errors_are_by_person_if_the_rows_of_a_person_are_found() -> None:
    draw = np.random.default_rng(1)
    own = np.repeat(draw.normal(0, 1, 2000), 8)
    columns = {"who": np.repeat(np.arange(2000), 8), "z": np.repeat(draw.uniform(-1, 1, 2000), 8), "y": own}
    table = dp.table(columns, ledger=opened(dp.person("who")))
    fitted = table.stats.ols("y ~ z", between={"y": (-4, 4), "z": (-1, 1)}, epsilon=20)
    low, high = fitted.conf_int(0.95)["z"]
    assert high - low > 0.12  # 0.15 is that of 2,000 people without privacy, 0.05 that of 16,000 rows
    assert "by person" in fitted.summary()


def test_formulas_of_other_columns_look_different() -> None:
    one, other = parse_formula('y ~ a + "b + c"'), parse_formula('y ~ "a + b" + c')
    assert str(one) != str(other)
    assert parse_formula(str(one)) == one
    assert parse_formula(str(parse_formula("y ~ a*b - 1"))).terms == parse_formula("y ~ a*b - 1").terms


@pytest.mark.parametrize("rows", [1, 2, 7, 4096])
def test_what_a_row_gives_depends_on_it_alone(rows: int) -> None:
    draw = np.random.default_rng(2)
    values, weights = draw.normal(size=(rows, 9)), draw.normal(size=(9, 5))
    alone = np.concatenate([by_row(values[place : place + 1], weights) for place in range(rows)])
    assert (by_row(values, weights) == alone).all()
