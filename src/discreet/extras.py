"""Optional packages, imported when they are needed: a missing one is one line with the exact remedy."""

from __future__ import annotations

import importlib
from types import ModuleType

from discreet.errors import MissingExtra


def need(module: str, extra: str, caller: str) -> ModuleType:
    """Import `module` for `caller`, or raise `MissingExtra` with the pip line that brings it.

    An error inside a package that is installed is not dressed up as a missing one.

    >>> need("no_such_package.part", "plot", "dp.draw")
    Traceback (most recent call last):
    discreet.errors.MissingExtra: dp.draw needs no_such_package. Install it with: pip install "discreet[plot]"
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in (package, module):
            raise
        line = f'pip install "discreet[{extra}]"'
        raise MissingExtra(f"{caller} needs {package}. Install it with: {line}") from None
