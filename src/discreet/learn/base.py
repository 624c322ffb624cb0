"""What every private estimator shares: who is protected, what is promised, and the way through the one door."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.door import through
from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.extras import need
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.unit import Unit, row
from discreet.ledger import Ledger
from discreet.mechanisms.mechanism import meets
from discreet.queries.arrays import here, home, is_frame, namespace, number_of
from discreet.rational import check_count, check_delta, check_epsilon, exactly
from discreet.releases import Release

_sklearn = need("sklearn.base", "learn", "discreet.learn")
BaseEstimator: Any = _sklearn.BaseEstimator


class Private(BaseEstimator):  # type: ignore[misc]
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

    def _release(self, read: Callable[[], Any], mechanism: Any, guarantee: Guarantee, asked: str) -> Release:
        """Through the one door."""
        return through(read, mechanism, self._stated(guarantee), ledger=self.ledger, asked=asked)

    def _stated(self, guarantee: Guarantee) -> Guarantee:
        """What is charged: (ε,δ) as asked for, once it is known to hold, where the ledger's rule adds nothing else."""
        if self.ledger is None or not self.delta or self.ledger.rule.name not in ("basic", "advanced"):
            return guarantee
        if not meets(guarantee, self._goal()):
            raise IncompatibleGuarantee("The noise does not keep the (ε,δ) that is asked for. This is a bug: tell us.")
        return self._goal().stated_for(guarantee.protects)


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
            "A column-vector y was passed when a 1d array was expected: it is flattened.", warned, stacklevel=3
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
