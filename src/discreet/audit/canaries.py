"""Canaries: rows that a model would not learn unless they are in its data, in or out of it by fair coins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.randomness import random_words
from discreet.extras import need

Floats = NDArray[np.float64]


def coins(count: int) -> NDArray[np.bool_]:
    """Independent fair coins, from the one source of randomness."""
    words = random_words(-(-count // 64))
    return np.unpackbits(words.view(np.uint8))[:count].astype(bool)


def corners(count: int, columns: int) -> Floats:
    """Rows whose cells are −1 or 1, at right angles as far as there is room: Hadamard matrices with random signs."""
    size = 1 << max(columns - 1, 0).bit_length()
    matrix = np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    blocks = [matrix[:, :columns] * _signs(columns) for _ in range(-(-count // size))]
    return np.concatenate(blocks)[:count] * _signs(count)[:, None]


def _signs(count: int) -> Floats:
    return np.where(coins(count), 1.0, -1.0)


def hard_rows(model: Any, X: Any, y: Any, count: int) -> tuple[Floats, Any]:
    """Corners of what the model declares, or else of these rows, and targets that have nothing to do with them.

    They are as long as a row may be and nearly at right angles to each other, so each leaves its own trace.
    """
    if isinstance(X, Mapping) or not hasattr(X, "shape") or getattr(X, "dtype", np.dtype(object)).kind not in "biuf":
        raise InvalidArgument(
            "Canaries can be made for an array of numbers only. Pass rows of your own: canaries=rows, or (rows, y).",
            code="audit-canaries",
        )
    signs = corners(count, X.shape[1])
    ranges, norm = getattr(model, "feature_ranges", None), getattr(model, "feature_norm", None)
    if _is_declared(ranges):
        low, high = np.broadcast_to(np.asarray(ranges, dtype=np.float64), (X.shape[1], 2)).T
    elif norm is not None and not isinstance(norm, str):
        low = np.full(X.shape[1], -float(norm) / np.sqrt(X.shape[1]))
        high = -low
    else:
        low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    return np.where(signs > 0, high, low), None if y is None else _targets(model, np.asarray(y), count)


def _targets(model: Any, y: Any, count: int) -> Any:
    classes, bound = getattr(model, "classes", None), getattr(model, "target_bound", None)
    if classes is not None:
        return np.asarray(list(classes))[random_words(count) % np.uint64(len(list(classes)))]
    if bound is None or isinstance(bound, str):
        ends = y.min(), y.max()
    else:
        ends = 0.0 if y.min() >= 0 else -float(bound), float(bound)
    return np.where(coins(count), ends[1], ends[0])


def _is_declared(ranges: Any) -> bool:
    return ranges is not None and not isinstance(ranges, str)


# --- rows of any container ----------------------------------------------------------------------------------------


def size_of(rows: Any) -> int:
    """The number of rows of an array, a frame, or a mapping from names to columns."""
    return len(next(iter(rows.values()))) if isinstance(rows, Mapping) else len(rows)


def take(rows: Any, places: NDArray[np.int64]) -> Any:
    """The rows at these places, in this order."""
    if isinstance(rows, Mapping):
        return {name: np.asarray(column)[places] for name, column in rows.items()}
    return rows.iloc[places] if hasattr(rows, "iloc") else np.asarray(rows)[places]


def stack(first: Any, second: Any) -> Any:
    """Both tables as one, in a copy."""
    if isinstance(first, Mapping):
        return {name: np.concatenate([np.asarray(first[name]), np.asarray(second[name])]) for name in first}
    if hasattr(first, "iloc"):
        return need("pandas", None, "audit_model").concat([first, second], ignore_index=True)
    return np.concatenate([np.asarray(first), np.asarray(second)])
