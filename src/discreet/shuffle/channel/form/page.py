"""A poll as one HTML page: the question, a button for each answer, what is promised, and the script that reports.

The script and the styles are the same on every page, and the policy of the page names them by their hashes: nothing
that a question or a choice says can become a script. What is different stands in escaped text and attributes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from html import escape
from importlib import resources

from discreet.errors import InvalidArgument
from discreet.shuffle.channel.form.texts import checked
from discreet.shuffle.channel.services.page import STYLES
from discreet.shuffle.channel.task import Task

KINDS = ("bit sum", "histogram by response", "histogram with fakes")
"""What a person can answer with one tap, and the script can report."""
_LARGEST = 2**53
"""Whole numbers from here on are not exact in JavaScript."""
_LOCAL = r"http://(?:127\.0\.0\.1|localhost)"
_ADDRESS = re.compile(rf"(?:https://[A-Za-z0-9.-]+|{_LOCAL})(?::[0-9]+)?(?:/[A-Za-z0-9._~-]+)*")
"""An address that means the same in a content security policy: no user, no question mark, nothing that ends a part."""


def draw_form(task: Task, question: str, texts: Mapping[str, str] | None = None) -> bytes:
    """The page for people who answer, with texts around the question. Raises for a task that its script cannot
    answer.
    """
    check_form(task)
    said = checked(texts or {})
    asked = " ".join(question.split())
    if not asked:
        raise InvalidArgument(
            'A form needs a question, such as --question "How often do you feel lonely?"', code="shuffle-no-question"
        )
    styles, script = STYLES + _text("page.css"), _text("discreet-reports.js") + "\n" + _text("page.js")
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(styles)}'; "
        f"img-src data:; connect-src {task.shuffler}/v1/; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'"
    )
    text = (
        f'<!doctype html>\n<html lang="{said["language"]}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="robots" content="noindex">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(asked)}</title>\n<style>{styles}</style>\n</head>\n<body>\n'
        f'<main id="poll" data-task="{escape(task.canonical.decode())}" data-hash="{task.hash.hex()}" '
        f'data-shuffler="{escape(task.shuffler)}" data-texts="{escape(json.dumps(said, ensure_ascii=False))}">\n'
        f'<h1 id="question" dir="auto">{escape(asked)}</h1>\n{_answers(task, said)}'
        '<p id="said" role="status" tabindex="-1" dir="auto"></p>\n'
        f'<noscript><p class="warning" dir="auto">{escape(said["no-script"])}</p></noscript>\n{_promised(task, said)}'
        f"</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )
    return text.encode("utf-8", "replace")


def check_form(task: Task) -> None:
    """Refuse a task that the script of the page cannot answer."""
    choices = getattr(task.protocol, "choices", ())
    if task.issuer_key:
        why = (
            "This task admits people by tickets of its issuer, which the page cannot get. Make a task without "
            "--admission, or write a page with the entry @discreet/reports/admission"
        )
    elif task.protocol.kind not in KINDS:
        why = (
            f"A form has a button for each answer, and the {task.protocol.kind} of this task is not for that. Make a "
            "task with discreet shuffle init, or write a page with the entry @discreet/reports/all"
        )
    elif not all(isinstance(one, str) or (isinstance(one, int | float) and abs(one) < _LARGEST) for one in choices):
        why = "The choices of a form must be texts, or numbers below 2^53. Make a task with such choices"
    elif not _ADDRESS.fullmatch(task.shuffler):
        why = (
            "A form needs the shuffler's address as https://shuffler.example (or http://127.0.0.1:7002 to try it on "
            "this machine), in plain letters. Write it under [services] in the task file"
        )
    else:
        return
    raise InvalidArgument(f"{why}.", code="shuffle-no-form")


def is_local(task: Task) -> bool:
    """Whether only this machine reaches the shuffler."""
    return re.match(_LOCAL, task.shuffler) is not None


def _answers(task: Task, said: Mapping[str, str]) -> str:
    named = getattr(task.protocol, "choices", None)
    answers = [(1, said["yes"]), (0, said["no"])] if named is None else list(enumerate(map(str, named)))
    buttons = "".join(
        f'<label><input type="radio" name="answer" value="{place}" autocomplete="off">'
        f'<span dir="auto">{escape(name)}</span></label>\n'
        for place, name in answers
    )
    return (
        f'<div id="ask">\n<fieldset id="answers" aria-labelledby="question" disabled>\n{buttons}</fieldset>\n'
        f'<p class="pale small" dir="auto">{escape(said["protected"])}</p>\n'
        f'<button id="send" type="button" disabled>{escape(said["send"])}</button>\n'
        f'<button id="decline" type="button" class="quiet" disabled>{escape(said["decline"])}</button>\n</div>\n'
    )


def _promised(task: Task, said: Mapping[str, str]) -> str:
    explained = f'<p class="small" dir="auto">{escape(said["explained"])}</p>\n' if said["explained"].strip() else ""
    return (
        f'<h2 dir="auto">{escape(said["promised"])}</h2>\n{explained}'
        f'<p class="small" lang="en" dir="ltr">{escape(task.promise)}</p>\n'
        f'<p class="pale small" lang="en" dir="ltr">Task <code>{task.hash.hex()}</code></p>\n'
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
