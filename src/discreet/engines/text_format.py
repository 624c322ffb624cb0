"""How a text file is to be read, as its owner declares it: no line of the file decides it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from discreet.errors import InvalidArgument

BLANKS = " "
"""The separator that stands for any number of spaces and tabs."""
_PARTS = {"yyyy": "%Y", "mon": "%b", "mm": "%m", "dd": "%d", "hh": "%H", "mi": "%M", "ss": "%S"}
_SHAPES = {"yyyy": r"\d{4}", "mon": "[A-Za-z]{3}"} | dict.fromkeys(("mm", "dd", "hh", "mi", "ss"), r"\d{1,2}")
_ANY = re.compile("|".join(_PARTS))
_DAY = ({"yyyy", "mm", "dd"}, {"yyyy", "mon", "dd"})


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """The format of a CSV, TSV or TXT file.

    Without a `header`, the first line is a row, and `names` are those of the columns: as many as are read of each line.
    Without a `separator`, it is the one that the line of names has. `decimal` stands before the digits of a fraction,
    and `thousands`, if there is one, between groups of three digits. `dates` are the patterns of columns of dates.
    """

    header: bool = True
    separator: str | None = None
    names: tuple[str, ...] = ()
    decimal: str = "."
    thousands: str | None = None
    dates: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        if not isinstance(self.header, bool):
            raise InvalidArgument("header of a format must be true or false.", code="wrong-type")
        separator = self.separator
        if separator is not None and not (isinstance(separator, str) and re.fullmatch(r"[^\w\"'.+\r\n-]", separator)):
            raise InvalidArgument(
                'separator of a format must be one character, such as ";", "\\t" or "|". Write " " for any number of '
                "spaces and tabs.",
                code="format-separator",
            )
        if self.decimal not in (".", ","):
            raise InvalidArgument('decimal of a format must be "." or ",".', code="not-an-option")
        if self.thousands not in (None, ".", ",", "'", " ") or self.thousands == self.decimal:
            raise InvalidArgument(
                'thousands of a format must be ".", ",", "\'" or " ", and another one than decimal.',
                code="not-an-option",
            )
        if not self.header and separator is None:
            raise InvalidArgument(
                'A file without a line of names needs its separator. Add separator = "," to its format.',
                code="format-separator",
            )
        self._check_names()

    def _check_names(self) -> None:
        names = self.names
        listed = isinstance(names, list | tuple) and all(isinstance(one, str) and one.strip() for one in names)
        if not listed or len({one.strip().lower() for one in names}) < len(names) or bool(names) is self.header:
            raise InvalidArgument(
                "names of a format must list the columns of a file that has header = false, all of them different: "
                'names = ["patient_id", "weight"]. A file with a header has names of its own.',
                code="format-names",
            )
        object.__setattr__(self, "names", tuple(names))

    def words(self) -> dict[str, Any]:
        """What differs from a usual file, as a policy says it."""
        usual = {"header": True, "separator": None, "names": (), "decimal": ".", "thousands": None}
        return {key: getattr(self, key) for key, value in usual.items() if getattr(self, key) != value}


def check_date_format(text: Any, column: str) -> None:
    """Refuse what does not say how dates are written."""
    plain = text.lower() if isinstance(text, str) else ""
    found, rest = _ANY.findall(plain), _ANY.sub("", plain)
    if len(set(found)) < len(found) or set(found) - {"hh", "mi", "ss"} not in _DAY or re.search(r"[\w%]", rest):
        raise InvalidArgument(
            f"format of {column} must say how its dates are written, with yyyy, mm or mon, and dd, and perhaps hh, mi "
            'and ss: format = "dd.mm.yyyy", or "mm/dd/yyyy hh:mi".',
            code="format-date",
        )


def parsing_pattern(text: str) -> str:
    """A format of dates such as dd.mm.yyyy, as `strptime` has it."""
    return _ANY.sub(lambda part: _PARTS[part[0]], text.lower())


def shape_of(text: str) -> str:
    """A regular expression for what is written in such a format."""
    return re.sub(
        r"(\w+)|(\W)",
        lambda part: _ANY.sub(lambda one: _SHAPES[one[0]], part[0]) if part[1] else re.escape(part[0]),
        text.lower(),
    )


def has_time(text: str) -> bool:
    """Whether a format of dates has the time of the day."""
    return "hh" in text.lower()
