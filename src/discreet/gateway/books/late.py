"""Answers that came too late: the only thing that time tells, so they are counted, and few are allowed.

Whether an answer is late may depend on the data. With `late_allowed` L and K lanes, at most L + K answers are late: the
one after L stops the gateway, while the other lanes still run. Over N charged questions, time tells at most log2 of
Σ_{i ≤ L+K} C(N, i) bits. Charged questions count from the last `resume`, which begins a new period with bits of its
own.
"""

from __future__ import annotations

import math
from typing import Any

from discreet.gateway.books import audit
from discreet.gateway.books.store import GatewayStore, number_in_meta, set_number
from discreet.ledger.stores.store import Execute


def record_late(store: GatewayStore, account: str, digest: str, now: float) -> int:
    """Count a late answer, and say how many there are in this period. `digest` is that of the request, after its key
    if it has one.
    """
    with store.write() as execute:
        period, count = number_in_meta(execute, "period"), number_in_meta(execute, "late") + 1
        number = execute("SELECT COALESCE(MAX(number), 0) + 1 FROM late")[0][0]
        execute(
            "INSERT INTO late (number, account, digest, at, period) VALUES (?, ?, ?, ?, ?)",
            *(number, account, digest, audit.microseconds(now), period),
        )
        set_number(execute, "late", count)
        if number_in_meta(execute, "asked") < count:  # it was asked before the owner resumed all
            set_number(execute, "asked", count)
        audit.append(execute, now, account, "late", {"request": digest})
    return count


def late_with(store: GatewayStore, account: str, key: str) -> str | None:
    """The digest of the request with this key whose answer was late. None if there is none."""
    with store.read() as execute:
        found = execute("SELECT digest FROM late WHERE account = ? AND digest LIKE ?", account, f"{key} %")
    return found[0][0] if found else None


def late_count(store: GatewayStore) -> int:
    """How many answers were late since the owner last resumed all."""
    with store.read() as execute:
        return number_in_meta(execute, "late")


def charged_count(store: GatewayStore) -> int:
    """How many charged questions were started since the owner last resumed all."""
    with store.read() as execute:
        return number_in_meta(execute, "asked")


def clear(execute: Execute, late_at_most: int) -> dict[str, Any]:
    """Begin a new period, inside a transaction. Returns the counts of the last one, for the audit."""
    asked = number_in_meta(execute, "asked")
    ended = {"late": number_in_meta(execute, "late"), "questions": asked, "bits": bits(late_at_most, asked)}
    set_number(execute, "past_tenths", number_in_meta(execute, "past_tenths") + round(10 * ended["bits"]))
    set_number(execute, "period", number_in_meta(execute, "period") + 1)
    set_number(execute, "asked", 0)
    set_number(execute, "late", 0)
    return ended


def promised_bits(store: GatewayStore, late_at_most: int) -> float:
    """How many bits time may have told in all periods together."""
    with store.read() as execute:
        past, asked = number_in_meta(execute, "past_tenths"), number_in_meta(execute, "asked")
    return past / 10 + bits(late_at_most, asked)


def bits(late_at_most: int, charged: int) -> float:
    """How many bits time tells in one period at most, rounded up to a tenth.

    >>> bits(1, 1000)
    10.0
    """
    patterns = sum(math.comb(charged, late) for late in range(late_at_most + 1))
    return int(patterns**10 - 1).bit_length() / 10  # the smallest t with 2^t ≥ patterns^10
