"""Survey people without a trusted collector: each device randomizes its own answer.

The collector sees noisy reports only. The counts and means are still right, with error bars that hold for any number
of reports. Run it with `python examples/local.py`.
"""

from __future__ import annotations

import numpy as np

import discreet as dp
from discreet import local

draw = np.random.default_rng(3)
EMOJI = ["🙂", "😐", "🙁", "😡"]

# A survey: `encode` runs on each device, `analyze` at the collector.
survey = local.survey(choices=EMOJI, epsilon=2)
print(survey)
moods = draw.choice(EMOJI, 20_000, p=[0.5, 0.3, 0.15, 0.05])
reports = [survey.encode(mood) for mood in moods[:1000]] + survey.encode_many(moods[1000:]).tolist()
counted = survey.analyze(reports)
print(f"  {counted}")
for choice, (low, high) in counted.intervals(0.95).items():
    true = (moods == choice).sum()
    print(f"  {choice} {counted.value[choice]:7,.0f}, between {low:,.0f} and {high:,.0f}; truly {true:,}")

# Enumeration checks the promise: no report is more than e² times as likely for one mood as for another.
print(f"  exactly: {dp.verify(survey)}")

# A thousand choices: another method is better, and its name is shown.
large = local.survey(domain_size=1024, epsilon=1)
print(f"\n{large}")

# Words from an open list: they are hashed on the device, and the collector names the candidates.
words = local.survey(domain="strings", epsilon=2)
said = words.encode_many(["coffee"] * 6000 + ["tea"] * 3000 + [f"drink {i}" for i in range(1000)])
print(f"\n{words}\n  {words.analyze(said, candidates=['coffee', 'tea', 'cocoa'])}")

# The most frequent words when there is no list of candidates at all.
search = local.heavy_hitters(length=6, epsilon=4, top=3)
found = search.analyze(search.encode_many(["coffee"] * 12_000 + ["tea"] * 8000 + ["mate"] * 6000))
print(f"\n{search}\n  {found}")

# A sketch: any text, and counting another candidate takes the same time for any number of reports.
sketch = local.sketch(width=256, hashes=128, epsilon=2)
said = sketch.encode_many(["coffee"] * 6000 + ["tea"] * 4000)
print(f"\n{sketch}\n  {sketch.analyze(said, ['coffee', 'tea', 'cocoa'])}")

# The mean of a number.
hours = local.mean(between=(0, 24), epsilon=1)
slept = np.clip(draw.normal(7.2, 1.1, 20_000), 0, 24)
print(f"\n{hours}\n  {hours.analyze(hours.encode_many(slept))}; truly {slept.mean():.2f}")

# Whole rows: the columns share ε.
rows = local.rows({"mood": EMOJI, "hours": (0, 24)}, epsilon=3)
print(f"\n{rows}")
for name, one in rows.analyze(rows.encode_many({"mood": moods, "hours": slept})).items():
    print(f"  {name}: {one}")

# The same question every day. Without a memory each day costs; with one, the first answer is sent again for free.
for memory in (None, {}):
    ledger = dp.Ledger.open(":memory:", protects=dp.row(neighbors="replace"), limit=dp.Pure(epsilon=30))
    daily = local.repeated(local.survey(choices=EMOJI, epsilon=1, ledger=ledger), memory=memory)
    for _ in range(30):
        daily.encode("🙂")
    with_memory = "without a memory" if memory is None else "with a memory"
    print(f"\n30 days {with_memory} cost ε = {ledger.spent['ε']:.3g} on the device")
