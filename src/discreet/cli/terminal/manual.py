"""Help that reads like a manual, made from a command's own docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def manual(command: Callable[..., Any]) -> str:
    """The docstring for a terminal of any width: prose is joined into lines that wrap, examples keep their lines.

    A paragraph with an indented line is one of examples.

    >>> def ask():
    ...     '''Ask a question,
    ...     and pay for it.
    ...
    ...     Examples:
    ...       $ ask "SELECT 1"
    ...     '''
    >>> print(manual(ask).replace("\\b", ""))
    Ask a question, and pay for it.
    <BLANKLINE>
    Examples:
      $ ask "SELECT 1"
    """
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    # the control character makes typer keep the lines
    return "\n\n".join(f"\b{text}" if "\n  " in text else " ".join(text.split("\n")) for text in paragraphs)
