"""Bad parameters give a typed error before the data is looked at, and never a noiseless release."""

import math

import pytest

import discreet as dp
from discreet.mechanisms.noise.joint import JointNoise
from discreet.mechanisms.selection.person_limits import PersonLimits
from discreet.mechanisms.selection.support_limit import SupportLimit
from discreet.mechanisms.selection.weighted_keys import WeightedKeys

from ..refusing import refuses

BAD_EPSILON = [0, -1, math.nan, math.inf, 1e-300, 1e300, "1", True, None, 1j]
BAD_DELTA = [-1, 1, math.nan, math.inf, "0", True, None]
BAD_SIZE = [0, -0.0, -1, math.nan, math.inf, -math.inf, None, "1", True, 1j]
BAD_STEP = [0, 3, 0.3, -1, math.nan, math.inf, "1", True]
INTEGERS, CHOICES = dp.Integers(0, 9), ["a", "b"]
SEARCH = dp.mechanisms.UpwardSearch(enough=1, bar_scale=1, step_scale=1)
SEARCHES = PersonLimits(limits=((1, 2), (5,)), searches=(SEARCH, None))


class Untouchable:
    """Data that must not be looked at: any access is a failure of the test."""

    def __getattribute__(self, name):
        if name in ("__class__", "__dict__"):
            return object.__getattribute__(self, name)
        raise AssertionError(f"the data was touched: {name}")

    def _touched(self, *_, **__):
        raise AssertionError("the data was touched")

    __array__ = __iter__ = __len__ = __getitem__ = __float__ = __int__ = __eq__ = __bool__ = __repr__ = _touched
    __hash__ = None


def ledger():
    return dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=10, delta=1e-3))


def refused(mechanism, sensitivity):
    book = ledger()
    with pytest.raises(dp.InvalidArgument):
        dp.release(Untouchable(), mechanism(), sensitivity=sensitivity, ledger=book)
    assert book.entries() == ()


@pytest.mark.parametrize("epsilon", BAD_EPSILON, ids=repr)
def test_epsilon(epsilon):
    for make in (
        lambda: dp.Pure(epsilon=epsilon),
        lambda: dp.Approx(epsilon=epsilon, delta=0),
        lambda: dp.Renyi(order=2, epsilon=epsilon),
        lambda: dp.Laplace.for_guarantee(dp.Pure(epsilon=epsilon), sensitivity=1),
    ):
        with pytest.raises(dp.InvalidArgument):
            make()
    if epsilon != 0:  # (0, δ) is a promise: a leak with probability δ and nothing else
        with pytest.raises(dp.InvalidArgument):
            dp.Approx(epsilon=epsilon, delta=1e-6)


@pytest.mark.parametrize("delta", BAD_DELTA, ids=repr)
def test_delta(delta):
    for make in (
        lambda: dp.Approx(epsilon=1, delta=delta),
        lambda: dp.Pure(epsilon=1).epsilon_at(delta=delta),
        lambda: dp.ZeroConcentrated(rho=1).epsilon_at(delta=delta),
        lambda: dp.Laplace(scale=1).guarantee(1).epsilon_at(delta=delta),
        lambda: dp.mechanisms.KeySelection.for_error(5, delta=delta),
        lambda: dp.mechanisms.CommonKeys.for_guarantee(dp.Approx(epsilon=1, delta=delta)),
        lambda: WeightedKeys.for_guarantee(dp.Approx(epsilon=1, delta=delta)),
    ):
        with pytest.raises(dp.InvalidArgument):
            make()


@pytest.mark.parametrize("epsilon", [-1, math.nan, "1", True], ids=repr)
def test_epsilon_of_a_curve(epsilon):
    for guarantee in (dp.ZeroConcentrated(rho=1), dp.GaussianTradeoff(mu=1), dp.Laplace(scale=1).guarantee(1)):
        with pytest.raises(dp.InvalidArgument):
            guarantee.delta_at(epsilon=epsilon)


@pytest.mark.parametrize("size", BAD_SIZE, ids=repr)
@pytest.mark.parametrize(
    "make",
    [
        lambda x: dp.Laplace(scale=x),
        lambda x: dp.Gaussian(stddev=x),
        lambda x: dp.NoisyArgmax(scale=x),
        lambda x: dp.Exponential(rate=x),
        lambda x: dp.mechanisms.PermuteAndFlip(rate=x),
        lambda x: dp.mechanisms.TopK(k=1, rate=x),
        lambda x: dp.mechanisms.SmallDatabase(
            workload=dp.queries.Workload.prefixes(dp.queries.Domain({"x": 3})), size=5, rows=2, rate=x
        ),
        lambda x: dp.mechanisms.Quantile(space=INTEGERS, rate=x),
        lambda x: dp.mechanisms.KeySelection(scale=x, threshold=10),
        lambda x: dp.mechanisms.AboveThreshold(threshold=0, threshold_scale=x, answer_scale=1),
        lambda x: dp.mechanisms.AboveThreshold(threshold=0, threshold_scale=1, answer_scale=x),
        lambda x: dp.mechanisms.CommonKeys(order=x, losses=(1,), leaks=(0.1,)),
        lambda x: dp.mechanisms.CommonKeys(order=4, losses=(x,), leaks=(0.1,)),
        lambda x: dp.mechanisms.CommonKeys(order=4, losses=(1,), leaks=(x,)),
        lambda x: dp.mechanisms.UpwardSearch(enough=1, bar_scale=x, step_scale=1),
        lambda x: dp.mechanisms.UpwardSearch(enough=1, bar_scale=1, step_scale=x),
        lambda x: WeightedKeys(first_stddev=x, first_threshold=40, stddev=3, threshold=15),
        lambda x: WeightedKeys(first_stddev=9, first_threshold=x, stddev=3, threshold=15),
        lambda x: WeightedKeys(first_stddev=9, first_threshold=40, stddev=x, threshold=15),
        lambda x: WeightedKeys(first_stddev=9, first_threshold=40, stddev=3, threshold=x),
        lambda x: PersonLimits.for_guarantee(dp.Pure(epsilon=1), limits=[(1, 2)], people=x, sensitivity=1),
        lambda x: SupportLimit(limits=(1, 2), penalty=1, rate=x),
        lambda x: JointNoise(noise=x),
        lambda x: dp.RandomizedResponse(choices=CHOICES, lie=x),
        lambda x: dp.Subsampled(mechanism=dp.Laplace(scale=1), rate=x),
        lambda x: dp.Composed(mechanisms=(dp.Laplace(scale=x),)),
        lambda x: dp.ZeroConcentrated(rho=x),
        lambda x: dp.GaussianTradeoff(mu=x),
        lambda x: dp.Sensitivity(x),
        lambda x: dp.Laplace.for_error(x),
        lambda x: dp.Gaussian.for_error(x),
        lambda x: dp.Exponential.for_error(x, candidates=3),
    ],
)
def test_sizes(make, size):
    refused(lambda: make(size), 1)


@pytest.mark.parametrize("sensitivity", BAD_SIZE, ids=repr)
@pytest.mark.parametrize(
    "mechanism",
    [
        dp.Laplace(scale=1),
        dp.Gaussian(stddev=1),
        dp.Exponential(rate=1),
        dp.mechanisms.PermuteAndFlip(rate=1),
        dp.mechanisms.TopK(k=1, rate=1),
        dp.NoisyArgmax(scale=1),
        dp.mechanisms.AboveThreshold(threshold=0, threshold_scale=1, answer_scale=1),
        dp.mechanisms.UpwardSearch(enough=1, bar_scale=1, step_scale=1),
        SEARCHES,
        SupportLimit(limits=(1, 2), penalty=1, rate=1),
        JointNoise(noise=dp.Laplace(scale=1)),
        dp.Composed(mechanisms=(dp.Laplace(scale=1), dp.Exponential(rate=1))),
        dp.Subsampled(mechanism=dp.Laplace(scale=1), rate=0.5, query=len),
        dp.Subsampled(mechanism=dp.Exponential(rate=1), rate=0.5, query=len),
    ],
    ids=lambda m: type(m).__name__,
)
def test_sensitivities(mechanism, sensitivity):
    refused(lambda: mechanism, sensitivity)
    with pytest.raises(dp.InvalidArgument):
        mechanism.guarantee(sensitivity)
    if hasattr(type(mechanism), "for_guarantee") and type(mechanism) in (dp.Laplace, dp.Gaussian, dp.Exponential):
        with pytest.raises(dp.InvalidArgument):
            type(mechanism).for_guarantee(dp.Approx(epsilon=1, delta=0.1), sensitivity=sensitivity)


@pytest.mark.parametrize("step", BAD_STEP, ids=repr)
@pytest.mark.parametrize("kind", [dp.Laplace, dp.Gaussian, dp.NoisyArgmax])
def test_steps(kind, step):
    refused(lambda: kind(**{kind.size_field: 1}, step=step), 1)


@pytest.mark.parametrize("confidence", [0, 1, -1, math.nan, "0.9", True, 2])
def test_confidences(confidence):
    for mechanism in (dp.Laplace(scale=1), dp.Gaussian(stddev=1), dp.mechanisms.Quantile(space=INTEGERS, rate=1)):
        with pytest.raises(dp.InvalidArgument):
            mechanism.error(confidence)


def test_counts():
    for make in (
        lambda: dp.mechanisms.KeySelection(scale=1, threshold=1),
        lambda: dp.mechanisms.KeySelection(scale=1, threshold=10.5),
        lambda: dp.mechanisms.KeySelection(scale=1, threshold=30, keys_per_person=0),
        lambda: dp.mechanisms.CommonKeys(order=4, losses=(1, 1), leaks=(0.1,)),
        lambda: dp.mechanisms.CommonKeys(order=4, losses=(), leaks=()),
        lambda: dp.mechanisms.CommonKeys(order=4, losses=1, leaks=0.1),
        lambda: dp.mechanisms.CommonKeys(order=4, losses=(1,), leaks=(0.1,), keys_per_person=0),
        lambda: dp.mechanisms.CommonKeys(order=4, losses=(1,), leaks=(0.1,), keys_per_person=10**9),
        lambda: dp.mechanisms.UpwardSearch(enough=-1, bar_scale=1, step_scale=1),
        lambda: dp.mechanisms.UpwardSearch(enough=1.5, bar_scale=1, step_scale=1),
        lambda: dp.mechanisms.UpwardSearch(enough=1, bar_scale=1, step_scale=1).error(0.9, limits=0),
        lambda: SupportLimit(limits=(), penalty=1, rate=1),
        lambda: SupportLimit(limits=(2, 1), penalty=1, rate=1),
        lambda: SupportLimit(limits=(1, 1), penalty=1, rate=1),
        lambda: SupportLimit(limits=(0, 1), penalty=1, rate=1),
        lambda: SupportLimit(limits=(1, 2), penalty=-1, rate=1),
        lambda: SupportLimit(limits=(1, 2), penalty=1, rate=1, step=-1),
        lambda: SupportLimit.for_guarantee(dp.Approx(epsilon=1, delta=0.1), limits=(1,), penalty=1, sensitivity=1),
        lambda: PersonLimits(limits=((1, 2),), searches=(None,)),
        lambda: PersonLimits(limits=((1,),), searches=(None,)),
        lambda: PersonLimits(limits=((1, 2), (1,)), searches=(SEARCH,)),
        lambda: PersonLimits(limits=((1,), (1, 2)), searches=(SEARCH, None)),
        lambda: WeightedKeys(first_stddev=9, first_threshold=40, stddev=3, threshold=15, keys_per_person=0),
        lambda: WeightedKeys(first_stddev=9, first_threshold=40, stddev=3, threshold=15, keys_per_person=1.5),
        lambda: dp.Laplace(scale=1).error(0.9, values=0),
        lambda: dp.Gaussian(stddev=1).error(0.9, values=0),
        lambda: dp.RandomizedResponse(choices=["a"], lie=0.1),
        lambda: dp.RandomizedResponse(choices=["a", "a"], lie=0.1),
        lambda: dp.RandomizedResponse(choices=["a", "b"], lie=0.6),
        lambda: dp.mechanisms.Quantile(space=INTEGERS, rate=1, quantile=0),
        lambda: dp.mechanisms.Quantile(space=INTEGERS, rate=1, quantile=1),
        lambda: dp.Composed(mechanisms=()),
        lambda: dp.Each(mechanisms=(), spaces=()),
        lambda: dp.Each(mechanisms=(dp.Laplace(scale=1),), spaces=(dp.queries.Ball(3),)),
        lambda: dp.Renyi(order=1, epsilon=1),
        lambda: dp.Subsampled(mechanism=dp.Laplace(scale=1), rate=1.5),
    ):
        with pytest.raises(dp.InvalidArgument):
            make()


def test_a_sensitivity_for_fewer_coordinates_is_refused():
    for bound in (dp.Sensitivity(1, "L2"), dp.Sensitivity(1, "L1", dimension=2)):
        with refuses(dp.InvalidArgument, "sensitivity-wrong-size"):
            dp.release([1.0, 2.0, 3.0], dp.Laplace(scale=1), sensitivity=bound)


def test_what_is_not_a_mechanism():
    with refuses(dp.InvalidArgument, "wrong-type"):
        dp.release(Untouchable(), "laplace", sensitivity=1)
    with refuses(dp.InvalidArgument, "wrong-type"):
        dp.release(Untouchable(), dp.Pure(epsilon=1), sensitivity=1)
    with refuses(dp.InvalidArgument, "sensitivity-not-taken"):
        dp.release(Untouchable(), dp.Laplace(scale=1), query=dp.Count())
