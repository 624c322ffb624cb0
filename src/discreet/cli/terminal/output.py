"""What commands print and draw: text that cannot control a terminal, and files for pictures."""

from __future__ import annotations

from pathlib import Path

from discreet.errors import InvalidArgument
from discreet.extras import need


def clean(text: str) -> str:
    """Text on one line, without characters by which a question could control the terminal that shows it."""
    return "".join(mark if mark.isprintable() else "�" for mark in " ".join(text.split()))


def is_terminal(stream: object) -> bool:
    """Whether a person sees what is printed, and no file or log keeps it."""
    return bool(getattr(stream, "isatty", lambda: False)())


def check_picture(path: Path, option: str) -> None:
    """Refuse a file that cannot be drawn to. `option` is the name of the option, such as `discreet query --plot`."""
    need("matplotlib", "plot", option)
    if path.suffix.lower() not in (".png", ".svg", ".pdf") or not path.absolute().parent.is_dir():
        raise InvalidArgument(
            f"{path} cannot be a picture. Name a .png, .svg or .pdf in a folder that exists.",
            code="picture-not-written",
        )
