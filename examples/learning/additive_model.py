"""An additive model: what each column adds to the prediction, learned privately, drawn and edited.

Run it with `python examples/learning/additive_model.py`. It saves a picture of the shapes if matplotlib is installed.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

import discreet as dp

CITIES = ["Haifa", "Ljubljana", "Bled", "Oslo"]
draw = np.random.default_rng(5)
rows = 30_000
frame = pd.DataFrame(
    {
        "age": draw.integers(18, 95, rows),
        "cost": np.where(draw.random(rows) < 0.6, 0, draw.lognormal(6, 1, rows)),
        "hour": draw.integers(0, 24, rows),
        "weekend": draw.random(rows) < 2 / 7,
        "city": draw.choice([*CITIES, "Rome"], rows),
    }
)
night = (frame["hour"] < 7) | (frame["hour"] > 21)
score = ((frame["age"] - 55) / 18) ** 2 - 1 + 1.2 * (frame["cost"] > 500) - 0.8 * (frame["city"] == "Bled")
score += np.where(frame["weekend"], 1.2, -1.2) * np.where(night, 1, -1)
readmitted = (draw.random(rows) < 1 / (1 + np.exp(1 - score))).astype(int)

ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=3, delta=1e-5))
model = dp.learn.AdditiveClassifier(
    epsilon=1,
    delta=1e-6,
    classes=[0, 1],
    ranges={"age": (18, 95), "hour": (0, 23)},  # the range of cost is found privately
    categories={"city": CITIES},
    pairs=[("hour", "weekend")],
    ledger=ledger,
)
model.fit(frame[:24_000], readmitted[:24_000])
held_out, truth = frame[24_000:], readmitted[24_000:]
print(f"AUC with ε = 1: {roc_auc_score(truth, model.decision_function(held_out)):.3f}")
print("left:", ledger.remaining)

for shape in model.shapes_.values():
    print(f"{shape.name:15} adds up to {np.abs(shape.values).max():.1f}, and noise at most ± {shape.band:.2f}")

straight = model.edit("cost", increasing=True).edit("city", choices=["Bled"], value=0)
print(f"AUC after two edits: {roc_auc_score(truth, straight.decision_function(held_out)):.3f}, and nothing is spent")

if importlib.util.find_spec("matplotlib"):
    path = Path(tempfile.mkdtemp()) / "shapes.png"
    model.plot(path)
    print("the shapes are drawn in", path)
