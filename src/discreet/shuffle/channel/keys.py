"""Sealing and opening (HPKE, RFC 9180), tokens of clients, and files of secrets that only their owner can read."""

from __future__ import annotations

import hmac
import os
import stat
import tomllib
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from discreet.errors import InvalidArgument
from discreet.exact.randomness import random_integer
from discreet.shuffle.channel.wire import CLIENT, TOKEN, VERSION

_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
_BYTES = 32


def seal(message: bytes, public: bytes, info: bytes) -> bytes:
    """The message, readable only by the owner of a public key, bound to `info`."""
    return _SUITE.encrypt(message, _public(public), info=info)


def open_seal(sealed: bytes, private: bytes, info: bytes) -> bytes | None:
    """The content of a seal. None if it was not sealed to this key and this `info`, or was changed."""
    try:
        return _SUITE.decrypt(sealed, _private(private), info=info)
    except (InvalidTag, ValueError):
        return None


@lru_cache(maxsize=16)
def _public(raw: bytes) -> X25519PublicKey:
    return X25519PublicKey.from_public_bytes(raw)


@lru_cache(maxsize=1)
def _private(raw: bytes) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(raw)


def public_of(private: bytes) -> bytes:
    """The public key of a private one."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def random_bytes(count: int) -> bytes:
    """Fresh random bytes, from the one source."""
    return random_integer(8 * count).to_bytes(count, "big")


def keyed_hash(key: bytes, purpose: bytes, *parts: bytes) -> bytes:
    """HMAC-SHA-256 of parts of fixed lengths, for one purpose."""
    return hmac.digest(key, b"".join((VERSION, purpose, b"|", *parts)), "sha256")


# --- who may report -----------------------------------------------------------------------------------------


def token_for(registration: bytes, task: bytes, client: bytes | None = None) -> bytes:
    """A token that lets one client report once: a name of 16 random bytes, and the registration secret's tag on it."""
    name = random_bytes(CLIENT) if client is None else client
    return name + keyed_hash(registration, b"token", task, name)


def client_of(token: bytes, registration: bytes, task: bytes) -> bytes | None:
    """The client that a token names. None if it was not issued for this task."""
    if len(token) != TOKEN:
        return None
    name = token[:CLIENT]
    return name if hmac.compare_digest(token, token_for(registration, task, name)) else None


# --- secrets ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Secrets:
    """Secrets of 32 bytes, which do not print. Those that a service deletes in the end are empty then, all of them."""

    operator: bytes = field(repr=False)
    """Known to both services and to who closes the task."""
    deleted_in_the_end: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def made(cls) -> Self:
        """Fresh ones."""
        return cls(**{one.name: random_bytes(_BYTES) for one in fields(cls)})

    def save(self, path: Path) -> None:
        """Write them to a new file that only its owner can read."""
        save_new(path, self._text())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read them. A file that others can read is refused."""
        text = read_secret(path)
        try:
            found: dict[str, Any] = tomllib.loads(text.decode("ascii"))
            whole = {one.name: bytes.fromhex(found[one.name]) for one in fields(cls)}
        except (LookupError, TypeError, ValueError, RecursionError):  # its message might quote a key
            whole = {"": b"?"}
        secrets = dict(whole)
        last = {len(secrets.pop(name, b"?")) for name in cls.deleted_in_the_end}
        if last not in ({0}, {_BYTES}) or any(len(secret) != _BYTES for secret in secrets.values()):
            raise InvalidArgument(
                f"{path} is not a key file of this service. Give the one made with the task.", code="shuffle-wrong-keys"
            )
        return cls(**whole)

    def _text(self) -> str:
        lines = [f'{one.name} = "{getattr(self, one.name).hex()}"' for one in fields(self)]
        return "\n".join(("# Secret. Only the service that it belongs to may read this file.", *lines, ""))


@dataclass(frozen=True, kw_only=True)
class ShufflerKeys(_Secrets):
    """What only the shuffler knows."""

    outer: bytes = field(repr=False)
    """The private key of reports."""
    registration: bytes = field(repr=False)
    """Issues tokens."""
    nullifiers: bytes = field(repr=False)
    """Turns clients into names that only the shuffler can compute."""
    storage: bytes = field(repr=False)
    """Encrypts the reports at rest: their bytes on disk tell nothing without it."""
    deleted_in_the_end: ClassVar[tuple[str, ...]] = ("outer", "storage", "nullifiers")


@dataclass(frozen=True, kw_only=True)
class AnalyzerKeys(_Secrets):
    """What only the analyzer knows."""

    inner: bytes = field(repr=False)
    """The private key of messages."""
    deleted_in_the_end: ClassVar[tuple[str, ...]] = ("inner",)


def save_new(path: Path, text: str) -> None:
    """Write secrets to a new file that only its owner can read."""
    try:
        _write_new(path, text)
    except FileExistsError:
        raise InvalidArgument(
            f"{path} exists, and its keys belong to another task. Choose another name.", code="file-exists"
        ) from None
    except OSError as error:
        raise InvalidArgument(
            f"{path} cannot be written: {error.strerror}. Choose another place.", code="file-not-writable"
        ) from None


def read_secret(path: Path) -> bytes:
    """Read a file of secrets. One that others can read is refused."""
    try:
        mode, text = stat.S_IMODE(path.stat().st_mode), path.read_bytes()
    except OSError as error:
        raise InvalidArgument(
            f"The keys {path} cannot be read: {error.strerror}. Name the file made with the task.",
            code="file-not-readable",
        ) from None
    if mode & 0o077:
        raise InvalidArgument(
            f"Other users can read the secret keys in {path}. Make them readable by you alone: chmod 600 {path}",
            code="shuffle-keys-exposed",
        )
    return text


def forget(path: Path, *names: str) -> None:
    """Delete secrets from a file permanently: overwritten in place, then the file is replaced."""
    kind = ShufflerKeys if "outer" in names else AnalyzerKeys
    kept = kind.load(path)
    if not any(getattr(kept, name) for name in names):
        return
    cleared = kind(**{one.name: b"" if one.name in names else getattr(kept, one.name) for one in fields(kind)})
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    _write_new(new, cleared._text())
    old = os.open(path, os.O_WRONLY)
    os.replace(new, path)
    _sync_folder(path)
    os.write(old, b"\0" * os.fstat(old).st_size)
    os.fsync(old)
    os.close(old)
    _private.cache_clear()


def _write_new(path: Path, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "w", encoding="ascii") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    _sync_folder(path)


def _sync_folder(path: Path) -> None:
    folder = os.open(path.absolute().parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
