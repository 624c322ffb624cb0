"""The result of a poll as one HTML page: counts with error bars, a table, and what was promised.

The page runs no script and fetches nothing. Before there is a result it says how many reports are needed, and never how
many came: a growing number would show who reports when.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from html import escape
from typing import Any

from discreet.drawing import Drawing, Point, Scale, short_number
from discreet.shuffle.channel.task import Task

MOST_BARS = 60
"""More bars than that cannot be read: the largest ones are drawn, and the table has all."""
_WIDTH, _ROW, _HEAD, _FOOT, _LONGEST = 480.0, 28.0, 6.0, 28.0, 22  # narrow: its labels can be read on a phone
STYLES = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1b2422;--pale:#56635f;--line:#d5dcd9;--one:#175e54;--soft:#eef3f1}
@media (prefers-color-scheme:dark){
:root{--paper:#151b19;--ink:#e6ecea;--pale:#a3b0ac;--line:#34403c;--one:#6fd0bd;--soft:#1f2826}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,"DejaVu Sans",sans-serif}
main{max-width:48rem;margin:0 auto;padding:2rem 1.25rem 3rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}
p{margin:.5rem 0}.pale,small,caption{color:var(--pale)}
.warning{border-left:4px solid #b3261e;padding:.25rem .75rem;font-weight:600}
.picture{display:block;width:100%;max-width:36rem;height:auto;margin:1.25rem 0 .25rem}
text{fill:var(--ink);font:14px system-ui,"DejaVu Sans",sans-serif}.label.pale{fill:var(--pale);font-size:13px}
.grid{stroke:var(--line)}.axis{stroke:var(--pale)}.bar{fill:var(--one);fill-opacity:.75}
.whisker{stroke:var(--ink);stroke-width:1.5}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.35rem .75rem .35rem 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
thead th{color:var(--pale);font-weight:600;font-size:.9rem}
.number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
tbody th{font-weight:400}.facts th{color:var(--pale);white-space:nowrap;vertical-align:top}
code{font:13px/1.5 ui-monospace,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
"""
_HASH = base64.b64encode(hashlib.sha256(STYLES.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; img-src data:; base-uri 'none'; form-action 'none'"
SECURITY = (
    (b"content-security-policy", f"{POLICY}; frame-ancestors 'none'".encode()),
    (b"referrer-policy", b"no-referrer"),
)
"""The headers with which a service sends the page."""


def draw_page(task: Task, result: dict[str, Any] | None) -> bytes:
    """The page of a task: with what was published, or before that."""
    if result is None:
        body = _waiting(task)
    elif "value" in result:
        body = _counted(task, result)
    else:
        body = _withheld(result)
    text = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="robots" content="noindex">\n<link rel="icon" href="data:,">\n'
        f"<title>Results of a private poll</title>\n<style>{STYLES}</style>\n</head>\n<body>\n<main>\n"
        f"{body}{_promised(task, result)}</main>\n</body>\n</html>\n"
    )
    return text.encode()


# --- what happened ----------------------------------------------------------------------------------------------


def _waiting(task: Task) -> str:
    return (
        "<h1>No result yet</h1>\n"
        f"<p>The result is published here once at least {task.protocol.minimum:,} reports have come and the poll is "
        "closed. Until then no report is opened, and how many have come is not shown.</p>\n"
    )


def _withheld(result: dict[str, Any]) -> str:
    return (
        "<h1>Nothing is published</h1>\n"
        f"<p>Of {result['reports']:,} reports, {result['heard']:,} can be read, and at least {result['needed']:,} are "
        "needed to keep the promise. The poll is over, and its answers stay secret.</p>\n"
    )


def _counted(task: Task, result: dict[str, Any]) -> str:
    rows, error = _rows(task, result["value"]), result["error"]
    sure = f"{100 * result['confidence']:g}%"
    unreadable = "" if result["heard"] == result["reports"] else f", of which {result['heard']:,} can be read"
    noise = "No bound on its error is known."
    if error is not None:
        together = "every true value lies" if len(rows) > 1 else "the true value lies"
        noise = f"With {sure} confidence, {together} within ± {_error(error)} of what is shown."
    test = '<p class="warning">NOT PRIVATE: made in test mode.</p>\n' if result["not_private"] else ""
    return (
        f"<h1>Results</h1>\n{test}"
        f'<p class="pale">{result["reports"]:,} reports{unreadable}. Each carries random noise, so every number is '
        f"approximate. {noise}</p>\n{_picture(rows, error, sure)}\n{_table(rows, error, sure)}"
    )


def _rows(task: Task, value: Any) -> list[tuple[str, float]]:
    if isinstance(value, list):
        return [(str(name), float(count)) for name, count in value]
    name = "yes" if task.protocol.alphabet == 2 else str(getattr(task.protocol, "of", "total"))
    return [(name, float(value))]


def _decimals(error: float | None) -> int:
    """As many decimals as the error has a meaning for: two digits of a small one."""
    return 1 if error is None or not 0 < error < 1 else 1 - math.floor(math.log10(error))


def _number(value: float, error: float | None) -> str:
    return f"{value:,.{_decimals(error)}f}".replace("-", "−")


def _error(error: float) -> str:
    """The error, rounded up."""
    unit = 10 ** _decimals(error)
    return f"{math.ceil(error * unit) / unit:,.{_decimals(error)}f}"


def _picture(rows: Sequence[tuple[str, float]], error: float | None, sure: str) -> str:
    """Bars to the right of their names, with whiskers where the error is known."""
    away = error or 0.0
    drawn = sorted(range(len(rows)), key=lambda row: -rows[row][1])[:MOST_BARS] if len(rows) > MOST_BARS else None
    shown = rows if drawn is None else [rows[row] for row in drawn]
    low, high = min(0.0, *(count - away for _, count in shown)), max(0.0, *(count + away for _, count in shown))
    longest = max(len(_label(name)) for name, _ in shown)
    left = 16 + 8.4 * longest
    scale = Scale(low, high if high > low else 1.0, left, _WIDTH - 24)
    bottom = _HEAD + _ROW * len(shown)
    about = f"Private numbers as bars, with {sure} intervals." if error is not None else "Private numbers as bars."
    drawing = Drawing(_WIDTH, bottom + _FOOT, title="Results of the poll", about=about)
    for tick in scale.ticks(4):
        drawing.line(Point(scale(tick), _HEAD), Point(scale(tick), bottom), "grid")
        drawing.text(Point(scale(tick), bottom + 17), short_number(tick), "label pale", anchor="middle")
    for place, (name, count) in enumerate(shown):
        top = _HEAD + _ROW * place
        middle, ends = top + _ROW / 2, sorted((scale(0.0), scale(count)))
        drawing.text(Point(left - 8, middle + 4.5), _label(name), anchor="end")
        said = f"{name}: {_number(count, error)}" + ("" if error is None else f" ± {_error(error)}")
        drawing.box(Point(ends[0], top + 5), ends[1] - ends[0], _ROW - 10, "bar", about=said)
        if error is not None:
            low_end, high_end = scale(count - error), scale(count + error)
            drawing.line(Point(low_end, middle), Point(high_end, middle), "whisker")
            for end in (low_end, high_end):
                drawing.line(Point(end, middle - 4), Point(end, middle + 4), "whisker")
    drawing.line(Point(scale(0.0), _HEAD), Point(scale(0.0), bottom), "axis")
    rest = "" if drawn is None else f'<p class="pale">The {MOST_BARS} largest are drawn. The table has all.</p>'
    return drawing.svg() + rest


def _label(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _table(rows: Sequence[tuple[str, float]], error: float | None, sure: str) -> str:
    bars = "unknown" if error is None else f"± {_error(error)}"
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="number">{_number(count, error)}</td>'
        f'<td class="number">{bars}</td></tr>\n'
        for name, count in rows
    )
    right = "".join(f'<th scope="col" class="number">{name}</th>' for name in ("estimate", f"error ({sure})"))
    head = f'<th scope="col">answer</th>{right}'
    return f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n'


# --- what was promised ------------------------------------------------------------------------------------------


def _promised(task: Task, result: dict[str, Any] | None) -> str:
    protocol = task.protocol
    facts = {
        "privacy": f"ε = {float(task.epsilon):g}, δ = {float(task.delta):g} for each person's answer",
        "reports": f"{protocol.minimum:,} or more, or nothing is published",
        "randomized by": f"each device itself ({protocol.kind})",
        "task": f"SHA-256 {task.hash.hex()}",
    }
    if result is not None and "receipt" in result:
        facts["receipt"] = str(result["receipt"])
    lines = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{_fact(name, text)}</td></tr>\n' for name, text in facts.items()
    )
    return (
        f'<h2>What is promised</h2>\n<table class="facts"><tbody>\n{lines}</tbody></table>\n'
        f"<p>The task says to everybody who takes part: <q>{escape(task.promise)}</q></p>\n"
    )


def _fact(name: str, text: str) -> str:
    return f"<code>{escape(text)}</code>" if name in ("task", "receipt") else escape(text)
