"""The text that a client sends: its tokens, its comments, and small changes after which places can still be found.

Nothing here searches in the text itself, so that what is quoted is never taken for something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from discreet.gateway.wire.format.values import Refusal

LONGEST = 100_000
"""Characters of one text, at most. The vault takes no longer questions."""
_OPENING, _CLOSING = ("L_PAREN", "L_BRACKET", "L_BRACE"), ("R_PAREN", "R_BRACKET", "R_BRACE")
_QUOTED = ("STRING", "IDENTIFIER", "BYTE_STRING", "HEREDOC_STRING", "NATIONAL_STRING", "UNICODE_STRING", "RAW_STRING")


class _Tokenizer(Postgres.Tokenizer):
    """Tokens of PostgreSQL. What follows SHOW, FETCH or EXPLAIN is read like everything else, and $ begins a parameter:
    for sqlglot, $1,$2 would begin a text.
    """

    COMMANDS: ClassVar[set[TokenType]] = set()
    HEREDOC_STRINGS: ClassVar[list[Any]] = []
    SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {**Postgres.Tokenizer.SINGLE_TOKENS, "$": TokenType.PARAMETER}


def tokens_of(text: str) -> list[Any]:
    """The tokens of a text, without comments."""
    if len(text) > LONGEST:
        raise Refusal(f"The text has more than {LONGEST:,} characters. Write a shorter one.", state="54000")
    if "\0" in text:
        raise Refusal("The text contains the character 0. Write it again without it.", state="42601")
    try:
        quoted = _dollar_quoted(text) if "$" in text else {}
        found = list(_Tokenizer(dialect="postgres").tokenize(_masked(text, quoted)))
        return [_unmasked(one, quoted[one.start]) if one.start in quoted else one for one in found]
    except (SqlglotError, ValueError, RecursionError):
        raise Refusal(
            "The text cannot be read: a quote, an identifier or a comment has no end.",
            state="42601",
            hint="Close it, and double a quote that is inside a text: 'it''s'.",
        ) from None


_OPENERS = re.compile(r"['\"]|--|/\*|\$(?:[^\W\d]\w*)?\$")


def _dollar_quoted(text: str) -> dict[int, tuple[int, str]]:
    """The texts between dollars, such as $$it's$$: by where each begins, where it ends and what it says."""
    found: dict[int, tuple[int, str]] = {}
    place = 0
    while (opener := _OPENERS.search(text, place)) is not None:
        mark, start = opener[0], opener.start()
        if mark == "--":
            end = text.find("\n", start)
        elif mark == "/*":
            end = _comment_end(text, start)
        elif mark in "'\"":
            end = _quote_end(text, start)
        elif start and (text[start - 1].isalnum() or text[start - 1] in "_$"):
            end = start + 1
        else:
            end = text.find(mark, opener.end())
            if end >= 0:
                end += len(mark)
                found[start] = (end, text[opener.end() : end - len(mark)])
        if not 0 <= end < len(text):
            break
        place = end
    return found


def _quote_end(text: str, start: int) -> int:
    """After the quote that closes the one here. A doubled quote does not. -1 if none does."""
    escaped = (
        text[start] == "'" and text[start - 1 : start].lower() == "e" and not _is_letter(text[start - 2 : start - 1])
    )
    place = start + 1
    while place < len(text):
        if escaped and text[place] == "\\":
            place += 2
        elif text[place] != text[start]:
            place += 1
        elif text[place + 1 : place + 2] == text[start]:
            place += 2
        else:
            return place + 1
    return -1


def _is_letter(mark: str) -> bool:
    return bool(mark) and (mark.isalnum() or mark == "_")


def _masked(text: str, quoted: Mapping[int, tuple[int, str]]) -> str:
    """The text with ordinary quotes instead of dollars, of the same length and with the same lines."""
    pieces, place = [], 0
    for start, (end, _) in quoted.items():
        inside = "".join(mark if mark == "\n" else "x" for mark in text[start + 1 : end - 1])
        pieces += [text[place:start], "'", inside, "'"]
        place = end
    return "".join([*pieces, text[place:]])


def _unmasked(token: Any, quoted: tuple[int, str]) -> Any:
    return Token(token.token_type, quoted[1], token.line, token.col, token.start, token.end, token.comments)


def kind_of(token: Any) -> str:
    """What kind of token it is, such as STRING."""
    return str(token.token_type.name)


def is_quoted(token: Any) -> bool:
    """Whether a token is a text or a quoted name, and so never a word of SQL."""
    return kind_of(token) in _QUOTED


def depths(tokens: Iterable[Any]) -> Iterator[tuple[Any, int]]:
    """Each token with the number of parentheses around it. A parenthesis itself is outside."""
    depth = 0
    for token in tokens:
        if kind_of(token) in _CLOSING:
            depth -= 1
        yield token, depth
        if kind_of(token) in _OPENING:
            depth += 1


def comments_in(text: str, tokens: Sequence[Any], start: int, end: int) -> tuple[str, ...]:
    """The comments between the tokens of a part of a text, without their marks."""
    edges = [(-1, start - 1), *((token.start, token.end) for token in tokens), (end, -1)]
    return tuple(said for (_, last), (first, _) in pairwise(edges) for said in _comments(text[last + 1 : first]))


def _comments(gap: str) -> Iterator[str]:
    """The comments in a text that holds nothing but comments and spaces."""
    place = 0
    while place < len(gap):
        if gap.startswith("--", place):
            end = gap.find("\n", place)
            end = len(gap) if end < 0 else end
            yield gap[place + 2 : end].strip()
            place = end
        elif gap.startswith("/*", place):
            end = _comment_end(gap, place)
            yield gap[place + 2 : end - 2].strip()
            place = end
        else:
            place += 1


def _comment_end(gap: str, start: int) -> int:
    """Where a comment ends that may hold others."""
    depth, place = 0, start
    while place < len(gap):
        mark = gap[place : place + 2]
        depth += {"/*": 1, "*/": -1}.get(mark, 0)
        place += 2 if mark in ("/*", "*/") else 1
        if depth == 0:
            return place
    return len(gap) + 2


class Edit(NamedTuple):
    """A part of a text, from `start` to before `end`, and what is written instead."""

    start: int
    end: int
    instead: str = ""


class Edited:
    """A part of a text with some changes. Places in it can be found in the whole text again."""

    def __init__(self, text: str, start: int, end: int, edits: Sequence[Edit] = (), before: str = "") -> None:
        self._kept: list[tuple[int, int]] = []
        pieces, place, long = [before], start, len(before)
        for edit in sorted(edits):
            self._kept.append((long, place))
            pieces += [text[place : edit.start], edit.instead]
            self._kept.append((long + edit.start - place, edit.start))
            long += edit.start - place + len(edit.instead)
            place = edit.end
        self._kept.append((long, place))
        pieces.append(text[place:end])
        self.text = "".join(pieces)
        self._first, self._last = start, max(start, end - 1)

    def original(self, place: int) -> int:
        """Where in the whole text a character of the changed text comes from."""
        mine, theirs = max((one for one in self._kept if one[0] <= place), default=(0, self._first))
        later = [one[1] for one in self._kept if one[0] > place]
        return min(max(theirs + place - mine, self._first), min([*later, self._last]))


def unquoted(token: Any) -> str:
    """A word as SQL reads it: upper case, and nothing for what is quoted."""
    return "" if is_quoted(token) else str(token.text).upper()


class Words:
    """The tokens of a statement, taken from left to right."""

    def __init__(self, text: str, tokens: Sequence[Any]) -> None:
        self.text, self.tokens, self.place = text, tokens, 0

    @property
    def next(self) -> str:
        """The next word in upper case. Empty at the end, and for what is quoted."""
        return unquoted(self.tokens[self.place]) if self.place < len(self.tokens) else ""

    @property
    def at_end(self) -> bool:
        """Whether nothing is left."""
        return self.place >= len(self.tokens)

    @property
    def left(self) -> Sequence[Any]:
        """The tokens that are left."""
        return self.tokens[self.place :]

    def take(self, *words: str) -> str:
        """The next word if it is one of these. Otherwise nothing is taken."""
        found = self.next
        if found and found in words:
            self.place += 1
            return found
        return ""

    def need(self, *words: str) -> str:
        """The next word, which must be one of these."""
        return self.take(*words) or self.fail()

    def token(self) -> Any:
        """The next token, whatever it is."""
        if self.at_end:
            self.fail()
        self.place += 1
        return self.tokens[self.place - 1]

    def name(self) -> str:
        """The next token as a name: what is not quoted is lower case."""
        if self.at_end or not (kind_of(self.tokens[self.place]) == "IDENTIFIER" or _is_word(self.next)):
            self.fail()
        token = self.token()
        return str(token.text) if is_quoted(token) else str(token.text).lower()

    def string(self) -> str:
        """The next token as the content of a text."""
        if self.at_end or not is_quoted(self.tokens[self.place]) or kind_of(self.tokens[self.place]) == "IDENTIFIER":
            self.fail()
        return str(self.token().text)

    def end(self) -> None:
        """Nothing may be left."""
        if not self.at_end:
            self.fail()

    def fail(self) -> Any:
        """An error at the next token."""
        raise syntax_error(self.text, None if self.at_end else self.tokens[self.place])


def _is_word(word: str) -> bool:
    return bool(word) and (word[0].isalpha() or word[0] == "_")


def syntax_error(text: str, token: Any | None) -> Refusal:
    """The error for a text that cannot be read at a token. Without one, at its end."""
    if token is None:
        return Refusal("syntax error at end of input", state="42601", position=len(text) + 1)
    shown = text[token.start : token.end + 1]
    return Refusal(f'syntax error at or near "{shown}"', state="42601", position=token.start + 1)
