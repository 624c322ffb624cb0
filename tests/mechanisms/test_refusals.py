"""What is wrong with a mechanism, said where it is made and before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.errors import BudgetExhausted, DiscreetError, IncompatibleGuarantee, InvalidArgument
from discreet.mechanisms.adaptive.means import AdaptiveMeans, Answering
from discreet.mechanisms.adaptive.thresholdout import Checking, Thresholdout
from discreet.mechanisms.combine import Composed, Subsampled
from discreet.mechanisms.counts.count_tree import CountTree
from discreet.mechanisms.counts.small_database import SmallDatabase
from discreet.mechanisms.learning.descent.descent import Descent
from discreet.mechanisms.learning.descent.tuned import TunedDescent
from discreet.mechanisms.learning.minimizers.certified_minimum import Problem
from discreet.mechanisms.learning.minimizers.objective_perturbation import ObjectivePerturbation
from discreet.mechanisms.learning.minimizers.private_minimizer import PrivateMinimizer
from discreet.mechanisms.noise.covariance import CorrelatedGaussian
from discreet.mechanisms.noise.gaussian_process import GaussianProcess
from discreet.mechanisms.noise.laplace import taught_scale, taught_sum_scale
from discreet.mechanisms.quantiles.cumulative import CumulativeCounts
from discreet.mechanisms.quantiles.quantiles import Quantiles
from discreet.mechanisms.reports.bit_response import SubsetSelection
from discreet.mechanisms.reports.geometric_response import ProjectiveResponse
from discreet.mechanisms.reports.local_hashing import LocalHashing
from discreet.mechanisms.reports.local_mean import HybridResponse, WindowResponse
from discreet.mechanisms.reports.prefix_response import PrefixResponse
from discreet.mechanisms.reports.randomized_response import RandomizedResponse
from discreet.mechanisms.reports.shuffled import Shuffled, closed_form_bound
from discreet.mechanisms.selection.private_selection import NegativeBinomialTries, Selection
from discreet.mechanisms.selection.threshold import AboveThreshold, KeySelection
from discreet.queries.domain import Domain
from discreet.queries.workload import Workload
from discreet.rows.features import Axis, FourierFeatures, RandomFeatures
from discreet.rows.gradients.losses import Logistic
from discreet.rows.rounding import unit_of

from ..refusing import refuses

Asked = Callable[[], Any]
PURE, ONE, RHO = dp.Pure(epsilon=1), dp.Approx(epsilon=1, delta=1e-6), dp.ZeroConcentrated(rho=1)
RENYI = dp.Renyi(order=8, epsilon=1)
FINE = 2.0**-20
WIDE = Domain({f"c{number}": 10 for number in range(8)})
CURVE = FourierFeatures((Axis(low=0, high=1, bandwidth=1),))
RANDOM = RandomFeatures.drawn([(0, 1)], [1], 2)
WINDOW = WindowResponse(odds=3, grid=4)
LEARNING: dict[str, Any] = {"loss": Logistic(), "dimension": 2, "clip": 1, "steps": 2}
PERTURBED: dict[str, Any] = {"loss": Logistic(), "dimension": 2}
FLAT = np.array([[1389390.0, 446647.0, 1836037.0], [446647.0, 169445.0, 616092.0], [1836037.0, 616092.0, 2452129.0]])
NEARLY_FLAT = (FLAT + np.eye(3) * 2.42e-8).tolist()
STEPPED = dp.Gaussian(stddev=1, step=float(unit_of(1)))


def refused(asked: Asked, code: str, kind: type[DiscreetError] = InvalidArgument) -> None:
    with refuses(kind, code):
        asked()


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (lambda: dp.Laplace.for_error(0.5, step=1), "step-does-not-fit"),
        (
            lambda: dp.Laplace.for_guarantee(dp.guarantees.LossDistribution(factors=()), sensitivity=1),
            "guarantee-not-supported",
        ),
        (lambda: taught_scale(RHO, Fraction(1)), "formula-does-not-apply"),
        (lambda: taught_sum_scale("L10.T3", 1, 2, PURE), "needs-delta"),
        (lambda: taught_sum_scale("L10.T4", 1, 2, ONE), "not-an-option"),
        (lambda: CorrelatedGaussian(stddev=1, covariance=NEARLY_FLAT), "unsuitable-covariance"),
        (
            lambda: CumulativeCounts(space="ages", sums=dp.mechanisms.PrefixSums.for_guarantee(ONE, points=4)),
            "part-does-not-fit",
        ),
        (lambda: CountTree(points=4, branches=65, scale=1), "too-large"),
        (lambda: Quantiles(space=dp.Interval(0, 1), rate=1, quantiles=(Fraction(1, 2**31),)), "too-many-digits"),
        (lambda: Quantiles(space="ages", rate=1, quantiles=(0.5,)), "wrong-type"),
        (lambda: KeySelection.for_guarantee(ONE).guarantee(sensitivity=2), "sensitivity-not-taken"),
        (lambda: Thresholdout(size=9, queries=1, overfits=1, test=None, noise=None), "part-does-not-fit"),
        (lambda: GaussianProcess(features="age", noise=STEPPED), "wrong-type"),
        (lambda: GaussianProcess(features=CURVE, noise=dp.Gaussian(stddev=1)), "part-does-not-fit"),
        (lambda: GaussianProcess.for_guarantee(ONE, features=RANDOM, size=9), "conflicting-arguments"),
        (
            lambda: Composed(mechanisms=[dp.Laplace(scale=1)])._draw([1, 2]),
            "wrong-shape",
        ),
    ],
)
def test_noise_that_cannot_be(asked: Asked, code: str) -> None:
    refused(asked, code)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (lambda: Descent(**LEARNING, noise=STEPPED), "size-missing"),
        (lambda: Descent(**LEARNING, noise=dp.Gaussian(stddev=1), size=9), "part-does-not-fit"),
        (lambda: Descent.for_guarantee(RENYI, **LEARNING, size=9), "guarantee-not-supported"),
        (lambda: Descent.for_guarantee(RHO, **LEARNING, size=9, sampling=0.1), "guarantee-out-of-reach"),
        (lambda: TunedDescent(candidates=(), selection=None, scoring=None), "empty"),
        (lambda: PrivateMinimizer(**PERTURBED, ridge=1, noise=dp.Laplace(scale=1)), "part-does-not-fit"),
        (
            lambda: ObjectivePerturbation.for_guarantee(
                PURE, **PERTURBED, unit=dp.person("id"), rows_per_person=2, calibration="taught"
            ),
            "formula-does-not-apply",
        ),
        (lambda: ObjectivePerturbation.for_guarantee(PURE, **PERTURBED, ridge=1e-9), "ridge-too-small"),
        (
            lambda: Problem(Logistic(), 1, *map(Fraction, (1, "1e-30", 1)), (Fraction(0), Fraction(1)), 9).distance(
                Fraction(1)
            ),
            "ridge-too-small",
        ),
    ],
)
def test_learning_that_cannot_be(asked: Asked, code: str) -> None:
    refused(asked, code)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (lambda: SubsetSelection(size=3, odds=2, width=3), "out-of-range"),
        (lambda: ProjectiveResponse(size=9, odds=2, prime=4), "out-of-range"),
        (lambda: LocalHashing(size=2**21, odds=2).supported(np.zeros((1, 2))), "too-large"),
        (lambda: WindowResponse(odds=3, window=2), "out-of-range"),
        (lambda: WindowResponse(odds=1), "out-of-range"),
        (lambda: WindowResponse(odds=3, grid=2**20).laws(), "too-large"),
        (lambda: WindowResponse.for_guarantee(RHO, outputs=8), "guarantee-not-supported"),
        (lambda: HybridResponse(wide=WINDOW, coin=WINDOW, share=2), "out-of-range"),
        (
            lambda: PrefixResponse(oracle=LocalHashing(size=8, odds=2), base=2, length=3, lengths=(2,)),
            "not-increasing",
        ),
        (
            lambda: PrefixResponse(oracle=LocalHashing(size=8, odds=2), base=2, length=4, lengths=(4,)),
            "too-large",
        ),
        (lambda: RandomizedResponse.for_guarantee(PURE, choices=["a"]), "too-few-choices"),
        (
            lambda: Shuffled.for_guarantee(
                dp.Approx(epsilon=1e-9, delta=1e-12),
                clients=2,
                local=lambda pure: RandomizedResponse.for_guarantee(pure, choices=[0, 1]),
            ),
            "guarantee-out-of-reach",
        ),
        (lambda: closed_form_bound(9.0, 100, 1e-6), "formula-does-not-apply"),
    ],
)
def test_reports_that_cannot_be(asked: Asked, code: str) -> None:
    refused(asked, code)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (
            lambda: Selection.for_guarantee(
                PURE, tries=NegativeBinomialTries(stop=0.1), of=lambda size: dp.Pure(epsilon=100)
            ),
            "guarantee-out-of-reach",
        ),
        (
            lambda: SmallDatabase.for_error(1, workload=Workload.marginals(WIDE, 2), size=100),
            "too-large",
        ),
    ],
)
def test_a_choice_that_cannot_be(asked: Asked, code: str) -> None:
    refused(asked, code)


def test_one_mechanism_is_subsampled_at_a_time() -> None:
    twice = Composed(mechanisms=[dp.Laplace(scale=1), dp.Laplace(scale=1)])
    refused(lambda: Subsampled(mechanism=twice, rate=0.1).guarantee(1), "incompatible-guarantee", IncompatibleGuarantee)


def test_no_more_is_answered_than_was_charged() -> None:
    noise = dp.Gaussian(stddev=1, step=FINE)
    answering = Answering(AdaptiveMeans(size=9, queries=1, noise=noise))
    answering._draw(2**20)
    refused(lambda: answering._draw(2**20), "questions-used-up", BudgetExhausted)
    test = AboveThreshold(threshold=1, threshold_scale=1, answer_scale=1, step=FINE)
    refused(
        lambda: Thresholdout(size=9, queries=1, overfits=1, test=test, noise=dp.Gaussian(stddev=1)),
        "part-does-not-fit",
    )
    checking = Checking(Thresholdout(size=9, queries=1, overfits=1, test=test, noise=noise))
    checking._draw((0.5, 2**20))
    refused(lambda: checking._draw((0.5, 2**20)), "questions-used-up", BudgetExhausted)
    checking._ended = True
    refused(lambda: checking._draw((0.5, 2**20)), "overfits-used-up", BudgetExhausted)
