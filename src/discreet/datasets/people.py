"""Which column says whose a row is, by its name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from discreet.errors import InvalidArgument
from discreet.sql.schema import KEYS, Column, Schema, Table

PEOPLE = ("patient", "person", "user", "customer", "client", "member", "employee", "student", "subject", "participant")
"""What a person is called in the names of columns, the likeliest first."""
_ELSEWHERE = (
    *(
        "respondent",
        "beneficiary",
        "donor",
        "volunteer",
        "applicant",
        "individual",
        "citizen",
        "resident",
        "subscriber",
    ),
    *(
        "kunden",
        "kunde",
        "mitglieds",
        "mitglied",
        "mitarbeiter",
        "versicherten",
        "personen",
        "patienten",
        "pacient",
        "bolnik",
        "oseba",
    ),
    *("stranka", "paciente", "persona", "cliente", "usuario", "empleado", "adherent", "salarie", "personne"),
)
_NUMBERS = (
    *(
        "mrn",
        "ssn",
        "usubjid",
        "subjid",
        "nhs",
        "nhsnumber",
        "nino",
        "npi",
        "emso",
        "pesel",
        "bsn",
        "cpr",
        "dni",
        "nif",
    ),
    *(
        "personnummer",
        "steuerid",
        "steueridnr",
        "svnr",
        "teudatzehut",
        "codicefiscale",
        "aadhaar",
        "pid",
        "uid",
        "hadmpid",
    ),
)
"""Numbers that states, hospitals and standards give to people."""
_WORDS = (*PEOPLE, *_ELSEWHERE)
SURE = len(_WORDS) + 1
"""A name that stands before this place is that of a person; those behind are any id."""
NOBODY = 99
"""The place of a name that is none of them."""
_NUMBER = "(?:id|ids|no|nr|num|nmbr|number|nummer|key|code|ref|uuid|guid)"


def likely_people(tables: Mapping[str, Mapping[str, str]]) -> list[tuple[int, str]]:
    """The columns that may say whose a row is, with their ranks by name, the most likely first. Of equally likely
    names, the one in most tables, then the first.
    """
    names = [name for types in tables.values() for name in types]
    likely = sorted((place_of(name), -names.count(name), number, name) for number, name in enumerate(names))
    return list(dict.fromkeys((place, name) for place, _, _, name in likely if place < NOBODY))


def place_of(name: str) -> int:
    """The rank of a name among those of a person's column, the most likely first."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    plain = re.sub(r"[\W_]+", "", apart)
    for place, word in enumerate(_WORDS):
        if re.fullmatch(f"{_NUMBER}?{word}{_NUMBER}?", plain):
            return place
    if plain in _NUMBERS:
        return len(_WORDS)
    weaker = (apart.startswith(PEOPLE) and apart.endswith("id"), apart.endswith("_id"), apart == "id")
    return next((SURE + place for place, found in enumerate(weaker) if found), NOBODY)


def columns_about_people(table: Table, schema: Schema) -> list[Column]:
    """The columns of a private table that are no key of a row or a person, by what is declared and by their names."""
    keys = {end for other in schema.tables.values() if not other.public and other.through for end in other.path}
    known = table.columns.values()
    return [one for one in known if one.name not in (table.person, "id", *keys) and place_of(one.name) == NOBODY]


def is_people(table: str) -> bool:
    """Whether a table is named for people: patients, users."""
    plain = re.sub(r"[\W_]+", "", table).lower()
    return any(plain in (word, f"{word}s") for word in (*_WORDS, "people"))


def check_person(person: str, tables: Mapping[str, Mapping[str, str]], untyped: Collection[str]) -> None:
    """Refuse a column that is unknown, or cannot say whose a row is."""
    if not any(person in types for types in tables.values()):
        known = ", ".join(dict.fromkeys(name for types in tables.values() for name in types))
        raise InvalidArgument(f"Unknown column {person}. Known: {known}.", code="unknown-column")
    for name, types in tables.items():
        if name not in untyped and types.get(person, "text") not in KEYS:
            raise InvalidArgument(
                f"{person} identifies people in {name}, and must be whole numbers, text or dates there.",
                code="person-type",
            )
