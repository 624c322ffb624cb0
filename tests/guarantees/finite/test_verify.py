"""The exact verifier against closed forms, brute force over all events, and the thesis's own numbers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import pytest

from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.exact.rational import exp_bounds
from discreet.guarantees.finite.verify import adaptive, product, repeat, verify

from ...refusing import refuses

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


def response(p, choices=2):
    """Randomized response: another answer with probability p each [T.4.10]."""
    names = range(choices)
    return {x: {y: 1 - p * (choices - 1) if x == y else p for y in names} for x in names}


SKEWED = {
    "a": {0: Fraction(1, 2), 1: Fraction(1, 3), 2: Fraction(1, 6)},
    "b": {0: Fraction(1, 4), 1: Fraction(1, 3), 2: Fraction(5, 12)},
    "c": {0: Fraction(3, 8), 1: Fraction(1, 8), 3: Fraction(1, 2)},
}


def brute_force_delta(laws, epsilon):
    """The definition itself: the largest P(F) − e^ε P'(F) over all events F, in 90 digits."""
    with mpmath.workdps(90):
        ratio, worst = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(0)
        for p, q in itertools.permutations(laws.values(), 2):
            outputs = sorted(set(p) | set(q))
            for size in range(len(outputs) + 1):
                for event in itertools.combinations(outputs, size):
                    inside, outside = (sum((law.get(y, Fraction(0)) for y in event), Fraction(0)) for law in (p, q))
                    worst = max(worst, _mp(inside) - ratio * _mp(outside))
        return worst


def _mp(x):
    return mpmath.mpf(x.numerator) / x.denominator


@pytest.mark.parametrize("laws", [SKEWED, response(Fraction(1, 5), 3), {0: {"x": 1}, 1: {"x": HALF, "y": HALF}}])
@pytest.mark.parametrize("epsilon", ["0", "0.1", "0.4054651081081644", "0.7", "3", "50"])
def test_delta_is_the_definition_over_all_events(laws, epsilon):
    """[T.4.8]: the worst event in closed form is the worst of all 2^|outputs| events."""
    with mpmath.workdps(90):
        exact = verify(laws).exact_delta_at(Fraction(epsilon))
        truth = brute_force_delta({x: {y: Fraction(p) for y, p in law.items()} for x, law in laws.items()}, epsilon)
        assert 0 <= _mp(exact) - truth < mpmath.mpf("1e-50")


@pytest.mark.parametrize("laws", [SKEWED, response(Fraction(1, 5), 3), repeat(response(Fraction(2, 5)), 5).laws()])
@pytest.mark.parametrize("epsilon", ["0", "0.1", "0.4", "0.7", "1.5"])
def test_a_tail_of_the_loss_bounds_delta(laws, epsilon):
    """[L6.L3], [T.6.3]: δ(ε) ≤ P[loss > ε], where the loss of an output is ln(p/p')."""
    ratio = exp_bounds(Fraction(epsilon))[0]
    for p, q in itertools.combinations(laws.values(), 2):
        tails = [sum(x for y, x in a.items() if x > ratio * b.get(y, 0)) for a, b in ((p, q), (q, p))]
        assert verify([(p, q)]).exact_delta_at(Fraction(epsilon)) <= max(tails)


def test_no_query_on_a_private_copy_tells_more():
    """[T.4.3]: whatever is computed from a sanitized database is at least as private as the database."""
    copy = product(response(Fraction(1, 5), 3), response(Fraction(1, 3), 3)).laws()
    outputs = sorted({y for law in copy.values() for y in law})
    queries = [sum, max, min, lambda y: y[0], lambda y: y[0] == y[1], lambda y: 0]
    queries += [lambda y, event=event: y in event for event in itertools.combinations(outputs, 3)]
    for query in queries:
        answers = {x: {} for x in copy}
        for x, law in copy.items():
            for y, p in law.items():
                answers[x][query(y)] = answers[x].get(query(y), 0) + p
        for epsilon in (0, 0.5, 1, 2):
            assert verify(answers).exact_delta_at(epsilon) <= verify(copy).exact_delta_at(epsilon)


@pytest.mark.parametrize("laws", [SKEWED, response(Fraction(1, 5), 3)])
@pytest.mark.parametrize("delta", ["0", "0.001", "0.05", "0.2", "0.6"])
def test_epsilon_is_the_exact_inverse(laws, delta):
    verified, at = verify(laws), Fraction(delta)
    ratio = verified.exact_ratio_at(at)
    if ratio is None:
        assert verified.infinite > at
        return

    def delta_of(e):
        return max(
            sum(max(Fraction(0), p - e * q.get(y, 0)) for y, p in law.items())
            for law, q in itertools.permutations(laws.values(), 2)
        )

    assert delta_of(ratio) <= at
    if ratio > 1:
        assert delta_of(ratio) == at or at == 0
        assert delta_of(ratio - Fraction(1, 10**30)) > at
    assert verified.epsilon_at(delta=at) >= math.log(ratio)
    assert verified.epsilon_at(delta=at) == pytest.approx(math.log(ratio))


def test_the_binary_response_is_private_once_and_not_twice():
    """[T.4.5]: ε = 0.1, δ = 0.4, p = 0.286; twice 0.5098 > e^0.1 · 0.0817 + 0.4."""
    once = response(Fraction(286, 1000))
    assert verify(once).exact_delta_at(Fraction(1, 10)) <= Fraction(4, 10)
    twice = verify(product(once, once))
    assert twice.exact_delta_at(Fraction(1, 10)) > Fraction(4, 10)
    assert twice.worst_event(0.1) == {(0, 0)} or twice.worst_event(0.1) == {(1, 1)}
    laws = product(once, once).laws()
    assert laws[0][(0, 0)] == Fraction("0.509796")
    assert laws[1][(0, 0)] == Fraction("0.081796")
    assert verify(repeat(once, 2)).exact_delta_at(0.1) == twice.exact_delta_at(0.1)


@pytest.mark.parametrize("choices", [2, 3, 5])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "0.4"), ("1", "0"), ("2", "0.1")])
def test_randomized_response_is_private_exactly_from_its_threshold_on(choices, epsilon, delta):
    """[T.4.10], both ways: p = (1−δ)/(m+e^ε) and not a hair less."""
    epsilon, delta, m = Fraction(epsilon), Fraction(delta), choices - 1
    enough = (1 - delta) / (m + exp_bounds(epsilon)[0])
    if 1 - enough * m > enough:
        assert verify(response(enough, choices)).exact_delta_at(epsilon) <= delta + Fraction(1, 10**50)
        less = enough * (1 - Fraction(1, 10**30))
        assert verify(response(less, choices)).exact_delta_at(epsilon) > delta


@pytest.mark.parametrize("times", [1, 2, 5, 12])
def test_repetition_merges_outputs_without_changing_the_answer(times):
    laws = response(Fraction(2, 5))
    merged, listed = verify(repeat(laws, times)), verify(product(*[laws] * times))
    assert len(repeat(laws, times).outputs) == times + 1
    for epsilon in (0, 0.3, 1, 2.5):
        assert merged.exact_delta_at(epsilon) == listed.exact_delta_at(epsilon)
    for delta in (0, Fraction(1, 1000), Fraction(1, 7)):
        assert merged.exact_ratio_at(delta) == listed.exact_ratio_at(delta)
    assert merged.renyi(3.5) == pytest.approx(times * verify(laws).renyi(3.5))


def test_repetition_with_many_kinds_agrees_with_the_product():
    assert verify(repeat(SKEWED, 3)).exact_delta_at(0.5) == verify(product(*[SKEWED] * 3)).exact_delta_at(0.5)


@pytest.mark.slow
def test_five_hundred_responses_agree_with_the_binomial_formula():
    p, times, delta = Fraction(19, 40), 500, Fraction(1, 10**6)
    many = verify(repeat(response(p), times))
    found = many.epsilon_at(delta=delta)
    with mpmath.workdps(50):
        loss = mpmath.log(_mp((1 - p) / p))

        def truth(epsilon):
            masses = (mpmath.binomial(times, k) * _mp(p) ** k * _mp(1 - p) ** (times - k) for k in range(times + 1))
            kept = (1 - mpmath.exp(epsilon - (times - 2 * k) * loss) for k in range(times + 1))
            return sum(mass * max(0, part) for mass, part in zip(masses, kept, strict=True))

        assert truth(mpmath.mpf(found)) <= _mp(delta) < truth(mpmath.mpf(found) * (1 - mpmath.mpf("1e-15")))


def test_renyi_is_never_below_the_truth():
    with mpmath.workdps(50):
        for order in (1.01, 1.5, 2.0, 7.0, 100.0):
            for laws in (response(Fraction(2, 5)), response(Fraction(49999, 100000))):
                a, pairs = mpmath.mpf(order), zip(laws[0].values(), laws[1].values(), strict=True)
                truth = mpmath.log(sum(_mp(p) ** a * _mp(q) ** (1 - a) for p, q in pairs)) / (a - 1)
                found = verify(laws).renyi(order)
                assert truth <= found <= truth * (1 + mpmath.mpf("1e-9")) + mpmath.mpf("1e-12")


def test_unresolved_and_infinite_mass_count_against_privacy():
    cut = {0: {"x": Fraction(9, 10)}, 1: {"x": Fraction(8, 10), "y": Fraction(1, 10)}}
    verified = verify(cut)
    assert verified.infinite == pytest.approx(0.2)
    assert verified.exact_delta_at(100) == Fraction(1, 5)
    assert verified.epsilon_at(delta=0.19) == math.inf
    assert verified.exact_ratio_at(Fraction(1, 5)) == 1
    whole = verify({0: {"x": 1}, 1: {"y": 1}})
    assert whole.infinite == 1.0
    assert whole.delta_at(epsilon=10**6) == 1.0
    assert str(whole) == "ε = inf, δ = 1"


def test_adaptive_composition_is_the_law_of_transcripts():
    weak, strong = response(Fraction(2, 5)), response(Fraction(1, 4))
    both = adaptive(weak, lambda first: strong if first == 0 else None)
    laws = both.laws()
    assert laws[0] == {(0, 0): Fraction(9, 20), (0, 1): Fraction(3, 20), (1,): Fraction(2, 5)}
    assert all(sum(law.values()) == 1 for law in laws.values())
    ratio = verify(both).exact_ratio_at(0)
    assert ratio == Fraction(3, 2) * 3
    always = verify(adaptive(weak, lambda _: strong))
    assert always.exact_delta_at(0.5) == verify(product(weak, strong)).exact_delta_at(0.5)


def test_rows_are_checked_one_at_a_time():
    """[T.4.7]: a sanitized database of two rows is exactly as private as its worse row."""
    first, second = response(Fraction(1, 5), 3), response(Fraction(1, 3))
    rows = [verify(first), verify(second)]
    databases = {
        (a, b): {(y, z): first[a][y] * second[b][z] for y in range(3) for z in range(2)}
        for a in range(3)
        for b in range(2)
    }

    def one_row_apart(x, y):
        return sum(a != b for a, b in zip(x, y, strict=True)) == 1

    whole = verify(databases, neighbors=one_row_apart)
    for epsilon in (0, 0.5, 1, 2):
        assert whole.exact_delta_at(epsilon) == max(row.exact_delta_at(epsilon) for row in rows)
    for delta in (0, Fraction(1, 20)):
        assert whole.exact_ratio_at(delta) == max(row.exact_ratio_at(delta) for row in rows)
    assert verify(databases).exact_ratio_at(0) > whole.exact_ratio_at(0)


def test_neighbors_narrow_the_pairs_and_the_worst_one_is_named():
    far = {0: {"x": 1}, 1: {"x": HALF, "y": HALF}, 2: {"y": 1}}
    assert verify(far).worst_pair(0) in {(0, 2), (2, 0)}
    near = verify(far, neighbors=lambda a, b: abs(a - b) == 1)
    assert near.exact_delta_at(0) == HALF
    assert len(near.pairs) == 4


def test_mechanisms_and_sequences_of_pairs_are_read_alike():
    class Coin:
        def laws(self):
            return response(Fraction(1, 4))

    pair = tuple(Coin().laws().values())
    assert verify(Coin()).exact_delta_at(0.2) == verify([pair]).exact_delta_at(0.2)


@pytest.mark.parametrize(
    "laws",
    [
        {0: {"x": Fraction(3, 2)}, 1: {"x": 1}},
        {0: {"x": Fraction(-1, 2), "y": 1}, 1: {"x": 1}},
        {0: {"x": math.nan}, 1: {"x": 1}},
        {0: {"x": 1}},
        [({"x": 1}, {"x": 1}, {"x": 1})],
        3,
    ],
)
def test_what_is_not_a_mechanism_is_refused(laws):
    with pytest.raises(InvalidArgument):
        verify(laws)


def test_compositions_need_the_same_inputs_and_no_pair_is_doubled():
    with refuses(InvalidArgument, "different-inputs"):
        product(response(THIRD), response(Fraction(1, 5), 3))
    with refuses(InvalidArgument, "out-of-range"):
        verify(response(THIRD)).delta_at(epsilon=-1)
    with refuses(IncompatibleGuarantee, "incompatible-guarantee"):
        verify(response(THIRD)).for_replacement()
