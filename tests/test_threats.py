"""The lists of `threats.toml` name tests that exist, forget none that plants a bug, and are what is published."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from .matrix import PAGES, PLANTED, ROOT, judge, mutants_page, planted_text, threats, threats_page, verdict

LISTED = (
    "drop clip", "clip a copy but use the raw", "noise scale halved", "same draw used twice",
    "`>` for `>=` at a threshold", "sensitivity from the data's maximum", "lower bound used twice", "L1 for L2",
    "ε not split over columns", "debit after release", "debit asynchronous", "read-then-write budget", "float budget",
    "NaN passes clip", "keys from data", "LIMIT in sub-query", "RNG seeded per process", "fork shares the stream",
    "last bit not randomized", "retry draws again", "cache keyed without data version", "true n in a mean",
    "Poisson analysis with shuffled batches", "cost rounded down", "int32 sum", "HAVING on true counts",
    "error text passed through", "sorted by true count", "ε²/8 charged for permute-and-flip",
    "PLD as an adaptive filter",
)  # fmt: skip
"""The mutants of the threat model, in its words."""
ABOUT_MUTANTS = re.compile(r"mutant|seeded_bug|_(is|are)_(caught|beaten)")
SOUND = ("test_sound_code_passes", "test_nothing_is_wrong", "test_the_quantum_is_a_power_of_two")
"""Tests in files of mutants in which nothing is planted."""
OTHER_RULES = (
    "tests/test_architecture.py::test_a_long_file_is_caught",
    "tests/test_architecture.py::test_a_shadowing_module_is_caught",
    "tests/test_architecture.py::test_a_stale_map_is_caught",
    "tests/test_errors.py::test_an_error_without_a_code_is_caught",
    "tests/test_errors.py::test_what_is_not_in_kebab_case_is_caught",
    "tests/test_errors.py::test_another_page_is_caught",
    "tests/adaptive/test_game.py::test_intervals_that_hold_too_rarely_are_caught",
)
"""What these catch is no bug of privacy; the last one computes the power of a test."""
KNOWN = threats()
KILLERS = [node for mutant in KNOWN["mutant"] for node in mutant["killed_by"]]
HOLDERS = [node for case in KNOWN["case"] for node in case.get("held_by", [])]
FIXTURES = "".join(path.read_text("utf-8") for path in (ROOT / "tests" / "fixtures" / "sql").glob("*.jsonl"))


@cache
def text_of(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


@cache
def module(path: str) -> ast.Module:
    return ast.parse(text_of(path))


@cache
def functions_of(path: str) -> dict[str, ast.FunctionDef]:
    found = module(path).body
    return {one.name: one for one in found if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")}


def meant(node: ast.expr, path: str) -> ast.expr:
    """A list or a dict itself, where its name is written."""
    for one in module(path).body:
        names = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
        if isinstance(node, ast.Name) and any(isinstance(n, ast.Name) and n.id == node.id for n in names):
            return one.value or node  # type: ignore[union-attr]
    return node


def spelled(value: ast.expr) -> str | None:
    """What pytest calls a parameter; None where only running the file can tell."""
    match value:
        case ast.Constant(value=str() | int() | float() | None as found):
            return str(found)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Tuple(elts=parts):
            names = [spelled(part) for part in parts]
            return None if None in names else "-".join(map(str, names))
    return None


@cache
def parameters(path: str, name: str) -> set[str] | None:
    """The parameters of a test as pytest writes them, where the syntax tree tells."""
    marks = [d for d in functions_of(path)[name].decorator_list if "parametrize" in ast.unparse(d)]
    if len(marks) != 1 or not isinstance(marks[0], ast.Call):
        return None
    values = meant(marks[0].args[1], path)
    listed = values.keys if isinstance(values, ast.Dict) else getattr(values, "elts", [None])
    names = {spelled(value) if value is not None else None for value in listed}
    return None if None in names else {str(one) for one in names}


def missing(node: str) -> bool:
    """Whether there is no such test. Parameters that the syntax tree does not tell must at least be in the file."""
    path, _, test = node.partition("::")
    name, bracket, parameter = test.partition("[")
    if not (ROOT / path).is_file() or name not in functions_of(path):
        return True
    if not bracket:
        return False
    parameter, known = parameter.removesuffix("]"), parameters(path, name)
    if known is not None:
        return parameter not in known
    words = text_of(path) + FIXTURES
    return not (parameter in words or all(part in words for part in parameter.split("-")))


def about_mutants() -> list[str]:
    """Every test whose name, or whose file's name, says that it plants a bug."""
    found = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        here = path.relative_to(ROOT).as_posix()
        for name in functions_of(here):
            if path.name == "test_mutants.py" or ABOUT_MUTANTS.search(name):
                found.append(f"{here}::{name}")
    return [node for node in found if not node.endswith(SOUND) and node not in OTHER_RULES]


def forgotten(node: str, killers: list[str]) -> set[str]:
    """What of a test is not among those that kill: the test itself, or some of its parameters."""
    if node in killers:
        return set()
    named = {killer.removeprefix(f"{node}[").removesuffix("]") for killer in killers if killer.startswith(f"{node}[")}
    every = parameters(*node.split("::"))
    return {node} if not named else {f"{node}[{one}]" for one in (every or named) - named}


def test_the_list_of_the_threat_model_is_whole() -> None:
    assert tuple(mutant["name"] for mutant in KNOWN["mutant"] if mutant.get("listed")) == LISTED
    assert len(LISTED) == 30


def test_every_bug_has_a_test_that_kills_it_and_is_named_once() -> None:
    for mutant in KNOWN["mutant"]:
        assert mutant["killed_by"]
        assert mutant.keys() - {"listed"} in ({"name", "killed_by"}, {"name", "killed_by", *PLANTED})
    names = [mutant["name"] for mutant in KNOWN["mutant"]]
    assert len(set(names)) == len(names)


def test_every_bug_that_is_planted_in_a_copy_finds_its_place() -> None:
    """`make mutants` plants them; here each piece is in its file, once, and Python can still read what comes of it."""
    for mutant in KNOWN["mutant"]:
        if "file" in mutant:
            wrong = planted_text(mutant, text_of(mutant["file"]))
            assert wrong != text_of(mutant["file"])
            if mutant["file"].endswith(".py"):
                compile(wrong, mutant["file"], "exec")


@pytest.mark.some_quick(1)
@pytest.mark.parametrize(
    ("new", "expected"), [("True", "SURVIVED"), ("False", "killed"), ("(", "not run")], ids=["same", "other", "broken"]
)
def test_a_planted_piece_is_judged_by_tests_that_fail(new: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("from one import VALUE\n\ndef test_it():\n    assert VALUE\n")
    (tmp_path / "one.py").write_text("VALUE = True\n")
    mutant = {"name": "m", "file": "one.py", "old": "True", "new": new, "killed_by": ["test_one.py"]}
    assert judge(mutant, tmp_path) == expected
    assert (tmp_path / "one.py").read_text() == "VALUE = True\n"


def test_a_piece_that_is_gone_plants_nothing() -> None:
    mutant = {"name": "m", "file": "one.py", "old": "True", "new": "False", "killed_by": []}
    for text in ("VALUE = 1", "VALUE = True or True"):
        with pytest.raises(ValueError, match="times in"):
            planted_text(mutant, text)


def test_every_case_has_its_tests_or_says_where_it_is() -> None:
    assert all(bool(case.get("held_by")) != bool(case.get("not_here")) for case in KNOWN["case"])
    claims = [case["claim"] for case in KNOWN["case"]]
    assert len(set(claims)) == len(claims)


@pytest.mark.parametrize("nodes", [KILLERS, HOLDERS], ids=["killers", "holders"])
def test_every_test_that_is_named_exists(nodes: list[str]) -> None:
    assert [node for node in nodes if missing(node)] == []


def test_no_test_that_plants_a_bug_is_forgotten() -> None:
    assert [one for node in about_mutants() for one in forgotten(node, KILLERS)] == []


def test_a_wrong_name_and_a_forgotten_test_are_found() -> None:
    here = "tests/learn/test_mutants.py::test_a_mutant_is_killed"
    right = f"{here}[drop_clip-no_row_moves_sums_too_far]"
    assert not missing(right)
    assert not missing(here)
    for wrong in (f"{here}s", f"{here}[drop_clip]", right.replace("learn", "lern"), right.replace("drop_", "drip_")):
        assert missing(wrong)
    refused = "tests/sql/reading/test_refusals.py::test_refused"
    assert not missing(f"{refused}[SET threads = 1]")
    assert missing(f"{refused}[SET threads = 2]")
    assert here in about_mutants()
    assert forgotten(here, []) == {here}
    assert right in forgotten(here, [node for node in KILLERS if node != right])


def test_a_bug_is_killed_when_every_test_of_it_passed() -> None:
    ended = {"a::t[1]": "passed", "a::t[2]": "passed", "b::t": "failed", "c::t": "skipped", "a::tt": "failed"}
    found: list[Any] = [verdict(nodes, ended) for nodes in (["a::t"], ["a::t", "b::t"], ["c::t"], ["a::t", "d::t"])]
    assert found == ["killed", "SURVIVED", "not run", "not run"]
    assert verdict(["a::t[1]"], ended) == "killed"


@pytest.mark.parametrize("page", ["mutants.md", "threats.md"])
def test_the_pages_are_written_from_the_lists(page: str) -> None:
    """Where this fails: `python tests/matrix.py --write`."""
    mutants = KNOWN["mutant"]
    made = mutants_page(mutants, ["killed"] * len(mutants)) if page == "mutants.md" else threats_page(KNOWN["case"])
    assert Path(PAGES / page).read_text("utf-8") == made


def test_the_numbers_of_bugs_and_cases_are_told() -> None:
    told = (ROOT / "docs" / "trust.md").read_text("utf-8")
    covered = sum(bool(case.get("held_by")) for case in KNOWN["case"])
    assert f"**{len(KNOWN['mutant'])} seeded bugs, all caught.**" in told
    assert f"**{len(KNOWN['case'])} cases: {covered} covered by tests**" in told
