"""An answer that came from a gateway. It is shown, converted and drawn like one that was computed here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.errors import DiscreetError, InvalidArgument
from discreet.gateway.formats import FACTS
from discreet.guarantees.guarantee import Approx, Guarantee, NoLoss
from discreet.ledger.texts.record import read_guarantee
from discreet.releases import Release
from discreet.sql.running.answer import Answer


class RemoteAnswer(Answer):
    """The released answer to a question, from a gateway. Its errors hold with `confidence`, which was asked for."""

    def __init__(self, table: Any, facts: dict[str, Any], remains: str = "") -> None:
        self.table, self._facts = table, facts
        self.confidence = float(facts["confidence"])
        self.free = str(facts.get("free", ""))
        self.notes = tuple(map(str, facts["notes"]))
        self.derived_from = tuple(map(str, facts.get("derived_from", ())))
        cost = _guarantee(facts["exact"]["cost"])
        if not isinstance(cost, Approx | NoLoss):
            raise TypeError
        self.cost = cost
        left = None if facts["left"] is None else _guarantee(facts["left"])
        self.release = Release(
            value=None,
            guarantee=_guarantee(facts["exact"]["whole"]),
            receipt=facts["receipt"],
            not_private=facts["not_private"] is True,
            replayed=facts["replayed"] is True,
            left_now=facts.get("left_now") is True,
            _left=lambda: left,
            _remains=remains,
        )
        shown = {*self.names, *self.noisy, *self._chosen, *self.summed, *(f"{name}_error" for name in self.noisy)}
        if not shown <= {*table.column_names}:
            raise ValueError

    @classmethod
    def read(cls, stream: bytes, remains: str = "") -> RemoteAnswer | None:
        """The answer in an Arrow stream of a gateway, with what it says of what remains. None if it is none."""
        import pyarrow as pa

        try:
            table = pa.ipc.open_stream(stream).read_all()
            facts = json.loads((table.schema.metadata or {})[FACTS])
            return cls(table.replace_schema_metadata(None), facts, remains)
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError, AttributeError, DiscreetError):
            return None

    @property
    def names(self) -> list[str]:
        return list(self._facts["columns"])

    @property
    def noisy(self) -> list[str]:
        return list(self._facts["noisy"])

    @property
    def _chosen(self) -> list[str]:
        return list(self._facts["chosen"])

    @property
    def summed(self) -> dict[str, Any]:
        return {name: np.asarray(rows, dtype=bool) for name, rows in self._facts["summed"].items()}

    @property
    def clipped(self) -> dict[str, float | None]:
        """For each noisy column that is a count or a sum, the estimated part that is lost because some people were
        scaled down.
        """
        return dict(self._facts["clipped"])

    def with_errors(self, confidence: float) -> Any:
        """The table, with the errors that it came with. For another confidence, the gateway must be asked again."""
        if confidence != self.confidence:
            raise InvalidArgument(
                f"This answer came with errors for the confidence {self.confidence:g}. Ask the same question with "
                f"confidence={confidence:g}: it is free now.",
                code="remote-confidence",
            )
        return self.table

    def cube(self, by: Sequence[str] = ()) -> Any:
        """The rows of one level, by its keys, as an Arrow table. Without keys, the total."""
        keys = {name.lower(): name for name in self.summed}
        wanted = [keys.get(str(one).lower()) for one in ([by] if isinstance(by, str) else by)]
        kept = np.ones(self.table.num_rows, dtype=bool)
        for name, summed in self.summed.items():
            kept &= summed == (name not in wanted)
        if not self.summed or None in wanted or not kept.any():
            raise InvalidArgument(
                "The answer has no level with these keys. Ask with GROUP BY ROLLUP, CUBE or GROUPING SETS, and name "
                'keys that the answer shows, such as cube(["region"]).',
                code="cube-keys",
            )
        return self.table.filter(kept).drop_columns([name for name in self.summed if name not in wanted])

    def plot(self, *, confidence: float | None = None, style: str = "light") -> Any:
        """The answer as a matplotlib figure, with the errors that it came with."""
        return super().plot(confidence=self.confidence if confidence is None else confidence, style=style)

    def as_json(self, confidence: float | None = None) -> dict[str, Any]:
        """The answer as one JSON object, with the errors that it came with."""
        return super().as_json(self.confidence if confidence is None else confidence)


def _guarantee(text: str | None) -> Guarantee:
    return NoLoss() if text is None else read_guarantee(text)
