"""The keys of each person, for a choice of the groups that enough people are in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from discreet.engines.engine import Engine
from discreet.exact.randomness import random_integer
from discreet.mechanisms.selection.key_holders import PersonKeys
from discreet.sql.measuring.compile import Statement
from discreet.sql.question import Measure, Question


class _Keys(Statement):
    """The different keys of each person."""

    def __init__(self, question: Question, engine: Engine, seed: int) -> None:
        super().__init__(replace(question, measures=(Measure("count"),), aggregates=()), engine, None, seed)

    def ranked(self, most: int) -> str:
        """The keys of each person, at most so many, chosen at random, one person after the other. No names are
        shown: the first key of a person has the place 1. If rows are protected, each row counts as a person.
        """
        if self.question.relation.person is None:
            return self._query(f"SELECT {', '.join(self.keys)}, 1 AS place FROM {self.rows}")
        shown = ", ".join(["person", *self.keys])
        place = self.dialect.random_rank("person", self.keys, self.seed)
        self.steps += [
            ("pairs", f"SELECT DISTINCT {shown} FROM {self.rows}"),
            ("ranked", f"SELECT {shown}, {place} AS place FROM pairs"),
        ]
        listed = ", ".join([*self.keys, "place"])
        return self._query(f"SELECT {listed} FROM ranked WHERE place <= {most} ORDER BY person, place")


def read_person_keys(question: Question, engine: Engine, most: int) -> PersonKeys:
    """Who has which keys, as codes, and the key that each code stands for."""
    found = engine.table(_Keys(question, engine, random_integer(62)).ranked(most))
    people = np.cumsum(np.asarray(found.column("place").to_numpy()) == 1)
    codes, values = np.zeros(found.num_rows, dtype=np.int64), [()]
    for number in range(len(question.keys)):
        column = found.column(f"k{number}").combine_chunks().dictionary_encode(null_encoding="encode")
        own = column.dictionary.to_pylist()
        codes, values = _paired(codes, values, np.asarray(column.indices.to_numpy(zero_copy_only=False)), own)
    return PersonKeys(people=people, codes=codes, keys=values)


def _paired(codes: Any, values: list[Any], more: Any, own: list[Any]) -> tuple[Any, list[Any]]:
    """Codes of pairs: of what was coded so far, and of the values of one more column."""
    both, found = np.unique(codes * max(len(own), 1) + more, return_inverse=True)
    pairs = [divmod(int(one), max(len(own), 1)) for one in both]
    return found.reshape(-1), [(*values[first], own[second]) for first, second in pairs]
