"""A published version of the data: a copy of its files under the name that the owner gave, which never changes.

The name alone decides which answers are the same. Nothing about the files, such as their size or the time of a change,
is shown to anyone or decides what is free.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

from discreet.datasets.policy import Policy
from discreet.errors import InvalidArgument

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def named(policy: Policy, version: str) -> Policy:
    """The policy with this version for all tables, next to one that the policy declares, and with the names of files
    instead of their places: wherever a gateway keeps them, and however many there are, the answers are the same.
    """
    tables = {}
    for name, table in policy.tables.items():
        source = table.source
        if isinstance(source, str | Path) and policy.engine.kind == "duckdb":
            source = Path(source).name
        own = f"{table.version}, published as {version}" if table.version else version
        tables[name] = replace(table, version=own, source=source)
    return replace(policy, tables=tables)


def published(policy: Policy, version: str, copies: str) -> Policy:
    """The policy with the sources of a published version. A version that is new is copied first, completely or not at
    all. Tables of PostgreSQL and Spark are not copied: there the owner promises that they stay as they are.
    """
    if not _NAME.fullmatch(version):
        raise InvalidArgument(
            "version of [gateway] must be a short name of letters, digits, dots and dashes, such as 2026-11.",
            code="gateway-version",
        )
    files = {
        name: Path(os.path.expanduser(table.source)).resolve()
        for name, table in policy.tables.items()
        if isinstance(table.source, str | Path) and policy.engine.kind == "duckdb"
    }
    if not files:
        return policy
    folder = Path(copies) / version
    if not folder.is_dir():
        _copy(files, folder)
    tables = dict(policy.tables)
    for name, path in files.items():
        place = folder / name / path.name
        if not place.exists():
            raise InvalidArgument(
                f"Version {version} was published without the table {name}. Publish another version.",
                code="gateway-version",
            )
        tables[name] = replace(tables[name], source=str(place))
    return replace(policy, tables=tables)


def _copy(files: dict[str, Path], folder: Path) -> None:
    """Copy all files to a folder that only their owner can read. It has its name only once it is complete."""
    making = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(making, ignore_errors=True)
    try:
        making.mkdir(parents=True, mode=0o700)
        folder.parent.chmod(0o700)
        for name, path in files.items():
            place = making / name / path.name
            place.parent.mkdir(mode=0o700)
            if path.is_dir():
                shutil.copytree(path, place)
            else:
                shutil.copyfile(path, place)
        for one in making.rglob("*"):
            one.chmod(0o700 if one.is_dir() else 0o400)
        making.rename(folder)
    except OSError as error:
        shutil.rmtree(making, ignore_errors=True)
        raise InvalidArgument(
            f"The data cannot be copied to {folder}: {error.strerror}. Make room there, or make the sources readable.",
            code="gateway-version",
        ) from None
