"""One person, one report: a ticket that an issuer signs without seeing it, and the shuffler accepts once.

The issuer knows who asks, and signs once for each voucher. The shuffler sees the ticket. Neither of them, nor both
together, can say which person's ticket it is (blind_rsa.py). A ticket is bound to its task.

message   32 random bytes, "discreet/shuffle/v1/admission", task hash, 32 random bytes
ticket    client (the first 16 bytes of the message's SHA-256), both random parts of the message, signature
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from discreet.errors import InvalidArgument
from discreet.shuffle.channel import blind_rsa, keys
from discreet.shuffle.channel.wire import CLIENT, VERSION

NONCE = 32
_DRAWN = slice(CLIENT, CLIENT + blind_rsa.PREFIX + NONCE)
VOUCHER = 16
"""Random bytes of a voucher: nobody guesses one."""


class Ticket(NamedTuple):
    """What a valid ticket says: the name that its report is bound to, and the whole message, which is used once."""

    client: bytes
    message: bytes


def length_of(modulus: bytes) -> int:
    """The bytes of a ticket."""
    return _DRAWN.stop + len(modulus)


def message_of(drawn: bytes, task: bytes) -> bytes:
    """The message that is signed, from its random parts."""
    return drawn[: blind_rsa.PREFIX] + VERSION + b"admission" + task + drawn[blind_rsa.PREFIX :]


def client_of(message: bytes) -> bytes:
    """The name that a report with this ticket is bound to: nobody finds another ticket with the same."""
    return hashlib.sha256(message).digest()[:CLIENT]


def accepted(ticket: bytes, modulus: bytes, task: bytes) -> Ticket | None:
    """The ticket, if the issuer signed it for this task."""
    if len(ticket) != length_of(modulus):
        return None
    message = message_of(ticket[_DRAWN], task)
    if ticket[:CLIENT] != client_of(message) or not blind_rsa.verify(modulus, message, ticket[_DRAWN.stop :]):
        return None
    return Ticket(ticket[:CLIENT], message)


@dataclass(frozen=True, kw_only=True)
class TicketRequest:
    """A ticket that is not signed yet: `blinded` goes to the issuer, and all else stays on the device.

    Keep it until the ticket is made: the issuer signs one blinded message for each voucher.
    """

    modulus: bytes
    task: bytes
    drawn: bytes = field(repr=False)
    blinded: bytes
    inverse: int = field(repr=False)

    @classmethod
    def made(cls, modulus: bytes, task: bytes) -> Self:
        """A new one, with fresh random parts."""
        drawn = blind_rsa.prepare(keys.random_bytes(NONCE))
        made = blind_rsa.blind(modulus, message_of(drawn, task))
        return cls(modulus=modulus, task=task, drawn=drawn, blinded=made.sent, inverse=made.inverse)

    def signed(self, blind_signature: bytes) -> bytes:
        """The ticket. An answer that is not the issuer's signature is refused."""
        message = message_of(self.drawn, self.task)
        try:
            signature = blind_rsa.finalize(self.modulus, message, blind_signature, self.inverse)
        except blind_rsa.Refused:
            raise InvalidArgument(
                "The issuer's answer is not a signature by the key in the task file. Do not take part, and tell who "
                "runs the poll.",
                code="shuffle-issuer-answer",
            ) from None
        return client_of(message) + self.drawn + signature

    def save(self, path: Path) -> None:
        """Write it to a new file that only its owner can read."""
        kept = {"task": self.task.hex(), "drawn": self.drawn.hex(), "blinded": self.blinded.hex()}
        kept["inverse"] = f"{self.inverse:x}"
        keys.save_new(path, json.dumps(kept) + "\n")

    @classmethod
    def load(cls, path: Path, modulus: bytes, task: bytes) -> Self:
        """Read it. It must have been made for this task and this key."""
        try:
            found = json.loads(path.read_text("ascii"))
            if found["task"] != task.hex():  # the issuer would sign it, and the voucher would be lost
                raise ValueError
            drawn, blinded = bytes.fromhex(found["drawn"]), bytes.fromhex(found["blinded"])
            return cls(modulus=modulus, task=task, drawn=drawn, blinded=blinded, inverse=int(found["inverse"], 16))
        except (OSError, LookupError, TypeError, ValueError, RecursionError):
            raise InvalidArgument(
                f"{path} is not a request for a ticket of this task. Give the voucher on the device where it was used "
                "first.",
                code="file-not-readable",
            ) from None


# --- the issuer's files ---------------------------------------------------------------------------------------


def new_voucher() -> str:
    """A voucher for one person."""
    return keys.random_bytes(VOUCHER).hex()


def save_key(private: blind_rsa.PrivateKey, path: Path) -> None:
    """Write the issuer's key to a new file that only its owner can read."""
    plain = private.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    keys.save_new(path, plain.decode("ascii"))


def load_key(path: Path, modulus: bytes) -> blind_rsa.PrivateKey:
    """Read the issuer's key, which must be the one in the task."""
    text = keys.read_secret(path)
    try:
        found = serialization.load_pem_private_key(text, None)
    except (ValueError, TypeError):
        found = None
    if not isinstance(found, rsa.RSAPrivateKey) or (private := blind_rsa.PrivateKey(found)).modulus != modulus:
        raise InvalidArgument(
            f"{path} is not the key of the task's issuer. Give the one made with the task.", code="shuffle-wrong-keys"
        )
    return private


def read_vouchers(path: Path) -> frozenset[str]:
    """The vouchers of a list: one in each line, and after a space whatever the issuer wants to remember."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, ValueError):
        raise InvalidArgument(
            f"The list {path} cannot be read. Print one with: discreet shuffle vouchers", code="file-not-readable"
        ) from None
    found = [line.split(None, 1)[0].lower() for line in lines if line.strip()]
    if not found or len(set(found)) != len(found) or not all(map(is_voucher, found)):
        raise InvalidArgument(
            f"Each line of {path} must begin with a voucher of {2 * VOUCHER} hexadecimal digits, all different. "
            "Print a list with: discreet shuffle vouchers",
            code="shuffle-vouchers",
        )
    return frozenset(found)


def is_voucher(text: str) -> bool:
    """Whether it has the form of a voucher."""
    return len(text) == 2 * VOUCHER and not set(text) - set("0123456789abcdef")


def request_file(path: Path, task: bytes, voucher: str) -> Path:
    """Where a device keeps the request of a voucher: next to the task file, under a name that does not tell it."""
    name = hashlib.sha256(b"".join((VERSION, b"request", task, voucher.encode()))).hexdigest()[:16]
    return path.with_name(f"{path.stem}.{name}.ticket")
