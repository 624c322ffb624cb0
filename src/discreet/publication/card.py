"""The card of a publication, for the public: what was done, what ε means, how wrong numbers are, how to check it.

The card follows from the facts of the proof alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

Facts = Mapping[str, Any]
Table = tuple[Sequence[str], list[Sequence[str]]]
KINDS = {"tables": "a table", "cubes": "a cube: all sums of its cells", "synthetic": "synthetic rows"}
NOT_CHECKED = (
    "That noise was drawn, and drawn well, cannot be checked by anyone who does not have the data: a number with noise "
    "looks like a number without. What the ledger shows is what was charged, and that the published numbers are those "
    "that were stored when they were charged."
)

NOT_THIS_PLAN = (
    "These numbers were charged before, for another plan or question. The ledger confirms them, and not the titles and "
    "texts of this plan."
)


def card_markdown(facts: Facts) -> str:
    """The card as Markdown."""
    return "\n\n".join(_markdown(one) for one in _blocks(facts)) + "\n"


def card_html(facts: Facts) -> str:
    """The card as one HTML page, with no scripts and nothing loaded from elsewhere."""
    title = escape(_title(facts))
    body = "\n".join(_html(one) for one in _blocks(facts))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


# --- what it says -------------------------------------------------------------------------------------------


class _Block:
    """A heading, a paragraph, a list, a table or code."""

    def __init__(self, kind: str, content: Any, level: int = 1) -> None:
        self.kind, self.content, self.level = kind, content, level


def _title(facts: Facts) -> str:
    return str(facts["plan"].get("title") or "A publication")


def _blocks(facts: Facts) -> list[_Block]:
    return [
        *_head(facts),
        *_summary(facts),
        *[block for part in facts["parts"] for block in _part(part)],
        *_meaning(facts),
        *_checking(facts),
    ]


def _head(facts: Facts) -> list[_Block]:
    plan = facts["plan"]
    found = [_Block("heading", _title(facts))]
    if facts["not_private"]:
        found.append(_Block("warning", "NOT PRIVATE: made in test mode. Do not publish this."))
    named = [plan.get("publisher"), plan.get("edition"), facts["date"]]
    found.append(_Block("small", " · ".join(one for one in named if one)))
    if plan.get("about"):
        found.append(_Block("text", str(plan["about"])))
    return found


def _summary(facts: Facts) -> list[_Block]:
    criteria = [one for part in facts["parts"] for one in part["criteria"]]
    met = sum(one["met"] for one in criteria)
    rows = [
        ("What is published", ", ".join(part["title"] for part in facts["parts"])),
        ("Who is protected", facts["ledger"]["protected"]),
        ("What all of it cost", facts["cost"]["text"]),
        ("Spent on these data by then", f"{facts['spent_by_then']['text']}, of {facts['limit']['text']}"),
    ]
    if criteria:
        rows.append(("Acceptance criteria", f"{met} of {len(criteria)} are met"))
    text = (
        "Every number here has random noise, so that nobody can tell from it whether any one person is in the data, or "
        "what their values are, beyond what ε allows. All numbers were charged to a ledger before the data were read."
    )
    return [_Block("facts", rows), _Block("text", text)]


def _part(part: Mapping[str, Any]) -> list[_Block]:
    found = [_Block("heading", part["title"], 2)]
    if part["about"]:
        found.append(_Block("text", part["about"]))
    rows = [
        ("Files", f"{part['name']}.csv, {part['name']}.parquet"),
        ("What it is", f"{KINDS[part['kind']]}, {part['rows']:,} rows"),
        ("Columns", ", ".join(part["columns"])),
        ("ε", f"{part['epsilon']}"),
        ("Receipts", _receipts(part)),
    ]
    sure = f"{100 * part['confidence']:g}%"
    for name, error in part["largest_errors"].items():
        rows.append(
            (f"Largest error of {name}", f"{'not known' if error is None else _amount(error)} ({sure} for each)")
        )
    if part["rows_estimated"] is not None:
        rows.append(("True rows, estimated", f"{part['rows_estimated']:,}"))
    found.append(_Block("facts", rows))
    if part["kind"] == "synthetic":
        found.append(
            _Block(
                "text",
                "No row of this table belongs to anybody. It was drawn from a model that was fitted to noisy counts. "
                "Counts of many columns at once, and of what the criteria below do not name, may be far off.",
            )
        )
    if part["criteria"]:
        found.append(_Block("table", _criteria(part["criteria"])))
        found.append(
            _Block(
                "small",
                f"Values were measured with noise. With {sure} confidence, all of them are within their ±. A criterion "
                "is met if its value is at most its limit even then.",
            )
        )
    return found + ([_Block("list", part["notes"])] if part["notes"] else [])


def _receipts(part: Mapping[str, Any]) -> str:
    """The receipts. What was charged for another plan has titles and texts that the ledger does not know."""
    listed = ", ".join(part["receipts"]) or "none: it reads public tables only"
    return listed if part["charged_for_this_plan"] else f"{listed}. {NOT_THIS_PLAN}"


def _criteria(criteria: Sequence[Mapping[str, Any]]) -> Table:
    rows: list[Sequence[str]] = []
    for one in criteria:
        shown = _share if one["is_share"] else _amount
        error = "exact" if one["error"] is None else f"± {shown(one['error'])}"
        met = "met" if one["met"] else "NOT MET"
        rows.append((one["criterion"], shown(one["value"]), error, shown(one["at_most"]), met))
    return ("criterion", "value", "within", "at most", ""), rows


def _amount(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def _share(number: float) -> str:
    return f"{100 * number:.3g}%"


def _meaning(facts: Facts) -> list[_Block]:
    meaning = facts["meaning"]
    if meaning is None:
        return []
    return [
        _Block("heading", f"What {facts['cost']['text']} means", 2),
        _Block("text", meaning["loss"]),
        _Block("table", (meaning["head"], meaning["rows"])),
        _Block(
            "small",
            "Each line is about an attacker who knows everything else: how likely it seemed before, how likely it may "
            "seem after all of this is published, and how often the best guess is right.",
        ),
        _Block("list", meaning["not_promised"]),
    ]


def _checking(facts: Facts) -> list[_Block]:
    return [
        _Block("heading", "How to check it", 2),
        _Block(
            "text",
            "Anyone with a copy of the ledger can check, without the data: that no file was changed, that every "
            "receipt is in the ledger, that its charges follow from its guarantees and add up to the totals above, "
            "and that the published numbers are the stored ones.",
        ),
        _Block("code", "pip install discreet\ndiscreet verify OUT LEDGER"),
        _Block("warning", NOT_CHECKED),
        _Block(
            "small",
            f"Ledger {facts['ledger']['name']}, {len(facts['receipts'])} receipts up to entry "
            f"{facts['ledger']['last_entry']}. Plan {facts['plan_digest'][:16]}. "
            "Digests of all files are in proof.json.",
        ),
    ]


# --- how it looks -------------------------------------------------------------------------------------------


def _markdown(block: _Block) -> str:
    match block.kind:
        case "heading":
            return f"{'#' * block.level} {block.content}"
        case "small":
            return f"*{block.content}*" if block.content else ""
        case "warning":
            return f"> **{block.content}**"
        case "facts":
            return _markdown_table(("", ""), [(f"**{name}**", text) for name, text in block.content])
        case "table":
            return _markdown_table(*block.content)
        case "list":
            return "\n".join(f"- {one}" for one in block.content)
        case "code":
            return f"```sh\n{block.content}\n```"
    return str(block.content)


def _markdown_table(head: Sequence[str], rows: list[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _html(block: _Block) -> str:
    content = block.content
    match block.kind:
        case "heading":
            return f"<h{block.level}>{escape(content)}</h{block.level}>"
        case "small" | "warning":
            return f'<p class="{block.kind}">{escape(content)}</p>'
        case "facts":
            lines = "".join(f"<tr><th scope=row>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in content)
            return f'<table class="facts">{lines}</table>'
        case "table":
            head, rows = content
            top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
            body = "".join(f"<tr>{''.join(_html_cell(cell) for cell in row)}</tr>" for row in rows)
            return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
        case "list":
            return f"<ul>{''.join(f'<li>{escape(one)}</li>' for one in content)}</ul>"
        case "code":
            return f"<pre>{escape(content)}</pre>"
    return f"<p>{escape(content)}</p>"


def _html_cell(text: str) -> str:
    kind = {"met": ' class="met"', "NOT MET": ' class="missed"'}.get(text, "")
    return f"<td{kind}>{escape(text)}</td>"


_STYLE = """
:root { color-scheme: light dark; --line: #d8dde3; --soft: #5a6672; --tint: #f3f6f9; --good: #17693f; --bad: #a32020; }
@media (prefers-color-scheme: dark) {
  :root { --line: #3a434d; --soft: #a9b4bf; --tint: #1d242b; --good: #7fd6a5; --bad: #ff9d94; }
}
body { margin: 0; font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .6rem; padding-top: 1.2rem; border-top: 1px solid var(--line); }
p { margin: .7rem 0; }
.small { color: var(--soft); font-size: .875rem; }
.warning { background: var(--tint); border-left: 4px solid var(--bad); padding: .7rem 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .8rem 0; font-size: .9375rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid var(--line); }
thead th { color: var(--soft); font-weight: 600; font-size: .8125rem; }
.facts th { width: 13rem; color: var(--soft); font-weight: 600; }
td { font-variant-numeric: tabular-nums; }
.wide td + td { white-space: nowrap; }
.met { color: var(--good); font-weight: 600; }
.missed { color: var(--bad); font-weight: 700; }
pre { background: var(--tint); padding: .8rem 1rem; overflow-x: auto; border-radius: 6px; }
ul { padding-left: 1.2rem; }
@media (max-width: 34rem) { .facts th, .facts td { display: block; width: auto; border: 0; padding: 0; }
  .facts tr { display: block; padding: .4rem 0; border-bottom: 1px solid var(--line); } }
"""
