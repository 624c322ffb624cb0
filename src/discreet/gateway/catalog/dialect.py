"""PostgreSQL's SQL as clients send it: sqlglot's dialect with `$1,$2` without a space, and types like `oid[]`."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.tokenizer_core import Token, TokenType

_MARK = "\x02"
_PIECES = re.compile(
    r"""[eE]'(?:[^'\\]|\\.|'')*(?:'|\Z) | '(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z) | --[^\n]*
    | /\*.*?(?:\*/|\Z) | (?P<tag>\$(?:[^\W\d]\w*)?\$).*?(?:(?P=tag)|\Z) | (?<![\w$])\$(?P<number>\d+)""",
    re.VERBOSE | re.DOTALL,
)
"""What is quoted, a comment, or a parameter, which has a number. What is never closed ends with the text."""


def _mark(piece: re.Match[str]) -> str:
    return piece[0] if piece["number"] is None else _MARK + piece["number"]


_Parser: Any = Postgres.Parser


class PostgresText(Postgres):
    """PostgreSQL's SQL as clients send it."""

    class Tokenizer(Postgres.Tokenizer):
        SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {**Postgres.Tokenizer.SINGLE_TOKENS, _MARK: TokenType.PARAMETER}

        def tokenize(self, sql: str) -> list[Token]:
            """The tokens of a text. A parameter is never the start of a dollar-quoted text. Places are kept."""
            return super().tokenize(_PIECES.sub(_mark, sql.replace(_MARK, " ")))

    class Parser(_Parser):  # type: ignore[misc]  # sqlglot gives no type to it
        def _parse_types(self, *arguments: Any, **options: Any) -> exp.Expr | None:
            kind: exp.Expr | None = super()._parse_types(*arguments, **options)
            while isinstance(kind, exp.ObjectIdentifier | exp.DataType) and self._is_array(kind):
                self._advance(2)
                kind = exp.DataType(this=exp.DType.ARRAY, expressions=[kind], nested=True)
            return kind

        def _is_array(self, kind: exp.Expr) -> bool:
            named = isinstance(kind, exp.ObjectIdentifier) or kind.this == exp.DType.ARRAY
            brackets = (TokenType.L_BRACKET, TokenType.R_BRACKET)
            following = self._tokens[self._index : self._index + 2]
            return named and tuple(token.token_type for token in following) == brackets
