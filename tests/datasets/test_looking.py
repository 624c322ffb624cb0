"""What the owner is told about rows: which columns a few people have so much of that answers miss it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from discreet.datasets import policy
from discreet.datasets.looking import MUCH_OF_FEW, MUCH_OF_ONE, Tail, look_at_rows


def told(folder: Path, terms: str = "", visits: str = "", **rows: Any) -> list[str]:
    """What is told of a table of visits."""
    pyarrow.parquet.write_table(pa.table(dict(rows)), folder / "visits.parquet")
    text = f"""
[ledger]
path = "{folder}/clinic.ledger"
epsilon = 1.0
[unit]
person = "pid"
[tables.visits]
source = "{folder}/visits.parquet"
{visits}
{terms}
"""
    (folder / "clinic.toml").write_text(text, "utf-8")
    return [line for line in look_at_rows(policy.load(folder / "clinic.toml")) if line[0] == " "]


def rentals(**more: Any) -> Mapping[str, Any]:
    """Rows of 500 people, ten of whom have rented for a hundred times as long as the others."""
    minutes = np.resize([10.0, 20.0, 30.0], 2000)
    minutes[:10] = 9000
    return {"pid": np.arange(2000) % 500, "minutes": minutes, **more}


def test_what_few_people_have_much_of_is_told(tmp_path: Path) -> None:
    [line] = told(tmp_path, **rentals(age=np.arange(2000) % 80, visit_id=np.geomspace(1, 1e9, 2000)))
    assert line.startswith("  minutes: 1% of the people have 35% of its total.")
    assert line.endswith("declare rows_per_person and its range, tightly, or let analysts cut it off with LEAST.")


def test_what_is_declared_is_not_told(tmp_path: Path) -> None:
    minutes = "[tables.visits.columns.minutes]\nbetween = [0, {}]".format
    [line] = told(tmp_path, minutes(9000), **rentals())  # a wide range alone helps nobody
    assert "declare rows_per_person, tightly" in line
    assert not told(tmp_path, minutes(60), **rentals())
    found = '[tables.visits.columns.minutes]\nbetween = "auto"'
    assert told(tmp_path, found, visits="rows_per_person = 4", **rentals())  # found for each question, and not declared
    assert not told(tmp_path, minutes(9000), visits="rows_per_person = 4", **rentals())
    heavy = {"pid": np.concatenate([np.arange(900), np.full(300, 7)]), "n": np.ones(1200, int)}
    [line] = told(tmp_path, **heavy)
    assert line.startswith("  one person has 25% of the rows.")  # the column follows from the rows, and is not told
    assert not told(tmp_path, visits="rows_per_person = 2", **heavy)


def test_what_everybody_has_is_not_told(tmp_path: Path) -> None:
    few = {"pid": np.arange(99), "x": np.geomspace(1, 1e9, 99)}
    assert not told(tmp_path, **few)  # of so few, nobody is one in a hundred
    plain = {"pid": np.arange(10_000) % 1000, "x": np.random.default_rng(1).lognormal(0, 1, 10_000)}
    assert not told(tmp_path, **plain, nothing=np.zeros(10_000), text=["x"] * 10_000)


def test_people_without_a_value_are_not_those_with_the_most(tmp_path: Path) -> None:
    values = [None, float("nan")] * 5 + [400.0] * 20 + [1.0] * 970
    [_, line] = told(tmp_path, pid=np.arange(1000), x=pa.array(values, pa.float64()))
    assert line.startswith("  x: 1% of the people have 45% of its total.")


def test_words() -> None:
    assert not Tail(MUCH_OF_ONE, MUCH_OF_FEW).words()
    assert Tail(MUCH_OF_ONE, MUCH_OF_FEW + 0.01).words() == "1% of the people have 21%"
    assert Tail(MUCH_OF_ONE + 0.01, 1.0).words() == "one person has 11%"


def test_where_rows_are_protected_rows_are_compared(tmp_path: Path) -> None:
    sizes = np.array([500.0] * 9 + [1.0] * 1200)
    pyarrow.parquet.write_table(pa.table({"size": sizes}), tmp_path / "rows.parquet")
    known = {"ledger": {"path": ":memory:", "epsilon": 1}, "unit": {"row": True}}
    made = policy.load({**known, "tables": {"t": {"source": str(tmp_path / "rows.parquet")}}})
    assert "  size: 1% of the rows have 79% of its total." in "\n".join(look_at_rows(made))
