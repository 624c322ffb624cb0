"""Guarantees as values: units, guarantees, composition, accuracy, and exact checks of finite mechanisms."""

from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.finite.laws import FiniteLaws, repeat
from discreet.guarantees.finite.least_error import least_error
from discreet.guarantees.finite.verify import Neighbors, Verified, verify
from discreet.guarantees.guarantee import Approx, GaussianTradeoff, Guarantee, Pure, Renyi, ZeroConcentrated
from discreet.guarantees.influence import Influence
from discreet.guarantees.meaning.risk import Risk, risk
from discreet.guarantees.privacy_loss.compose import LossDistribution, compose
from discreet.guarantees.unit import Unit, person, row

__all__ = [
    "Accuracy",
    "Approx",
    "FiniteLaws",
    "GaussianTradeoff",
    "Guarantee",
    "Influence",
    "LossDistribution",
    "Neighbors",
    "Pure",
    "Renyi",
    "Risk",
    "Unit",
    "Verified",
    "ZeroConcentrated",
    "compose",
    "least_error",
    "person",
    "repeat",
    "risk",
    "row",
    "verify",
]
