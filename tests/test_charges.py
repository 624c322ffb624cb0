"""What is charged for an answer with δ is kept by the noise that is drawn, whatever the ledger adds up."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import IncompatibleGuarantee
from discreet.exact.rational import exactly
from discreet.functions.density import density_of
from discreet.functions.regression import regression_curve
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.rules.best_of import RULES, rule_for

from .refusing import refuses

pytest.importorskip("sklearn", reason='needs pip install "discreet[learn]"')

UNIT = dp.person("pid")
LIMIT = dp.Approx(epsilon=40, delta=1e-2)
ONE: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
GOAL = dp.Approx(**ONE)
PEOPLE = 400
X = np.random.default_rng(0).uniform(0, 10, PEOPLE)
COLUMNS = {"pid": np.arange(PEOPLE), "x": X, "kind": np.where(X > 5, "a", "b"), "side": (X > 5).astype(np.int64)}
KINDS = ["a", "b", *(f"k{number}" for number in range(40))]
MANY = {"rows_per_person": 40, "groups_per_person": 40, "rows_per_group": 1}
"""In so many groups of one person the noise of counts is Gaussian."""


def opened(rule: str) -> dp.Ledger:
    return dp.Ledger.open(":memory:", protects=UNIT, limit=LIMIT, rule=rule)


def table_under(ledger: dp.Ledger, **bounds: int) -> Any:
    return dp.table(pa.table(COLUMNS), ledger=ledger, **({"rows_per_person": 1} | bounds), version="1")


def database_under(rule: str) -> Any:
    said = {"source": pa.table(COLUMNS), **MANY, "columns": {"kind": {"choices": KINDS}}}
    ledger = {"path": ":memory:", "epsilon": 40, "delta": 1e-2, "rule": rule}
    return dp.connect({"unit": {"person": "pid"}, "ledger": ledger, "tables": {"t": said}})


def model() -> Any:
    return dp.learn.LogisticRegression(classes=[0, 1], steps=3, **ONE)


OF_A_TABLE: dict[str, Callable[[Any], Any]] = {
    "quantiles": lambda table: table.quantiles("x", [0.1, 0.4, 0.5, 0.9], between=(0, 10), **ONE),
    "cdf": lambda table: table.cdf("x", between=(0, 10), step=1, **ONE),
    "synthesize": lambda table: table.synthesize({"x": (0, 10), "kind": ["a", "b"]}, rows=20, **ONE),
    "density": lambda table: table.density("x", between=(0, 10), **ONE),
    "groups not declared": lambda table: table.histogram("kind", **ONE),
    "most common": lambda table: table.most_common("kind", choices=["a", "b"], **ONE),
    "two most common": lambda table: table.most_common("kind", choices=["a", "b", "c"], k=2, **ONE),
    "fit": lambda table: table.fit(model(), features={"x": (0, 10)}, target="side").release_,
}
OF_A_LEDGER: dict[str, Callable[[dp.Ledger], Any]] = {
    "histogram": lambda ledger: table_under(ledger, **MANY).histogram("kind", choices=KINDS, **ONE),
    "fit of arrays": lambda ledger: model().set_params(ledger=ledger).fit(X[:, None], COLUMNS["side"]).release_,
    "density_of": lambda ledger: density_of(X, between=(0, 10), bandwidth=1, guarantee=GOAL, ledger=ledger),
    "regression_curve": lambda ledger: regression_curve(
        X, np.sin(X), between=(0, 10), bandwidth=1, guarantee=GOAL, size=PEOPLE, ledger=ledger
    ),
}
SQL = ["SELECT kind, COUNT(*) AS n FROM t GROUP BY kind", "SELECT side, COUNT(*) AS n FROM t GROUP BY side"]
ASKED = [*OF_A_TABLE, *OF_A_LEDGER, *SQL]


@cache
def charged(asked: str, rule: str) -> Guarantee:
    """What the last entry of a new ledger is, once that was asked."""
    if asked in SQL:
        database = database_under(rule)
        told, ledger = database.sql(asked, **ONE), database.ledger
    else:
        ledger = opened(rule)
        told = OF_A_TABLE[asked](table_under(ledger)) if asked in OF_A_TABLE else OF_A_LEDGER[asked](ledger)
    assert told.receipt == ledger.entries()[-1].receipt
    assert told.guarantee == ledger.entries()[-1].guarantee
    return told.guarantee  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["basic", "advanced", "best"])
@pytest.mark.parametrize("asked", ASKED)
def test_every_rule_takes_every_answer_with_a_delta(asked: str, rule: str) -> None:
    """The charge is for the ledger's unit, no more than was asked for, and no less than the noise keeps."""
    found = charged(asked, rule)
    assert found.protects == UNIT
    assert found.delta_at(epsilon=1) <= 1e-6 * (1 + 1e-6)
    if "GROUP BY side" in asked:  # the groups are chosen first, for the delta; then the counts are pure
        assert found.epsilon_at(delta=0) <= 0.5 * (1 + 1e-9)
    elif rule != "best":
        assert isinstance(found, Approx)
        assert 0 < exactly(found.delta) <= exactly(1e-6)
        own = charged(asked, "best")
        assert not isinstance(own, Approx)
        assert own.delta_at(epsilon=found.epsilon) <= float(found.delta) * (1 + 1e-6)


def test_the_rules_that_add_what_is_stated() -> None:
    assert {name for name, rule in RULES.items() if rule.adds_stated} == {"basic", "advanced"}


@pytest.mark.parametrize("name", RULES)
def test_what_is_charged_is_kept_by_what_is_drawn(name: str) -> None:
    rule = rule_for(dp.GaussianTradeoff(mu=1) if name == "gaussian" else LIMIT, name)
    enough = dp.Gaussian.for_guarantee(GOAL, sensitivity=1).guarantee(dp.Sensitivity(1, "L2", UNIT))
    too_little = dp.Gaussian(stddev=1).guarantee(1)
    pure = dp.Laplace(scale=1).guarantee(1)
    assert rule.charged(pure, dp.Pure(epsilon=1)) is pure
    assert rule.charged(enough, dp.ZeroConcentrated(rho=1)) is enough
    if name not in ("basic", "advanced"):
        assert rule.charged(enough, GOAL) is enough
        assert rule.charged(too_little, GOAL) is too_little
        return
    assert rule.charged(enough, dp.Approx(**ONE, protects=dp.row())) == dp.Approx(**ONE, protects=UNIT)
    with refuses(IncompatibleGuarantee, "guarantee-not-kept"):
        rule.charged(too_little, GOAL)


def test_a_rule_for_pure_releases_refuses_a_delta() -> None:
    ledger = opened("heterogeneous")
    with refuses(IncompatibleGuarantee, "incompatible-guarantee"):
        OF_A_LEDGER["density_of"](ledger)
    assert not ledger.entries()
