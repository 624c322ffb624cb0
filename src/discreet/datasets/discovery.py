"""Which policy is meant if none is named: `DISCREET_POLICY`, or `discreet.toml` in this folder or one above it."""

from __future__ import annotations

import os
from pathlib import Path

from discreet.errors import InvalidArgument

VARIABLE, FILE = "DISCREET_POLICY", "discreet.toml"


def find_policy() -> Path:
    """The path of the policy. A file that is found, and not named, must belong to the user or to the administrator: in
    a folder that all may write to, another user could have put it there.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named)
    try:
        here = Path.cwd()
    except OSError:  # the folder was removed
        raise _not_found("a folder that no longer exists") from None
    for folder in (here, *here.parents):
        file = folder / FILE
        if file.is_file():
            _check_owner(file)
            return file
    raise _not_found(str(here))


def _check_owner(file: Path) -> None:
    if hasattr(os, "getuid") and file.stat().st_uid not in (os.getuid(), 0):
        raise InvalidArgument(
            f"{file} was found, but belongs to another user. If you trust it, name it: {VARIABLE}={file}.",
            code="policy-of-another-user",
        )


def _not_found(where: str) -> InvalidArgument:
    return InvalidArgument(
        f"No policy is named. {VARIABLE} is not set, and there is no {FILE} in {where} or in a folder above it. Name "
        f"one, such as clinic.toml, or create one: discreet init visits.parquet --out {FILE}.",
        code="policy-not-found",
    )
