"""Models fitted to the tables of a policy: rows are read as in SQL, with a bounded number of rows per person."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.engines.spark.dataframes import Partitions
from discreet.errors import InvalidArgument
from discreet.exact.rational import exactly
from discreet.extras import need
from discreet.guarantees.accuracy import at_most
from discreet.ledger import Ledger
from discreet.rows import cells, column, doubles, place_of
from discreet.rows.arrow import typed_cells
from discreet.rows.columns import numbers_in_text
from discreet.rows.containers import on_host
from discreet.rows.gradients.losses import Logistic
from discreet.sql.bounded_rows import BoundedRows
from discreet.sql.plan import RowsPlan
from discreet.sql.planner import Planner
from discreet.sql.running.explanation import Explanation
from discreet.sql.schema import Column, Type, implied_type
from discreet.tables.days import number_of_day
from discreet.tables.offer import found_first

Estimator = Any
"""A private estimator, such as `dp.learn.LogisticRegression`."""
Features = Sequence[str] | Mapping[str, tuple[Any, Any] | list[Any] | None]
"""Columns, or for each its public ends in parentheses or its choices in brackets."""

_IMAGINED = (1_000, 10_000, 100_000)
"""The numbers of rows for which a plan says what noise does, because the true one is private."""


@dataclass(frozen=True)
class Feature:
    """A column as a model sees it: a number, with public bounds where they are known, or one column for each choice."""

    name: str
    kind: str
    between: tuple[float, float] | None = None
    choices: tuple[Any, ...] | None = None

    @property
    def listed(self) -> bool:
        """Whether cells are read one by one. Days are numbers, because some lie outside any calendar."""
        return self.choices is not None and self.kind not in ("date", "timestamp")

    @property
    def known(self) -> list[Any]:
        """The choices as the cells of this column are read."""
        choices = self.choices or ()
        return list(choices) if self.listed else [number_of_day(choice) for choice in choices]

    def cells(self, values: Any) -> NDArray[Any]:
        """The cells of this column: numbers as doubles, whatever is missing, and choices as they are."""
        return doubles(values) if self.choices is None else column(values)

    def of_caller(self, values: Any) -> Any:
        """A column of the caller's own frame. Text that holds numbers is read as the text of a file is: a frame has no
        types, either, where a column of numbers has a single word in it.
        """
        if self.kind in ("integer", "number", "boolean"):
            return numbers_in_text(values, flags=self.kind == "boolean")
        return values

    @property
    def names(self) -> list[str]:
        return [self.name] if self.choices is None else [f"{self.name}={choice}" for choice in self.choices]

    def columns(self, values: Any) -> NDArray[np.float64]:
        """An array of rows × the columns made from this one. A value that is not a number, or not a choice, counts as
        missing.
        """
        if self.choices is None:
            return doubles(values)[:, None]
        place = {choice: number for number, choice in enumerate(self.known)}
        found = np.array([place_of(cell, place) for cell in cells(values)], dtype=np.int64).reshape(-1, 1)
        return np.asarray(found == np.arange(len(self.choices)), dtype=np.float64)

    def ranges(self, share: float) -> list[tuple[float, float]]:
        """The value for `feature_ranges` that gives every feature the same weight, whether it has one column or
        more.
        """
        if self.choices is not None:
            return [(-share, share)] * len(self.choices)
        low, high = self.between or (-1.0, 1.0)
        middle, half = (low + high) / 2, (high - low) / 2 * share
        return [(middle - half, middle + half)]


def check_estimator(estimator: Any, target: Any) -> None:
    """Check, before anything is read, that this is a private estimator and that it has a target if it needs one."""
    wanted = ("epsilon", "delta", "rows_per_person", "ledger", "fit", "set_params")
    if isinstance(estimator, type) or not all(hasattr(estimator, name) for name in wanted):
        raise InvalidArgument(
            "The first argument must be a private estimator, such as dp.learn.LogisticRegression(…).", code="wrong-type"
        )
    given = inspect.signature(estimator.fit).parameters.get("y")
    if target is None and given is not None and given.default is inspect.Parameter.empty:
        raise InvalidArgument(
            f'{type(estimator).__name__} learns from a target. Name its column: target="cost".', code="learn-no-target"
        )
    if target is not None and not isinstance(target, str):
        raise InvalidArgument('target must be the name of a column, such as target="cost".', code="wrong-type")


def types_said(estimator: Estimator, features: Any, target: str | None) -> dict[str, Type]:
    """The types that ranges, choices and classes declare: a column of a text file has no type of its own."""
    types: dict[str, Type] = {}
    if target is not None:
        mine = getattr(estimator, "estimator", estimator)  # a search tunes the estimator that it contains
        classes = getattr(mine, "classes", None)
        types[target] = implied_type(None, classes) if hasattr(mine, "classes") else "number"
    for name, what in features.items() if isinstance(features, Mapping) else ():
        pair, choices = (what if isinstance(what, kind) else None for kind in (tuple, list))
        types[name] = implied_type(pair, choices)
    return {name: kind for name, kind in types.items() if kind != "other"}


def _check_classes(estimator: Estimator, target: str, kind: str) -> None:
    """Refuse classes of another type than their column: no row would have one of them."""
    classes = getattr(getattr(estimator, "estimator", estimator), "classes", None)
    if classes is None or (kind == "text") == all(isinstance(one, str) for one in classes):
        return
    written = '["no", "yes"]' if kind == "text" else "[0, 1]"
    raise InvalidArgument(
        f"{target} is {kind}, and classes are of another type. Write them as they are in the column, such as "
        f"classes={written}.",
        code="column-type",
    )


@dataclass(frozen=True)
class Fit:
    """A private estimator, and the rows to fit it to. Its epsilon and delta pay for the fit, and for bounds that are
    found first.
    """

    estimator: Estimator
    planner: Planner
    plan: RowsPlan
    features: Features
    target: str | None

    def explain(self) -> Explanation:
        """What a fit would do, cost and promise. Nothing is spent, and the estimator does not change."""
        mine, chosen = self._example()
        width, rows = _width(chosen), self.plan.rows
        delta = float(exactly(mine.delta))
        cost = mine.guarantee(n_features=width).epsilon_at(delta=delta)
        whose = "person" if rows.relation.person is not None else "row"
        lines = [f"{type(mine).__name__} of {', '.join(one.name for one in chosen)} in {width} columns"]
        if self.plan.automatic:
            lines += [found_first(self.plan), f"then costs ε = {cost:.4g}, δ = {delta:.4g}"]
        else:
            lines += [f"rows of one {whose}: at most {rows.of_one}", f"costs ε = {cost:.4g}, δ = {delta:.4g}"]
        if not self.plan.automatic:
            lines += _risk(mine, chosen)
        return Explanation("\n".join(lines))

    def release(self) -> Estimator:
        """Fit the estimator to the rows, and return it.

        Promise: for a person with at most the declared rows, or the number that was found, which are enforced as in
        SQL; for a row that joins repeat, as often as they may.
        """
        if not self.plan.automatic:
            return _fit(self.estimator, self.planner.ledger, self.plan.rows, self.features, self.target)
        mine, chosen = self._example()
        stated = mine._stated(mine.guarantee(n_features=_width(chosen)))
        self.planner.ledger.after(*self.planner.unpaid(self.plan.automatic), stated)  # refused before anything is spent
        rows, whole = self.planner.settle_rows(self.plan).rows, self.estimator.epsilon
        try:
            self.estimator.set_params(epsilon=self.plan.terms.epsilon)
            return _fit(self.estimator, self.planner.ledger, rows, self.features, self.target)
        finally:
            self.estimator.set_params(epsilon=whole)

    def _example(self) -> tuple[Estimator, list[Feature]]:
        """A copy of the estimator, with what is left of epsilon, ready to be fitted to these features."""
        mine = need("sklearn.base", "learn", "fit").clone(self.estimator)
        if self.plan.automatic:
            mine.set_params(epsilon=self.plan.terms.epsilon)
        return mine, _prepare(mine, self.planner.ledger, self.plan.rows, self.features, self.target)


def _risk(mine: Estimator, chosen: list[Feature]) -> list[str]:
    """How far a fit may end from the best model: a bound, or what noise adds to the bound that a fit will have. The
    number of rows is private, so it is imagined if it is not declared.
    """
    if not hasattr(mine, "_noise_errors"):
        return []
    if hasattr(mine, "error") and (known := mine.error(n_features=_width(chosen))).amount is not None:
        return [f"excess risk: {known}"]
    sizes = _IMAGINED if mine.n_samples is None else (mine.n_samples,)
    empty = {one.name: np.zeros(0, dtype=np.float64 if one.choices is None else object) for one in chosen}
    found = mine._noise_errors(empty if _bins(mine) else _width(chosen), sizes)
    if any(one.amount is None for one in found):
        return [f"excess risk: {found[0]}"]
    shown = ", ".join(f"{at_most(float(one))} with {size:,}" for one, size in zip(found, sizes, strict=True))
    whole = getattr(mine, "solver", "descent") == "objective"
    lines = [f"excess risk: {'at most' if whole else 'bounded after the fit; noise adds at most'} {shown} rows (95%)"]
    return [*lines, f"a coin has a loss of {math.log(2):.2f}"] if isinstance(mine._loss(), Logistic) else lines


def _fit(estimator: Estimator, ledger: Ledger, rows: BoundedRows, features: Features, target: str | None) -> Estimator:
    """Fit the estimator to the rows: one release, paid from the ledger."""
    chosen = _prepare(estimator, ledger, rows, features, target)
    if hasattr(estimator, "guarantee"):  # refused before any row is read if the budget is too small
        ledger.after(estimator._stated(estimator.guarantee(n_features=_width(chosen))))
    kinds = {one.name: "listed" if one.listed else one.kind for one in chosen}
    if target is not None and target not in kinds:
        # integers and text one by one: a missing cell must not change how the others are read
        kinds[target] = "number" if rows.types[target] == "number" else "listed"
    by_steps = getattr(estimator, "solver", "descent") == "descent"
    if hasattr(rows.engine, "frame") and hasattr(estimator, "fit_batches") and by_steps:
        done = estimator.fit_batches(_partitions(rows, chosen, target, kinds))
    else:
        found = rows.columns(list(kinds), kinds)
        labels = [] if target is None else [column(found[target])]
        if _bins(estimator):
            done = estimator.fit({one.name: one.cells(found[one.name]) for one in chosen}, *labels)
        else:
            done = estimator.fit(_table(chosen, found), *labels)
    names = [name for one in chosen for name in ([one.name] if _bins(estimator) else one.names)]
    for model in (done, done.best_estimator_) if hasattr(done, "best_estimator_") else (done,):
        if not any(one.kind in ("date", "timestamp") for one in chosen):  # days are numbers to a model, not to a frame
            model.columns_ = tuple(chosen)
        model.feature_names_in_ = np.array(names, dtype=object)
    return done


def _table(features: list[Feature], found: Mapping[str, Any]) -> NDArray[np.float64]:
    return np.hstack([one.columns(found[one.name]) for one in features])


def _partitions(rows: BoundedRows, features: list[Feature], target: str | None, kinds: dict[str, str]) -> Partitions:
    """The rows as Spark partitions: the executors compute the features, and only exact sums come back."""
    text, ids = rows.statement(list(kinds))
    cells = partial(_cells, features=features, target=target, kinds=kinds, ids=ids)
    engine: Any = rows.engine
    names = [name for one in features for name in one.names]
    return Partitions(engine.frame(text), _width(features), names, cells, getattr(engine, "timeout", None))


def _cells(
    batch: Any, targets: Any, *, features: list[Feature], target: str | None, kinds: dict[str, str], ids: dict[str, str]
) -> Any:
    """The rows of a record batch as a model sees them, and their targets."""
    place = batch.schema.names.index
    found = {name: typed_cells(batch.column(place(ids[name])), kind) for name, kind in kinds.items()}
    goals = np.zeros(batch.num_rows) if target is None else on_host(targets(column(found[target])))
    return _table(features, found), goals


def _prepare(
    estimator: Any, ledger: Ledger, rows: BoundedRows, features: Features, target: str | None
) -> list[Feature]:
    """The features, after the estimator has received the ledger, the ranges and the number of rows per unit."""
    if estimator.ledger is not None and estimator.ledger is not ledger:
        raise InvalidArgument(
            "The estimator has a ledger of its own. Remove it: the table's ledger is charged.", code="estimator-ledger"
        )
    chosen = _features(rows, features)
    if target is not None and target not in rows.types:
        raise InvalidArgument(f"Unknown column {target}. Known: {', '.join(rows.types)}.", code="unknown-column")
    if target is not None and rows.types[target] not in ("integer", "number", "boolean", "text"):
        raise InvalidArgument(
            f"{target} cannot be the target: it is not a number, text or a condition.", code="column-type"
        )
    if target is not None:
        _check_classes(estimator, target, rows.types[target])
    inner = "estimator__" if hasattr(estimator, "estimator") else ""  # a search tunes the estimator that it contains
    ranges = _ranges(chosen, getattr(estimator, "estimator", estimator))
    settings: dict[str, Any] = {"ledger": ledger, "rows_per_person": rows.of_one}
    if _bins(estimator) and estimator.ranges is None and estimator.categories is None:
        settings["ranges"] = {one.name: one.between for one in chosen if one.between is not None}
        settings["categories"] = {one.name: one.known for one in chosen if one.choices is not None}
    estimator.set_params(**settings, **({} if ranges is None else {f"{inner}feature_ranges": ranges}))
    return chosen


def _bins(estimator: Any) -> bool:
    """Whether an estimator puts columns into bins itself, and so takes choices as they are."""
    return hasattr(estimator, "ranges") and hasattr(estimator, "categories")


def comparable_columns(rows: BoundedRows) -> dict[str, NDArray[Any]]:
    """The columns of a study, with each cell read by itself, so that they can be compared."""
    kinds = {name: kind for name, kind in rows.types.items() if kind != "other"}
    found = rows.columns(list(kinds), kinds)
    return {name: _comparable(found[name], kind) for name, kind in kinds.items()}


def _comparable(values: Any, kind: str) -> NDArray[Any]:
    if kind == "boolean":
        return np.array([value is True for value in values], dtype=np.bool_)
    return column(values) if kind == "text" else doubles(values)


def _width(features: list[Feature]) -> int:
    return sum(len(one.names) for one in features)


def _features(rows: BoundedRows, given: Any) -> list[Feature]:
    listed = isinstance(given, Sequence | Mapping) and not isinstance(given, str) and len(given) > 0
    if not listed or not all(isinstance(name, str) for name in given):
        raise InvalidArgument(
            'features must be a list of columns, such as ["age", "cost"], or a dict with their ranges.',
            code="wrong-type",
        )
    declared = {c.name: c for table in rows.relation.tables() for c in table.columns.values()}
    said = dict(given) if isinstance(given, Mapping) else {name: _declared(declared.get(name)) for name in given}
    known = rows.types
    for name in said:
        if name not in known:
            raise InvalidArgument(f"Unknown column {name}. Known: {', '.join(known)}.", code="unknown-column")
    return [_feature(name, known[name], what) for name, what in said.items()]


def _declared(column: Column | None) -> Any:
    """The range or the choices that the policy declares for a column, if any."""
    if column is None:
        return None
    if column.choices is not None:
        return list(column.choices)
    return column.between if isinstance(column.between, tuple) else None


def _feature(name: str, kind: str, what: Any) -> Feature:
    if kind == "other":
        raise InvalidArgument(
            f"{name} is not a number, text, a date or a condition. Leave it out, or cast it.", code="column-type"
        )
    if isinstance(what, list):
        return Feature(name, kind, choices=tuple(what))
    if kind not in ("integer", "number", "boolean", "date", "timestamp"):
        raise InvalidArgument(
            f'{name} is text. List its choices: features={{"{name}": ["a", "b"], …}}. If it holds numbers, in a file '
            f'without types, give its range: features={{"{name}": (0, 100), …}}, or types={{"{name}": "number"}} in '
            "dp.table.",
            code="choices-missing",
        )
    if what is None:
        if kind in ("date", "timestamp"):
            raise InvalidArgument(
                f'{name} needs a range of two dates: features={{"{name}": (first, last), …}}.', code="ends-missing"
            )
        return Feature(name, kind, between=(-1.0, 1.0) if kind == "boolean" else None)
    if not isinstance(what, tuple) or len(what) != 2:
        raise InvalidArgument(
            f"{name} needs a pair of ends in parentheses, (0, 120), or choices in brackets.", code="wrong-shape"
        )
    low, high = (number_of_day(end) for end in what)
    if not low < high:
        raise InvalidArgument(
            f"The range of {name} must be two numbers, or dates, the smaller one first.", code="ends-out-of-order"
        )
    return Feature(name, kind, between=(low, high))


def _ranges(features: list[Feature], estimator: Any) -> list[tuple[float, float]] | None:
    """Ranges for the estimator, if it accepts them, has none of its own, and all features have one."""
    own = getattr(estimator, "feature_ranges", ...)
    if own is not None and not (isinstance(own, str) and own == "auto"):
        return None
    open_ended = [one.name for one in features if one.between is None and one.choices is None]
    if len(open_ended) == len(features):
        return None  # no feature is scaled: rows are clipped by their norm only
    if open_ended:
        raise InvalidArgument(
            f"{', '.join(open_ended)} needs a range, as the other features have one. Add it.", code="ends-missing"
        )
    share = (len(features) / _width(features)) ** 0.5
    return [pair for one in features for pair in one.ranges(share)]
