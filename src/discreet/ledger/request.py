"""What makes two requests the same: the words of the record, an idempotency key, a public identity."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from discreet.errors import InvalidArgument
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger.record import canonical, written
from discreet.ledger.values import encoded

_LONGEST_TEXT, _LONGEST_KEY = 4000, 200
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@dataclass(frozen=True, kw_only=True)
class Identity:
    """All that decides an answer but the people in the data: who asks the same again may have the same answer again.

    `data_version` is declared by the owner or made by `version_of`; never a digest of the content, which would tell
    whether it changed.
    """

    question: str
    data_version: str
    policy: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)


def version_of(source: str | Path) -> str:
    """A public version of a data file, or of a folder of them: path, size and time of change."""
    path = Path(source).resolve()
    try:
        if path.is_dir():
            inside = sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())
            states = [(name, *_state(path / name)) for name in inside]
            return f"{path}, {len(states)} files, {_hashed(states)[:16]}"
        size, changed = _state(path)
    except OSError as error:
        raise InvalidArgument(f"The source {path} cannot be looked at: {error.strerror}. Make it readable.") from None
    return f"{path}, {size} bytes, {changed}"


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


class Request(NamedTuple):
    """The part of an entry that is known before its cost is: columns of the same names."""

    asked: str
    mechanism: str
    content: str
    request: str
    retry_key: str | None
    identity: str | None

    @property
    def can_be_known(self) -> bool:
        """Whether it may have been made before."""
        return self.retry_key is not None or self.identity is not None


def request_of(guarantee: Guarantee, asked: str, mechanism: str, key: str | None, identity: Identity | None) -> Request:
    """A request, fingerprinted: two with one fingerprint ask for the same release."""
    words = (public_text(asked), public_text(mechanism), written(guarantee))
    if key is not None and (not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY or key != public_text(key)):
        raise InvalidArgument(f"key must be a text of 1 to {_LONGEST_KEY} characters, such as the id of a request.")
    known = None if identity is None else _identified(identity)
    fingerprint = _hashed((*words, known))
    return Request(*words, fingerprint, key, None if identity is None else fingerprint)


def _identified(identity: Identity) -> str:
    facts = (identity.question, identity.data_version, identity.policy, dict(identity.arguments))
    try:
        return hashlib.sha256(encoded(facts)).hexdigest()
    except (InvalidArgument, TypeError, ValueError):
        raise InvalidArgument(
            "The arguments of a question must be plain values: numbers, text, dates, or lists and dicts of them."
        ) from None


def public_text(text: str) -> str:
    """Text that any database can hold, without the addresses of objects; long text is cut, and told apart by a hash."""
    clean = _ADDRESS.sub("", str(text)).replace("\0", "").encode("utf-8", "replace").decode()
    return clean if len(clean) <= _LONGEST_TEXT else f"{clean[:_LONGEST_TEXT]}… ({_hashed(clean)[:16]})"


def _hashed(content: Any) -> str:
    return hashlib.sha256(canonical(content).encode()).hexdigest()
