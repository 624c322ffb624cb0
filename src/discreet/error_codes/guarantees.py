"""Codes of guarantees, of the rules that add them up, and of the exact check of finite mechanisms."""

from __future__ import annotations

from discreet.error_codes.row import Explained

GUARANTEES = {
    "needs-delta": Explained(
        "`dp.Gaussian.for_guarantee(dp.Pure(epsilon=1), sensitivity=1)`",
        "This noise, rule or selection cannot keep a guarantee with δ = 0.",
        "`dp.Approx(epsilon=1, delta=1e-6)`",
    ),
    "guarantee-not-supported": Explained(
        "`dp.mechanisms.AboveThreshold.for_guarantee(dp.ZeroConcentrated(rho=1), …)`",
        "The mechanism cannot be calibrated for a guarantee of this kind.",
        "a kind that the message names, such as `dp.Pure(epsilon=1)`",
    ),
    "guarantee-out-of-reach": Explained(
        "a very small `epsilon` or `delta` for a mechanism with fixed parts",
        "No amount of noise keeps this guarantee with the other arguments as they are.",
        "a weaker guarantee, or more clients, fewer tries or cheaper answers",
    ),
    "guarantee-not-kept": Explained(
        "a release of a mechanism that adds too little noise for the (ε, δ) it was made for",
        "The charge would be smaller than the real cost. This is a bug of the mechanism.",
        "a report of the bug; meanwhile, another mechanism",
    ),
    "no-epsilon-at-delta": Explained(
        '`poll.analyze(messages, ledger=ledger)` with a ledger of `rule="basic"` and a very small δ',
        "The rule adds up ε and δ, and the release keeps no finite ε at a δ as small as the limit's.",
        "a limit with a larger δ, another `rule`, or `stated=dp.Approx(epsilon=1, delta=1e-6)`",
    ),
    "formula-does-not-apply": Explained(
        '`dp.Gaussian.for_guarantee(dp.Approx(epsilon=3, delta=1e-6), sensitivity=1, calibration="taught")`',
        "The published formula is proved for other values only.",
        '`calibration="tight"`, which holds for all values',
    ),
    "rule-does-not-fit": Explained(
        '`dp.Ledger.open(…, limit=dp.ZeroConcentrated(rho=1), rule="gaussian")`',
        "The rule of composition cannot guard this limit.",
        "the rule that the message names, or no `rule`: the natural one of the limit",
    ),
    "limit-shrinks": Explained(
        "a new limit below the old one",
        "A limit can only grow: what was spent under the old one may already pass a smaller one.",
        "a limit of the same kind that is at least as large",
    ),
    "error-not-known": Explained(
        "`float(release.accuracy)` of a release without a bound on its error",
        "No bound is known for this release; the message says why.",
        "a check of `accuracy.amount is None` first",
    ),
    "not-a-distribution": Explained(
        '`dp.verify({"a": {0: 0.7, 1: 0.7}, …}, …)`',
        "Probabilities are at least 0 and add up to at most 1.",
        '`{"a": {0: Fraction(7, 10), 1: Fraction(3, 10)}, …}`',
    ),
    "not-finite": Explained(
        "`dp.verify(dp.Laplace(scale=2), …)`",
        "Only what has finitely many outputs or points can be enumerated.",
        "a mechanism with a method `laws()`, or a mapping of inputs to their distributions; a finite space",
    ),
    "different-inputs": Explained(
        "a composition of mechanisms with other inputs, or with the same inputs in another order",
        "The distributions of both must be known for each input.",
        "mechanisms with the same inputs in the same order",
    ),
    "no-exact-law": Explained(
        "`dp.testing.exact_law(run)` of a mechanism whose sampler has no known law",
        "An enumeration needs the exact distribution of every draw.",
        "a mechanism that uses another sampler",
    ),
    "times-missing": Explained(
        '`dp.for_unit(guarantee, dp.person("id"))` of what protects one person in one month',
        "How many months one person is counted in is not known.",
        '`dp.for_unit(guarantee, dp.person("id"), times=12)`',
    ),
}
