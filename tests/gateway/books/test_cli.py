"""The owner's day at the command line."""

from __future__ import annotations

import json
import os
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.cli import main
from discreet.errors import InvalidArgument
from discreet.gateway.books import approvals, audit, limits
from discreet.gateway.books.accounts import login
from discreet.gateway.books.store import GatewayStore, number_in_meta
from discreet.gateway.books.tokens import authenticate
from discreet.gateway.isolation import as_vault, problems, this_user, users_of
from discreet.gateway.serve import Supervisor, check
from discreet.gateway.settings import load_settings

from ...refusing import refuses

POLICY = """
[ledger]
path = "clinic.ledger"
epsilon = 10.0
delta = 1e-6
[unit]
person = "patient_id"
[tables.visits]
source = "visits.parquet"
[gateway]
http = "127.0.0.1:8081"
[gateway.limits]
approve_above = 0.5
"""


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pa.parquet.write_table(pa.table({"patient_id": [1, 2, 3]}), tmp_path / "visits.parquet")
    (tmp_path / "clinic.toml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "clinic.toml"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """What a command prints: its output, its messages and its exit code."""

    def run(*words: str) -> tuple[str, str, int]:
        with pytest.raises(SystemExit) as info:
            main(["account", "clinic.toml", *words])
        shown = capsys.readouterr()
        return shown.out, shown.err, int(info.value.code or 0)

    return run


def opened(policy: Path) -> GatewayStore:
    return GatewayStore(load_settings(policy)[1].store)


def test_links_and_tokens_are_alone_on_standard_output(policy: Path, run) -> None:
    link, said, code = run("open", "alice", "--epsilon", "3")
    assert (code, link.startswith("http://127.0.0.1:8081/login#"), link.count("\n")) == (0, True, 1)
    assert "alice" in said
    token = run("token", "alice", "--scope", "ask")[0].strip()
    with opened(policy) as store:
        assert authenticate(store, token, store_time(store)).scopes == {"ask"}


@pytest.mark.slow
def test_a_day_of_the_owner(policy: Path, run, capsys: pytest.CaptureFixture[str]) -> None:
    link, said, code = run("open", "alice", "--epsilon", "3")
    assert (code, link.startswith("http://127.0.0.1:8081/login#"), link.count("\n")) == (0, True, 1)
    assert "alice" in said
    token, _, _ = run("token", "alice", "--scope", "ask", "--scope", "replay", "--expires", "30d", "--epsilon", "1")
    with opened(policy) as store:
        now = store_time(store)
        session = login(store, link.strip().split("#")[1], now)
        alice = authenticate(store, token.strip(), now)
        assert (session.account, alice.account, alice.scopes, alice.epsilon) == ("alice", "alice", {"ask", "replay"}, 1)

        assert run("suspend", "alice")[2] == 0
        with pytest.raises(dp.NotAllowed):
            authenticate(store, token.strip(), now)
        assert run("resume", "alice")[2] == 0
        approvals.ask_approval(store, alice, "d", "SELECT 1", 1, now)
        assert "SELECT 1" in run("requests")[0]
        assert run("approve", "1", "--why", "fine")[2] == 0
        assert json.loads(run("requests", "--json")[0])[0]["state"] == "approved"
        settings = load_settings(policy)[1]
        assert limits.reserve(store, settings, alice, 1, now, digest="d").number == 1
        rotated = run("rotate", alice.token)[0].strip()
        assert authenticate(store, rotated, now).token == alice.token
        assert run("revoke", str(alice.token))[2] == 0
        assert run("revoke", "alice")[2] == 0
        with pytest.raises(dp.NotAllowed):
            authenticate(store, rotated, now)
    assert run("raise", "alice", "--epsilon", "5", "--why", "a second study")[1].strip().endswith("ε = 5, δ = 1e-06.")
    assert run("renew", "alice", "--why", "new people")[2] == 0
    assert run("role", "alice", "viewer")[2] == 0
    listed = json.loads(run("list", "--json")[0])
    assert [(one["name"], one["role"]) for one in listed["accounts"]] == [("alice", "viewer")]
    shown = run("list")[0]
    assert "viewer" in shown
    assert "alice" in run("tokens", "alice")[0]
    lines = json.loads(run("audit", "--json", "--last", "3")[0])
    assert [one["what"] for one in lines] == ["limit raised", "limit renewed", "role changed"]
    assert "login" in run("audit")[0]
    assert run("audit", "--verify")[2] == 0
    everything = capsys.readouterr().out + shown
    assert token.strip() not in everything
    assert run("backup", "copy.gateway")[2] == 0
    with GatewayStore("copy.gateway") as copy:
        assert audit.verify(copy) == int(lines[-1]["number"])


def store_time(store: GatewayStore) -> float:
    """The time of the last line: the command line has the clock of the machine."""
    return audit.lines(store)[-1].at / 1e6


def test_it_finds_the_policy_of_the_folder(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy.rename(policy.with_name("discreet.toml"))
    with pytest.raises(SystemExit) as info:
        main(["account", "list", "--json"])
    assert not info.value.code
    assert json.loads(capsys.readouterr().out)["accounts"] == []


def test_all_stop_and_go_on(policy: Path, run) -> None:
    assert run("suspend")[2] == 0
    assert json.loads(run("list", "--json")[0])["stopped"]
    assert re.search(r"stopped\. When you have looked: discreet account \S+ resume", run("list")[1])
    assert run("resume")[2] == 0
    assert not json.loads(run("list", "--json")[0])["stopped"]


@pytest.mark.parametrize(
    ("words", "code", "status"),
    [
        (("open", "a b", "--epsilon", "1"), "gateway-account-name", 2),
        (("open", "alice"), "gateway-account-limit", 2),
        (("suspend", "nobody"), "gateway-not-found", 2),
        (("revoke", "nobody"), "gateway-not-found", 2),
        (("rotate", "0123456789abcdef"), "gateway-not-found", 2),
        (("approve", "7"), "gateway-not-found", 2),
        (("link", "nobody"), "gateway-not-found", 2),
        (("refuse", "7"), "gateway-not-found", 2),
    ],
)
def test_refusals_have_a_code(policy: Path, run, words: tuple[str, ...], code: str, status: int) -> None:
    _, said, exit_code = run(*words)
    assert (f"[{code}]" in said, exit_code) == (True, status)


def test_a_policy_without_a_gateway(policy: Path, run) -> None:
    policy.write_text(POLICY.partition("[gateway]")[0])
    assert "[policy-missing-key]" in run("list")[1]
    for begin in (Supervisor, check):  # nothing that accounts could not be opened for is served
        with refuses(InvalidArgument, "policy-missing-key"):
            begin(policy)
    assert not policy.with_suffix(".gateway").exists()


def test_all_users_that_are_missing_are_named_at_once(policy: Path) -> None:
    settings = replace(load_settings(policy)[1], users=("no-such-vault", "no-such-desk"))
    with refuses(InvalidArgument, "gateway-users") as refused:
        users_of(settings)
    homes = ("/var/lib/discreet-vault", "/nonexistent")  # the vault has a second checkpoint
    for name, home in zip(settings.users, homes, strict=True):
        made = f"useradd --system --user-group --no-create-home --home-dir {home} --shell /usr/sbin/nologin {name}"
        assert made in str(refused.value)
    home = "install -d -o no-such-vault -g no-such-vault -m 700 /var/lib/discreet-vault"
    assert str(refused.value).endswith(home)  # after its user
    before = os.geteuid()
    with as_vault(load_settings(policy)[0], settings):  # and as root, accounts are managed all the same
        assert this_user().user == before


def test_a_first_run_does_not_speak_of_a_section_that_is_not_there(policy: Path, monkeypatch) -> None:
    known, settings = load_settings(policy)
    settings = replace(settings, users=("no-such-vault", "no-such-desk"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "[gateway]" in " ".join(problems(policy, known, settings))
    assert "[gateway]" not in " ".join(problems(policy.with_name("new.toml"), known, settings))


def test_ids_and_times_stay_whole_on_80_columns(policy: Path, run, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run("open", "alice-of-the-second-ward", "--epsilon", "3")
    identity = run("token", "alice-of-the-second-ward", "--expires", "30d")[0].strip().split("_")[1]
    [token] = json.loads(run("tokens", "--json")[0])
    assert {identity, token["expires"]} <= set(run("tokens")[0].split())
    line = json.loads(run("audit", "--json")[0])[-1]
    assert {str(line["number"]), line["at"]} <= set(run("audit")[0].split())


def test_the_audit_shows_an_epsilon_as_people_write_it(policy: Path, run) -> None:
    with opened(policy) as store:
        audit.record(store, 0.0, "alice", "refused", epsilon="0.0999999999999")
    shown = run("audit")[0]
    assert '"0.1"' in shown
    assert "0999" not in shown
    assert json.loads(run("audit", "--json")[0])[-1]["details"]["epsilon"] == "0.0999999999999"


def test_help_keeps_the_name_of_the_section(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit):
        main(["account", "--help"])
    assert "the section [gateway]" in " ".join(capsys.readouterr().out.split())


def test_who_gets_more_than_the_data_set_has_is_named(policy: Path, run) -> None:
    """The limit may be meant for later, so that it is a warning. An account with no more than there is gets none."""
    for name, epsilon, warned in (("alice", "10", False), ("bob", "10.5", True), ("cyd", "3", False)):
        link, said, code = run("open", name, "--epsilon", epsilon)
        assert (code, link.count("\n")) == (0, 1)
        assert ("ε = 10, δ = 1e-06, for all accounts together" in said) == warned, said
    with closing(dp.Ledger.open(policy.parent / "clinic.ledger")) as ledger:
        ledger.charge(dp.Pure(epsilon=8), asked="a")
    assert "left of" in run("open", "dan", "--epsilon", "5")[1]
    assert "left of" not in run("raise", "cyd", "--epsilon", "5", "--why", "more")[1]
    assert "left of" in run("raise", "cyd", "--epsilon", "11", "--why", "more")[1]
    assert "left of" in run("renew", "cyd", "--epsilon", "6", "--why", "more")[1]
    assert "left of" not in run("open", "eva", "--role", "viewer")[1]


def test_the_list_says_what_is_left_now(policy: Path, run) -> None:
    """An alert is said once, at 80%: what was left then is in the audit."""
    run("open", "alice", "--epsilon", "1")
    settings = load_settings(policy)[1]
    with closing(dp.Ledger.open(policy.parent / "clinic.ledger")) as ledger, opened(policy) as store:
        view = ledger.for_analyst("alice")
        view.charge(dp.Pure(epsilon=0.8), asked="a")
        [before] = limits.check_alerts(store, settings, ledger, "alice", store_time(store))
        view.charge(dp.Pure(epsilon=0.15), asked="b")
        limits.check_alerts(store, settings, ledger, "alice", store_time(store))
        now = f"alice has {view.remaining} left of {view.limit}."
    [account] = json.loads(run("list", "--json")[0])["accounts"]
    assert account["alert"] == now != before


# --- the emergency brake ------------------------------------------------------------------------------------


@pytest.fixture
def charged(policy: Path, run) -> str:
    """A ledger with a charge, an account, and the id of its token."""
    run("open", "alice", "--epsilon", "3")
    _, said, _ = run("token", "alice")
    with closing(dp.connect(policy, analyst="alice")) as clinic:
        clinic.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.1)
    return said.split()[2]


def edit(policy: Path, old: str, new: str) -> None:
    text = policy.read_text()
    assert old in text
    policy.write_text(text.replace(old, new))


MISTAKES = {
    "another limit": ("epsilon = 10.0", "epsilon = 12.0"),
    "another unit": ('person = "patient_id"', "row = true"),
    "no TOML": ("epsilon = 10.0", "epsilon = 10,0"),
    "a line that is not closed": ('source = "visits.parquet"', 'source = "visits.parquet'),
    "no such key": ("epsilon = 10.0", "epsilonn = 10.0"),
    "a setting that is wrong": ("approve_above = 0.5", "approve_above = -1"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_policy_does_not_stop_the_brake(policy: Path, run, charged: str, mistake: str) -> None:
    edit(policy, *MISTAKES[mistake])
    for words in (("suspend", "alice"), ("revoke", charged), ("suspend",), ("tokens",), ("requests",), ("audit",)):
        _, said, status = run(*words)
        assert status == 0, said
        assert ("Note: " in said) == (mistake not in ("another limit", "another unit")), said
    assert run("backup", "copy")[2] == 0
    with GatewayStore("clinic.gateway") as store, store.read() as execute:
        assert execute("SELECT suspended FROM accounts WHERE name = 'alice'") == [(1,)]
        assert execute("SELECT revoked FROM tokens WHERE id = ?", charged) != [(None,)]
        assert number_in_meta(execute, "stopped") == 1


def test_the_brake_needs_no_ledger(policy: Path, run, charged: str) -> None:
    Path("clinic.ledger").unlink()
    assert run("list")[2] == 1  # it is missing
    assert run("suspend", "alice")[2] == 0
    assert run("revoke", charged)[2] == 0


def test_accounts_are_managed_under_the_limit_of_the_ledger(policy: Path, run, charged: str) -> None:
    """The old gateway goes on with it, until the owner records the new one."""
    edit(policy, *MISTAKES["another limit"])
    shown, said, status = run("list", "--json")
    assert status == 0
    assert "--raise WHY" in said
    assert json.loads(shown)["accounts"][0]["limit"] == {"epsilon": 3.0, "delta": 1e-6}
    assert run("resume", "alice")[2] == 0


def test_other_verbs_need_a_policy_without_mistakes(policy: Path, run, charged: str) -> None:
    edit(policy, *MISTAKES["no TOML"])
    for words in (("list",), ("open", "bob"), ("resume",), ("raise", "alice", "--epsilon", "5", "--why", "study 2")):
        _, said, status = run(*words)
        assert (status, "[policy-not-toml]" in said) == (2, True), words


UNCERTAIN = {
    "a store that is not closed": 'store = "real.gateway',
    "a store without its name": 'stor = "real.gateway"',
    "a store with another sign": 'store: "real.gateway"',
    "a heading that is not closed": '[gateway.limits\nstore = "real.gateway"',
    "a text of several lines": 'log = """\n[gateway]\nstore = "real.gateway"\n"""\nlanes = ',
}


@pytest.mark.parametrize("mistake", UNCERTAIN)
def test_the_brake_is_that_of_this_gateway(policy: Path, run, charged: str, mistake: str) -> None:
    """Where the database may be another one than the one that is usual, the wrong gateway would be stopped."""
    edit(policy, "[gateway]", f"[gateway]\n{UNCERTAIN[mistake]}")
    GatewayStore("real.gateway").close()
    for words in (("suspend",), ("tokens",)):
        _, said, status = run(*words)
        assert status == 2, said
    for name in ("clinic.gateway", "real.gateway"):
        with GatewayStore(name) as store, store.read() as execute:
            assert number_in_meta(execute, "stopped") == 0


def test_the_brake_makes_no_database(policy: Path, run) -> None:
    edit(policy, "[gateway]", "[gateway]\nlanes = ")
    for words in (("suspend",), ("tokens",)):
        _, said, status = run(*words)
        assert (status, "[policy-not-toml]" in said) == (2, True)
    assert not Path("clinic.gateway").exists()
    GatewayStore("clinic.gateway").close()
    assert "clinic.gateway" in run("suspend")[1]
    edit(policy, "lanes = ", 'lanes = \nstore = "postgresql://localhost:1/clinic"')
    assert run("suspend")[2] == 1  # that database cannot be reached
