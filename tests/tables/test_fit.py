"""Models from tables: rows of a person are bounded as in SQL, and everything is charged to the one ledger."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest

import discreet as dp
from discreet import testing
from discreet.sql.bounded_rows import BoundedRows

from ..refusing import refuses

CITIES = ["Haifa", "Ljubljana", "Lyon"]


def visits(people: int = 1500, each: int = 2, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    count = people * each
    age, cost = rng.integers(0, 120, count), rng.uniform(0, 5000, count)
    city = rng.choice(CITIES, count)
    score = (age - 60) / 20 + (cost - 2500) / 2000 + (city == "Haifa") + rng.standard_normal(count)
    return {
        "patient_id": np.repeat(np.arange(people), each),
        "age": age,
        "cost": cost,
        "city": city,
        "day": np.datetime64("2024-01-01") + rng.integers(0, 365, count),
        "readmitted": (score > 0).astype(int),
    }


TYPES = {"patient_id": "integer", "age": "integer", "cost": "number", "day": "date", "readmitted": "integer"}


def opened(data: Any = None, protects: Any = None, **kept: Any) -> Any:
    unit = dp.person("patient_id") if protects is None else protects
    ledger = dp.Ledger.open(":memory:", protects=unit, limit=dp.Approx(epsilon=30, delta=1e-3))
    return dp.table(visits() if data is None else data, ledger=ledger, **({"rows_per_person": 2} | kept)), ledger


def test_the_tour() -> None:
    table, ledger = opened()
    model = dp.learn.LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1], ledger=ledger)
    table.fit(model, features=["age", "cost"], target="readmitted")
    assert model.release_.guarantee.protects == dp.person("patient_id")
    assert model.coef_.shape == (1, 2)
    assert len(ledger.entries()) == 1


def test_ranges_and_choices_make_a_good_model() -> None:
    table, _ = opened()
    model = dp.learn.LogisticRegression(epsilon=2, delta=1e-6, classes=[0, 1])
    table.fit(model, features={"age": (0, 120), "cost": (0, 5000), "city": CITIES}, target="readmitted")
    assert list(model.feature_names_in_) == ["age", "cost", *(f"city={city}" for city in CITIES)]
    known = visits()
    rows = np.column_stack([known["age"], known["cost"], *(known["city"] == city for city in CITIES)]).astype(float)
    assert model.score(rows, known["readmitted"]) > 0.75
    assert model.coef_[0, 0] > 0


def test_a_csv_file_takes_its_types_from_what_the_fit_declares(tmp_path: Any) -> None:
    known = pa.table({name: visits()[name] for name in ("patient_id", "age", "cost", "city", "readmitted")})
    pyarrow.csv.write_csv(known, tmp_path / "visits.csv")
    table, _ = opened(tmp_path / "visits.csv")
    assert "cost (text)" in repr(table)
    features = {"age": (0, 120), "cost": (0, 5000), "city": CITIES}
    model = dp.learn.LogisticRegression(epsilon=2, delta=1e-6, classes=[0, 1])
    table.fit(model, features=features, target="readmitted")
    named = known.select(["city", "cost", "age", "patient_id"])  # in another order, with one column more
    assert np.mean(model.predict(named) == visits()["readmitted"]) > 0.75
    with refuses(dp.InvalidArgument, "wrong-shape") as told:
        model.predict(np.ones((2, 3)))
    assert "age, cost, city" in str(told.value)
    line = dp.learn.LinearRegression(epsilon=2, delta=1e-6, target_bound=(0, 5000))
    assert abs(table.fit(line, features={"age": (0, 120)}, target="cost").predict(named).mean() - 2500) < 400
    model.fit(np.ones((9, 5)), np.ones(9))  # an array forgets the columns of the table
    assert not hasattr(model, "columns_")


MODELS = [
    dp.learn.LogisticRegression(epsilon=3, delta=1e-6, classes=["no", "yes"]),
    dp.learn.AdditiveClassifier(epsilon=3, delta=1e-6, classes=["no", "yes"]),
    dp.learn.RandomForestClassifier(epsilon=3, delta=1e-6, classes=["no", "yes"]),
    dp.learn.PrivateSearch(
        dp.learn.LogisticRegression(classes=["no", "yes"]), {"clip": [0.5]}, epsilon=5, delta=1e-6, tries=2
    ),
]


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_model_predicts_from_a_messy_frame_by_name(model: Any, tmp_path: Any) -> None:
    """One word among the numbers makes the column of a frame text. It is read as the table's text was."""
    known = visits()
    old = [str(age) for age in known["age"]]
    old[0], old[1] = "unknown", ""
    frame = pd.DataFrame(known | {"age": old, "sick": np.where(known["age"] > 60, "yes", "no")})
    frame.to_csv(tmp_path / "visits.csv", index=False)
    table, _ = opened(tmp_path / "visits.csv")
    table.fit(model, features={"city": CITIES, "age": (0, 120)}, target="sick")
    assert np.mean(model.predict(frame) == frame["sick"]) > 0.8
    for other in (pa.Table.from_pandas(frame), frame[["age", "day", "city"]]):
        np.testing.assert_array_equal(model.predict(other), model.predict(frame))
    with refuses(dp.InvalidArgument, "learn-columns-missing"):
        model.predict(frame[["age", "sick"]])


def test_conditions_in_text_are_read_as_the_table_reads_them(tmp_path: Any) -> None:
    known = visits()
    words = np.where(known["age"] > 60, "Yes", "no")
    pd.DataFrame(known | {"old": words}).to_csv(tmp_path / "visits.csv", index=False)
    table, _ = opened(tmp_path / "visits.csv", types={"old": "boolean"})
    model = dp.learn.LogisticRegression(epsilon=9, delta=1e-6, classes=[0, 1])
    table.fit(model, features={"old": None}, target="readmitted")
    told, typed = pd.DataFrame({"old": words}), pd.DataFrame({"old": known["age"] > 60})
    np.testing.assert_array_equal(model.predict(told), model.predict(typed))


def test_classes_of_another_type_than_their_column_are_refused() -> None:
    table, ledger = opened()
    for classes, target in (([0, 1], "city"), (["no", "yes"], "readmitted")):
        model = dp.learn.LogisticRegression(epsilon=1, delta=1e-6, classes=classes)
        with refuses(dp.InvalidArgument, "column-type"):
            table.fit(model, features={"age": (0, 120)}, target=target)
    assert not ledger.entries()


@pytest.mark.slow
def test_an_additive_model_takes_ranges_and_choices_as_they_are() -> None:
    table, ledger = opened()
    model = dp.learn.AdditiveClassifier(epsilon=3, delta=1e-6, classes=[0, 1])
    features = {"age": (0, 120), "cost": (0, 5000), "city": CITIES}
    assert "AdditiveClassifier" in str(table.explain.fit(model, features=features, target="readmitted"))
    table.fit(model, features=features, target="readmitted")
    assert [*model.shapes_] == ["age", "cost", "city"]
    assert model.shapes_["city"].labels == (*CITIES, "other")
    assert "ranges" not in model.release_.value
    assert model.rows_per_person == 2
    known = visits()
    assert model.score({name: known[name] for name in features}, known["readmitted"]) > 0.7
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize(
    "model",
    [
        dp.learn.BoostedTreesClassifier(epsilon=3, delta=1e-6, classes=[0, 1], rounds=100),
        dp.learn.RandomForestClassifier(epsilon=3, delta=1e-6, classes=[0, 1]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_trees_take_ranges_and_choices_as_they_are(model: Any) -> None:
    table, ledger = opened()
    features = {"age": (0, 120), "cost": (0, 5000), "city": CITIES}
    table.fit(model, features=features, target="readmitted")
    assert "ranges" not in model.release_.value
    assert model.rows_per_person == 2
    known = visits()
    assert model.score({name: known[name] for name in features}, known["readmitted"]) > 0.6
    assert len(ledger.entries()) == 1


def test_a_person_has_no_more_rows_than_may_be() -> None:
    """One person of a thousand rows moves the model's sums no more than the declared two."""
    data = visits(50, 2)
    many = {
        name: np.concatenate([np.asarray(column), np.asarray(column)[:1].repeat(1000)]) for name, column in data.items()
    }
    table, _ = opened(many)
    seen: list[int] = []
    fit = dp.learn.LogisticRegression.fit

    class Watched(dp.learn.LogisticRegression):  # type: ignore[misc, name-defined]
        def fit(self, X: Any, y: Any) -> Any:
            seen.append(len(X))
            return fit(self, X, y)

    Watched.__init__ = dp.learn.LogisticRegression.__init__
    model = Watched(epsilon=1, delta=1e-6, classes=[0, 1])
    table.fit(model, features=["age"], target="readmitted")
    assert seen == [100]
    assert model.rows_per_person == 2


def test_conditions_choose_rows_and_rows_can_be_protected() -> None:
    table, ledger = opened(protects=dp.row(), rows_per_person=None)
    model = dp.learn.HuberRegressor(epsilon=5, delta=1e-6, target_bound=5000, n_samples=1500)
    table.fit(model, features={"age": (0, 120)}, target="cost", where="age >= 60")
    assert model.predict(np.array([[90.0]]))[0] == pytest.approx(2500, abs=600)
    assert ledger.entries()[0].guarantee.protects == dp.row()


def test_explain_says_what_a_fit_would_do_and_spends_nothing() -> None:
    table, ledger = opened()
    model = dp.learn.LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1], momentum=0, n_samples=3000)
    told = table.explain.fit(model, features={"age": (0, 120), "city": CITIES}, target="readmitted")
    assert "LogisticRegression of age, city in 4 columns" in told
    assert "at most 2" in told
    assert "costs ε = 1, δ = 1e-06" in told
    assert "excess risk" in told
    assert model.ledger is None
    assert not ledger.entries()


@pytest.mark.parametrize(
    ("kind", "more"),
    [("LogisticRegression", {}), ("AdditiveClassifier", {}), ("LogisticRegression", {"solver": "objective"})],
)
def test_explain_says_what_noise_does_if_the_number_of_rows_is_private(kind: str, more: dict[str, Any]) -> None:
    features = {"age": (0, 120), "city": CITIES}
    said = []
    for people in (1500, 40):
        table, ledger = opened(visits(people))
        model = getattr(dp.learn, kind)(epsilon=1, delta=1e-6, classes=[0, 1], **more)
        said.append(str(table.explain.fit(model, features=features, target="readmitted")))
        assert not ledger.entries()
    assert said[0] == said[1]  # the same for any rows
    first, second, third = (
        float(said[0].split(f" with {size}")[0].split()[-1]) for size in ("1,000", "10,000", "100,000")
    )
    assert first > 9 * second > 80 * third > 0


def test_what_noise_adds_is_part_of_the_bound_after_the_fit() -> None:
    table, _ = opened()
    model = dp.learn.LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1], n_samples=3000)
    said = str(table.explain.fit(model, features={"age": (0, 120)}, target="readmitted"))
    table.fit(model, features={"age": (0, 120)}, target="readmitted")
    adds, bound = float(said.split(" with 3,000")[0].split()[-1]), float(model.release_.error(0.95))
    assert bound == pytest.approx(adds + model.release_.value["gap"], rel=0.01)


def test_explain_gives_the_reason_where_no_bound_is_known() -> None:
    table, _ = opened()
    model = dp.learn.LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1, 2])
    assert "no bound known" in str(table.explain.fit(model, features={"age": (0, 120)}, target="readmitted"))
    forest = dp.learn.RandomForestClassifier(epsilon=1, classes=[0, 1])
    assert "excess risk" not in str(table.explain.fit(forest, features={"age": (0, 120)}, target="readmitted"))


def test_dates_are_days() -> None:
    table, _ = opened()
    model = dp.learn.HuberRegressor(epsilon=1, delta=1e-6, target_bound=120)
    first, last = datetime.date(2024, 1, 1), datetime.date(2024, 12, 31)
    table.fit(model, features={"day": (first, last), "age": (0, 120)}, target="age")
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize(
    ("features", "target", "code"),
    [
        (["nothing"], "readmitted", "unknown-column"),
        (["age"], "nothing", "unknown-column"),
        (["city"], "readmitted", "choices-missing"),
        (["day"], "readmitted", "ends-missing"),
        ({"age": (0, 120), "cost": None}, "readmitted", "ends-missing"),
        ({"age": (120, 0)}, "readmitted", "ends-out-of-order"),
        ({"age": "0-120"}, "readmitted", "wrong-shape"),
        ([], "readmitted", "wrong-type"),
        ("age", "readmitted", "wrong-type"),
    ],
)
def test_what_cannot_be_fitted_is_told_and_costs_nothing(features: Any, target: str, code: str) -> None:
    table, ledger = opened()
    model = dp.learn.LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1])
    with refuses(dp.InvalidArgument, code):
        table.fit(model, features=features, target=target)
    assert not ledger.entries()


def test_another_ledger_is_refused_and_so_is_another_estimator() -> None:
    from sklearn.linear_model import LogisticRegression

    table, _ = opened()
    other = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=1))
    with refuses(dp.InvalidArgument, "estimator-ledger"):
        table.fit(dp.learn.LogisticRegression(classes=[0, 1], ledger=other), features=["age"], target="readmitted")
    plain: Any = LogisticRegression()
    plain.epsilon, plain.delta = 1, 1e-6
    with refuses(dp.InvalidArgument, "wrong-type"):
        table.fit(plain, features=["age"], target="readmitted")


def test_what_does_not_fit_the_budget_is_refused_before_rows_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    table, ledger = opened()
    monkeypatch.setattr(BoundedRows, "columns", lambda *_: pytest.fail("rows were read"))
    with pytest.raises(dp.BudgetExhausted):
        table.fit(
            dp.learn.LogisticRegression(epsilon=100, delta=1e-6, classes=[0, 1]), features=["age"], target="readmitted"
        )
    assert not ledger.entries()


def test_no_cell_shows_in_what_an_analyst_sees() -> None:
    """Grey-box: NULLs, odd labels and unknown choices change neither draws, shapes nor errors."""
    data = visits(40, 1)
    odd = {name: list(column) for name, column in data.items()}
    odd["age"][3], odd["city"][5], odd["readmitted"][7], odd["cost"][9] = None, "Atlantis", 17, float("nan")
    seen = []
    for source in (data, odd):
        table, _ = opened({name: list(column) for name, column in source.items()}, rows_per_person=1, types=TYPES)
        model = dp.learn.LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1], steps=3)
        with testing.frozen(1) as tape:
            table.fit(model, features={"age": (0, 120), "cost": (0, 5000), "city": CITIES}, target="readmitted")
        seen.append((tape.calls, model.coef_.shape, list(model.feature_names_in_)))
    assert seen[0] == seen[1]


def test_a_policy_trains_models_from_joins(tmp_path: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = visits(300, 2)
    pq.write_table(pa.table(data), tmp_path / "visits.parquet")
    (tmp_path / "cities.csv").write_text("city,rank\nHaifa,1\nLjubljana,2\nLyon,3\n")
    (tmp_path / "clinic.toml").write_text(
        """
[ledger]
path = "clinic.ledger"
epsilon = 10.0
delta = 1e-4
delta_per_question = 1e-8
[unit]
person = "patient_id"
[tables.visits]
source = "visits.parquet"
rows_per_person = 2
[tables.visits.columns.age]
between = [0, 120]
[tables.visits.columns.city]
choices = ["Haifa", "Ljubljana", "Lyon"]
[tables.cities]
source = "cities.csv"
public = true
[tables.cities.columns.rank]
type = "integer"
between = [1, 3]
"""
    )
    clinic = dp.connect(tmp_path / "clinic.toml")
    model = dp.learn.LogisticRegression(epsilon=2, delta=1e-6, classes=[0, 1])
    clinic.fit(
        model, "visits JOIN cities USING (city) WHERE age >= 18", features=["age", "city", "rank"], target="readmitted"
    )
    assert model.n_features_in_ == 5
    assert model.rows_per_person == 2
    assert len(clinic.ledger.entries()) == 1
    with pytest.raises(dp.DiscreetError):
        clinic.fit(model, "visits LIMIT 5", features=["age"], target="readmitted")


GOAL: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}


@pytest.mark.parametrize("rule", ["basic", "advanced", "best"])
def test_every_rule_takes_the_fit_of_a_table(rule: str) -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=20, delta=1e-3), rule=rule)
    table = dp.table(pa.table({"x": np.arange(10.0), "y": [0, 1] * 5}), ledger=ledger)
    table.fit(dp.learn.LogisticRegression(classes=[0, 1], steps=2, **GOAL), features=["x"], target="y")
    assert len(ledger.entries()) == 1
