"""The identity of a measurement: what is charged, stored and replayed.

A measurement is the rows, the groups and the measures of a question, with every literal, type and declaration in them.
How its noisy numbers are shown is not part of it: aliases, the order of columns and rows, HAVING, LIMIT and arithmetic
run again on stored numbers, at no cost. Measures and keys have one canonical order, so two questions that measure the
same have the same identity.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from sqlglot.errors import SqlglotError

from discreet.ledger.texts.exact import digest, exact_text, exact_texts
from discreet.sql.expressions import Expr, Field, conjuncts
from discreet.sql.pricing.relation import Relation, Where
from discreet.sql.question import Aggregate, Key, Measure, Question
from discreet.sql.reading.parse import Text
from discreet.sql.schema import Schema, Table

_MANY = 100
"""Longer tuples, such as the choices of a column, are written as their digests: a question names them many times."""
_DECLARED = ("name", "public", "person", "through", "rows_per_person", "groups_per_person", "rows_per_group")


def canonical(question: Question) -> Question:
    """The question with its keys, measures and levels in canonical order. `key_order` says how the keys were written.
    The finest levels are first.
    """
    keys = _canonical_order([key.expr for key in question.keys])
    measures = _canonical_order(question.measures)
    place = {old: new for new, old in enumerate(measures)}

    def moved(aggregate: Aggregate) -> Aggregate:
        return replace(aggregate, parts=tuple(place[part] for part in aggregate.parts))

    levels = (tuple(sorted(keys.index(key) for key in level)) for level in question.levels)
    return replace(
        question,
        keys=tuple(question.keys[old] for old in keys),
        key_fields=tuple(question.key_fields[old] for old in keys),
        key_order=tuple(keys.index(number) for number in range(len(keys))),
        measures=tuple(question.measures[old] for old in measures),
        aggregates=tuple(map(moved, question.aggregates)),
        reordered=keys != sorted(keys) or measures != sorted(measures),
        levels=tuple(sorted(levels, key=lambda level: (-len(level), level))),
    )


def _canonical_order(parts: Iterable[Expr | Measure]) -> list[int]:
    """The indices of these parts in canonical order: by content, and as written where the content is the same."""
    texts = list(exact_texts(parts, _by_content))
    return sorted(range(len(texts)), key=texts.__getitem__)


def _by_content(part: Any) -> Any:
    """A field, identified by the column it copies. Its id and alias can differ between two ways to write one
    question.
    """
    if isinstance(part, Field):
        return "field", part.origin, part.type, part.between, part.choices
    return _shorter(part)


class _Same:
    """A value that equals only itself."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value


def _shorter(part: Any) -> Any:
    """A long tuple as its digest."""
    return ("many", _digest_of(_Same(part))) if isinstance(part, tuple) and len(part) > _MANY else part


@lru_cache(maxsize=1000)
def _digest_of(same: _Same) -> str:
    return digest(exact_text(same.value))


def identity_of(question: Question, schema: Schema) -> str:
    """What a question measures, under the declarations it depends on, as one text."""
    return _Written(schema).text(
        {"relation": question.relation, "keys": _keys(question), "measures": question.measures}
    )


def identity_of_rows(relation: Relation, schema: Schema, details: Any = None) -> str:
    """The same for the rows of a relation only, with details about its fields."""
    known = {"relation": relation}
    return _Written(schema).text(known if details is None else {**known, "details": details})


def identities_apart(question: Question, schema: Schema) -> tuple[str, tuple[str, ...]]:
    """The rows and groups of a question, and each of its measures, as texts that can be compared one by one."""
    return _apart(_Same(question), _Same(schema))


@lru_cache(maxsize=100)
def _apart(asked: _Same, declared: _Same) -> tuple[str, tuple[str, ...]]:
    question, written = asked.value, _Written(declared.value)
    groups = written.text({"relation": question.relation, "keys": _keys(question)})
    return groups, tuple(written.text({"measure": measure}) for measure in question.measures)


def _keys(question: Question) -> list[Any]:
    known: list[Any] = [(key.expr, key.domain) for key in question.keys]
    known += [] if question.shown is None else [question.shown]
    return [*known, ("levels", question.levels)] if question.levels else known


class _Written:
    """Writes parts of questions. A field is written as the index of its first appearance, and stands for its
    declaration.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.known: dict[Field, int] = {}
        self.tables: dict[str, Table] = {}

    def text(self, parts: dict[str, Any]) -> str:
        rows = exact_text(parts, self._instead)
        declared = {
            name: [[getattr(table, one) for one in _DECLARED], [_facts(c) for c in table.columns.values()]]
            for name, table in sorted(self.tables.items())
        }
        # a field's origin says what is read from a table; its own name is an alias
        listed = [[getattr(one, part.name) for part in fields(Field) if part.name != "name"] for one in self.known]
        return exact_text((rows, listed, declared, self.schema.unit), _shorter)

    def _instead(self, part: Any) -> Any:
        """Fields and tables by name. The declarations of each are written once. No data are written."""
        if isinstance(part, Field):
            return "field", self.known.setdefault(part, len(self.known))
        if isinstance(part, Table):
            self.tables[part.name] = part
            return "table", part.name
        if isinstance(part, Key | Aggregate):
            return type(part).__name__, [getattr(part, one.name) for one in fields(part) if one.name != "name"]
        if isinstance(part, Where):
            conditions = list(conjuncts(part.condition))
            return "Filter", part.source, [conditions[place] for place in _canonical_order(conditions)]
        return _shorter(part)


def _facts(column: Any) -> tuple[Any, ...]:
    return tuple(getattr(column, one.name) for one in fields(column))


def line_before(text: str) -> str | None:
    """The line by which version 0.1 identified a text. None if other texts had the same line, because that version also
    folded white space in quoted text and at the ends of comments.
    """
    try:
        tokens = Text(text).tokens
    except SqlglotError:
        return None
    quoted = [token.text for token in tokens if token.token_type.name.endswith(("STRING", "IDENTIFIER"))]
    folded = any(token.comments for token in tokens) or any(letter.isspace() for text in quoted for letter in text)
    return None if folded else " ".join(text.split())
