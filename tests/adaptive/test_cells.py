"""Whatever is in a cell: it decides neither whether a study begins, nor of what kind a column is, nor about others."""

from __future__ import annotations

import datetime
import uuid
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import special

import discreet as dp
from discreet import testing
from discreet.adaptive.guarded import GuardedRows
from discreet.adaptive.reading import columns_of, people_of
from discreet.adaptive.sample import Sample
from discreet.mechanisms.adaptive.means import QUANTUM

from ..refusing import refuses

PEOPLE = 60
ONE = QUANTUM.denominator


def opened(tmp_path: Path, **terms: Any) -> dp.Ledger:
    given = {"limit": dp.Approx(epsilon=1000, delta=1e-3), "protects": dp.person("who"), **terms}
    return dp.Ledger.open(tmp_path / "a.ledger", **given)


# --- whose a row is -------------------------------------------------------------------------------------------


def ids(kind: str, more: int) -> Any:
    """The ids of so many people, and then so many that are missing, as each library writes them."""
    gaps: list[Any] = [*range(PEOPLE), *[None] * more]
    text = [None if one is None else f"p{one}" for one in gaps]
    days = [None if one is None else datetime.date(2020, 1, 1) + datetime.timedelta(days=one) for one in gaps]
    return {
        "floats": lambda: np.array([np.nan if one is None else one for one in gaps], dtype=float),
        "other NaN": lambda: np.array([float("nan") if one is None else one for one in gaps], dtype=object),
        "NA": lambda: np.array([pd.NA if one is None else one for one in gaps], dtype=object),
        "NaT": lambda: np.array([pd.NaT if one is None else one for one in gaps], dtype=object),
        "numpy's NaT": lambda: np.array(days, dtype="M8[D]"),
        "odd objects": lambda: np.array([object() if one is None else one for one in gaps], dtype=object),
        "no decimal": lambda: np.array(
            [Decimal("sNaN") if one is None else Decimal(one) for one in gaps], dtype=object
        ),
        "pandas floats": lambda: pd.Series(gaps, dtype=float),
        "pandas": lambda: pd.Series(gaps, dtype="Int64"),
        "pandas text": lambda: pd.Series(text, dtype="string[python]"),
        "pandas Arrow": lambda: pd.Series(gaps, dtype="int64[pyarrow]"),
        "pandas category": lambda: pd.Series(gaps, dtype="Int64").astype("category"),
        "pandas days": lambda: pd.to_datetime(pd.Series(days)),
        "pandas zone": lambda: pd.to_datetime(pd.Series(days)).dt.tz_localize("Europe/Vienna"),
        "polars": lambda: pl.Series(gaps, dtype=pl.Int64),
        "polars category": lambda: pl.Series(text, dtype=pl.Categorical),
        "Arrow": lambda: pa.array(gaps, pa.int64()),
        "Arrow text": lambda: pa.array(text, pa.string()),
        "Arrow days": lambda: pa.array(days, pa.date32()),
        "Arrow instants": lambda: pa.array(days, pa.date32()).cast(pa.timestamp("ns", "UTC")),
        "Arrow dictionary": lambda: pa.array(text, pa.string()).dictionary_encode(),
    }[kind]()


KINDS = [
    *["floats", "other NaN", "NA", "NaT", "numpy's NaT", "odd objects", "no decimal", "pandas floats", "pandas"],
    *["pandas text", "pandas Arrow", "pandas category", "pandas days", "pandas zone", "polars", "polars category"],
    *["Arrow", "Arrow text", "Arrow days", "Arrow instants", "Arrow dictionary"],
]


@pytest.mark.some_quick(8)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_nobody_are_left_out(kind: str, tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    totals = []
    for more in (0, 1, 30):
        rows = {"who": ids(kind, more), "x": np.array([0.0] * PEOPLE + [1.0] * more)}
        with testing.no_noise():
            study = dp.adaptive.study(rows, queries=2, ledger=ledger, size=100)
            totals.append(study.mean(lambda r: r["x"]).value * 100)
            assert study.mean(lambda r: r["x"] == 0).value * 100 == pytest.approx(PEOPLE)
    assert totals == [0, 0, 0]


def test_a_table_leaves_out_the_same_rows(tmp_path: Path) -> None:
    who = pa.array([*range(PEOPLE), *[None] * 30], pa.int64())
    table = dp.table(
        pa.table({"who": who, "x": [0.0] * PEOPLE + [1.0] * 30}), ledger=opened(tmp_path), rows_per_person=1
    )
    with testing.no_noise():
        study = dp.adaptive.study(table, queries=2, size=100)
        assert study.mean(lambda r: r["x"]).value == 0
        assert study.mean(lambda r: r["x"] == 0).value * 100 == pytest.approx(PEOPLE)


@pytest.mark.parametrize(
    "who",
    [
        np.array([2**53, 2**53 + 1]),
        np.array([2**53, 2**53 + 1], dtype=object),
        pd.Series([2**53, 2**53 + 1], dtype="Int64"),
        pl.Series([2**53, 2**53 + 1]),
        pa.array([2**53, 2**53 + 1]),
        pa.array([2**63, 2**63 + 1], pa.uint64()),
        pa.array([2**62, 2**62 + 1], pa.timestamp("ns")),
        pa.array([b"\xff", b"\xfe"], pa.binary()).view(pa.string()),
        np.array([Decimal(10**30), Decimal(10**30 + 1)]),
        np.array([uuid.UUID(int=1), uuid.UUID(int=2)]),
        np.array([datetime.date(1, 1, 1), datetime.date(9999, 1, 1)]),
    ],
)
def test_people_stay_apart(who: Any) -> None:
    assert len(set(people_of({"who": who}, "who")) - {None}) == 2


def test_floating_point_numbers_name_people_where_they_are_exact() -> None:
    who = np.array([0.0, -0.0, 1.0, 2.0**53 - 1, 2.0**53, 0.5, np.inf, -np.inf, np.nan])
    assert people_of({"who": who}, "who") == [0, 0, 1, 2**53 - 1, None, None, None, None, None]
    assert people_of({"who": pd.DataFrame({0: who})[0]}, "who") == people_of({"who": who}, "who")
    assert people_of(pd.DataFrame({0: who}), "0") == people_of({"who": who}, "who")
    assert people_of({"who": np.array([2.0**24 - 1, 2.0**24], dtype=np.float32)}, "who") == [2**24 - 1, None]


@pytest.mark.parametrize(
    "who",
    [
        pa.array([1.0]),
        pl.Series([1.0]),
        pd.Series([1.0], dtype="float64[pyarrow]"),
        pa.array([Decimal(1)]),
        pa.array([b"1"]),
        pa.array([[1]]),
        np.array([1j]),
        np.array([1], dtype="m8[s]"),
    ],
)
def test_what_cannot_tell_people_apart_is_refused(who: Any, tmp_path: Path) -> None:
    with refuses(dp.InvalidArgument, "study-sample"):
        people_of({"who": who}, "who")
    with refuses(dp.InvalidArgument, "study-sample"):
        dp.adaptive.study({"who": np.ones((5, 2)), "x": np.ones(5)}, queries=1, ledger=opened(tmp_path), size=5)


# --- what is in a column --------------------------------------------------------------------------------------

TAMED: dict[str, tuple[Any, Any, list[Any]]] = {  # a type, a cell as any other, and hostile ones as storage
    "int64": (pa.int64(), 1, [2**53 + 1, -(2**63)]),
    "uint64": (pa.uint64(), 1, [2**53 + 1, 2**64 - 1]),
    "float16": (pa.float16(), np.float16(1), [np.float16("inf"), np.float16("nan")]),
    "float64": (pa.float64(), 1.0, [float("nan"), float("inf"), 1e308]),
    "decimal128": (pa.decimal128(38, 2), Decimal(1), [Decimal("9" * 36 + ".99"), -Decimal(10**35)]),
    "decimal256": (pa.decimal256(76, 0), Decimal(1), [Decimal(10**75), -Decimal(10**75)]),
    "decimal128, negative scale": (pa.decimal128(10, -30), Decimal("1E30"), [Decimal("9E37")]),
    "bool": (pa.bool_(), True, [False]),
    "null": (pa.null(), None, [None]),
    "list": (pa.list_(pa.int64()), [1], [[], [2**60]]),
    "struct": (pa.struct({"a": pa.int64()}), {"a": 1}, [{"a": None}]),
    "map": (pa.map_(pa.string(), pa.int64()), [("a", 1)], [[("a", 1), ("a", 2)]]),
    "binary": (pa.binary(), b"1", [b"\xff"]),
    "fixed binary": (pa.binary(2), b"11", [b"\xff\x00"]),
    "interval": (pa.month_day_nano_interval(), (1, 1, 1), [(2**31 - 1, -(2**31), 2**63 - 1)]),
}
RAW = {  # kept as whole numbers: any of them can be in a file
    **{f"timestamp[{unit}]": (pa.timestamp(unit), pa.int64()) for unit in ("s", "ms", "us", "ns")},
    "timestamp with a zone": (pa.timestamp("us", "Europe/Vienna"), pa.int64()),
    "timestamp of nowhere": (pa.timestamp("us", "Nowhere/Land"), pa.int64()),
    "date32": (pa.date32(), pa.int32()),
    "date64": (pa.date64(), pa.int64()),
    "time32": (pa.time32("s"), pa.int32()),
    "time64": (pa.time64("ns"), pa.int64()),
}


def hostile() -> dict[str, tuple[pa.Array, pa.Array]]:
    """For each type of Arrow a plain column, and its neighbors with a hostile cell."""
    made = {}
    for name, (kind, plain, cells) in TAMED.items():
        made |= {
            f"{name} {i}": (pa.array([plain] * 3, kind), pa.array([plain, c, plain], kind)) for i, c in enumerate(cells)
        }
    for name, (kind, storage) in RAW.items():
        for cell in (2**31 - 1, -(2**31), *((2**63 - 1, -(2**63) + 1) if storage == pa.int64() else ())):
            made[f"{name} {cell}"] = tuple(pa.array([86400, one, 86400], storage).view(kind) for one in (86400, cell))
    for kind, bits in ((pa.string(), pa.binary()), (pa.large_string(), pa.large_binary())):
        made[f"{kind}"] = tuple(pa.array([b"a", one, b"a"], bits).view(kind) for one in (b"b", b"\xff\xfe"))
        made[f"{kind}, coded"] = tuple(pa.DictionaryArray.from_arrays([0, 1, 0], one[:2]) for one in made[f"{kind}"])
        made[f"{kind}, list"] = tuple(pa.ListArray.from_arrays([0, 1, 2, 3], one) for one in made[f"{kind}"])
    made["string view"] = tuple(one.cast(pa.string_view()) for one in made["string"])
    made["runs"] = tuple(pa.RunEndEncodedArray.from_arrays([1, 2, 3], one) for one in made["int64 0"])
    made["json"] = tuple(pa.ExtensionArray.from_storage(pa.json_(), one) for one in made["string"])
    return made


HOSTILE = hostile()


@pytest.mark.parametrize("name", HOSTILE)
def test_no_cell_of_arrow_stops_a_study_or_changes_its_columns(name: str) -> None:
    plain, odd = HOSTILE[name]
    missing = pa.chunked_array([plain[:1], pa.nulls(1, plain.type), plain[2:]])
    first = columns_of({"x": plain})["x"]
    for other in (odd, missing, pa.chunked_array([odd])):
        found = columns_of(pa.table({"x": other}))["x"]
        assert found.dtype == first.dtype
        for place in (0, 2):
            assert found[place] == first[place] or first[place] is None


def test_dates_are_days_and_text_is_text() -> None:
    day = datetime.date(2020, 1, 2)
    expected = (day - datetime.date(1970, 1, 1)).days
    for column in (
        pa.array([day]),
        pa.array([day], pa.date64()),
        pa.array([day]).cast(pa.timestamp("ns")),
        pa.array([day]).cast(pa.timestamp("s", "UTC")),
        pl.Series([day]),
        pd.to_datetime(pd.Series([day])),
        pd.to_datetime(pd.Series([day])).dt.tz_localize("UTC"),
        pd.Series([day], dtype="date32[pyarrow]"),
        np.array([day], dtype="M8[D]"),
    ):
        assert columns_of({"x": column})["x"].tolist() == [expected]
    for column in (pa.array(["ä"]), pd.Series(["ä"]), pl.Series(["ä"]), np.array(["ä"]), HOSTILE["string, coded"][0]):
        assert isinstance(columns_of({"x": column})["x"][0], str)


def test_what_pandas_keeps_in_arrow_is_read_as_arrow() -> None:
    odd = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([HOSTILE["string"][1]])))
    assert columns_of({"x": odd})["x"].tolist() == ["a", None, "a"]
    large = pd.Series([1, 2**53 + 1], dtype="int64[pyarrow]")
    assert columns_of({"x": large})["x"].tolist() == [1, 2.0**53]


@pytest.mark.parametrize("column", [pl.Series([1], dtype=pl.Int128), pa.array([1], pa.duration("s"))])
def test_what_is_no_column_is_refused(column: Any) -> None:
    with refuses(dp.InvalidArgument, "study-sample") as refused:
        columns_of({"x": column})
    assert refused.value.__context__ is None


def test_a_list_has_no_type_that_is_public(tmp_path: Path) -> None:
    for cells in ([1.0, 2.0], [1.0, "two"]):
        with refuses(dp.InvalidArgument, "study-sample"):
            dp.adaptive.study({"x": cells}, queries=1, ledger=opened(tmp_path, protects=dp.row()), size=2)


def test_no_row_at_all_is_a_study_too(tmp_path: Path) -> None:
    """One row less than one."""
    own = opened(tmp_path, protects=dp.row())
    with testing.no_noise():
        for rows in (0, 1):
            study = dp.adaptive.study({"x": np.ones(rows)}, queries=4, ledger=own, size=10)
            assert study.mean(lambda r: r["x"]).value * 10 == pytest.approx(rows)
            assert study.mean(lambda r: r["x"].isin([1.0])).value * 10 == pytest.approx(rows)
            assert study.mean(lambda r: r.apply(lambda x: x, "x")).value * 10 == pytest.approx(rows)
            with refuses(dp.InvalidArgument, "study-types"):
                study.mean(lambda r: r["x"] + None)
    with refuses(dp.InvalidArgument, "unequal-lengths"):
        dp.adaptive.study({"x": np.ones(0)}, queries=1)


# --- what a question makes of it ------------------------------------------------------------------------------


def said_of(question: Any, cells: Any) -> tuple[str, Any]:
    """The kind of column that a question makes, or the error; never a warning, which would be an error here."""
    try:
        with warnings.catch_warnings(action="error"):
            return question(GuardedRows({"x": cells})).kind, None
    except (dp.NotAllowed, dp.InvalidArgument) as error:
        return type(error).__name__, f"{error} {error.__context__}"


def mixed(x: Any) -> Any:
    return np.array(["hit" if cell == 123 else 0.5 for cell in x.tolist()])


def large(x: Any) -> Any:
    return np.array([10**400 if cell == 123 else 0.5 for cell in x.tolist()])


def complex_of(x: Any) -> Any:
    return np.array([1j if cell == 123 else 0.5 for cell in x.tolist()])


def ragged(x: Any) -> Any:
    return [[0.5] if cell == 123 else 0.5 for cell in x.tolist()]


def nested(x: Any) -> Any:
    made = np.empty(len(x), dtype=object)
    for place, cell in enumerate(x.tolist()):
        made[place] = [0.5] if cell == 123 else 0.5
    return made


def dates(x: Any) -> Any:
    return np.array([datetime.date(2020, 1, 1) if cell == 123 else 0.5 for cell in x.tolist()])


def fails(x: Any) -> Any:
    if (x == 123).any():
        raise ValueError(f"{x}")
    return np.full(len(x), 0.5)


def warns(x: Any) -> Any:
    if (x == 123).any():
        warnings.warn("hit", UserWarning, stacklevel=1)
    return np.full(len(x), 0.5)


def shorter(x: Any) -> Any:
    return np.full(len(x), 0.5)[x != 123]


def tells_of_none(x: Any) -> Any:
    return None if (x == 123).any() else np.full(len(x), 0.5)


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize(
    "function", [mixed, large, complex_of, ragged, nested, dates, fails, warns, shorter, tells_of_none]
)
def test_no_row_decides_what_apply_makes(function: Any, text: bool) -> None:
    plain, odd = np.ones(50), np.array([1.0] * 49 + [123.0])
    for question in (
        lambda rows: rows.apply(function, "x", text=text),
        lambda rows: rows.apply(function, "x", text=text) + 0,
        lambda rows: rows.apply(function, "x", text=text) == "hit",
    ):
        assert said_of(question, plain) == said_of(question, odd)
    assert said_of(lambda rows: rows.apply(function, "x", text=text), odd) == ("O" if text else "f", None)
    if not text:
        totals = [Sample({"x": x}, guarded=True).total(lambda rows: rows.apply(function, "x")) for x in (plain, odd)]
        assert totals[0] == 25 * ONE
        assert abs(totals[0] - totals[1]) <= ONE


def test_a_function_may_say_text() -> None:
    rows = GuardedRows({"x": np.array([1.0, 2.0, 3.0])})
    words = rows.apply(lambda x: np.where(x > 1, "many", "one"), "x", text=True)
    assert (words == "many")._opened().tolist() == [False, True, True]
    assert rows.apply(lambda x: x, "x", text=True)._opened().tolist() == [1, 2, 3]
    assert np.isnan(rows.apply(lambda x: np.where(x > 1, "many", "one"), "x")._opened()).all()
    with refuses(dp.InvalidArgument, "wrong-type"):
        rows.apply(len, "x", text=1)  # type: ignore[arg-type]


def test_a_question_cannot_write_to_rows() -> None:
    """Whether it can would tell whether there are more rows than were declared."""

    def written(x: Any) -> Any:
        x += 1
        return x

    for count in (10, 11):
        sample = Sample({"x": np.zeros(count)}, 10, guarded=True)
        assert sample.total(lambda rows: rows.apply(written, "x")) == 0
        assert sample.total(lambda rows: rows["x"]) == 0


@pytest.mark.parametrize(
    "question",
    [
        lambda x: Fraction(1, 3) / x,
        lambda x: x // Fraction(1, 3),
        lambda x: 10**400 % x,
        lambda x: Decimal(1) / x,
        lambda x: x + None,
        lambda x: np.where(x > 0, Fraction(1, 3), x),
        lambda x: x + 1j,
        lambda x: np.floor_divide(1, x),
        lambda x: np.left_shift(1, x),
        lambda x: np.gcd(x, 3),
        lambda x: x.astype(int) % 0,
        lambda x: special.kn(x, 1.0),  # scipy warns of numbers that are not whole
        lambda x: special.eval_legendre(x, 0.5),  # takes as many steps as a cell says
        lambda x: special.pro_cv(1, x, 0.5),  # crashes
        lambda x: special.expit(x) + special.xlogy(x, 2.0) + special.gammaln(x),
    ],
)
def test_no_cell_decides_whether_a_question_is_computed(question: Any) -> None:
    for kind in (np.int64, np.float64):
        with warnings.catch_warnings(action="ignore"):
            cells = [np.array([3, 3, cell]).astype(kind) for cell in (3, 0, -1, 2.5, 1e300)]
        assert len({said_of(lambda rows: question(rows["x"]), one) for one in cells}) == 1


def test_weights_are_numbers() -> None:
    for weights in (np.array([Fraction(1, 3), 1]), np.array(["a", "b"]), np.array([1j, 0])):
        with refuses(dp.InvalidArgument, "study-types"):
            GuardedRows({"X": np.ones((3, 2))})["X"] @ weights


@pytest.mark.parametrize(
    "question", [lambda t: t.clip(0, 1), lambda t: np.clip(t, 0, 1), lambda t: t + 1, lambda t: np.where(t, 1, 0)]
)
def test_no_text_among_numbers_decides(question: Any) -> None:
    cells = [np.array([1, 2, cell], dtype=object) for cell in (3, "three", None, 10**400)]
    assert len({said_of(lambda rows: question(rows["x"]), one) for one in cells}) == 1


UFUNCS = [
    getattr(room, name)
    for room in (np, special)
    for name in dir(room)
    if isinstance(getattr(room, name), np.ufunc) and getattr(room, name).nout == 1 and not getattr(room, name).signature
]


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("kind", [bool, np.int64, np.uint64, np.float32, np.float64])
def test_no_cell_decides_whether_a_function_of_numpy_is_computed(kind: Any) -> None:
    odd = np.array([0, -1, 1, 2.5, np.nan, np.inf, -np.inf, 1e300, -1e300, 2.0**63, 5e-324])
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        columns = [np.ones(1, kind), *(cell.reshape(1).astype(kind) for cell in odd)]
    for function in UFUNCS:
        for places in range(function.nin):
            given = [2] * function.nin

            def question(rows: Any, function: Any = function, places: int = places, given: Any = given) -> Any:
                return function(*given[:places], rows["x"], *given[places + 1 :])

            assert len({said_of(question, one) for one in columns}) == 1, function


# --- a leaderboard --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loss", ["zero_one", "absolute", "squared", lambda a, b: np.array([x.real - 0 for x in a - b])]
)
@pytest.mark.parametrize("labels", [np.zeros(50), np.zeros(50, dtype=object)], ids=["numbers", "objects"])
def test_no_label_decides_whether_a_submission_is_scored(loss: Any, labels: Any) -> None:
    odd: list[Any] = [None, "text", float("nan"), float("inf"), 10**400] if labels.dtype == object else [np.nan, np.inf]
    said = set()
    for label in [0.0, *odd]:
        held = labels.copy()
        held[7] = label
        with testing.no_noise():
            board = dp.adaptive.leaderboard(held, loss, submissions=1)
            try:
                with warnings.catch_warnings(action="error"):
                    said.add(0 <= board.submit(np.zeros(50)).value <= 1 / 50 + 1e-6)
            except dp.InvalidArgument as error:
                said.add(f"{error} {error.__context__}")
    assert len(said) == 1


# --- what a study without a ledger promises -------------------------------------------------------------------


@pytest.mark.slow
def test_an_exact_number_of_rows_is_promised_for_replaced_rows() -> None:
    rows = {"x": np.ones(4000)}
    replaced = dp.row(neighbors="replace")
    made = {
        "study": dp.adaptive.study(rows, queries=10),
        "holdout": dp.adaptive.holdout(rows, rows, queries=50, overfits=3, tolerance=0.05, method="thresholdout"),
        "leaderboard": dp.adaptive.leaderboard(np.ones(4000), submissions=10),
    }
    for one in made.values():
        assert one.guarantee.protects == replaced
    declared = dp.adaptive.study(rows, queries=10, size=4000)
    assert declared.guarantee is not None
    assert declared.guarantee.protects == dp.row()
    # a replaced row moves a sum of numbers in [0,1] by no more than one that is added: neither cost nor width changes
    study = made["study"]
    assert study.guarantee.epsilon_at(delta=1e-6) == declared.guarantee.epsilon_at(delta=1e-6)
    assert study.width == declared.width


@pytest.mark.parametrize("missing", [False, True])
def test_a_missing_cell_changes_no_type(missing: bool) -> None:
    cells = [True, None if missing else False, True]
    texts, numbers = ["a", None if missing else "b", "a"], [1, None if missing else 2, 3]
    frames = [
        pa.table(
            {"b": pa.array(cells, pa.bool_()), "t": pa.array(texts, pa.string()), "n": pa.array(numbers, pa.int64())}
        ),
        pl.DataFrame({"b": cells, "t": texts, "n": numbers}, schema={"b": pl.Boolean, "t": pl.String, "n": pl.Int64}),
        pd.DataFrame(
            {
                "b": pd.array(cells, dtype="boolean"),
                "t": pd.array(texts, dtype="string"),
                "n": pd.array(numbers, dtype="Int64"),
            }
        ),
    ]
    for frame in frames:
        columns = columns_of(frame)
        assert [columns[name].dtype.kind for name in "btn"] == ["b", "O", "f"]
        sample = Sample(columns, guarded=True)
        assert sample.total(lambda rows: rows["b"] & (rows["t"] == "a") & (rows["n"] < 5)) == 2 * QUANTUM.denominator
