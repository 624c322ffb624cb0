"""The verbs of a first run. Nothing is said or done without the session of the owner, who has the printed link."""

from __future__ import annotations

import hmac
import os
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from discreet.datasets.column_names import names_in
from discreet.datasets.limits import warnings_on_limit
from discreet.datasets.sources import Source
from discreet.errors import DiscreetError, InvalidArgument
from discreet.gateway.books import accounts
from discreet.gateway.books.offices import check_arguments
from discreet.gateway.books.plain import time_text
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.books.tokens import COMMAND_LINE, SESSION, digest_of, login_error, new_token
from discreet.gateway.frames import BadFrame, Frame, refusal
from discreet.gateway.settings import settings_of
from discreet.gateway.setup import draft as drafts
from discreet.ledger import Ledger

ACCOUNT = "(first run)"
MOST_KEYS = 50
"""So many keys of other tables are offered for each table."""
"""Who is at the browser until there is an account."""


@dataclass(kw_only=True)
class FirstRun:
    """The state of a first run: the data, the decisions so far, and the one session."""

    source: Source
    policy: Path
    gateway: Mapping[str, Any]
    """What is said in [gateway] about this machine: the address, and users of its own."""
    link: str = field(repr=False)
    """The digest of the secret in the printed link. Empty once it was used."""
    begin: Callable[[], None]
    """Called once the policy is written and may be served."""
    now: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self.draft = drafts.first_draft(self.source)
        self._session, self._ends, self._is_written = "", 0.0, False
        self._earlier, self._begun = "", dict[str, Any]()
        """The session before the policy was written, and what it was told: a button may be pressed twice."""

    async def handle(self, frame: Frame) -> Frame:
        """The reply to a request of the desk."""
        try:
            verb = frame.header.get("verb")
            return json_frame(self._reply(verb if isinstance(verb, str) else "", frame))
        except BadFrame:
            return refusal(InvalidArgument("The body must be one JSON object.", code="gateway-body"))
        except DiscreetError as error:
            return refusal(error)
        except Exception:  # a fault of ours: its message could say too much, except to who has the data
            traceback.print_exc()
            said = "The set-up failed. Nothing was written. The terminal says why."
            return refusal(DiscreetError(said, code="gateway-failed"))

    def _reply(self, verb: str, frame: Frame) -> dict[str, Any]:
        if verb == "health":
            return {"ok": True}
        if verb == "login":
            return self._login(frame.arguments)
        token = frame.header.get("token")
        given = digest_of(token) if isinstance(token, str) else ""
        right = any(hmac.compare_digest(given, one) for one in (self._session, self._earlier) if one)
        if not right or self.now() >= self._ends:
            raise login_error()
        if verb in _VERBS:
            needs = _VERBS[verb][1]
            check_arguments(verb, frame.arguments, needs, ())
            return _VERBS[verb][0](self, frame.arguments)
        raise InvalidArgument("There is no such request in a first run.", code="gateway-not-found")

    def _login(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Use the printed link, once."""
        given = digest_of(str(arguments.get("link")))
        if not self.link or not hmac.compare_digest(given, self.link):
            raise login_error()
        self.link = ""
        return self._begin_session(new_token().text)

    def _begin_session(self, token: str) -> dict[str, Any]:
        self._session, self._ends = digest_of(token), self.now() + SESSION
        return {"token": token, "account": ACCOUNT, "expires": time_text(self._ends)}

    def me(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Who is at the browser: somebody who sets up, or waits for the gateway to start."""
        role = "starting" if self._is_written else "setup"
        known = {"account": ACCOUNT, "role": role, "scopes": [], "limits": {}, "suspended": False}
        return {**known, "database": self.policy.stem, "expires": time_text(self._ends)}

    def end_session(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """End the session. The printed link does not work again: start the first run once more."""
        self._session, self._earlier, self._ends = "", "", 0.0
        return {"revoked": []}

    # --- the decisions --------------------------------------------------------------------------------------

    def show(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Names and types of the data, what can be chosen, and what is decided. Only the owner is told how many values
        of a text file do not fit its types, and no policy.
        """
        source, made = self.source, self.draft
        people = drafts.people_by_keys(source)
        others = people.others if people else {}
        tables = []
        for name, types in source.tables.items():
            known = {**asdict(made.tables[name]), "as_text": sorted(made.tables[name].as_text)}
            notes = source.notes_on(name, known["leads"] if known["use"] == "people" else None)
            columns = [
                {
                    "name": column,
                    "type": made.tables[name].kind_of(column, kind),
                    "proposed": kind,
                    "notes": [] if column in known["as_text"] else list(notes.get(column, ())),
                    "declared": known["columns"].get(column, {}),
                }
                for column, kind in types.items()
            ]
            keys = list(islice(drafts.keys_to(source, name), MOST_KEYS))
            can = {"people": drafts.people_columns(source, name), "through": keys}
            if known["use"] in can:  # what is chosen is offered first: a page shows only the first ones
                can[known["use"]] = list(dict.fromkeys([known["leads"], *can[known["use"]]]))
            text = {"untyped": name in source.untyped, "unsure": list(source.unsure_of(name))}
            text["names"] = ", ".join(types) if source.can_name(name) else ""
            text["notes"] = list(source.texts[name].file_notes) if name in source.texts else []
            known |= {"name": name, "columns": columns, "can": can, "others": list(others.get(name, ()))}
            tables.append(known | text)
        limits = {name: getattr(made, name) for name in vars(made) if name != "tables"}
        return {
            "policy": self.policy.name,
            "is_database": source.url is not None,
            "tables": tables,
            "left_out": dict(source.left_out),
            "limits": limits,
            "warnings": warnings_on_limit(made.epsilon, made.delta),
        }

    def choose(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Decide one step: "names" of columns, "tables", "limits", or the columns of one table."""
        self._check_open()
        step, given = arguments["step"], arguments["given"]
        if not isinstance(given, dict):
            raise InvalidArgument("given is an object with the fields of the step.", code="gateway-argument")
        if step in ("tables", "some tables"):
            self.draft = drafts.with_uses(self.draft, self.source, given, is_last=step == "tables")
        elif step == "names":
            self._name_columns(given)
        elif step == "limits":
            self.draft = drafts.with_limits(self.draft, given)
        elif isinstance(step, dict) and isinstance(step.get("table"), str):
            made = drafts.with_columns(self.draft, self.source, step["table"], given)
            self._check(made)
            self.draft = made
        else:
            raise InvalidArgument("There is no such step.", code="gateway-not-found")
        return {"chosen": True}

    def _name_columns(self, given: Mapping[str, Any]) -> None:
        """Name the columns of tables whose files have no line of names: all of them, or none if a name is wrong."""
        source, made = self.source, self.draft
        for table, names in given.items():
            if not source.can_name(table):
                raise InvalidArgument("The columns of this table have names.", code="setup-choice")
            named = source.with_names(table, names_in(str(names)))
            source, made = named, drafts.with_names(made, source, named, table)
        self.source, self.draft = source, made

    def _check(self, made: drafts.Draft) -> str:
        text = drafts.policy_text(made, self.source, self.policy.stem, self.gateway)
        drafts.checked(text, self.policy.parent)
        return text

    def text(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The policy that follows from the decisions, without the password of a database."""
        self._check(self.draft)
        url = None if self.source.url is None else shown_url(self.source.url)
        return {"text": drafts.policy_text(self.draft, replace(self.source, url=url), self.policy.stem, self.gateway)}

    def write(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Write the policy, open its ledger and the owner's account, and have it served. A session of that account. The
        second time, the same session.
        """
        if self._is_written:
            return self._begun
        text = self._check(self.draft)
        policy = drafts.checked(text, self.policy.parent)
        settings = settings_of(policy.gateway or {}, self.policy.parent, policy, self.policy.stem)
        for place in (str(policy.ledger), settings.store):
            if Path(place).exists():
                raise _exists(Path(place))
        write_new(self.policy, text)
        try:
            ledger = Ledger.open(policy.ledger, protects=policy.unit, limit=policy.limit, rule=policy.rule)
            with closing(ledger), GatewayStore(settings.store) as store:
                now = self.now()
                accounts.open_account(store, ledger, self.draft.owner, "owner", by=COMMAND_LINE, now=now)
                begun = accounts.begin_session(store, self.draft.owner, "by the first run", now)
        except BaseException:
            self.policy.unlink(missing_ok=True)
            raise
        self._is_written, self._earlier = True, self._session
        said = self._begin_session(begun.text)  # the same session, until the gateway itself is there
        self._begun = {**said, "account": begun.account}
        self.begin()
        return self._begun

    def _check_open(self) -> None:
        if self._is_written:
            raise InvalidArgument("The policy is written, and its gateway starts.", code="file-exists")


_VERBS: dict[str, tuple[Callable[[FirstRun, Mapping[str, Any]], dict[str, Any]], tuple[str, ...]]] = {
    "me": (FirstRun.me, ()),
    "end_session": (FirstRun.end_session, ()),
    "setup": (FirstRun.show, ()),
    "setup_choose": (FirstRun.choose, ("step", "given")),
    "setup_text": (FirstRun.text, ()),
    "setup_write": (FirstRun.write, ()),
}


def json_frame(content: Any) -> Frame:
    """A reply in JSON."""
    from discreet.gateway.vault.vault import json_frame as made

    return made(content)


def write_new(file: Path, text: str) -> None:
    """Write a file that only its owner can read. One that exists is left as it is."""
    try:
        number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise _exists(file) from None
    except OSError as error:
        raise InvalidArgument(
            f"{file} cannot be written: {error.strerror}. Name another file.", code="file-not-writable"
        ) from None
    with os.fdopen(number, "w", encoding="utf-8") as opened:
        opened.write(text)


def _exists(file: Path) -> InvalidArgument:
    return InvalidArgument(f"{file} exists and is left as it is. Name another policy.", code="file-exists")


def shown_url(url: str) -> str:
    """A URL as it may be shown: without its user and password, and without options."""
    scheme, _, rest = url.partition("://")
    before, _, after = rest.partition("?")
    if "@" in after:  # in an option, or after a password with a question mark: nobody can say which
        return f"{scheme}://…"
    return f"{scheme}://{before.rpartition('@')[2]}"
