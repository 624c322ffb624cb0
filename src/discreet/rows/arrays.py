"""Arrays on their own device: the few operations we need have the same names in numpy, torch and cupy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument


def namespace(array: Any) -> Any:
    """The module whose functions work on this array without moving it."""
    package = type(array).__module__.partition(".")[0]
    if package in ("numpy", "torch", "cupy"):
        return sys.modules[package]
    raise InvalidArgument(f"The array must be of numpy, torch or cupy, not {type(array).__name__}.", code="wrong-type")


def is_numpy(array: Any) -> bool:
    """Whether the array is numpy's, in the memory of this machine."""
    return type(array).__module__.partition(".")[0] == "numpy"


def is_spark_dataframe(data: Any) -> bool:
    """Whether this is a Spark DataFrame, classic or Connect. Its rows stay in Spark."""
    return type(data).__module__.startswith("pyspark.sql") and hasattr(data, "mapInArrow")


def to_array(array: Any) -> Any:
    """The array itself if it is on a GPU, otherwise as numpy. A torch tensor on the CPU is not copied."""
    if type(array).__module__.partition(".")[0] == "torch":
        return array if array.is_cuda else array.detach().float().numpy() if _is_half(array) else array.detach().numpy()
    if type(array).__module__.partition(".")[0] == "cupy":
        return array
    return np.asarray(array)


def _is_half(array: Any) -> bool:
    return str(array.dtype) in ("torch.bfloat16", "torch.float16")


def doubles(array: Any) -> Any:
    """The array in double precision, on the same device."""
    xp = namespace(array)
    return array.to(xp.float64) if xp.__name__ == "torch" else array.astype(xp.float64)


def to_device_of(values: Any, array: Any) -> Any:
    """Numbers as doubles on the device of `array`."""
    xp = namespace(array)
    if type(values).__module__.partition(".")[0] in ("torch", "cupy"):
        return doubles(values)
    if xp.__name__ == "torch":
        return xp.as_tensor(np.asarray(values, dtype=np.float64), device=array.device)
    return xp.asarray(values, dtype=xp.float64)


def scaled(rows: Any, offset: Any, scale: Any, most: float | None = None) -> Any:
    """Columns shifted and scaled, as doubles, and each cell clamped to ±`most`. What is infinite or no number stays."""
    xp = namespace(rows)
    cells = (doubles(rows) - to_device_of(offset, rows)) * to_device_of(scale, rows)
    return cells if most is None else xp.where(xp.isfinite(cells), xp.clip(cells, -most, most), cells)


def indices_to_device_of(values: NDArray[np.int64], array: Any) -> Any:
    """Indices on the device of `array`."""
    xp = namespace(array)
    return xp.as_tensor(values, device=array.device) if xp.__name__ == "torch" else xp.asarray(values)


def integers(array: Any) -> Any:
    """Whole doubles as 64-bit integers, on the same device."""
    xp = namespace(array)
    return array.to(xp.int64) if xp.__name__ == "torch" else array.astype(xp.int64)


def flags_to_numbers(flags: Any, like: Any) -> Any:
    """True and False as 1 and 0, in the type of `like`."""
    xp = namespace(like)
    return flags.to(like.dtype) if xp.__name__ == "torch" else flags.astype(like.dtype)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit numpy to one thread in this block, if possible. For small arrays, more threads would only wait for each
    other.
    """
    try:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]
    except ModuleNotFoundError:
        yield
        return
    with threadpool_limits(limits=1, user_api="blas"):
        yield
