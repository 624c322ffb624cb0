"""The command leaves what it promises: a table on the terminal, a CSV file and a picture for each experiment."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

from discreet.cli import main
from discreet.errors import InvalidArgument, MissingExtra
from discreet.extras import need
from discreet.reproduce import distinguishing, pictures, repeated_values, run
from discreet.reproduce.people import SALARIES, STATES, generate

NAMES = (
    "table-2",
    "table-3",
    "table-4",
    "table-5",
    "table-6",
    "table-7",
    "figures-1-3",
    "repetition",
    "remark-7.3",
    "nineteen-or-twenty",
    "repeated-values",
)
PNG = b"\x89PNG\r\n\x1a\n"


def reproduce(out: Path, *options: str) -> int:
    with pytest.raises(SystemExit) as exit_info:
        main(["reproduce", str(out), *options])
    return int(exit_info.value.code or 0)


@pytest.mark.slow
def test_everything_is_printed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(repeated_values, "DRAWS", 20)  # the laws are tested elsewhere, in full
    monkeypatch.setattr(distinguishing, "TRIALS", 500)
    out = tmp_path / "made" / "here"
    assert reproduce(out) == 0
    assert {path.name for path in out.iterdir()} == {f"{name}.{kind}" for name in NAMES for kind in ("csv", "png")}
    for name in NAMES:
        picture = (out / f"{name}.png").read_bytes()
        assert picture.startswith(PNG)
        assert len(picture) > 10_000
    with (out / "table-2.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["promise"] for row in rows] == ["(0.1, 0.1)", "(2, 0.5)", "(11, 0.7)"]
    assert [round(float(row["scale_2996"])) for row in rows] == [14589, 1112, 245]
    shown = capsys.readouterr().out
    for words in ("Table 2", "Table 7", "[T.4.5]", "P[event]", "taught", "tight", "observed", "printed", "14589"):
        assert words in shown
    assert "…" not in shown.replace("0 … 1000", "").replace("([…])", ""), "a heading or a number is cut"


@pytest.mark.slow
def test_one_person_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "EXPERIMENTS", run.EXPERIMENTS[:2])
    run.main(tmp_path, people=1)
    assert len(list(tmp_path.iterdir())) == 12


def test_every_experiment_has_its_picture() -> None:
    assert tuple(pictures.PICTURES) == NAMES


def test_a_missing_extra_is_one_line_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r'discreet reproduce needs matplotlib\. .*pip install "discreet\[plot\]"$'):
        run.main(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert reproduce(tmp_path / "out") == 2
    assert capsys.readouterr().err.endswith('pip install "discreet[plot]"\n')


def test_an_installed_package_that_fails_inside_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_installed.py").write_text("import a_dependency_it_lacks\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_dependency_it_lacks") as caught:
        need("half_installed", "plot", "a test")
    assert not isinstance(caught.value, MissingExtra)


def test_people_are_inside_the_declared_spaces() -> None:
    people = generate(5000)
    assert len(people) == 5000
    assert people.salaries.min() >= SALARIES[0]
    assert people.salaries.max() <= SALARIES[1]
    # each end is missed with probability (1 - 100/3001)^5000 < 1e-70
    assert people.salaries.min() < SALARIES[0] + 100
    assert people.salaries.max() > SALARIES[1] - 100
    assert len(STATES) == len(set(STATES)) == 48
    assert set(people.states) <= set(STATES)


@pytest.mark.parametrize("count", [0, -1, 2.5])
def test_a_number_of_people_that_is_none_is_refused(count: float) -> None:
    with pytest.raises(InvalidArgument):
        generate(count)  # type: ignore[arg-type]
