"""What the shell may complete: names that a file already on this machine says. None is a secret, and no data is read.

Where nothing fits, the list is empty, and the shell completes paths as it always does.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import typer


def policies(incomplete: str) -> list[str]:
    """Files that can be a policy, or a task."""
    return _files(incomplete, ".toml")


def ledgers(incomplete: str) -> list[str]:
    """Ledgers, and policies that name one."""
    return [*_files(incomplete, ".ledger"), *_files(incomplete, ".toml")]


def tables(ctx: typer.Context, incomplete: str) -> list[str]:
    """The tables that the policy before it names."""
    return _beginning(_read(ctx.params.get("policy"), "tables"), incomplete)


def answers(ctx: typer.Context, incomplete: str) -> list[str]:
    """The choices of the poll before it."""
    return _beginning(_read(ctx.params.get("task"), "protocol", "choices"), incomplete)


def mechanisms(incomplete: str) -> list[str]:
    """The mechanisms that can be audited."""
    from discreet.audit.mechanisms import SUBJECTS

    return _beginning(SUBJECTS, incomplete)


def _files(begun: str, ending: str) -> list[str]:
    import glob

    return sorted(glob.glob(f"{glob.escape(begun)}*{ending}"))


def _beginning(names: Any, begun: str) -> list[str]:
    return [name for name in names if isinstance(name, str) and name.startswith(begun)]


def _read(path: Any, *keys: Any) -> Any:
    """What a TOML file has under these keys; nothing where it cannot be read, as this is no place to complain."""
    try:
        found: Any = tomllib.loads(Path(str(path)).read_text(encoding="utf-8"))
        for key in keys:
            found = found[key]
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    return found if isinstance(found, dict | list) else ()
