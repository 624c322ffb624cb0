"""Marks: a charge's record of what it measured, so that stored numbers can be found again."""

from __future__ import annotations

import re

from discreet.ledger.stores.store import Execute

_SIGN = "\n-- measured "
_MARK = re.compile(r"\n-- measured ([0-9a-f]{32}: [^\n]*|)\Z")
_QUESTION = re.compile(r"[;:] asked ([0-9a-f]{32})\Z")


def with_question(mark: str, question: str | None) -> str:
    """A mark that ends with the digest of the question and of the declarations it depends on, if it has one."""
    if question is None:
        return mark
    return f"{mark}; asked {question}" if mark else f"{question}: asked {question}"


def question_in(mark: str) -> str | None:
    """The digest of the question in a mark. None if it has none."""
    found = _QUESTION.search(mark)
    return None if found is None else found[1]


def add_mark(asked: str, mark: str) -> str:
    """The recorded request, followed by a mark. The last mark counts: one inside a request is only text."""
    return asked + _SIGN + mark if mark or _SIGN in asked else asked


def split_mark(text: str) -> tuple[str, str]:
    """The recorded request, and its mark."""
    found = _MARK.search(text) if _SIGN in text else None
    return (text, "") if found is None else (text[: found.start()], found[1])


class Marks:
    """The entry numbers of one analyst's charges, by the first part of their mark. Each entry is read once."""

    def __init__(self) -> None:
        self._seen, self._numbers = -1, dict[str, list[int]]()

    def numbers(self, execute: Execute, analyst: str, first: str) -> list[int]:
        """The charges whose mark begins with this text, oldest first."""
        newer = execute(
            "SELECT number, asked FROM entries WHERE analyst = ? AND number > ? AND kind = 'charge' ORDER BY number",
            analyst,
            self._seen,
        )
        for number, asked in newer:
            self._seen = max(self._seen, number)
            mark = split_mark(asked)[1]
            if mark:
                self._numbers.setdefault(mark[:32], []).append(number)
        return list(self._numbers.get(first, ()))
