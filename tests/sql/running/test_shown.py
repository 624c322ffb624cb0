"""An answer as people see it: a picture with bars and their errors, and a table in HTML with nothing to run in it."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.errors import InvalidArgument
from discreet.sql.running.plot import MOST_BARS

from ...refusing import refuses

NAMES = ["<b>Haifa</b>", "$x$ of $\\age", *(f"city {n}" for n in range(58))]


@pytest.fixture
def asked() -> Any:
    visits = {
        "source": pa.table({"pid": range(600), "city": NAMES * 10, "cost": [1.0] * 600, "n": range(600)}),
        "rows_per_person": 1,
        "columns": {"city": {"choices": NAMES}, "cost": {"between": [0, 1e9]}, "n": {"between": [0, MOST_BARS]}},
    }
    words = {"ledger": {"path": ":memory:", "epsilon": 1000}, "unit": {"person": "pid"}}
    return dp.connect(words | {"tables": {"visits": visits}})


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("groups", [1, 10, 60])
def test_a_picture_has_a_bar_with_its_error_for_every_group(groups: int, asked: Any) -> None:
    text = f"SELECT city, COUNT(*) AS n, SUM(cost) AS c FROM visits GROUP BY city LIMIT {groups}"
    with testing.frozen(4):  # noise of billions
        answer = asked.sql(text, epsilon=1)
    figure = answer.plot()
    first, second = figure.axes
    lying = groups > 1
    sizes = [bar.get_width() if lying else bar.get_height() for bar in first.patches]
    assert sizes == answer.table["n"].to_pylist()
    [lines] = [c for c in first.collections if len(c.get_segments()) == groups]
    half = [np.ptp(s[:, 0 if lying else 1]) / 2 for s in lines.get_segments()]
    assert np.allclose(half, answer.table["n_error"].to_pylist())
    labels = first.get_yticklabels() if lying else second.get_xticklabels()
    assert [label.get_text() for label in labels] == [
        name.replace("$", r"\$") for name in answer.table["city"].to_pylist()
    ]
    assert (second.get_xlabel() if lying else second.get_ylabel()) == "c, in billions"
    assert "95%" in figure.get_suptitle()
    assert "99%" in answer.plot(confidence=0.99).get_suptitle()
    figure.draw_without_rendering()


def test_what_is_no_picture(asked: Any) -> None:
    with refuses(InvalidArgument, "plot-no-numbers"):
        asked.sql("SELECT CASE WHEN COUNT(*) > 5 THEN 'a' ELSE 'b' END AS x FROM visits", epsilon=1).plot()
    with refuses(InvalidArgument, "too-large"):
        asked.sql("SELECT n, COUNT(*) AS many FROM visits WHERE n IS NOT NULL GROUP BY n", epsilon=1).plot()
    none = asked.sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING COUNT(*) < -1e9", epsilon=1)
    assert "no group is shown" in [text.get_text() for text in none.plot().axes[0].texts]


class Tags(HTMLParser):
    """The tags of a text, each closed in its turn, and what stands between them."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.dialect: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.dialect.append(data)


def test_the_table_in_html_is_escaped_and_well_formed(asked: Any) -> None:
    question = 'SELECT city AS "<script>", COUNT(*) AS n FROM visits GROUP BY city'
    answer = asked.sql(question, epsilon=1)
    read = Tags()
    read.feed(answer._repr_html_())
    assert not read.open
    assert set(read.seen) == {"table", "thead", "tbody", "tr", "th", "td", "p"}
    assert "<script>" in read.dialect
    assert "<b>Haifa</b>" in read.dialect
    assert read.seen.count("tr") == 61


def test_the_table_as_data_frames(asked: Any) -> None:
    answer = asked.sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=1)
    for frame in (answer.to_pandas(), answer.to_polars()):
        assert list(frame.columns) == ["city", "n", "n_error"]
        assert list(frame["n"]) == answer.table["n"].to_pylist()


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_data_frame_without_its_package_says_how_to_get_it(
    package: str, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = asked.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    monkeypatch.setitem(sys.modules, package, None)  # as Python marks what cannot be imported
    with refuses(dp.errors.MissingExtra, "missing-extra") as caught:
        getattr(answer, f"to_{package}")()
    assert str(caught.value).endswith(f"pip install {package}")
