"""JOIN, and tables listed with commas: how they become one relation, and to whom its rows belong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from sqlglot import exp

from discreet.sql.expressions import Expr, Field, Ref, call, conjuncts, fits
from discreet.sql.pricing.relation import Few, Join, Names, Pairs, Project, Relation, equal_fields, most_with
from discreet.sql.reading.parse import Text, unread_arguments
from discreet.sql.reading.scope import Scope
from discreet.sql.reading.values.domains import Work, like
from discreet.sql.schema import AUTO, Schema

_Kind = Literal["inner", "left", "full"]
_KINDS: dict[str, _Kind] = {"": "inner", "LEFT": "left", "RIGHT": "left", "FULL": "full"}
"""The kinds of joins. A RIGHT JOIN is a LEFT JOIN of the sides in the other order."""


class Joins:
    """Reads joins against a schema."""

    def __init__(self, sql: Text, schema: Schema, names: Names, work: Work) -> None:
        self.sql, self.schema, self.names, self.work = sql, schema, names, work

    def linked(self, left: Scope, right: Scope, node: exp.Join, where: exp.Where | None) -> bool:
        """Whether a table can be joined next: among tables listed with commas, one that WHERE links to the others."""
        return not _is_listed(node) or bool(self._links(left, right, where))

    def _links(self, left: Scope, right: Scope, where: exp.Where | None) -> list[exp.EQ]:
        """The WHERE conditions that set a column of one side equal to a column of the other."""
        equal = [c for c in ([] if where is None else _sure(where.this)) if isinstance(c, exp.EQ)]
        return [
            c
            for c in equal
            if (left.has(c.this) and right.has(c.expression)) or (right.has(c.this) and left.has(c.expression))
        ]

    def joined(self, left: Scope, node: exp.Join, right: Scope, where: exp.Where | None) -> Scope:
        """What a query sees after one more join."""
        side, kind = (str(node.args.get(name) or "").upper() for name in ("side", "kind"))
        unread = unread_arguments(node, "this", "on", "using", "side", "kind")
        if unread or side not in _KINDS or kind not in ("", "INNER") + (("OUTER",) if side else ()):
            self.sql.refuse(
                node,
                f"This kind of join is not supported ({(side + ' ' + kind).strip() or 'join'}).",
                "Use JOIN, LEFT JOIN, RIGHT JOIN or FULL JOIN, with ON or USING.",
                code="sql-join-kind",
            )
        if set(left.names) & set(right.names):
            what = "Two tables have the same name here. Give one of them another name with AS."
            self.sql.unknown(node, what, code="sql-same-name")
        both = Scope(self.sql, left.relation, {**left.names, **right.names})
        conditions = [self._same(left, right, name) for name in node.args.get("using") or []]
        written = self._links(left, right, where) if _is_listed(node) else [node.args.get("on")]
        conditions += [both.condition(condition) for condition in written if condition is not None]
        if not conditions:
            what = "A join without a condition is not supported."
            self.sql.refuse(node, what, "Write what must be equal, with ON.", code="sql-join-condition")
        condition = conditions[0] if len(conditions) == 1 else call("and", *conditions)
        sides = (right.relation, left.relation) if side == "RIGHT" else (left.relation, right.relation)
        relation: Relation = self._meeting(*sides, condition, _KINDS[side], node)
        if not node.args.get("using"):
            return Scope(self.sql, relation, both.names)
        # from here on the joined columns are one column: the one of the left side, or of the side that is kept
        shared = {name.name.lower() for name in node.args["using"]}
        if side == "FULL":
            merged = [self._either(relation, left, right, name) for name in node.args["using"]]
            columns = (*((field, Ref(field)) for field in relation.fields), *merged)
            relation = Project(relation, columns, relation.person)
            named = {"": {field.name.lower(): field for field, _ in merged}}
            return Scope(self.sql, relation, {**named, **_without(left, shared), **_without(right, shared)})
        if side == "RIGHT":
            return Scope(self.sql, relation, {**_without(left, shared), **right.names})
        return Scope(self.sql, relation, {**left.names, **_without(right, shared)})

    def _either(self, relation: Relation, left: Scope, right: Scope, name: Any) -> tuple[Field, Expr]:
        """A column of USING in a full join: the value of the side that has one."""
        column = exp.column(name.name)
        first, second = left.lookup(column), right.lookup(column)
        # the key of a unit in one block of time is no value of the column
        owned = relation.person is not None and self.schema.unit.per is None
        if owned and self._lead(first, second) and self.schema.leads(first.origin) == "person":
            assert relation.person is not None
            known = replace(relation.person, name=name.name)
            return self.names.fresh(name.name, known), Ref(relation.person)
        value = call("coalesce", Ref(first), Ref(second))
        origin = first.origin if self._lead(first, second) else None
        return self.names.fresh(name.name, replace(like(value, self.work), origin=origin)), value

    def _same(self, left: Scope, right: Scope, name: Any) -> Expr:
        column = exp.column(name.name)
        pair = Ref(left.lookup(column)), Ref(right.lookup(column))
        if not fits("eq", pair):
            what = f"{name.name} has different types on the two sides. Cast one in a query in FROM."
            self.sql.unknown(name, what, code="sql-types")
        return call("eq", *pair)

    def _meeting(self, left: Relation, right: Relation, condition: Expr, kind: _Kind, node: exp.Join) -> Join:
        """Two relations joined. Raises if a row could belong to two people, or to nobody."""
        outer = kind != "inner"
        pairs = equal_fields(left, right, condition)
        if self.schema.unit.column is None:
            pairs = tuple((a, b) for a, b in pairs if a.type == b.type)  # a cast could make different keys equal
        if not pairs:
            self.sql.refuse(
                node,
                "A join needs an equality between columns of the two sides, of one type.",
                "Write ON a.city = b.city.",
                code="sql-join-condition",
            )
        if (left.public and not right.public and outer) or (right.public and kind == "full"):
            what = "A join that keeps public rows without a match is not supported."
            self.sql.refuse(node, what, "Write FROM private LEFT JOIN public, or JOIN.", code="sql-left-join")
        if left.public or right.public:
            return Join(left, right, condition, kind, left.person or right.person, pairs)
        if left.person is None or right.person is None:
            if outer:
                what = "Where rows are protected one by one, only JOIN of private tables is supported."
                self.sql.refuse(node, what, "Write JOIN.", code="sql-left-join")
            first, second = self._frequent(pairs, node)
            return Join(_few(left, first), _few(right, second), condition, kind, None, ((first, second),))
        self.check_type_of_person(left.person, right.person, node)
        if not self.of_one_person(left.person, right.person, pairs):
            self.sql.refuse(
                node,
                "Two private tables must be joined on the person, or on a key that leads to one (through in the "
                "policy), so that every row belongs to one person.",
                f"Add AND a.{left.person.name or 'person'} = b.{right.person.name or 'person'} to ON.",
                code="sql-join-person",
            )
        condition = self.of_person(left.person, right.person, pairs, condition)
        if kind != "full":
            return Join(left, right, condition, kind, left.person, pairs)
        if len(conjuncts(condition)) > len({*pairs, (left.person, right.person)}):
            what = "A FULL JOIN takes equalities of columns only."
            self.sql.refuse(node, what, "Put other conditions into queries in FROM.", code="sql-join-condition")
        return Join(left, right, condition, kind, self.names.fresh("", left.person), pairs)

    def check_type_of_person(self, first: Field, second: Field, node: exp.Expression) -> None:
        """Refuse to compare people of two types."""
        if first.type != second.type:
            self.sql.refuse(
                node,
                "The person's column has different types on the two sides, and a cast could make two people one.",
                "Store it with the same type in both tables.",
                code="sql-join-person",
            )

    def of_one_person(self, first: Field, second: Field, pairs: Pairs) -> bool:
        """Whether rows that agree in these pairs have the same person, or a key of the same person."""
        return (first, second) in pairs or any(self._lead(*pair) for pair in pairs)

    def of_person(self, first: Field, second: Field, pairs: Pairs, condition: Expr) -> Expr:
        """A condition that also sets the two people equal: a key may have two owners."""
        if (first, second) in pairs:
            return condition
        return call("and", condition, call("eq", Ref(first), Ref(second)))

    def _lead(self, first: Field, second: Field) -> bool:
        """Whether two columns are keys of the same person."""
        known = self.schema.leads(first.origin)
        return known is not None and known == self.schema.leads(second.origin)

    def _frequent(self, pairs: Pairs, node: exp.Join) -> tuple[Field, Field]:
        """The keys of a join between rows that are protected one by one: those with declared frequencies."""
        known = [(a, b) for a, b in pairs if a.frequency is not None and b.frequency is not None]
        if not known:
            self.sql.refuse(
                node,
                "Where rows are protected one by one, a join could repeat a row without limit.",
                'Declare how many rows share a key, frequency = 10 or "auto" for both columns in the policy, '
                "or protect people.",
                code="sql-join-frequency",
            )
        return min(known, key=lambda pair: tuple(map(_most, pair)))


def _without(scope: Scope, names: set[str]) -> dict[str, dict[str, Field]]:
    """The names of a scope without these columns."""
    return {alias: {n: f for n, f in fields.items() if n not in names} for alias, fields in scope.names.items()}


def _sure(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that hold whenever this one does: all parts of an AND, and what every branch of an OR has in
    common.
    """
    node = node.unnest()
    if isinstance(node, exp.And):
        return [*_sure(node.this), *_sure(node.expression)]
    if isinstance(node, exp.Or):
        others = _sure(node.expression)
        return [condition for condition in _sure(node.this) if condition in others]
    return [node]


def _is_listed(node: exp.Join) -> bool:
    """Whether a table is listed with a comma, so that its condition is in WHERE."""
    return not any(node.args.get(name) for name in ("on", "using", "side", "kind", "method"))


def _most(key: Field) -> int:
    """How many rows may share a key. 1 until that is found."""
    return 1 if key.frequency in (AUTO, None) else int(key.frequency)


def _few(side: Relation, key: Field) -> Relation:
    """A side of a join, with the allowed number of rows per key. Joining two such sides multiplies the numbers."""
    return (
        side
        if most_with(side, key) is not None
        else Few(side, key, _most(key), key.origin if key.frequency == AUTO else None)
    )
