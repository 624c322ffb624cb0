"""Sources can be found: every id and every paper that is cited is in the references, and every id stands in a test."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from ..source import nodes_of

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MAP, REFERENCES = DOCS / "theory.md", DOCS / "reference" / "references.md"

ID = r"(?:L\d+\.[A-Z]+\d*(?:-[A-Z]+)?|T\.R?\d+(?:\.\d+)?)"
PAPER = r"(?:[A-Z]\w+(?:-[A-Z]\w+)+|[A-Z]\w+ et al\.) (?:19|20)\d\d"
ONE_AUTHOR = r"[A-Z]\w+ (?:19|20)\d\d"
FOLDERS = ("src", "tests", "docs", "bench", "examples")
NUMBER = r"(?:Theorem|Proposition|Algorithm|Lemma|Corollary) \d+(?:\.\d+)*"


def rows(page: str, first: str) -> Iterator[list[str]]:
    """The cells of every table row whose first cell matches."""
    for line in page.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and re.fullmatch(first, cells[0]):
            yield cells


def one_line(text: str) -> str:
    """The text without line breaks, and with the names of authors joined by hyphens."""
    flat = " ".join(re.sub(r"\n\s*#", "\n", text).split())
    names = r"([A-Z]\w+)(?:, ([A-Z]\w+))?(?:, ([A-Z]\w+))? and ([A-Z]\w+),? \(?((?:19|20)\d\d)\b"
    return re.sub(names, lambda found: f"{'-'.join(filter(None, found.groups()[:-1]))} {found[5]}", flat)


@lru_cache
def texts(folder: str) -> list[tuple[Path, str]]:
    """Every file of this folder that a person writes, but not this one."""
    paths = [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".py", ".md", ".toml")]
    return [(path, path.read_text("utf-8")) for path in paths if path != Path(__file__)]


def cited(text: str) -> str:
    """What stands around every year of a text: all its papers, and little else to be searched."""
    years = re.finditer(r"[\s(](?:19|20)\d\d\b", text)
    return "\n".join(one_line(text[max(0, year.start() - 120) : year.end() + 30].partition(" ")[2]) for year in years)


def sources(code: str) -> Iterator[str]:
    """The `Source:` part of every docstring, each on one line."""
    for node in nodes_of(code):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found = re.findall(
                r"(?:^|(?<=[\s.]))Source:\s(.*?)(?=(?:Promise|Error|Proof): |\n\s*\n|\Z)", node.value.value, re.DOTALL
            )
            yield from map(one_line, found)


def cited_ids(text: str) -> set[str]:
    """The ids that a text cites, in brackets or not."""
    found = re.finditer(rf"{ID}(?!\.?\w)", text)  # what stands before is looked at afterwards: ten times as fast
    return {one[0] for one in found if not re.match(r'[\w."]', text[max(0, one.start() - 1) : one.start()])}


def unknown(text: str, ids: Iterable[str], papers: Iterable[str]) -> set[str]:
    """What a text cites that is not in the references."""
    brackets = set(re.findall(r"\[(L\d+|T\.\d[\w.]*)\]", text))
    return ((brackets | cited_ids(text)) - set(ids)) | (set(re.findall(PAPER, cited(" " + text))) - set(papers))


def unresolved(source: str, ids: Iterable[str], papers: Iterable[str]) -> bool:
    """Whether a `Source:` names nothing that can be found, or something that cannot."""
    names = set(re.findall(f"{PAPER}|{ONE_AUTHOR}", source))
    decisions = re.findall(r"decision (\d{4})", source)
    missing = [one for one in decisions if not list((DOCS / "decisions").glob(f"{one}-*.md"))]
    found = (cited_ids(source) & set(ids)) | (names & set(papers)) | set(decisions)
    return not found or bool(missing) or bool(names - set(papers)) or bool(unknown(source, ids, papers))


PAGE = REFERENCES.read_text("utf-8")
IDS = [cells[0] for cells in rows(PAGE, ID)]
PAPERS = {cells[0]: cells[2] for cells in rows(PAGE, rf"{PAPER}|{ONE_AUTHOR}|RFC \d+")}
MAPPED = {cells[0]: cells for cells in rows(MAP.read_text("utf-8"), ID)}


def test_the_map_and_the_references_have_the_same_ids_once() -> None:
    assert len(IDS) > 50
    assert sorted(set(IDS)) == sorted(IDS)
    assert list(MAPPED) == IDS
    assert all(len(cells) == 4 and all(cells) for cells in MAPPED.values())
    stated = [*rows(PAGE, ID), *rows(PAGE, "|".join(map(re.escape, PAPERS)))]
    assert [cells for cells in stated if len(cells) != 3 or not all(cells)] == []
    assert list(PAPERS) == sorted(PAPERS, key=str.casefold)
    assert not re.search(r"\blater\b", MAP.read_text("utf-8"))


def test_every_id_and_paper_that_is_cited_is_in_the_references() -> None:
    found = {
        str(path.relative_to(ROOT)): strange
        for folder in FOLDERS
        for path, text in texts(folder)
        if (strange := unknown(text, IDS, PAPERS))
    }
    assert found == {}


def test_every_source_of_a_docstring_leads_somewhere() -> None:
    read = [(path, source) for path, text in texts("src") if "Source:" in text for source in sources(text)]
    assert len(read) > 80
    assert [(path.name, source) for path, source in read if unresolved(source, IDS, PAPERS)] == []


def test_every_id_stands_in_the_tests_that_the_map_names() -> None:
    lacking = []
    for one, (*_, tests) in MAPPED.items():
        named = re.findall(r"`(tests/[\w/]+\.py)`", tests)
        assert named, one
        lacking += [(one, test) for test in named if f"[{one}]" not in (ROOT / test).read_text("utf-8")]
    assert lacking == []


def test_every_paper_is_cited_and_its_theorems_are_listed() -> None:
    everything = "\n".join(
        cited(text) + " ".join(re.findall(r"RFC \d+", text))
        for folder in FOLDERS
        for path, text in texts(folder)
        if path != REFERENCES
    )
    rest = "\n".join(line for line in PAGE.split("\n") if line.strip("| ").split(" | ")[0] not in PAPERS)
    assert [name for name in PAPERS if name not in everything + cited(rest)] == []
    for name, number in re.findall(rf"({PAPER}|{ONE_AUTHOR}), ({NUMBER})", everything):
        kind, _, digits = number.partition(" ")
        assert re.search(rf"{kind}s? (?:[\d.]+ and )?{re.escape(digits)}(?![\d.]*\d)", PAPERS[name]), (name, number)


def test_what_cannot_be_found_is_noticed() -> None:
    ids, papers = ["L3.EM", "T.4.9"], ["Balle-Wang 2018", "Dwork et al. 2006", "Mironov 2017"]
    kept = "[L3.EM] and T.4.9; Balle-Wang 2018, Balle and Wang 2018, Dwork et\n    al. 2006; x.T.7; list[T]"
    assert unknown(kept, ids, papers) == set()
    lost = "[L3.EN], [L1] and T.4.91; Balle-Wong 2018, Balle and Wing 2018, Work et al. 2006"
    names = {"Balle-Wong 2018", "Balle-Wing 2018", "Work et al. 2006"}
    assert unknown(lost, ids, papers) == {"L3.EN", "L1", "T.4.91"} | names
    code = '"""One.\n\nError: 2. Source: [L3.EM],\nwith more.\n\nNot this.\n"""\n'
    code += 'def f():\n    "Source: NOTES. Proof: x."\n'
    assert list(sources(code)) == ["[L3.EM], with more.", "NOTES."]
    good = ["[L3.EM], with more.", "Mironov 2017; decision 0001.", "decision 0004."]
    bad = ["NOTES.", "the definition.", "[L3.EM]; Mironov 2018.", "decision 9999.", "[L3.EM]; [L1]."]
    assert [unresolved(one, ids, papers) for one in good + bad] == [False] * len(good) + [True] * len(bad)
