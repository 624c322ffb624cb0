"""The stories in examples/stories: they run as scripts, and become notebooks and pages."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
STORIES = sorted((ROOT / "examples" / "stories").glob("*.py"))
SAID = {
    "census_table": (
        r"\d+ counts, off by about \d+",
        r"synthetic rows of age, sex",
        r"(?s)(independent +[\d.]+%.*){15}",
    ),
    "doctor_visits": (
        r"20,190 rows",
        r"mean of mdvis: 2\.\d+, in the population 2\.",
        r"(?s)(published [+-]0\.\d+ +private [+-]0\.\d+ to [+-]0\.\d+.*){6}",
    ),
    "hospital_visits": (r"(?m)^ *asthma +[\d,]+ ± ", r"the same answer: True", r"refused: .* passes the limit"),
    "leaderboard": (r"naive: a loss of 0\.4", r"naive: 0 of 10 claimed", r"(?s)(clearly better than chance: .*){2}"),
    "load_curves": (r"at 19:00 the mean load is [\d.]+ kW", r"the whole curve is ± ", r"the released ones explain \d"),
    "telemetry_survey": (
        r"by enumeration: ε = 1\n",
        r"(?m)^ +map +17,031( +[\d,]+ ± [\d,]+){3}$",
        r"refused: Only 49999",
    ),
}
"""What each story must print, whatever its noise."""


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    """docs/make/notebooks.py, which is no part of a package."""
    spec = importlib.util.spec_from_file_location("make_notebooks", ROOT / "docs" / "make" / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_story_is_known_here() -> None:
    assert [story.stem for story in STORIES] == sorted(SAID)


@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES, ids=lambda one: one.stem)
def test_a_story_says_what_it_should_and_leaves_only_its_pictures(story: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(story)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    for said in SAID[story.stem]:
        assert re.search(said, done.stdout), f"{said} is not in:\n{done.stdout}"
    named = re.search(r"files written: (.*)\n$", done.stdout)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(named[1].split(", ") if named else [])
    for picture in tmp_path.iterdir():
        assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_a_story_becomes_a_valid_notebook_that_has_all_of_it(story: Path, maker: ModuleType) -> None:
    script = story.read_text(encoding="utf-8")
    notebook = maker.notebook_of(script)
    nbformat.validate(notebook)
    assert notebook.cells[0].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    compile("\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code"), story.name, "exec")
    written = re.sub(r"^# %%.*$", "", script, flags=re.MULTILINE)
    assert _letters("".join(cell.source for cell in notebook.cells)) == _letters(written)


def test_percent_cells_are_told_apart(maker: ModuleType) -> None:
    script = (
        "# %% [markdown]\n# # Title\n#\n# Text, and `# %%` in it.\n\n# %%\nx = 1  # one\n\n# %%\n# a word\nprint(x)\n"
    )
    assert list(maker.cells_of(script)) == [
        ("markdown", "# Title\n\nText, and `# %%` in it."),
        ("code", "x = 1  # one"),
        ("code", "# a word\nprint(x)"),
    ]


def test_a_page_shows_code_output_and_pictures(maker: ModuleType) -> None:
    notebook = maker.notebook_of("# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nprint(1)\n")
    notebook.cells[1].outputs = [_stream("1\n"), _picture()]
    page, pictures = maker.page_of(notebook, "one")
    assert page.startswith(f"{maker.WIDE}\n# Title\n")
    assert "[notebook](one.ipynb)" in page
    assert "```python\nprint(1)\n```\n\n```text\n1\n```\n\n![what the code above draws](one-1.png)" in page
    assert pictures == {"one-1.png": b"PNG"}


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_every_story_is_in_the_navigation_by_its_title(story: Path, maker: ModuleType) -> None:
    title = maker.notebook_of(story.read_text("utf-8")).cells[0].source.partition("\n")[0].removeprefix("# ")
    assert f"      - {title}: stories/{story.stem}.md\n" in (ROOT / "mkdocs.yml").read_text("utf-8")


def test_a_page_is_written_with_its_notebook_and_pictures(
    maker: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = maker.notebook_of("# %% [markdown]\n# # Title\n\n# %%\nprint(1)\n")
    notebook.cells[1].outputs = [_picture()]
    monkeypatch.setattr(maker, "executed", lambda script: notebook)
    maker.write(STORIES[0], tmp_path)
    name = STORIES[0].stem
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{name}-1.png", f"{name}.ipynb", f"{name}.md"]
    assert (tmp_path / f"{name}-1.png").read_bytes() == b"PNG"


@pytest.mark.slow
def test_a_cell_that_fails_or_warns_fails_the_build(maker: ModuleType) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    ran = maker.executed("# %%\nprint(6 * 7)\n")
    assert ran.cells[0].outputs[0].text == "42\n"
    with pytest.raises(Exception, match="ZeroDivisionError"):
        maker.executed("# %%\n1 / 0\n")
    with pytest.raises(RuntimeError, match="warns"):
        maker.executed("# %%\nimport warnings\nwarnings.warn('careful')\n")


OPENED = """# %%
import pyarrow as pa
import discreet as dp
book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=1))
print(dp.table(pa.table({"x": [1, 2]}), ledger=book).columns)
"""


@pytest.mark.slow
def test_a_table_is_opened_in_a_notebook_that_has_no_progress_bars(maker: ModuleType) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    assert maker.executed(OPENED).cells[0].outputs[0].text == "{'x': 'integer'}\n"


def _letters(text: str) -> str:
    """All but space and the marks of comments, which a notebook's text does not have."""
    return re.sub(r"[\s#]", "", text)


def _stream(text: str) -> Any:
    return nbformat.v4.new_output("stream", name="stdout", text=text)


def _picture() -> Any:
    return nbformat.v4.new_output("display_data", data={"image/png": "UE5H"})
