"""The keys of many groups, column by column, so that a million of them are not a million Python objects."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]
KINDS = ("integer", "number", "text", "boolean", "date", "timestamp")
_MACHINE = 2**62


def arrow_type(kind: str) -> Any:
    """The Arrow type of the keys of a kind."""
    import pyarrow as pa

    kinds = {"integer": pa.int64(), "number": pa.float64(), "text": pa.large_string()}
    kinds |= {"boolean": pa.bool_(), "date": pa.date32(), "timestamp": pa.timestamp("us")}
    return kinds[kind]


class KeyColumns(Sequence[tuple[Any, ...]]):
    """The keys of groups: an Arrow array for each part of the key. As a sequence, it has a tuple for each group.

    >>> keys = KeyColumns.of([("b", 1), ("a", None)], ["text", "integer"])
    >>> list(keys.take(keys.order()))
    [('a', None), ('b', 1)]
    """

    def __init__(self, columns: Sequence[Any], kinds: Sequence[str], size: int) -> None:
        import pyarrow as pa

        self.kinds, self._size = tuple(kinds), size
        self.columns = tuple(map(_whole, columns))
        assert all(len(column) == size for column in self.columns)
        assert all(
            isinstance(c, pa.Array) and c.type == arrow_type(k) for c, k in zip(self.columns, kinds, strict=True)
        )

    @classmethod
    def read(cls, columns: Sequence[Any], kinds: Sequence[str], size: int) -> KeyColumns:
        """From columns of Arrow, of these kinds."""
        return cls([c.cast(arrow_type(kind)) for c, kind in zip(columns, kinds, strict=True)], kinds, size)

    @classmethod
    def of(cls, keys: Sequence[tuple[Any, ...]], kinds: Sequence[str]) -> KeyColumns:
        """From a tuple for each group."""
        if isinstance(keys, KeyColumns):
            return keys
        import pyarrow as pa

        parts = zip(*keys, strict=True) if len(keys) else [()] * len(kinds)
        columns = [pa.array(list(part), arrow_type(kind)) for part, kind in zip(parts, kinds, strict=True)]
        return cls(columns, kinds, len(keys))

    @classmethod
    def product(cls, domains: Sequence[Any], kinds: Sequence[str]) -> KeyColumns:
        """Every combination of the values of these columns. The last one changes fastest."""
        import pyarrow as pa

        sizes = [len(domain) for domain in domains]
        size = int(np.prod(sizes, dtype=np.int64))
        places = (
            np.unravel_index(np.arange(size), sizes) if sizes and size else [np.zeros(0, dtype=np.int64)] * len(sizes)
        )
        columns = [domain.take(pa.array(place)) for domain, place in zip(domains, places, strict=True)]
        return cls(columns, kinds, size)

    def take(self, places: Any) -> KeyColumns:
        """The keys at these places."""
        import pyarrow as pa

        chosen = pa.array(np.asarray(places, dtype=np.int64))
        return KeyColumns([column.take(chosen) for column in self.columns], self.kinds, len(chosen))

    def written(self, order: Sequence[int]) -> KeyColumns:
        """The same keys, with their parts in another order."""
        return KeyColumns([self.columns[n] for n in order], [self.kinds[n] for n in order], self._size)

    def order(self) -> Places:
        """The places of the keys in the order of their values: by the first part, then by the next. Numbers by size,
        dates by time, text by its characters, and NULL last.
        """
        import pyarrow.compute as pc

        if len(self.columns) == 1:
            return np.asarray(pc.sort_indices(self.columns[0])).astype(np.int64)
        ranks = [ranks_of(column) for column in self.columns]
        return np.lexsort(ranks[::-1]) if ranks else np.arange(self._size)

    def places_in(self, others: KeyColumns) -> Places:
        """The place of each key among other keys, which are all different. −1 for a key that is not among them."""
        own, their = np.zeros(len(self), dtype=np.int64), np.zeros(len(others), dtype=np.int64)
        known = np.ones(len(self), dtype=bool)
        for mine, column in zip(self.columns, others.columns, strict=True):
            values = column.unique()
            place, size = places_of(mine, values), max(len(values), 1)
            known &= place >= 0
            both = np.concatenate([own * size + place, their * size + places_of(column, values)])
            _, codes = np.unique(both, return_inverse=True)  # dense again, so that nothing overflows
            own, their = codes[: len(self)], codes[len(self) :]
        found = np.full(int(max(own.max(initial=0), their.max(initial=0))) + 1, -1, dtype=np.int64)
        found[their] = np.arange(len(others))
        return np.where(known, found[own], -1) if len(others) else np.full(len(self), -1, dtype=np.int64)

    def parts(self) -> list[list[Any]]:
        """The kind of each column, which keys are NULL, and its cells as arrays, for storage. NULL is stored as 0."""
        return [[kind, *_arrays(column)] for kind, column in zip(self.kinds, self.columns, strict=True)]

    @classmethod
    def from_parts(cls, parts: Sequence[Sequence[Any]], size: int) -> KeyColumns:
        """What `parts` describes."""
        columns = [_column(*part) for part in parts]
        if any(len(column) != size for column in columns):
            raise ValueError("the columns have different sizes")
        return cls(columns, [part[0] for part in parts], size)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, place: int) -> tuple[Any, ...]: ...
    @overload
    def __getitem__(self, place: slice) -> list[tuple[Any, ...]]: ...
    def __getitem__(self, place: int | slice) -> tuple[Any, ...] | list[tuple[Any, ...]]:
        if isinstance(place, slice):
            return list(self.take(np.arange(self._size)[place]))
        if not -self._size <= place < self._size:
            raise IndexError(place)
        return tuple(column[place % self._size].as_py() for column in self.columns)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return zip(*(c.to_pylist() for c in self.columns), strict=True) if self.columns else iter([()] * self._size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(other) == len(self) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<keys of {self._size:,} groups: {', '.join(self.kinds)}>"


def places_of(column: Any, values: Any) -> Places:
    """The place of each cell among different values of the same type. −1 for one that is not among them."""
    import pyarrow.compute as pc

    return np.asarray(pc.index_in(column, value_set=values).fill_null(-1)).astype(np.int64)


def ranks_of(column: Any) -> Places:
    """The place of each cell's value in the order of all different values. NULL is the last."""
    import pyarrow.compute as pc

    values = column.unique()
    return places_of(column, values.take(pc.sort_indices(values)))


def whole_numbers(column: Any) -> NDArray[Any]:
    """A column of integers, without NULL, as machine integers if all are below 2^62, and otherwise as Python ones."""
    import pyarrow as pa

    column = _whole(column)
    if pa.types.is_decimal128(column.type) and column.type.scale == 0:
        # two words of 64 bits each: the engine's integers of 128 bits may have more digits than a decimal has
        words = np.frombuffer(column.buffers()[1], dtype=np.int64).reshape(-1, 2)[column.offset :][: len(column)]
        if not np.array_equal(words[:, 0] >> 63, words[:, 1]):
            lower = words[:, 0].view(np.uint64) if len(words) else words[:, 0]
            return np.asarray(words[:, 1].astype(object) * 2**64 + np.ascontiguousarray(lower).astype(object))
        numbers = np.ascontiguousarray(words[:, 0])
    elif pa.types.is_integer(column.type):
        numbers = np.asarray(column).astype(np.int64)
    else:
        return narrowed(_objects(int(cell) for cell in column.to_pylist()))
    small = not len(numbers) or (numbers.min() > -_MACHINE and numbers.max() < _MACHINE)
    return numbers if small else numbers.astype(object)


def narrowed(numbers: NDArray[Any]) -> NDArray[Any]:
    """Python integers as machine integers, if all are below 2^62."""
    small = all(-_MACHINE < number < _MACHINE for number in numbers.tolist()) if numbers.dtype == object else True
    return numbers.astype(np.int64) if small else numbers


def _arrays(column: Any) -> list[NDArray[Any]]:
    """Which cells are NULL, and the cells: numbers, or the ends of texts and their bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
    if column.type != pa.large_string():
        whole = {pa.date32(): pa.int32(), pa.timestamp("us"): pa.int64()}.get(column.type, column.type)
        numbers = pc.fill_null(column.cast(whole), pa.scalar(0).cast(whole))
        return [missing, np.asarray(numbers.to_numpy(zero_copy_only=False))]
    column = pc.fill_null(column, "") if column.null_count else column
    _, starts, data = column.buffers()
    ends = (
        np.frombuffer(starts, dtype=np.int64)[column.offset :][: len(column) + 1] if len(column) else np.zeros(1, int)
    )
    return [missing, ends[1:] - ends[0], np.frombuffer(data or b"", dtype=np.uint8)[ends[0] : ends[-1]]]


def _column(kind: str, missing: NDArray[Any], *arrays: NDArray[Any]) -> Any:
    import pyarrow as pa

    if kind != "text":
        return pa.array(arrays[0], mask=missing).cast(arrow_type(kind))
    ends, data = arrays
    if len(ends) != len(missing) or (np.diff(ends, prepend=0) < 0).any() or ends.max(initial=0) > data.size:
        raise ValueError("the ends of the texts are wrong")
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])
    valid = pa.py_buffer(np.packbits(~missing.astype(bool), bitorder="little").tobytes())
    buffers = [valid, pa.py_buffer(starts), pa.py_buffer(np.ascontiguousarray(data))]
    made = pa.Array.from_buffers(pa.large_string(), len(ends), buffers)
    made.validate(full=True)
    return made


def _objects(cells: Iterable[Any]) -> NDArray[Any]:
    listed = list(cells)
    made = np.empty(len(listed), dtype=object)
    made[:] = listed
    return made


def _whole(column: Any) -> Any:
    """One array instead of chunks."""
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
