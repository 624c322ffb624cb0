"""A poll in the shuffle model: see its cost and its error before anyone is asked, then run it."""

import numpy as np

import discreet as dp
from discreet.shuffle.simulation import simulate

COUNTRIES = ["AT", "HR", "HU", "IL", "IT", "SI"]
CLIENTS = 20_000

poll = dp.shuffle.histogram(choices=COUNTRIES, clients=CLIENTS, epsilon=1, delta=1e-8, honest=0.8)
print(f"each client sends {poll.messages} messages of {poll.length} byte; the error of a count is {poll.error(0.95)}")
print("if the shuffler and the analyzer collude:", poll.if_they_collude or "the answer itself is known")

# synthetic clients; in a real poll each of them runs `poll.encode(answer)` on its own device
rng = np.random.default_rng(3)
answers = rng.choice(COUNTRIES, CLIENTS, p=[0.05, 0.1, 0.15, 0.4, 0.1, 0.2])
messages = rng.permutation(poll.encode_many(answers))  # the shuffler's work

answer = poll.analyze(messages)
for country, count in answer.value.items():
    print(f"{country}  {count:8.1f} ± {float(answer.error(0.95)):.1f}   truly {int((answers == country).sum())}")

# one report too few: nothing is released
try:
    poll.analyze(messages[: -poll.messages])
except dp.NotAllowed as refused:
    print("refused:", refused)

print()
print(simulate(clients=CLIENTS, epsilon=1, runs=20))
