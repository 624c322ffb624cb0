"""Every adaptive strategy against every rule, by exact enumeration; and stopping rules that some strategy beats.

An analyst picks the next mechanism from a small menu, or stops, after reading the transcript so far; a filter refuses
what no longer fits. `Session.loss` is the most any such strategy makes of it: the largest δ(ε) of the transcript, in
rationals. The rules must keep it within the limit. Three tempting rules do not: the same menus, the same enumerator.
`python tests/guarantees/rules/test_adaptive.py` prints what is found.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product as cartesian
from typing import Any, NamedTuple

import pytest

from discreet.errors import IncompatibleGuarantee
from discreet.exact.rational import LEDGER_UNIT, exactly, exp_bounds, log_bounds, round_down
from discreet.guarantees.finite.verify import product, repeat, verify
from discreet.guarantees.guarantee import Approx, Pure
from discreet.guarantees.privacy_loss.compose import compose
from discreet.guarantees.rules.best_of import BestOf, RenyiRule, rule_for
from discreet.guarantees.rules.coordinates import conversion_cost

# --- the menu -----------------------------------------------------------------------------------------


class Mechanism(NamedTuple):
    """What is charged, and the probability of each outcome under either neighbor."""

    guarantee: Any
    outcomes: tuple[tuple[Fraction, Fraction], ...]


def coin(ratio, delta=0):
    """Randomized response of a rational ratio, which tells all with probability δ."""
    ratio, delta = Fraction(ratio), Fraction(delta)
    yes, no = (1 - delta) * ratio / (1 + ratio), (1 - delta) / (1 + ratio)
    epsilon = log_bounds(ratio, digits=20)[1]
    if not delta:
        return Mechanism(Pure(epsilon=epsilon), ((yes, no), (no, yes)))
    return Mechanism(
        Approx(epsilon=epsilon, delta=delta), ((delta, Fraction(0)), (Fraction(0), delta), (yes, no), (no, yes))
    )


def leak(delta):
    """Tells all with probability δ, and otherwise nothing."""
    delta = Fraction(delta)
    return Mechanism(
        Approx(epsilon=0, delta=delta), ((delta, Fraction(0)), (Fraction(0), delta), (1 - delta, 1 - delta))
    )


def uneven(probability, ratio):
    """One outcome of this probability, `ratio` times that of the other neighbor; charged by its exact law."""
    first = Fraction(probability)
    second = first / Fraction(ratio)
    laws = ({1: first, 0: 1 - first}, {1: second, 0: 1 - second})
    return Mechanism(verify([laws]), ((first, second), (1 - first, 1 - second)))


def flipped(mechanism):
    """The same with the neighbors exchanged: the charge covers both."""
    return Mechanism(mechanism.guarantee, tuple((q, p) for p, q in mechanism.outcomes))


def directions(menu):
    """The menu as it tells the first neighbor from the second, and the other way round when that differs."""
    swapped = tuple(map(flipped, menu))
    same = all(sorted(one.outcomes) == sorted(other.outcomes) for one, other in zip(menu, swapped, strict=True))
    return [tuple(menu)] if same else [tuple(menu), swapped]


# --- the enumerator -----------------------------------------------------------------------------------


class Session:
    """All adaptive strategies over a menu while `admits(used)` holds, `used` counting the uses of each mechanism.

    After a transcript of probabilities (p, q) the best continuation is worth
    V(used, p, q) = max over what is admitted of Σ V(used', p·P(o), q·Q(o)), or (p − e^ε q)₊ when stopping.
    V scales with p, so it is kept by q/p. This is exact and complete: a strategy IS a choice at each transcript, and
    coins of the analyst's own average over such choices. e^ε is rounded down by less than 1e-50.
    """

    def __init__(self, menu, admits, epsilon):
        self.menu = menu
        self.admits = lru_cache(maxsize=None)(admits)
        self.ratio = exp_bounds(exactly(epsilon))[0]
        self.value = lru_cache(maxsize=None)(self._value)
        self.reached = {self.start}

    @property
    def start(self):
        return (0,) * len(self.menu)

    def loss(self):
        return self.value(self.start, Fraction(1))

    def _value(self, used, odds):
        best = max(Fraction(0), 1 - self.ratio * odds)
        for after, mechanism in self.options(used):
            best = max(best, self._run(after, mechanism, odds))
        return best

    def options(self, used):
        for i, mechanism in enumerate(self.menu):
            after = (*used[:i], used[i] + 1, *used[i + 1 :])
            if self.admits(after):
                self.reached.add(after)
                yield after, mechanism

    def _run(self, after, mechanism, odds):
        # where q = 0 the secret is out, and the whole of p is lost
        return sum(p * self.value(after, odds * q / p) if q else p for p, q in mechanism.outcomes if p)

    def transcripts(self, used=None, first=Fraction(1), second=Fraction(1)):
        """The laws of the transcript under a best strategy: a witness that needs no trust in the recursion."""
        used = self.start if used is None else used
        if not first or not second:
            return [(first, second)]
        odds = second / first
        for after, mechanism in self.options(used):
            if self._run(after, mechanism, odds) == self.value(used, odds) > max(0, 1 - self.ratio * odds):
                parts = (self.transcripts(after, first * p, second * q) for p, q in mechanism.outcomes)
                return [leaf for part in parts for leaf in part]
        return [(first, second)]


def by_rule(rule, menu):
    """A rule of the ledger as a function of the numbers of uses."""
    costs = [rule.coordinates(mechanism.guarantee) for mechanism in menu]

    def admits(used):
        return rule.fits(
            tuple(sum(n * c for n, c in zip(used, cost, strict=True)) for cost in zip(*costs, strict=True))
        )

    return admits


def worst(menu, admits, limit):
    """The session of the worse direction."""
    sessions = [Session(side, admits, limit.epsilon) for side in directions(menu)]
    return max(sessions, key=Session.loss)


def checked(session, limit):
    """The loss, once the laws of a best strategy's transcript, verified on their own, attain it."""
    leaves = session.transcripts()
    laws = tuple(dict(enumerate(column)) for column in zip(*leaves, strict=True))
    assert all(sum(law.values()) == 1 for law in laws)
    assert verify([laws]).exact_delta_at(limit.epsilon) == session.loss()
    return session.loss()


def strategies(session, used):
    """Every strategy from here on, as the list of (p, q) of its transcripts."""
    yield [(Fraction(1), Fraction(1))]
    for after, mechanism in session.options(used):
        following = list(strategies(session, after))
        for chosen in cartesian(following, repeat=len(mechanism.outcomes)):
            outcomes = zip(mechanism.outcomes, chosen, strict=True)
            yield [(p * a, q * b) for (p, q), leaves in outcomes for a, b in leaves]


@pytest.mark.parametrize(
    ("menu", "epsilon"),
    [((coin(2), uneven("1/3", 2)), "2.1"), ((coin("3/2"), leak("1/10")), "0.5"), ((uneven("1/5", 3), coin(2)), "1.9")],
)
def test_the_recursion_is_the_maximum_over_all_strategies_written_out(menu, epsilon):
    """Up to 723 strategies, each verified as one finite mechanism."""
    limit = Approx(epsilon=Fraction(epsilon), delta=Fraction(1, 10))
    admits = by_rule(rule_for(limit, "basic"), menu)
    at = limit.epsilon / 3  # below the limit, where stopping at the right time matters
    sessions = [Session(side, admits, at) for side in directions(menu)]
    every = list(strategies(sessions[0], sessions[0].start))
    assert len(every) > 10
    exact = max(verify([tuple(dict(enumerate(law)) for law in zip(*s, strict=True))]).exact_delta_at(at) for s in every)
    assert exact == max(session.loss() for session in sessions) > 0


# --- the rules keep their limits ----------------------------------------------------------------------

NAMES = ["best", "basic", "zcdp", "renyi", "advanced", "heterogeneous"]
SMALL = Fraction(6, 5)
TILTED = uneven("36/91", SMALL**2)  # ratios (6/5)² and 5/6: transcripts meet again, and the table stays small
UNSPLIT = (uneven("0.042", "3.4"), uneven("0.44", "1.135"), uneven("0.63", "2.46"), leak("1/200"))
CASES = {
    "many small coins": (Approx(epsilon=1, delta=0.3), (coin("11/10"), coin("1331/1000"))),
    "coins, one of them with its own δ": (Approx(epsilon=4, delta=0.1), (coin(SMALL), coin(SMALL**3, "1/60"))),
    "an uneven mechanism both ways and a leak": (Approx(epsilon=3, delta=0.1), (TILTED, flipped(TILTED), leak("1/25"))),
    "two coins and a leak": (Approx(epsilon=2, delta=0.01), (coin("5/4"), coin("25/16"), leak("1/200"))),
    "three uneven mechanisms and a leak": (Approx(epsilon=2, delta=0.01), UNSPLIT),
}
CASES |= {
    "one coin and a leak": (Approx(epsilon=0.5, delta=0.1), (coin(SMALL), leak("1/60"))),
    "two small coins and a leak": (Approx(epsilon=0.4, delta=0.3), (coin("9/8"), coin("4/3"), leak("1/25"))),
    "two larger coins": (Approx(epsilon=1, delta=0.05), (coin("3/2"), coin("5/4"))),
}
BEYOND_BASIC = [(name, "many small coins") for name in NAMES if name != "basic"]
BEYOND_BASIC += [("best", case) for case in list(CASES)[1:3]]


SLOW = {
    ("renyi", "an uneven mechanism both ways and a leak"),
    ("zcdp", "coins, one of them with its own δ"),
    ("renyi", "many small coins"),
    ("renyi", "three uneven mechanisms and a leak"),
}
"""The same cases are quick under other rules, and the same rules with other cases."""
EVERY = [pytest.param(n, c, marks=[pytest.mark.slow] if (n, c) in SLOW else []) for c in CASES for n in NAMES]


@pytest.mark.some_quick(2)
@pytest.mark.parametrize(("name", "case"), EVERY)
def test_no_adaptive_strategy_passes_a_rule(name, case):
    limit, menu = CASES[case]
    rule = rule_for(limit, name)
    session = worst(priced(rule, menu), by_rule(rule, priced(rule, menu)), limit)
    assert 0 <= session.loss() <= exactly(limit.delta)
    if (name, case) in BEYOND_BASIC:
        basic = by_rule(rule_for(limit, "basic"), menu)
        assert not all(map(basic, session.reached)), "basic sums would have allowed as much: the case shows nothing"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in ("renyi", "zcdp") else []) for n in NAMES]
)
def test_a_limit_raised_on_the_way_is_kept(name):
    """The boxes as they were at opening, their walls moved out: no strategy passes the larger limit."""
    limit, menu = CASES["many small coins"]
    larger = Approx(epsilon=Fraction(3, 2), delta=Fraction(2, 5))
    rule, raised = rule_for(limit, name), rule_for(limit, name).raised(larger)
    before, after = by_rule(rule, menu), by_rule(raised, menu)
    session = worst(menu, lambda used: before(used) or after(used), larger)
    assert 0 <= session.loss() <= exactly(larger.delta)
    assert not all(map(before, session.reached))


def priced(rule, menu):
    """What the rule has a price for: L10.HC has none for releases with their own δ."""
    kept = []
    for mechanism in menu:
        try:
            rule.coordinates(mechanism.guarantee)
        except IncompatibleGuarantee:
            assert rule.name == "heterogeneous"
        else:
            kept.append(mechanism)
    return tuple(kept)


# --- and these do not ---------------------------------------------------------------------------------


def numerical():
    """Go on as long as the tight composition of what was used so far is within the limit."""
    limit, menu = CASES["two coins and a leak"]

    def admits(used):
        listed = [mechanism.guarantee for mechanism, n in zip(menu, used, strict=True) for _ in range(n)]
        return compose(listed).epsilon_at(delta=limit.delta) <= limit.epsilon

    return limit, menu, admits


def each_at_full_delta():
    """Basic sums with all of δ for leaks, or one Rényi order with all of δ for its conversion: each alone is right."""
    limit = Approx(epsilon=3, delta=0.001)
    menu = (uneven("0.0086", "10.9"), uneven("0.69", "2.206"), leak("1/1000"))
    boxes = [rule_for(limit, "basic"), RenyiRule(limit=limit, order=6, conversion=Fraction(1, 1000))]
    return limit, menu, [by_rule(box, menu) for box in boxes]


class Unsplit(BestOf):
    """The default rule, but every Rényi box converts at all of the half of δ that they should share."""

    @cached_property
    def boxes(self):
        half = exactly(self.limit.delta) / 2
        split = BestOf(limit=self.limit).boxes
        return split[0], *(RenyiRule(limit=self.limit, order=box.at, conversion=half) for box in split[1:])


class AtWhatRemains(RenyiRule):
    """One Rényi order, converted at the δ that the releases have not used: δ − Σδ_i."""

    def fits(self, vector):
        left = exactly(self.limit.delta) - Fraction(vector[0], LEDGER_UNIT)
        return left > 0 and vector[1] <= round_down(exactly(self.limit.epsilon) - conversion_cost(self.at, left))


def at_what_remains():
    limit = Approx(epsilon=3, delta=0.001)
    menu = (uneven("0.0078", "7.68"), uneven("0.76", "3.1"), leak("0.000995"))
    return limit, menu, by_rule(AtWhatRemains(limit=limit, order=6), menu)


def test_a_numerical_stopping_rule_is_beaten():
    """Twice the δ and more, though every admitted choice, fixed in advance, is within the limit."""
    limit, menu, admits = numerical()
    session = worst(menu, admits, limit)
    assert checked(session, limit) > 2 * exactly(limit.delta)
    for used in session.reached:
        more = [(*used[:i], n + 1, *used[i + 1 :]) for i, n in enumerate(used)]
        if not any(after in session.reached for after in more):
            parts = [repeat(laws(mechanism), n) for mechanism, n in zip(menu, used, strict=True) if n]
            assert verify(product(*parts)).exact_delta_at(limit.epsilon) <= exactly(limit.delta)


def laws(mechanism):
    return {side: dict(enumerate(law)) for side, law in enumerate(zip(*mechanism.outcomes, strict=True))}


def test_boxes_at_the_full_delta_are_beaten():
    """An unlikely telling outcome leads on in the Rényi box; the likely other one leaves all of δ for a leak."""
    limit, menu, boxes = each_at_full_delta()
    session = worst(menu, lambda used: any(box(used) for box in boxes), limit)
    assert checked(session, limit) > Fraction(19, 10) * exactly(limit.delta)
    for box in boxes:
        assert worst(menu, box, limit).loss() <= exactly(limit.delta)


def test_the_default_rule_without_its_split_is_beaten():
    """The very orders of the default rule, its δ_own kept apart; only the conversions are not shared out."""
    limit, menu = CASES["three uneven mechanisms and a leak"]
    session = worst(menu, by_rule(Unsplit(limit=limit), menu), limit)
    assert checked(session, limit) > Fraction(11, 10) * exactly(limit.delta)


def test_a_box_converted_at_the_remaining_delta_is_beaten():
    """Nearly twice the δ at ONE order: the leak and the conversion are paid by the same δ on different transcripts."""
    limit, menu, admits = at_what_remains()
    session = worst(menu, admits, limit)
    assert checked(session, limit) > Fraction(19, 10) * exactly(limit.delta)
    for share in ("1/1000", "1/2000"):  # a box of the same order, fixed at opening
        fixed = RenyiRule(limit=limit, order=6, conversion=Fraction(share))
        assert worst(menu, by_rule(fixed, menu), limit).loss() <= exactly(limit.delta)


def test_a_delta_spent_twice_is_beaten():
    """Once for the leaks, and again: for as many more, or for the conversion of a Rényi box."""
    limit = Approx(epsilon=0.4, delta=0.1)
    menu = (coin(SMALL), leak("1/10"))
    basic, order_8 = rule_for(limit, "basic"), RenyiRule(limit=limit, conversion=Fraction(1, 10), order=8)
    assert worst(menu, by_rule(basic, menu), limit).loss() == Fraction(1, 10)
    for rule, twice in (
        (basic, lambda spent: spent[0] <= 2 * basic.delta_room and spent[1] <= basic.room),
        (order_8, lambda spent: spent[0] <= basic.delta_room and spent[1] <= order_8.room),
    ):
        costs = [rule.coordinates(mechanism.guarantee) for mechanism in menu]

        def admits(used, costs=costs, twice=twice):
            return twice([sum(n * c for n, c in zip(used, cost, strict=True)) for cost in zip(*costs, strict=True)])

        assert worst(menu, admits, limit).loss() > Fraction(1, 10)


def show():
    """The largest δ over all adaptive strategies, as a multiple of the limit's δ."""

    def line(what, limit, session):
        print(f"{what:55} {limit!s:20} {float(session.loss() / exactly(limit.delta)):8.4f}")

    for case, (limit, menu) in CASES.items():
        for name in NAMES:
            rule = rule_for(limit, name)
            line(f"{case}: {name}", limit, worst(priced(rule, menu), by_rule(rule, priced(rule, menu)), limit))
    limit, menu, admits = numerical()
    line("NOT A FILTER numerical", limit, worst(menu, admits, limit))
    limit, menu, boxes = each_at_full_delta()
    line("NOT A FILTER basic or Rényi, each at δ", limit, worst(menu, lambda used: any(b(used) for b in boxes), limit))
    limit, menu = CASES["three uneven mechanisms and a leak"]
    line("NOT A FILTER default, unsplit", limit, worst(menu, by_rule(Unsplit(limit=limit), menu), limit))
    limit, menu, admits = at_what_remains()
    line("NOT A FILTER at the remaining δ", limit, worst(menu, admits, limit))


if __name__ == "__main__":
    show()
