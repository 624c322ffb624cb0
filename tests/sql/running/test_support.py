"""Different values are counted by a matching: one person more adds at most as many as one person may support."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.rows.key_columns import KeyColumns
from discreet.sql.measuring.support import Support, _Turns, count_supported
from discreet.sql.pricing.found_rows import support_bound

from ..connecting import connected, rows_of


def support_of(people: dict[int, list[int]]) -> Support:
    """What `Support.of` makes of rows that are drawn in this order."""
    items = np.array([item for person in sorted(people) for item in people[person]], dtype=np.int64)
    _, firsts, numbered = np.unique(items, return_index=True, return_inverse=True)
    ends = np.cumsum([len(people[person]) for person in sorted(people)], dtype=np.int64)
    return Support(np.concatenate([[0], ends]).astype(np.int64), numbered, len(firsts), firsts)


def taken_by(people: dict[int, list[int]], most: int) -> set[int]:
    """The items that are taken, under their own names."""
    support = support_of(people)
    items = [item for person in sorted(people) for item in people[person]]
    return {items[first] for first in support.firsts[support.taken(most)]}


def small_tables(tries: int) -> Iterator[dict[int, list[int]]]:
    rng = np.random.default_rng(3)
    for _ in range(tries):
        items = int(rng.integers(1, 7))
        yield {
            person: rng.permutation(items)[: rng.integers(0, items + 1)].tolist()
            for person in rng.permutation(9)[: rng.integers(1, 7)].tolist()
        }
    # the first person has what all others would take second
    yield {0: [1], **{person: [0, 1, person + 1] for person in range(1, 9)}}


def check_neighbors(take, tries: int = 250) -> None:
    """Many small tables, each with and without every one of its people."""
    for people in small_tables(tries):
        for most in (1, 2, 3):
            whole = take(people, most)
            for person in people:
                rest = take({other: own for other, own in people.items() if other != person}, most)
                assert rest <= whole
                assert len(whole) - len(rest) <= most


@pytest.mark.slow
def test_one_person_adds_at_most_the_limit_and_takes_nothing_away():
    check_neighbors(taken_by)


@pytest.mark.slow
def test_all_tables_of_three_people_and_three_items():
    """Every order of every list: with and without the middle person."""
    lists = [list(p) for n in range(4) for p in itertools.permutations(range(3), n)]
    for first, own, last in itertools.product(lists, lists, lists[::5]):
        for most in (1, 2):
            with_own = taken_by({1: first, 2: own, 3: last}, most)
            without = taken_by({1: first, 3: last}, most)
            assert without <= with_own
            assert len(with_own) - len(without) <= most


def one_after_another(people: dict[int, list[int]], most: int) -> set[int]:
    """The rule itself: in each round everybody takes the first own item that nobody has taken."""
    taken: set[int] = set()
    for _ in range(most):
        for person in sorted(people):
            taken |= set(next(([item] for item in people[person] if item not in taken), []))
    return taken


@pytest.mark.parametrize("few", [0, 2, 32])
def test_many_turns_at_once_take_what_turns_take(monkeypatch, few):
    """Whether all people are asked at once, or one by one, or some."""
    monkeypatch.setattr("discreet.sql.measuring.support._FEW", few)
    crowd = {person: [(person * step) % 60 for step in range(1, 1 + person % 9)] for person in range(100)}
    for people in (*small_tables(60), {person: list(dict.fromkeys(own)) for person, own in crowd.items()}):
        for most in (1, 2, 3):
            assert taken_by(people, most) == one_after_another(people, most)


def forgetful(self, asking):
    """Who loses an item does not ask for another one."""
    np.minimum.at(self.owners, self.items[self.places[asking]], asking)
    return asking[:0]


def test_mutant_who_loses_an_item_asks_no_more(monkeypatch):
    """Then one person more takes away what somebody else would have taken."""
    monkeypatch.setattr("discreet.sql.measuring.support._FEW", 0)
    monkeypatch.setattr(_Turns, "_ask", forgetful)
    with pytest.raises(AssertionError):
        check_neighbors(taken_by)


def all_at_once(people: dict[int, list[int]], most: int) -> set[int]:
    """Everybody takes an item in a round without waiting for the others of that round."""
    taken: set[int] = set()
    for _ in range(most):
        taken |= {next(i for i in own if i not in taken) for own in people.values() if set(own) - taken}
    return taken


def test_mutant_people_choose_at_the_same_time():
    """One person more takes an item that many others would have taken, and each of them takes another."""
    with pytest.raises(AssertionError):
        check_neighbors(all_at_once)


def test_a_matching_loses_little():
    """Everybody has all values: after one round there are as many as people, or all of them."""
    assert len(taken_by({p: list(range(20)) for p in range(8)}, 1)) == 8
    assert len(taken_by({p: list(range(20)) for p in range(8)}, 2)) == 16
    assert len(taken_by({p: list(range(20)) for p in range(30)}, 1)) == 20
    assert support_of({1: [5, 6, 7], 2: [6]}).counts([1, 2, 3, 9]).tolist() == [2, 3, 3, 3]
    assert support_of({}).counts([1, 2]).tolist() == [0, 0]


@pytest.mark.parametrize("name", [lambda n: n, lambda n: f"p{n % 7}-{n}"], ids=["integers", "text"])
def test_rows_may_come_in_any_order(name):
    """An engine that returns rows in any order, and in pieces, splits nobody in two."""
    rng = np.random.default_rng(6)
    pairs = sorted({(int(p), int(i)) for p, i in rng.integers(0, 40, (500, 2))})
    draws = rng.random(len(pairs))
    found = []
    for order in (np.arange(len(pairs)), rng.permutation(len(pairs))):
        pieces = [
            pa.table({
                "person": pa.array([name(pairs[n][0]) for n in part]),
                "item": [pairs[n][1] for n in part],
                "draw": draws[part],
            })
            for part in np.array_split(order, 7)
        ]  # fmt: skip
        support = Support.of(pa.concat_tables(pieces))
        assert len(support.starts) - 1 == len({person for person, _ in pairs})
        assert support.starts[-1] == len(pairs)
        found.append((support.starts.tolist(), support.items.tolist(), support.counts([1, 2, 3]).tolist()))
    assert found[0] == found[1]


def people_with_products(people: int, products: int, each: int) -> pa.Table:
    pid = np.repeat(np.arange(people), each)
    return pa.table({"pid": pid, "product": (pid * 7 + np.tile(np.arange(each), people) * 13) % products})


def test_few_products_of_many_people_need_little_noise():
    """600 people with 30 rows each, and 40 products: everybody supports one of them, and not 30."""
    data = people_with_products(600, 40, 30)
    asked = connected({"v": (data, {"rows_per_person": None})})
    answer = asked.sql("SELECT COUNT(DISTINCT product) AS n FROM v", epsilon=20)
    limit = int(answer.notes[0].removeprefix("Found privately: values of one person: ").rstrip("."))
    assert limit <= 30  # larger by 15 steps: a false alarm once in 20·2^14 times, and after it half as often
    assert abs(answer.as_json()["rows"][0][0] - 40) < 40


def test_a_limit_that_gains_nothing_is_rarely_chosen():
    """All counts alike: each limit is chosen less often than the one before. Permute-and-flip chooses no candidate more
    often than its coin comes up.
    """
    data = people_with_products(60, 5, 4)
    asked = connected({"v": (data, {"rows_per_person": None})})
    plan = asked.plan("SELECT COUNT(DISTINCT product) AS n FROM v", epsilon=1)
    search = support_bound(plan.question, asked.schema.unit, 1, {}, plan.each_bound, 1).mechanism
    scores = search.scores([5] * len(search.limits))
    chances = [math.exp(float(search.rate) * float(score)) for score in scores]
    assert chances[0] == 1
    assert sum(chances[1:]) < 0.4
    assert sum(chances[12:]) < 1e-4


def test_a_few_people_with_many_products_support_many():
    data = people_with_products(20, 5_000, 250)
    [[n]] = rows_of(
        connected({"v": (data, {"rows_per_person": None})}), "SELECT COUNT(DISTINCT product) AS n FROM v", epsilon=50
    )
    assert n > 3_000


def test_groups_share_what_one_person_supports():
    data = people_with_products(300, 12, 6)
    half = pa.array((np.asarray(data["product"]) % 2).astype(np.int64))
    asked = connected(
        {"v": (data.append_column("half", half), {"columns": {"half": {"choices": [0, 1]}}, "rows_per_person": None})}
    )
    rows = rows_of(asked, "SELECT half, COUNT(DISTINCT product) AS n FROM v GROUP BY half")
    assert rows == [(0, 6), (1, 6)]


@pytest.mark.parametrize("bounds", [(1, 1, 1), (3, 2, 2), (4, 2, 4), (5, 5, 1), (9, 3, 3)])
@pytest.mark.slow
def test_declared_bounds_hold_for_values(bounds):
    """With and without one person, over all groups together: at most as many values as rows are declared."""
    rows, groups, per_group = bounds
    rng = np.random.default_rng(8)
    facts = {"rows_per_person": rows, "groups_per_person": groups, "rows_per_group": per_group,
             "columns": {"k": {"choices": ["a", "b", "c"]}}}  # fmt: skip
    text = "SELECT k, COUNT(DISTINCT product) AS n FROM v GROUP BY k"
    alone = pa.table({"pid": [1] * 30, "k": rng.choice(["a", "b", "c"], 30), "product": rng.integers(0, 9, 30)})
    for _ in range(10):
        counts = [n for _, n in rows_of(connected({"v": (alone, facts)}), text)]
        assert sum(counts) <= rows
        assert sum(n > 0 for n in counts) <= groups
        assert max(counts) <= per_group


ODD = [None, math.nan, math.inf, -math.inf, -0.0, 0.0, 1e308, 5e-324]


def test_odd_values_are_values_and_stop_nothing():
    """NULL is no value, NaN is one, and zero has no sign."""
    data = pa.table({"pid": list(range(len(ODD) * 3)), "x": pa.array(ODD * 3, pa.float64())})
    [[n]] = rows_of(connected({"v": (data, {})}), "SELECT COUNT(DISTINCT x) AS n FROM v")
    assert n == 6


def test_rows_of_nobody_support_nothing():
    data = pa.table({"pid": pa.array([None, 1, 2, None], pa.int64()), "x": ["a", "b", "b", "c"]})
    assert rows_of(connected({"v": (data, {})}), "SELECT COUNT(DISTINCT x) AS n FROM v") == [(1,)]


def test_a_group_that_is_not_shown_is_not_counted():
    class Groups:
        count = 1

        def places(self, keys):
            return np.array([0 if key == ("a",) else -1 for key in keys])

    rows = pa.table({"k": ["a", "b"], "person": [1, 2], "item": [1, 2], "draw": [0.5, 0.1]})
    keys = KeyColumns.of([("a",), ("b",)], ["text"])
    assert count_supported(rows, 1, keys, Groups()).tolist() == [1]


@pytest.mark.slow
def test_large_tables_are_matched_as_small_ones():
    """Many threads return rows in no order: still everybody takes one turn in a round."""
    rng = np.random.default_rng(1)
    data = pa.table({"pid": rng.integers(0, 50_000, 500_000), "product": rng.zipf(1.3, 500_000) % 5_000})
    asked = connected({"v": (data, {"rows_per_person": None})})
    [[n]] = rows_of(asked, "SELECT COUNT(DISTINCT product) AS n FROM v", epsilon=1)
    true = len(np.unique(data["product"].to_numpy()))
    assert 0.98 * true < n <= true


def test_the_choice_of_the_limit_is_charged_and_stored():
    data = people_with_products(600, 40, 30)
    ledger = {"path": ":memory:", "epsilon": 10, "delta": 0.01}
    tables = {"v": {"source": data, "version": "1"}}
    asked = dp.connect({"ledger": ledger, "unit": {"person": "pid"}, "tables": tables})
    text = "SELECT COUNT(DISTINCT product) AS n FROM v"
    first, again = asked.sql(text, epsilon=1), asked.sql(text, epsilon=1)
    assert first.as_json()["rows"] == again.as_json()["rows"]
    assert float(asked.ledger.spent["ε"]) == pytest.approx(1)
