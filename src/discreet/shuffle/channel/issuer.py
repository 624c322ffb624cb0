"""The issuer: it knows who is a person, and signs one ticket for each voucher without seeing it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Literal, NamedTuple

from discreet.errors import InvalidArgument
from discreet.shuffle.channel import blind_rsa
from discreet.shuffle.channel.database import ServiceDatabase, database_at
from discreet.shuffle.channel.task import Task
from discreet.shuffle.channel.wire import VERSION

SCHEMA = ("CREATE TABLE IF NOT EXISTS issuer (task {bytes} PRIMARY KEY)",)


class Signed(NamedTuple):
    """The answer to a voucher and a blinded message. The signature is empty unless it was signed."""

    outcome: Literal["signed", "used", "malformed"]
    signature: bytes = b""


class IssuerStore:
    """Which voucher was used for which blinded message: hashes of both, in no order."""

    def __init__(self, target: str, task: bytes) -> None:
        self.database: ServiceDatabase = database_at(target)
        self.used = self.database.entries("voucher", "voucher", "blinded")
        self.database.prepare([*SCHEMA, *self.used.schema])
        with self.database.transaction(write=True) as execute:
            execute("INSERT INTO issuer VALUES (?) ON CONFLICT DO NOTHING", task)
            if execute("SELECT task FROM issuer") != [(task,)]:
                raise InvalidArgument(
                    f"{self.database.shown} holds the vouchers of another task. Choose another place.",
                    code="shuffle-other-task",
                )

    def use(self, voucher: bytes, blinded: bytes) -> bool:
        """Bind a voucher to a blinded message, durably. False if it is bound to another one."""
        with self.database.transaction(write=True) as execute:
            self.used.add(execute, [(voucher, blinded)])
            return self.used.found(execute, [voucher])[voucher] == blinded

    def count(self) -> int:
        """How many vouchers were used."""
        with self.database.transaction(write=False) as execute:
            return self.used.count(execute)

    def close(self) -> None:
        """Close the database."""
        self.database.close()


class Issuer:
    """Signs blindly, once for each voucher of its list.

    Promise: a voucher is bound to one blinded message, on disk, before anything is signed. The same one again has the
    same answer, after a crash too. What is malformed leaves no trace and does not use up the voucher.
    """

    def __init__(self, task: Task, key: blind_rsa.PrivateKey, store: IssuerStore, vouchers: Collection[str]) -> None:
        if key.modulus != task.issuer_key:
            raise InvalidArgument(
                "This is not the key of the task's issuer. Give the key file made with the task.",
                code="shuffle-wrong-keys",
            )
        self.task, self.store, self._key = task, store, key
        self._known = frozenset(map(_name, vouchers))

    def admit(self, voucher: str, blinded: bytes) -> Signed:
        """The signature of a blinded message, for a voucher that was not used for another one."""
        name = _name(voucher.lower())
        if name not in self._known:
            return Signed("malformed")
        try:
            blind_rsa.check_blinded(self.task.issuer_key, blinded)
        except blind_rsa.Refused:
            return Signed("malformed")
        if not self.store.use(name, hashlib.sha256(blinded).digest()):
            return Signed("used")
        return Signed("signed", blind_rsa.blind_sign(self._key, blinded))

    def close(self) -> None:
        """Close the database."""
        self.store.close()


def _name(voucher: str) -> bytes:
    """What is kept of a voucher: it is random, so its hash tells nothing."""
    return hashlib.sha256(VERSION + b"voucher" + voucher.encode()).digest()
