"""Old patients by city: a question in SQL over two private tables, one that is refused, and what remains."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from discreet.datasets.connect import connect
from discreet.demo.data import PEOPLE, VISITS, Truth, make_clinic
from discreet.demo.pictures import bars_with_truth
from discreet.demo.story import ONLY_HERE, TRUTH, Story
from discreet.errors import NotAllowed
from discreet.plots import legend_below

QUESTION = """SELECT city, COUNT(*) AS visits, COUNT(DISTINCT patient_id) AS patients
FROM visits JOIN people USING (patient_id) WHERE age >= 60 GROUP BY city"""
TOO_NOSY = "SELECT patient_id, cost FROM visits WHERE cost > 2000"
EPSILON = 0.5
CODE = """
$ discreet init visits.parquet --out clinic.toml       # your data
$ discreet query clinic.toml "SELECT COUNT(*) FROM visits" --epsilon 0.1
>>> import discreet as dp
>>> clinic = dp.connect("clinic.toml")
>>> clinic.sql("SELECT AVG(cost) AS cost FROM visits", epsilon=0.1)
"""


def tell(teller: Story) -> None:
    """Ask a question, show the answer, try one that is refused, and plot."""
    with tempfile.TemporaryDirectory(prefix="discreet_demo_") as folder:
        clinic, truth = connect(make_clinic(Path(folder))), Truth(Path(folder))
        teller.begin(
            {
                "data": f"{PEOPLE:,} synthetic patients and {VISITS:,} visits",
                "question": "How many visits do patients of 60 or older have, by city?",
                "protects": "all rows of one patient, in both tables",
                "limit": f"{clinic.ledger.limit} for all questions together",
            }
        )
        answer = clinic.sql(QUESTION, epsilon=EPSILON)
        rows = answer.table.to_pylist()
        exact = {city: true for (city,), true in truth.rows(QUESTION, 1).items()}
        teller.show(
            ["city", "visits", TRUTH, "patients", TRUTH],
            [
                [one["city"], one["visits"], f"{visits:,}", one["patients"], f"{patients:,}"]
                for one in map(answer.shown, rows)
                for visits, patients in [exact[one["city"]]]
            ],
        )
        teller.out.print(f"[dim]{ONLY_HERE}[/] Each ± holds with 95% confidence, for up to 20 visits per patient.")
        teller.end(
            {
                "cost": f"{answer.cost}, for all twelve numbers together; receipt {answer.receipt}",
                "refused": f"{TOO_NOSY}\n{_refusal(clinic)}",
                "remains": f"{clinic.ledger.remaining}: a refusal costs nothing",
            },
            lambda figure: _draw(figure, rows, exact),
            f"Patients of 60 or older by city: all twelve numbers for ε = {EPSILON:g}",
            code=CODE,
            page="sql.md",
        )
        clinic.close()


def _refusal(clinic: Any) -> str:
    try:
        clinic.sql(TOO_NOSY, epsilon=EPSILON)
    except NotAllowed as refused:
        return str(refused).splitlines()[0]
    raise AssertionError("rows of single patients were shown")


def _draw(figure: Any, rows: list[dict[str, Any]], exact: dict[str, tuple[Any, ...]]) -> None:
    cities = [row["city"] for row in rows]
    panels = figure.subplots(2, 1, sharex=True)
    for number, (panel, name) in enumerate(zip(panels, ("visits", "patients"), strict=True)):
        values, errors = ([row[key] for row in rows] for key in (name, f"{name}_error"))
        bars_with_truth(panel, cities, values, errors, [exact[city][number] for city in cities])
        panel.set_ylabel(name)
        panel.yaxis.set_major_formatter("{x:,.0f}")
    legend_below(figure, panels[0])
