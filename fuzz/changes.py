"""How seeds are changed: as bytes, as text by words and pieces of other seeds, and as plain values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

_PIECES = re.compile(r"\w+|\s+|[^\w\s]")
ODD_TEXTS = (
    "",
    " ",
    "\0",
    "\n",
    "ε",
    "😀",
    "\u202e",
    "\ufeff",
    "\x1b[31m",
    "a" * 5000,
    "%s",
    "{}",
    "~nobody",
    "~who",
    "..",
    ".",
)
ODD_NUMBERS = (0, -1, 1, 2**31, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 0.0, -0.0, 1e-300, 1e308, 1e400)
"""Integers at the ends of their types, and floats of which the last is infinite."""
NUMBERS_AS_TEXT = (*map(str, ODD_NUMBERS), "nan", "inf", "-inf", "1e999", "9" * 5000, "0x10", "1_000", "٣", "")


def picked(values: Sequence[Any]) -> st.SearchStrategy[Any]:
    """One of some values. Unlike `sampled_from` it does not print all of them, which are long here."""
    fixed = tuple(values)
    return st.integers(0, len(fixed) - 1).map(lambda at: fixed[at])


@st.composite
def byte_changes(draw: Any, seeds: st.SearchStrategy[bytes]) -> bytes:
    """A seed with some bytes changed, cut out, doubled or put in."""
    data = draw(seeds)
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.sampled_from((0, 1, 1, 2, 4, 16, 64, 1024, 10**9))))
        middle = draw(
            st.one_of(
                st.binary(max_size=8),
                st.sampled_from((b"\0", b"\xff", b"\0" * 64, b"\xff" * 8)),
                st.just(data[start:end]).map(lambda part: part + part),
                st.just(bytes(255 - byte for byte in data[start:end][:64])),
            )
        )
        data = data[:start] + middle + data[end:]
    return data


@st.composite
def text_changes(draw: Any, seeds: Sequence[str], words: Sequence[str]) -> str:
    """A seed with pieces of it replaced, dropped, doubled, nested or exchanged for pieces of another seed."""
    pieces = _PIECES.findall(draw(picked(seeds)))
    for _ in range(draw(st.integers(0, 5))):
        if not pieces:
            break
        start = draw(st.integers(0, len(pieces) - 1))
        end = min(len(pieces), start + draw(st.sampled_from((0, 1, 1, 1, 2, 5, 20))))
        match draw(st.sampled_from(("word", "word", "other", "other", "double", "deep", "text", "drop"))):
            case "word":
                middle = [draw(st.sampled_from(words))]
            case "other":
                found = _PIECES.findall(draw(picked(seeds)))
                at = draw(st.integers(0, len(found)))
                middle = found[at : at + draw(st.sampled_from((1, 3, 10, 40)))]
            case "double":
                middle = pieces[start:end] * draw(st.sampled_from((2, 3, 50)))
            case "deep":
                times = draw(st.sampled_from((1, 2, 30, 300)))
                left, right = draw(st.sampled_from((("(", ")"), ("[", "]"), ("{", "}"), ("NOT ", ""), ("-", ""))))
                middle = [left * times, *pieces[start:end], right * times]
            case "text":
                middle = [draw(st.one_of(st.text(max_size=6), st.sampled_from(ODD_TEXTS)))]
            case _:
                middle = []
        pieces = pieces[:start] + middle + pieces[end:]
        pieces = pieces[:4000]
    return "".join(pieces)
