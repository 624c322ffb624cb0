"""The files of a publication: written to a folder next to their place, and then moved there all at once."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from discreet.errors import InvalidArgument
from discreet.publication.proof import PROOF, content_digest
from discreet.sql.running.written import csv_text


def table_files(name: str, table: Any) -> dict[str, bytes]:
    """A table as CSV and as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet

    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink, compression="zstd")
    return {f"{name}.csv": csv_text(table).encode(), f"{name}.parquet": sink.getvalue().to_pybytes()}


def read_parquet(source: Any) -> tuple[str, Any, list[bytes]]:
    """What a Parquet file says: a digest of its values, its columns with all that is noted on them, and which notes
    the file has.
    """
    import pyarrow.parquet

    file = pyarrow.parquet.ParquetFile(source)
    notes = sorted(file.metadata.metadata or {})
    columns = [(one.name, str(one.type), one.nullable, one.metadata) for one in file.schema_arrow]
    return content_digest(file.read()), (columns, file.schema_arrow.metadata), notes


def files_in(where: Path) -> tuple[set[str], dict[str, str]]:
    """The files in a folder, and whatever else is there, with what it is. Links are not followed."""
    files, other, folders = set[str](), dict[str, str](), set[str]()
    for one in where.rglob("*"):
        name = one.relative_to(where).as_posix()
        if one.is_symlink():
            other[name] = "it is a link"
        elif one.is_dir():
            folders.add(name)
        elif one.is_file():
            files.add(name)
        else:
            other[name] = "it is not a file"
    used = {str(parent) for name in (*files, *other) for parent in PurePosixPath(name).parents}
    return files, other | dict.fromkeys(folders - used, "it is an empty folder")


def digest(data: bytes) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(data).hexdigest()


def check_out(out: Path, plan_digest: str) -> None:
    """Refuse, before anything is charged, a place that holds something else or cannot be written to."""
    where = out.absolute()
    if not where.parent.is_dir():
        raise InvalidArgument(
            f"The folder {where.parent} does not exist. Create it, or name another place.", code="no-such-folder"
        )
    if not where.exists():
        if not os.access(where.parent, os.W_OK):
            raise _not_writable(out, "you may not write there")
        return
    if not where.is_dir() or (any(where.iterdir()) and _digest_in(where) != plan_digest):
        raise exists_error(out)


def exists_error(out: Path) -> InvalidArgument:
    """The error for a place that holds something else."""
    return InvalidArgument(
        f"{out} exists, and is not a publication of this plan. It is left as it is. Name a folder that does not exist.",
        code="publish-exists",
    )


def _digest_in(out: Path) -> str | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads((out / PROOF).read_text(encoding="utf-8"))["plan_digest"])
    return None


def write_all(out: Path, files: Mapping[str, bytes], day: str | None = None) -> bool:
    """Write all files at their place, or none. False if the very same files are there already.

    Their time is the beginning of `day`: the time at which they were written would tell how many tries there were.
    """
    where = out.absolute()
    if where.exists() and any(where.iterdir()):
        if _same(where, files):
            return False
        raise exists_error(out)
    _remove_leftovers(where)
    part = where.with_name(f".{where.name}.{os.getpid()}.part")
    try:
        part.mkdir()
        for name, data in files.items():
            file = part / name
            file.parent.mkdir(exist_ok=True)
            with file.open("xb") as opened:
                opened.write(data)
                opened.flush()
                os.fsync(opened.fileno())
        _date_all(part, day)
        try:
            os.rename(part, where)  # refuses to replace a folder that has anything in it
        except OSError:
            if where.exists():
                raise exists_error(out) from None
            raise
        _settle(where.parent)
    except OSError as error:
        raise _not_writable(out, error.strerror or "no room") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return True


def _date_all(folder: Path, day: str | None) -> None:
    """Set the time of a folder and of all that is in it."""
    moment = datetime.datetime.fromisoformat(f"{day or '1980-01-01'}T00:00:00+00:00").timestamp()
    for one in (*folder.rglob("*"), folder):
        os.utime(one, (moment, moment))


def _settle(folder: Path) -> None:
    """Make the move durable."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _same(where: Path, files: Mapping[str, bytes]) -> bool:
    there = {str(one.relative_to(where)) for one in where.rglob("*") if one.is_file()}
    return there == set(files) and all((where / name).read_bytes() == data for name, data in files.items())


def _remove_leftovers(where: Path) -> None:
    """Remove what a run left behind that was killed. It holds released numbers only."""
    for left in where.parent.glob(f".{where.name}.*.part"):
        number = left.name.removeprefix(f".{where.name}.").removesuffix(".part")
        if number.isdigit() and not _runs(int(number)):
            shutil.rmtree(left, ignore_errors=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return process != os.getpid()


def _not_writable(out: Path, why: str) -> InvalidArgument:
    return InvalidArgument(
        f"{out} cannot be written: {why}. What was charged is stored: run it again, and nothing is paid twice.",
        code="file-not-writable",
    )
