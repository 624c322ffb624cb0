"""The law of every sampler: against exact probabilities, a slow reference, and itself with the exact path forced.

Every p-value fails below 10^-7 and no test looks at more than ten, so each alarms falsely at most once in a million.
Power of the law tests: at 10^7 draws a scale off by 1 % is rejected (asserted below), and at 10^6 one off by 3 %; 2/3
and 3/2 of the scale are rejected with p-values that underflow.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet import testing
from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.laws import OneSided, Shape

from ..refusing import refuses

F = Fraction
SAMPLERS = {"laplace": samplers.discrete_laplace, "gaussian": lambda s, n: samplers.discrete_gaussian(s * s, n)}
SMALL = [F(1, 3), F(1), F(7, 2), F(81, 2)]
WIDE = [F(1000), F(2**20), F(2**40), F(2**52 - 1)]


def _law_holds(checks, kind, scale, size, near):
    drawn = checks.histogram(SAMPLERS[kind](scale, size), kind, scale)
    assert drawn.p_value(scale) > checks.ALARM
    for wrong in (F(2, 3), F(3, 2), 1 - near, 1 + near):
        assert drawn.p_value(wrong * scale) < checks.ALARM, wrong


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("scale", [*SMALL, *WIDE], ids=str)
@pytest.mark.parametrize("kind", SAMPLERS)
def test_law_at_a_million_draws(checks, kind, scale):
    """Accepts the claimed scale and rejects 2/3, 3/2 and 3 % either way."""
    _law_holds(checks, kind, scale, 10**6, F(3, 100))


@pytest.mark.slow
@pytest.mark.parametrize("kind", SAMPLERS)
def test_law_at_ten_million_draws(checks, kind):
    """Accepts the claimed scale and rejects 2/3, 3/2 and 1 % either way."""
    _law_holds(checks, kind, F(1000), 10**7, F(1, 100))


@pytest.mark.slow
@pytest.mark.parametrize("scale", [*SMALL, *WIDE], ids=str)
@pytest.mark.parametrize("kind", SAMPLERS)
def test_law_at_ten_million_draws_for_every_scale(checks, kind, scale):
    _law_holds(checks, kind, scale, 10**7, F(1, 100))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "scale"), [("laplace", F(33)), ("gaussian", F(46))])
def test_law_at_a_hundred_million_draws(checks, kind, scale):
    """The smallest scales with cells of two integers; ten runs of 10^7, put together."""
    whole = checks.histogram(SAMPLERS[kind](scale, 10**7), kind, scale)
    for _ in range(9):
        more = checks.histogram(SAMPLERS[kind](scale, 10**7), kind, scale)
        whole.bins = whole.bins + more.bins
        whole.tails = [(edge, a + b) for (edge, a), (_, b) in zip(whole.tails, more.tails, strict=True)]
        whole.size += more.size
    assert whole.p_value(scale) > checks.ALARM
    for wrong in (F(2, 3), F(3, 2), F(997, 1000), F(1003, 1000)):
        assert whole.p_value(wrong * scale) < checks.ALARM


def _geometric_p_value(checks, drawn, scale):
    """Chi-square of 60 bins and of the rest, and of the last bits."""
    width = max(1, math.floor(scale / 10))
    places = np.minimum((drawn // width).astype(np.int64), 60)
    ends = np.exp(-np.arange(61) * width / float(scale))
    law = checks.goodness(np.bincount(places, minlength=61), [*-np.diff(ends), ends[-1]])
    bits = np.exp(-np.arange(16) / float(scale))  # the law of the rest after division by 16
    last = [1.0] if scale < 512 else [checks.goodness(np.bincount(drawn & 15, minlength=16), bits / bits.sum())]
    return min(1.0, (1 + len(last)) * min(law, *last))


@pytest.mark.some_quick(5)
@pytest.mark.parametrize("scale", [F(1, 3), F(7, 2), F(33), F(1000), F(2**40), *SMALL, *WIDE], ids=str)
def test_geometric_law_at_a_million_draws(checks, scale):
    """Accepts the claimed scale and rejects 2/3, 3/2 and 3 % either way. No draw is negative."""
    drawn = samplers.geometric(scale, 10**6)
    assert drawn.min() >= 0
    assert _geometric_p_value(checks, drawn, scale) > checks.ALARM
    for wrong in (F(2, 3), F(3, 2), F(97, 100), F(103, 100)):
        assert _geometric_p_value(checks, drawn, wrong * scale) < checks.ALARM, wrong


@pytest.mark.parametrize("sampler", [samplers.discrete_laplace, samplers.geometric])
def test_every_chunk_has_the_same_signs(checks, sampler):
    """The second 2^15 draws are negative as often as the law says: detects 2 % more or less."""
    drawn = sampler(F(3), 2**16)[2**15 :]
    negative = int((drawn < 0).sum())
    if sampler is samplers.geometric:
        assert not negative
    else:
        q = math.exp(-1 / 3)
        assert checks.binomial(negative, len(drawn), q / (1 + q)) > checks.ALARM


@pytest.mark.parametrize(("kind", "scale"), [("laplace", F(1, 6)), ("gaussian", F(1, 4))])
def test_a_scale_below_one_puts_nearly_everything_on_zero(checks, kind, scale):
    """±1 has e^-6 (Laplace) or e^-8 (Gaussian) of the mass at 0; rejects 2/3, 3/2 and 10 % either way."""
    _law_holds(checks, kind, scale, 10**6, F(1, 10))


@pytest.mark.some_quick(2)
@pytest.mark.parametrize(
    "scale", [F(2**53), F(2**60), F(3) ** 50, F(2) ** 1100], ids=["2^53", "2^60", "3^50", "2^1100"]
)
@pytest.mark.parametrize("kind", SAMPLERS)
def test_scales_past_machine_integers(checks, kind, scale):
    """Python integers with the law of scale 2^30 once divided down (exact to 10^-9), every bit in use."""
    drawn = SAMPLERS[kind](scale, 10_000)
    if scale > 2**60:
        assert drawn.dtype == object
    shrunk = np.array([math.floor(F(int(k)) * 2**30 / scale) for k in drawn], dtype=np.int64)
    found = checks.histogram(shrunk, kind, F(2**30))
    assert found.p_value(F(2**30)) > checks.ALARM
    assert found.p_value(F(2**31, 3)) < checks.ALARM
    assert found.p_value(F(3 * 2**29)) < checks.ALARM
    last = np.array([int(k) & 15 for k in drawn])
    assert checks.goodness(np.bincount(last, minlength=16), [1 / 16] * 16) > checks.ALARM


@pytest.mark.some_quick(4)
@pytest.mark.parametrize("scale", [F(1, 3), F(1), F(7, 2), F(81, 2)], ids=str)
@pytest.mark.parametrize("kind", SAMPLERS)
def test_agreement_with_the_slow_reference(checks, kind, scale):
    """Two-sample chi-square of 40,000 draws with 4000 of the reference; 2/3 and 3/2 of the scale are told apart."""
    reference = checks.Reference(20240607)
    slow = reference.laplace if kind == "laplace" else lambda s: reference.gaussian(s * s)
    drawn = [slow(scale) for _ in range(4000)]
    assert checks.two_sample(SAMPLERS[kind](scale, 40_000), drawn) > checks.ALARM
    for wrong in (F(2, 3), F(3, 2)):
        assert checks.two_sample(SAMPLERS[kind](wrong * scale, 8000), drawn) < checks.ALARM


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("scale", [F(2), F(33), F(2**30)], ids=str)
@pytest.mark.parametrize("kind", SAMPLERS)
def test_draws_are_independent(checks, kind, scale):
    """Within a call and between calls; detects one draw in a hundred copied from its neighbor (asserted)."""
    draw = SAMPLERS[kind]
    assert checks.independence_of(lambda n: draw(scale, n), scale, 10**6) > checks.ALARM

    def copying(n):
        values = draw(scale, n)
        places = np.flatnonzero(samplers.bernoulli(F(1, 100), n - 1))
        values[places + 1] = values[places]
        return values

    if scale == 2:
        assert checks.independence_of(copying, scale, 10**6) < checks.ALARM


@pytest.mark.parametrize("scale", [F(1, 3), F(5), F(2**45)], ids=str)
@pytest.mark.parametrize("kind", SAMPLERS)
def test_signs_are_fair(checks, kind, scale):
    """Exact binomial test of the sign of 10^6 draws; detects P[negative] off by 0.3 %."""
    drawn = SAMPLERS[kind](scale, 10**6)
    negative, positive = int((drawn < 0).sum()), int((drawn > 0).sum())
    assert checks.binomial(negative, negative + positive, 0.5) > checks.ALARM
    assert negative + positive > 1000 * (scale > F(1, 3))


@pytest.mark.parametrize("size", [0, 1, 2, 23, 24, 2**15, 2**15 + 1])
def test_sizes(size):
    for drawn in (
        samplers.discrete_laplace(F(3), size),
        samplers.discrete_laplace(F(3000), size),
        samplers.geometric(F(3), size),
        samplers.geometric(F(3000), size),
        samplers.discrete_gaussian(F(10**9), size),
        samplers.discrete_laplace(F(2**80), min(size, 30)),
    ):
        assert drawn.shape == (min(size, 30) if drawn.dtype == object else size,)
    for drawn in (
        samplers.bernoulli(F(1, 3), size),
        samplers.uniform_below(7, size),
        samplers.permutation(size),
        samplers.bernoulli_exp_each(np.zeros(size, dtype=np.int64), F(1)),
    ):
        assert drawn.shape == (size,)


# --- paths that are rarely taken --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("bits", [1, 4])
def test_the_remainder_path_keeps_the_law(checks, bits):
    """With few table bits much of the mass is the remainder; 3000 draws reject 2/3 and 3/2 of the scale."""
    words = samplers.random_words(3000)
    sign = np.where(words & np.uint64(1), -1, 1)
    one_sided = OneSided(Shape("laplace", F(3)), halved=True, bits=bits)
    drawn = checks.histogram(sign * one_sided.draw(words >> np.uint64(64 - bits)), "laplace", F(3))
    assert drawn.p_value(F(3)) > checks.ALARM
    assert drawn.p_value(F(2)) < checks.ALARM
    assert drawn.p_value(F(9, 2)) < checks.ALARM


@pytest.mark.slow
def test_the_sampler_is_the_same_with_a_table_of_few_bits(checks, monkeypatch):
    """All of discrete_gaussian on cells, its table cut to 5 bits: 1200 draws reject 2/3 and 3/2 of the scale."""

    class Coarse(OneSided):
        def draw(self, words):
            return super().draw(words >> np.uint64(58))

    monkeypatch.setattr(samplers, "_one_sided", lambda shape, halved: Coarse(shape, halved=halved, bits=5))
    drawn = checks.histogram(samplers.discrete_gaussian(F(50) ** 2, 1200), "gaussian", F(50))
    assert drawn.p_value(F(50)) > checks.ALARM
    assert drawn.p_value(F(100, 3)) < checks.ALARM
    assert drawn.p_value(F(75)) < checks.ALARM


@pytest.mark.parametrize(("kind", "scale"), [("laplace", F(33)), ("gaussian", F(100)), ("laplace", F(2**55))])
def test_the_exact_path_decides_as_the_fast_one(checks, monkeypatch, kind, scale):
    """A guard band of a quarter sends most coins to arbitrary precision: same law, same draws from the same words."""
    with testing.frozen(11):
        fast = SAMPLERS[kind](scale, 8000)
    monkeypatch.setattr(samplers, "GUARD", 0.25)
    exact_decisions = []
    below_exp = samplers.below_exp
    monkeypatch.setattr(samplers, "below_exp", lambda *a: exact_decisions.append(1) or below_exp(*a))
    with testing.frozen(11):
        exact = SAMPLERS[kind](scale, 8000)
    assert len(exact_decisions) > 2000
    assert fast.tolist() == exact.tolist()
    if scale < 2**50:
        assert checks.law_of(lambda n: SAMPLERS[kind](scale, n), kind, scale, 8000) > checks.ALARM


def test_the_exact_path_of_coins_and_choices(checks, monkeypatch):
    """P[i] ∝ width·exp(-loss/3) and exp(-loss/3) with a guard band of a quarter; 8000 draws detect 10 % in a cell."""
    losses, widths, rate = np.array([4, 0, 7, 1, 2]), np.array([3, 1, 0, 5, 2]), F(1, 3)
    monkeypatch.setattr(samplers, "GUARD", 0.25)
    weights = widths * np.exp(-losses / 3)
    chosen = samplers.exponential_choice(losses, rate, 8000, widths)
    assert checks.goodness(np.bincount(chosen, minlength=5), weights / weights.sum()) > checks.ALARM
    heads = samplers.bernoulli_exp_each(np.tile(losses, 1500), rate).reshape(-1, 5).sum(axis=0)
    for count, loss in zip(heads, losses, strict=True):
        assert checks.binomial(int(count), 1500, math.exp(-loss / 3)) > checks.ALARM


# --- coins ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [F(1, 3), F(1, 2), F(999, 1000), F(1, 10**6), F(2, 7)], ids=str)
def test_coins_have_their_rational_probability(checks, p):
    """Exact binomial test of 10^6 coins; detects 0.3 % of p = 1/2."""
    assert checks.binomial(int(samplers.bernoulli(p, 10**6).sum()), 10**6, float(p)) > checks.ALARM


def test_certain_coins():
    assert samplers.bernoulli(F(1), 1000).all()
    assert not samplers.bernoulli(F(0), 1000).any()
    assert not samplers.bernoulli(F(1, 2**300), 1000).any()
    assert samplers.bernoulli(1 - F(1, 2**300), 1000).all()
    for p in (F(-1, 10), F(11, 10)):
        with refuses(InvalidArgument, "out-of-range"):
            samplers.bernoulli(p, 1)


@pytest.mark.parametrize("p", [F(1, 3), F(2, 7), F(1, 2), F(1, 2**70), F(3, 2**130), 1 - F(1, 2**90)], ids=str)
def test_ties_read_on(checks, p):
    """A first word equal to the first 64 bits of p decides nothing; the words after it do, exactly."""
    digits = math.floor(p * 2**192)
    first, second, third = digits >> 128, digits >> 64 & (2**64 - 1), digits & (2**64 - 1)
    for words, heads in [
        ([first - 1], True),
        ([first + 1], False),
        ([first, second - 1], True),
        ([first, second + 1], False),
        ([first, second, third - 1], True),
        ([first, second, third + 1], False),
    ]:
        if not 0 <= words[-1] < 2**64:
            continue
        with checks.scripted(*words) as script:
            assert samplers.bernoulli(p, 1).tolist() == [heads]
        assert script.used == 8 * len(words)


@pytest.mark.parametrize("energy", [F(1), F(1, 1000), F(30), F(22, 7)], ids=str)
def test_exponential_coins_read_on(checks, energy):
    """Words that agree with exp(-energy) to 64, 128 and 190 bits, then differ in the last place."""
    with mpmath.workdps(100):
        digits = int(
            mpmath.floor(mpmath.exp(-mpmath.mpf(energy.numerator) / energy.denominator) * mpmath.mpf(2) ** 192)
        )
    for words in (1, 2, 3):
        prefix = digits >> (192 - 64 * words)
        for offset, heads in ((-2, True), (2, False)):
            near = prefix + offset
            script = [near >> 64 * i & (2**64 - 1) for i in reversed(range(words))]
            for flip in (
                lambda: samplers.bernoulli_exp(energy, 1),
                lambda: samplers.bernoulli_exp_each(np.array([energy], dtype=object), F(1)),
                lambda: samplers.bernoulli_exp_each(np.array([energy.numerator]), F(1, energy.denominator)),
            ):
                with checks.scripted(*script, 2**63, 2**63):
                    assert flip().tolist() == [heads]


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("energy", [F(0), F(1, 10), F(1), F(8)], ids=str)
def test_exponential_coins_have_their_probability(checks, energy):
    """Exact binomial tests; 5000 coins one by one detect 15 % of exp(-1), 10^6 at once 1 %."""
    p = math.exp(-energy)
    assert checks.binomial(int(samplers.bernoulli_exp(energy, 5000).sum()), 5000, p) > checks.ALARM
    for losses, rate in ((np.full(10**6, energy.numerator), F(1, energy.denominator)),
                         (np.full(10**4, energy, dtype=object), F(1))):  # fmt: skip
        heads = int(samplers.bernoulli_exp_each(losses, rate).sum())
        assert checks.binomial(heads, len(losses), p) > checks.ALARM


def test_exponential_coins_at_the_ends():
    sure = [0, 0, 0]
    never = [10**6, 2**63 - 1, 10**18]
    heads = samplers.bernoulli_exp_each(np.array(sure + never), F(1))
    assert heads.tolist() == [True] * 3 + [False] * 3
    assert samplers.bernoulli_exp_each(np.array([0, 1]), F(10**400)).tolist() == [True, False]
    assert samplers.bernoulli_exp_each(np.array([F(0), F(10) ** 400], dtype=object), F(1)).tolist() == [True, False]
    assert not samplers.bernoulli_exp(F(10) ** 400, 3).any()
    with refuses(InvalidArgument, "not-whole"):
        samplers.bernoulli_exp_each(np.array([0.5]), F(1))


# --- choices ----------------------------------------------------------------------------------------------------------

BIG = F(10) ** 308
CHOICES = {
    "integers": ([3, 0, 1, 10], F(1, 2), None),
    "negative": ([-3, 0, -1, -10], F(1, 7), None),
    "fractions": ([F(1, 3), F(7, 5), F(0), F(-2, 3)], F(1), None),
    "±1e308": ([BIG, -BIG, -BIG + 1, -BIG + F(1, 2), F(1e308)], F(1), None),
    "±2^63": ([2**63 - 1, -(2**63), -(2**63) + 1, 0], F(1, 2), None),
    "narrow integers": (np.array([127, -128, -127, -126], dtype=np.int8), F(1), None),
    "widths": ([3, 0, 1, 2], F(1, 3), [10**6, 1, 0, 10**3]),
    "wide widths": ([30, 0, 29], F(1), [2**62, 1, 2**61]),
    "the best has no width": ([-(10**6), 2, 3], F(1), [0, 1, 1]),
    "a fraction without width, far below": ([F(-(10**400)), F(2), F(3)], F(1), [0, 1, 1]),
    "an integer without width, far below": ([-(2**63), 2**62, 2**62 + 1], F(1), [0, 1, 1]),
    "steep": ([0, 1, 0], F(10) ** 400, None),
    "flat": (list(range(300)), F(1, 10**400), None),
    "hopeless": ([5, 5 + 10**6, 5], F(1), None),
    "one": ([17], F(1), None),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choices_have_their_exact_probability(checks, name):
    """Chi-square of 40,000 choices against exact energies; detects 5 % in a cell of probability 1/4."""
    losses, rate, widths = CHOICES[name]
    array = losses if isinstance(losses, np.ndarray) else _array(losses)
    wide = [1] * len(losses) if widths is None else widths
    least = min(F(int(loss)) if not isinstance(loss, F) else loss for loss, w in zip(losses, wide, strict=True) if w)
    weights = []
    for loss, w in zip(array.tolist(), wide, strict=True):
        energy = rate * (loss - least)
        weights.append(w * mpmath.exp(-mpmath.mpf(energy.numerator) / energy.denominator) if w else mpmath.mpf(0))
    law = [float(w / mpmath.fsum(weights)) for w in weights]
    chosen = samplers.exponential_choice(array, rate, 40_000, None if widths is None else np.array(widths))
    counts = np.bincount(chosen, minlength=len(losses))
    assert len(counts) == len(losses)
    assert checks.goodness(counts, law) > checks.ALARM
    assert not counts[np.array(law) < 1e-12].any()


def _array(losses):
    if any(isinstance(loss, F) for loss in losses):
        return np.array([F(loss) for loss in losses] + [None], dtype=object)[:-1]
    return np.array(losses, dtype=np.int64)


def test_floats_are_refused_as_losses():
    with refuses(InvalidArgument, "not-whole"):
        samplers.exponential_choice(np.array([0.5, 1.5]), F(1))


@pytest.mark.parametrize(
    "bound", [1, 2, 3, 5, 6, 7, 10, 1000, 3 * 2**61, 2**63 - 1, 2**63, 3 * 2**62, 2**64 + 1, 10**30], ids=str
)
def test_uniform_draws_have_no_bias(checks, bound):
    """Thirds (or every value) are equally likely; `word % bound` would give thirds of 3·2^61 as 3:3:2."""
    size = 10_000 if bound > 2**63 else 100_000
    drawn = samplers.uniform_below(bound, size)
    assert all(0 <= k < bound for k in drawn[:5000].tolist())
    cells = min(bound, 99)
    counts = np.bincount([int(k) * cells // bound for k in drawn.tolist()], minlength=cells)
    ends = [-(-i * bound // cells) for i in range(cells + 1)]
    law = [(b - a) / bound for a, b in itertools.pairwise(ends)]
    assert checks.goodness(counts, law) > checks.ALARM
    if bound >= 2**40:
        assert (
            checks.goodness(np.bincount([int(k) & 7 for k in drawn.tolist()], minlength=8), [1 / 8] * 8) > checks.ALARM
        )


def test_uniform_needs_a_value():
    with refuses(InvalidArgument, "out-of-range"):
        samplers.uniform_below(0, 1)


@pytest.mark.slow
def test_every_order_is_equally_likely(checks):
    """12,000 orders of four against 1/24; detects one order 35 % too likely."""
    counts = np.zeros(4**4, dtype=np.int64)
    for _ in range(12_000):
        counts[int(samplers.permutation(4) @ [64, 16, 4, 1])] += 1
    seen = counts[counts > 0]
    assert len(seen) == 24
    assert checks.goodness(seen, [1 / 24] * 24) > checks.ALARM


def test_an_order_with_equal_keys_is_drawn_again(checks):
    with checks.scripted(5, 5, 1, 9, 2, 4):
        assert samplers.permutation(3).tolist() == [1, 2, 0]
