"""Workloads: every answer row by row, every sensitivity by brute force over all tiny databases."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.errors import InvalidArgument
from discreet.guarantees.unit import RELATIONS, person, row
from discreet.queries import Categories, Domain, Query, Workload

from ..refusing import refuses

DOMAIN = Domain({"age": 3, "sex": ("f", "m"), "one": 1})
ROWS = [(0, "f", 0), (2, "f", 0), (2, "m", 0), (1, "m", 0)]
OUTSIDE = [(7, "f", 0), (0, "x", 0), (None, "f", 0), (0.5, "m", 0), ("a", "m", 0), (True, None, 0)]

WORKLOADS = {
    "one-way": Workload.marginals(DOMAIN, 1),
    "two-way": Workload.marginals(DOMAIN, 2),
    "given sets": Workload.marginals(DOMAIN, [("sex", "age"), ()]),
    "thresholds": Workload.thresholds(DOMAIN, "age"),
    "orthants": Workload(domain=DOMAIN, sets=(("age", "sex"), ("sex",)), kind="prefixes"),
    "conjunctions": Workload.conjunctions(DOMAIN, [{"sex": "f"}, {"sex": "m", "age": 2}, {"sex": "m"}, {}]),
}
each = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)


def counted_by_hand(workload: Workload, rows: list[Any]) -> list[int]:
    """Each answer from the definition: how many rows of the domain satisfy the query."""
    answers = []
    for index in range(len(workload)):
        names, places = workload.query(index)
        asked = [
            (workload.domain.names.index(n), workload.domain.values(n), p) for n, p in zip(names, places, strict=True)
        ]
        hits = 0
        for line in rows:
            inside = all(line[i] in workload.domain.values(name) for i, name in enumerate(workload.domain.names))
            codes = [(list(values).index(line[i]), p) for i, values, p in asked] if inside else []
            hits += inside and all(c <= p if workload.kind == "prefixes" else c == p for c, p in codes)
        answers.append(hits)
    return answers


@each
@pytest.mark.parametrize("rows", [[], ROWS, ROWS * 3 + OUTSIDE, OUTSIDE], ids=["empty", "plain", "mixed", "outside"])
def test_answers_are_the_counts(workload: Workload, rows: list[Any]) -> None:
    """[L3.CQ]: every counting query of a workload, row by row."""
    assert isinstance(workload, Query)
    found = workload.answers(rows)
    assert found.dtype == np.int64
    assert found.tolist() == counted_by_hand(workload, rows) == workload(rows).tolist()
    histogram = DOMAIN.histogram(rows)
    assert workload.answers(histogram=histogram).tolist() == found.tolist()
    assert [int(histogram[workload.indicator(i)].sum()) for i in range(len(workload))] == found.tolist()
    if workload.kind != "conjunctions":
        assert len(workload) == sum(table.size for table in workload.tables(rows))


def test_one_answer_for_all_forms_of_data() -> None:
    workload, names = WORKLOADS["two-way"], DOMAIN.names
    columns: dict[str, list[Any]] = {name: [line[i] for line in ROWS] for i, name in enumerate(names)}
    expected = workload.answers(ROWS).tolist()
    for data in (columns, pa.table(columns), np.array(ROWS, dtype=object), iter(ROWS)):
        assert workload.answers(data).tolist() == expected
    coded = Domain({"a": 3, "b": 2})
    matrix = np.array([[0, 1], [2, 0], [3, 0], [-1, 1]], dtype=np.int8)
    assert coded.histogram(matrix).tolist() == [[0, 1], [0, 0], [1, 0]]
    assert coded.histogram(matrix.astype(np.uint64)).tolist() == coded.histogram(matrix.astype(float)).tolist()
    assert Domain({"a": 3}).histogram([2, 1, 2]).tolist() == [0, 1, 2]
    assert Domain({"a": 3}).histogram([float("nan"), float("inf"), 1, 2**70]).tolist() == [0, 1, 0]
    with_other = Domain({"city": Categories(("Haifa", "else"), other="else")})
    assert with_other.histogram(["Haifa", "Lipica", None]).tolist() == [1, 2]


def test_labels_and_order() -> None:
    assert WORKLOADS["given sets"].labels[:3] == ("sex = f, age = 0", "sex = f, age = 1", "sex = f, age = 2")
    assert WORKLOADS["given sets"].label(6) == "all"
    assert WORKLOADS["thresholds"].labels == ("age ≤ 0", "age ≤ 1", "age ≤ 2")
    assert WORKLOADS["conjunctions"].labels == ("sex = f", "age = 2, sex = m", "sex = m", "all")
    assert WORKLOADS["two-way"].sets == (("age", "sex"), ("age", "one"), ("sex", "one"))


@each
@pytest.mark.parametrize("norm", ["L1", "L2", "Linf"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_sensitivity(workload: Workload, norm: Any, relation: Any, neighbors: Any, largest: Any) -> None:
    """A replaced row may leave the domain, or come into it."""
    domain = [*itertools.product(range(3), "fm", (0,)), (9, "f", 0)]
    pairs = neighbors(domain, 1, relation, exchange=True)
    seen = largest(lambda rows: [Fraction(int(n)) for n in workload.answers(rows)], pairs, norm)
    stated = workload.sensitivity(row(neighbors=relation), norm=norm)
    assert (stated.dimension, stated.grain, stated.norm) == (len(workload), 1, norm)
    assert stated.monotone == (relation == "add_or_remove")
    amount = stated.squared_in_steps(1) if norm == "L2" else stated.exact
    if workload.kind == "conjunctions":
        assert seen <= amount <= seen + 1
    else:
        assert amount == seen


def test_sensitivity_of_a_person(neighbors: Any, largest: Any) -> None:
    domain = Domain({"a": 2})
    for workload, relation in itertools.product((Workload.marginals(domain, 1), Workload.prefixes(domain)), RELATIONS):
        seen = largest(lambda rows, w=workload: w.answers(rows).tolist(), neighbors((0, 1, 5), 1, relation, 2), "L1")
        assert workload.sensitivity(person("id", neighbors=relation), 2).exact == seen


def test_a_repeated_conjunction_counts_twice() -> None:
    twice = Workload.conjunctions(DOMAIN, [{"sex": "f"}, {"sex": "f"}])
    assert twice.sensitivity(row()).exact == 2
    assert twice.answers(ROWS).tolist() == [2, 2]


def test_large_domains_have_no_dense_table() -> None:
    wide = Domain({f"c{i}": 100 for i in range(12)})
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 100, (1000, 12))
    workload = Workload.marginals(wide, 2)
    assert wide.size == 10**24
    assert len(workload) == 66 * 10**4
    assert workload.answers(rows).sum() == 66_000
    assert workload.sensitivity(row(), norm="L2").exact ** 2 >= 66
    for refused in (
        lambda: wide.histogram(rows),
        lambda: workload.indicator(0),
        lambda: Workload.marginals(wide, 5)(rows),
    ):
        with refuses(InvalidArgument, "too-large"):
            refused()


def test_one_point() -> None:
    single = Domain({"a": ("x",)})
    for workload in (Workload.marginals(single, 1), Workload.prefixes(single)):
        assert workload.answers(["x", "x", "y"]).tolist() == [2]
        assert [workload.sensitivity(row(neighbors=r)).exact for r in RELATIONS] == [1, 1]


def test_domains_are_values() -> None:
    again = eval(repr(WORKLOADS["two-way"]), {"Domain": Domain, "Workload": Workload})
    assert again == WORKLOADS["two-way"]
    assert hash(again) == hash(WORKLOADS["two-way"])
    assert pickle.loads(pickle.dumps(DOMAIN)) == DOMAIN != Domain({"age": 3})
    with pytest.raises(AttributeError):
        DOMAIN.names = ()
    codes = DOMAIN.codes(ROWS)
    assert list(zip(*DOMAIN.decode(codes).values(), strict=True)) == ROWS
    assert DOMAIN.project(("sex", "age")).shape == (2, 3)


SECRET = "a private value"


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Domain({}),
        lambda: Domain({"a": 0}),
        lambda: Domain({"a": 2.5}),
        lambda: Domain({"a": ("x", "x")}),
        lambda: Domain({"a": "text"}),
        lambda: Domain({"": 2}),
        lambda: Workload.marginals(DOMAIN, 4),
        lambda: Workload.marginals(DOMAIN, -1),
        lambda: Workload.marginals(DOMAIN, "age"),
        lambda: Workload.marginals(DOMAIN, ["age"]),
        lambda: Workload.marginals(DOMAIN, [("nope",)]),
        lambda: Workload.marginals(DOMAIN, [("age", "age")]),
        lambda: Workload.marginals(DOMAIN, [("age",), ("age",)]),
        lambda: Workload.prefixes(DOMAIN),
        lambda: Workload.conjunctions(DOMAIN, [{"sex": "x"}]),
        lambda: Workload.conjunctions(DOMAIN, ["sex"]),
        lambda: Workload.conjunctions(DOMAIN, []),
        lambda: Workload(domain=DOMAIN, sets=(("age",),), kind="other"),
        lambda: Workload(domain=DOMAIN, sets=(("age",),), kind="conjunctions", chosen=(3,)),
        lambda: Workload(domain=DOMAIN, sets=(("age",),), kind="conjunctions"),
        lambda: WORKLOADS["one-way"].answers(),
        lambda: WORKLOADS["one-way"].answers(histogram=[1, 2]),
        lambda: WORKLOADS["one-way"].answers({"age": [SECRET]}),
        lambda: WORKLOADS["one-way"].answers({"age": [SECRET], "sex": [], "one": [0]}),
        lambda: WORKLOADS["one-way"].answers(np.zeros((1, 2))),
        lambda: WORKLOADS["one-way"].query(99),
        lambda: WORKLOADS["one-way"].sensitivity(row(), norm="L3"),
    ],
)
def test_bad_input(bad: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        bad()
    assert SECRET not in str(caught.value)


def test_a_row_of_another_width_counts_nowhere() -> None:
    whole = WORKLOADS["one-way"].answers(ROWS)
    for odd in ((SECRET, 1), (), None, SECRET, (*ROWS[0], 0)):
        assert WORKLOADS["one-way"].answers([odd, *ROWS]).tolist() == whole.tolist()
