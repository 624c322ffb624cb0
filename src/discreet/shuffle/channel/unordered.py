"""Entries without an order of arrival: a key of bytes, and a body of one length for all.

`Buckets`, for SQLite, are blobs of one length that all exist from the start, each with its entries sorted and the rest
empty. They are overwritten in place: the file is byte for byte the same, whatever the order in which entries arrived.
If there are too many entries, all buckets are created again, twice as many.

`EntryRows`, for PostgreSQL, are rows. Its files and its log keep them in the order of arrival until the table is
emptied.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Protocol

from discreet.errors import DiscreetError
from discreet.ledger.stores.store import Execute

Entry = tuple[bytes, bytes]
CAPACITY = 16
"""Entries of a bucket. On average it is a third full, and a commit writes one for each entry."""
_AT_ONCE, _BITS = 1000, "bits"
Lengths = tuple[int, int]


class Entries(Protocol):
    """What the shuffler's store needs from them, each within a transaction."""

    schema: tuple[str, ...]
    """The statements that make the tables."""

    def add(self, execute: Execute, entries: Sequence[Entry]) -> None:
        """Store entries. An entry whose key exists already changes nothing, and of two with the same key the first is
        stored.
        """

    def found(self, execute: Execute, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The bodies of those keys that exist."""

    def all(self, execute: Execute) -> list[Entry]:
        """All entries, in the order of their keys."""

    def count(self, execute: Execute) -> int:
        """How many there are."""

    def clear(self, execute: Execute) -> None:
        """Delete all of them permanently."""

    def take_over(self, execute: Execute) -> None:
        """Convert what version 0.1 stored in another form."""


class EntryRows:
    """One row for each entry."""

    def __init__(self, name: str, key: str, body: str) -> None:
        self._name, self._key, self._body = name, key, body
        columns = f"{key} {{bytes}} PRIMARY KEY, {body} {{bytes}} NOT NULL"
        self.schema: tuple[str, ...] = (f"CREATE TABLE IF NOT EXISTS {name} ({columns})",)

    def add(self, execute: Execute, entries: Sequence[Entry]) -> None:
        if entries:
            marks = ", ".join(["(?, ?)"] * len(entries))
            execute(f"INSERT INTO {self._name} VALUES {marks} ON CONFLICT DO NOTHING", *_flat(entries))

    def found(self, execute: Execute, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        marks = ", ".join("?" * len(keys))
        wanted = f"SELECT {self._key}, {self._body} FROM {self._name} WHERE {self._key} IN ({marks})"
        return {bytes(key): bytes(body) for key, body in execute(wanted, *keys)}

    def all(self, execute: Execute) -> list[Entry]:
        rows = execute(f"SELECT {self._key}, {self._body} FROM {self._name} ORDER BY {self._key}")
        return [(bytes(key), bytes(body)) for key, body in rows]

    def count(self, execute: Execute) -> int:
        return int(execute(f"SELECT COUNT(*) FROM {self._name}")[0][0])

    def clear(self, execute: Execute) -> None:
        execute(f"TRUNCATE {self._name}")

    def take_over(self, execute: Execute) -> None:
        """Nothing to do: rows have not changed."""


class Buckets:
    """2^bits blobs. A public hash of its key decides which one an entry is in.

    All tables of a database have the same number of buckets and are doubled together, one step at a time: their
    position in the file follows from their number, not from which of them was full first.
    """

    def __init__(self, name: str, together: list[Buckets]) -> None:
        together.append(self)
        self._together, self._table, self._old = together, f"{name}_bucket", name
        self.schema: tuple[str, ...] = (
            f"CREATE TABLE IF NOT EXISTS {self._table} (number INTEGER PRIMARY KEY, body BLOB NOT NULL)",
            "CREATE TABLE IF NOT EXISTS held (name TEXT PRIMARY KEY, number INTEGER NOT NULL)",
        )

    def add(self, execute: Execute, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        lengths, bits, held = {_lengths_of(entry) for entry in entries}, _noted(execute, _BITS), self.count(execute)
        if not execute(f"SELECT 1 FROM {self._table} WHERE number = 0"):
            self._make(execute, bits, [], min(lengths))
        while True:
            touched, known = self._read(execute, {_number(key, bits) for key, _ in entries})
            if len(lengths | known) > 1:
                raise DiscreetError(
                    "All reports of a task have the same length, but this database holds reports of another. "
                    "Choose another place.",
                    code="shuffle-other-task",
                )
            before = sum(map(len, touched.values()))
            for key, body in entries:
                touched[_number(key, bits)].setdefault(key, body)
            if max(map(len, touched.values())) <= CAPACITY:
                break
            bits = self._double(execute, bits)
        self._write(execute, touched, min(lengths))
        _note(execute, self._table, held + sum(map(len, touched.values())) - before)

    def _double(self, execute: Execute, bits: int) -> int:
        for one in self._together:
            blobs = execute(f"SELECT body FROM {one._table} WHERE number = 0")
            if blobs:
                one._make(execute, bits + 1, one.all(execute), _lengths(blobs[0][0]))
        _note(execute, _BITS, bits + 1)
        return bits + 1

    def _make(self, execute: Execute, bits: int, entries: Sequence[Entry], lengths: tuple[int, int]) -> None:
        """Create all buckets again, with these entries."""
        made: dict[int, dict[bytes, bytes]] = {number: {} for number in range(2**bits)}
        for key, body in entries:
            made[_number(key, bits)][key] = body
        execute(f"DELETE FROM {self._table}")
        for start in range(0, 2**bits, _AT_ONCE):
            some = range(start, min(start + _AT_ONCE, 2**bits))
            self._write(execute, {number: made[number] for number in some}, lengths)

    def _read(self, execute: Execute, numbers: Iterable[int]) -> tuple[dict[int, dict[bytes, bytes]], set[Lengths]]:
        """The entries of these buckets, and how long the keys and bodies are that they are made for."""
        listed = sorted(numbers)
        wanted = f"SELECT number, body FROM {self._table} WHERE number IN ({', '.join('?' * len(listed))})"
        blobs = execute(wanted, *listed)
        return {number: dict(_unpack(blob)) for number, blob in blobs}, {_lengths(blob) for _, blob in blobs}

    def _write(self, execute: Execute, buckets: dict[int, dict[bytes, bytes]], lengths: Lengths) -> None:
        blobs = [(number, _pack(sorted(one.items()), lengths)) for number, one in sorted(buckets.items())]
        marks = ", ".join(["(?, ?)"] * len(blobs))
        kept = "ON CONFLICT (number) DO UPDATE SET body = excluded.body"
        execute(f"INSERT INTO {self._table} VALUES {marks} {kept}", *(part for pair in blobs for part in pair))

    def found(self, execute: Execute, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        bits, wanted = _noted(execute, _BITS), set(keys)
        inside = self._read(execute, {_number(key, bits) for key in keys})[0]
        return {key: body for one in inside.values() for key, body in one.items() if key in wanted}

    def all(self, execute: Execute) -> list[Entry]:
        blobs = execute(f"SELECT body FROM {self._table}")
        return sorted(entry for (blob,) in blobs for entry in _unpack(blob))

    def count(self, execute: Execute) -> int:
        return _noted(execute, self._table)

    def clear(self, execute: Execute) -> None:
        execute(f"DELETE FROM {self._table}")
        execute("DELETE FROM held WHERE name = ?", self._table)

    def take_over(self, execute: Execute) -> None:
        """Convert what version 0.1 stored as rows."""
        if execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", self._old):
            rows = [(bytes(key), bytes(body)) for key, body in execute(f"SELECT * FROM {self._old} ORDER BY 1")]
            self.add(execute, rows)
            execute(f"DROP TABLE {self._old}")


def _noted(execute: Execute, name: str) -> int:
    found = execute("SELECT number FROM held WHERE name = ?", name)
    return int(found[0][0]) if found else 0


def _note(execute: Execute, name: str, number: int) -> None:
    execute("INSERT INTO held VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET number = excluded.number", name, number)


def _number(key: bytes, bits: int) -> int:
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") >> (64 - bits)


def _pack(entries: Sequence[Entry], lengths: Lengths) -> bytes:
    key, body = lengths
    head = len(entries).to_bytes(2, "big") + key.to_bytes(2, "big") + body.to_bytes(4, "big")
    return (head + b"".join(_flat(entries))).ljust(len(head) + CAPACITY * (key + body), b"\0")


def _lengths_of(entry: Entry) -> Lengths:
    return len(entry[0]), len(entry[1])


def _lengths(blob: bytes) -> Lengths:
    return int.from_bytes(blob[2:4], "big"), int.from_bytes(blob[4:8], "big")


def _unpack(blob: bytes) -> Iterable[Entry]:
    count, (key, body) = int.from_bytes(blob[:2], "big"), _lengths(blob)
    for start in range(8, 8 + count * (key + body), key + body):
        yield blob[start : start + key], blob[start + key : start + key + body]


def _flat(entries: Iterable[Entry]) -> list[bytes]:
    return [one for entry in entries for one in entry]
