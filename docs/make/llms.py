"""docs/llms.txt, for programs that read the documentation: every page of the navigation and how it begins.

`python docs/make/llms.py` writes it, and the site has it at its root. Links are those of the built site. Pages of the
last section, the decisions, are listed by title alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
PAGE = DOCS / "llms.txt"
STORIES = DOCS.parent / "examples" / "stories"
SHORT, LONGEST = 50, 180
"""Characters: a sentence that is shorter gets the next one too, and more than the longest is left out."""
HEAD = """# discreet

> {about}
> A Python library for differential privacy: exact noise, an error bar for every number, and a ledger that is charged
> before the data is read.

- Import it as `import discreet as dp`. It is not published yet: install it from a checkout or a wheel.
- Declare bounds, choices and classes from public knowledge. Never read them from the data.
- `explain` shows cost and error, and spends nothing. Ask it before `sql`.
- Every error has a `code`, and says what to write instead.
"""


def navigation() -> Iterator[tuple[str, str, str]]:
    """Section, title and file of every page, in the order of mkdocs.yml."""
    lines = (DOCS.parent / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2].partition("\nvalidation:")[0]
    section = ""
    for line in lines.splitlines():
        indent, title, page = re.fullmatch(r'( *)- (?:"?(.+?)"?:)? ?(\S+\.md)?( #.*)?', line).groups()[:3]
        section = title if len(indent) == 2 else section
        if page:
            yield section, title or heading(page), page


def source(page: str) -> str:
    """The text of a page. That of a story is in the comments of its script, from which the page is made."""
    if not page.startswith("stories/"):
        return (DOCS / page).read_text("utf-8")
    script = (STORIES / Path(page).with_suffix(".py").name).read_text("utf-8")
    return "\n".join(re.sub(r"^# ?", "", line) for line in script.splitlines() if line.startswith("#"))


def prose(page: str) -> str:
    """A page without its settings and its code."""
    text = source(page)
    return re.sub(r"\A---\n.*?^---\n|^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)


def heading(page: str) -> str:
    """The title that a page gives itself."""
    return re.search(r"^# (.+)$", prose(page), flags=re.MULTILINE)[1]


def summary(page: str) -> str:
    """How the first paragraph of a page begins: a sentence, or two if they are short. Tables and lists do not count."""
    text = re.sub(r"^#+ .*$", "\n", prose(page), flags=re.MULTILINE)
    paragraphs = (" ".join(part.split()) for part in text.split("\n\n"))
    first = next((part for part in paragraphs if re.match(r"[\w`*\[(]", part)), "")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", first).replace("**", "")
    said = ""
    for sentence in re.split(r"(?<=[.?])\s+(?=[A-Z`])", plain):
        if len(said) >= SHORT or len(said) + len(sentence) > LONGEST:
            break
        said = f"{said} {sentence}".strip()
    return (said or plain[:LONGEST].rsplit(" ", 1)[0] + " …").rstrip(":")


def text() -> str:
    """The whole file."""
    about = re.search(r"^site_description: (.+)$", (DOCS.parent / "mkdocs.yml").read_text("utf-8"), flags=re.MULTILINE)
    pages = list(navigation())
    parts, last = [HEAD.format(about=about[1])], pages[-1][0]
    for section in dict.fromkeys(one for one, _, _ in pages):
        parts.append(f"\n## {'Optional' if section == last else section}\n")
        for title, page in ((title, page) for one, title, page in pages if one == section):
            said = "" if section == last else summary(page)
            parts.append(f"- [{title}]({page.removesuffix('.md')}.html){': ' * bool(said)}{said}\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
