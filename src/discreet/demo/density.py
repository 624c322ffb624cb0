"""What a visit costs: a whole density, released once, with a band that holds everywhere."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from discreet.demo.data import PEOPLE, VISITS, columns_of, make_clinic
from discreet.demo.pictures import BAND, INK, PRIVATE
from discreet.demo.pictures import TRUTH as GRAY
from discreet.demo.story import ONLY_HERE, TRUTH, Story
from discreet.guarantees.guarantee import Approx
from discreet.guarantees.unit import person
from discreet.ledger import Ledger
from discreet.tables.table import table

RANGE, BANDWIDTH, EPSILON, DELTA = (0, 3000), 100, 0.3, 1e-6
PLACES = (100, 250, 500, 1000, 2000)
CODE = """
>>> import discreet as dp
>>> ledger = dp.Ledger.open("clinic.ledger", protects=dp.person("patient_id"),
...                         limit=dp.Approx(epsilon=4, delta=1e-5))
>>> visits = dp.table("visits.parquet", ledger=ledger, rows_per_person=20)
>>> density = visits.density("cost", between=(0, 3000), epsilon=1, delta=1e-6)
>>> density(250.0), density.quantile(0.9), density.plot("cost.png")
"""


def tell(teller: Story) -> None:
    """Release a density, and evaluate it at some points for free."""
    with tempfile.TemporaryDirectory(prefix="discreet_demo_") as folder:
        make_clinic(Path(folder))
        ledger = Ledger.open(":memory:", protects=person("patient_id"), limit=Approx(epsilon=4, delta=1e-5))
        teller.begin(
            {
                "data": f"{VISITS:,} visits of {PEOPLE:,} synthetic patients",
                "question": "How are the costs of visits distributed?",
                "protects": "all visits of one patient, up to 20 of them",
                "limit": f"{ledger.limit}",
            }
        )
        source = f"{folder}/visits.parquet"
        visits = table(source, ledger=ledger, rows_per_person=20)
        density = visits.density("cost", between=RANGE, bandwidth=BANDWIDTH, epsilon=EPSILON, delta=DELTA)
        costs = np.asarray(columns_of(f"SELECT cost FROM '{source}'")["cost"])
    off = float(density.error(0.95))
    exact = _without_noise(costs)
    teller.show(
        ["at a cost of", "visits per 1,000 and unit of cost", TRUTH],
        [
            [f"{place:,}", f"{1000 * density(float(place)):.3f} ± {1000 * off:.3f}", f"{1000 * exact(place):.3f}"]
            for place in PLACES
        ],
    )
    teller.out.print(
        f"[dim]{ONLY_HERE}[/] The truth is the same curve without noise. "
        "The ± holds at every point of the curve at once, with 95% confidence."
    )
    teller.end(
        {
            "answer": "costs near {:,.0f} are the most common (truth*: near {:,.0f})".format(
                *map(_peak, (density, exact))
            ),
            "cost": f"{density.guarantee}; more points are free",
            "remains": f"{ledger.remaining}",
        },
        lambda figure: _draw(figure, density, off, exact),
        f"What a visit costs: a density for ε = {EPSILON:g}, δ = {DELTA:g}",
        code=CODE,
        page="functions.md",
    )


def _without_noise(costs: Any) -> Any:
    """The same Gaussian kernels over the true costs: NOT private, for comparison only."""
    heights, edges = np.histogram(np.clip(costs, *RANGE), bins=RANGE[1], range=RANGE)
    middles = (edges[1:] + edges[:-1]) / 2

    def exact(place: float) -> float:
        kernel = np.exp(-(((place - middles) / BANDWIDTH) ** 2) / 2) / (BANDWIDTH * np.sqrt(2 * np.pi))
        return float(kernel @ heights) / len(costs)

    return exact


def _peak(curve: Any) -> float:
    return float(max(range(0, RANGE[1], 5), key=lambda place: curve(float(place))))


def _draw(figure: Any, density: Any, off: float, exact: Any) -> None:
    panel = figure.subplots()
    places, heights = density.grid(400)
    panel.fill_between(
        places, 1000 * (heights - off), 1000 * (heights + off), color=BAND, label="± 95%, everywhere at once"
    )
    panel.plot(places, 1000 * heights, color=PRIVATE, linewidth=2.2, label="private density")
    truth = [1000 * exact(place) for place in places]
    panel.plot(places, truth, "--", color=INK, linewidth=1.2, label="without noise (only a demo can show it)")
    panel.axhline(0, color=GRAY, linewidth=0.8)
    panel.set(xlabel="cost of a visit", ylabel="visits per 1,000 and unit of cost", xlim=RANGE)
    panel.xaxis.set_major_formatter("{x:,.0f}")
    panel.legend(loc="upper right")
