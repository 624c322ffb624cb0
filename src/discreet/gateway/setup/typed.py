"""Values that an owner types in a form: written as in the column's file, or as in a policy."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from discreet.datasets.sources import Source
from discreet.engines.text_format import has_time, parsing_pattern
from discreet.errors import InvalidArgument

_WORDS = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True)
class Writing:
    """How a column is written in its file. Other sources have points before fractions, and dates such as 2024-01-31."""

    decimal: str = "."
    thousands: str | None = None
    date: str | None = None

    def plain_number(self, text: str, kind: str) -> str:
        """A number as Python writes it. What is not written in this way is returned as it is."""
        group = re.escape(self.thousands or {",": ".", ".": ","}[self.decimal])
        match = re.fullmatch(rf"([+-]?)(\d{{1,3}}(?:{group}\d{{3}})+|\d+)(?:{re.escape(self.decimal)}(\d+))?", text)
        if match is None:
            return text
        sign, whole, fraction = match.groups()
        if kind == "number" and self._has_two_readings(whole, fraction):
            large, small = (re.sub(r"[^0-9+-]", point, text) for point in ("", "."))
            raise InvalidArgument(
                f"{text} can be read in two ways. Write {large}, or {small}0 for the smaller number.",
                code="column-choices-type",
            )
        return f"{sign}{re.sub(group, '', whole)}" + (f".{fraction}" if fraction else "")

    def _has_two_readings(self, whole: str, fraction: str | None) -> bool:
        """Whether 1.234 may also be one and a fraction, as in a policy, or 1,234, in a file without groups. And whether
        20,000 may be twenty thousand where commas precede fractions: in most forms it is.
        """
        if fraction is not None:
            could_be_group = whole.isdecimal() and len(whole) <= 3 and whole[0] != "0" and len(fraction) == 3
            return could_be_group and (self.decimal == "," or fraction == "000")
        return len(re.findall(r"\D", whole)) == 1 and ("." in whole or self.thousands is None)

    def plain_date(self, text: str) -> str:
        """A date as a policy has it. What is not written in this way is returned as it is."""
        if self.date is None:
            return text
        try:
            found = datetime.strptime(text, parsing_pattern(self.date))
        except ValueError:
            return text
        return found.isoformat(" ") if has_time(self.date) else found.date().isoformat()


def writing_of(source: Source, table: str, column: str) -> Writing:
    """How a column of a source is written."""
    text = source.texts.get(table)
    if text is None:
        return Writing()
    return Writing(text.declared.decimal, text.declared.thousands, text.dates.get(column))


def typed_range(low: str, high: str, kind: str, name: str, writing: Writing) -> list[Any]:
    """Both ends of a range, from the texts of a form."""
    if not low or not high:
        raise InvalidArgument(f"Write both ends of the range of {name}.", code="wrong-shape")
    return [typed(low, kind, name, writing), typed(high, kind, name, writing)]


def typed(text: str, kind: str, name: str, writing: Writing) -> Any:
    """A text of a form as a value of a column's type."""
    try:
        if kind == "integer":
            return int(writing.plain_number(text, kind))
        if kind == "number":
            found = float(writing.plain_number(text, kind))
            if not math.isfinite(found):
                raise ValueError
            return int(found) if found.is_integer() and abs(found) < 2**53 else found
        if kind == "boolean":
            return _WORDS[text.lower()]
    except InvalidArgument:
        raise
    except (ValueError, KeyError):
        raise InvalidArgument(f"{name} is {kind}, and one of its values is not.", code="column-choices-type") from None
    return writing.plain_date(text) if kind in ("date", "timestamp") else text
