"""Rows under a ledger: a question can compute on each row separately, but sees none of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray
from scipy import special

from discreet.errors import InvalidArgument, NotAllowed
from discreet.rows import number_of, text_of
from discreet.sealed import Sealed

_SAME = (np.equal, np.not_equal)
_SPECIAL = frozenset(
    one for one in vars(special).values() if isinstance(one, np.ufunc) and (one.nin == 1 or one is special.xlogy)
)
"""Those of more numbers can run for hours, or crash, on a cell: such as polynomials of a degree, or hyp2f1."""
_UNKNOWN = object()
_LARGEST = 2.0**62
_TYPES = (
    "This cannot be computed from columns of these types and shapes. Convert them, or take one place of each row: "
    "rows['X'][:, j]."
)
_REDUCED: dict[str, Any] = {"sum": np.sum, "mean": np.mean, "min": np.min, "max": np.max, "any": np.any, "all": np.all}
ROW_BY_ROW = (
    "Under a ledger, a question must compute each row by itself. Use operators, NumPy's elementwise functions, "
    "np.where, column.isin([…]), [:, j], @ and sums along axis 1. Or use rows.apply(function, 'column') if you are "
    "sure that the function treats each row by itself."
)


class GuardedColumn(NDArrayOperatorsMixin):
    """One column of hidden rows. Every operation treats each row separately.

    Promise: every operation maps row i of its columns, and public constants, to row i of its result: so one row moves
    one value. Nothing inside is shown, and what is refused depends on shapes and types, never on a cell.
    """

    __array_priority__ = 1000

    def __init__(self, values: NDArray[Any]) -> None:
        self._sealed = Sealed(values)
        self.ndim, self.kind = values.ndim, values.dtype.kind

    def _opened(self) -> NDArray[Any]:
        return self._sealed.open_with(lambda values: values)

    def __repr__(self) -> str:
        return "Column(…)"

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc is np.matmul and method == "__call__" and not options:
            return _product(*inputs)
        ours = getattr(np, ufunc.__name__, None) is ufunc or ufunc in _SPECIAL
        if method != "__call__" or ufunc.signature is not None or ufunc.nout != 1 or options or not ours:
            raise NotAllowed(ROW_BY_ROW, code="study-row-by-row")
        if ufunc is np.power:
            ufunc = np.float_power  # integers refuse negative powers, which would reveal something about a cell
        if ufunc not in _SAME:
            _refuse_text(*inputs)
            if any(one is None for one in inputs):
                raise InvalidArgument(_TYPES, code="study-types")
        return _row_by_row(ufunc, *inputs)

    def __array_function__(self, function: Any, types: Any, given: Any, options: Any) -> Any:
        if function is np.where and len(given) == 3 and not options:
            return _row_by_row(np.where, *given)
        if function is np.clip and len(given) == 3 and not options:
            return _clip(*given)
        if function is np.isin and len(given) == 2 and not options and isinstance(given[0], GuardedColumn):
            return given[0].isin(given[1])
        for name, reduced in _REDUCED.items():
            if function is reduced and len(given) <= 2 and isinstance(given[0], GuardedColumn):
                return getattr(given[0], name)(*given[1:], **options)
        raise NotAllowed(ROW_BY_ROW, code="study-row-by-row")

    def __getitem__(self, key: Any) -> GuardedColumn:
        if not isinstance(key, tuple) or len(key) < 2 or key[0] != slice(None) or self.ndim != len(key):
            raise NotAllowed(ROW_BY_ROW, code="study-row-by-row")
        if not all(isinstance(one, int | np.integer | slice) and not isinstance(one, bool) for one in key[1:]):
            raise NotAllowed(ROW_BY_ROW, code="study-row-by-row")
        return _compute(lambda values: values[key], self)

    def isin(self, values: Iterable[Any]) -> GuardedColumn:
        """Whether a row's value is one of these."""
        listed = set(values)
        return _compute(
            lambda cells: np.array([_hashable(cell) in listed for cell in cells.tolist()], dtype=bool), self
        )

    def astype(self, kind: Any) -> GuardedColumn:
        """As numbers, integers (0 for a value that is not a number), or booleans."""
        wanted = np.dtype(kind)
        if wanted not in (np.dtype(bool), np.dtype(np.int64), np.dtype(np.float64)) or self.kind not in "biuf":
            raise InvalidArgument(
                "A column can be converted to float, int or bool. A column of text cannot be converted.",
                code="study-types",
            )
        if wanted.kind == "i" and self.kind == "f":
            # out-of-range casts may depend on a number's position, so there are none
            return _compute(lambda v: np.clip(np.nan_to_num(v), -_LARGEST, _LARGEST).astype(wanted), self)
        return _compute(lambda values: values.astype(wanted), self)

    def clip(self, low: Any, high: Any) -> GuardedColumn:
        """Clip to two public bounds."""
        return _clip(self, low, high)

    def _reduced(self, name: str, axis: Any = None) -> GuardedColumn:
        if self.ndim != 2 or axis not in (1, -1) or self.kind not in "biuf":
            raise NotAllowed(ROW_BY_ROW, code="study-row-by-row")
        return _compute(lambda values: _REDUCED[name](values, axis=1), self)

    def sum(self, axis: Any = None) -> GuardedColumn:
        """Over the numbers of each row: axis 1."""
        return self._reduced("sum", axis)

    def mean(self, axis: Any = None) -> GuardedColumn:
        """Over the numbers of each row: axis 1."""
        return self._reduced("mean", axis)

    def min(self, axis: Any = None) -> GuardedColumn:
        """Over the numbers of each row: axis 1."""
        return self._reduced("min", axis)

    def max(self, axis: Any = None) -> GuardedColumn:
        """Over the numbers of each row: axis 1."""
        return self._reduced("max", axis)

    def any(self, axis: Any = None) -> GuardedColumn:
        """Over the numbers of each row: axis 1."""
        return self._reduced("any", axis)

    def all(self, axis: Any = None) -> GuardedColumn:
        """Over the numbers of each row: axis 1."""
        return self._reduced("all", axis)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise NotAllowed(ROW_BY_ROW, code="study-row-by-row")

    __array__ = __bool__ = __len__ = __iter__ = __float__ = __int__ = __index__ = __setitem__ = _refuse
    __reduce_ex__ = __copy__ = __deepcopy__ = __format__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def _hashable(cell: Any) -> Any:
    """A cell that can be looked up. A list in a cell cannot be among the choices."""
    return cell if isinstance(cell, str | int | float | bool) else _UNKNOWN


def _unwrap(one: Any) -> Any:
    return one._opened() if isinstance(one, GuardedColumn) else one


def _compute(make: Callable[..., Any], *given: Any) -> GuardedColumn:
    """The result of `make`, as a column with as many rows as its inputs.

    Its error, if there is one, depends only on types and shapes, and quotes no cell.
    """
    if any(np.asarray(one).dtype.kind not in "biufU" for one in given if not isinstance(one, GuardedColumn | None)):
        raise InvalidArgument(
            _TYPES, code="study-types"
        )  # such as a Fraction, with which Python cannot divide by a cell of 0
    opened = [_unwrap(one) for one in given]
    rows = {len(values) for values, one in zip(opened, given, strict=True) if isinstance(one, GuardedColumn)}
    made = None
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            made = np.asarray(make(*opened))
    except Exception:  # not raised from here: it would stay in the chain of exceptions
        made = None
    if made is None:
        raise InvalidArgument(_TYPES, code="study-types")
    if made.ndim < 1 or {len(made)} != rows:
        raise NotAllowed(ROW_BY_ROW, code="study-row-by-row")
    return GuardedColumn(made)


def _row_by_row(function: Callable[..., Any], *given: Any) -> GuardedColumn:
    """An elementwise function of columns with the same number of axes, and of constants that are the same for every
    row.
    """
    axes = {one.ndim for one in given if isinstance(one, GuardedColumn)}
    constants = [np.asarray(one) for one in given if not isinstance(one, GuardedColumn)]
    if len(axes) != 1:
        raise InvalidArgument(
            "Columns in one expression must have the same number of axes. Write rows['X'][:, j].", code="wrong-shape"
        )
    if any(one.ndim > min(axes) or (one.ndim == min(axes) and one.shape[0] != 1) for one in constants):
        raise InvalidArgument(
            "A constant must be the same for every row: one number, or one for each place of a row.", code="wrong-shape"
        )
    return _compute(function, *given)


def _clip(*given: Any) -> GuardedColumn:
    _refuse_text(*given)
    return _row_by_row(np.clip, *given)


def _refuse_text(*given: Any) -> None:
    if any(isinstance(one, GuardedColumn) and one.kind not in "biuf" for one in given):
        raise InvalidArgument("Text can only be compared: with ==, != or column.isin([…]).", code="study-types")


def _product(left: Any, right: Any) -> GuardedColumn:
    """Rows times public weights. Each row's sum has its own order, whatever the position of the row."""
    weights = None if isinstance(right, GuardedColumn) else np.asarray(right)
    if not isinstance(left, GuardedColumn) or left.ndim != 2 or weights is None or weights.ndim not in (1, 2):
        raise NotAllowed(ROW_BY_ROW, code="study-row-by-row")
    if weights.dtype.kind not in "biuf":
        raise InvalidArgument(_TYPES, code="study-types")
    if weights.ndim == 1:
        return _compute(lambda rows: (rows * weights).sum(axis=1), left)
    return _compute(lambda rows: np.stack([(rows * w).sum(axis=1) for w in weights.T], axis=1), left)


class GuardedRows(Mapping[str, GuardedColumn]):
    """The columns of hidden rows."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._columns = {name: GuardedColumn(values) for name, values in columns.items()}

    def __getitem__(self, name: str) -> GuardedColumn:
        if name not in self._columns:
            raise InvalidArgument(
                f"Unknown column {name}. The columns are: {', '.join(self._columns)}.", code="unknown-column"
            )
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def apply(self, function: Callable[..., Any], *names: str, text: bool = False) -> GuardedColumn:
        """The values of a function of these columns, one number per row: `rows.apply(model.predict, "X")`.

        With `text`, it may be text, too. Promise: the caller's, that row i of the result depends on row i of the
        columns alone. No row can stop it, or change what kind of column it is: where the function says anything else,
        or fails, the row's value is missing.
        """
        if not names:
            raise InvalidArgument("Name the columns that the function reads.", code="empty")
        if not isinstance(text, bool):
            raise InvalidArgument("text must be True or False.", code="wrong-type")
        return _compute(lambda *given: each_row(function, *given, text=text), *(self[name] for name in names))


def each_row(function: Callable[..., Any], *columns: NDArray[Any], text: bool = False) -> NDArray[Any]:
    """The values of a function for each row: numbers, with NaN for none, or with `text` cells, with None for none.

    It is called with all rows at once, or row by row if that fails, or if numpy converted numbers to text because there
    was text among them.
    """
    rows = len(columns[0])
    said = try_call(function, *columns)
    if said is None or said.shape != (rows,) or said.dtype.kind not in ("biufUO" if text else "biufO"):
        said = np.full(rows, None, dtype=object)
        for i in range(rows):
            one = try_call(function, *(column[i : i + 1] for column in columns))
            if one is not None and one.shape == (1,):
                said[i] = one.tolist()[0]
    if text:
        return plain_cells(said)
    numbers = said if said.dtype.kind in "biuf" else np.array([_number(cell) for cell in plain_cells(said)])
    return numbers.astype(np.float64)


def try_call(function: Callable[..., Any], *columns: NDArray[Any]) -> NDArray[Any] | None:
    """The result of a function. None if it fails, without a trace of the reason."""
    try:
        return np.asarray(function(*columns))
    except Exception:
        return None


def _number(cell: Any) -> float:
    try:
        return np.nan if cell is None or isinstance(cell, str) else float(cell)
    except OverflowError:
        return np.nan


def plain_cells(cells: NDArray[Any]) -> NDArray[Any]:
    """Cells that can be compared: text, numbers, booleans. None for anything else."""
    kept = np.empty(len(cells), dtype=object)
    kept[:] = [_plain(cell) for cell in cells.tolist()]
    return kept


def _plain(cell: Any) -> Any:
    """Decided only by the class of the cell, and only for built-in classes: others may fail in any method."""
    kind = type(cell)
    if issubclass(kind, str):
        return text_of(cell)
    if issubclass(kind, bool | np.bool_):
        return bool(cell)
    if issubclass(kind, int):
        return int.__int__(cell)
    if issubclass(kind, np.integer) and not issubclass(kind, np.timedelta64):
        return np.asarray(cell).item()
    return number_of(cell) if issubclass(kind, float | np.floating) else None
