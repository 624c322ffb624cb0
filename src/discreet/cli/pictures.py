"""Files that pictures are drawn into: checked before anything is asked or spent."""

from __future__ import annotations

from pathlib import Path

from discreet.errors import InvalidArgument
from discreet.extras import need


def check_picture(path: Path, option: str) -> None:
    """Refuse what cannot be drawn into; `option` is how it was named, such as `discreet query --plot`."""
    need("matplotlib", "plot", option)
    if path.suffix.lower() not in (".png", ".svg", ".pdf") or not path.absolute().parent.is_dir():
        raise InvalidArgument(
            f"{path} cannot be a picture. Name a .png, .svg or .pdf in a folder that exists.",
            code="picture-not-written",
        )
