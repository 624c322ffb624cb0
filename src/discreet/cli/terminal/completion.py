"""Shell completion: names from files that are already on this machine. None is a secret, and no data is read.

If nothing fits, the list is empty, and the shell completes paths as usual.
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
    """The tables of the policy named before."""
    return _beginning(_read_toml(ctx.params.get("policy"), "tables"), incomplete)


def answers(ctx: typer.Context, incomplete: str) -> list[str]:
    """The choices of the poll named before."""
    return _beginning(_read_toml(ctx.params.get("task"), "protocol", "choices"), incomplete)


def mechanisms(incomplete: str) -> list[str]:
    """The mechanisms that can be audited."""
    from discreet.audit.mechanisms import SUBJECTS

    return _beginning([*SUBJECTS, "model"], incomplete)


def models(ctx: typer.Context, incomplete: str) -> list[str]:
    """The models that can be audited, after the word model."""
    if ctx.params.get("mechanism") != "model":
        return []
    from discreet.audit.generated import model_names

    return _beginning(model_names(), incomplete)


def _files(begun: str, ending: str) -> list[str]:
    import glob

    return sorted(glob.glob(f"{glob.escape(begun)}*{ending}"))


def _beginning(names: Any, begun: str) -> list[str]:
    return [name for name in names if isinstance(name, str) and name.startswith(begun)]


def _read_toml(path: Any, *keys: Any) -> Any:
    """What a TOML file has under these keys. Empty if it cannot be read, because completion must not report errors."""
    try:
        found: Any = tomllib.loads(Path(str(path)).read_text(encoding="utf-8"))
        for key in keys:
            found = found[key]
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    return found if isinstance(found, dict | list) else ()
