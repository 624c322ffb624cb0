"""Two users: what the desk's user can reach, tried as root with processes of real users."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

import discreet as dp
from discreet.cli import main
from discreet.errors import InvalidArgument, LedgerDamaged, LedgerUnavailable
from discreet.gateway import isolation
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.isolation import as_vault, problems, this_user
from discreet.gateway.serve import Supervisor, check
from discreet.gateway.settings import load_settings
from discreet.ledger import Ledger
from discreet.ledger.stores import elsewhere
from discreet.ledger.stores.elsewhere import second_folder

from ..refusing import refuses
from .house import COUNT, House
from .served import DESK, ENVIRONMENT, OTHER, USERS, VAULT, as_user, give_to_vault, python_for_all, served_as_root

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of other users"),
    pytest.mark.skipif(
        os.geteuid() == 0 and python_for_all() is None, reason="no Python of this version that other users can run"
    ),
]
LISTEN = 'http = "127.0.0.1:0"\nanswer_after = 0\n'
OWN = ("clinic.gateway", "clinic.ledger", "clinic.ledger.checkpoint")
CONNECT = """
import socket, sys
link = socket.socket(socket.AF_UNIX)
link.settimeout(10)
link.connect(sys.argv[1])
try:
    link.sendall(bytes.fromhex(sys.argv[2]))
    print(len(link.recv(100)))
except ConnectionError:
    print(0)
"""
OPEN = """
import os, sys
for path in sys.argv[1:]:
    try:
        os.listdir(path) if os.path.isdir(path) else open(path, "rb").close()
        print("read")
    except OSError as error:
        print(error.errno)
"""


@pytest.fixture
def house(monkeypatch):
    """The files of a gateway, as their owner should leave them."""
    monkeypatch.setattr(sys, "executable", python_for_all())
    folder = Path(tempfile.mkdtemp(prefix="clinic-"))
    folder.chmod(0o755)
    made = House(folder / "clinic", USERS + LISTEN)
    made.open("ada")
    give_to_vault(made.folder)
    yield made
    shutil.rmtree(folder)


def found(house: House) -> list[str]:
    return problems(house.policy, *load_settings(house.policy))


@pytest.mark.slow
def test_files_of_the_vault_are_isolated(house):
    assert found(house) == []
    check(house.policy)


@pytest.mark.slow
def test_files_that_the_desk_can_read_or_change(house):
    paths = [house.folder / name for name in (*OWN, "clinic.toml", "visits.parquet")]
    for path in paths:
        path.chmod(0o604)
    assert found(house) == [f"the desk can read {path}: chmod go-rwx {path}" for path in paths]
    for path in paths:
        path.chmod(0o602)
    assert found(house) == [f"the desk can change {path}: chmod go-w {path}" for path in paths]


@pytest.mark.slow
def test_a_check_says_that_there_is_no_second_checkpoint(house, monkeypatch, capsys):
    """The vault's user is only a number, without a home: the check passes, with a warning."""

    def said():
        with pytest.raises(SystemExit) as ended:
            main(["serve", str(house.policy), "--check"])
        assert not ended.value.code
        return capsys.readouterr()

    assert said().err == ""  # it is switched off
    monkeypatch.delenv("DISCREET_STATE")
    said = said()
    assert said.out.startswith("isolated")
    assert said.err.startswith(f"WARNING: there is no second checkpoint, because {VAULT} cannot write /.local/state")


@pytest.mark.slow
def test_what_is_not_isolated_is_not_started(house):
    (house.folder / "visits.parquet").chmod(0o644)
    with refuses(InvalidArgument, "gateway-not-isolated"):
        check(house.policy)
    with refuses(InvalidArgument, "gateway-not-isolated"):
        Supervisor(house.policy)


def test_public_tables_may_be_read(house):
    (house.folder / "prices.parquet").chmod(0o644)
    assert found(house) == []


@pytest.mark.slow
def test_folders_that_the_desk_can_change(house):
    house.folder.chmod(0o733)
    assert found(house) == [f"the desk can change {house.folder}: chmod go-w {house.folder}"]
    house.folder.chmod(0o711)
    house.folder.parent.chmod(0o757)  # then it could put another folder in the place of this one
    assert found(house) == [f"the desk can change {house.folder.parent}: chmod go-w {house.folder.parent}"]
    house.folder.parent.chmod(0o1777)
    assert found(house) == []


@pytest.mark.slow
def test_files_in_a_folder_of_data(house):
    """A folder that cannot be listed, with files that can be read by whoever guesses their names."""
    inside = house.folder / "clinic.gateway.data" / "1" / "visits.parquet"
    inside.parent.mkdir(parents=True)
    inside.touch(0o644)
    for path in (inside.parent, inside.parent.parent):
        path.chmod(0o711)
    assert f"the desk can read {inside}: chmod go-rwx {inside}" in found(house)


@pytest.mark.slow
def test_files_of_root_are_not_the_vaults(house):
    for name in (*OWN, "clinic.toml"):
        os.chown(house.folder / name, 0, 0)
    policy, own = house.policy, [house.folder / name for name in OWN]
    assert found(house) == [
        f"the vault cannot read {policy}: chown {VAULT} {policy}",
        *(f"the vault cannot write {path}: chown {VAULT} {path}" for path in own),
    ]


@pytest.mark.slow
def test_all_commands_are_told_in_one_round(house):
    """Data as root leaves them: readable for all. Once they are not, the vault cannot read them either."""
    data, ledger = house.folder / "visits.parquet", house.folder / "clinic.ledger"
    for path in (data, ledger):
        os.chown(path, 0, 0)
        path.chmod(0o666)
    os.chown(house.folder, 0, 0)
    house.folder.chmod(0o700)
    with refuses(InvalidArgument, "gateway-not-isolated") as refused:
        check(house.policy)
    commands = [line.split() for line in str(refused.value).splitlines() if line.startswith("    ")]
    assert len(commands) == 3
    assert {command[0] for command in commands} == {"chown"}
    house.folder.chmod(0o711)
    with refuses(InvalidArgument, "gateway-not-isolated") as refused:
        check(house.policy)
    for command in (line.split() for line in str(refused.value).splitlines() if line.startswith("    ")):
        subprocess.run(command, check=True)
    check(house.policy)


@pytest.mark.slow
def test_data_in_a_home_are_moved_and_the_home_is_not_given_away(house, monkeypatch):
    house.folder.parent.chmod(0o700)
    [problem] = found(house)
    assert f"the vault cannot enter {house.folder.parent}." in problem
    assert "such as /var/lib/clinic" in problem
    assert "chown" not in problem
    house.folder.parent.chmod(0o755)
    house.folder.chmod(0o700)
    os.chown(house.folder, 0, 0)
    assert any("chown" in problem for problem in found(house))
    homes = [isolation.pwd.struct_passwd(("ana", "x", 1000, 1000, "", str(house.folder), "/bin/sh"))]
    monkeypatch.setattr(isolation.pwd, "getpwall", lambda: homes)
    [problem] = found(house)
    assert f"the vault cannot enter {house.folder}." in problem
    house.folder.chmod(0o755)
    assert f"the vault cannot write {house.folder}. Move" in " ".join(found(house))


def test_a_group_of_both(house, monkeypatch):
    users = (isolation.User(VAULT, VAULT), isolation.User(DESK, VAULT))
    monkeypatch.setattr(isolation, "users_of", lambda _: users)
    assert found(house) == ["vault and desk have the same group: give each its own"]


def test_a_certificate_that_the_desk_cannot_read(house):
    (house.folder / "key.pem").touch(0o600)
    house.policy.write_text(
        house.policy.read_text().replace("answer_after", 'certificate = "key.pem"\nkey = "key.pem"\nanswer_after', 1)
    )
    assert any(one.startswith(f"the desk cannot read {house.folder}/key.pem") for one in found(house))


def test_a_python_that_others_cannot_run(house, monkeypatch):
    hidden = house.folder / "python"
    shutil.copy(python_for_all(), hidden)
    hidden.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(hidden))
    [problem] = found(house)
    assert f"the user {DESK} cannot run {hidden}" in problem
    folder = house.folder / "programs"
    folder.mkdir(0o700)
    (folder / "python").symlink_to(python_for_all())
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    [problem] = found(house)
    assert f"cannot run {os.path.realpath(python_for_all())}, because it cannot enter {folder}." in problem
    commands = problem.rpartition(": ")[2].split(" && ")
    assert commands[0] == "/usr/bin/python3 -m venv /opt/discreet"
    assert commands[1].startswith('/opt/discreet/bin/pip install "discreet[gateway]"  # ')


def test_what_root_makes_for_the_vault_is_the_vaults(house):
    for path in house.folder.glob("clinic.gateway*"):
        path.unlink()
    policy, settings = load_settings(house.policy)
    before = (this_user(), os.getgroups(), os.environ["HOME"])
    with as_vault(policy, settings):
        assert os.geteuid() == VAULT
        GatewayStore(settings.store).close()
    assert (this_user(), os.getgroups(), os.environ["HOME"]) == before
    assert os.stat(settings.store).st_uid == VAULT
    os.chown(house.folder, 0, 0)  # it is not the vault's folder: somebody tries things out as root
    with as_vault(policy, settings):
        assert os.geteuid() == 0


def charged_by_the_vault(house):
    with as_vault(*load_settings(house.policy)), closing(Ledger.open(house.folder / "clinic.ledger")) as ledger:
        assert os.geteuid() == VAULT
        ledger.for_analyst("ada").charge(dp.Pure(epsilon=0.1), asked="a count")


def old_ledger(house, monkeypatch, root: Path) -> Callable[[], None]:
    """A ledger that the vault has charged twice, and what puts its files back as they were after the first time, each
    in its own place. The vault's user has a home with a state directory, and that of root is another one.
    """
    home = house.folder / "home"
    home.mkdir()
    os.chown(home, VAULT, VAULT)
    vault = pwd.struct_passwd(("vault", "x", VAULT, VAULT, "", str(home), "/bin/sh"))
    known = pwd.getpwuid
    monkeypatch.setattr(pwd, "getpwuid", lambda user: vault if user == VAULT else known(user))
    monkeypatch.delenv("DISCREET_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(root))
    charged_by_the_vault(house)
    files = [house.folder / name for name in ("clinic.ledger", "clinic.ledger.checkpoint")]
    old = [file.read_bytes() for file in files]
    charged_by_the_vault(house)
    return lambda: [file.write_bytes(content) for file, content in zip(files, old, strict=True)] and None


@pytest.mark.parametrize("named", ["clinic.toml", "clinic.ledger"])
def test_a_ledger_command_of_root_has_seen_what_the_vault_has(house, named, monkeypatch, tmp_path, capsys):
    """All files of the ledger are put back. Only the second checkpoint of the vault's user knows more."""

    def status(*words: str) -> int:
        with pytest.raises(SystemExit) as ended:
            main(["ledger", str(house.folder / named), *words])
        return ended.value.code or 0

    put_back = old_ledger(house, monkeypatch, tmp_path)
    assert status("--verify") == 0
    put_back()
    assert status("--verify") != 0
    assert "[ledger-old-copy]" in capsys.readouterr().err
    assert status("--adopt", "nobody will notice") != 0
    if named == "clinic.toml":
        assert status("--raise", "nobody will notice") != 0
    assert capsys.readouterr().err.count("[ledger-old-copy]") == (2 if named == "clinic.toml" else 1)
    assert list(tmp_path.iterdir()) == []  # root's own state directory is no vault's


@pytest.mark.parametrize("named", ["clinic.toml", "clinic.ledger"])
def test_a_checkpoint_that_root_makes_is_the_vaults(house, named):
    checkpoint = house.folder / "clinic.ledger.checkpoint"
    checkpoint.unlink()
    with pytest.raises(SystemExit) as ended:
        main(["ledger", str(house.folder / named), "--adopt", "its checkpoint was lost"])
    assert not ended.value.code
    assert checkpoint.stat().st_uid == VAULT


ASKED = {
    "query": ("clinic.toml", COUNT, "--epsilon", "0.1"),
    "explain": ("clinic.toml", COUNT, "--epsilon", "0.1"),
    "tables": ("clinic.toml",),
    "schedule": ("clinic.toml",),
    "risk": ("clinic.ledger",),
    "check": ("clinic.toml",),
    "publish": ("plan.toml", "out"),
}
PLAN = f"""
title = "Visits"
policy = "clinic.toml"
[tables.visits]
sql = "{COUNT}"
epsilon = 0.1
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", ASKED)
def test_root_has_seen_what_the_vault_has(house, command, monkeypatch, tmp_path, capsys):
    """Whatever root opens the ledger for."""
    old_ledger(house, monkeypatch, tmp_path)()
    (house.folder / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(house.folder)
    with pytest.raises(SystemExit):
        main([command, *ASKED[command]])
    assert "[ledger-old-copy]" in "".join(capsys.readouterr())


def test_python_of_root_has_seen_what_the_vault_has(house, monkeypatch, tmp_path):
    """And what root charges, the vault has seen: both use the checkpoint of the vault's user."""
    put_back = old_ledger(house, monkeypatch, tmp_path)
    with closing(dp.connect(house.policy)) as clinic:
        clinic.sql(COUNT, epsilon=0.1)
    [seen] = (house.folder / "home").rglob("*.checkpoint")
    assert seen.stat().st_uid == VAULT
    assert list(tmp_path.iterdir()) == []
    put_back()
    with refuses(LedgerDamaged, "ledger-old-copy"):
        dp.connect(house.policy)
    with refuses(LedgerDamaged, "ledger-old-copy"):
        Ledger.open(house.folder / "clinic.ledger")
    (house.folder / "clinic.ledger.checkpoint").unlink()  # then the owner of the folder says whose it is
    with refuses(LedgerDamaged, "ledger-old-copy"):
        Ledger.adopt(house.folder / "clinic.ledger", why="nobody will notice")


def test_root_never_writes_where_a_checkpoint_of_the_vault_leads(house, monkeypatch, tmp_path):
    """The vault's user may be taken over: a link in its home leads root nowhere."""
    old_ledger(house, monkeypatch, tmp_path / "root")
    [seen] = (house.folder / "home").rglob("*.checkpoint")
    secret = house.folder / "secret"
    secret.write_text("of root")
    for epsilon, link in ((0.1, seen.symlink_to), (0.2, seen.hardlink_to)):
        seen.unlink()
        link(secret)
        with closing(dp.connect(house.policy)) as clinic:
            clinic.sql(COUNT, epsilon=epsilon)
        assert secret.read_text() == "of root"


def test_root_follows_no_link_next_to_a_ledger(house):
    """The folder is the vault's, so the first checkpoint may be a link, too."""
    first, secret = house.folder / "clinic.ledger.checkpoint", house.folder / "secret"
    for content in (None, "of root"):
        first.unlink(missing_ok=True)
        first.symlink_to(secret)
        if content is not None:
            secret.write_text(content)
        with refuses(LedgerUnavailable, "ledger-checkpoint"):
            Ledger.open(house.folder / "clinic.ledger")
        assert secret.exists() is (content is not None)
    assert secret.read_text() == "of root"


def test_root_remembers_what_itself_has_seen(house, monkeypatch, tmp_path):
    """Also where the vault's user has seen less, such as before root looked there."""
    put_back = old_ledger(house, monkeypatch, tmp_path)
    [seen] = (house.folder / "home").rglob("*.checkpoint")
    own = second_folder() / seen.name
    own.parent.mkdir(parents=True)
    shutil.copyfile(seen, own)
    put_back()
    seen.write_bytes(b"")
    with refuses(LedgerDamaged, "ledger-old-copy"):
        Ledger.open(house.folder / "clinic.ledger")


def test_root_adopts_by_the_owner_of_the_ledger(house, monkeypatch, tmp_path):
    """The first checkpoint may be elsewhere, and root's."""
    old_ledger(house, monkeypatch, tmp_path / "root")()
    (house.folder / "clinic.ledger.checkpoint").unlink()
    with refuses(LedgerDamaged, "ledger-old-copy"):
        Ledger.adopt(house.folder / "clinic.ledger", why="nobody looks", checkpoint=tmp_path / "another.checkpoint")


def test_a_chosen_folder_is_for_root_and_the_vault(house, monkeypatch):
    folder = house.folder / "state"
    folder.mkdir()
    os.chown(folder, VAULT, VAULT)
    monkeypatch.setenv("DISCREET_STATE", str(folder))
    for epsilon in (0.1, 0.2):
        with closing(dp.connect(house.policy)) as clinic:
            clinic.sql(COUNT, epsilon=epsilon)
        [seen] = folder.iterdir()
        assert seen.stat().st_uid == VAULT
        os.chown(seen, 0, 0)  # as an earlier version left it
    with closing(dp.connect(house.policy)):
        assert seen.stat().st_uid == VAULT
    os.chown(seen, 0, 0)
    os.chown(folder, 0, 0)  # root's own: whoever forges the name of a ledger would be given what root has seen
    with refuses(LedgerUnavailable, "ledger-checkpoint"):
        dp.connect(house.policy)
    assert seen.stat().st_uid == 0


def test_root_makes_nothing_in_the_home_of_the_vault(house, monkeypatch):
    """As with `sudo -E`: the home that the environment names is that of another user."""
    home = house.folder / "home"
    home.mkdir()
    monkeypatch.setattr(elsewhere.pwd, "getpwuid", lambda _: SimpleNamespace(pw_dir=str(home), pw_gid=VAULT))
    monkeypatch.delenv("DISCREET_STATE", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(home))
    with closing(dp.connect(house.policy)) as clinic:
        clinic.sql(COUNT, epsilon=0.1)
    assert list(home.iterdir()) == []


def test_root_is_told_where_it_cannot_be_the_owner(house, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        main(["ledger", str(house.policy)])
    assert "WARNING" not in capsys.readouterr().err
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(SystemExit):
        main(["ledger", str(house.policy)])
    assert "done as root" in capsys.readouterr().err


# --- the running gateway ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def running():
    """`discreet serve` as root, with the list of capabilities that the unit of systemd leaves it."""
    with served_as_root() as made:
        made.token = _token(made)
        made.serve(before=("setpriv", f"--bounding-set=-all,{','.join('+' + one for one in capabilities())}"))
        yield made
        assert made.stop() == 0
        assert "NOT ISOLATED" not in made.errors


def _token(made):
    assert made.run("account", str(made.policy), "open", "ada", "--epsilon", "3").returncode == 0
    return made.run("account", str(made.policy), "token", "ada").stdout.strip()


def capabilities() -> list[str]:
    """What the unit leaves to the supervisor."""
    unit = (Path(__file__).parents[2] / "deploy" / "discreet@.service").read_text()
    return re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.M)[1].lower().replace("cap_", "").split()


def status(number: int) -> dict[str, list[str]]:
    lines = Path(f"/proc/{number}/status").read_text().splitlines()
    return {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}


@pytest.mark.slow
def test_each_process_has_its_user_and_nothing_else(running):
    assert running.post(running.token, COUNT).status_code == 200
    children = running.children()
    workers = running.children(children["vault.vault"])
    for number, user in (
        (children["vault.vault"], VAULT),
        (workers["vault.worker"], VAULT),
        (children["desk.process"], DESK),
    ):
        shown = status(number)
        assert shown["Uid"] == shown["Gid"] == [str(user)] * 4
        assert shown["Groups"] == []
        assert shown["NoNewPrivs"] == ["1"]
        assert int(shown["CapEff"][0], 16) == int(shown["CapPrm"][0], 16) == 0
        assert re.search(r"Max core file size\s+0\s+0", Path(f"/proc/{number}/limits").read_text())
        assert os.stat(f"/proc/{number}/environ").st_uid == 0  # it is not dumpable: its user cannot look inside


@pytest.mark.slow
def test_the_desk_is_told_no_place_and_no_password(running):
    desk = Path(f"/proc/{running.children()['desk.process']}")
    told = (desk / "environ").read_bytes() + (desk / "cmdline").read_bytes()
    assert b"hunter2" not in told
    assert str(running.folder).encode() not in told
    opened = [os.readlink(one) for one in (desk / "fd").iterdir()]
    assert not [one for one in opened if one.startswith(f"{running.folder}/clinic")]
    vault = Path(f"/proc/{running.children()['vault.vault']}")
    assert b"hunter2" in (vault / "environ").read_bytes()  # the same test finds it where it is


@pytest.mark.slow
def test_a_process_of_the_desk_can_open_nothing(running):
    running.post(running.token, COUNT)
    names = ["visits.parquet", "clinic.ledger", "clinic.ledger-wal", "clinic.ledger.checkpoint", "clinic.gateway"]
    names += ["clinic.gateway-wal", "clinic.gateway.data", "clinic.toml"]
    paths = [str(running.folder / name) for name in names]
    paths += [str(path) for path in (running.folder / "clinic.gateway.data").rglob("*")]
    assert len(paths) >= len(names) + 3
    denied = as_user(DESK, running.python, "-c", OPEN, *paths)
    assert denied.stdout.split() == ["13"] * len(paths)
    assert as_user(VAULT, running.python, "-c", OPEN, *paths).stdout.split() == ["read"] * len(paths)


@pytest.mark.slow
def test_the_socket_is_for_the_desk_alone(running):
    from discreet.gateway.frames import packed

    vault = Path(f"/proc/{running.children()['vault.vault']}/cmdline").read_bytes().split(b"\0")
    [path] = [word.decode() for word in vault if word.endswith(b"/vault")]
    assert stat.S_ISSOCK(os.stat(path).st_mode)
    health = packed({"id": 1, "verb": "health"}).hex()

    def reply(user, group):
        return as_user(user, running.python, "-c", CONNECT, path, health, group=group)

    assert int(reply(DESK, DESK).stdout) > 0
    assert "PermissionError" in reply(OTHER, OTHER).stderr
    third = reply(OTHER, DESK)  # with the group of the desk it can connect, and the kernel says who it is
    assert third.stdout.split() == ["0"]


@pytest.mark.slow
def test_the_check_of_the_command_line(running):
    passed = running.run("serve", str(running.policy), "--check")
    assert passed.returncode == 0, passed.stderr
    assert all("no second checkpoint" in line for line in passed.stderr.splitlines())  # the user may have no home
    source = running.folder / "visits.parquet"
    source.chmod(0o644)
    failed = running.run("serve", str(running.policy), "--check")
    source.chmod(0o600)
    assert failed.returncode == 2
    assert "gateway-not-isolated" in failed.stderr
    assert "NOT ISOLATED" in failed.stderr
    assert str(source) in failed.stderr
    other = running.run("serve", str(running.policy), "--check", user=VAULT)
    assert other.returncode == 2
    assert "NOT ISOLATED" in other.stderr


@pytest.mark.slow
def test_root_looks_after_a_running_gateway(running, tmp_path):
    """Commands of root leave no file that the vault cannot use."""
    copy = tmp_path / "copy"
    for words in (("list",), ("audit", "--verify"), ("backup", str(copy)), ("open", "bea", "--epsilon", "1")):
        done = running.run("account", str(running.policy), *words)
        assert done.returncode == 0, done.stderr
    assert (copy.stat().st_uid, stat.S_IMODE(copy.stat().st_mode)) == (0, 0o600)
    assert running.run("serve", str(running.policy), "--calibrate").returncode == 0
    assert running.run("serve", str(running.policy), "--check").returncode == 0
    token = running.run("account", str(running.policy), "token", "bea").stdout.strip()
    assert running.post(token, COUNT).status_code == 200
    assert running.run("account", str(running.policy), "revoke", "bea").returncode == 0
    assert running.post(token, COUNT).status_code == 401


@pytest.mark.slow
def test_a_backup_is_restored(tmp_path):
    """The steps of deploy/README.md: what was bought is free afterwards, and nothing spent is forgotten."""
    with served_as_root() as made:
        token = _token(made)
        made.serve()
        answer = made.post(token, COUNT)
        assert made.run("account", str(made.policy), "backup", str(tmp_path / "clinic.gateway")).returncode == 0
        ledger = made.folder / "clinic.ledger"
        with closing(sqlite3.connect(ledger)) as old, closing(sqlite3.connect(tmp_path / "clinic.ledger")) as new:
            old.backup(new)
        assert made.stop() == 0
        for name in ("clinic.gateway", "clinic.ledger"):
            for path in made.folder.glob(f"{name}-*"):
                path.unlink()
            shutil.copy(tmp_path / name, made.folder / "new")
            (made.folder / "new").replace(made.folder / name)  # its inode is another one for sure
        give_to_vault(made.folder)
        refused = made.run("ledger", str(ledger), "--verify", user=VAULT)
        assert refused.returncode == 1  # it may be an old copy
        adopted = made.run("ledger", str(ledger), "--adopt", "restored in a test", user=VAULT)
        assert adopted.returncode == 0, adopted.stderr
        made.serve()
        assert made.post(token, COUNT).json()["receipt"] == answer.json()["receipt"]
        assert made.stop() == 0
        assert len(made.charges()) == 1


FIRST_RUN = """
import sys
from discreet.gateway.first_run import FirstRun

data, policy, vault, desk = sys.argv[1:]
run = FirstRun([data], policy, users=(vault, desk))
print(run.problems, flush=True)
with run.running():
    print(run.link, flush=True)
    run.watch()
"""


@pytest.mark.slow
def test_a_first_run_is_isolated_as_the_gateway_is(monkeypatch):
    """The set-up and the vault run as the vault's user, and the policy is theirs."""
    monkeypatch.setattr(sys, "executable", python_for_all())
    with served_as_root() as house:
        source, policy = house.folder / "visits.parquet", house.folder / "first.toml"
        command = [house.python, "-c", FIRST_RUN, str(source), str(policy), str(VAULT), str(DESK)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT, cwd="/") as process:
            try:
                assert process.stdout.readline().strip() == "[]"
                link = process.stdout.readline().strip()
                users = {
                    name: os.stat(f"/proc/{number}").st_uid for name, number in house.children(process.pid).items()
                }
                assert users["setup.process"] == VAULT
                assert users["desk.process"] == DESK
                with httpx.Client(base_url=link.partition("/login")[0], trust_env=False, timeout=60) as client:
                    client.post("/login", data={"link": link})
                    form = {"form": re.search(r'name="form" value="([^"]+)"', client.get("/setup").text)[1]}
                    assert client.post("/setup", data=form | {"use.0": "people:id"}).status_code == 303
                    limits = {"epsilon": "5", "delta": "1e-6", "answer_after": "0", "owner": "olga"}
                    assert client.post("/setup/limits", data=form | limits).status_code == 303
                    assert client.post("/setup/policy", data=form).status_code == 303
                assert process.stdout.readline().startswith("serving")
                assert (policy.stat().st_uid, stat.S_IMODE(policy.stat().st_mode)) == (VAULT, 0o600)
                assert problems(policy, *load_settings(policy)) == []
            finally:
                process.terminate()
                process.wait(60)
        with closing(sqlite3.connect(policy.with_suffix(".gateway"))) as store:
            assert store.execute("SELECT name, role FROM accounts WHERE name <> ''").fetchall() == [("olga", "owner")]
