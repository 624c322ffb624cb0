"""What a ledger's mark says about a measurement as sums over cells, written and read. Everything in it is public."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from discreet.sql.estimates.cells import LinearMeasure, LinearQuestion, Places

_COLUMNS = r"[0-9]+:[0-9]+(?: [0-9]+:[0-9]+)*|-"
_SUM = r"[0-9a-f]{32} (?:x[0-9a-f]+|n[-0-9.*]+)"
_MORE = re.compile(
    rf"; cells ({_COLUMNS}) in ([0-9]+); sums ({_SUM}(?:, {_SUM})*)(?:; part ([0-9]+) of ([0-9a-f]{{32}}))?"
)


@dataclass(frozen=True)
class Part:
    """A charge that pays only for what was missing: so many parts of the whole price, which has this digest."""

    parts: int
    whole: str


def write_linear(question: LinearQuestion, part: Part | None = None) -> str:
    """The end of a mark."""
    columns = " ".join(f"{c}:{size}" for c, size in zip(question.columns, question.sizes, strict=True)) or "-"
    sums = ", ".join(f"{one.vector} {_write_places(one.places, question.groups)}" for one in question.measures)
    paid = "" if part is None else f"; part {part.parts} of {part.whole}"
    return f"; cells {columns} in {question.groups}; sums {sums}{paid}"


def read_linear(text: str) -> tuple[LinearQuestion, Part | None] | None:
    """What a mark ends with. None if it says nothing about cells."""
    found = _MORE.search(text)
    if found is None or found.end() != len(text):
        return None
    columns, groups, sums, parts, whole = found.groups()
    pairs = [tuple(map(int, one.split(":"))) for one in columns.split()] if columns != "-" else []
    sizes = tuple(size for _, size in pairs)
    cells, number = int(np.prod(sizes, dtype=np.int64)), int(groups)
    measures = tuple(LinearMeasure(one[:32], _read_places(one[33:], cells)) for one in sums.split(", "))
    if any(len(one.places) != cells or one.places.max(initial=-1) >= number for one in measures):
        return None
    question = LinearQuestion(tuple(column for column, _ in pairs), sizes, number, measures)
    return question, None if parts is None else Part(int(parts), whole)


def _write_places(places: Places, groups: int) -> str:
    if groups == 1:
        return "x" + np.packbits(places == 0).tobytes().hex()
    ends = np.flatnonzero(np.diff(places)) + 1
    runs = zip(places[np.r_[0, ends]].tolist(), np.diff(np.r_[0, ends, len(places)]).tolist(), strict=True)
    return "n" + ".".join(str(place) if many == 1 else f"{place}*{many}" for place, many in runs)


def _read_places(text: str, cells: int) -> Places:
    if text[0] == "x":
        bits = np.unpackbits(np.frombuffer(bytes.fromhex(text[1:]), dtype=np.uint8))[:cells]
        return np.where(bits == 1, 0, -1).astype(np.int16)
    runs = [one.partition("*") for one in text[1:].split(".")]
    return np.repeat([int(place) for place, _, _ in runs], [int(many or 1) for _, _, many in runs]).astype(np.int16)
