"""Expressions and relations in the engine's dialect. Only listed operations are printed, and no row can stop a
statement.
"""

from __future__ import annotations

from dataclasses import replace

from discreet.engines.dialect import Dialect
from discreet.engines.engine import Engine
from discreet.errors import NotAllowed
from discreet.sql.expressions import Call, Const, Expr, Field, Ref, Window, conjuncts
from discreet.sql.measuring.owners import without_owners
from discreet.sql.measuring.parts import rows_in_parts
from discreet.sql.pricing.relation import (
    Beside,
    Both,
    Few,
    Join,
    Led,
    Marked,
    Over,
    PerPerson,
    Project,
    Relation,
    Scan,
    Test,
    Tested,
    Total,
    Where,
    Windowed,
    equal_fields,
)
from discreet.sql.reading.unstopped import LONGEST

_MOST_DIVIDED = 6
"""Each test that divides the rows doubles the statement."""


def print_expression(expr: Expr, dialect: Dialect) -> str:
    """An expression in the engine's dialect."""
    inner = [print_expression(arg, dialect) for arg in expr.args] if isinstance(expr, Call) else []
    match expr:
        case Ref(field=field):
            return dialect.quote(field.id)
        case Const(value=value):
            return dialect.literal(value)
        case Call(op="and" | "or" | "case" as op):
            return _combined(op, inner)
        case Call(op="in"):
            return f"({inner[0]} IN ({', '.join(inner[1:])}))"
        case Call(op="released", detail="replace"):
            return _cut(f"replace({_cut(inner[0])}, {inner[1]}, {_cut(inner[2])})")
        case Call(op="released", detail=name):
            computed = f"{name}({', '.join(inner)})"
            return _cut(computed) if name in ("concat_ws", "printf") else computed
        case Call(op="subtract", args=(first, second)) if first.type in ("date", "timestamp"):
            return dialect.operation("days_between", inner[::-1], (second.type, first.type), "integer")
        case Call(op=op, args=args, type=kind, detail=detail):
            return dialect.operation(op, inner, [arg.type for arg in args], kind, detail)
    raise AssertionError(f"an expression that nobody listed: {type(expr).__name__}")


def _cut(text: str) -> str:
    """A text of released numbers. Repeated replacing would make it too long for the memory."""
    return f"left({text}, {LONGEST})"


def print_window(window: Window, dialect: Dialect) -> str:
    """A window function. It stands alone: engines do not take one inside an expression that is NULL where it fails."""
    args = ", ".join(safe(arg, dialect) for arg in window.args) or ("*" if window.function == "count" else "")
    parts = ", ".join(safe(part, dialect) for part in window.partition)
    over = [f"PARTITION BY {parts}"] if parts else []
    order = ", ".join(f"{safe(one.expr, dialect)} {one.way}" for one in window.order)
    over += [f"ORDER BY {order}"] if order else []
    return f"{window.function}({args}) OVER ({' '.join([*over, window.detail]).strip()})"


def _combined(op: str, inner: list[str]) -> str:
    """Printed conditions, combined. Every engine writes this in the same way."""
    if op == "not":
        return f"(NOT {inner[0]})"
    if op == "case":
        whens = zip(inner[:-1:2], inner[1:-1:2], strict=True)
        branches = " ".join(f"WHEN {when} THEN {then}" for when, then in whens)
        return f"CASE {branches} ELSE {inner[-1]} END"
    return f"({f' {op.upper()} '.join(inner)})"


def safe(expr: Expr, dialect: Dialect) -> str:
    """An expression that is NULL where it cannot be computed."""
    text = print_expression(expr, dialect)
    return text if isinstance(expr, Ref | Const) else dialect.total(text)


def rows_of(relation: Relation, engine: Engine) -> str:
    """A relation as a query."""
    dialect, quoted = engine.dialect, engine.dialect.quote
    match relation:
        case Scan() if relation.blocks is not None or relation.homes is not None:
            return rows_in_parts(relation, engine)
        case Scan(table=table, fields=fields):
            columns = ", ".join(f"{quoted(f.name)} AS {quoted(f.id)}" for f in fields)
            return f"SELECT {columns} FROM {engine.relations[table.name]}"
        case Led(scan=scan, key=key, owners=owners, owners_key=owners_key, person=person) if owners.person is not None:
            owner, found = quoted(owners.person.id), quoted(owners_key.id)
            who = f"SELECT DISTINCT {found}, {owner} AS {quoted(person.id)} FROM ({rows_of(owners, engine)}) AS one"
            columns = ", ".join(quoted(field.id) for field in (*scan.fields, person))
            on = f"{quoted(key.id)} = {found}"
            return f"SELECT {columns} FROM ({rows_of(scan, engine)}) AS one JOIN ({who}) AS other ON {on}"
        case Few(source=source, key=key, most=most):
            kept = [quoted(field.id) for field in source.fields]
            return dialect.few_of_each(rows_of(source, engine), quoted(key.id), most, kept)
        case Both(left=left, right=right, fields=fields, person=person):
            return " UNION ALL ".join(_rename_columns(side, fields, person, engine) for side in (left, right))
        case Where(source=Tested() as tested, condition=condition):
            # first what needs no other rows
            return rows_of(replace(tested, source=Where(tested.source, condition)), engine)
        case Where(source=source, condition=condition):
            # one by one, so that the engine can apply each before a join
            parts = " AND ".join(safe(part, dialect) for part in conjuncts(condition))
            return f"SELECT * FROM ({rows_of(source, engine)}) AS one WHERE {parts}"
        case Tested(source=source, condition=condition, tests=tests):
            known = {test.field: _exists(test, source, engine) for test in tests}
            parts = " AND ".join(_tested(part, known, dialect) for part in conjuncts(condition))
            return f"SELECT * FROM ({rows_of(source, engine)}) AS one WHERE {parts}"
        case Marked(source=source, tests=tests):
            return _marked(source, tests, engine)
        case Total(source=source, columns=columns):
            shown = [f"{_of_person(*column, dialect)} AS {quoted(column[0].id)}" for column in columns]
            return f"SELECT {', '.join(shown)} FROM ({rows_of(source, engine)}) AS one"
        case Beside(left=left, right=right):
            return f"SELECT * FROM ({rows_of(left, engine)}) AS one CROSS JOIN ({rows_of(right, engine)}) AS other"
        case Project(source=source, columns=columns, person=person):
            shown = [f"{safe(expr, dialect)} AS {quoted(field.id)}" for field, expr in columns]
            if person is not None and source.person is not None and person not in relation.fields:
                shown.append(f"{quoted(source.person.id)} AS {quoted(person.id)}")
            rows = rows_of(source, engine)
            computed = isinstance(source, Project) and any(isinstance(expr, Call) for _, expr in source.columns)
            return f"SELECT {', '.join(shown)} FROM ({dialect.fenced(rows) if computed else rows}) AS one"
        case PerPerson(source=source, keys=keys, columns=columns, person=person):
            whose = [] if source.person is None else [quoted(source.person.id)]
            shown = [f"{_of_person(*column, dialect)} AS {quoted(column[0].id)}" for column in columns]
            if person is not None and person not in relation.fields:
                shown.append(f"{whose[0]} AS {quoted(person.id)}")
            # a constant would be read as a position
            parted = [_key(key, dialect) for key in keys if not isinstance(key, Const)]
            group = ", ".join(dict.fromkeys([*whose, *parted])) or "()"
            return f"SELECT {', '.join(shown)} FROM ({rows_of(source, engine)}) AS one GROUP BY {group}"
        case Windowed(source=source, columns=over):
            return _windowed(source, over, engine)
        case Join(left=left, right=right, condition=condition, kind=kind):
            lean = without_owners(relation)
            if lean is not relation:
                return rows_of(lean, engine)
            join = {"inner": "JOIN", "left": "LEFT JOIN", "full": "FULL JOIN"}[kind]
            on = " AND ".join(_on(part, dialect) for part in conjuncts(condition))
            sides = f"({rows_of(left, engine)}) AS one {join} ({rows_of(right, engine)}) AS other"
            person = relation.person
            if kind != "full" or person is None or left.person is None or right.person is None:
                return f"SELECT * FROM {sides} ON {on}"
            either = f"coalesce({quoted(left.person.id)}, {quoted(right.person.id)})"
            return f"SELECT *, {either} AS {quoted(person.id)} FROM {sides} ON {on}"
    raise AssertionError(f"a relation that nobody listed: {type(relation).__name__}")


def _windowed(source: Relation, columns: tuple[tuple[Field, Over], ...], engine: Engine) -> str:
    """Rows with functions of all rows of the same person.

    Promise: rows that no column tells apart are the same, as zero has no sign and there is one NaN. So if an order is
    total in all columns, no result depends on where the rows of others lie.
    """
    dialect, quoted = engine.dialect, engine.dialect.quote
    own = dict.fromkeys([*source.fields, *([] if source.person is None else [source.person])])
    named: dict[str, str] = {}
    shown = []

    def name(text: str) -> str:
        return named.setdefault(text, f"e{len(named)}")

    for field, over in columns:
        whose = [] if source.person is None else [quoted(source.person.id)]
        whose += [name(_key(key, dialect)) for key in over.by]
        parted = f"PARTITION BY {', '.join(whose)} " if whose else ""
        ends = {(False, False): "ASC NULLS LAST", (False, True): "ASC NULLS FIRST"}
        ends |= {(True, False): "DESC NULLS LAST", (True, True): "DESC NULLS FIRST"}
        order = [f"{name(_key(expr, dialect))} {ends[how[0], how[1]]}" for expr, *how in over.order]
        if over.total:
            order += [f"{_ordered(one, dialect)} ASC NULLS LAST" for one in source.fields if one.type != "other"]
        frame = "" if over.frame is None else f" ROWS BETWEEN {_end(over.frame[0], 0)} AND {_end(over.frame[1], 1)}"
        window = f"{parted}{'ORDER BY ' + ', '.join(order) if order else ''}{frame}"
        value = "" if over.value is None else name(_key(over.value, dialect))
        shown.append(f"{_over(field, over, value, window, dialect)} AS {quoted(field.id)}")
    cells = [(f, dialect.canonical(quoted(f.id), f.type) if f.type == "number" else quoted(f.id)) for f in own]
    inner = [*(f"{cell} AS {quoted(f.id)}" for f, cell in cells), *(f"{text} AS {one}" for text, one in named.items())]
    rows = f"SELECT {', '.join(inner)} FROM ({rows_of(source, engine)}) AS one"
    return f"SELECT {', '.join([*(quoted(f.id) for f in own), *shown])} FROM ({rows}) AS one"


def _ordered(field: Field, dialect: Dialect) -> str:
    """A column to order by. Numbers are canonical already, and text is ordered by its bytes on every engine."""
    name = dialect.quote(field.id)
    return name if field.type == "number" else dialect.canonical(name, field.type)


def _end(distance: int | None, side: int) -> str:
    if distance is None:
        return f"UNBOUNDED {('PRECEDING', 'FOLLOWING')[side]}"
    return "CURRENT ROW" if not distance else f"{abs(distance)} {'PRECEDING' if distance < 0 else 'FOLLOWING'}"


def _over(field: Field, over: Over, value: str, window: str, dialect: Dialect) -> str:
    """One function of a window."""
    match over.word:
        case "row_number" | "rank" | "dense_rank" as word:
            return f"{word}() OVER ({window})"
        case "lag" | "lead" as word:
            return f"{word}({value}, {over.offset}) OVER ({window})"
        case "first_value" | "last_value" as word:
            return f"{word}({value}) OVER ({window})"
        case "sum":
            return dialect.sum_over(value, window)
        case "count" | "min" | "max" as word:
            kind = field.type if over.value is None else over.value.type
            return f"{dialect.of_person(word, value or '*', field.type, kind)} OVER ({window})"
    raise AssertionError(f"a window that nobody listed: {over.word}")


def _exists(test: Test, source: Relation, engine: Engine) -> str:
    """Whether some row meets the one at hand. Names of fields are unique, so the query may use those of both."""
    rows, condition = test.rows, test.condition
    lean = without_owners(Join(source, rows, condition, "left", source.person, equal_fields(source, rows, condition)))
    if isinstance(lean, Project) and isinstance(lean.source, Join):
        rows, condition = lean.source.right, lean.source.condition
    on = " AND ".join(_on(part, engine.dialect) for part in conjuncts(condition))
    return f"EXISTS (SELECT 1 FROM ({rows_of(rows, engine)}) AS other WHERE {on})"


def _marked(source: Relation, tests: tuple[Test, ...], engine: Engine) -> str:
    """Rows with what the tests say. Rows that are chosen at random are read once.

    Where an engine does not take EXISTS as a column, each test divides the rows: the same text then chooses the same
    rows, as it has a seed.
    """
    marked, quoted = rows_of(source, engine), engine.dialect.quote
    if engine.dialect.exists_as_column:
        marks = [f"{_exists(test, source, engine)} AS {quoted(test.field.id)}" for test in tests]
        return f"SELECT *, {', '.join(marks)} FROM ({marked}) AS one"
    if len(tests) > _MOST_DIVIDED:
        raise NotAllowed(
            f"This engine takes at most {_MOST_DIVIDED} IN or EXISTS with a query in one SELECT list. Write others in "
            "WHERE, or in another query in FROM.",
            code="sql-too-complex",
        )
    for test in tests:
        met, mark = _exists(test, source, engine), quoted(test.field.id)
        sides = ((met, engine.dialect.literal(True)), (f"NOT {met}", engine.dialect.literal(False)))
        parts = [f"SELECT *, {said} AS {mark} FROM ({marked}) AS one WHERE {kept}" for kept, said in sides]
        marked = " UNION ALL ".join(parts)
    return marked


def _tested(expr: Expr, tests: dict[Field, str], dialect: Dialect) -> str:
    """A condition over tests. Only its parts without them are made total: engines do not take a query there."""
    match expr:
        case Ref(field=field) if field in tests:
            return tests[field]
        case Call(op="and" | "or" | "not" | "case" as op, args=args) if not tests.keys().isdisjoint(expr.fields()):
            return _combined(op, [_tested(arg, tests, dialect) for arg in args])
    return safe(expr, dialect)


def _of_person(field: Field, word: str, expr: Expr, dialect: Dialect) -> str:
    """A key, or an aggregate of one person's rows, over at most the allowed number of rows."""
    if word == "key":
        return _key(expr, dialect)
    if word == "distinct":
        found = f"count(DISTINCT {_key(expr, dialect)})"
    else:
        found = dialect.of_person(word, safe(expr, dialect), field.type, expr.type)
    counted = word in ("count", "distinct") and field.between is not None
    return f"least({found}, {field.between[1]})" if counted and field.between is not None else found


def _key(expr: Expr, dialect: Dialect) -> str:
    """A key of one person's rows. It must not reveal which of two equal rows comes first."""
    return dialect.canonical(safe(expr, dialect), expr.type)


def _rename_columns(side: Relation, fields: tuple[Field, ...], person: Field | None, engine: Engine) -> str:
    """One side of UNION ALL, with its columns under the names of the result."""
    quoted = engine.dialect.quote
    named = list(zip(side.fields, fields, strict=True))
    if person is not None and person not in fields and side.person is not None:
        named.append((side.person, person))
    columns = ", ".join(f"{quoted(own.id)} AS {quoted(new.id)}" for own, new in named)
    return f"SELECT {columns} FROM ({rows_of(side, engine)}) AS one"


def _on(condition: Expr, dialect: Dialect) -> str:
    """An equality of columns that the engine can join by, as one type. Any other condition is made total, unless it
    compares columns of one type, which no value stops.
    """
    match condition:
        case Call(op=op, args=(Ref(field=first), Ref(field=second))) if op in _COMPARED and first.type == second.type:
            return print_expression(condition, dialect)
        case Call(op="eq", args=(Ref() as first, Ref() as second)):
            kind = "number" if "number" in (first.type, second.type) else "timestamp"
            return dialect.equal_as(print_expression(first, dialect), print_expression(second, dialect), kind)
    return safe(condition, dialect)


_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
