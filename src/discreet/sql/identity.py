"""What makes two questions the same: the plan they are read as, with every literal, type and declaration in it.

How a question is written (its layout, comments, aliases of tables) is no part of that; nothing else is left out.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from sqlglot.errors import SqlglotError

from discreet.ledger.exact import exact_text
from discreet.sql.expressions import Field
from discreet.sql.pricing.relation import Relation
from discreet.sql.question import Aggregate, Key, Question
from discreet.sql.reading.parse import Text
from discreet.sql.schema import Schema, Table

_WRITING = ("text", "same", "source", "bounded", "meaning")
"""The fields of a question that only say how it was written, or follow from the others."""
_DECLARED = ("name", "public", "person", "through", "rows_per_person", "groups_per_person", "rows_per_group")


def identity_of(question: Question, schema: Schema) -> str:
    """The meaning of a question under the declarations it rests on, as one text: the same for the same plan only."""
    parts = {one.name: getattr(question, one.name) for one in fields(question) if one.name not in _WRITING}
    return _written(parts, schema)


def identity_of_rows(relation: Relation, schema: Schema) -> str:
    """The same for the rows of a relation, without a question of them."""
    return _written({"relation": relation}, schema)


def _written(parts: dict[str, Any], schema: Schema) -> str:
    known: dict[Field, int] = {}
    tables: dict[str, Table] = {}

    def instead(part: Any) -> Any:
        """Fields and tables by name: what is declared of each is written once, and no data are."""
        if isinstance(part, Field):
            return "field", known.setdefault(part, len(known))
        if isinstance(part, Table):
            tables[part.name] = part
            return "table", part.name
        if isinstance(part, Key | Aggregate):
            return type(part).__name__, [getattr(part, one.name) for one in fields(part) if one.name != "name"]
        return part

    rows = exact_text(parts, instead)
    declared = {
        name: [[getattr(table, one) for one in _DECLARED], [_column(c) for c in table.columns.values()]]
        for name, table in sorted(tables.items())
    }
    # what is read of a table is in a field's origin; its own name is an alias
    listed = [[getattr(one, part.name) for part in fields(Field) if part.name != "name"] for one in known]
    return exact_text((rows, listed, declared, schema.unit))


def _column(column: Any) -> tuple[Any, ...]:
    return tuple(getattr(column, one.name) for one in fields(column))


def line_before(question: Question) -> str | None:
    """The line that version 0.1 knew a question by; None where other questions had the same line: it folded white
    space in quoted text, too, and the ends of comments.
    """
    try:
        tokens = Text(question.text).tokens
    except SqlglotError:
        return None
    quoted = [token.text for token in tokens if token.token_type.name.endswith(("STRING", "IDENTIFIER"))]
    folded = any(token.comments for token in tokens) or any(letter.isspace() for text in quoted for letter in text)
    return None if folded else question.line
