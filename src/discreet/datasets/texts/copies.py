"""Copies in UTF-8 of text files in another encoding.

DuckDB's own decoder fails at the first byte that an encoding does not have, so that one row could stop every question.
Here one byte is one character, whatever it is, and changes nothing but its own cell.
"""

from __future__ import annotations

import codecs
import io
import os
import shlex
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.datasets.column_names import tables_by_words
from discreet.engines.duckdb.engine import text_files_in
from discreet.engines.duckdb.text_files import LONGEST_HEADER, ZIPPED, open_bytes, open_text
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.datasets.policy import Policy

ENCODINGS = (*(f"windows-{number}" for number in range(1250, 1259)), *(f"iso-8859-{n}" for n in (1, 2, 5, 7, 9, 15)))
"""Those in which every byte is one character, and the first 128 are ASCII: so a line ends where it ends in UTF-8."""
_PIECE = 1 << 20
UNKNOWN = "\ufffd"
"""What stands for a byte that an encoding does not have."""


@dataclass(frozen=True, kw_only=True)
class TextCopy:
    """A copy in UTF-8, and what it is a copy of."""

    place: Path
    original: Path
    encoding: str

    @property
    def original_from_here(self) -> str:
        """The path of the original from the folder of the copy, which is that of the policy."""
        return os.path.relpath(
            self.original.expanduser().absolute(), self.place.parent
        )  # a link may lead elsewhere later

    @property
    def command(self) -> str:
        """What copies the file again, once it has changed. By itself, iconv would end at the first byte that the
        encoding does not have, and leave out all rows after it.
        """
        original, place = (shlex.quote(str(one)) for one in (self.original, self.place))
        odd = [byte for byte in range(256) if bytes([byte]).decode(self.encoding, "replace") == UNKNOWN]
        octal = "".join(rf"\{byte:o}" for byte in odd)
        steps = ["gzip -dc"] if self.original.name.lower().endswith(ZIPPED) else []
        steps += [f"LC_ALL=C tr '{octal}' '?'"] if odd else []
        first, *others = [*steps, f"iconv -c -f {self.encoding.upper()} -t UTF-8"]
        return f"{' | '.join([f'{first} < {original}', *others])} > {place}"


def stale_copies(policy: Policy) -> list[str]:
    """What the owner should know about sources that are older than the files that they are copies of. Only the times of
    the files decide. What cannot be looked at is left out.
    """
    found = []
    for name, (original, encoding) in policy.copies.items():
        copy = TextCopy(place=Path(policy.tables[name].source), original=original, encoding=encoding)
        with suppress(OSError, ValueError):  # a name may hold a zero character
            if original.stat().st_mtime_ns > copy.place.stat().st_mtime_ns:
                found.append(
                    f"{original.name} has changed since {copy.place.name} was copied from it. To use it, copy it "
                    f"again: {copy.command}"
                )
    return found


def count_unreadable(file: Path, most: int) -> tuple[int, int, int]:
    """Of the first lines of a file: how many there are, are not UTF-8, and are UTF-8 beyond ASCII. What cannot be
    read is not counted.
    """
    seen = unreadable = readable = 0
    with suppress(EOFError, OSError, zlib.error), open_text(file) as opened:
        for line in islice(opened, most):
            seen += 1
            if not line.isascii():
                is_odd = any("\udc80" <= one <= "\udcff" for one in line)
                unreadable, readable = unreadable + is_odd, readable + (not is_odd)
    return seen, unreadable, readable


def refuse_wide(file: Path) -> None:
    """Refuse UTF-16, of which a lost byte would change all that follows."""
    with suppress(EOFError, OSError, zlib.error), open_text(file) as opened:
        if "\0" in opened.readline(LONGEST_HEADER):
            raise InvalidArgument(
                f"{file} is not text in UTF-8. If it is UTF-16, as some programs of Windows write it, convert it, and "
                f"use the copy: iconv -f UTF-16 -t UTF-8 {shlex.quote(str(file))} > utf8.csv",
                code="source-encoding",
            )


def check_encoding(encoding: str) -> str:
    """The name of an encoding that can be copied."""
    with suppress(LookupError, ValueError):
        found = codecs.lookup(encoding)
        for one in ENCODINGS:
            if codecs.lookup(one).name == found.name:
                return one
    raise InvalidArgument(
        f"The encoding must be one of {', '.join(ENCODINGS)}. Convert a file in any other with iconv.",
        code="not-an-option",
    )


def encodings_of_tables(given: Sequence[str], paths: Mapping[str, Path]) -> dict[str, str]:
    """Encodings by table, from "stays: windows-1252" for one or "windows-1252" for all others. Of files with types of
    their own, none is known.
    """
    words, texts = tables_by_words(paths), [table for table, path in paths.items() if text_files_in(path)]
    own: dict[str, str] = {}
    others: dict[str, str] = {}
    for text in given:
        name, colon, encoding = text.rpartition(":")
        table = words.get(name.strip())
        if colon and (table not in texts):
            raise InvalidArgument(
                f"Before a colon, --encoding has the table of a text file: {', '.join(texts) or 'there is none'}.",
                code="not-an-option",
            )
        chosen = own if colon else others
        for one in [table] if colon and table else texts:
            if one in chosen:
                raise InvalidArgument(
                    f"--encoding is given twice for {one}. Leave out one, or write the table before it: "
                    f'--encoding "{one}: windows-1252".',
                    code="not-an-option",
                )
            chosen[one] = check_encoding(encoding.strip())
    return others | own


def write_copy(file: Path, encoding: str, folder: Path) -> TextCopy:
    """Write a copy in UTF-8 that only its owner can read. A byte that the encoding does not have becomes U+FFFD."""
    name = file.name[: -len(ZIPPED)] if file.name.lower().endswith(ZIPPED) else file.name
    copy = folder / f"{Path(name).stem}.utf8{Path(name).suffix}"
    try:
        number = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidArgument(
            f"{copy} exists and is left as it is. Use it without --encoding, or delete it.", code="file-exists"
        ) from None
    except OSError as error:
        raise InvalidArgument(
            f"{copy} cannot be written: {error.strerror}. A copy in UTF-8 is written next to the policy.",
            code="file-not-writable",
        ) from None
    try:
        with (
            os.fdopen(number, "w", encoding="utf-8", newline="") as written,
            io.TextIOWrapper(open_bytes(file), encoding=encoding, errors="replace", newline="") as opened,
        ):
            while piece := opened.read(_PIECE):
                written.write(piece)
    except BaseException as error:
        copy.unlink(missing_ok=True)
        if isinstance(error, EOFError | OSError | zlib.error):
            raise InvalidArgument(
                f"{file} cannot be copied. Check that it is complete, and that the disk of {copy} is not full.",
                code="source-unreadable",
            ) from None
        raise
    return TextCopy(place=copy, original=file, encoding=encoding)
