"""Plain HTML for notebooks: tables, facts and notes. All text is escaped, and colors are those of the page."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape

MOST_ROWS = 100
"""A longer table ends with a line that says how many rows are not shown."""
_LEFT, _RIGHT, _PALE = "text-align:left", "text-align:right;white-space:nowrap", "margin:.3em 0;opacity:.75"


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Collection[int] = (), more: int = 0, title: str = ""
) -> str:
    """A table of texts. The columns in `numbers` are aligned to the right. `more` rows are not shown."""
    sides = [_RIGHT if place in numbers else _LEFT for place in range(len(head))]
    top = _row("th", head, sides)
    body = "".join(_row("td", cells, sides) for cells in rows)
    heading = f"<p><b>{escape(title)}</b></p>" if title else ""
    rest = note(f"… and {more:,} more {'row' if more == 1 else 'rows'}") if more else ""
    return f"{heading}<table><thead>{top}</thead><tbody>{body}</tbody></table>{rest}"


def facts(described: Mapping[str, str]) -> str:
    """Names and what is said of each, one below the other."""
    lines = "".join(
        f'<tr><th style="{_LEFT}" scope="row">{escape(name)}</th><td style="{_LEFT}">{escape(text)}</td></tr>'
        for name, text in described.items()
    )
    return f"<table><tbody>{lines}</tbody></table>"


def note(text: str) -> str:
    """A paragraph in a paler tone."""
    return f'<p style="{_PALE}">{escape(text)}</p>'


def code(text: str) -> str:
    """Text in the form in which it is written, such as a question."""
    return f"<pre>{escape(text)}</pre>"


def bar(share: float) -> str:
    """A bar that shows a share between 0 and 1."""
    return f'<progress max="1" value="{min(1.0, max(0.0, share)):.4f}"></progress>'


def _row(cell: str, texts: Sequence[str], sides: Sequence[str]) -> str:
    cells = (f'<{cell} style="{side}">{escape(text)}</{cell}>' for text, side in zip(texts, sides, strict=True))
    return f"<tr>{''.join(cells)}</tr>"
