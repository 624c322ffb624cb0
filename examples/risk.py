"""What ε means: odds, the best attack, a household, and the life of a ledger."""

import os
import tempfile

import discreet as dp

os.chdir(tempfile.mkdtemp())

# before a limit is decided: what would it mean for one person, in words and odds?
print(dp.risk(dp.Pure(epsilon=1), protects=dp.person("patient_id")), end="\n\n")

# the same limit for a household of three, at a base rate of 2%
household = dp.risk(dp.Pure(epsilon=1), people=3)
print("A household of three:", household.posterior(0.02), "best guess is right:", household.success(0.02))

# which limit keeps an attacker below 10%, if the base rate is 2%?
for epsilon in (0.5, 1, 1.5, 2):
    low, high = dp.risk(dp.Pure(epsilon=epsilon)).posterior(0.02)
    print(f"ε = {epsilon}: at most {high:.1%}")

# what was spent; `discreet risk clinic.ledger` says it in words
ledger = dp.Ledger.open("clinic.ledger", protects=dp.person("patient_id"), limit=dp.Approx(epsilon=2, delta=1e-6))
dp.release(1234, dp.Laplace(scale=10), sensitivity=1, ledger=ledger, asked="patients over 65")
[period] = ledger.periods
print("spent", period.spent, "so odds changed by a factor of at most", dp.risk(period.spent).factor)

# a picture of the best attack for a web page, without any other package
print(len(dp.risk(ledger.limit).svg()), "characters of SVG")
