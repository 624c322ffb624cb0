"""Every line of the tour that is built so far, run as written. `python examples/tour.py` prints what each gives."""

import os
import tempfile

import numpy as np

import discreet as dp

os.chdir(tempfile.mkdtemp())  # each run begins with a new ledger; yours stays where it is

# Ask one question
ledger = dp.Ledger.open(
    "clinic.ledger", protects=dp.person("patient_id"), limit=dp.Approx(epsilon=10, delta=1e-5)
)  # created if missing; same terms or refused if present
print(ledger.spent, ledger.remaining, ledger.entries())

# Mechanisms, for people who build their own
m = dp.Laplace.for_guarantee(dp.Pure(epsilon=1), sensitivity=1)  # or dp.Laplace(scale=2), dp.Gaussian(stddev=3)
print(m.scale, m.guarantee(sensitivity=1), m.error(0.95))
print(
    dp.release(41, m, sensitivity=1, ledger=ledger).value
)  # ledger optional: the release always carries its guarantee
numpy_array = np.zeros(1_000_000)
print(dp.release(numpy_array, m, sensitivity=1).value)  # an array of exact noise, millions a second
r = dp.RandomizedResponse.for_guarantee(dp.Pure(epsilon=1), choices=["a", "b"])
print(r.guarantee())
g = m.guarantee(sensitivity=1)
print(dp.compose([g] * 100).epsilon_at(delta=1e-6))  # numerically tight, parameters fixed in advance
print(dp.Gaussian, dp.Exponential, dp.NoisyArgmax, dp.Each, dp.Composed, dp.Subsampled)
print(dp.verify(r).delta_at(epsilon=0.5))  # exact, by enumeration, for any finite mechanism
space = dp.Interval(0, 120)
print(dp.least_error(space, dp.Approx(epsilon=1, delta=1e-6)))  # least error any mechanism could have

# What a person sees
answer = dp.release(41, m, sensitivity=1, ledger=ledger)
print(answer)
print(answer.value, answer.error(0.95), answer.guarantee, answer.receipt)
print(g.epsilon_at(delta=1e-6), g.delta_at(epsilon=0.5))
print(ledger.spent, ledger.remaining, [entry.receipt for entry in ledger.entries()])

try:
    dp.release(41, dp.Laplace(scale=0.05), sensitivity=1, ledger=ledger)
except dp.BudgetExhausted as refused:
    print(refused)
