"""Names of a package that are imported when they are first used, so that `import discreet` stays fast."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping


def lazily(
    package: str, names: Mapping[str, str], modules: Iterable[str] = (), moved: Mapping[str, str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package: `names` says in which module of it each name is defined.

    `modules` are its public submodules. `moved` says which submodule holds a name that the package once had.
    """
    whole = frozenset(modules)
    gone = moved or {}

    def find(name: str) -> object:
        if name in whole:
            return importlib.import_module(f"{package}.{name}")
        if name in names:
            found: object = getattr(importlib.import_module(f"{package}.{names[name]}"), name)
            setattr(sys.modules[package], name, found)
            return found
        if name in gone:
            raise AttributeError(f"{package}.{name} is now {package}.{gone[name]}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names, *whole})

    return find, listed
