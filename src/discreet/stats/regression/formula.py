"""Formulas of regressions: `cost ~ age + treated`, with `a:b` for a product, `a*b` for both and it, and `- 1`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from discreet.errors import InvalidArgument

Term = tuple[str, ...]
"""The columns that are multiplied, in the order of the formula. Empty for the intercept."""
_WORD = re.compile(r'\s*(?:"([^"]+)"|`([^`]+)`|C\(\s*(\w+)\s*\)|(\w+)|([~+\-:*]))')
_HELP = "Write the outcome, ~ and the terms: 'cost ~ age + treated + age:treated'. Add '- 1' for no intercept."


@dataclass(frozen=True)
class Formula:
    """The outcome and the terms of a regression. The first term is () if there is an intercept."""

    outcome: str
    terms: tuple[Term, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, each once, the outcome last."""
        named = dict.fromkeys(name for term in self.terms for name in term)
        return (*named, self.outcome)

    def __str__(self) -> str:
        shown = [":".join(map(_quoted, term)) for term in self.terms if term]
        return f"{_quoted(self.outcome)} ~ {' + '.join([*shown, *([] if () in self.terms else ['0'])]) or '1'}"


def _quoted(name: str) -> str:
    """A name as a formula writes it: in quotes unless it is a plain one, so that two formulas never look the same."""
    return name if name.isidentifier() else json.dumps(name, ensure_ascii=False)


def parse_formula(text: str) -> Formula:
    """Read a formula. Names with spaces stand in double quotes or backticks."""
    if not isinstance(text, str):
        raise InvalidArgument(f"A formula is text. {_HELP}", code="formula")
    words = _words(text)
    if len(words) < 3 or words[0][0] != "name" or words[1] != ("sign", "~"):
        raise InvalidArgument(f"The formula does not begin with an outcome and ~. {_HELP}", code="formula")
    outcome, rest = words[0][1], words[2:]
    terms: list[Term] = [()]
    for sign, factor in _parts(rest):
        _apply(terms, sign, factor)
    if not terms:
        raise InvalidArgument(f"The formula has no terms. {_HELP}", code="formula")
    ordered = sorted(dict.fromkeys(terms), key=len)
    if any(outcome in term for term in ordered):
        raise InvalidArgument(f"{outcome} is the outcome, and cannot be a term too. Remove it.", code="formula")
    return Formula(outcome, tuple(ordered))


def _words(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while text[at:].strip():
        match = _WORD.match(text, at)
        if match is None:
            where = text[at:].strip()[0]
            raise InvalidArgument(f"{where!r} has no meaning in a formula. {_HELP}", code="formula")
        *names, sign = match.groups()
        name = next((one for one in names if one is not None), None)
        found.append(("sign", sign) if name is None else ("name", name))
        at = match.end()
    return found


def _parts(words: list[tuple[str, str]]) -> list[tuple[str, list[tuple[str, str]]]]:
    """The parts between the signs + and −, each with the sign in front of it."""
    parts: list[tuple[str, list[tuple[str, str]]]] = [("+", [])]
    if words[0] in (("sign", "+"), ("sign", "-")):
        parts, words = [(words[0][1], [])], words[1:]
    for word in words:
        if word in (("sign", "+"), ("sign", "-")):
            parts.append((word[1], []))
        else:
            parts[-1][1].append(word)
    return parts


def _apply(terms: list[Term], sign: str, part: list[tuple[str, str]]) -> None:
    """Add or remove the terms of one part."""
    names, joints = [word for kind, word in part[::2] if kind == "name"], part[1::2]
    if len(names) != len(part[::2]) or len(names) != len(joints) + 1 or any(kind != "sign" for kind, _ in joints):
        raise InvalidArgument(f"A term is a name, or names with : or * between them. {_HELP}", code="formula")
    signs = {sign for _, sign in joints}
    if names in (["0"], ["1"]):
        keep = (names == ["1"]) == (sign == "+")
        terms[:] = [*([()] if keep else []), *(term for term in terms if term)]
        return
    if signs - {":", "*"} or len(signs) > 1 or len(set(names)) < len(names):
        raise InvalidArgument(f"A product has different columns and one of : and *. {_HELP}", code="formula")
    if any(name.isdigit() for name in names):
        raise InvalidArgument(f"The only numbers in a formula are 0 and 1. {_HELP}", code="formula")
    listed = [tuple(names)] if signs != {"*"} else _all_products(names)
    for term in listed:
        if sign == "+" and not any(set(term) == set(known) for known in terms):
            terms.append(term)
        elif sign == "-":
            terms[:] = [known for known in terms if set(known) != set(term)]


def _all_products(names: list[str]) -> list[Term]:
    listed: list[Term] = [()]
    for name in names:
        listed += [(*term, name) for term in listed]
    return listed[1:]
