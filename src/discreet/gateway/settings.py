"""What the owner says about the gateway: the section [gateway] of the policy, read and checked."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NamedTuple

from discreet.datasets.policy import Policy, load, section_of, text_in
from discreet.engines.duckdb.engine import memory_in_bytes
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_epsilon, exactly
from discreet.ledger.stores.store import URLS
from discreet.listening import is_loopback

_KEYS = (
    *("http", "postgres", "metrics", "answer_after", "late_allowed", "lanes", "lane_memory", "store", "version"),
    *("share", "certificate", "key", "users", "log", "question", "limits", "mcp", "oidc"),
)
SECTIONS = {
    "gateway": _KEYS,
    "gateway.question": ("default", "most"),
    "gateway.limits": ("session", "day", "approve_above", "alert_at"),
    "gateway.mcp": ("session", "confirm_above"),
    "gateway.oidc": ("issuer", "client", "audience", "claim", "secret"),
}
"""All settings, by the section that they are in."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_HEADING = re.compile(r"\s*\[+([^\[\]]+)\]+\s*(#.*)?$")
LONGEST = 3600.0
"""The longest time until an answer, in seconds."""
MOST_LANES = 64
VERSION = "1"
"""The name of the data until the owner publishes another."""
USERS = ("discreet-vault", "discreet-desk")
SHOWN_AMOUNTS = ("question_default", "question_most", "approve_above")
"""The limits that the pages of the desk show before a question is asked. The vault checks them."""


class Address(NamedTuple):
    """A host and a port to listen on."""

    host: str
    port: int

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


HTTP = Address("127.0.0.1", 8080)


@dataclass(frozen=True, kw_only=True)
class OidcSettings:
    """Who says who people are: an OpenID Connect provider. `claim` names the account, by default the e-mail address."""

    issuer: str
    client: str
    audience: str
    claim: str = "email"
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a gateway. ε are exact, and times are in seconds.

    `version` is the name under which the owner publishes the data, and `copies` the folder of its published versions.
    The name alone decides which answers are the same.
    `late_allowed` is how many answers may be late before charged questions stop until the owner looks.
    """

    name: str = "clinic"
    """What the data set is called: the name of the policy's file. It is the database of clients of PostgreSQL."""
    http: Address = HTTP
    postgres: Address | None = None
    metrics: Address | None = None
    answer_after: float = 2.0
    late_allowed: int = 0
    lanes: int = 1
    lane_memory: str | None = None
    store: str = "clinic.gateway"
    copies: str = "clinic.gateway.data"
    version: str = VERSION
    share: Literal["own", "everyone"] = "own"
    certificate: str | None = None
    key: str | None = None
    users: tuple[str, str] = USERS
    log: str | None = None
    question_default: Fraction | None = None
    question_most: Fraction | None = None
    session: Fraction | None = None
    day: Fraction | None = None
    approve_above: Fraction | None = None
    alert_at: Fraction = Fraction(4, 5)
    mcp_session: Fraction = Fraction(1)
    """What one token may spend over MCP in a session."""
    mcp_confirm_above: Fraction = Fraction(1, 10)
    """Over MCP, a person confirms each question above this ε."""
    oidc: OidcSettings | None = None

    @property
    def late_at_most(self) -> int:
        """How many answers can be late before charged questions stop: all lanes may run when the last one that is
        allowed is late.
        """
        return self.late_allowed + self.lanes

    @property
    def url(self) -> str:
        """Where the desk is found."""
        return f"{'https' if self.certificate else 'http'}://{self.http}"


def load_settings(policy: str | Path) -> tuple[Policy, Settings]:
    """The policy in a file, and the settings of its gateway."""
    known = load(policy)
    path = Path(policy).expanduser()
    name = path.resolve().stem  # a link to a policy is the same data set
    return known, settings_of(known.gateway or {}, path.parent, known, name)


def load_served(policy: str | Path) -> tuple[Policy, Settings]:
    """The policy in a file, and the settings of its gateway. One without a gateway is refused."""
    known, settings = load_settings(policy)
    if known.gateway is None:
        raise InvalidArgument(
            f'The policy has no section [gateway]. Add two lines: [gateway] and below it http = "{HTTP}".',
            code="policy-missing-key",
        )
    return known, settings


def load_books(policy: str | Path) -> Settings | None:
    """Only where the gateway has its own database, and its users: mistakes elsewhere in a policy do not matter. None if
    no database is there, or if it is not certain which one is meant.
    """
    path = Path(policy).expanduser()
    with suppress(OSError, InvalidArgument):
        found = _sections(path.read_text("utf-8", errors="replace"))
        if found is None:
            return None
        given, ledger, users, name = found["gateway"], found.get("ledger", {}), USERS, path.resolve().stem
        with suppress(InvalidArgument):  # root can do it, too
            users = _users(given.get("users", USERS))
        if "path" in ledger or "store" in given:
            beside = text_in(ledger, "path", "ledger") or ""
            beside = beside if beside.startswith(URLS) else str(path.parent / Path(beside).expanduser())
            store = _store(text_in(given, "store", "gateway"), path.parent / name, beside)
            if store.startswith(URLS) or Path(store).exists():
                return Settings(name=name, store=store, copies=f"{store}.data", users=users)
    return None


_PLACES = {"gateway": "store", "ledger": "path"}
"""The settings that say where the gateway's own database is."""
_UNREADABLE = "["
"""The section of lines below a heading that cannot be read. It may be any of them."""
_ALIKE = 0.75
"""How alike two words are, if one may be the other with a typing error. `source` is less like `store`."""


def _sections(text: str) -> dict[str, dict[str, Any]] | None:
    """[gateway] and [ledger], line by line if the text as a whole is no TOML. None if a mistake may be in a line that
    says where the database is.
    """
    found, wrong = dict[str, dict[str, Any]](), dict[str, list[str]]()
    try:
        whole = tomllib.loads(text)
        found = {name: whole[name] for name in _PLACES if isinstance(whole.get(name), dict)}
    except ValueError:
        if '"""' in text or "'''" in text:  # a line may be a part of a text
            return None
        name = ""
        for line in text.splitlines():
            if line.lstrip().startswith("["):
                heading = _HEADING.match(line)
                name = _UNREADABLE if heading is None else heading[1].strip()
                found.setdefault(name, {})
                if heading is None:
                    wrong.setdefault(name, []).extend(re.findall(r"\w+", line))
                continue
            try:
                found.setdefault(name, {}).update(tomllib.loads(line))
            except ValueError:
                wrong.setdefault(name, []).extend(re.findall(r"\w+", line)[:1])
    if "store" in found.get("gateway", {}):
        return found
    for name, meant in _PLACES.items():
        given = found.get(name, {})
        if meant not in given and _may_be(meant, [*given, *wrong.get(name, ())]):
            return None
        if _may_be(meant, [*found.get(_UNREADABLE, ()), *wrong.get(_UNREADABLE, ())]):
            return None
    return found if "gateway" in found else None


def _may_be(meant: str, keys: Iterable[str]) -> bool:
    """Whether one of these keys may be this one, mistyped. Those of other settings are not."""
    unknown = [key.lower() for key in keys if key == meant or key not in _KEYS]
    return bool(difflib.get_close_matches(meant, unknown, cutoff=_ALIKE))


def settings_of(words: Mapping[str, Any], folder: Path, policy: Policy, name: str = Settings.name) -> Settings:
    """The settings in the section [gateway] of a policy, whose file has this name. Paths are relative to `folder`."""
    given = _section(words, "gateway")
    question = _section(given.get("question", {}), "gateway.question")
    limits = _section(given.get("limits", {}), "gateway.limits")
    found: dict[str, Any] = {"name": name}
    found |= {f"question_{key}": _epsilon(value, key) for key, value in question.items()}
    found |= {key: _epsilon(value, key) for key, value in limits.items() if key != "alert_at"}
    if "alert_at" in limits:
        found["alert_at"] = _share(limits["alert_at"])
    found |= _mcp(given.get("mcp", {}), found.get("session"))
    for key in ("http", "postgres", "metrics"):
        if key in given:
            found[key] = _address(given[key], key)
    if "answer_after" in given:
        found["answer_after"] = seconds_in(given["answer_after"], "answer_after of [gateway]", LONGEST)
    for key, least, most in (("late_allowed", 0, 1000), ("lanes", 1, MOST_LANES)):
        if key in given:
            found[key] = _whole(given[key], key, least, most)
    for key in ("certificate", "key", "log"):
        if text := text_in(given, key, "gateway"):
            found[key] = str(folder / Path(text).expanduser())
    if memory := text_in(given, "lane_memory", "gateway"):
        memory_in_bytes(memory)
        found["lane_memory"] = memory
    found["store"] = _store(text_in(given, "store", "gateway"), folder / name, str(policy.ledger))
    local = not found["store"].startswith(URLS)
    found["copies"] = f"{found['store']}.data" if local else str(folder / "gateway.data")
    found["version"] = text_in(given, "version", "gateway") or VERSION
    if given.get("share", "own") not in ("own", "everyone"):
        raise InvalidArgument('share of [gateway] must be "own" or "everyone".', code="not-an-option")
    found["share"] = given.get("share", "own")
    if "users" in given:
        found["users"] = _users(given["users"])
    if "oidc" in given:
        found["oidc"] = _oidc(given["oidc"])
    settings = Settings(**found)
    _check_reachable(settings)
    return settings


def contradictions(settings: Settings, epsilon: Number) -> Iterator[str]:
    """Limits of a gateway that do not fit together, or with the ε of the ledger, in words. None of them is unsafe."""
    ceilings = {
        "most of [gateway.question]": settings.question_most,
        "session of [gateway.limits]": settings.session,
        "day of [gateway.limits]": settings.day,
        "epsilon of [ledger]": exactly(epsilon),
    }
    known = {name: value for name, value in ceilings.items() if value is not None}
    least = min(known, key=lambda name: known[name])
    for name, value in known.items():
        if value > exactly(epsilon):
            yield f"{name} is {float(value):g}, and limits nothing: epsilon of [ledger] is {float(epsilon):g}."
    said = f"{least} is {float(known[least]):g}."
    if settings.question_default is not None and settings.question_default > known[least]:
        default = float(settings.question_default)
        yield f"A question that names no ε is refused: default of [gateway.question] is {default:g}, and {said}"
    if settings.approve_above is not None and settings.approve_above >= known[least]:
        above = float(settings.approve_above)
        yield f"No question needs a second person: approve_above of [gateway.limits] is {above:g}, and {said}"


def _section(values: Any, where: str) -> Mapping[str, Any]:
    """One section, after checking that all of its keys are known. A key of another section is sent there."""
    if isinstance(values, Mapping):
        for key in values:
            others = [f"[{name}]" for name, keys in SECTIONS.items() if key in keys]
            if others and f"[{where}]" not in others:
                raise InvalidArgument(
                    f"[{where}] has no key {key}: it belongs into {' or '.join(others)}.", code="policy-unknown-key"
                )
    return section_of(values, where, SECTIONS[where])


def seconds_in(value: Any, what: str, most: float) -> float:
    """A duration such as "2s" or "500ms", in seconds. The number 0 is allowed."""
    if value == 0 and not isinstance(value, bool):
        return 0.0
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    found = float(match[1]) * _UNITS[match[2]] if match else -1.0
    if not 0 <= found <= most:
        raise InvalidArgument(
            f'{what} must be a time of at most {most:g} s, such as "2s", "500ms" or "1m".', code="gateway-duration"
        )
    return found


def _epsilon(value: Any, key: str) -> Fraction:
    return check_epsilon(value, key)


def _mcp(value: Any, session: Fraction | None) -> dict[str, Fraction]:
    """What programs may spend over MCP: by default no more than any session may. With 0, a person confirms all."""
    given = _section(value, "gateway.mcp")
    found = {} if session is None else {"mcp_session": session}
    if "session" in given:
        found["mcp_session"] = _epsilon(given["session"], "session")
    if "confirm_above" in given:
        above = given["confirm_above"]
        none = above == 0 and not isinstance(above, bool)
        found["mcp_confirm_above"] = Fraction(0) if none else _epsilon(above, "confirm_above")
    return found


def _share(value: Any) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise InvalidArgument("alert_at must be a share between 0 and 1, such as 0.8.", code="out-of-range")
    return Fraction(str(value))


def _whole(value: Any, key: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise InvalidArgument(f"{key} of [gateway] must be a whole number from {least} to {most}.", code="out-of-range")
    return value


def _address(value: Any, key: str) -> Address:
    host, _, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise InvalidArgument(
            f'{key} of [gateway] must be an address and a port, such as "127.0.0.1:8080".', code="gateway-address"
        )
    return Address(host, int(port))


def _store(given: str | None, policy: Path, ledger: str) -> str:
    """The place of the gateway's own database: by default that of the policy, which is given without .toml. If it had
    the name of the ledger, a mistyped ledger would bring a new database along, which knows of no other ledger.
    """
    if given is not None:
        return given if given.startswith(URLS) else str(policy.parent / Path(given).expanduser())
    if ledger.startswith(URLS):
        address, _, schema = ledger.partition("#")
        return f"{address}#{schema or 'discreet'}_gateway"
    own, before = f"{policy}.gateway", f"{os.path.splitext(ledger)[0]}.gateway"  # as earlier versions named it
    return before if os.path.exists(before) and not os.path.exists(own) else own


def _users(value: Any) -> tuple[str, str]:
    named = isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(one, str) and one for one in value)
    if not named or value[0] == value[1]:
        raise InvalidArgument(
            f"users of [gateway] must be two different users, of the vault and of the desk, such as {list(USERS)}.",
            code="gateway-users",
        )
    return value[0], value[1]


def _oidc(value: Any) -> OidcSettings:
    given = _section(value, "gateway.oidc")
    found = {key: text_in(given, key, "gateway.oidc") for key in given}
    for key, example in (("issuer", '"https://login.example.org"'), ("client", '"discreet"')):
        if not found.get(key):
            raise InvalidArgument(f"[gateway.oidc] has no {key}. Add {key} = {example}.", code="policy-missing-key")
    return OidcSettings(**{"audience": found["client"], **found})  # type: ignore[arg-type]


def _check_reachable(settings: Settings) -> None:
    """Refuse to be reached from other machines without TLS: a token would be readable on the way."""
    if (settings.certificate is None) != (settings.key is None):
        raise InvalidArgument(
            "[gateway] needs both certificate and key for TLS, or neither on this machine alone.", code="gateway-tls"
        )
    for address in (settings.http, settings.postgres, settings.metrics):
        if address is not None and not address.is_local and settings.certificate is None:
            raise InvalidArgument(
                f"{address} can be reached from other machines, so it needs TLS. Add certificate and key to "
                "[gateway], or listen on 127.0.0.1.",
                code="gateway-tls",
            )
