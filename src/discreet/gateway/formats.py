"""An answer as it leaves the gateway: JSON, CSV, or an Arrow stream that holds all of it."""

from __future__ import annotations

import json
from typing import Any, Literal

from discreet.errors import InvalidArgument
from discreet.guarantees.guarantee import Guarantee, NoLoss
from discreet.ledger.texts.record import to_text
from discreet.sql.running.answer import Answer
from discreet.sql.running.written import csv_text, json_object, json_text

Format = Literal["json", "csv", "arrow"]
TYPES: dict[str, str] = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}
"""The content type of each format."""
FACTS = b"discreet"
"""The key in the metadata of an Arrow schema under which everything but the rows is kept, as JSON."""
LONGEST_BESIDE = 3000
"""Characters of the header of CSV."""
MORE_NOTES = "There are more notes. They are in the JSON of this answer, which is free."
_IN_ROWS = ("rows", "errors", "low", "high")


def answer_format(answer: Answer, form: str, confidence: float) -> tuple[str, bytes]:
    """The content type and the bytes of an answer, with errors for this confidence."""
    if form == "json":
        return TYPES[form], json_text(json_object(answer, confidence)).encode()
    table = answer.table if confidence == answer.confidence else answer.with_errors(confidence)
    if form == "csv":
        return TYPES[form], csv_text(table).encode()
    if form == "arrow":
        return TYPES[form], _stream(table, json_text(_facts(answer, confidence)).encode())
    raise InvalidArgument(f"format must be one of {', '.join(TYPES)}.", code="not-an-option")


def facts_beside(answer: Answer) -> str:
    """What is said about an answer whose form has no place for it, as JSON in ASCII for a header. If the notes are
    long, the last ones are left out: proxies refuse long headers.
    """
    facts: dict[str, Any] = {"receipt": answer.receipt, "replayed": answer.replayed, "not_private": answer.not_private}
    notes = [*([answer.free] if answer.free else []), *answer.notes]
    kept = len(notes)
    while kept and len(json.dumps(facts | {"notes": notes})) > LONGEST_BESIDE:
        kept -= 1
        notes = [*notes[:kept], MORE_NOTES]
    return json.dumps(facts | {"notes": notes})


def _facts(answer: Answer, confidence: float) -> dict[str, Any]:
    """Everything about an answer but its rows. Like the rows, all of it is released."""
    shown = {key: value for key, value in answer.as_json(confidence).items() if key not in _IN_ROWS}
    return shown | {
        "noisy": answer.noisy,
        "chosen": answer._chosen,
        "summed": {name: [bool(one) for one in rows] for name, rows in answer.summed.items()},
        "left_now": answer.release.left_now,
        "exact": {name: _exact(of) for name, of in (("cost", answer.cost), ("whole", answer.guarantee))},
        "left": None if answer.remaining is None else _exact(answer.remaining),
    }


def _exact(guarantee: Guarantee) -> str | None:
    """A guarantee to the last digit. None if nothing private was read."""
    return None if isinstance(guarantee, NoLoss) else to_text(guarantee)


def _stream(table: Any, facts: bytes) -> bytes:
    import pyarrow as pa

    written = pa.BufferOutputStream()
    with pa.ipc.new_stream(written, table.schema.with_metadata({FACTS: facts})) as writer:
        writer.write_table(table)
    return written.getvalue().to_pybytes()  # type: ignore[no-any-return]
