"""An answer as people see it: a picture with bars and their errors, and a table in HTML with nothing to run in it."""

from __future__ import annotations

import datetime
import sys
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.colors import to_hex

import discreet as dp
from discreet import testing
from discreet.drawing import CUT
from discreet.errors import InvalidArgument
from discreet.plots import STYLES
from discreet.sql.running.plot import MOST_BARS, plot_answer

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


DAY, LATER = datetime.date(2025, 1, 1), datetime.date(2025, 1, 2)
DRAWN = {
    "kind": ["a", "b", "(none)", None] * 150,
    "side": ["left", "right"] * 300,
    "day": [None if n == 7 else DAY + datetime.timedelta(days=n % 5) for n in range(600)],
}


@pytest.fixture
def drawn() -> Any:
    columns = {
        "kind": {"choices": ["a", "b", "(none)"]},
        "side": {"choices": ["left", "right"]},
        "day": {"between": [DAY, DAY + datetime.timedelta(days=4)]},
    }
    table = {"source": pa.table({"pid": range(600), **DRAWN}), "rows_per_person": 1, "columns": columns}
    words = {"ledger": {"path": ":memory:", "epsilon": 1000, "delta": 1e-6}, "unit": {"person": "pid"}}
    return dp.connect(words | {"tables": {"visits": table}})


def heights(panel: Any) -> list[list[float]]:
    """The bars of a panel, series by series."""
    return [[bar.get_height() for bar in bars] for bars in panel.containers if hasattr(bars, "patches")]


def test_time_is_a_line_with_a_band(drawn: Any) -> None:
    answer = drawn.sql("SELECT COUNT(*) AS n, day FROM visits GROUP BY day ORDER BY n DESC", epsilon=1)
    [panel] = answer.plot().axes
    [line] = panel.lines
    ordered = sorted(answer, key=lambda row: row["day"])
    assert list(line.get_xdata()) == [row["day"] for row in ordered]
    assert list(line.get_ydata()) == [row["n"] for row in ordered]
    [band] = panel.collections
    edges = {round(y, 6) for y in band.get_paths()[0].vertices[:, 1]}
    assert edges == {round(row["n"] + sign * row["n_error"], 6) for row in ordered for sign in (-1, 1)}
    wider = answer.plot(confidence=0.99).axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert np.ptp(wider) > np.ptp(band.get_paths()[0].vertices[:, 1])
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("day", "n")


def test_a_second_key_makes_several_lines(drawn: Any) -> None:
    answer = drawn.sql("SELECT day, side, COUNT(*) AS n FROM visits GROUP BY day, side", epsilon=1)
    figure = answer.plot()
    [panel] = figure.axes
    assert [line.get_label() for line in panel.lines] == ["left", "right"]
    for line in panel.lines:
        own = [row["n"] for row in answer if row["side"] == line.get_label()]
        assert list(line.get_ydata()) == own
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["left", "right"]
    assert figure.legends[0].get_title().get_text() == "side"
    figure.draw_without_rendering()


def test_two_keys_are_grouped_bars(drawn: Any) -> None:
    answer = drawn.sql("SELECT kind, side, COUNT(*) AS n FROM visits GROUP BY kind, side", epsilon=1)
    figure = answer.plot()
    [panel] = figure.axes
    shown = {side: [row["n"] for row in answer if row["side"] == side] for side in ("left", "right")}
    assert heights(panel) == list(shown.values())
    assert [label.get_text() for label in panel.get_xticklabels()] == ["a", "b", "(none)"]
    halves = [np.ptp(s[:, 1]) / 2 for lines in panel.collections for s in lines.get_segments()]
    assert np.allclose(sorted(halves), sorted(row["n_error"] for row in answer))
    figure.draw_without_rendering()


def test_the_interval_of_a_quantile_is_drawn_as_it_is() -> None:
    """Both ends, where a half of the longer side would reach too far on the other; as bars, grouped bars and lines."""
    rows = {"pid": range(900), "cost": [float(n % 30) ** 2 for n in range(900)], "day": [DAY] * 450 + [LATER] * 450}
    rows |= {"side": ["left", "right", "right"] * 300, "kind": ["a", "b"] * 450}
    columns = {name: {"choices": sorted(set(rows[name]))} for name in ("side", "kind")}
    columns |= {"cost": {"between": [0, 5000]}, "day": {"between": [DAY, LATER]}}
    words = {"ledger": {"path": ":memory:", "epsilon": 1000, "delta": 1e-6}, "unit": {"person": "pid"}}
    opened = dp.connect(
        words | {"tables": {"visits": {"source": pa.table(rows), "rows_per_person": 1, "columns": columns}}}
    )
    for keys in ("side", "side, kind", "day"):
        text = f"SELECT {keys}, QUANTILE_CONT(cost, 0.9) AS q FROM visits GROUP BY {keys}"
        answer = opened.sql(text, epsilon=1)
        ends = np.array([answer.table.column(name).to_numpy() for name in ("q_low", "q_high")])
        assert not np.allclose(ends[1] - ends[0], 2 * answer.table.column("q_error").to_numpy())
        [panel] = answer.plot().axes
        if keys == "day":
            drawn = panel.collections[0].get_paths()[0].vertices[:, 1]
            assert {*np.ravel(ends).round(6)} <= {*drawn.round(6)}
        else:
            drawn = [lines[:, 1] for bars in panel.collections for lines in bars.get_segments()]
            assert np.allclose(np.sort(np.array(drawn), axis=None), np.sort(ends, axis=None))


def test_a_missing_value_and_one_that_looks_like_it_stay_apart(drawn: Any) -> None:
    text = "SELECT CASE WHEN kind = 'a' THEN NULL ELSE '(none)' END AS k, side, COUNT(*) AS n FROM visits GROUP BY 1, 2"
    answer = drawn.sql(text, epsilon=1)
    assert sorted(height for bars in heights(answer.plot().axes[0]) for height in bars) == sorted(
        row["n"] for row in answer
    )


def test_a_group_that_is_not_shown_leaves_a_gap(drawn: Any) -> None:
    text = "SELECT kind, side, COUNT(*) AS n FROM visits GROUP BY 1, 2 HAVING NOT (kind = 'a' AND side = 'left')"
    [panel] = drawn.sql(text, epsilon=1).plot().axes
    assert [len(bars) for bars in heights(panel)] == [3, 2]
    [first, second] = [bars for bars in panel.containers if hasattr(bars, "patches")]
    right = [bar.get_x() + bar.get_width() / 2 for bar in first]
    left = [bar.get_x() + bar.get_width() / 2 for bar in second]
    assert [round(at) for at in (*right, *left)] == [0, 1, 2, 1, 2]


@pytest.mark.some_quick(3)
@pytest.mark.parametrize(
    "asked_for", ["day", "day, side", "kind, side", "kind", "kind, side, day"], ids=lambda text: text.replace(", ", "-")
)
def test_a_dark_plot_is_dark_all_over(asked_for: str, drawn: Any) -> None:
    answer = drawn.sql(f"SELECT {asked_for}, COUNT(*) AS n FROM visits GROUP BY {asked_for}", epsilon=1)
    light, dark = (answer.plot(style=style) for style in ("light", "dark"))
    look = STYLES["dark"]
    for figure, paper in ((light, STYLES["light"].paper), (dark, look.paper)):
        assert to_hex(figure.get_facecolor()) == paper
        assert all(to_hex(panel.get_facecolor()) == paper for panel in figure.axes)
    for panel in dark.axes:
        ticks = [*panel.get_xticklabels(), *panel.get_yticklabels(), panel.xaxis.label, panel.yaxis.label]
        assert {to_hex(text.get_color()) for text in ticks} == {look.ink}
    dark.draw_without_rendering()


def test_a_style_is_light_or_dark(drawn: Any) -> None:
    answer = drawn.sql("SELECT side, COUNT(*) AS n FROM visits GROUP BY side", epsilon=1)
    for style in ("dim", "", None, ["dark"]):
        with refuses(InvalidArgument, "not-an-option"):
            answer.plot(style=style)


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


@pytest.mark.parametrize("keys", [["ward"], ["ward", "sex"], ["day"]])
def test_a_much_longer_error_is_cut_and_marked(keys: list[str]) -> None:
    """An average of a few people does not squeeze all others. An error of the usual size is never cut."""
    many = 12
    groups = {"ward": [f"w{n // 2}" for n in range(many)], "sex": ["f", "m"] * (many // 2)}
    groups["day"] = [datetime.date(2024, 1, 1 + n) for n in range(many)]
    table = {key: groups[key] for key in keys} | {"cost": [600.0 + n for n in range(many)]}
    for last, cut in ((50.0, False), (9000.0, True)):
        errors = [50.0] * (many - 1) + [last]
        shown = _Shown(pa.table(table | {"cost_error": errors}), keys)
        figure = plot_answer(shown, confidence=0.95)  # type: ignore[arg-type]
        low, high = figure.axes[0].get_ylim()
        assert high - low < 2000
        assert (CUT in figure.get_suptitle()) is cut
        tips = [line for line in figure.axes[0].lines if line.get_marker() in ("^", "v") and len(line.get_xdata())]
        assert len(tips) == 2 * cut


class _Shown:
    """What is drawn of an answer, with errors of our choice."""

    def __init__(self, table: Any, keys: list[str]) -> None:
        self.table, self.names, self.noisy, self.summed = table, [*keys, "cost"], ["cost"], {}
        self.not_private = False

    def with_errors(self, confidence: float) -> Any:
        return self.table
