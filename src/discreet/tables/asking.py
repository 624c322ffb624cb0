"""The questions of table methods as SQL, and how they read the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.engines.duckdb.dialect import quote
from discreet.errors import InvalidArgument
from discreet.sql.reading.parse import Conditioned
from discreet.tables.grouped import Bins, by_group, unused

NAME = "data"
"""How the table is called in SQL."""


def query_of(shown: str, where: str | None, after: str = "", *, own: str = "") -> str | Conditioned:
    """A query of the table. `own` is a condition of the method, besides the user's `where`."""
    text = f"SELECT {shown} FROM {NAME}"
    if where is None:
        return f"{text}{f' WHERE {own}' if own else ''}{after}"
    return Conditioned(text, where, after, own)


def check_other(column: str, groups: Mapping[str, Any]) -> None:
    if column in groups:
        raise InvalidArgument(f"{column} is counted already. Remove it from by.", code="duplicates")


def names_of(groups: Mapping[str, Any]) -> tuple[list[str], str]:
    """The columns of a histogram: its groups and the value, and the count."""
    keys = [*groups, unused("value", list(groups))]
    return keys, unused("n", keys)


def selected(groups: Mapping[str, Any], value: str) -> str:
    keys, n = names_of(groups)
    return ", ".join([*map(quote, groups), f"{value} AS {keys[-1]}", f"COUNT(*) AS {n}"])


def grouped(groups: Mapping[str, Any], value: str) -> str:
    return f" GROUP BY {', '.join([*map(quote, groups), value])}"


def counts_by_value(answer: dict[str, list[Any]], *, keys: Sequence[str], n: str, bins: Bins | None) -> dict[Any, int]:
    """The counts of a histogram by value, or by group and value."""
    labels = answer[keys[-1]]
    shown = answer if bins is None else answer | {keys[-1]: [bins.ends[label] for label in labels]}
    return by_group(keys, [n], lambda values: values[0])(shown)


def text_of(query: str | Conditioned) -> str:
    return query if isinstance(query, str) else query.text


def cumulative_shares(keys: Sequence[str], place: str) -> tuple[str, str, list[str]]:
    """The share of rows up to each place in each group: the SELECT list, GROUP BY, and the names of the new columns."""
    names = [unused("at", keys), unused("share", keys)]
    at, share = map(quote, names)
    apart = f"PARTITION BY {', '.join(map(quote, keys))}"
    up_to = f"SUM(COUNT(*)) OVER ({apart} ORDER BY {at})"
    shares = f"{up_to} / NULLIF(SUM(COUNT(*)) OVER ({apart}), 0) AS {share}"
    shown = ", ".join([*map(quote, keys), f"{place} AS {at}", shares])
    return shown, f" GROUP BY {', '.join(map(quote, keys))}, {at}", names


def shares_by_group(
    answer: dict[str, list[Any]], *, keys: Sequence[str], names: Sequence[str], points: int
) -> dict[Any, Any]:
    """The shares of each group at all points. At a point that is not shown, it is that of the point before."""
    found: dict[Any, Any] = {}
    for *group, at, share in zip(*(answer[name] for name in (*keys, *names)), strict=True):
        own = found.setdefault(group[0] if len(keys) == 1 else tuple(group), np.full(points, np.nan))
        own[min(at, points - 1)] = 0.0 if share is None else share
    return {group: _growing(own) for group, own in found.items()}


def _growing(shares: Any) -> Any:
    """The closest shares that never decrease. The largest error does not grow."""
    from scipy.optimize import isotonic_regression

    before = np.maximum.accumulate(np.where(np.isnan(shares), -1, np.arange(len(shares))))
    known = np.where(before < 0, 0.0, shares[before])
    return np.clip(isotonic_regression(known).x, 0.0, 1.0)


def largest_by_group(answer: dict[str, list[Any]], *, keys: Sequence[str], n: str, number: int) -> dict[Any, Any]:
    """The values with the largest noisy counts in each group."""
    *groups, value = (answer[key] for key in keys)
    counts: dict[Any, dict[str, list[Any]]] = {}
    for group, one, count in zip(zip(*groups, strict=True), value, answer[n], strict=True):
        found = counts.setdefault(group[0] if len(group) == 1 else group, {"value": [], "n": []})
        found["value"].append(one)
        found["n"].append(count)
    return {group: largest(found, number=number) for group, found in counts.items()}


def largest(answer: dict[str, list[Any]], *, number: int) -> Any:
    """The values with the largest noisy counts: one, or a list of several. Equal counts keep the order of the answer,
    which is sorted by value.
    """
    counts = sorted(zip(answer["value"], answer["n"], strict=True), key=lambda pair: -pair[1])
    listed = [value for value, _ in counts[:number]]
    return listed if number > 1 else next(iter(listed), None)
