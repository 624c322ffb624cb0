"""What every private estimator shares: who is protected, what is promised, and the way through the one door."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed
from discreet.door import through
from discreet.errors import InvalidArgument
from discreet.extras import need
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.unit import Unit, row
from discreet.ledger import Ledger
from discreet.queries.arrays import here, home, is_frame, namespace, number_of, on_host
from discreet.queries.rounded_rows import check_ranges
from discreet.rational import check_count, check_delta, check_epsilon, exactly
from discreet.releases import Release

_sklearn = need("sklearn.base", "learn", "discreet.learn")
BaseEstimator: Any = _sklearn.BaseEstimator
check_is_fitted: Any = need("sklearn.utils.validation", "learn", "discreet.learn").check_is_fitted
Floats = NDArray[np.float64]


class Private(Closed, BaseEstimator):  # type: ignore[misc]
    """An estimator whose `fit` is one release: charged to `ledger` before the data is read, and kept in `release_`.

    `epsilon` and `delta` are what one call of `fit` may cost; each call is charged anew, also those of
    cross-validation. Without a `ledger` the release still carries its guarantee, for one row added or removed. Under a
    ledger that protects people, every row is taken for another person's, unless `rows_per_person` says how many of them
    one person may have: the caller's word, as arrays do not name people. Tables know better: `table.fit`.
    """

    release_: Release

    def _unit(self) -> Unit:
        """Who is protected, with the relation: the ledger's own, or one row, added or removed."""
        if self.ledger is None:
            return row()
        if not isinstance(self.ledger, Ledger):
            raise InvalidArgument("ledger must be an open ledger: ledger=dp.Ledger.open(…).")
        return self.ledger.protects

    def _rows(self) -> int:
        return 1 if self.rows_per_person is None else check_count(self.rows_per_person, "rows_per_person")

    def _goal(self) -> Approx:
        """(ε,δ) as asked for, pure when δ is 0."""
        check_epsilon(self.epsilon)
        exact = check_delta(self.delta)
        return Approx(epsilon=self.epsilon, delta=self.delta) if exact else Pure(epsilon=self.epsilon)

    def _promised(self, mechanism: Any) -> Guarantee:
        """What this mechanism promises to whom is protected."""
        return mechanism.guarantee(mechanism.sensitivity(self._unit(), self._rows()))  # type: ignore[no-any-return]

    def _release(self, read: Callable[[], Any], mechanism: Any, guarantee: Guarantee, asked: str) -> Release:
        """Through the one door."""
        return through(read, mechanism, self._stated(guarantee), ledger=self.ledger, asked=asked)

    def _stated(self, guarantee: Guarantee) -> Guarantee:
        """What is charged: (ε,δ) as asked for, once it is known to hold, where the ledger's rule adds nothing else."""
        return guarantee if self.ledger is None else self.ledger.rule.charged(guarantee, self._goal())


class Planned(Private):
    """An estimator whose release is planned from the number of columns alone."""

    @abstractmethod
    def _plan(self, features: int) -> Any:
        """The mechanism for so many columns."""

    def guarantee(self, n_samples: int | None = None, n_features: int = 1) -> Guarantee:
        """What one call of `fit` will promise; nothing is spent, and the number of rows changes nothing."""
        return self._promised(self._plan(check_count(n_features, "n_features")))


def table_of(features: Any) -> tuple[Any, list[str] | None]:
    """Features as an array where it lives, and the names of their columns where they have them.

    What is refused is a matter of shape and type, never of a cell: a cell that is not a number counts as missing.
    """
    if is_frame(features):
        raise InvalidArgument("A DataFrame of Spark stays where it is: fit_batches(frame, features=[…], target=…).")
    listed = column_names_of(features)
    if listed is not None and hasattr(features, "to_numpy"):
        features = features.to_numpy()
    if hasattr(features, "tocsr"):
        raise InvalidArgument("Sparse data is not supported: give a dense array, X.toarray().")
    array = home(_cells(features) if isinstance(features, list | tuple) else features)
    if getattr(array, "ndim", 0) != 2:
        raise InvalidArgument("Features must be rows and columns. Reshape your data, as with X.reshape(-1, 1).")
    if array.shape[1] < 1:
        raise InvalidArgument(f"0 feature(s) (shape={tuple(array.shape)}) while a minimum of 1 is required.")
    if here(array) and array.dtype.kind == "c":
        raise InvalidArgument("Complex data not supported: give real numbers.")
    return (array if not here(array) or array.dtype.kind in "fiub" else _numbers(array)), listed


def column_names_of(table: Any) -> list[str] | None:
    """The names of the columns of a data frame or an Arrow table; None for anything else."""
    names = getattr(table, "column_names", None)  # in Arrow `columns` are the columns themselves
    names = getattr(table, "columns", None) if names is None else names
    if names is None or not all(isinstance(name, str | int | np.integer) for name in names):
        return None
    return [str(name) for name in names]


def _cells(rows: Any) -> Any:
    """Lists as an array: of numbers, or of any cells as they are, so that one of them changes no other's type."""
    try:
        array = np.asarray(rows)
    except ValueError:  # a cell that is itself a list
        array = np.empty(0, dtype=object)
    if array.dtype.kind in "fiub":
        return array
    lengths = {len(one) if isinstance(one, list | tuple | np.ndarray) else -1 for one in rows}
    if len(lengths) != 1 or -1 in lengths:
        raise InvalidArgument("Features must be rows and columns: lists of one length.")
    array = np.empty((len(rows), lengths.pop()), dtype=object)
    for place, one in enumerate(rows):
        array[place, :] = [cell if np.ndim(cell) == 0 else None for cell in one]
    return array


# --- the columns of a model ---------------------------------------------------------------------------------------


def declared_ranges(ranges: Any, features: int) -> Floats:
    """The declared ranges of so many columns, or a typed error that asks for them."""
    if ranges is None:
        raise InvalidArgument(
            "feature_ranges, a public (low, high) for each column, must be declared: the data's extremes are private."
        )
    return check_ranges(ranges, features)


def keep_columns(model: Any, features: int, names: list[str] | None) -> None:
    """How many columns the model was fitted to, and their names where they have them."""
    model.n_features_in_ = features
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(model, "feature_names_in_"):  # of an earlier fit
        del model.feature_names_in_


def check_width(model: Any, table: Any) -> None:
    """A typed error unless the table has as many columns as the model was fitted to."""
    if table.shape[1] != model.n_features_in_:
        expected = f"{type(model).__name__} is expecting {model.n_features_in_} features as input"
        raise InvalidArgument(f"X has {table.shape[1]} features, but {expected}.")


def fitted_table(model: Any, X: Any) -> Floats:
    """The rows as doubles, for a fitted model with as many columns."""
    check_is_fitted(model)
    table, _ = table_of(X)
    check_width(model, table)
    return np.asarray(on_host(table), dtype=np.float64)


def names_of(model: Any, given: Any) -> NDArray[Any]:
    """The names of a model's columns: those given, those it was fitted with, or x0, x1, …"""
    check_is_fitted(model)
    known = getattr(model, "feature_names_in_", None) if given is None else given
    listed = [f"x{i}" for i in range(model.n_features_in_)] if known is None else list(known)
    if len(listed) != model.n_features_in_:
        raise InvalidArgument(f"input_features must be {model.n_features_in_} names.")
    return np.array(listed, dtype=object)


# --- rows and targets ---------------------------------------------------------------------------------------------


def shortened(rows: Any, norm: Any) -> Any:
    """Rows brought to a norm of at most `norm`, for predictions: the model has seen no longer ones."""
    xp = namespace(rows)
    return rows / xp.clip(xp.sqrt((rows * rows).sum(1)) / float(exactly(norm)), 1.0, None)[:, None]


def column_of(targets: Any, who: str) -> Any:
    """Targets in one dimension; a single column is flattened, with scikit-learn's own warning."""
    if targets is None:
        raise InvalidArgument(f"{who} requires y to be passed, but the target y is None.")
    column: Any
    if isinstance(targets, list | tuple) and len(targets) and all(np.ndim(cell) == 1 for cell in targets):
        column = _cells(targets)
    elif isinstance(targets, list | tuple):
        column = np.empty(len(targets), dtype=object)
        column[:] = [cell if np.ndim(cell) == 0 else None for cell in targets]  # one cell changes no other's type
    else:
        column = home(targets.to_numpy() if hasattr(targets, "to_numpy") else targets)
    if getattr(column, "ndim", 1) == 2 and column.shape[1] == 1:
        warned = need("sklearn.exceptions", "learn", "discreet.learn").DataConversionWarning
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: it is flattened.", warned, stacklevel=4
        )
        column = column[:, 0]
    if getattr(column, "ndim", 1) != 1:
        raise InvalidArgument("y must have one dimension: one target for each row.")
    return column


def _numbers(array: Any) -> Any:
    """Cells as numbers; what is not one counts as missing, so that no cell can stop a fit."""
    if array.dtype.kind != "O":
        raise InvalidArgument("Features must be numbers. Encode text with declared categories first.")
    flat = np.empty(array.size)
    for place, cell in enumerate(array.ravel()):
        flat[place] = number_of(cell)
    return flat.reshape(array.shape)
