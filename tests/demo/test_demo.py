"""Every demo tells its story within a screen, draws a picture that can be read, and says what to type next."""

from __future__ import annotations

import ast
import io
import math
import re
import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from rich.console import Console

import discreet as dp
from discreet.cli import main
from discreet.cli.demo import StoryName
from discreet.demo import adaptive, density, learning, pictures, run, shuffle, sql
from discreet.demo import story as stories
from discreet.demo.data import make_clinic
from discreet.errors import InvalidArgument

from ..refusing import refuses

ROOT = Path(__file__).resolve().parents[2]
MODULES = {"sql": sql, "learning": learning, "density": density, "shuffle": shuffle, "adaptive": adaptive}
A_SCREEN = 40


def told(story: str, folder: Path, width: int = 80) -> str:
    out = io.StringIO()
    run.tell(story, folder, Console(file=out, width=width, highlight=False))
    return out.getvalue()


class Told(NamedTuple):
    """A story, what it printed, and its picture."""

    story: str
    shown: str
    picture: Path


@pytest.fixture(
    scope="module",
    params=[pytest.param(s, marks=[pytest.mark.slow] * (s in ("learning", "adaptive"))) for s in run.STORIES],
)
def one(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Each story, told once on a terminal of 80 columns."""
    folder = tmp_path_factory.mktemp("demo") / "pictures"
    return Told(request.param, told(request.param, folder), folder / f"{request.param}.png")


def size_of(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", png[16:24])  # type: ignore[return-value]


def ink_of(png: Path) -> float:
    """The share of the picture that is not white."""
    import matplotlib.image

    return float((matplotlib.image.imread(png)[..., :3] < 0.99).any(axis=2).mean())


def test_the_command_line_and_the_package_know_the_same_stories() -> None:
    assert [story.value for story in StoryName if story != StoryName.gateway] == list(run.STORIES) == list(MODULES)


@pytest.mark.slow
def test_a_story_fits_a_screen(one: Told) -> None:
    lines = one.shown.splitlines()
    assert len(lines) <= A_SCREEN
    assert max(map(len, lines)) <= 80


def test_a_story_has_all_its_parts(one: Told) -> None:
    error = {"learning": "at most (95%)"}.get(one.story, "±")
    parts = ("synthetic", "question", error, "Only a demo can show it", "ε =", "picture", "Type next (see docs/")
    assert [part for part in (f"discreet demo {one.story}", *parts) if part not in one.shown] == []
    assert one.shown.index("question") < one.shown.index(error) < one.shown.index("Type next")
    assert one.picture.name in re.sub(r"\s", "", one.shown)


def test_a_picture_has_a_sensible_size_and_something_on_it(one: Told) -> None:
    assert size_of(one.picture.read_bytes()) == (1170, 650)
    assert 15_000 < one.picture.stat().st_size < 300_000
    assert 0.01 < ink_of(one.picture) < 0.5


def test_an_empty_picture_has_no_ink(tmp_path: Path) -> None:
    path = pictures.save(tmp_path / "empty.png", "", lambda figure: None)
    assert ink_of(path) < 0.01


def test_what_to_type_next_exists(one: Told) -> None:
    typed = MODULES[one.story].CODE.strip().splitlines()
    page = re.search(r"docs/([\w-]+\.md)", one.shown)
    assert page is not None
    assert (ROOT / "docs" / page[1]).is_file()
    assert [line for line in typed if line not in one.shown] == []
    code = "\n".join(line[4:] for line in typed if line.startswith((">>>", "...")))
    for name in names_of_discreet(code):
        found: Any = dp
        for part in name.split("."):
            found = getattr(found, part)


def names_of_discreet(code: str) -> list[str]:
    """Every `dp.name` and `dp.module.name` of the code."""
    chains = [ast.unparse(node) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Attribute)]
    found = [chain.removeprefix("dp.") for chain in chains if re.fullmatch(r"dp(\.\w+)+", chain)]
    assert found
    return found


@pytest.mark.parametrize("story", ["adaptive", "shuffle", "sql"])
def test_commands_to_type_next_are_commands(story: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.split() for line in MODULES[story].CODE.splitlines() if line.startswith("$ discreet")]
    assert lines
    for _, _, *words in lines:
        command = words[: 2 if words[0] in ("shuffle", "study") else 1]
        with pytest.raises(SystemExit) as ended:
            main([*command, "--help"])
        assert ended.value.code == 0
    assert "Usage" in capsys.readouterr().out


def test_without_matplotlib_the_story_is_told_and_says_how_to_get_the_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as Python marks what cannot be imported
    shown = told("shuffle", tmp_path / "pictures")
    assert 'pip install "discreet[plot]"' in " ".join(shown.split())
    assert "Type next" in shown
    assert not (tmp_path / "pictures").exists()


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with refuses(InvalidArgument, "file-not-writable"):
        pictures.save(blocked / "one.png", "", lambda figure: None)


@pytest.mark.parametrize("found", [None, "/usr/bin/discreet"])
def test_a_command_that_the_shell_would_not_find_is_told_where_it_is(
    found: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [str(Path.cwd() / ".venv" / "bin" / "discreet"), "demo"])
    monkeypatch.setattr("shutil.which", lambda name: found)
    out = io.StringIO()
    stories.type_next(Console(file=out), ["discreet --help"], "index.md")
    assert ("here discreet is .venv/bin/discreet" in out.getvalue()) is (found is None)


@pytest.mark.slow
def test_rows_of_single_people_are_refused_in_the_story_of_sql(tmp_path: Path) -> None:
    shown = " ".join(told("sql", tmp_path).split())
    clinic = dp.connect(make_clinic(tmp_path))
    with pytest.raises(dp.NotAllowed) as refused:
        clinic.sql(sql.TOO_NOSY, epsilon=sql.EPSILON)
    clinic.close()
    assert refused.value.code == "sql-shows-people"
    assert str(refused.value).splitlines()[0] in shown
    assert "remains ε = 3.5: a refusal costs nothing" in shown


@pytest.mark.parametrize(
    ("bound", "said"), [(None, "no promise"), (math.inf, "no promise"), (0.7, "no promise"), (0.0987, "0.099")]
)
def test_a_bound_on_the_loss_that_any_model_keeps_is_no_promise(bound: float | None, said: str) -> None:
    release = SimpleNamespace(error=lambda confidence: SimpleNamespace(amount=bound))
    assert learning._bound_text(SimpleNamespace(release_=release)) == said


@pytest.mark.slow
def test_the_command_tells_a_story_into_the_folder_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["demo", "shuffle", "--out", "here"])
    assert ended.value.code == 0
    assert (tmp_path / "here" / "shuffle.png").is_file()
    assert "discreet demo shuffle" in capsys.readouterr().out


def test_an_unknown_story_is_status_2_and_names_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["demo", "magic"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert all(story in said for story in run.STORIES)


@pytest.mark.slow
def test_the_main_demo_ends_with_what_to_type_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "QUESTIONS", ())  # tests/pages/test_examples.py asks them all
    console = Console(record=True, width=80, file=io.StringIO())
    run.main(console)
    ending = console.export_text().partition("Type next")[2]
    assert all(f"discreet demo {story} " in ending for story in run.STORIES)
    assert "discreet init" in ending
    assert max(map(len, ending.splitlines())) <= 80
