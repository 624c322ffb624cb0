"""Sources in memory: columns with an Arrow type, and columns that are read cell by cell as the declared type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from discreet.engines.duckdb.arrow_tables import readable
from discreet.engines.duckdb.dialect import quote
from discreet.errors import InvalidArgument
from discreet.rows.tables import Cells, run_guarded

NOTHING = "The source of {} has no column that can be read. Write numbers, text or dates."


class InMemory:
    """The source `name`, with these columns. `register` gives a table to the engine under a name."""

    def __init__(self, name: str, columns: Mapping[str, Any], register: Callable[[str, Any], Any]) -> None:
        self.cells = {column: found for column, found in columns.items() if isinstance(found, Cells)}
        self._names, self._name, self._register = list(columns), name, register
        arrow = {column: found for column, found in columns.items() if column not in self.cells}
        self._typed = run_guarded(lambda: readable(arrow), NOTHING.format(name), code="source-no-columns")
        if not self._typed.num_columns and not self.cells:
            raise InvalidArgument(NOTHING.format(name), code="source-no-columns")
        self._read: dict[tuple[str, str], Any] = {}
        self._known: dict[tuple[str, ...], str] = {}

    def relation(self, types: Mapping[str, str]) -> str:
        """The source in a FROM clause, with these types for columns that have none. The default type is text."""
        kinds = tuple("text" if types.get(name, "other") == "other" else types[name] for name in self.cells)
        if kinds not in self._known:
            name = f"source {self._name}" if not self._known else f"source {self._name} {len(self._known)}"
            table = self._table(dict(zip(self.cells, kinds, strict=True)))
            run_guarded(lambda: self._register(name, table), NOTHING.format(self._name), code="source-no-columns")
            self._known[kinds] = quote(name)
        return self._known[kinds]

    def _table(self, kinds: Mapping[str, str]) -> Any:
        import pyarrow as pa

        found = dict(zip(self._typed.column_names, self._typed.columns, strict=True))
        for column, kind in kinds.items():
            if (column, kind) not in self._read:
                self._read[column, kind] = self.cells[column].read(kind)
            found[column] = self._read[column, kind]
        return pa.table({name: found[name] for name in self._names if name in found})
