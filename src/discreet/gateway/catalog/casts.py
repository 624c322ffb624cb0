"""Values as values of another type, and as the texts that PostgreSQL writes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.gateway.catalog.scopes import Value, call, cast, number, refuse, text
from discreet.gateway.catalog.types import REFERENCES, TEXTS, UNKNOWN, element_of, is_array, is_record
from discreet.gateway.wire.format.values import Refusal

if TYPE_CHECKING:
    from discreet.gateway.catalog.translate import Translator

VECTORS = ("int2vector", "oidvector")
"""Arrays that count from 0."""


def coerce(made: Translator, value: Value, kind: str) -> Value:
    """A value without a type of its own, as one of a type. Others stay as they are."""
    if value.type != UNKNOWN or kind == UNKNOWN:
        return value
    if isinstance(value.node, exp.Placeholder):
        made.hint(int(value.node.name), kind)
        return Value(value.node, kind)
    if isinstance(value.node, exp.Literal) and is_array(kind):
        return _array_of_text(made, value.node.name, kind)
    if kind in REFERENCES and isinstance(value.node, exp.Literal):
        return Value(call(f"find_{kind}", value.node), kind)
    return Value(cast(value.node, kind), kind)


def _array_of_text(made: Translator, written: str, kind: str) -> Value:
    """An array that is written as a text, such as {r,p}."""
    vector = kind in VECTORS
    parts = written.split() if vector else split_array(written)
    inside = [Value(exp.Null()) if part is None else Value(text(part)) for part in parts]
    listed = [coerce(made, one, element_of(kind)).node for one in inside]
    return Value(cast(exp.Array(expressions=listed), kind), kind)


def cast_value(made: Translator, value: Value, kind: str) -> Value:
    """A value as one of a type."""
    if value.type == UNKNOWN:
        return coerce(made, value, kind)
    if is_record(value.type) or is_record(kind):
        raise refuse("a cast of a record")
    if kind in REFERENCES and value.type in TEXTS:
        return Value(call(f"find_{kind}", cast(value.node, "text")), kind)
    if kind in TEXTS:
        shown = as_text(value)
        return Value(call("left", shown, number(1)) if kind == "char" else shown, kind)
    if is_array(kind) and is_array(value.type):
        return _cast_array(value, kind)
    if is_array(kind) and value.type in TEXTS:
        raise refuse("a cast of a text that is not a literal to an array")
    if is_array(value.type) and not is_array(kind):
        raise Refusal(f"cannot cast type {value.type} to {kind}", state="42846")
    return Value(cast(value.node, kind), kind)


def as_text(value: Value) -> exp.Expr:
    """A value as PostgreSQL writes it."""
    if value.type in REFERENCES:
        return call(f"said_{value.type}", value.node)
    if value.type in VECTORS:
        return call("array_to_string", cast(value.node, "text[]"), text(" "))
    if is_array(value.type):
        return call("said_array", cast(_cast_array(value, "text[]").node, "text[]"))
    if value.type == "timestamptz":
        return exp.DPipe(this=cast(value.node, "text"), expression=text("+00"))
    return cast(value.node, "text")


def _cast_array(value: Value, kind: str) -> Value:
    if element_of(value.type) in REFERENCES and element_of(kind) in TEXTS:
        one = exp.Lambda(
            this=call(f"said_{element_of(value.type)}", exp.Identifier(this="one")),
            expressions=[exp.Identifier(this="one")],
        )
        return Value(call("list_transform", value.node, one), kind)
    return Value(cast(value.node, kind), kind)


def split_array(written: str) -> list[str | None]:
    """The elements of an array that is written as a text, such as {a,"b c",NULL}."""
    inside = written.strip()
    if not (inside.startswith("{") and inside.endswith("}")) or "{" in inside[1:-1].replace('"', ""):
        raise Refusal(f'malformed array literal: "{written}"', state="22P02")
    found: list[str | None] = []
    for piece in re.finditer(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^,"]*))\s*(?:,|$)', inside[1:-1]):
        if piece[1] is None and not piece[2] and piece.end() == len(inside) - 2 and piece.start() == piece.end():
            continue
        plain = (piece[2] or "").strip()
        found.append(
            re.sub(r"\\(.)", r"\1", piece[1]) if piece[1] is not None else None if plain.upper() == "NULL" else plain
        )
    return found
