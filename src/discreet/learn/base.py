"""What every private estimator shares: who is protected, what is promised, and the call of the door."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed
from discreet.door import through
from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count, check_delta, check_epsilon, exactly
from discreet.extras import need
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.unit import Unit, check_rows, row
from discreet.learn.automatic import is_auto, show_found
from discreet.learn.surroundings import Sent, refuse_lost, warn_of_surroundings
from discreet.ledger import Ledger, cost_of
from discreet.releases import Release
from discreet.rows import columns_of, doubles, has_width, labels, names_of, on_device, place_of, table
from discreet.rows.arrays import doubles as doubles_beside
from discreet.rows.arrays import is_numpy, is_spark_dataframe, namespace
from discreet.rows.containers import Data, has, on_host
from discreet.rows.number_columns import columns_without_numbers, is_number_column
from discreet.rows.rounding import check_ranges

_sklearn = need("sklearn.base", "learn", "discreet.learn")
BaseEstimator: Any = _sklearn.BaseEstimator
check_is_fitted: Any = need("sklearn.utils.validation", "learn", "discreet.learn").check_is_fitted
Floats = NDArray[np.float64]
_NUMBER = (int, float, np.number, np.bool_)


class Private(Closed, BaseEstimator):  # type: ignore[misc]
    """An estimator whose `fit` is one release: charged to `ledger` before the data is read, and stored in `release_`.

    `epsilon` and `delta` are the cost of one call of `fit`. Each call is charged anew, including those of
    cross-validation. Without a `ledger` the release still has its guarantee, for one row added or removed. Under a
    ledger that protects people, every row counts as a different person, unless `rows_per_person` says how many rows one
    person may have. The caller must guarantee this, because arrays do not name people. Tables enforce it: see
    `table.fit`.
    """

    release_: Release

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        return {**state, "ledger": Sent(self.ledger)} if isinstance(self.ledger, Ledger) else state

    def _unit(self) -> Unit:
        """Who is protected, with the relation: the ledger's unit, or one row, added or removed."""
        if self.ledger is None:
            return row()
        refuse_lost(self.ledger)
        if not isinstance(self.ledger, Ledger):
            raise InvalidArgument("ledger must be an open ledger: ledger=dp.Ledger.open(…).", code="wrong-type")
        return self.ledger.protects

    def _rows(self) -> int:
        unit = self._unit()
        return unit.most_rows if self.rows_per_person is None else check_rows(unit, self.rows_per_person)

    def _goal(self) -> Approx:
        """The requested (ε,δ), pure if δ is 0."""
        check_epsilon(self.epsilon)
        exact = check_delta(self.delta)
        return Approx(epsilon=self.epsilon, delta=self.delta) if exact else Pure(epsilon=self.epsilon)

    def _promised(self, mechanism: Any) -> Guarantee:
        """The guarantee of this mechanism for the protected unit."""
        return mechanism.guarantee(mechanism.sensitivity(self._unit(), self._rows()))  # type: ignore[no-any-return]

    def _release(
        self,
        read: Callable[[], Any],
        mechanism: Any,
        guarantee: Guarantee,
        asked: str,
        names: tuple[int, list[str] | None] | None = None,
    ) -> Release:
        """Release through the door. `names` is the number of features and their names, if ranges may be found."""
        warn_of_surroundings(self)
        release = through(read, mechanism, self._stated(guarantee), ledger=self.ledger, asked=asked)
        return release if names is None else show_found(release, *names)

    def _stated(self, guarantee: Guarantee) -> Guarantee:
        """What is charged: the requested (ε,δ), after checking that it holds, if the ledger's rule can add only
        that.
        """
        return cost_of(self.ledger, guarantee, self._goal())


class Planned(Private):
    """An estimator whose release is planned from the number of columns only."""

    @abstractmethod
    def _plan(self, features: int) -> Any:
        """The mechanism for this number of columns."""

    def guarantee(self, n_samples: int | None = None, n_features: int = 1) -> Guarantee:
        """What one call of `fit` will promise. Nothing is spent, and the number of rows does not matter."""
        return self._promised(self._plan(check_count(n_features, "n_features")))


def table_of(features: Any, width: int | None = None, *, typed: bool = True) -> tuple[Any, list[str] | None]:
    """Features as an array of numbers, on the device where they are, and the names of their columns if they have names.

    Only shape and type decide what is refused, never a cell. If `typed`, columns with a dtype that is not a number are
    refused. Elsewhere a cell that is not a number counts as missing, and so does a whole row of a list that does not
    have `width` cells.
    """
    if is_spark_dataframe(features):
        raise InvalidArgument(
            "The rows of a Spark DataFrame stay in Spark. Use fit_batches(frame, features=[…], target=…).",
            code="data-in-spark",
        )
    if hasattr(features, "tocsr"):
        raise InvalidArgument("Sparse data is not supported. Pass a dense array: X.toarray().", code="wrong-type")
    if getattr(getattr(features, "dtype", None), "kind", "") == "c":
        raise InvalidArgument("Complex data not supported: pass real numbers.", code="not-a-number")
    listed = names_of(features)
    if typed:
        _refuse_other_types(features)
    if not has_width(features) and hasattr(features, "shape") and str(getattr(features, "dtype", "")) != "object":
        raise InvalidArgument(
            "Features must have rows and columns. Reshape your data, as with X.reshape(-1, 1).", code="wrong-shape"
        )
    array = features if on_device(features) else table(features, None if has_width(features) else width)
    if array.shape[1] < 1:
        raise InvalidArgument(
            f"0 feature(s) (shape={tuple(array.shape)}) while a minimum of 1 is required.", code="wrong-shape"
        )
    return array, listed


def _refuse_other_types(features: Any) -> None:
    """Refuse columns of text, dates, categories and objects by their dtype, before anything is read."""
    if wrong := columns_without_numbers(features):
        what = ", ".join(wrong[:10]) + (", …" if len(wrong) > 10 else "")
        which = f"These features are not numbers: {what}." if wrong != [""] else "The features are not numbers."
        raise InvalidArgument(
            f"{which} Encode text with dp.learn.OneHot(categories=[…]) and dates as numbers of days, and convert "
            "columns of objects that hold numbers: X.astype(float).",
            code="learn-feature-type",
        )


def refuse_other_targets(targets: Any, who: str) -> None:
    """Refuse a target of text or dates for a regression, by its dtype. A column of objects is read cell by cell."""
    single = columns_of(targets)[0] if len(names_of(targets) or []) == 1 else targets
    listed = str(getattr(single, "dtype", "")) == "object"  # as in a list, cells are read one by one
    if not listed and not is_number_column(single):
        raise InvalidArgument(
            f"{who} needs numbers as targets, and the dtype of y is not a number. Convert it: y.astype(float).",
            code="not-a-number",
        )


# --- the columns of a model ---------------------------------------------------------------------------------------


def declared_ranges(ranges: Any, features: int) -> Floats:
    """The declared ranges of this number of columns. Raises if they are missing."""
    if is_auto(ranges):
        raise InvalidArgument(
            "feature_ranges must be declared: a public (low, high) for each column. "
            "The extremes of the data are private.",
            code="learn-not-declared",
        )
    return check_ranges(ranges, features)


def width_of(ranges: Any) -> int | None:
    """The number of cells in a row, if ranges of its columns are declared."""
    return None if is_auto(ranges) else len(check_ranges(ranges))


def keep_columns(model: Any, features: int, names: list[str] | None) -> None:
    """Store how many columns the model was fitted to, and their names if they have names."""
    for old in ("feature_names_in_", "columns_"):  # of an earlier fit
        if hasattr(model, old):
            delattr(model, old)
    model.n_features_in_ = features
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)


def keep_ranges(model: Any, ranges: Floats | None) -> None:
    """Store the ranges of the columns, if they are declared or were found."""
    if ranges is not None:
        model.ranges_ = np.asarray(ranges)
    elif hasattr(model, "ranges_"):  # of an earlier fit
        del model.ranges_


def known_table(model: Any, X: Data, width: int | None = None) -> Any:
    """The rows, on the device where they are, checked to have as many columns as the fitted model or this width."""
    check_is_fitted(model)
    many = model.n_features_in_ if width is None else width
    array, _ = table_of(_as_fitted(model, X), many)
    if array.shape[1] != many:
        expected = f"{type(model).__name__} is expecting {many} features as input"
        named = ", ".join(one.name for one in getattr(model, "columns_", ()))
        hint = f" Or pass a table with the columns {named}." if named else ""
        raise InvalidArgument(f"X has {array.shape[1]} features, but {expected}.{hint}", code="wrong-shape")
    return array


def _as_fitted(model: Any, X: Data) -> Any:
    """Rows that have the columns of the fitted table by name, as the model saw them: one column for each choice."""
    chosen = table_columns(model, X)
    return by_name(model, X) if chosen is None else np.hstack([one.columns(part) for one, part in chosen])


def table_columns(model: Any, X: Data) -> list[tuple[Any, Any]] | None:
    """The columns of the table that a model was fitted to, each with its part of X. None if X does not name them."""
    features, names = getattr(model, "columns_", None), names_of(X)
    if features is None or names is None or not _named(model, [one.name for one in features], names):
        return None
    found = dict(zip(names, columns_of(X), strict=True))
    return [(one, one.of_caller(found[one.name])) for one in features]


def by_name(model: Any, X: Data) -> Any:
    """A frame with the columns that the model was fitted to, in their order, if the names of both are known."""
    known, names = getattr(model, "feature_names_in_", None), names_of(X)
    if known is None or names is None or is_spark_dataframe(X) or not _named(model, list(known), names):
        return X
    places = [names.index(name) for name in known]
    if places == list(range(len(names))):
        return X
    return X.iloc[:, places] if has(X, "iloc") else X.select([names[place] for place in places])


def _named(model: Any, known: list[str], names: list[str]) -> bool:
    """Whether these names have all that the model knows. If they have none of them, columns are taken by position."""
    missing = [name for name in known if name not in names]
    if len(missing) == len(known) or len(set(names)) < len(names):
        return False
    if missing:
        raise InvalidArgument(
            f"These columns are missing: {', '.join(missing)}. {type(model).__name__} was fitted to "
            f"{', '.join(known)}, and takes them by name, in any order.",
            code="learn-columns-missing",
        )
    return True


def fitted_table(model: Any, X: Data, width: int | None = None) -> Floats:
    """The rows as doubles, checked to have as many columns as the fitted model or this width."""
    return np.asarray(on_host(known_table(model, X, width)), dtype=np.float64)


def feature_names_of(model: Any, given: Any) -> NDArray[Any]:
    """The names of a model's columns: the given ones, those it was fitted with, or x0, x1, …"""
    check_is_fitted(model)
    known = getattr(model, "feature_names_in_", None) if given is None else given
    listed = [f"x{i}" for i in range(model.n_features_in_)] if known is None else list(known)
    if len(listed) != model.n_features_in_:
        raise InvalidArgument(f"input_features must have {model.n_features_in_} names.", code="wrong-shape")
    return np.array(listed, dtype=object)


# --- rows and targets ---------------------------------------------------------------------------------------------


def clip_rows(rows: Any, norm: Any) -> Any:
    """Rows clipped to a norm of at most `norm`, for predictions, because the model has seen no longer ones."""
    xp = namespace(rows)
    with np.errstate(all="ignore"):  # a warning would reveal something about a cell
        return rows / xp.clip(xp.sqrt((rows * rows).sum(1)) / float(exactly(norm)), 1.0, None)[:, None]


def column_of(targets: Any, who: str) -> Any:
    """Targets in one dimension. An array or a frame with a single column is flattened, with scikit-learn's own warning.

    In a list, a record that is a row of one cell stands for that cell, whatever the other records are.
    """
    if targets is None:
        raise InvalidArgument(f"{who} requires y to be passed, but the target y is None.", code="learn-no-target")
    listed, single = names_of(targets), False
    if listed is not None and len(listed) == 1 and not is_spark_dataframe(targets):
        targets, single = columns_of(targets)[0], True
    elif getattr(targets, "ndim", 1) == 2 and targets.shape[1] == 1:
        targets, single = targets[:, 0], True
    if single:
        warned = need("sklearn.exceptions", "learn", "discreet.learn").DataConversionWarning
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: it is flattened.", warned, stacklevel=4
        )
    if getattr(targets, "ndim", 1) != 1 or (listed is not None and not single):
        raise InvalidArgument("y must have one dimension, with one target for each row.", code="wrong-shape")
    return targets if on_device(targets) else labels(targets)


def numbers_of(y: Data) -> Floats:
    """Targets as doubles. A cell that is not a number counts as missing, and so does a column of another type."""
    column = on_host(y)
    return doubles(column) if column.dtype.kind in "biufO" else np.full(len(column), np.nan)


def declared_classes(classes: Any) -> list[Any]:
    """The declared classes. Raises if they are missing, or if one is there twice."""
    if classes is None or isinstance(classes, str) or not isinstance(classes, Sequence | np.ndarray):
        raise InvalidArgument(
            "classes must be declared, such as classes=[0, 1]. Which classes occur in the data is private.",
            code="learn-not-declared",
        )
    listed = list(classes)
    if len(listed) < 2 or len(set(listed)) != len(listed):
        raise InvalidArgument("classes must have at least two labels, all different.", code="learn-classes")
    if any(isinstance(one, tuple | frozenset) for one in listed):
        raise InvalidArgument(
            "A class must be one number or one text. Join the parts of a label, as in 'a, b'.", code="learn-classes"
        )
    return listed


def places_of(y: Data, classes: list[Any]) -> Any:
    """The index of each label among the declared classes, on the label's device. NaN for any other label.

    The declared classes decide what a label can be: numbers are compared with numbers and text with text.
    """
    if not is_numpy(y):
        if all(isinstance(one, _NUMBER) for one in classes):
            return _compared(doubles_beside(y), classes, namespace(y).full_like(doubles_beside(y), float("nan")))
        y = on_host(y)
    kinds: Any = _NUMBER if y.dtype.kind in "biuf" else (str,) if y.dtype.kind == "U" else None
    if kinds is not None:
        return _compared(y, [one if isinstance(one, kinds) else None for one in classes], np.full(y.shape, np.nan))
    places = {label: place for place, label in enumerate(classes)}
    found = np.fromiter((place_of(cell, places) for cell in y), np.float64, len(y))
    return np.where(found < 0, np.nan, found)


def _compared(labels: Any, classes: list[Any], places: Any) -> Any:
    for place, label in enumerate(classes):
        if label is not None:  # of a kind that the column cannot hold
            places[labels == label] = place
    return places
