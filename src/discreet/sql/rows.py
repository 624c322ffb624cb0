"""Expressions and relations in the engine's words: only what is listed is printed, and no row can stop it."""

from __future__ import annotations

from discreet.engines import duckdb as engine
from discreet.sql.expressions import Call, Const, Expr, Ref
from discreet.sql.relation import Filter, Join, Project, Relation, Scan


def printed(expr: Expr) -> str:
    """An expression in the engine's words."""
    match expr:
        case Ref(field=field):
            return engine.quoted(field.id)
        case Const(value=value):
            return engine.literal(value)
        case Call(op="and" | "or" as op, args=args):
            return f"({f' {op.upper()} '.join(map(printed, args))})"
        case Call(op="in", args=(first, *others)):
            return f"({printed(first)} IN ({', '.join(map(printed, others))}))"
        case Call(op="case", args=args):
            whens = zip(args[:-1:2], args[1:-1:2], strict=True)
            branches = " ".join(f"WHEN {printed(when)} THEN {printed(then)}" for when, then in whens)
            return f"CASE {branches} ELSE {printed(args[-1])} END"
        case Call(op="subtract", args=(first, second)) if first.type in ("date", "timestamp"):
            return engine.WORDS["days_between"].format(printed(second), printed(first))
        case Call(op=op, args=args, detail=detail):
            texts = [printed(arg) for arg in args]
            return engine.WORDS[op].format(*texts, all=", ".join(texts), detail=detail)
    raise AssertionError(f"an expression that nobody listed: {type(expr).__name__}")


def safe(expr: Expr) -> str:
    """An expression that is NULL where it cannot be computed."""
    return printed(expr) if isinstance(expr, Ref | Const) else engine.total(printed(expr))


def rows_of(relation: Relation, sources: dict[str, str]) -> str:
    """A relation as a query."""
    match relation:
        case Scan(table=table, fields=fields):
            columns = ", ".join(f"{engine.quoted(f.name)} AS {engine.quoted(f.id)}" for f in fields)
            return f"SELECT {columns} FROM {sources[table.name]}"
        case Filter(source=source, condition=condition):
            return f"SELECT * FROM ({rows_of(source, sources)}) WHERE {safe(condition)}"
        case Project(source=source, columns=columns, person=person):
            shown = [f"{safe(expr)} AS {engine.quoted(field.id)}" for field, expr in columns]
            if person is not None and source.person is not None and person not in relation.fields:
                shown.append(f"{engine.quoted(source.person.id)} AS {engine.quoted(person.id)}")
            return f"SELECT {', '.join(shown)} FROM ({rows_of(source, sources)})"
        case Join(left=left, right=right, condition=condition, kind=kind):
            join = "LEFT JOIN" if kind == "left" else "JOIN"
            on = " AND ".join(map(_on, conjuncts(condition)))
            return f"SELECT * FROM ({rows_of(left, sources)}) {join} ({rows_of(right, sources)}) ON {on}"
    raise AssertionError(f"a relation that nobody listed: {type(relation).__name__}")


def conjuncts(condition: Expr) -> list[Expr]:
    """The conditions that must all hold."""
    if isinstance(condition, Call) and condition.op == "and":
        return [part for arg in condition.args for part in conjuncts(arg)]
    return [condition]


def _on(condition: Expr) -> str:
    """A plain equality as it is, for the engine to join by; anything else made total."""
    plain = isinstance(condition, Call) and condition.op == "eq" and all(isinstance(a, Ref) for a in condition.args)
    return printed(condition) if plain else safe(condition)
