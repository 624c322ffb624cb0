"""What the form of a poll says around its question: in English, or as somebody translated it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from discreet.errors import InvalidArgument

LONGEST = 1_000
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")


def english() -> str:
    """The file of all texts, to be translated."""
    return resources.files(__package__).joinpath("texts.toml").read_text("utf-8")


def known_texts() -> dict[str, str]:
    """The English texts by their names."""
    return tomllib.loads(english())


def read_texts(path: Path) -> dict[str, str]:
    """The texts of a translated file. What it leaves out is English."""
    try:
        given = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise _refused(f'{path} is not a file of texts in UTF-8, with lines such as send = "Senden"') from None
    return checked(given)


def checked(given: Mapping[str, object]) -> dict[str, str]:
    """All texts of a form, if these are some of them."""
    texts = known_texts()
    for name, text in given.items():
        if name not in texts:
            raise _refused(f"{name!r} is not the name of a text. The names are {', '.join(texts)}")
        if not isinstance(text, str) or len(text) > LONGEST or not (text.strip() or name == "explained"):
            raise _refused(f'The text {name} must be words in quotes, at most {LONGEST:,} letters: {name} = "…"')
        texts[name] = text
    if not _LANGUAGE.fullmatch(texts["language"]):
        raise _refused('The language must be a code such as "en", "de" or "pt-BR": language = "de"')
    return texts


def _refused(why: str) -> InvalidArgument:
    return InvalidArgument(f"{why}.", code="shuffle-form-texts")
