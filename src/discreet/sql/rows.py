"""Expressions and relations in the engine's words: only what is listed is printed, and no row can stop it."""

from __future__ import annotations

from discreet.engines import words as engine
from discreet.sql.expressions import Call, Const, Expr, Field, Ref, conjuncts
from discreet.sql.relation import Both, Few, Filter, Join, Led, PerPerson, Project, Relation, Scan


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
        case Led(scan=scan, key=key, owners=owners, owners_key=owners_key, person=person) if owners.person is not None:
            owner, found = engine.quoted(owners.person.id), engine.quoted(owners_key.id)
            who = f"SELECT DISTINCT {found}, {owner} AS {engine.quoted(person.id)} FROM ({rows_of(owners, sources)})"
            columns = ", ".join(engine.quoted(field.id) for field in (*scan.fields, person))
            on = f"{engine.quoted(key.id)} = {found}"
            return f"SELECT {columns} FROM ({rows_of(scan, sources)}) JOIN ({who}) ON {on}"
        case Few(source=source, key=key, most=most):
            return engine.few_of_each(rows_of(source, sources), engine.quoted(key.id), most)
        case Both(left=left, right=right, fields=fields, person=person):
            return " UNION ALL ".join(_renamed(side, fields, person, sources) for side in (left, right))
        case Filter(source=source, condition=condition):
            return f"SELECT * FROM ({rows_of(source, sources)}) WHERE {safe(condition)}"
        case Project(source=source, columns=columns, person=person):
            shown = [f"{safe(expr)} AS {engine.quoted(field.id)}" for field, expr in columns]
            if person is not None and source.person is not None and person not in relation.fields:
                shown.append(f"{engine.quoted(source.person.id)} AS {engine.quoted(person.id)}")
            return f"SELECT {', '.join(shown)} FROM ({rows_of(source, sources)})"
        case PerPerson(source=source, keys=keys, columns=columns, person=person) if source.person is not None:
            whose = engine.quoted(source.person.id)
            shown = [f"{_of_person(*column)} AS {engine.quoted(column[0].id)}" for column in columns]
            if person is not None and person not in relation.fields:
                shown.append(f"{whose} AS {engine.quoted(person.id)}")
            parted = [safe(key) for key in keys if not isinstance(key, Const)]  # a constant would be read as a place
            group = ", ".join(dict.fromkeys([whose, *parted]))
            return f"SELECT {', '.join(shown)} FROM ({rows_of(source, sources)}) GROUP BY {group}"
        case Join(left=left, right=right, condition=condition, kind=kind):
            join = "LEFT JOIN" if kind == "left" else "JOIN"
            on = " AND ".join(map(_on, conjuncts(condition)))
            return f"SELECT * FROM ({rows_of(left, sources)}) {join} ({rows_of(right, sources)}) ON {on}"
    raise AssertionError(f"a relation that nobody listed: {type(relation).__name__}")


def _of_person(field: Field, word: str, expr: Expr) -> str:
    """A key, or an aggregate of one person's rows; as many of them are counted as one may have."""
    if word == "key":
        return safe(expr)
    found = engine.of_person(word, safe(expr), field.type)
    return f"least({found}, {field.between[1]})" if word == "count" and field.between is not None else found


def _renamed(side: Relation, fields: tuple[Field, ...], person: Field | None, sources: dict[str, str]) -> str:
    """A side of UNION ALL, its columns under the names of the whole."""
    named = list(zip(side.fields, fields, strict=True))
    if person is not None and person not in fields and side.person is not None:
        named.append((side.person, person))
    columns = ", ".join(f"{engine.quoted(own.id)} AS {engine.quoted(new.id)}" for own, new in named)
    return f"SELECT {columns} FROM ({rows_of(side, sources)})"


def _on(condition: Expr) -> str:
    """An equality of columns for the engine to join by, as one type; anything else made total."""
    match condition:
        case Call(op="eq", args=(Ref(field=first), Ref(field=second))) if first.type == second.type:
            return printed(condition)
        case Call(op="eq", args=(Ref() as first, Ref() as second)):
            kind = "DOUBLE" if "number" in (first.type, second.type) else "TIMESTAMP"
            return f"(TRY_CAST({printed(first)} AS {kind}) = TRY_CAST({printed(second)} AS {kind}))"
    return safe(condition)
