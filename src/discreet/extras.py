"""Optional packages, imported when needed; if one is missing, the error says what to install.

For matplotlib, also how a figure is created and saved.
"""

from __future__ import annotations

import importlib
import io
from functools import partial
from types import ModuleType
from typing import Any

from discreet.errors import InvalidArgument, MissingExtra


def need(module: str, extra: str | None, caller: str) -> ModuleType:
    """Import `module` for `caller`, or raise `MissingExtra` with the pip line that brings it, alone without an `extra`.

    An error inside an installed package is not reported as a missing package.

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
        line = f"pip install {package}" if extra is None else f'pip install "discreet[{extra}]"'
        raise MissingExtra(f"{caller} needs {package}. Install it with: {line}") from None


def blank_figure(caller: str, *, size: tuple[float, float]) -> Any:
    """An empty figure with this size in inches. pyplot does not list it as open, and a notebook shows it."""
    drawn = need("matplotlib.figure", "plot", caller).Figure(figsize=size, layout="constrained")
    drawn._repr_png_ = partial(_png, drawn)  # notebooks display figures only after pyplot has opened one
    return drawn


def _png(drawn: Any) -> bytes:
    written = io.BytesIO()
    drawn.savefig(written, format="png")
    return written.getvalue()


def save_figure(drawn: Any, path: Any) -> Any:
    """The figure, saved at `path` if one is given."""
    if path is not None:
        try:
            drawn.savefig(path, dpi=150)
        except (OSError, ValueError):
            raise InvalidArgument(
                f"{path} cannot be a picture. Name a .png, .svg or .pdf file in a folder that exists.",
                code="picture-not-written",
            ) from None
    return drawn
