"""Root at the ledger of another user, who sets traps: links, moved files, and a look into what root starts."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import discreet as dp
from discreet.errors import InvalidArgument
from discreet.ledger.stores import elsewhere
from discreet.ledger.stores.checkpoint import Checkpoint, leads_away

from ..refusing import refuses

SOMEBODY, ANOTHER = 65001, 65002
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be led away")


def given(path: Path, owner: int) -> Path:
    os.chown(path, owner, owner, follow_symlinks=False)
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder of somebody, next to one of another user and one of root."""
    for name, owner in (("home", SOMEBODY), ("theirs", ANOTHER), ("roots", 0)):
        (tmp_path / name).mkdir()
        given(tmp_path / name, owner)
    return tmp_path / "home"


@pytest.mark.parametrize("to", ["roots", "theirs"])
@pytest.mark.parametrize("above", [False, True], ids=["the file", "its folder"])
def test_a_link_of_another_user_leads_root_nowhere(to: str, above: bool, home: Path) -> None:
    link, there = home / "link", home.parent / to
    link.symlink_to(there if above else there / "nologin")
    given(link, SOMEBODY)
    place = link / "nologin" if above else link
    with refuses(InvalidArgument, "ledger-place"):
        dp.Ledger.open(place, protects=dp.row(), limit=dp.Pure(epsilon=1))
    assert not list(there.iterdir())


def test_other_links_are_followed(home: Path) -> None:
    """Those of root, and those of a user to what is theirs."""
    (home / "own.ledger").touch()
    given(home / "own.ledger", SOMEBODY)
    (home / "link").symlink_to(home / "own.ledger")
    (home.parent / "roots" / "link").symlink_to(home.parent / "theirs" / "x")
    assert not leads_away(given(home / "link", SOMEBODY))
    assert not leads_away(home.parent / "roots" / "link")


@pytest.mark.parametrize("content", [b"TOP SECRET", b"x" * 1024, b"\0" * 512 + b"x" * 512])
def test_what_was_moved_to_the_place_of_a_checkpoint_stays_roots(content: bytes, home: Path) -> None:
    """Somebody may rename any file of root's that is in a folder of theirs."""
    moved = home / "clinic.checkpoint"
    moved.write_bytes(content)
    checkpoint = Checkpoint(moved, owner=SOMEBODY, creates=True)
    for flags in (os.O_RDONLY, os.O_RDWR | os.O_CREAT):
        with pytest.raises(PermissionError):
            checkpoint.open(flags)
    assert (moved.stat().st_uid, moved.read_bytes()) == (0, content)
    moved.write_bytes(b"\0" * 1024)  # as it is before the first charge
    os.close(checkpoint.open(os.O_RDONLY))
    assert moved.stat().st_uid == SOMEBODY


def test_what_runs_as_another_user_has_nothing_of_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    """That user may take its open files, and type at its terminal. It ends, with all that it started."""
    with tempfile.TemporaryDirectory() as folder:
        report, child = Path(folder, "report"), Path(folder, "child")
        Path(folder).chmod(0o777)
        code = f'ls -l /proc/$$/fd > "{report}"; cut -d" " -f6 /proc/$$/stat >> "{report}"; echo $$ >> "{report}"; '
        monkeypatch.setattr(elsewhere, "_MAKE", f'{code} sleep 300 & echo $! > "{child}"; sleep 300')
        monkeypatch.setattr(elsewhere, "_PATIENCE", 2.0)
        monkeypatch.setattr(elsewhere.pwd, "getpwuid", lambda _: SimpleNamespace(pw_gid=SOMEBODY))
        elsewhere._make_as(SOMEBODY, Path(folder, "state", "a.checkpoint"))
        said = report.read_text().splitlines()
        assert {line.rpartition(" -> ")[2] for line in said if " -> " in line} <= {"/dev/null", str(report)}
        session, process = said[-2:]
        assert session == process  # the leader of its own session: it has no terminal
        for _ in range(1000):  # it was told to end, and a busy machine lets it
            if is_gone(int(child.read_text())):
                return
            time.sleep(0.01)
        raise AssertionError("what it started goes on")


def is_gone(process: int) -> bool:
    """Whether a process has ended. Its parent may not have taken note yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
