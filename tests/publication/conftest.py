"""A small clinic with several visits of one person, its policy, and a plan."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

CITIES = ["Bled", "Haifa", "Kiel"]
PLAN: dict[str, Any] = {
    "title": "Visits | to the <clinic>",
    "publisher": "The clinic",
    "about": "Visits of one year.",
    "tables": {
        "by_city": {"sql": "SELECT city, COUNT(*) AS visits, AVG(age) AS age FROM visits GROUP BY city", "epsilon": 1},
        "by_country": {
            "sql": "SELECT country, COUNT(*) AS n FROM visits JOIN cities USING (city) GROUP BY country",
            "epsilon": 1,
        },
    },
    "cubes": {"city_sex": {"table": "visits", "by": ["city", "sex"], "positive": True, "epsilon": 1}},
    "synthetic": {
        "people": {
            "table": "visits",
            "columns": ["city", "sex", "age"],
            "epsilon": 4,
            "delta": 1e-6,
            "bins": 5,
            "candidates": [{"rounds": 1}],
            "never": [{"age": [0, 15], "city": ["Kiel"]}],
            "criteria": [
                {"kind": "marginals", "ways": 1, "at_most": 0.5},
                {"kind": "means", "of": "age", "by": "city", "at_least": 50, "at_most": 200},
            ],
        }
    },
}


def write_data(folder: Path, rows: int = 800, seed: int = 1) -> None:
    """Visits: up to five of one person, and a public table of cities."""
    rng = np.random.default_rng(seed)
    people = rng.integers(0, rows // 3, rows)
    columns = {
        "patient_id": people,
        "city": np.array(CITIES)[rng.choice(3, rows, p=[0.5, 0.3, 0.2])],
        "sex": np.array(["f", "m"])[rng.integers(0, 2, rows)],
        "age": np.clip(rng.normal(50, 18, rows).round(), 16, 99).astype(int),
    }
    pyarrow.parquet.write_table(pa.table(columns), folder / "visits.parquet")
    cities = pa.table({"city": CITIES, "country": ["SI", "IL", "DE"]})
    pyarrow.parquet.write_table(cities, folder / "cities.parquet")


def policy_in(folder: Path, **unit: Any) -> dict[str, Any]:
    return {
        "ledger": {"path": str(folder / "clinic.ledger"), "epsilon": 50, "delta": 1e-4},
        "unit": unit or {"person": "patient_id"},
        "tables": {
            "visits": {
                "source": str(folder / "visits.parquet"),
                **({} if "row" in unit else {"rows_per_person": 3}),
                "columns": {
                    "city": {"choices": CITIES},
                    "sex": {"choices": ["f", "m"]},
                    "age": {"between": [0, 100]},
                },
            },
            "cities": {"source": str(folder / "cities.parquet"), "public": True},
        },
    }


def plan_in(folder: Path, *parts: str, **unit: Any) -> dict[str, Any]:
    """The plan, or the parts of it that are named, for the data of a folder."""
    words = copy.deepcopy(PLAN) | {"policy": policy_in(folder, **unit)}
    for kind in ("tables", "cubes", "synthetic"):
        words[kind] = {name: part for name, part in words[kind].items() if not parts or name in parts}
    return words


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    write_data(tmp_path)
    return tmp_path


@pytest.fixture
def plan(clinic: Path) -> Callable[..., dict[str, Any]]:
    """The plan, or the parts of it that are named."""
    return partial(plan_in, clinic)
