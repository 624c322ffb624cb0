"""`discreet shuffle form`: a page for people who answer on a phone."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from discreet.cli.shuffle.options import TaskFile
from discreet.errors import InvalidArgument


def form(
    task: TaskFile,
    page: Annotated[Path, typer.Argument(metavar="FORM.html", help="The page to write.")],
    question: Annotated[str, typer.Option(help="What people are asked, as they read it.")],
    texts: Annotated[
        Path | None,
        typer.Option(
            metavar="TEXTS.toml",
            help="What the page says around the question, in another language. A file that does not exist is written "
            "with the English texts, to be translated.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the page if it exists.")] = False,
) -> None:
    """Write one HTML page on which people answer, also on a phone. It needs no other file.

    The page has the question, a button for each choice, what is promised, and the script that randomizes and seals the
    answer. It sends to the shuffler of the task and nowhere else. A person's token follows the # of their link, which
    browsers send to nobody; a shuffler that was started with --open needs none.

    Examples:
      $ discreet shuffle form poll.toml form.html \\
                         --question "How often do you feel lonely?"
      $ discreet shuffle form poll.toml form.html --texts german.toml \\
                         --question "Wie oft fühlen Sie sich einsam?"
    """
    from discreet.shuffle.channel.form.page import draw_form, is_local
    from discreet.shuffle.channel.form.texts import english, read_texts
    from discreet.shuffle.channel.task import Task

    known = Task.load(task)
    if texts is not None and not texts.exists():
        _write(texts, english().encode(), ".toml")
        print(f"{texts}: the English texts. Translate what stands in quotes, and write the same command again.")
        return
    drawn = draw_form(known, question, None if texts is None else read_texts(texts))
    _write(page, drawn, ".html", ".htm", force=force)
    link = page.resolve().as_uri() if is_local(known) else f"https://polls.example/{quote(page.name)}"
    tokens = f"discreet shuffle tokens {shlex.quote(str(task))} {known.protocol.clients}"
    print(f"{page}: the page, {len(drawn):,} bytes. It needs no other file, and sends to {known.shuffler} only.")
    if is_local(known):
        print("The shuffler of this task is on this machine: try the page with a browser here.")
    else:
        print("Serve it over https, by somebody whom people trust: who can change the page can read what they answer.")
    print(f"One link for each person, with a token of their own:\n  {tokens} | sed 's|^|{link}#|' > links.txt")
    print(f"Or, if the shuffler was started with --open, one link for everybody:\n  {link}")


def _write(path: Path, content: bytes, *endings: str, force: bool = False) -> None:
    unwritable = InvalidArgument(
        f"{path} cannot be written. Name a file that ends with {endings[0]} in a folder that exists.",
        code="file-not-writable",
    )
    if path.suffix.lower() not in endings or path.is_dir():
        raise unwritable
    try:
        with path.open("wb" if force else "xb") as file:
            file.write(content)
    except FileExistsError:
        raise InvalidArgument(
            f"{path} exists and is left as it is. Name another file, or add --force.", code="file-exists"
        ) from None
    except OSError:
        raise unwritable from None
