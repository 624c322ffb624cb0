"""What makes two requests the same: the text of the record, an idempotency key, a public identity."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from discreet.errors import InvalidArgument
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger.texts.exact import Nameless, digest, exact_text_of
from discreet.ledger.texts.record import canonical, to_text
from discreet.ledger.texts.values import encode

_LONGEST_TEXT, _LONGEST_KEY = 4000, 200
_CUT = re.compile(r" at 0x[0-9a-f]+")
"""What version 0.1 left out before it compared texts: one that holds this may have been another's."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Everything that determines an answer, except the people in the data. The same identity gets the same answer
    again.

    `data_version` is declared by the owner or made by `version_of`. It is never a digest of the content, which would
    reveal whether the content changed. Data without a version have one only while they are open (`lasting` is False): a
    retry with a key is bound to it, and no answer is found without a key. `before` identified the same question in
    version 0.1, if its text was unique there.
    """

    question: str
    data_version: str
    policy: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    lasting: bool = True
    before: Identity | None = None


def version_of(source: str | Path) -> str:
    """A public version of a data file, or of a folder of them: path, size and modification time."""
    path = Path(source).resolve()
    try:
        if path.is_dir():
            inside = sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())
            states = [(name, *_state(path / name)) for name in inside]
            return f"{path}, {len(states)} files, {_hash(states)[:16]}"
        size, changed = _state(path)
    except OSError as error:
        raise InvalidArgument(
            f"The source {path} cannot be read: {error.strerror}. Make it readable.", code="file-not-readable"
        ) from None
    return f"{path}, {size} bytes, {changed}"


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


class Request(NamedTuple):
    """The part of an entry that is known before its cost. Its fields have the names of the columns.

    `question` is a digest of what is asked under which declarations, whatever the data are.
    """

    asked: str
    mechanism: Any
    content: str
    request: str | None
    retry_key: str | None
    identity: str | None
    in_version_0_1: Callable[[], str | None] | None
    question: str | None = None

    @property
    def old(self) -> str | None:
        """The fingerprint that version 0.1 gave this very request; None where another one could have it, too."""
        return None if self.in_version_0_1 is None else self.in_version_0_1()

    def columns(self) -> dict[str, Any]:
        """The values that an entry stores."""
        return {
            "asked": self.asked,
            "mechanism": public_text(_name_of(self.mechanism)),
            "content": self.content,
            "request": self.request,
            "retry_key": self.retry_key,
            "identity": self.identity,
        }

    def is_of(self, fingerprint: str | None) -> bool:
        """Whether an entry with this fingerprint belongs to this request."""
        return fingerprint is not None and (fingerprint == self.request or fingerprint == self.old)

    def again(self) -> Request:
        """The same request after its answer was discarded: it is made anew."""
        return self if self.identity is None else self._replace(identity=identity_again(self.identity))

    def known_by(self) -> list[tuple[str, str]]:
        """The columns and values by which it is found if it was made before."""
        if self.retry_key is None and self.identity is None:
            return []
        old = self.old if self.identity is not None else None
        every = (("retry_key", self.retry_key), ("identity", self.identity), ("identity", old))
        return [(column, value) for column, value in every if value]


def identity_again(identity: str) -> str:
    """The identity of a request that is made anew, because the answer to the one before was discarded."""
    return _hash([identity, "again"])


def request_of(
    guarantee: Guarantee,
    asked: str,
    mechanism: Any,
    key: str | None,
    identity: Identity | None,
    about: Any = None,
    parts: tuple[str, ...] = (),
) -> Request:
    """A request with its fingerprint. Two requests with the same fingerprint ask for the same release.

    The mechanism is compared by all of its fields, and so is everything else in `about`, such as a query. Text is
    compared exactly. A request with an identity is known by that, whatever `asked` says. A request that holds a
    function is never the same as another. The same question about other parts of the data is another request.
    """
    if key is not None and (not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY or key != public_text(key)):
        raise InvalidArgument(
            f"key must be a text of 1 to {_LONGEST_KEY} characters, such as the id of a request.", code="ledger-key"
        )
    content = to_text(guarantee)
    meant = str(asked) if identity is None else ("identity", _identify(identity))
    within = (("parts", *parts),) if parts else ()
    try:
        fingerprint = digest(exact_text_of("request", meant, mechanism, content, about, *within))
    except Nameless:
        fingerprint = ""
    if not fingerprint and key is not None:
        raise InvalidArgument(
            "A key cannot be bound to a request that contains a function, because another function may look the "
            "same. Leave out key=.",
            code="ledger-key",
        )
    lasting = identity is not None and identity.lasting and fingerprint
    named = partial(_old_fingerprint, str(asked), mechanism, content, identity)
    old = None if parts else named if identity is None else cache(named)
    known = fingerprint if lasting else None
    question = None if identity is None else _identify(replace(identity, data_version="", policy=""))[:32]
    return Request(public_text(str(asked)), mechanism, content, fingerprint or None, key, known, old, question)


def name_anytime(guarantee: Guarantee, identity: Identity, mechanism: Any, parts: tuple[str, ...]) -> str | None:
    """One name for what is measured, under which declarations, by which mechanism, for which guarantee and from which
    parts, whatever the version of the data. None if something else could have the same.
    """
    anytime = replace(identity, data_version="", lasting=True, before=None)
    return request_of(guarantee, "", mechanism, None, anytime, parts=parts).request


def _name_of(mechanism: Any) -> str:
    return mechanism if isinstance(mechanism, str) else repr(mechanism)


def _old_fingerprint(asked: str, mechanism: Any, content: str, identity: Identity | None) -> str | None:
    """The fingerprint of this request in version 0.1, if that version compared all of its text."""
    before = None if identity is None else identity.before
    if identity is not None and (before is None or not identity.lasting):
        return None
    words = asked if before is None else before.question, _name_of(mechanism)
    if any(_CUT.search(text) or text != public_text(text) for text in words):
        return None
    return _hash((*words, content, None if before is None else _identify(before)))


def _identify(identity: Identity) -> str:
    facts = (identity.question, identity.data_version, identity.policy, dict(identity.arguments))
    try:
        return hashlib.sha256(encode(facts)).hexdigest()
    except (InvalidArgument, TypeError, ValueError):
        pass
    raise InvalidArgument(
        "The arguments of a question must be plain values: numbers, text, dates, or lists and dicts of them.",
        code="wrong-type",
    )


def public_text(text: str) -> str:
    """Text that any database can store. Long text is cut and gets a hash. It is for people, never for comparisons."""
    clean = text.replace("\0", "")
    clean = clean if clean.isascii() else clean.encode("utf-8", "replace").decode()
    return clean if len(clean) <= _LONGEST_TEXT else f"{clean[:_LONGEST_TEXT]}… ({_hash(clean)[:16]})"


def _hash(content: Any) -> str:
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def reason_of(why: Any) -> str:
    """The reason for an entry by the owner."""
    if not isinstance(why, str) or not why.strip():
        raise InvalidArgument(
            'Give a reason for the record: why="the ethics board agreed on 3 May".', code="ledger-no-reason"
        )
    return public_text(why)


def key_reused_error() -> InvalidArgument:
    """The error for a key that was used for another request."""
    return InvalidArgument(
        "This key was used for another request: a different question, mechanism, guarantee, declaration or data set. "
        "Data without a version counts as the same only while it stays open. Nothing was spent. Use a new key for a "
        "new request, or declare a version of the data.",
        code="ledger-key-reused",
    )
