"""diffprivlib and Opacus for learning.py, each in its environment: `python -m bench.learning.learning_peers opacus`."""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from bench import peers
from bench.learning.learning_sets import SMALL, Fit, measured

EPSILONS = {"adult": (0.1, 0.3, 1.0, 3.0), "tuned": (0.1, 1.0), "mnist": (1.0,), "small": (0.5, 1.0, 3.0)}
# C, the only thing to set
C = {"adult": (1, 0.01), "tuned": (1, 0.1, 0.01, 0.001), "small": (100, 1)}
# epochs, batch, rate: one setting for each set of rows, chosen once, the same for all ε
SGD = {"adult": (10, 512, 4.0), "mnist": (10, 512, 4.0)}
SGD |= {"breast_cancer": (30, 64, 4.0), "digits": (30, 128, 4.0), "synthetic": (4, 2048, 8.0)}
SGD_TRIED = [(10, 512, 1.0), (10, 512, 4.0), (10, 512, 16.0), (30, 2048, 4.0), (30, 2048, 16.0)]


def objective_perturbation(c: float) -> Fit:
    from diffprivlib.models import LogisticRegression

    def fit(x: Any, y: Any, epsilon: float, delta: float, seed: int) -> Any:
        return (
            LogisticRegression(epsilon=epsilon, data_norm=1.0, C=c, max_iter=1000, random_state=seed).fit(x, y).predict
        )

    return fit


@lru_cache(maxsize=64)
def noise_of(epsilon: float, delta: float, rate: float, epochs: int) -> float:
    from opacus.accountants.utils import get_noise_multiplier

    return float(
        get_noise_multiplier(
            target_epsilon=epsilon, target_delta=delta, sample_rate=rate, epochs=epochs, accountant="prv"
        )
    )


def sgd(epochs: int, batch: int, rate: float, clip: float = 0.5) -> Fit:
    """DP-SGD as Opacus' own examples have it, from 0, with Poisson batches."""

    def fit(x: Any, y: Any, epsilon: float, delta: float, seed: int) -> Any:
        import torch
        from opacus import PrivacyEngine

        torch.manual_seed(seed)
        two = y.max() == 1
        target = torch.tensor(y, dtype=torch.float32 if two else torch.int64)
        rows = torch.utils.data.TensorDataset(torch.tensor(x, dtype=torch.float32), target)
        loader: Any = torch.utils.data.DataLoader(rows, batch_size=batch)
        model: Any = torch.nn.Linear(x.shape[1], 1 if two else int(y.max()) + 1)
        torch.nn.init.zeros_(model.weight)
        torch.nn.init.zeros_(model.bias)
        model, optimizer, loader = PrivacyEngine(accountant="prv").make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=rate),
            data_loader=loader,
            noise_multiplier=noise_of(epsilon, delta, 1 / len(loader), epochs),
            max_grad_norm=clip,
        )
        loss: Any = torch.nn.BCEWithLogitsLoss() if two else torch.nn.CrossEntropyLoss()
        for _ in range(epochs):
            for some, goal in loader:
                if len(some):
                    optimizer.zero_grad()
                    scores = model(some)
                    loss(scores[:, 0] if two else scores, goal).backward()
                    optimizer.step()
        plain = model._module

        def predict(test: Any) -> Any:
            with torch.no_grad():
                scores = plain(torch.tensor(test, dtype=torch.float32)).numpy()
            return (scores[:, 0] > 0).astype(int) if two else scores.argmax(1)

        return predict

    return fit


def diffprivlib(part: str, seeds: int) -> Iterator[dict[str, Any]]:
    """Objective perturbation, pure ε."""
    system = f"diffprivlib 0.6.6, C = {' / '.join(f'{c:g}' for c in C[part])}"
    for c in C[part]:
        for epsilon in EPSILONS[part]:
            for name in SMALL if part == "small" else ("adult",):
                yield measured(system, objective_perturbation(c), name, epsilon, seeds)


def opacus(part: str, seeds: int) -> Iterator[dict[str, Any]]:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    for name in SMALL if part == "small" else ("mnist" if part == "mnist" else "adult",):
        for epochs, batch, rate in SGD_TRIED if part == "tuned" else [SGD[name]]:
            system = f"Opacus 1.6.0, {epochs} × {batch}, rate {rate:g}"
            for epsilon in EPSILONS[part]:
                yield measured(system, sgd(epochs, batch, rate), name, epsilon, seeds)


PEERS = {"diffprivlib": diffprivlib, "opacus": opacus}


def theirs(part: str, seeds: int, *who: str) -> list[dict[str, Any]]:
    """What they measure for a part of learning.py; a peer that is missing says so."""
    os.environ |= {"LEARNING": part, "LEARNING_SEEDS": str(seeds)}
    return [row for peer in who for row in peers.measure(__spec__.name, peer)]


if __name__ == "__main__":
    for found in PEERS[sys.argv[1]](os.environ["LEARNING"], int(os.environ["LEARNING_SEEDS"])):
        print(json.dumps(found), flush=True)
