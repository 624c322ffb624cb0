"""`discreet init DATA…`: a first policy, from the names and types of columns. It contains no value of the data, and
nothing that has to be filled in.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.terminal.output import is_terminal
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.datasets.drafts import People
    from discreet.datasets.sources import Source


def init(
    data: Annotated[
        list[str],
        typer.Argument(help="Files (Parquet, CSV, TSV, TXT, JSON, also .gz) or folders, or one PostgreSQL URL."),
    ],
    person: Annotated[
        str | None, typer.Option(help="The column that says whose a row is. Without it, you are asked.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the policy is written.", dir_okay=False)] = Path("policy.toml"),
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first lines of CSV, TSV and TXT files, and keys of JSON files, are names of columns.",
            show_default=False,
        ),
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help='What separates fields of text files. " " is any number of spaces and tabs.')
    ] = None,
    encoding: Annotated[
        list[str] | None,
        typer.Option(
            help="The encoding of text files that are not UTF-8, such as windows-1252. Repeat it with the "
            'table if only some are not: "stays: windows-1252". A copy in UTF-8 is written next to the policy.',
            show_default=False,
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help='Names for the columns of a text file whose first line is a row: "mrn, visited, ward, cost". '
            'Repeat it for several files, with the table: "stays: mrn, visited, ward, cost".',
            show_default=False,
        ),
    ] = None,
    names_only: Annotated[
        bool,
        typer.Option(
            "--names-only", help="Of text files, read the line of names and no row: every column is text until you say."
        ),
    ] = False,
) -> None:
    """Write a first policy, from the names and types of columns. It needs one thing: the column that says whose a row
    is.

    Of a database only the catalog is read: tables, columns, types and keys. Tables that lead to a person by foreign
    keys are added. Any other table without that column is left out, with the lines that would add it. A text file has
    no types. They are read off its rows, and written down for you to check. What does not fit is told on your terminal,
    and written nowhere. If a first line may be names or a row, say --header or --no-header. If it is a row, --columns
    names the columns. JSON needs --header. An existing file is not changed.

    Examples:
      $ discreet init visits.parquet --person patient_id
      $ discreet init visits.csv.gz people.csv --out clinic.toml
      $ discreet init stays.txt --columns "mrn, admitted, ward, cost"
      $ discreet init stays.txt labs.txt \\
          --columns "stays: mrn, ward, cost" --columns "labs: mrn, value"
      $ discreet init postgresql://localhost/clinic

    Then look at what is left to decide: discreet check policy.toml. All of a policy: docs/sql.md
    """
    known = {"header": header, "separator": separator, "encoding": encoding, "names_only": names_only}
    main(data, out, person=person, columns=columns or (), **known)


def main(data: Sequence[str | Path], out: Path, *, person: str | None = None, **known: Any) -> None:
    """Write the policy, and print what to do next. `known` is what the owner knows about text files."""
    from discreet.datasets.drafts import find_people, policy_text
    from discreet.datasets.people import check_person
    from discreet.datasets.sources import read_source

    if out.exists():
        raise InvalidArgument(f"{out} exists and is left as it is. Name another file with --out.", code="file-exists")
    source = read_source([str(one) for one in data], out, **known)
    try:
        whose = _ask_for_person(source) if person is None else person
        people = find_people(whose, source)
        check_person(people.unit if people.columns else whose, source.tables, source.untyped)
        write_new(out, policy_text(source, out.stem, people))
    except BaseException:
        source.remove_copies()
        raise
    if is_terminal(sys.stdout):
        _tell_owner(source, people)
    print(f"{out} is written. It protects all rows of one {people.unit} together.")
    for table, path in people.through.items():
        print(f"{table} leads to people through {path}.")
    if headerless := [name for name in source.texts if source.is_nameless(name)]:
        print(f"Without a line of names, so its columns are column1, column2, …: {', '.join(headerless)}.")
        print("Write their names in the policy, or begin again with --columns. If the first line holds them: --header.")
    if left_out := [name for name in source.tables if name not in people]:
        print(f"Without that column, and left out for now: {', '.join(left_out)}. The file says how to add them.")
    for copy in source.copies.values():
        print(f"{copy.place} is a copy in UTF-8, and what the policy reads. If the file changes, copy it again:")
        print(f"  {copy.command}")
    for table in source.texts:
        for said in source.unsure_of(table):
            print(f"Decide about {table}: {said}")
    for place, why in source.left_out.items():
        print(f"{place} cannot be served: {why}")
    if source.url is not None:
        print("It contains the URL as you wrote it, with a password if there is one: only you can read the file.")
    print(f"Check: discreet check {out}")
    print(f'Ask: discreet explain {out} "SELECT COUNT(*) FROM {next(iter(people.columns))}" --epsilon 0.1')


def _tell_owner(source: Source, people: People) -> None:
    """Print what does not fit the proposed types. It is about rows, so only a terminal is told."""
    notes = [f"table {table}: {note}" for table, text in source.texts.items() for note in text.file_notes]
    notes += [
        f"column {column}: {note}"
        for table in source.texts
        for column, said in source.notes_on(table, people.columns.get(table)).items()
        for note in said
    ]
    if notes:
        print("From the rows, for you alone:", *notes, sep="\n  ")


def write_new(out: Path, text: str) -> None:
    """Write a file that only its owner can read. One that exists is left as it is."""
    try:
        number = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidArgument(
            f"{out} exists and is left as it is. Name another file with --out.", code="file-exists"
        ) from None
    except OSError as error:
        raise InvalidArgument(
            f"{out} cannot be written: {error.strerror}. Name another file with --out.", code="file-not-writable"
        ) from None
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(text)


def _ask_for_person(source: Source) -> str:
    """The column that says whose a row is, as its owner says. If nobody can be asked, the only one that is named for
    people.
    """
    from discreet.datasets.drafts import propose_person

    likely, is_sure = propose_person(source)
    if is_terminal(sys.stdin):
        asked = "Which column says whose a row is?"
        if likely:
            return str(typer.prompt(asked, default=likely))
        return str(typer.prompt(f"Columns: {_columns_of(source)}\n{asked}"))
    if likely is not None and is_sure:
        return likely
    raise InvalidArgument(
        f"Say which column tells whose a row is, such as --person patient_id. Columns: {_columns_of(source)}.",
        code="command-person",
    )


def _columns_of(source: Source) -> str:
    return ", ".join(dict.fromkeys(name for types in source.tables.values() for name in types))
