"""A published version of the data: a copy of its files under the name that the owner gave, which never changes.

The name alone decides which answers are the same. Nothing about the files, such as their size or the time of a change,
is shown to anyone or decides what is free.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from discreet.datasets.policy import Policy
from discreet.datasets.texts.copies import stale_copies
from discreet.errors import InvalidArgument
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.settings import Settings
from discreet.ledger.stores.store import URLS

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ASKED = "UNION SELECT version FROM questions"
"""Earlier versions of discreet remembered the names of those that were asked about."""


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


def publish(policy: Policy, settings: Settings, store: GatewayStore) -> None:
    """Publish the version that the settings name, and remember the names of all that are there."""
    published(policy, settings.version, settings.copies, published_before(settings))
    copies = Path(settings.copies)
    there = [one.name for one in copies.iterdir() if _NAME.fullmatch(one.name)] if copies.is_dir() else []
    with store.write() as execute:
        for name in there:
            execute("INSERT INTO seen (what, name) VALUES ('version', ?) ON CONFLICT DO NOTHING", name)


def published_before(settings: Settings) -> set[str]:
    """The names of versions that were published, also of those whose copies are gone. Gateways on several machines that
    share a database in PostgreSQL have copies of their own, so nothing is known of them.
    """
    if settings.store.startswith(URLS) or not Path(settings.store).exists():
        return set()
    with GatewayStore(settings.store) as store, store.read() as execute:
        return {name for (name,) in execute("SELECT name FROM seen WHERE what = 'version' " + _ASKED)}


def replaced_sources(policy: Policy, settings: Settings) -> list[str]:
    """What the owner should know about the files that the served version was copied from, by their sizes and times, and
    about those that they are copies of in UTF-8.
    """
    found, folder = stale_copies(policy), Path(settings.copies) / settings.version
    for name, path in _sources(policy).items():
        copy, now = _facts(folder / name / path.name), _facts(path)
        if copy and not now:
            found.append(f"{path.name} is gone. Version {settings.version}, which is served, is a copy of it")
        elif copy and (copy.keys() != now.keys() or any(_is_other(now[one], copy[one]) for one in now)):
            found.append(
                f"{path.name} is not the file that version {settings.version} was copied from. To serve it, change "
                "version in [gateway]"
            )
    return found


def _facts(path: Path) -> dict[Path, os.stat_result]:
    """The files at a path, and what is known about them. Nothing if they cannot be looked at."""
    try:
        files = [one for one in (path, *path.rglob("*")) if one.is_file()]
        return {one.relative_to(path): one.stat() for one in files}
    except OSError:
        return {}


def _is_other(now: os.stat_result, copy: os.stat_result) -> bool:
    """Whether a source was changed. Copies of earlier versions of discreet have the time at which they were made."""
    return now.st_size != copy.st_size or int(now.st_mtime) > int(copy.st_mtime)


def _sources(policy: Policy) -> dict[str, Path]:
    """The files that are copied, by their tables."""
    return {
        name: Path(os.path.expanduser(table.source)).resolve()
        for name, table in policy.tables.items()
        if isinstance(table.source, str | Path) and policy.engine.kind == "duckdb"
    }


def published(policy: Policy, version: str, copies: str, before: Collection[str]) -> Policy:
    """The policy with the sources of a published version. A version that is new is copied first, completely or not at
    all. One that was published `before` is not copied again, because its name stands for the data that it had. Tables
    of PostgreSQL and Spark are not copied: there the owner promises that they stay as they are.
    """
    if not _NAME.fullmatch(version):
        raise InvalidArgument(
            "version of [gateway] must be a short name of letters, digits, dots and dashes, such as 2026-11.",
            code="gateway-version",
        )
    files = _sources(policy)
    if not files:
        return policy
    folder = Path(copies) / version
    if not folder.is_dir():
        if version in before:
            raise InvalidArgument(
                f"Version {version} was published before, and its copy {folder} is gone. Its name cannot stand for "
                "other data: put the copy back, or choose a new name for version in [gateway].",
                code="gateway-version",
            )
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
                facts = path.stat()
                shutil.copyfile(path, place)
                os.utime(place, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # by it, a source that changes is noticed
        for one in making.rglob("*"):
            one.chmod(0o700 if one.is_dir() else 0o400)
        making.rename(folder)
    except OSError as error:
        shutil.rmtree(making, ignore_errors=True)
        raise InvalidArgument(
            f"The data cannot be copied to {folder}: {error.strerror}. Make room there, or make the sources readable.",
            code="gateway-version",
        ) from None
