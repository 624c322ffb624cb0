"""Expressions and relations in the engine's dialect. Only listed operations are printed, and no row can stop a
statement.
"""

from __future__ import annotations

from discreet.engines.dialect import Dialect
from discreet.engines.engine import Engine
from discreet.sql.expressions import Call, Const, Expr, Field, Ref, Window, conjuncts
from discreet.sql.pricing.relation import Both, Few, Join, Led, PerPerson, Project, Relation, Scan, Where
from discreet.sql.running.owners import without_owners


def print_expression(expr: Expr, dialect: Dialect) -> str:
    """An expression in the engine's dialect."""
    inner = [print_expression(arg, dialect) for arg in expr.args] if isinstance(expr, Call) else []
    match expr:
        case Ref(field=field):
            return dialect.quote(field.id)
        case Const(value=value):
            return dialect.literal(value)
        case Call(op="and" | "or" as op):
            return f"({f' {op.upper()} '.join(inner)})"
        case Call(op="in"):
            return f"({inner[0]} IN ({', '.join(inner[1:])}))"
        case Call(op="case"):
            whens = zip(inner[:-1:2], inner[1:-1:2], strict=True)
            branches = " ".join(f"WHEN {when} THEN {then}" for when, then in whens)
            return f"CASE {branches} ELSE {inner[-1]} END"
        case Call(op="released", detail=name):
            return f"{name}({', '.join(inner)})"
        case Call(op="subtract", args=(first, second)) if first.type in ("date", "timestamp"):
            return dialect.operation("days_between", inner[::-1], (second.type, first.type), "integer")
        case Call(op=op, args=args, type=kind, detail=detail):
            return dialect.operation(op, inner, [arg.type for arg in args], kind, detail)
    raise AssertionError(f"an expression that nobody listed: {type(expr).__name__}")


def print_window(window: Window, dialect: Dialect) -> str:
    """A window function. It stands alone: engines do not take one inside an expression that is NULL where it fails."""
    args = ", ".join(safe(arg, dialect) for arg in window.args) or ("*" if window.function == "count" else "")
    parts = ", ".join(safe(part, dialect) for part in window.partition)
    over = [f"PARTITION BY {parts}"] if parts else []
    order = ", ".join(f"{safe(one.expr, dialect)} {one.way}" for one in window.order)
    over += [f"ORDER BY {order}"] if order else []
    return f"{window.function}({args}) OVER ({' '.join([*over, window.detail]).strip()})"


def safe(expr: Expr, dialect: Dialect) -> str:
    """An expression that is NULL where it cannot be computed."""
    text = print_expression(expr, dialect)
    return text if isinstance(expr, Ref | Const) else dialect.total(text)


def rows_of(relation: Relation, engine: Engine) -> str:
    """A relation as a query."""
    dialect, quoted = engine.dialect, engine.dialect.quote
    match relation:
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
        case Where(source=source, condition=condition):
            # one by one, so that the engine can apply each before a join
            parts = " AND ".join(safe(part, dialect) for part in conjuncts(condition))
            return f"SELECT * FROM ({rows_of(source, engine)}) AS one WHERE {parts}"
        case Project(source=source, columns=columns, person=person):
            shown = [f"{safe(expr, dialect)} AS {quoted(field.id)}" for field, expr in columns]
            if person is not None and source.person is not None and person not in relation.fields:
                shown.append(f"{quoted(source.person.id)} AS {quoted(person.id)}")
            rows = rows_of(source, engine)
            computed = isinstance(source, Project) and any(isinstance(expr, Call) for _, expr in source.columns)
            return f"SELECT {', '.join(shown)} FROM ({dialect.fenced(rows) if computed else rows}) AS one"
        case PerPerson(source=source, keys=keys, columns=columns, person=person) if source.person is not None:
            whose = quoted(source.person.id)
            shown = [f"{_of_person(*column, dialect)} AS {quoted(column[0].id)}" for column in columns]
            if person is not None and person not in relation.fields:
                shown.append(f"{whose} AS {quoted(person.id)}")
            # a constant would be read as a position
            parted = [_key(key, dialect) for key in keys if not isinstance(key, Const)]
            group = ", ".join(dict.fromkeys([whose, *parted]))
            return f"SELECT {', '.join(shown)} FROM ({rows_of(source, engine)}) AS one GROUP BY {group}"
        case Join(left=left, right=right, condition=condition, kind=kind):
            lean = without_owners(relation)
            if lean is not relation:
                return rows_of(lean, engine)
            join = "LEFT JOIN" if kind == "left" else "JOIN"
            on = " AND ".join(_on(part, dialect) for part in conjuncts(condition))
            sides = f"({rows_of(left, engine)}) AS one {join} ({rows_of(right, engine)}) AS other"
            return f"SELECT * FROM {sides} ON {on}"
    raise AssertionError(f"a relation that nobody listed: {type(relation).__name__}")


def _of_person(field: Field, word: str, expr: Expr, dialect: Dialect) -> str:
    """A key, or an aggregate of one person's rows, over at most the allowed number of rows."""
    if word == "key":
        return _key(expr, dialect)
    found = dialect.of_person(word, safe(expr, dialect), field.type, expr.type)
    return f"least({found}, {field.between[1]})" if word == "count" and field.between is not None else found


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
    """An equality of columns that the engine can join by, as one type. Any other condition is made total."""
    match condition:
        case Call(op="eq", args=(Ref(field=first), Ref(field=second))) if first.type == second.type:
            return print_expression(condition, dialect)
        case Call(op="eq", args=(Ref() as first, Ref() as second)):
            kind = "number" if "number" in (first.type, second.type) else "timestamp"
            return dialect.equal_as(print_expression(first, dialect), print_expression(second, dialect), kind)
    return safe(condition, dialect)
