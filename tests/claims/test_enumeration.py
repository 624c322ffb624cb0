"""Every mechanism run through `dp.release` with its sampler replaced by the exact law.

All tiny tables and all their neighbors; the exact δ(ε), both ways, is at most what the release says. Each check is a
function, and seeded mutants of the source must make the very same function fail.
"""

import inspect
import math
import sys
import textwrap
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.exact import samplers
from discreet.mechanisms.noise.joint import JointNoise
from discreet.mechanisms.selection import exponential
from discreet.mechanisms.selection.person_limits import PersonLimits
from discreet.mechanisms.selection.support_limit import SupportLimit

EPSILONS = (0.0, 0.05, 0.2, 0.4, 0.5, 0.7, 1.0, 1.3, 1.7, 2.0, 2.5, 3.0, 4.0, 6.0)
ROW, REPLACED = dp.row(), dp.row(neighbors="replace")


class NotPrivate(AssertionError):
    """Two neighbors are told apart better than is claimed."""


@dataclass(frozen=True)
class Run:
    """One input's exact law of outputs, the mass outside the window, and what the release claims."""

    law: dict
    unresolved: float
    claim: dp.Guarantee


def run(mechanism, value, *, sensitivity=None, window=10, claim=None):
    claims = []

    def once():
        answer = dp.release(value, mechanism, sensitivity=sensitivity)
        assert answer.not_private
        claims.append(answer.guarantee)
        return tuple(answer.value.items()) if isinstance(answer.value, dict) else answer.value

    found = testing.exact_law(once, window=window)
    assert all(c == claims[0] for c in claims), "the claim must not depend on the noise"
    law = {y: float(p) for y, p in found.law.items()}
    assert sum(law.values()) + float(found.unresolved) == pytest.approx(1, abs=1e-12)
    return Run(law, float(found.unresolved), claims[0] if claim is None else claim)


def attained(first, second, epsilon):
    """Σ max(0, p − e^ε p') over what was enumerated, and how much the rest of the second law could take off."""
    ratio = math.exp(epsilon)
    return sum(max(0.0, p - ratio * second.law.get(y, 0.0)) for y, p in first.law.items()), ratio * second.unresolved


def renyi(first, second, order):
    """The exact divergence, or below it by what lies outside the window; infinite where an output is lacking."""
    if any(y not in second.law for y in first.law) and not second.unresolved:
        return math.inf
    shared = [(p, second.law[y]) for y, p in first.law.items() if y in second.law]
    return math.log(sum(p * (p / q) ** (order - 1) for p, q in shared)) / (order - 1)


def check_pairs(pairs, epsilons=EPSILONS, orders=()):
    """The heart of every check: no pair of neighbors attains more than is claimed. Gives back the largest share."""
    share = 0.0
    count = 0
    for first, second in pairs:
        assert first.claim == second.claim, "the claim must not depend on the data"
        for a, b in ((first, second), (second, first)):
            count += 1
            for epsilon in epsilons:
                claimed = a.claim.delta_at(epsilon=epsilon)
                delta, doubt = attained(a, b, epsilon)
                if delta > claimed + doubt + 1e-12:
                    raise NotPrivate(f"δ({epsilon}) is {delta}, not {claimed}")
                if claimed > 1e-6:
                    share = max(share, delta / claimed)
            for order in orders:
                if renyi(a, b, order) > a.claim.renyi(order) * (1 + 1e-9) + 1e-12:
                    raise NotPrivate(f"the Rényi divergence of order {order} is {renyi(a, b, order)}")
    assert count > 0
    return share


def tables(domain, most):
    """All multisets of up to `most` rows: no mechanism looks at their order."""
    return [t for size in range(most + 1) for t in combinations_with_replacement(domain, size)]


def neighbors(table, relation):
    """Pairs of tables that differ in one row, each pair once."""
    for t in table:
        smaller = {t[:i] + t[i + 1 :] for i in range(len(t))}
        if relation == "add_or_remove":
            yield from ((t, s) for s in sorted(smaller))
        else:
            for other in table:
                if len(other) == len(t) and other > t and any(s in _smaller(other) for s in smaller):
                    yield t, other


def _smaller(t):
    return {t[:i] + t[i + 1 :] for i in range(len(t))}


def check_tables(mechanism, query, domain, *, unit, most=3, window=10, sensitivity=None, orders=()):
    """Ask `query` of all tables and compare all neighbors under the relation of `unit`."""
    moved = query.sensitivity(unit) if sensitivity is None else sensitivity
    listed = tables(domain, most)
    runs = {}
    for t in listed:
        answer = query(list(t))
        key = tuple(np.ravel(getattr(answer, "steps", answer)).tolist())  # equal answers have equal laws
        if key not in runs:
            runs[key] = run(mechanism, answer, sensitivity=moved, window=window)
        runs[t, "table"] = runs[key]
    pairs = {
        tuple(sorted((id(runs[a, "table"]), id(runs[b, "table"])))): (runs[a, "table"], runs[b, "table"])
        for a, b in neighbors(listed, unit.neighbors)
        if runs[a, "table"] is not runs[b, "table"]
    }
    return check_pairs(pairs.values(), orders=orders)


def mutate(monkeypatch, owner, name, old, new):
    """Replace a piece of the source of one function, and fail when the piece is no longer there."""
    found = inspect.getattr_static(owner, name)
    source = textwrap.dedent(inspect.getsource(getattr(found, "fget", found)))
    assert source.count(old) == 1, f"{old!r} is not in {owner.__name__}.{name}"
    module = sys.modules[owner.__module__] if inspect.isclass(owner) else owner
    space = dict(vars(module))
    exec(source.replace(old, new), space)
    monkeypatch.setattr(owner, name, space[name])


def killed(check):
    """The check must fail, by finding neighbors told apart and not by an accident."""
    with pytest.raises(NotPrivate):
        check()


def halve(monkeypatch):
    """Noise of half the scale that is claimed, for every additive mechanism."""

    def weaker(sampler, part):
        original = getattr(samplers, sampler)
        monkeypatch.setattr(samplers, sampler, lambda size_of, size: original(size_of / part, size))

    weaker("discrete_laplace", 2)
    weaker("discrete_gaussian", 4)


# --- additive noise -----------------------------------------------------------------------------------


def check_laplace_count(unit=ROW):
    share = check_tables(dp.Laplace(scale=1, step=1), dp.Count(lambda rows: np.array(rows) == 1), (0, 1), unit=unit)
    assert share > 0.999  # the claim is exact


def check_laplace_histogram(unit=ROW):
    query = dp.queries.Histogram(("a", "b"))
    return check_tables(dp.Laplace(scale=2, step=1), query, ("a", "b"), unit=unit, most=2, window=8)


def vector_runs(mechanism, moves, sensitivity, window, base=(0, 0)):
    start = run(mechanism, np.array(base), sensitivity=sensitivity, window=window)
    return [
        (start, run(mechanism, np.array(base) + np.array(move), sensitivity=sensitivity, window=window))
        for move in moves
    ]


def check_vectors_l1(kind):
    """Every move of L1 length 2 in two coordinates."""
    bound = dp.Sensitivity(2, "L1", dimension=2, grain=1)
    moves = [(2, 0), (1, 1), (1, -1), (0, -2), (1, 0)]
    return check_pairs(vector_runs(kind, moves, bound, window=8))


def check_vectors_l2(kind):
    """Every whole move of L2 length at most √2."""
    bound = dp.Sensitivity(Fraction(1415, 1000), "L2", dimension=2, grain=1)
    moves = [(1, 1), (1, -1), (-1, -1), (0, 1)]
    return check_pairs(
        vector_runs(kind, moves, bound, window=8), orders=(1.5, 2, 4) if kind.size_field == "stddev" else ()
    )


def check_rounding(kind):
    """Floats that are less than the sensitivity apart but land on different lattice points."""
    first, second = np.array([0.4, 0.45]), np.array([0.6, 0.55])
    runs = [run(kind, value, sensitivity=0.3, window=10) for value in (first, second)]
    return check_pairs([tuple(runs)])


LAPLACE, GAUSSIAN = dp.Laplace(scale=2, step=1), dp.Gaussian(stddev=2, step=1)


@pytest.mark.parametrize("unit", [ROW, REPLACED])
def test_laplace_counts(unit):
    """[T.3.6], output perturbation: noise on the answer, over all tables and neighbors."""
    check_laplace_count(unit)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [ROW, REPLACED])
def test_laplace_histograms(unit):
    assert check_laplace_histogram(unit) > 0.5


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("kind", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("check", [check_vectors_l1, check_vectors_l2, check_rounding])
def test_vectors(check, kind):
    assert check(kind) > 0.3


def test_gaussian_counts_are_exact():
    query = dp.Count(lambda rows: np.array(rows) == 1)
    assert check_tables(dp.Gaussian(stddev=1, step=1), query, (0, 1), unit=ROW, orders=(1.5, 2, 8)) > 0.999


@pytest.mark.parametrize("variance", [0.3, 1.0, 2.25, 9.0, 30.0])
@pytest.mark.parametrize("parts", [(1, 1), (2, 1), (1, 1, 1), (2, 2), (3, 1)])
def test_one_coordinate_is_the_worst_of_an_l1_ball(variance, parts):
    """What `Gaussian` claims for L1 sensitivities: moving one coordinate by all of it is hardest to hide."""
    reach = math.ceil(9 * math.sqrt(variance)) + 6
    k = np.arange(-reach, reach + 1)

    def shifted(moves):
        p, q = np.ones(1), np.ones(1)
        for move in moves:
            a, b = (np.exp(-((k - m) ** 2) / (2 * variance)) for m in (0, move))
            total = np.exp(-(np.arange(-3 * reach, 3 * reach + 1) ** 2) / (2 * variance)).sum()
            p, q = np.multiply.outer(p, a / total).ravel(), np.multiply.outer(q, b / total).ravel()
        return p, q

    (p, q), (p1, q1) = shifted(parts), shifted((sum(parts),))
    for epsilon in EPSILONS:
        whole = np.maximum(0, p1 - math.exp(epsilon) * q1).sum()
        assert np.maximum(0, p - math.exp(epsilon) * q).sum() <= whole + 1e-12


@pytest.mark.slow
def test_mutant_noise_halved(monkeypatch):
    halve(monkeypatch)
    killed(check_laplace_count)
    killed(check_laplace_histogram)
    for kind in (LAPLACE, GAUSSIAN):
        killed(lambda kind=kind: check_vectors_l1(kind))
        killed(lambda kind=kind: check_vectors_l2(kind))


def test_mutant_l1_for_l2(monkeypatch):
    """The bound is in L2, and the code reads it as if it were in L1."""
    from discreet.queries.sensitivity import Sensitivity

    mutate(monkeypatch, Sensitivity, "to", "max(0, powers[self.norm] - powers[norm])", "0")
    killed(lambda: check_vectors_l2(LAPLACE))


def test_mutant_rounding_is_free(monkeypatch):
    from discreet.queries.sensitivity import Sensitivity

    mutate(monkeypatch, Sensitivity, "in_steps", '(self.dimension - 1 if self.norm == "L1" else 0)', "0")
    killed(lambda: check_rounding(LAPLACE))


def test_mutant_one_draw_for_all_coordinates(monkeypatch):
    original = samplers.discrete_laplace
    monkeypatch.setattr(samplers, "discrete_laplace", lambda scale, size: np.repeat(original(scale, 1), size))
    killed(lambda: check_vectors_l1(LAPLACE))


@pytest.mark.slow
def test_composed_parts_are_rounded_too():
    """A part that is a vector pays for the rounding of all its coordinates."""
    mechanism = dp.Composed(mechanisms=(dp.Laplace(scale=2, step=1),))
    runs = [run(mechanism, (value,), sensitivity=0.3, window=10) for value in ([0.4, 0.45], [0.6, 0.55])]
    check_pairs([tuple(runs)])


# --- choosing -----------------------------------------------------------------------------------------


def check_choice(kind, unit=ROW, orders=(1.5, 2, 8)):
    """Popularity of three items, all tables of up to three people."""
    domain = ("", "a", "b", "c", "ab", "bc", "abc")
    return check_tables(kind, dp.queries.Popularity(("a", "b", "c")), domain, unit=unit, most=3, orders=orders)


ALL_SCORES = [*product((0, 1), repeat=3), (2, 1, 1), (1, 2, 2)]


def check_scores(kind, orders=(1.5, 2, 8), all_scores=ALL_SCORES):
    """Scores that move by up to 1 each, up and down: the worst for a choice."""
    runs = {s: run(kind, np.array(s), sensitivity=1, window=4) for s in all_scores}
    pairs = [
        (runs[a], runs[b])
        for a in all_scores
        for b in all_scores
        if a < b and max(abs(x - y) for x, y in zip(a, b, strict=True)) <= 1
    ]
    return check_pairs(pairs, orders=orders)


@pytest.mark.parametrize("unit", [ROW, REPLACED])
@pytest.mark.parametrize("kind", [dp.Exponential(rate=1), dp.mechanisms.PermuteAndFlip(rate=1)])
def test_choices_by_popularity(kind, unit):
    check_choice(kind, unit)


def test_argmax_by_popularity():
    domain, query = ("", "a", "b", "ab"), dp.queries.Popularity(("a", "b"))
    assert check_tables(dp.NoisyArgmax(scale=1, step=1), query, domain, unit=ROW, most=2, window=8) > 0.3


def check_argmax():
    some = [(0, 0, 0), (1, 0, 0), (0, 1, 1), (0, 1, 0), (1, 0, 1)]
    return check_scores(dp.NoisyArgmax(scale=1, step=1), orders=(), all_scores=some)


@pytest.mark.parametrize("kind", [dp.Exponential(rate=1), dp.mechanisms.PermuteAndFlip(rate=1)])
def test_choices_by_scores(kind):
    """[L3.EM]: ε-DP for scores that move either way, by the exact law."""
    assert check_scores(kind) > 0.5


@pytest.mark.slow
def test_argmax_by_scores_with_ties():
    """[L6.T7]: ε-DP when only the index leaves, by the exact law."""
    assert check_argmax() > 0.3


def test_scores_of_any_size():
    for scores in ([1e308, -1e308], [float("nan"), 1.0], [float("inf"), 0.0], [2**62, -(2**62)]):
        for kind in (dp.Exponential(rate=1), dp.mechanisms.PermuteAndFlip(rate=1)):
            found = testing.exact_law(lambda s=scores, m=kind: dp.release(s, m, sensitivity=1).value)
            best = 1 if scores[0] != scores[0] else 0
            assert found.law[best] > 1 - Fraction(1, 10**30)


def test_mutant_factor_two_forgotten(monkeypatch):
    def forgetful(rate, bound):
        return rate * bound.exact

    monkeypatch.setattr(exponential, "score_range", forgetful)
    for kind in (dp.Exponential(rate=1), dp.mechanisms.PermuteAndFlip(rate=1)):
        killed(lambda kind=kind: check_scores(kind, orders=()))
        killed(lambda kind=kind: check_choice(kind, REPLACED, orders=()))


@pytest.mark.slow
def test_mutant_factor_two_forgotten_in_argmax(monkeypatch):
    mutate(monkeypatch, dp.NoisyArgmax, "guarantee", "factor = 1 if bound.monotone else 2", "factor = 1")
    killed(check_argmax)


@pytest.mark.slow
def test_mutant_argmax_noise_halved(monkeypatch):
    halve(monkeypatch)
    killed(check_argmax)


def test_mutant_permute_and_flip_charged_as_exponential(monkeypatch):
    """Its Rényi divergence passes αε²/8, so the exponential mechanism's curve does not cover it."""
    kind = dp.mechanisms.PermuteAndFlip(rate=0.5)
    first, second = (run(kind, np.array(s), sensitivity=1) for s in ((0, 0), (1, -1)))
    epsilon = float(first.claim.epsilon)
    assert epsilon == 1
    worst = max(renyi(a, b, 1.01) / 1.01 for a, b in ((first, second), (second, first)))
    assert epsilon**2 / 8 < worst <= epsilon**2 / 2
    check_scores(kind)
    monkeypatch.setattr(dp.mechanisms.PermuteAndFlip, "guarantee", dp.Exponential.guarantee)
    killed(lambda: check_scores(kind))


# --- quantiles ----------------------------------------------------------------------------------------


def check_quantile(quantile=Fraction(1, 2), unit=ROW, rate=2, most=3):
    """All tables of up to three rows over three points: empty, all equal, two rows, ties."""
    kind = dp.mechanisms.Quantile(space=dp.Integers(0, 2), rate=rate, quantile=quantile)
    listed = tables((0, 1, 2), most)
    bound = kind.sensitivity(unit)
    runs = {t: run(kind, list(t), sensitivity=bound) for t in listed}
    return check_pairs([(runs[a], runs[b]) for a, b in neighbors(listed, unit.neighbors)], orders=(1.5, 2, 8))


@pytest.mark.parametrize("unit", [ROW, REPLACED])
@pytest.mark.parametrize("quantile", [Fraction(1, 2), 0.25, 0.9])
def test_quantiles(quantile, unit):
    """[L3.MED-DUP] for any quantile, ties included: the promise over all tables and neighbors."""
    assert check_quantile(quantile, unit) > 0.2


def test_quantiles_over_runs_are_the_exponential_mechanism_over_points():
    space = dp.queries.Grid(0, 5, 1)
    score = dp.queries.QuantileScore(space)
    for rows in ([], [3], [1, 4], [2, 2, 2], [0, 5, 5, 5], [float("nan"), 1.0]):
        over_runs = run(dp.mechanisms.Quantile(space=space, rate=0.7), rows)
        over_points = run(dp.Exponential(rate=0.7, choices=list(map(float, range(6)))), score(rows), sensitivity=1)
        assert over_runs.law.keys() == over_points.law.keys()
        for point, mass in over_runs.law.items():
            assert mass == pytest.approx(over_points.law[point], rel=1e-12)
        assert set(over_runs.law) == {0, 1, 2, 3, 4, 5}


def test_mutant_quantile_sensitivity_halved(monkeypatch):
    original = dp.queries.QuantileScore.sensitivity
    monkeypatch.setattr(
        dp.queries.QuantileScore, "sensitivity",
        lambda self, unit, rows=1: dp.Sensitivity(original(self, unit, rows).exact / 2, "Linf", unit),
    )  # fmt: skip
    killed(check_quantile)


# --- thresholds ---------------------------------------------------------------------------------------


def counts_of(people):
    counts = {}
    for held in people:
        for key in held:
            counts[key] = counts.get(key, 0) + 1
    return counts


def check_keys(kind, domain, most=3):
    """People hold up to `keys_per_person` keys; keys one person alone holds are among them."""
    listed = tables(domain, most)
    runs = {t: run(kind, counts_of(t), window=9) for t in listed}
    return check_pairs([(runs[a], runs[b]) for a, b in neighbors(listed, "add_or_remove")])


ONE_KEY, TWO_KEYS = (
    dp.mechanisms.KeySelection(scale=1, threshold=3),
    dp.mechanisms.KeySelection(scale=1, threshold=4, keys_per_person=2),
)


def check_one_key():
    return check_keys(ONE_KEY, ("", "a", "b"))


def check_two_keys():
    return check_keys(TWO_KEYS, ("", "a", "ab"))


def check_shared_keys():
    """Keys that many hold are shown nearly always: there the noise alone protects."""
    runs = [run(TWO_KEYS, {"a": 9 + more, "b": 9 + more}, window=10) for more in (0, 1)]
    return check_pairs([tuple(runs)])


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("check", [check_one_key, check_two_keys, check_shared_keys])
def test_keys(check):
    assert check() > 0.5


@pytest.mark.slow
def test_a_lone_key_appears_with_the_probability_that_is_charged():
    found = run(ONE_KEY, {"a": 1}, window=40)
    appears = 1 - found.law[()]
    assert appears <= ONE_KEY.delta <= appears * (1 + 1e-9)
    both = run(TWO_KEYS, {"a": 1, "b": 1}, window=25)
    hidden = both.law[()]
    assert 1 - hidden - both.unresolved <= TWO_KEYS.delta <= (1 - hidden) * (1 + 1e-6)


@pytest.mark.slow
def test_mutant_mass_at_the_threshold_forgotten(monkeypatch):
    mutate(monkeypatch, dp.mechanisms.KeySelection, "_alone_bound", "(self.threshold - 1)", "self.threshold")
    killed(check_one_key)
    killed(check_two_keys)


@pytest.mark.slow
def test_mutant_threshold_off_by_one(monkeypatch):
    mutate(monkeypatch, dp.mechanisms.KeySelection, "_shown", "count >= self.threshold", "count >= self.threshold - 1")
    killed(check_one_key)


def test_mutant_one_key_charged_for_two(monkeypatch):
    mutate(monkeypatch, dp.mechanisms.KeySelection, "guarantee", "LaplacePair(self.keys_per_person,", "LaplacePair(1,")
    killed(check_shared_keys)


COMMON = dp.mechanisms.CommonKeys(order=3, losses=(0.5, 1.5), leaks=(0.02, 0.06), keys_per_person=3)


def person_keys(people):
    """Who has which keys, if each person is written as the letters they have."""
    pairs = [(number, "abc".index(key)) for number, held in enumerate(people) for key in held]
    who, which = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return dp.mechanisms.PersonKeys(who, which, ["a", "b", "c"])


def check_common(kind, pairs, claim=None):
    runs = {t: run(kind, person_keys(t), claim=claim) for t in {side for pair in pairs for side in pair}}
    return check_pairs([(runs[a], runs[b]) for a, b in pairs])


def check_common_keys():
    """All tables of up to two people, and of more who have the same keys, with one person more."""
    listed = tables(("a", "ab", "abc"), 2)
    more = [((held,) * number, (held,) * (number + 1)) for held in ("a", "ab", "abc") for number in (3, 6)]
    mixed = [(("a",) * 4 + ("abc",) * m, ("a",) * 4 + ("abc",) * (m + 1)) for m in (1, 3)]
    return check_common(COMMON, [*neighbors(listed, "add_or_remove"), *more, *mixed])


def check_common_replaced():
    """One person for another among others."""
    claim = COMMON.guarantee().for_replacement()
    rest = [("a",) * n + ("b",) * m for n, m in ((0, 0), (3, 4))]
    swaps = [("a", "b"), ("ab", "bc"), ("abc", "a")]
    return check_common(COMMON, [((*others, one), (*others, two)) for others in rest for one, two in swaps], claim)


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_common_keys, check_common_replaced])
def test_common_keys(check):
    assert check() > 0.2


def test_a_key_of_one_person_appears_with_the_probability_that_is_set_aside():
    for held in ("a", "ab", "abc"):
        found = run(COMMON, person_keys((held,)))
        assert 1 - found.law[()] == pytest.approx(0.08, rel=0.06)
        assert 1 - found.law[()] <= 0.08


@pytest.mark.slow
def test_mutant_keys_of_a_person_count_fully(monkeypatch):
    """Whoever has three keys casts three whole votes."""
    from discreet.mechanisms.selection.key_chances import Curve

    monkeypatch.setattr(Curve, "votes", lambda self, keys: self.steps)
    killed(check_common_keys)


@pytest.mark.slow
def test_mutant_a_person_has_fewer_keys_than_they_have(monkeypatch):
    from discreet.mechanisms.selection.key_holders import PersonKeys

    mutate(monkeypatch, PersonKeys, "holders", "rounded < len(DEGREES)", "(rounded := rounded // 2) < len(DEGREES)")
    killed(check_common_keys)


@pytest.mark.slow
def test_mutant_a_round_is_not_charged(monkeypatch):
    from discreet.mechanisms.selection import common_keys

    plain = common_keys._divergences
    monkeypatch.setattr(common_keys, "_divergences", lambda order, rounds, keys: plain(order, rounds[:1], keys))
    killed(check_common_keys)


@pytest.mark.slow
def test_mutant_a_leak_is_not_charged(monkeypatch):
    kind = dp.mechanisms.CommonKeys
    mutate(monkeypatch, kind, "guarantee", "ResponsePair(Fraction(0), leak)", "ResponsePair(Fraction(0), leak / 2)")
    killed(check_common_keys)


def test_mutant_chances_of_several_curves_are_added(monkeypatch):
    from discreet.mechanisms.selection import common_keys

    def added(holders, made):
        chances = sum(curve.chances[np.minimum(holders.votes(curve), len(curve.small) - 1)] for curve in made)
        coins = [bool(samplers.bernoulli(Fraction(min(float(one), 1.0)), 1)[0]) for one in chances]
        return [key for key, heads in zip(holders.keys, coins, strict=True) if heads]

    monkeypatch.setattr(common_keys, "_shown", added)
    killed(check_common_keys)


def check_above(monotone=False):
    kind = dp.mechanisms.AboveThreshold(threshold=1, threshold_scale=1, answer_scale=2 if not monotone else 1, step=1)
    bound = dp.Sensitivity(1, "Linf", grain=1, monotone=monotone)
    answers = [(0, 1), (1, 0), (1, 1), (1, 2), (2, 1)]
    runs = {a: run(kind, list(a), sensitivity=bound, window=6) for a in answers}
    pairs = []
    for a in answers:
        for b in answers:
            moves = [y - x for x, y in zip(a, b, strict=True)]
            if a < b and max(map(abs, moves)) <= 1 and not (monotone and min(moves) < 0 < max(moves)):
                pairs.append((runs[a], runs[b]))
    return check_pairs(pairs)


@pytest.mark.slow
@pytest.mark.parametrize("monotone", [False, True])
def test_above_threshold(monotone):
    assert check_above(monotone) > 0.05


@pytest.mark.slow
def test_mutant_answers_without_noise(monkeypatch):
    mutate(monkeypatch, dp.mechanisms.AboveThreshold, "_reaches", "place + int(", "place + 0 * int(")
    killed(check_above)


def test_mutant_same_draw_for_bar_and_answer(monkeypatch):
    def repeated(scale, size, drawn={}):  # noqa: B006 (remembering is the bug)
        return drawn.setdefault("noise", np.zeros(size, dtype=np.int64))

    monkeypatch.setattr(samplers, "discrete_laplace", repeated)
    killed(check_above)


def check_upward(kind, cases, monotone=True, window=5):
    """Pairs of counts of people that exceed each limit, with one person more or another one."""
    bound = dp.Sensitivity(1, "Linf", grain=1, monotone=monotone)
    counts = {side for case in cases for side in case}
    runs = {c: run(kind, list(c), sensitivity=bound, window=window) for c in counts}
    return check_pairs([(runs[a], runs[b]) for a, b in cases])


UPWARD = dp.mechanisms.UpwardSearch(enough=2, bar_scale=Fraction(1, 2), step_scale=Fraction(1, 2))
QUIET_BAR = dp.mechanisms.UpwardSearch(enough=2, bar_scale=Fraction(1, 4), step_scale=Fraction(1, 3))


def check_upward_more():
    """One person more: in all counts up to the person's own."""
    return check_upward(UPWARD, [((2, 2, 0), (3, 2, 0)), ((3, 1), (4, 1)), ((3, 1), (4, 2)), ((0, 0), (1, 1))])


def check_upward_replaced():
    """One person for another, who moves a count up and another down."""
    return check_upward(UPWARD, [((3, 2, 0), (2, 3, 0)), ((3, 1), (2, 2))], monotone=False)


def check_upward_one_bar():
    """One person more in several steps, which share the noise of the bar."""
    return check_upward(QUIET_BAR, [((2, 2, 0), (3, 3, 0))], window=2)


def check_upward_long():
    """One person more in many steps."""
    return check_upward(UPWARD, [((5, 2, 2, 2), (5, 3, 3, 3))], window=4)


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_upward_more, check_upward_replaced, check_upward_one_bar, check_upward_long])
def test_upward_search(check):
    assert check() > 0.5


REST = "int(samplers.geometric(exactly(self.step_scale), 1)[0])"


def test_mutant_bar_redrawn_at_each_step(monkeypatch):
    again = "self.enough - int(samplers.geometric(exactly(self.bar_scale), 1)[0])"
    mutate(monkeypatch, dp.mechanisms.UpwardSearch, "_draw", "<= bar:", f"<= {again}:")
    killed(check_upward_one_bar)


def test_mutant_bar_raised_by_its_noise(monkeypatch):
    mutate(monkeypatch, dp.mechanisms.UpwardSearch, "_draw", "self.enough - int(", "self.enough + int(")
    killed(check_upward_more)


def test_mutant_search_walks_downward(monkeypatch):
    """Every step that goes on pays, if the walk stops at a large count."""
    up = f"enumerate(counts):\n        if count - {REST} <= bar:"
    down = f"reversed(list(enumerate(counts))):\n        if count - {REST} > bar:"
    mutate(monkeypatch, dp.mechanisms.UpwardSearch, "_draw", up, down)
    killed(check_upward_long)


def test_mutant_replaced_person_pays_for_one_step(monkeypatch):
    from discreet.mechanisms.selection import upward_search

    mutate(monkeypatch, upward_search, "_steps_paid", "1 if bound.monotone else 2", "1")
    killed(check_upward_replaced)


STEEP = dp.mechanisms.UpwardSearch(enough=1, bar_scale=Fraction(1, 8), step_scale=Fraction(1, 12))
LIMITED = PersonLimits(limits=((1, 4), (5,), (1, 8)), searches=(STEEP, None, STEEP))


def drawn(kind, value, sensitivity, window):
    """The same as `run` without a release, for many draws."""
    found = testing.exact_law(lambda: kind._draw(value), window=window)
    return Run({y: float(p) for y, p in found.law.items()}, float(found.unresolved), kind.guarantee(sensitivity))


def check_limits():
    """People with totals of three kinds, of which one has a known limit: one person more."""
    bound = dp.Sensitivity(1, "Linf", grain=1, monotone=True)
    listed = [[(3, 2, 7)] * number for number in (1, 2)] + [[(3, 2, 7), (1, 1, 1)]]
    totals = [[np.array(own) for own in zip(*people, strict=True)] for people in listed]
    one, two, low = (drawn(LIMITED, value, bound, window=2) for value in totals)
    return check_pairs([(one, two), (one, low)], epsilons=(20.0, 22.0))


@pytest.mark.slow
def test_limits_of_people():
    assert check_limits() > 0.9


def test_mutant_only_one_search_of_limits_is_charged(monkeypatch):
    mutate(monkeypatch, PersonLimits, "guarantee", "in self.searches if", "in self.searches[:1] if")
    killed(check_limits)


SUPPORTED = SupportLimit(limits=(1, 2, 4), penalty=Fraction(1, 2), rate=Fraction(1, 2), step=Fraction(1, 4))


def check_support():
    """Counts of different values with each limit: one person more adds up to the limit, in the worst way."""
    bound = dp.Sensitivity(1, "Linf", grain=1, monotone=True)
    values = [(10, 12, 14), (10, 14, 14), (11, 12, 14), (11, 12, 18), (10, 12, 18)]
    runs = [drawn(SUPPORTED, value, bound, window=4) for value in values]
    return check_pairs([(runs[0], other) for other in runs[1:]], epsilons=(0.25, 0.5, 1.0, 1.5))


SHARP = SupportLimit(limits=(1, 2, 4), penalty=0, rate=Fraction(1, 2))


def check_sharp_support():
    """The neighbors, among all counts below 10, that are told apart best: their loss is 0.605 of the claimed ε. So a
    choice with half of the noise is caught.
    """
    bound = dp.Sensitivity(1, "Linf", grain=1, monotone=True)
    one, more = (drawn(SHARP, value, bound, window=4) for value in ((0, 3, 1), (0, 5, 5)))
    return check_pairs([(one, more)], epsilons=(0.0, 0.25, 0.5, 1.0, 1.1))


def check_support_replaced():
    """A replaced person adds to one count and takes from another."""
    bound = dp.Sensitivity(1, "Linf", grain=1)
    values = [(10, 12, 14), (11, 12, 10), (9, 14, 14), (10, 10, 18)]
    runs = [drawn(SUPPORTED, value, bound, window=4) for value in values]
    return check_pairs([(runs[0], other) for other in runs[1:]], epsilons=(0.25, 0.5, 2.0, 2.5))


def test_limit_of_support():
    assert check_support() > 0.1
    assert check_sharp_support() > 0.25
    assert check_support_replaced() > 0.1


def test_mutant_a_limit_of_support_with_half_of_the_noise(monkeypatch):
    mutate(monkeypatch, SupportLimit, "_draw", "PermuteAndFlip(rate=self.rate)", "PermuteAndFlip(rate=2 * self.rate)")
    killed(check_sharp_support)


def test_mutant_counts_with_different_limits_are_compared_as_they_are(monkeypatch):
    """A large limit moves its count by more: without the division, ε grows with the limit."""
    mutate(monkeypatch, SupportLimit, "scores", "/ max(limit, its)", "/ 1")
    killed(check_support)


@dataclass(frozen=True)
class Numbers:
    """Joint noise whose arrays of one number are told as a tuple."""

    of: JointNoise

    def guarantee(self, sensitivity):
        return self.of.guarantee(sensitivity)

    def _draw(self, value):
        return tuple(float(np.asarray(part).item()) for part in self.of._draw(value))


def check_joint():
    """Two arrays, of which a person moves one number each: the sensitivity is of both together."""
    kind, bound = JointNoise(noise=dp.Laplace(scale=1, step=1)), dp.Sensitivity(2, "L1", grain=1)
    values = [[3], [[1]]], [[4], [[2]]], [[4], [[0]]]
    one, more, other = (drawn(Numbers(kind), value, bound, window=6) for value in values)
    return check_pairs([(one, more), (one, other)])


def test_joint_noise():
    assert check_joint() > 0.7


def test_mutant_arrays_share_one_draw(monkeypatch):
    """The noise of the first number, added to all."""

    def shared(self, value):
        noise = np.asarray(self.noise._draw(np.zeros(1, dtype=np.int64)))
        return [np.asarray(part) + noise.reshape((1,) * np.ndim(part)) for part in value]

    monkeypatch.setattr(JointNoise, "_draw", shared)
    killed(check_joint)


# --- records alone, several at once, samples ----------------------------------------------------------


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("promise", [(1, 0), (0.1, 0.4), (2, 0.05)])
def test_randomized_response_iff_enough_lies(size, promise):
    """[T.4.10]: (ε,δ)-DP exactly when p ≥ (1−δ)/(m+e^ε)."""
    epsilon, delta = promise
    least = (1 - delta) / (size - 1 + math.exp(epsilon))
    for factor, keeps in ((1 + 1e-9, True), (1 - 1e-6, False)):
        if least * factor * size > 1:
            continue
        kind = dp.RandomizedResponse(choices=list(range(size)), lie=least * factor)
        others = [0] if size < 4 else []  # of four choices one record has paths enough
        runs = [run(kind, [record, *others]) for record in range(size)]
        check_pairs([(a, b) for a in runs for b in runs if a is not b])
        worst = max(attained(a, b, epsilon)[0] for a in runs for b in runs)
        assert (worst <= delta) == keeps
        assert (dp.verify(kind).delta_at(epsilon=epsilon) <= delta) == keeps
        assert (kind.guarantee().delta_at(epsilon=epsilon) <= delta + 1e-10) == keeps


def test_mutant_lies_may_tell_the_truth(monkeypatch):
    """A lie drawn uniformly from all choices is the truth too often."""
    kind = dp.RandomizedResponse(choices=["a", "b"], lie=0.3)
    mutate(monkeypatch, dp.RandomizedResponse, "_report", "samplers.uniform_below(self._others, size) + 1",
           "samplers.uniform_below(self._others + 1, size)")  # fmt: skip
    killed(lambda: check_pairs([(run(kind, ["a"]), run(kind, ["b"]))]))


RECORDS = (dp.Integers(0, 1), dp.queries.Categories(("x", "y")))


def check_each(promise=None):
    """Two columns, one replaced record; the other record stays."""
    promise = dp.Pure(epsilon=1) if promise is None else promise
    kind = dp.Each.for_guarantee(promise, spaces=RECORDS)
    whole = dp.Laplace(scale=math.ceil(float(kind.mechanisms[0].scale)), step=1)
    coarse = dp.Each(mechanisms=(whole, kind.mechanisms[1]), spaces=RECORDS)
    runs = [run(coarse, [record], window=10, claim=promise) for record in product((0, 1), "xy")]
    check_pairs([(a, b) for a in runs for b in runs if a is not b])
    own = [run(coarse, [record], window=10) for record in product((0, 1), "xy")]
    return check_pairs([(a, b) for a in own for b in own if a is not b])


@pytest.mark.slow
def test_each_record_alone():
    """[T.3.6], sanitized rows; [T.4.7]: the columns of one record add."""
    assert check_each() > 0.99
    check_each(dp.Approx(epsilon=1, delta=0.1))


def test_the_other_records_do_not_matter():
    """[T.4.7]: rows that stay the same add nothing."""
    kind = dp.Each(mechanisms=(dp.RandomizedResponse(choices=["x", "y"], lie=0.3),), spaces=(RECORDS[1],))
    alone = check_pairs([(run(kind, ["x"]), run(kind, ["y"]))])
    assert check_pairs([(run(kind, ["x", "y", "y"]), run(kind, ["x", "x", "y"]))]) == pytest.approx(alone)


def test_mutant_epsilon_not_split_over_columns(monkeypatch):
    mutate(monkeypatch, dp.Each, "for_guarantee", "exactly(guarantee.epsilon) / columns", "exactly(guarantee.epsilon)")
    killed(check_each)


def check_composed():
    kind = dp.Composed(
        mechanisms=(dp.Laplace(scale=2, step=1), dp.Exponential(rate=Fraction(1, 2)), dp.Gaussian(stddev=2, step=1))
    )
    values = [(0, np.array([0, 1]), 0), (1, np.array([1, 0]), 1), (0, np.array([1, 1]), 1)]
    runs = [run(kind, value, sensitivity=1, window=7) for value in values]
    return check_pairs([(runs[0], runs[1]), (runs[0], runs[2])])


@pytest.mark.slow
def test_composed():
    assert check_composed() > 0.8


def test_mutant_a_part_is_forgotten(monkeypatch):
    mutate(monkeypatch, dp.Composed, "guarantee", "zip(self.mechanisms, self._parts(sensitivity), strict=True)",
           "list(zip(self.mechanisms, self._parts(sensitivity), strict=True))[1:]")  # fmt: skip
    killed(check_composed)


def check_subsampled(rate=Fraction(1, 4)):
    kind = dp.Subsampled(mechanism=dp.Laplace(scale=1, step=1), rate=rate, query=lambda rows: int(rows.sum()))
    listed = tables((0, 1), 3)
    runs = {t: run(kind, np.array(t, dtype=np.int64), sensitivity=1, window=14) for t in listed}
    return check_pairs([(runs[a], runs[b]) for a, b in neighbors(listed, "add_or_remove")])


@pytest.mark.slow
def test_subsampled():
    assert check_subsampled() > 0.999


def test_mutant_sampled_more_often_than_claimed(monkeypatch):
    mutate(monkeypatch, dp.Subsampled, "_draw", "exactly(self.rate)", "2 * exactly(self.rate)")
    killed(check_subsampled)


def test_mutant_one_coin_for_all_rows(monkeypatch):
    """Still right for one row's own coin; a mutant that keeps every row with certainty is caught."""
    mutate(monkeypatch, dp.Subsampled, "_draw", "some(rows, kept)", "rows")
    killed(check_subsampled)
