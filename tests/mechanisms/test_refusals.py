"""What is wrong with a mechanism, said where it is made and before anything is drawn."""

from __future__ import annotations

import re
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
from discreet.mechanisms.learning.certified_minimum import Problem
from discreet.mechanisms.learning.descent import Descent
from discreet.mechanisms.learning.objective_perturbation import ObjectivePerturbation
from discreet.mechanisms.learning.private_minimizer import PrivateMinimizer
from discreet.mechanisms.learning.tuned import TunedDescent
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
from discreet.rows.losses import Logistic
from discreet.rows.rounding import unit_of

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


def refused(asked: Asked, said: str, kind: type[DiscreetError] = InvalidArgument) -> None:
    with pytest.raises(kind, match=re.escape(said)):
        asked()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: dp.Laplace.for_error(0.5, step=1), "amount must be at least one step of the lattice"),
        (lambda: dp.Laplace.for_guarantee(dp.LossDistribution(factors=()), sensitivity=1), "cannot be calibrated for"),
        (lambda: taught_scale(RHO, Fraction(1)), "The documents calibrate Laplace noise for Pure and Approx only"),
        (lambda: taught_sum_scale("L10.T3", 1, 2, PURE), "L10.T3 needs δ above 0"),
        (lambda: taught_sum_scale("L10.T4", 1, 2, ONE), "theorem must be 'L10.A basic'"),
        (lambda: CorrelatedGaussian(stddev=1, covariance=NEARLY_FLAT), "too close to singular"),
        (lambda: CumulativeCounts(space="ages", sums=dp.PrefixSums.for_guarantee(ONE, points=4)), "A space of numbers"),
        (lambda: CountTree(points=4, branches=65, scale=1), "branches must be at most 64"),
        (lambda: Quantiles(space=dp.Interval(0, 1), rate=1, quantiles=(Fraction(1, 2**31),)), "at most 9 decimals"),
        (lambda: Quantiles(space="ages", rate=1, quantiles=(0.5,)), "space must be dp.Interval(low, high)"),
        (lambda: KeySelection.for_guarantee(ONE).guarantee(sensitivity=2), "is keys_per_person, a field of"),
        (lambda: Thresholdout(size=9, queries=1, overfits=1, test=None, noise=None), "test must be an AboveThreshold"),
        (lambda: GaussianProcess(features="age", noise=STEPPED), "features must be FourierFeatures or RandomFeatures"),
        (lambda: GaussianProcess(features=CURVE, noise=dp.Gaussian(stddev=1)), "with step=features.unit"),
        (lambda: GaussianProcess.for_guarantee(ONE, features=RANDOM, size=9), "Random features have no constant one"),
        (
            lambda: Composed(mechanisms=[dp.Laplace(scale=1)])._draw([1, 2]),
            "1 answers are needed, one for each mechanism",
        ),
    ],
)
def test_noise_that_cannot_be(asked: Asked, said: str) -> None:
    refused(asked, said)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: Descent(**LEARNING, noise=STEPPED), "Give the public number of rows as size="),
        (lambda: Descent(**LEARNING, noise=dp.Gaussian(stddev=1), size=9), "with step=unit_of(clip)"),
        (lambda: Descent.for_guarantee(RENYI, **LEARNING, size=9), "Descent is calibrated for Approx, Pure and"),
        (lambda: Descent.for_guarantee(RHO, **LEARNING, size=9, sampling=0.1), "No amount of this noise keeps"),
        (lambda: TunedDescent(candidates=(), selection=None, scoring=None), "At least one setting is needed"),
        (lambda: PrivateMinimizer(**PERTURBED, ridge=1, noise=dp.Laplace(scale=1)), "noise must be Gaussian"),
        (
            lambda: ObjectivePerturbation.for_guarantee(
                PURE, **PERTURBED, unit=dp.person("id"), rows_per_person=2, calibration="taught"
            ),
            "The documents speak of one row of a person",
        ),
        (lambda: ObjectivePerturbation.for_guarantee(PURE, **PERTURBED, ridge=1e-9), "No noise keeps this ε with so"),
        (
            lambda: Problem(Logistic(), 1, *map(Fraction, (1, "1e-30", 1)), (Fraction(0), Fraction(1)), 9).distance(
                Fraction(1)
            ),
            "ridge is too small to find the minimizer so exactly",
        ),
    ],
)
def test_learning_that_cannot_be(asked: Asked, said: str) -> None:
    refused(asked, said)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: SubsetSelection(size=3, odds=2, width=3), "width must be below the number of values"),
        (lambda: ProjectiveResponse(size=9, odds=2, prime=4), "prime must be a prime number"),
        (lambda: LocalHashing(size=2**21, odds=2).supported(np.zeros((1, 2))), "The domain is too large to be listed"),
        (lambda: WindowResponse(odds=3, window=2), "window must be below outputs"),
        (lambda: WindowResponse(odds=1), "odds must be above 1 and at most 1e18"),
        (lambda: WindowResponse(odds=3, grid=2**20).laws(), "There are too many places to be listed"),
        (lambda: WindowResponse.for_guarantee(RHO, outputs=8), "Local reports are calibrated for Pure and Approx"),
        (lambda: HybridResponse(wide=WINDOW, coin=WINDOW, share=2), "share must be between 0 and 1"),
        (
            lambda: PrefixResponse(oracle=LocalHashing(size=8, odds=2), base=2, length=3, lengths=(2,)),
            "lengths must grow",
        ),
        (
            lambda: PrefixResponse(oracle=LocalHashing(size=8, odds=2), base=2, length=4, lengths=(4,)),
            "too many for the",
        ),
        (lambda: RandomizedResponse.for_guarantee(PURE, choices=["a"]), "needs at least two choices"),
        (
            lambda: Shuffled.for_guarantee(
                dp.Approx(epsilon=1e-9, delta=1e-12),
                clients=2,
                local=lambda pure: RandomizedResponse.for_guarantee(pure, choices=[0, 1]),
            ),
            "No local randomizer keeps this with so few clients",
        ),
        (lambda: closed_form_bound(9.0, 100, 1e-6), "The closed form is proved for a smaller local ε"),
    ],
)
def test_reports_that_cannot_be(asked: Asked, said: str) -> None:
    refused(asked, said)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            lambda: Selection.for_guarantee(
                PURE, tries=NegativeBinomialTries(stop=0.1), of=lambda size: dp.Pure(epsilon=100)
            ),
            "No run is private enough for so many tries",
        ),
        (
            lambda: SmallDatabase.for_error(1, workload=Workload.marginals(WIDE, 2), size=100),
            "cells, and at most 10^7 can be listed",
        ),
    ],
)
def test_a_choice_that_cannot_be(asked: Asked, said: str) -> None:
    refused(asked, said)


def test_one_mechanism_is_subsampled_at_a_time() -> None:
    twice = Composed(mechanisms=[dp.Laplace(scale=1), dp.Laplace(scale=1)])
    refused(
        lambda: Subsampled(mechanism=twice, rate=0.1).guarantee(1), "Subsample one mechanism", IncompatibleGuarantee
    )


def test_no_more_is_answered_than_was_charged() -> None:
    noise = dp.Gaussian(stddev=1, step=FINE)
    answering = Answering(AdaptiveMeans(size=9, queries=1, noise=noise))
    answering._draw(2**20)
    refused(lambda: answering._draw(2**20), "All 1 questions are asked", BudgetExhausted)
    test = AboveThreshold(threshold=1, threshold_scale=1, answer_scale=1, step=FINE)
    refused(
        lambda: Thresholdout(size=9, queries=1, overfits=1, test=test, noise=dp.Gaussian(stddev=1)),
        "noise must be Gaussian or Laplace noise with step=2**-20",
    )
    checking = Checking(Thresholdout(size=9, queries=1, overfits=1, test=test, noise=noise))
    checking._draw((0.5, 2**20))
    refused(lambda: checking._draw((0.5, 2**20)), "All 1 questions are asked", BudgetExhausted)
    checking._ended = True
    refused(lambda: checking._draw((0.5, 2**20)), "All allowed overfits are used up", BudgetExhausted)
