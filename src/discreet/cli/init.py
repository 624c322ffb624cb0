"""`discreet init DATA…`: a first policy, from the names and types of columns. It contains no value of the data, and
nothing that has to be filled in.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from discreet.errors import InvalidArgument


def init(
    data: Annotated[list[Path], typer.Argument(help="Files (Parquet, CSV, JSON) or folders of them: one table each.")],
    person: Annotated[
        str | None, typer.Option(help="The column that says whose a row is. Without it, you are asked.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the policy is written.", dir_okay=False)] = Path("policy.toml"),
    header: Annotated[
        bool, typer.Option("--header", help="First lines of CSV files, and keys of JSON files, are names of columns.")
    ] = False,
) -> None:
    """Write a first policy, from the names and types of columns. It needs one thing: the column that says whose a row
    is.

    A table without that column is left out, with the lines that would add it. A CSV or JSON file has no types. They are
    read off its rows, and written down for you to check. A CSV file whose first line may be data is refused unless you
    confirm with --header that it has names, and so is JSON. An existing file is not changed.

    Examples:
      $ discreet init visits.parquet --person patient_id
      $ discreet init visits.parquet people.csv --out clinic.toml

    Then ask what a question would cost: discreet explain policy.toml "SELECT …" --epsilon 0.5. All of a policy:
    docs/sql.md
    """
    main(data, out, person=person, header=header)


def main(data: Sequence[Path], out: Path, *, person: str | None = None, header: bool = False) -> None:
    """Write the policy, and print what to do next. With `header`, the first line of a CSV file is known to hold
    names.
    """
    from discreet.datasets.drafts import check_person, policy_text, read_files, relative

    files = read_files(data, header=header)
    tables = files.tables
    if out.exists():
        raise InvalidArgument(f"{out} exists and is left as it is. Name another file with --out.", code="file-exists")
    whose = _ask_for_person(tables) if person is None else person
    check_person(whose, tables, files.untyped)
    paths = {name: relative(path, out) for name, path in files.paths.items()}
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(policy_text(paths, tables, out.stem, whose, files.untyped))
    except FileExistsError:
        raise InvalidArgument(
            f"{out} exists and is left as it is. Name another file with --out.", code="file-exists"
        ) from None
    except OSError as error:
        raise InvalidArgument(
            f"{out} cannot be written: {error.strerror}. Name another file with --out.", code="file-not-writable"
        ) from None
    print(f"{out} is written. It protects all rows of one {whose} together.")
    if left_out := [name for name, types in tables.items() if whose not in types]:
        print(f"Without that column, and left out for now: {', '.join(left_out)}. The file says how to add them.")
    first = next(name for name, types in tables.items() if whose in types)
    print(f'Ask: discreet explain {out} "SELECT COUNT(*) FROM {first}" --epsilon 0.1')


def _ask_for_person(tables: Mapping[str, Mapping[str, str]]) -> str:
    """The column that says whose a row is, as its owner says. If nobody can be asked, the only one that is named for
    people.
    """
    from discreet.datasets.drafts import SURE, likely_people

    likely = likely_people(tables)
    if sys.stdin is not None and sys.stdin.isatty():
        asked = "Which column says whose a row is?"
        return str(typer.prompt(asked, default=likely[0][1]) if likely else typer.prompt(asked))
    sure = [name for place, name in likely if place < SURE]
    if len(sure) == 1:
        return sure[0]
    raise InvalidArgument(
        "Say which column tells whose a row is, such as --person patient_id. Columns: "
        f"{', '.join(dict.fromkeys(name for types in tables.values() for name in types))}.",
        code="command-person",
    )
