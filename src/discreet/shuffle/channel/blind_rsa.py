"""Blind RSA signatures (RFC 9474): RSABSSA-SHA384-PSS-Randomized, with the names of the RFC.

Who signs sees m·r^e mod n, for a random r that only the other side knows. For every signature that exists in the end
there is exactly one such r that leads from it to what was signed, so the one tells nothing about the other.

The private operation is done with Python's integers, whose `pow` does not take constant time. What it computes on is
therefore multiplied by a random number first, which nobody can choose or know (base blinding), and the result is
checked with the public key, so that a fault of the machine gives nothing away.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from functools import lru_cache

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from discreet.errors import DiscreetError, InvalidArgument
from discreet.exact.randomness import random_integer

EXPONENT = 65537
SMALLEST, LARGEST, USUAL = 2048, 4096, 3072
"""Bits of a modulus. The usual one is as strong as the other keys of a task, and verified in 0.2 ms."""
PREFIX, SALT = 32, 48
_PADDING = padding.PSS(padding.MGF1(hashes.SHA384()), SALT)


class Refused(Exception):
    """A blinded message or a signature that is not one. It has no details: the response is the same for every kind."""


@dataclass(frozen=True)
class PrivateKey:
    """An issuer's key, which does not print."""

    key: rsa.RSAPrivateKey = field(repr=False)

    @property
    def modulus(self) -> bytes:
        """The public key."""
        number = self.key.public_key().public_numbers().n
        return number.to_bytes((number.bit_length() + 7) // 8, "big")


def generate(bits: int = USUAL) -> PrivateKey:
    """A new key."""
    if bits not in range(SMALLEST, LARGEST + 1, 8):
        raise InvalidArgument(
            f"The issuer's key must have {SMALLEST} to {LARGEST} bits, such as {USUAL}.", code="shuffle-issuer-key"
        )
    return PrivateKey(rsa.generate_private_key(EXPONENT, bits))


@lru_cache(maxsize=16)
def public_key(modulus: bytes) -> rsa.RSAPublicKey:
    """The key with this modulus and the exponent 65537. Raises for one that is short, long or even."""
    number = int.from_bytes(modulus, "big")
    bits = number.bit_length()
    if bits != 8 * len(modulus) or not SMALLEST <= bits <= LARGEST or not number % 2:
        raise InvalidArgument(
            f"The issuer's key must be an RSA modulus of {SMALLEST} to {LARGEST} bits. Ask for the complete task file.",
            code="shuffle-issuer-key",
        )
    return rsa.RSAPublicNumbers(EXPONENT, number).public_key()


# --- the client's side ----------------------------------------------------------------------------------------


def prepare(message: bytes) -> bytes:
    """The message with 32 random bytes before it, which hide it from whoever verifies guesses."""
    return random_integer(8 * PREFIX).to_bytes(PREFIX, "big") + message


@dataclass(frozen=True)
class Blinded:
    """What is sent to the signer, and what undoes it, which is secret."""

    sent: bytes
    inverse: int = field(repr=False)


def blind(modulus: bytes, message: bytes) -> Blinded:
    """The prepared message, encoded and multiplied by r^e for a fresh uniform r."""
    public_key(modulus)
    number = int.from_bytes(modulus, "big")
    while True:
        encoded = encode(message, number.bit_length() - 1, random_integer(8 * SALT).to_bytes(SALT, "big"))
        if math.gcd(int.from_bytes(encoded, "big"), number) == 1:  # always, unless the key has small factors
            return blind_by(modulus, encoded, _unit(number))


def blind_by(modulus: bytes, encoded: bytes, factor: int) -> Blinded:
    """An encoded message, multiplied by factor^e."""
    number, plain = int.from_bytes(modulus, "big"), int.from_bytes(encoded, "big")
    if math.gcd(plain, number) != 1:
        raise Refused
    sent = plain * pow(factor, EXPONENT, number) % number
    return Blinded(sent.to_bytes(len(modulus), "big"), pow(factor, -1, number))


def finalize(modulus: bytes, message: bytes, blind_signature: bytes, inverse: int) -> bytes:
    """The signature of the prepared message. Raises Refused if the signer did not sign it with this key."""
    number = int.from_bytes(modulus, "big")
    if len(blind_signature) != len(modulus):
        raise Refused
    signature = int.from_bytes(blind_signature, "big") * inverse % number
    made = signature.to_bytes(len(modulus), "big")
    if not verify(modulus, message, made):
        raise Refused
    return made


# --- the signer's side ----------------------------------------------------------------------------------------


def check_blinded(modulus: bytes, blinded: bytes) -> int:
    """The number that is to be signed. Refused: 0, what is not below n, and multiples of its factors."""
    number, asked = int.from_bytes(modulus, "big"), int.from_bytes(blinded, "big")
    if len(blinded) != len(modulus) or not 0 < asked < number or math.gcd(asked, number) != 1:
        raise Refused
    return asked


def blind_sign(private: PrivateKey, blinded: bytes) -> bytes:
    """The signature of what the signer cannot read."""
    numbers = private.key.private_numbers()
    modulus, number = private.modulus, numbers.public_numbers.n
    asked = check_blinded(modulus, blinded)
    factor = _unit(number)
    base = asked * pow(factor, EXPONENT, number) % number
    first, second = pow(base, numbers.dmp1, numbers.p), pow(base, numbers.dmq1, numbers.q)
    root = second + numbers.q * (numbers.iqmp * (first - second) % numbers.p)
    signature = root * pow(factor, -1, number) % number
    if pow(signature, EXPONENT, number) != asked:  # a fault: half of a right answer would tell the key
        raise DiscreetError(
            "The machine computed a wrong signature, and it was not handed out. Try again.", code="shuffle-issuer-fault"
        )
    return signature.to_bytes(len(modulus), "big")


# --- everybody's ----------------------------------------------------------------------------------------------


def verify(modulus: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the signature is one of the prepared message."""
    try:
        public_key(modulus).verify(signature, message, _PADDING, hashes.SHA384())
    except InvalidSignature:
        return False
    return True


def encode(message: bytes, bits: int, salt: bytes) -> bytes:
    """EMSA-PSS (RFC 8017, section 9.1.1) with SHA-384: the message as a number of at most `bits` bits."""
    length = (bits + 7) // 8
    tag = hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest()
    room = length - len(tag) - 1
    block = (b"\1" + salt).rjust(room, b"\0")
    masked = bytearray(one ^ other for one, other in zip(block, _mask(tag, room), strict=True))
    masked[0] &= 0xFF >> (8 * length - bits)
    return bytes(masked) + tag + b"\xbc"


def _mask(seed: bytes, length: int) -> bytes:
    """MGF1 with SHA-384."""
    blocks = (hashlib.sha384(seed + place.to_bytes(4, "big")).digest() for place in range(-(-length // 48)))
    return b"".join(blocks)[:length]


def _unit(number: int) -> int:
    """A uniform number below `number` that has an inverse."""
    while True:
        drawn = random_integer(number.bit_length())
        if 0 < drawn < number and math.gcd(drawn, number) == 1:
            return drawn
