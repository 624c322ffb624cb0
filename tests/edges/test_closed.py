"""What leaves is closed: no release, model, curve or error of ours leads back to the rows it was made from."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import pickle
import sys
import traceback
import types
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet as dp
from discreet import closing, door
from discreet.adaptive import studies
from discreet.closing import Closed, closed, is_closed
from discreet.errors import DiscreetError, InvalidArgument
from discreet.sql import schema

from .failing import FAILING, fit, studied
from .released import CITIES, GROUPS, RELEASED, database, high, logistic, numbers, opened, people
from .walk import NUMBER, TEXT, WHOLE, Planted, leaks, pickled, reached

SLOW = {"learn.search"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in RELEASED]
)
@pytest.mark.filterwarnings("ignore")
def test_nothing_that_leaves_reaches_the_rows(name: str, tmp_path: Path) -> None:
    planted = Planted()
    released = RELEASED[name](planted, tmp_path)
    assert leaks(released, planted) == []


@pytest.mark.parametrize("name", ["table.mean", "table.synthesize", "database.answer", "adaptive.mean"])
def test_what_is_kept_for_later_is_all_there(name: str) -> None:
    released = RELEASED[name](Planted(), None)
    again = pickle.loads(pickle.dumps(released))
    of = {"of": ["city"]} if name == "table.synthesize" else {}
    if hasattr(released, "error"):
        assert again.error(0.9, **of) == released.error(0.9, **of)
    assert str(again) == str(released)


def raised(call: Callable[[], Any]) -> BaseException:
    """The error that leaves a call, with its frames but for ours here."""
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was refused")


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.filterwarnings("ignore")
def test_no_error_of_ours_reaches_the_rows(name: str, tmp_path: Path) -> None:
    planted = Planted()
    error = raised(lambda: FAILING[name](planted, tmp_path))
    assert isinstance(error, DiscreetError)
    assert reached(error, planted) == []
    assert error.__cause__ is None
    assert error.__context__ is None
    assert TEXT.encode() not in pickled(error)


def test_where_an_error_arose_is_still_told() -> None:
    error = raised(lambda: fit(logistic(), Planted(), rows=-1))
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)][-2:] == ["entered", "fit"]


def test_what_the_caller_was_handling_stays_theirs() -> None:
    planted, mine = Planted(), KeyError("of the caller")
    try:
        raise mine
    except KeyError:
        error = raised(lambda: fit(logistic(), planted, rows=-1))
    assert error.__context__ is mine
    assert reached(error, planted) == []


def test_errors_of_the_caller_pass_with_our_frames_empty() -> None:
    def question(rows: Any) -> Any:
        raise KeyError("of the caller")

    planted = Planted()
    error = raised(lambda: studied(planted, question))
    assert isinstance(error, KeyError)
    assert reached(error, planted) == []


def test_what_is_being_handled_inside_is_left_behind() -> None:
    """`from None` hides what an engine said from people, and keeps it for whoever looks."""

    def quoted(rows: list[Any]) -> None:
        try:
            float(rows[0])
        except ValueError:
            raise InvalidArgument("This is no number. Write one.") from None

    def chained(rows: list[Any]) -> None:
        try:
            quoted(rows)
        except InvalidArgument as error:
            raise InvalidArgument("It cannot be read.") from error

    for refuse in (quoted, chained):
        planted = Planted()
        rows = planted.add([TEXT])
        assert reached(raised(functools.partial(refuse, rows)), planted), "the walk would not see it"
        assert reached(raised(functools.partial(closed(refuse), rows)), planted) == []


# --- every public call that takes data is closed ----------------------------------------------------------------

PUBLIC = (
    *("discreet", "discreet.adaptive", "discreet.audit", "discreet.datasets", "discreet.functions", "discreet.learn"),
    *(
        "discreet.local",
        "discreet.mechanisms",
        "discreet.queries",
        "discreet.shuffle",
        "discreet.sql",
        "discreet.tables",
    ),
)
FUNCTIONS = ("discreet.functions.density", "discreet.functions.regression", "discreet.functions.curves")
NO_DATA = {
    "compose": "guarantees",
    "least_error": "guarantees",
    "risk": "a guarantee",
    "verify": "laws",
    "person": "a unit",
    "row": "a unit",
    "for_unit": "a guarantee and a unit",
    "remote": "an address and a token",
    "best_quantiles": "a mechanism",
    "chooser_for": "a mechanism",
    "enough_steps": "public numbers",
    "expected_failed_checks": "names of checks",
    "plain_descent": "a gradient, and says that it is not private",
    "plot_accuracy": "scores",
    "plot_learning_curve": "a released model",
    "plan": "public numbers",
    "rows_needed": "public numbers",
    "scorer": "a study and names of columns",
    "splitter": "nothing",
    "heavy_hitters": "a survey's terms",
    "mean": "a survey's terms",
    "repeated": "a survey's terms",
    "rows": "a survey's terms",
    "sketch": "a survey's terms",
    "survey": "a survey's terms",
    "task": "a survey's terms",
    "from_task": "a survey's terms, as bytes",
    "bit_sum": "a protocol's terms",
    "histogram": "a protocol's terms",
    "real_sum": "a protocol's terms",
    "sum": "a protocol's terms",
    "from_description": "a protocol's terms",
    "delta_lower_bound": "outputs, which have left",
    "lower_bound": "outputs, which have left",
    "process_for": "public numbers",
    "features_over": "public numbers",
    "least_bandwidth": "public numbers",
    "nearest_density": "a released curve",
    "nearest_step": "one number, and a public step",
    "sensitivity_of": "a public number",
}
"""Public functions that take no rows, and what they take."""
OPEN_CLASSES = {
    "AnswerRules": "three settings of a policy",
    "Ledger": "what is spent",
    "Sensitivity": "a public number",
    "Splitter": "no fold holds a row: it says so itself",
    "Audit": "a result",
    "ModelAudit": "a result",
    "OneRun": "three public numbers",
    "Finding": "a result",
    "Power": "a result",
    "Sizes": "public numbers",
    "StudyPlan": "public numbers",
    "StudyAnswer": "a result",
    "PollRelease": "a result",
    "Answer": "a result",
    "AnswerColumn": "a result",
    "Distribution": "a result",
    "GroupedRelease": "a result",
    "Explanation": "a result",
    "Plan": "a question and public facts",
    "Policy": "public declarations",
    "Tables": "public declarations",
    "TableDescription": "public declarations",
    "ColumnDescription": "public declarations",
    "Offer": "a protocol of types",
    "Query": "a protocol of types",
    "Scores": "a protocol of types",
    "Space": "a protocol of types",
    "FiniteSpace": "a protocol of types",
    "Release": "a result",
    "Curve": "a result",
    "Density": "a result",
    "Counted": "a result",
    "Measured": "a result",
    "Accuracy": "a result",
}
"""Public classes that are given no rows."""
WITHOUT_ROWS = ("discreet.guarantees", "discreet.errors", "discreet.mechanisms", "discreet.rows.convex")
"""Promises, errors and regions know no rows; mechanisms meet them inside `release`, which is closed."""


def public_things() -> Iterator[tuple[str, Any]]:
    for place in PUBLIC:
        module = importlib.import_module(place)
        yield from ((f"{place}.{name}", getattr(module, name)) for name in module.__all__)
    for place in FUNCTIONS:
        module = importlib.import_module(place)
        for name, thing in vars(module).items():
            if getattr(thing, "__module__", "") == place and name[0] != "_" and callable(thing):
                yield f"{place}.{name}", thing


def open_calls(things: Iterator[tuple[str, Any]]) -> list[str]:
    """Public calls that are neither closed nor known to take no rows."""
    found = []
    for name, thing in things:
        last = name.rpartition(".")[2]
        if isinstance(thing, type):
            without = thing.__module__.startswith(WITHOUT_ROWS) or last in OPEN_CLASSES
            if issubclass(thing, Closed):
                methods = [m for cls in thing.__mro__ if issubclass(cls, Closed) for m in vars(cls).items()]
                plain = [m for m, f in methods if inspect.isfunction(f) and m[0] != "_" and not is_closed(f)]
                found += [f"{name}.{m}" for m in plain]
            elif not without:
                found.append(name)
        elif inspect.isfunction(thing) and not is_closed(thing) and last not in NO_DATA:
            found.append(name)
    return found


def test_every_public_call_that_takes_data_is_closed() -> None:
    assert open_calls(public_things()) == [], "close it with @closed or the base Closed, or say here what it takes"


def test_a_new_call_must_say_what_it_takes() -> None:
    class Fitted:
        def fit(self, X: Any) -> None: ...

    assert open_calls(iter([("discreet.new", lambda rows: rows), ("discreet.Fitted", Fitted)])) == [
        "discreet.new",
        "discreet.Fitted",
    ]


def test_closed_calls_are_no_generators() -> None:
    """Errors of a generator come later, when no call is there to close them."""
    for name, thing in public_things():
        calls = [f for _, f in inspect.getmembers(thing, inspect.isfunction)] if isinstance(thing, type) else [thing]
        assert not [f for f in calls if is_closed(f) and inspect.isgeneratorfunction(inspect.unwrap(f))], name


def test_a_closed_call_looks_like_the_call() -> None:
    assert inspect.signature(dp.release).parameters.keys() >= {"value", "mechanism", "ledger"}
    assert dp.release.__doc__
    assert dp.release.__doc__.startswith("Answer with noise")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_no_module_keeps_a_row() -> None:
    """Caches live as long as the program: none of them holds what a release or a refusal has read."""
    planted = Planted()
    kept = [
        opened(planted).count(epsilon=1),
        fit(logistic(), planted),
        raised(lambda: fit(logistic(), planted, rows=-1)),
    ]
    kept.append(dp.local.survey(choices=CITIES, epsilon=1).encode_many([TEXT]))
    importing = ("__loader__", "__spec__")  # pytest imports some modules, and it knows the names of all tests
    held = {
        name: {k: v for k, v in vars(module).items() if k not in importing and not isinstance(v, types.ModuleType)}
        for name, module in list(sys.modules.items())
        if name.split(".")[0] == "discreet"
    }
    classes = {
        f"{name}.{key}": dict(vars(thing))
        for name, values in held.items()
        for key, thing in values.items()
        if isinstance(thing, type) and thing.__module__ == name
    }
    assert len(held) > 100
    assert reached([held, classes], planted) == []


# --- the walk finds what is hidden ------------------------------------------------------------------------------


class Slotted:
    __slots__ = ("kept",)

    def __init__(self, kept: Any) -> None:
        self.kept = kept


class Later:
    def __init__(self, rows: Any) -> None:
        self._of = weakref.ref(rows)

    @functools.cached_property
    def shown(self) -> Any:
        return self._of()


Later.__module__ = "discreet.later"


def framed(rows: Any) -> BaseException:
    """An error with a frame of ours that holds rows."""
    space = {"__name__": "discreet.framed"}
    exec("def fail(rows):\n    raise ValueError('no')", space)
    return raised(lambda: space["fail"](rows))


def suspended(rows: Any) -> Iterator[Any]:
    space: dict[str, Any] = {"__name__": "discreet.framed"}
    exec("def go(rows):\n    yield 1\n    yield rows", space)
    running: Iterator[Any] = space["go"](rows)
    next(running)
    return running


HIDDEN: dict[str, Callable[[Any], Any]] = {
    "itself": lambda rows: rows,
    "attribute": lambda rows: types.SimpleNamespace(deep={"a": [rows]}),
    "slot": Slotted,
    "closure": lambda rows: lambda: rows,
    "default": lambda rows: eval("lambda a=rows: a", {"rows": rows}),
    "keyword default": lambda rows: eval("lambda *, a=rows: a", {"rows": rows}),
    "partial": lambda rows: functools.partial(print, rows),
    "wrapped": lambda rows: functools.wraps(lambda: rows)(lambda: None),
    "bound method": lambda rows: Slotted(rows).__init__,
    "iterator": lambda rows: itertools.chain([1], rows),
    "cache": lambda rows: (kept := functools.lru_cache(lambda key: rows), kept(1))[0],
    "generator": suspended,
    "mapping proxy": lambda rows: types.MappingProxyType({"a": rows}),
    "key": lambda rows: {(1, functools.partial(len, rows)): 1},
    "error": lambda rows: ValueError(rows),
    "frame": framed,
    "view": lambda rows: np.asarray(rows)[:1] if isinstance(rows, np.ndarray) else rows,
    "object array": lambda rows: np.array([rows, None], dtype=object),
}


@pytest.mark.parametrize("way", HIDDEN)
@pytest.mark.parametrize("kind", [list, np.array])
def test_the_walk_finds_rows_wherever_they_are(way: str, kind: Any) -> None:
    planted = Planted()
    rows = planted.add(kind([1.0, 2.0]))
    assert reached(HIDDEN[way](rows), planted)


@pytest.mark.parametrize(
    "copied",
    [
        f"a message with {TEXT}",
        {TEXT: 1},
        [NUMBER],
        float(NUMBER),
        WHOLE,
        np.array([1.0, NUMBER]),
        np.array([WHOLE]),
        np.array(["a", TEXT]),
        np.array([TEXT], dtype=object),
        pa.table({"a": [TEXT]}),
        pa.chunked_array([[NUMBER]]),
        pd.DataFrame({"a": [TEXT]}),
        pd.Series([NUMBER]),
        TEXT.encode(),
        InvalidArgument(f"{NUMBER} is wrong."),
    ],
    ids=str,
)
def test_the_walk_finds_copies_of_a_canary(copied: Any) -> None:
    assert reached(types.SimpleNamespace(kept=copied), Planted())
    assert leaks(types.SimpleNamespace(kept=copied), Planted())


def test_the_walk_finds_memory_that_is_shared() -> None:
    planted = Planted()
    rows = planted.add(np.arange(10.0))
    assert reached(np.frombuffer(memoryview(rows)), planted)
    assert reached(pa.array(rows), planted)
    assert reached(rows + 1, planted) == []


def test_the_walk_looks_at_what_is_worked_out_later() -> None:
    planted = Planted()
    rows = planted.add(np.arange(3.0))
    assert reached(Later(rows), planted) == []  # a weak reference keeps nothing
    assert leaks(Later(rows), planted)


# --- seeded bugs ------------------------------------------------------------------------------------------------


def test_a_schema_that_keeps_its_source_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "_is_name", lambda source: True)
    planted = Planted()
    answer = database(planted).sql(GROUPS, epsilon=1)
    assert leaks(answer, planted)
    assert TEXT.encode() in pickled(answer)


def test_a_release_that_keeps_who_watched_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "_quiet", lambda mechanism: mechanism)
    planted = Planted()
    table = opened(planted)
    watched = types.MethodType(lambda table, line: None, table)
    made = table.synthesize({"cost": (0, 9)}, epsilon=1, delta=1e-6, rounds=0, progress=watched)
    assert leaks(made, planted)


def test_an_error_that_is_not_cut_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closing, "drop_references", lambda error, before: None)
    planted = Planted()
    assert reached(raised(lambda: fit(logistic(), planted, rows=-1)), planted)


def test_an_answer_that_keeps_its_study_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    planted = Planted()
    study = dp.adaptive.study(people(planted), queries=3)
    answer = study.mean(high)
    assert leaks(answer, planted) == []
    assert leaks(
        replace(answer, _interval=lambda sure: studies._interval(study._width, study.mechanism, 0, sure)), planted
    )


def test_a_model_that_keeps_its_rows_is_caught() -> None:
    planted = Planted()
    model = fit(logistic(), planted)
    assert leaks(model, planted) == []
    model.rows_ = planted.sources[0]
    assert leaks(model, planted)


def test_a_release_that_is_a_view_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    planted = Planted()
    monkeypatch.setattr(dp.Laplace, "_draw", lambda self, value: np.asarray(value)[:3])
    assert leaks(dp.release(numbers(planted), dp.Laplace(scale=1), sensitivity=1), planted)
