"""A task: what is asked, how answers are randomized, and to whom they are sealed. One hash identifies all of it."""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from discreet.errors import InvalidArgument
from discreet.exact.canonical import canonical
from discreet.guarantees.guarantee import Approx
from discreet.mechanisms.protocol import meets
from discreet.shuffle.channel import admission, blind_rsa
from discreet.shuffle.channel.wire import TOKEN, MessageSizes
from discreet.shuffle.protocol import Protocol, from_description

FORMAT = "discreet/shuffle/v1"
SHUFFLER, ANALYZER, ISSUER = "http://127.0.0.1:7002", "http://127.0.0.1:7001", "http://127.0.0.1:7003"
SCHEME = "RSABSSA-SHA384-PSS-Randomized"
_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Task:
    """The public description of one collection, the same for everybody who takes part.

    Promise: whatever weakens the protection of a client (less noise, a smaller batch, another key) changes `hash`, to
    which every envelope is bound: a report made for another task does not open.

    `check` verifies that the noise satisfies the (ε,δ) that the task claims. A client does so before it answers. The
    addresses of the services are not part of the hash.
    """

    description: dict[str, Any]
    epsilon: float
    delta: float
    shuffler_key: bytes
    analyzer_key: bytes
    shuffler: str = SHUFFLER
    analyzer: str = ANALYZER
    issuer_key: bytes = b""
    """The modulus of who admits people. Empty if the shuffler's own tokens do."""
    issuer: str = ISSUER

    @cached_property
    def protocol(self) -> Protocol:
        """How answers are randomized and counted, built from its description."""
        return from_description(self.description)

    @cached_property
    def shape(self) -> MessageSizes:
        """The length of everything that is sent."""
        token = admission.length_of(self.issuer_key) if self.issuer_key else TOKEN
        return MessageSizes(self.protocol.messages, self.protocol.length, token)

    @cached_property
    def canonical(self) -> bytes:
        """The bytes that are hashed, and that clients in other languages read. Nobody writes them again."""
        protocol = self.protocol
        facts = {
            "format": FORMAT,
            "protocol": self.description,
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "minimum": protocol.minimum,
            "honest": float(protocol.honest),
            "messages": protocol.messages,
            "length": protocol.length,
            "shuffler": self.shuffler_key.hex(),
            "analyzer": self.analyzer_key.hex(),
        }
        return canonical(facts | self._admission)

    @property
    def _admission(self) -> dict[str, dict[str, str]]:
        return {"admission": {"scheme": SCHEME, "key": self.issuer_key.hex()}} if self.issuer_key else {}

    @cached_property
    def hash(self) -> bytes:
        """SHA-256 of the canonical task."""
        return hashlib.sha256(self.canonical).digest()

    def check(self) -> None:
        """Refuse a task whose noise, for the honest part of the smallest batch, does not satisfy its promise."""
        if self.issuer_key:
            blind_rsa.public_key(self.issuer_key)
        if not meets(self.protocol.guarantee(), Approx(epsilon=self.epsilon, delta=self.delta)):
            raise InvalidArgument(
                f"The noise of this task does not guarantee ε = {self.epsilon:g}, δ = {self.delta:g}. "
                "Do not take part.",
                code="shuffle-promise-not-kept",
            )

    @cached_property
    def promise(self) -> str:
        """What is promised to a client, and who must be trusted for it. Show it before anything is sent."""
        protocol, left = self.protocol, self.protocol.if_they_collude
        together = "they learn your answer" if left is None else f"{left} is left"
        admitted = (
            f" The issuer ({self.issuer}) knows that you take part, but not your report." if self.issuer_key else ""
        )
        return (
            f"Promised to you: ε = {float(self.epsilon):g}, δ = {float(self.delta):g}, towards the analyzer and "
            f"everybody who reads the result. Trusted: that the shuffler ({self.shuffler}) and the analyzer "
            f"({self.analyzer}) do not work together (if they do, {together}), and that {protocol.at_least:,} of "
            f"{protocol.minimum:,} clients randomize their answers.{admitted}"
        )

    def save(self, path: Path) -> None:
        """Write the task as TOML. An existing file is not changed."""
        text = "\n".join(
            (
                "# A task of discreet shuffle. Everybody who takes part has this file; nothing in it is secret.",
                "# Every report is bound to all but [services]: a client with another file is not counted.",
                f"format = {_toml(FORMAT)}",
                f"epsilon = {_toml(float(self.epsilon))}",
                f"delta = {_toml(float(self.delta))}",
                "",
                "[protocol]",
                *(f"{_toml_key(name)} = {_toml(value)}" for name, value in self.description.items()),
                "",
                "[keys]",
                f"shuffler = {_toml(self.shuffler_key.hex())}",
                f"analyzer = {_toml(self.analyzer_key.hex())}",
                "",
                *(
                    f"[{name}]\nscheme = {_toml(one['scheme'])}\nkey = {_toml(one['key'])}\n"
                    for name, one in self._admission.items()
                ),
                "[services]",
                f"shuffler = {_toml(self.shuffler)}",
                f"analyzer = {_toml(self.analyzer)}",
                *((f"issuer = {_toml(self.issuer)}",) if self.issuer_key else ()),
                "",
            )
        )
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise InvalidArgument(
                f"{path} exists. A new task needs new keys and its own file. Choose another name.", code="file-exists"
            ) from None
        except OSError as error:
            raise InvalidArgument(
                f"{path} cannot be written: {error.strerror}. Choose another place.", code="file-not-writable"
            ) from None

    @classmethod
    def load(cls, path: Path) -> Task:
        """Read a task file, and check that its protocol can be built."""
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InvalidArgument(
                f"The task {path} does not exist. Make it with: discreet shuffle init {path}", code="file-not-found"
            ) from None
        except (OSError, ValueError, RecursionError) as error:  # not UTF-8, not TOML, or numbers without end
            raise InvalidArgument(
                f"{path} cannot be read as a task: {error}. Ask for the complete file again.",
                code="shuffle-task-unreadable",
            ) from None
        if found.get("format") != FORMAT:
            raise InvalidArgument(
                f'{path} is not a task of this version: it must begin with format = "{FORMAT}". '
                "Ask for the complete file again.",
                code="shuffle-task-unreadable",
            )
        keys, services = _table(found, "keys", path), _table(found, "services", path)
        public = [str(keys.get(name)) for name in ("shuffler", "analyzer")]
        if not all(map(_KEY.fullmatch, public)):
            raise InvalidArgument(
                f"{path} must have two public keys of 64 hexadecimal digits under [keys]. "
                "Ask for the complete file again.",
                code="shuffle-task-unreadable",
            )
        promised: list[Any] = [found.get(name) for name in ("epsilon", "delta")]
        if not all(isinstance(one, float | int) and not isinstance(one, bool) for one in promised):
            raise InvalidArgument(
                f"{path} must state its guarantee, for example: epsilon = 1.0 and delta = 1e-6.",
                code="shuffle-task-unreadable",
            )
        task = cls(
            description=_table(found, "protocol", path),
            epsilon=promised[0],
            delta=promised[1],
            shuffler_key=bytes.fromhex(public[0]),
            analyzer_key=bytes.fromhex(public[1]),
            shuffler=str(services.get("shuffler", SHUFFLER)).rstrip("/"),
            analyzer=str(services.get("analyzer", ANALYZER)).rstrip("/"),
            issuer_key=_issuer_key(found, path),
            issuer=str(services.get("issuer", ISSUER)).rstrip("/"),
        )
        try:
            task._try()
        except InvalidArgument as error:
            raise InvalidArgument(f"{path}: {error}", code=error.code) from None
        return task

    @classmethod
    def from_bytes(cls, data: bytes, *, shuffler: str = SHUFFLER, analyzer: str = ANALYZER) -> Task:
        """The task of these canonical bytes, such as a service sends them, if its noise keeps its promise."""
        try:
            found = json.loads(data)
            if found["format"] != FORMAT:
                raise ValueError
            task = cls(
                description=dict(found["protocol"]),
                epsilon=found["epsilon"],
                delta=found["delta"],
                shuffler_key=bytes.fromhex(found["shuffler"]),
                analyzer_key=bytes.fromhex(found["analyzer"]),
                shuffler=shuffler,
                analyzer=analyzer,
                issuer_key=bytes.fromhex(found["admission"]["key"]) if "admission" in found else b"",
            )
            task._try()
            keys = (found["shuffler"], found["analyzer"])
            # the same bytes again, or a part was not understood
            if task.canonical != data or not all(map(_KEY.fullmatch, keys)):
                raise ValueError
        except InvalidArgument:
            raise
        except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
            raise InvalidArgument(
                f'These bytes are not a task in the format "{FORMAT}". Get them again, unchanged.',
                code="shuffle-task-unreadable",
            ) from None
        return task

    def _try(self) -> None:
        """Make the hash now, so that it is known to be possible, and check the promise."""
        try:
            self.hash  # noqa: B018
            self.check()
        except InvalidArgument:
            raise
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, MemoryError, RecursionError):
            raise InvalidArgument(
                "This version does not know the protocol of the task, or it is too large. "
                "Use a newer version of discreet.",
                code="shuffle-task-unreadable",
            ) from None


def _table(found: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    table = found.get(name)
    if not isinstance(table, dict):
        raise InvalidArgument(
            f"{path} has no section [{name}]. Ask for the complete file again.", code="shuffle-task-unreadable"
        )
    return table


def _issuer_key(found: dict[str, Any], path: Path) -> bytes:
    """The modulus in [admission]. Empty if the task has no such section."""
    if "admission" not in found:
        return b""
    said = _table(found, "admission", path)
    digits = said.get("key")
    if set(said) != {"scheme", "key"} or said["scheme"] != SCHEME or not re.fullmatch(r"([0-9a-f]{2})+", str(digits)):
        raise InvalidArgument(
            f'{path} must have scheme = "{SCHEME}" and the hexadecimal digits of a key under [admission]. '
            "Ask for the complete file again.",
            code="shuffle-task-unreadable",
        )
    return bytes.fromhex(str(digits))


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: Any) -> str:
    """A plain JSON value as TOML, which has no null."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case int() | float() if math.isfinite(value):
            return repr(value)
        case list() | tuple():
            return f"[{', '.join(map(_toml, value))}]"
        case dict():
            return f"{{ {', '.join(f'{_toml_key(name)} = {_toml(one)}' for name, one in value.items())} }}"
    raise InvalidArgument("A task may hold only text, numbers, true, false and lists of them.", code="wrong-type")
