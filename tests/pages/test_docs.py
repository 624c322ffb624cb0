"""The documentation holds together: links lead somewhere, pages are found, names are documented, outputs are real."""

from __future__ import annotations

import inspect
import pkgutil
import re
import runpy
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]


def without_blocks(page: str) -> str:
    """A page without its blocks of code, in which nothing is a link or a heading."""
    return re.sub(r"^ *```.*?^ *```", "", page, flags=re.DOTALL | re.MULTILINE)


def anchors(page: str) -> set[str]:
    """The anchors that a page's headings get, as Markdown's table of contents makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", without_blocks(page), flags=re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        ascii_only = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())
        number, unique = 0, slug
        while unique in found:
            number += 1
            unique = f"{slug}_{number}"
        found.add(unique)
    return found


def page_at(target: Path) -> Path:
    """The file of a page; that of a story is its script, from which the site makes the page."""
    made = target.parent == DOCS / "stories" and target.suffix == ".md"
    return ROOT / "examples" / "stories" / f"{target.stem}.py" if made else target


def broken_links(path: Path, page: str) -> Iterator[str]:
    """The relative links of a page that lead to no file, or to no heading."""
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]+`", "`", without_blocks(page))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = page_at(path.parent / name)
        there = not name or file.is_file()
        if not there or (anchor and anchor not in anchors(file.read_text("utf-8") if name else page)):
            yield target


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(path: Path) -> None:
    assert list(broken_links(path, path.read_text("utf-8"))) == []


def test_a_broken_link_is_noticed() -> None:
    page = "# One\n## A `b` & c\n[a](#a-b-c) [b](#no) [c](tutorial.md#five-minutes) [d](tutorial.md#no) [e](no.md)\n"
    page += "[i](stories/leaderboard.md) [j](stories/no.md)\n`[f](no.md)`\n```\n[g](no.md)\n# no\n```\n[h](https://example.org/no)"
    assert list(broken_links(DOCS / "page.md", page)) == ["#no", "tutorial.md#no", "no.md", "stories/no.md"]


def published() -> list[str]:
    """Every page of the site: those of the folder, and one for each story, which is made when the site is built."""
    own = (page.relative_to(DOCS) for page in DOCS.rglob("*.md") if page.parent.name != "stories")
    stories = (Path("stories", f"{story.stem}.md") for story in (ROOT / "examples" / "stories").glob("*.py"))
    return sorted(map(str, (*own, *stories)))


def test_every_page_is_in_the_navigation_once() -> None:
    lines = [line for line in (ROOT / "mkdocs.yml").read_text("utf-8").split("\n") if not line.strip().startswith("#")]
    listed = re.findall(r"[\w/-]+\.md$", "\n".join(lines), flags=re.MULTILINE)
    assert sorted(listed) == published()


COOKBOOK = [page for page in sorted((DOCS / "cookbook").glob("*.md")) if page.name != "index.md"]


def recipes(page: str) -> list[tuple[str, str]]:
    """The questions of a page of the cookbook, each with its answer."""
    blocks = re.split(r"^## (.+)$", page, flags=re.MULTILINE)
    return list(zip(blocks[1::2], blocks[2::2], strict=True))


@pytest.mark.parametrize("path", COOKBOOK, ids=lambda path: path.name)
def test_every_question_of_the_cookbook_has_a_sentence_and_something_to_copy(path: Path) -> None:
    for question, answer in recipes(path.read_text("utf-8")):
        assert re.fullmatch(r"How do I .+\?", question)
        assert re.match(r"\n[A-Z`].*?\n```(python|py|console|toml|text)\n", answer, flags=re.DOTALL), question


def test_the_index_of_the_cookbook_has_every_question_once() -> None:
    index = (DOCS / "cookbook" / "index.md").read_text("utf-8")
    asked = [question for path in COOKBOOK for question, _ in recipes(path.read_text("utf-8"))]
    assert sorted(re.findall(r"^- \[(.+)\]\(", index, flags=re.MULTILINE)) == sorted(asked)
    assert f"\n{len(asked)} questions, " in index
    assert len(set(asked)) == len(asked) >= 60


def test_the_file_for_programs_that_read_the_pages_is_current() -> None:
    making = runpy.run_path(str(DOCS / "make" / "llms.py"))
    made = making["text"]()
    assert making["PAGE"].read_text("utf-8") == made, "run python docs/make/llms.py"
    assert sorted(re.findall(r"\]\((\S+)\)", made)) == sorted(page.replace(".md", ".html") for page in published())


def named_in_the_reference() -> list[str]:
    """The names whose docstrings the reference shows."""
    pages = (page.read_text("utf-8") for page in sorted((DOCS / "reference").glob("api*.md")))
    return [name for page in pages for name in re.findall(r"^::: (\S+)$", page, flags=re.MULTILINE)]


@pytest.mark.parametrize(
    "module",
    [
        *("discreet", "discreet.adaptive", "discreet.audit", "discreet.datasets", "discreet.functions"),
        *("discreet.guarantees", "discreet.learn", "discreet.local", "discreet.mechanisms", "discreet.shuffle"),
        *("discreet.gateway", "discreet.ledger", "discreet.publication", "discreet.queries", "discreet.stats"),
        *("discreet.sql", "discreet.synthetic", "discreet.tables"),
    ],
)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    shown = {id(pkgutil.resolve_name(name)) for name in named_in_the_reference()}
    public = pkgutil.resolve_name(module)
    values = {name: getattr(public, name) for name in public.__all__}
    things = {name: value for name, value in values.items() if inspect.isclass(value) or inspect.isroutine(value)}
    assert [name for name, one in things.items() if not {id(one), id(sys.modules[one.__module__])} & shown] == []


def test_the_reference_names_everything_once_and_has_words_for_it() -> None:
    named = named_in_the_reference()
    assert sorted(set(named)) == sorted(named)
    assert [name for name in named if len(pkgutil.resolve_name(name).__doc__ or "") < 10] == []


@pytest.mark.parametrize("picture", sorted((DOCS / "images").rglob("*.svg")), ids=lambda picture: picture.name)
def test_no_picture_fetches_from_another_host(picture: Path) -> None:
    assert not re.search(r"(url\(|xlink:href=|\bhref=|src=)[\"']?https?:", picture.read_text("utf-8"))


def words(page: str) -> list[str]:
    """A page without receipts, numbers and what stands around them: all that noise cannot change."""
    plain = re.sub(r"\b\d+-[0-9a-f]{4}\b|\d[\d,.]*(e-?\d+)?", "", page)
    plain = re.sub(r"Probably nobody|About\s+(person|people)\b", "Some", plain)
    return re.findall(r"[^\W\d_]+", re.sub(r"\bwas scaled\b", "were scaled", plain))


@pytest.mark.slow
def test_the_tutorial_shows_what_its_code_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    making = runpy.run_path(str(DOCS / "make" / "tutorial.py"))
    page = making["PAGE"].read_text("utf-8")
    assert words(making["with_outputs"](page)) == words(page)
    drawn = {picture.name for picture in tmp_path.glob("*.svg")} | {"two-worlds.svg"}
    assert drawn == {picture.name for picture in making["PICTURES"].iterdir()}
    assert drawn == set(re.findall(r"images/tutorial/([\w-]+\.svg)", page))


def test_words_see_another_output_and_no_other_noise() -> None:
    assert words("41 ± 6.5 (95%); receipt 1-6e0c") == words("1,038 ± 11 (95%); receipt 22-ab0f")
    assert words("ε = 0.5 remains") != words("nothing remains")
    assert words("Probably nobody (95%: at most 3) had more and was scaled") == words(
        "About 12 people (95%: at most 30) had more and were scaled"
    )
