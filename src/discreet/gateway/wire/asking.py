"""A question to the vault, and its answer as rows for a client. Only `answer` in the mode answer may charge."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from sqlglot import exp

from discreet.errors import DiscreetError
from discreet.gateway.frames import Frame
from discreet.gateway.wire.errors import refusal_in, refusal_of
from discreet.gateway.wire.format.values import Column, Described, Notice, Refusal
from discreet.gateway.wire.options import Options, Settings, options_of
from discreet.gateway.wire.rehearsal import made_up
from discreet.gateway.wire.shapes import (
    Field,
    answer_in,
    asked_fields,
    fields_said,
    layout,
    named_fields,
    pg_type,
    rows_of,
)
from discreet.gateway.wire.text.parameters import Columns, Parameter, literals_of, parameters_of
from discreet.gateway.wire.text.rewriting import ERRORS, Item, Rewritten, rewritten
from discreet.gateway.wire.text.statement import Statement
from discreet.ledger.texts.record import read_guarantee
from discreet.releases import ANSWERED_BEFORE, left_in_words

_MOST_REMEMBERED, _LONGEST_REMEMBERED = 200, 2**15
_OF_PLANS = ("epsilon", "delta", "within", "confidence", "parts")


class Vault(Protocol):
    """What a session needs of the vault: `frames.Link` is one."""

    async def call(
        self, verb: str, token: str | None = None, arguments: dict[str, Any] | bytes | None = None, *, address: str = ""
    ) -> Frame:
        """Ask the vault."""


class Answered(NamedTuple):
    """The rows of an answer, and what is said about it."""

    columns: tuple[Column, ...]
    rows: list[tuple[Any, ...]]
    notices: tuple[Notice, ...]


class Asker:
    """Asks the questions of one session."""

    def __init__(self, vault: Vault, token: str, settings: Settings, database: str, tables: Mapping[str, Any]) -> None:
        self._vault, self._token, self._settings, self._database = vault, token, settings, database
        self._columns = Columns(tables)
        self._fields: OrderedDict[str, list[Field]] = OrderedDict()
        self._described: WeakKeyDictionary[Statement, tuple[list[Parameter], tuple[Column, ...]]] = WeakKeyDictionary()

    # --- free -----------------------------------------------------------------------------------------------

    async def describe(self, statement: Statement, declared: Sequence[int] = ()) -> Described:
        """The parameters and the columns of a question. Examples stand for the values of parameters."""
        options = options_of(statement.comments, self._settings)
        parameters = parameters_of(statement, declared, self._columns)
        asked = self._rewritten(statement, {number: one.example for number, one in enumerate(parameters, 1)})
        columns = self._shown(await self._fields_of(asked), asked, options)
        self._described[statement] = (parameters, columns)
        return Described(tuple(one.type for one in parameters), columns)

    async def explain(self, statement: Statement, values: Sequence[Any] = ()) -> dict[str, Any]:
        """What a question would cost, and how large its error may be."""
        options = options_of(statement.comments, self._settings)
        asked = self._with_values(statement, values)
        plan = await self._plan(asked, options)
        plan["text"] = "\n".join([plan["text"], *_whole_quotients(await self._fields_of(asked), asked.items)])
        return plan

    async def _plan(self, asked: Rewritten, options: Options) -> dict[str, Any]:
        given = {name: value for name, value in options.arguments.items() if name in _OF_PLANS}
        await self._name_within(given, asked)
        reply = await self._call("plan", {"sql": asked.sql.text, **given}, asked)
        found: dict[str, Any] = json.loads(reply.body)
        return found

    async def _fields_of(self, asked: Rewritten) -> list[Field]:
        """The columns of an answer, which the vault says without ε. They are remembered."""
        sql = asked.sql.text
        if sql not in self._fields:
            reply = await self._call("describe", {"sql": sql}, asked)
            self._fields[sql] = fields_said(json.loads(reply.body)["columns"])
            while len(self._fields) > _MOST_REMEMBERED:
                self._fields.popitem(last=False)
        self._fields.move_to_end(sql)
        return self._fields[sql]

    # --- answers --------------------------------------------------------------------------------------------

    async def answer(self, statement: Statement, values: Sequence[Any] = ()) -> Answered:
        """Answer a question in the mode of the session or the statement. Only the mode answer may charge."""
        options = options_of(statement.comments, self._settings)
        asked = self._with_values(statement, values)
        described = self._described.get(statement)
        known = None
        if described is not None or any(one.of in ERRORS for one in asked.items):
            known = self._shown(await self._fields_of(asked), asked, options)  # refused here, it costs nothing
        if described is not None and known != described[1]:
            raise Refusal("cached plan must not change result type", state="0A000", hint="Prepare the statement again.")
        if options.mode == "preview":
            return await self._preview(asked, options)
        if options.mode == "rehearse":
            return await self._rehearse(statement, asked, options)
        found = await self._ask(statement, asked, options)
        if known is not None and found.columns != known:
            raise Refusal("The columns of the answer are not those that were described.", state="XX000")
        return found

    async def _ask(self, statement: Statement, asked: Rewritten, options: Options) -> Answered:
        arguments = {"sql": asked.sql.text, "format": "arrow", **options.arguments}
        await self._name_within(arguments, asked)
        if options.mode == "replay":
            arguments["bought_only"] = True
        reply = await self._call("ask", arguments, asked, options)
        body, *last = statement.memory.get("answered", (b"",))
        remains = str(reply.header.get("remains", ""))
        shown = (options.errors, remains)
        if last and body == reply.body and last[0] == shown:  # asked again: the same bytes are the same rows
            again: Answered = last[1]
            return again
        if len(reply.body) > _LONGEST_REMEMBERED:  # others must not wait for it
            return await asyncio.to_thread(_answered, reply.body, asked, options, remains)
        found = _answered(reply.body, asked, options, remains)
        statement.memory["answered"] = (reply.body, shown, found)
        return found

    async def _preview(self, asked: Rewritten, options: Options) -> Answered:
        fields = await self._fields_of(asked)
        columns = self._shown(fields, asked, options)
        plan = await self._plan(asked, options)
        cost = plan.get("guarantee")
        said = [f"preview: this question would cost {cost}. No row is shown, and nothing was spent."]
        if plan.get("fits") is False:
            said[0] = f"preview: this question would cost {cost}, which is more than remains. Nothing was spent."
        if hindrance := plan.get("hindrance"):
            said.append(f"preview: {hindrance}")
        for one in plan.get("columns", ()):
            if one.get("error"):
                said.append(f"preview: {one['name']} would be about ± {one['error']:,.6g}.")
        said += _whole_quotients(fields, asked.items)
        return Answered(columns, [], tuple(Notice(one) for one in said))

    async def _rehearse(self, statement: Statement, asked: Rewritten, options: Options) -> Answered:
        assert statement.query is not None
        fields = await self._fields_of(asked)
        cells = layout(fields, asked.items, options.errors)
        table = made_up(asked.sql.text, statement.query, fields, asked.items, self._columns)
        said = Notice(
            "NOT REAL: these rows are made up from declarations, to try a report. Nothing was asked or spent.",
            "SET discreet.mode = answer asks the question.",
            "WARNING",
            "01000",
        )
        return Answered(tuple(cell.column for cell in cells), rows_of(table, cells), (said,))

    # --- helpers --------------------------------------------------------------------------------------------

    def _rewritten(self, statement: Statement, literals: Mapping[int, str]) -> Rewritten:
        return rewritten(statement, literals, self._database)

    def _with_values(self, statement: Statement, values: Sequence[Any]) -> Rewritten:
        described = self._described.get(statement)
        parameters = parameters_of(statement, (), self._columns) if described is None else described[0]
        return self._rewritten(statement, literals_of(parameters, values))

    @staticmethod
    def _shown(fields: Sequence[Field], asked: Rewritten, options: Options) -> tuple[Column, ...]:
        return tuple(cell.column for cell in layout(fields, asked.items, options.errors))

    async def _name_within(self, arguments: dict[str, Any], asked: Rewritten) -> None:
        """Name the columns in `within` as the vault does: count is count(*) there."""
        if "within" not in arguments:
            return
        fields = await self._fields_of(asked)
        own = [fields[place].name for place in asked_fields(fields)]
        names = {shown.lower(): name for shown, name in zip(named_fields(fields, asked.items), own, strict=True)}
        within = arguments["within"]
        arguments["within"] = {names.get(name.lower(), name): value for name, value in within.items()}

    async def _call(
        self, verb: str, arguments: dict[str, Any], asked: Rewritten, options: Options | None = None
    ) -> Frame:
        try:
            reply = await self._vault.call(verb, self._token, arguments)
        except DiscreetError as error:
            raise refusal_of(error) from None
        if reply.header.get("ok") is True:
            return reply
        refusal = refusal_in(reply, asked.sql.original)
        if reply.header.get("code") == "gateway-not-bought" and options is not None and options.mode == "replay":
            refusal.hint = "SET discreet.mode = answer buys it, if this account may. EXPLAIN says what it costs."
        raise refusal


def _answered(body: bytes, asked: Rewritten, options: Options, remains: str) -> Answered:
    """An answer of the vault as rows, with what is said about it."""
    table, facts, fields = answer_in(body)
    cells = layout(fields, asked.items, options.errors)
    columns = tuple(cell.column for cell in cells)
    said = [_summary(facts, remains), *facts["notes"], *_whole_quotients(fields, asked.items)]
    if options.errors == "notice":
        said += _errors_in_words(table, facts, fields, named_fields(fields, asked.items))
    return Answered(columns, rows_of(table, cells), tuple(Notice(one) for one in said))


def _summary(facts: Mapping[str, Any], remains: str) -> str:
    """What an answer cost, what remains, its receipt, and whether it was free. What the vault says `remains` names the
    nearest limit.
    """
    left = None if facts["left"] is None else read_guarantee(facts["left"])
    left_then = left_in_words(left, then=facts["replayed"] and not facts["left_now"])
    if facts.get("free"):
        return f"{facts['free']}; {left_then}"
    cost = facts["exact"]["cost"]
    said = [f"cost {'nothing' if cost is None else read_guarantee(cost)}", remains or left_then]
    if facts["receipt"] is not None:
        said.append(f"receipt {facts['receipt']}")
    if facts["replayed"]:
        said.append(ANSWERED_BEFORE)
    if facts["not_private"]:
        said.append("NOT PRIVATE")
    return "; ".join(said)


def _whole_quotients(fields: Sequence[Field], items: Sequence[Item]) -> list[str]:
    """That a noisy quotient is rounded to a whole number: a share of 0.57 is 0."""
    names, wanted = named_fields(fields, items), [one for one in items if one.of not in ERRORS]
    if len(wanted) != len(names):
        return []
    rounded = [
        name
        for name, place, one in zip(names, asked_fields(fields), wanted, strict=True)
        if fields[place].noisy and pg_type(fields[place].type) == "int8" and _divides(one.tree)
    ]
    said = "is rounded as in PostgreSQL, where 7 / 2 is 3. Write 1.0 * 7 / 2 for 3.5."
    return [f"{', '.join(rounded)}: the quotient of whole numbers {said}"] if rounded else []


def _divides(tree: exp.Expression | None) -> bool:
    """Whether numbers of the answer are divided, and not only values inside an aggregate."""
    parts = () if tree is None else tree.walk(prune=lambda part: isinstance(part, exp.AggFunc | exp.Filter))
    return any(isinstance(part, exp.Div) for part in parts)


def _errors_in_words(table: Any, facts: Mapping[str, Any], fields: Sequence[Field], names: Sequence[str]) -> list[str]:
    """The errors of each column, as notices."""
    found = []
    for name, place in zip(names, asked_fields(fields), strict=True):
        errors = [
            n for n, one in enumerate(fields) if one.error_of == fields[place].name and one.name.endswith("_error")
        ]
        values = [one for n in errors for one in table.column(n).to_pylist() if isinstance(one, int | float)]
        if values:
            shown = f"± {max(values):,.6g}" if min(values) == max(values) else f"at most ± {max(values):,.6g}"
            found.append(f"{name}: {shown} with {100 * facts['confidence']:g}% confidence")
    return found
