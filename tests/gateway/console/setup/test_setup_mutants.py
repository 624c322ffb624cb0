"""Bugs planted in the first run and in the verbs of auditors: the check that the sound code passes catches each."""

from __future__ import annotations

import asyncio
import inspect
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet
import pytest

from discreet.datasets.sources import Source, read_source
from discreet.gateway.books import audit
from discreet.gateway.books.tokens import COMMAND_LINE, Caller, digest_of
from discreet.gateway.frames import Frame
from discreet.gateway.setup import office
from discreet.gateway.setup.office import FirstRun
from discreet.gateway.vault import inspection

from ...clinics import Clinic

SECRET, PASSWORD = "the secret of the printed link", "hunter2"


def first_run(folder: Path, source: Source | None = None) -> FirstRun:
    """A first run for a small table."""
    if source is None:
        pyarrow.parquet.write_table(pa.table({"user_id": [1, 2], "age": [3, 4]}), folder / "people.parquet")
        source = read_source([str(folder / "people.parquet")], folder / "clinic.toml")
    known: Any = {"policy": folder / "clinic.toml", "gateway": {"http": "127.0.0.1:8080"}, "begin": lambda: None}
    return FirstRun(source=source, link=digest_of(SECRET), **known)


def call(run: FirstRun, verb: str, token: str | None = None, **arguments: Any) -> tuple[str | None, Any]:
    """The code of a refusal, and what was said."""
    frame = asyncio.run(run.handle(Frame({"verb": verb, "token": token, "arguments": arguments})))
    return frame.header.get("code"), json.loads(frame.body) if frame.header.get("ok") else None


def logged_in(run: FirstRun) -> str:
    code, said = call(run, "login", link=SECRET)
    assert code is None
    return str(said["token"])


# --- the checks ---------------------------------------------------------------------------------------------


def a_link_works_once(folder: Path) -> None:
    run = first_run(folder)
    logged_in(run)
    assert call(run, "login", link=SECRET)[0] == "gateway-login"


def only_the_right_link_works(folder: Path) -> None:
    run = first_run(folder)
    assert call(run, "login", link="another")[0] == "gateway-login"
    assert call(run, "login", link="")[0] == "gateway-login"


def nothing_is_said_without_the_session(folder: Path) -> None:
    run = first_run(folder)
    logged_in(run)
    for verb in ("me", "setup", "setup_text", "setup_choose", "setup_write", "end_session"):
        for token in (None, "", "dsc_0123456789abcdef_" + 64 * "0"):
            assert call(run, verb, token)[0] == "gateway-login", verb
    assert not run.policy.exists()


def a_file_is_never_overwritten(folder: Path) -> None:
    run = first_run(folder)
    run.policy.write_text("mine")
    call(run, "setup_write", logged_in(run))
    assert run.policy.read_text() == "mine"


def the_policy_is_the_owners_alone(folder: Path) -> None:
    run = first_run(folder)
    assert call(run, "setup_write", logged_in(run))[0] is None
    assert run.policy.stat().st_mode & 0o077 == 0


def no_password_is_shown(folder: Path) -> None:
    url = f"postgresql://ada:{PASSWORD}@127.0.0.1/clinic"
    source = Source(places={"t": "public.t"}, tables={"t": {"user_id": "integer"}}, url=url)
    run = first_run(folder, source)
    run._check = lambda made: ""  # type: ignore[method-assign]  # there is no such server
    said = json.dumps([call(run, verb, logged_in(run))[1] for verb in ("setup_text",)])
    assert "user_id" in said
    assert PASSWORD not in said


def a_changed_line_is_found(folder: Path) -> None:
    clinic = Clinic(folder, str(folder / "clinic.gateway"))
    try:
        for number in range(3):
            audit.record(clinic.store, 1.0, "ada", f"event {number}")
        assert inspection.verify_records(clinic.office, COMMAND_LINE)["whole"]
        with clinic.store.write() as execute:
            execute("UPDATE audit SET who = 'bob' WHERE number = 2")
        found = inspection.verify_records(clinic.office, COMMAND_LINE)
        assert (found["whole"], found["lines"]["damage"]["code"]) == (False, "gateway-audit-changed")
    finally:
        clinic.close()


def the_trail_is_for_auditors(folder: Path) -> None:
    clinic = Clinic(folder, str(folder / "clinic.gateway"))
    try:
        for role in ("steward", "analyst", "viewer", "service"):
            caller = Caller(account="eve", role=role, scopes=frozenset(["manage"]))
            with pytest.raises(Exception, match="trail is for the roles owner, auditor"):
                inspection.trail(clinic.office, caller, {})
    finally:
        clinic.close()


# --- the bugs -----------------------------------------------------------------------------------------------


class Bug(NamedTuple):
    """A piece of source, what it is replaced by, and the check that must notice."""

    place: type | ModuleType
    name: str
    old: str
    new: str
    check: Callable[[Path], None]


BUGS = {
    "the_link_stays_valid": Bug(FirstRun, "_login", 'self.link = ""', "pass", a_link_works_once),
    "any_link_is_right": Bug(
        FirstRun, "_login", "not hmac.compare_digest(given, self.link)", "False", only_the_right_link_works
    ),
    "no_session_is_needed": Bug(
        FirstRun, "_reply", "not right or self.now() >= self._ends", "False", nothing_is_said_without_the_session
    ),
    "a_file_is_replaced": Bug(office, "write_new", "os.O_EXCL", "os.O_TRUNC", a_file_is_never_overwritten),
    "everybody_reads_the_policy": Bug(office, "write_new", "0o600", "0o644", the_policy_is_the_owners_alone),
    "the_password_is_on_the_page": Bug(
        FirstRun, "text", "shown_url(self.source.url)", "self.source.url", no_password_is_shown
    ),
    "damage_is_not_reported": Bug(
        inspection, "verify_records", 'one["damage"] is None', "True", a_changed_line_is_found
    ),
    "stewards_read_the_trail": Bug(inspection, "trail", 'roles=("owner", "auditor"), ', "", the_trail_is_for_auditors),
}


def plant(monkeypatch: pytest.MonkeyPatch, bug: Bug) -> None:
    """Put a changed copy of a function in place of the right one."""
    from discreet.gateway.books import offices

    right = getattr(bug.place, bug.name)
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(right)))
    assert source.count(bug.old) == 1, "the source has changed: plant the bug again"
    module = inspect.getmodule(inspect.unwrap(right))
    wrong: dict[str, Any] = {}
    registered = dict(offices.VERBS)
    exec(
        compile("from __future__ import annotations\n" + source.replace(bug.old, bug.new), "planted", "exec"),
        vars(module),
        wrong,
    )
    offices.VERBS.update(registered)  # a verb registers itself
    monkeypatch.setattr(bug.place, bug.name, wrong[bug.name])
    if isinstance(bug.place, type):
        for verb, (function, needs) in office._VERBS.items():
            if function is right:
                monkeypatch.setitem(office._VERBS, verb, (wrong[bug.name], needs))


@pytest.mark.parametrize("check", [bug.check for bug in BUGS.values()], ids=lambda check: check.__name__)
def test_sound_code_passes(check: Callable[[Path], None], tmp_path: Path) -> None:
    check(tmp_path)


@pytest.mark.parametrize("name", [pytest.param(name, id=f"{name}-{bug.check.__name__}") for name, bug in BUGS.items()])
def test_a_mutant_is_killed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, BUGS[name])
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        BUGS[name].check(tmp_path)
