"""Draws docs/images/risk.svg, the best attack at four guarantees. `python docs/make/risk.py`."""

from __future__ import annotations

from pathlib import Path

import discreet as dp
from discreet.guarantees.meaning.picture import draw_svg

PICTURE = Path(__file__).parents[1] / "images" / "risk.svg"
SHOWN = (
    dp.Pure(epsilon=3),
    dp.Pure(epsilon=1),
    dp.GaussianTradeoff(mu=0.5),
    dp.Pure(epsilon=0.1),
)


def drawn() -> str:
    """The picture of the page about risk."""
    return draw_svg({str(guarantee): dp.risk(guarantee) for guarantee in SHOWN}, width=460, style="light")


if __name__ == "__main__":
    PICTURE.write_text(drawn(), "utf-8")
    print(PICTURE)
