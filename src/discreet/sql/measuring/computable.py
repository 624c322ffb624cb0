"""Whether an engine can compute a question: its statements are tried on the same columns without a row.

What an analyst wrote is tried as a whole, in the first step of the statements. The later steps are ours. They depend on
types and public numbers alone, so they read columns of these types, and a statement that was tried for another question
is known to be fine. If an engine takes any number of columns, one measure of each sort stands for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import NoReturn, TypeVar

from discreet.engines.engine import Engine
from discreet.errors import NotAllowed
from discreet.sql.measuring.clipped import People
from discreet.sql.measuring.compile import Statement, is_plain
from discreet.sql.pricing.clipping import Basis, Clip, Clipping
from discreet.sql.question import Bounds, Measure, Question

_One = TypeVar("_One")


def check_computable(question: Question, engine: Engine, bounds: Bounds | None, *, clipped: bool = False) -> None:
    """Refuse, before anything is charged, what this engine does not support or cannot compute for these types. No row
    is read, so that a refusal reveals nothing about the rows.
    """
    blank = engine.blank()
    added = [measure for measure in question.measures if measure.is_added]
    if added and not clipped:
        few = _first_of_each(added, _sort_of) if blank.dialect.is_wide else added
        if len(few) < len(added):
            _require(blank, [Statement(replace(question, measures=tuple(added)), blank, bounds, 0).rows_prepared])
        asked = replace(question, measures=tuple(few))
        _require(blank, [Statement(asked, blank, bounds, 0, _prepared(blank, asked, bounds)).additive()])
    for measure in question.measures:
        if not measure.is_added:
            asked = replace(question, measures=(measure,))
            _require(blank, [Statement(asked, blank, bounds, 0, _prepared(blank, asked, bounds)).values(0)])


def check_clippable(question: Question, engine: Engine, clipping: Clipping) -> None:
    """The same for a question whose people are clipped."""
    blank, number = engine.blank(), len(clipping.basis.measures)
    example = clipping.example()
    few, clip = _few(clipping, example) if blank.dialect.is_wide else (clipping, example)
    if len(few.basis.measures) < number:
        _require(blank, [People(question, blank, clipping).rows_prepared])
    whole = People(question, blank, few, number=number)
    prepared = _computed(blank, whole.rows_prepared)
    pairs = _computed(blank, People(question, blank, few, number=number, prepared=prepared).pairs())
    people = People(question, blank, few, pairs, number=number)
    _require(blank, [people.copied().norms(), people.copied().clipped(clip)])
    if clipping.may_be_gaussian:
        _require(blank, [people.copied().roots(clip), people.copied().clipped(replace(clip, norm="L1"))])


def _few(clipping: Clipping, clip: Clip) -> tuple[Clipping, Clip]:
    """One number of each sort, and its kind."""
    basis = clipping.basis
    sorts = [
        (_sort_of(measure), minus is None, *steps)
        for measure, minus, *steps in zip(basis.measures, basis.minus, clip.shifts, clip.factors, strict=True)
    ]
    places = _first_of_each(range(len(sorts)), sorts.__getitem__)
    kinds = list(dict.fromkeys(basis.kinds[place] for place in places))

    def chosen(parts: Sequence[_One]) -> tuple[_One, ...]:
        return tuple(parts[place] for place in places)

    numbered = tuple(kinds.index(kind) for kind in chosen(basis.kinds))
    fewer = Basis(chosen(basis.measures), chosen(basis.minus), numbered, {})
    limits = tuple(clipping.limits[kind] for kind in kinds)
    clip = replace(clip, sizes=chosen(clip.sizes), shifts=chosen(clip.shifts), factors=chosen(clip.factors))
    return replace(clipping, basis=fewer, limits=limits), clip


def _sort_of(measure: Measure) -> Hashable:
    """All of a measure that its steps depend on, after the one that computes its value and its condition."""
    value = None if measure.value is None else measure.value.type
    flag = None if measure.where is None else "plain" if is_plain(measure) else "flag"
    return measure.kind, value, flag, measure.center, measure.step, measure.lowest, measure.highest, measure.power


def _first_of_each(parts: Iterable[_One], sort_of: Callable[[_One], Hashable]) -> list[_One]:
    firsts: dict[Hashable, _One] = {}
    for part in parts:
        firsts.setdefault(sort_of(part), part)
    return list(firsts.values())


def _prepared(blank: Engine, question: Question, bounds: Bounds | None) -> str:
    """The columns that the measures of a question are computed from."""
    return _computed(blank, Statement(question, blank, bounds, 0).rows_prepared)


def _computed(blank: Engine, statement: str) -> str:
    found = blank.computed(statement)
    return _refuse() if found is None else found


def _require(blank: Engine, statements: Iterable[str]) -> None:
    if not all(blank.computes(statement) for statement in statements):
        _refuse()


def _refuse() -> NoReturn:
    raise NotAllowed(
        "The engine cannot compute this for columns of these types. Nothing was charged. Cast the arguments of "
        "functions to the types they need, or ask in a simpler way.",
        code="sql-not-computable",
    )
