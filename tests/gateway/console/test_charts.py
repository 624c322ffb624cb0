"""Pictures of answers: every kind, and numbers and names that would break a careless one."""

from __future__ import annotations

import datetime
import math
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.drawing import CUT
from discreet.gateway.console.charts import MOST_BARS, MOST_PANELS, NARROW, Key, Measure, draw_chart, svg_file
from discreet.gateway.console.site import HERE

BAD = "</text><script>alert(1)</script>"


def measure(values, name="n", error=2.0):
    low = [None if one is None or error is None else one - error for one in values]
    high = [None if one is None or error is None else one + error for one in values]
    return Measure(name, values, low, high)


def shapes(drawing):
    """How many of each class there are, and all texts."""
    root = ET.fromstring(svg_file(drawing))
    found, texts = {}, []
    for one in root.iter():
        kind = one.tag.rpartition("}")[2]
        assert kind in ("svg", "title", "desc", "style", "rect", "line", "text", "path", "circle")
        assert not [name for name in one.attrib if name.startswith("on") or name == "style"]
        for name in ("x", "y", "x1", "x2", "y1", "y2", "width", "height", "cx", "cy"):
            assert math.isfinite(float(one.attrib.get(name, 0)))
        found[one.attrib.get("class", kind)] = found.get(one.attrib.get("class", kind), 0) + 1
        if kind == "text":
            texts.append(one.text)
    return found, texts


def months(count):
    return [datetime.date(2024 + place // 12, 1 + place % 12, 1) for place in range(count)]


def test_nothing_to_draw():
    assert draw_chart([], [], title="x") is None
    assert draw_chart([Key("city", False, [])], [measure([])], title="x") is None


def test_groups_are_bars_with_whiskers():
    drawing = draw_chart([Key("city", False, ["a", "b", None])], [measure([1.0, -3.0, None])], title="x")
    found, texts = shapes(drawing)
    assert (found["bar"], found["whisker"]) == (2, 6)
    assert {"a", "b", "(none)", "–"} <= set(texts)


def test_a_single_number_is_one_bar_and_one_without_error_has_no_whisker():
    found, _ = shapes(draw_chart([], [measure([5.0], error=None)], title="x"))
    assert found["bar"] == 1
    assert "whisker" not in found


@pytest.mark.parametrize("values", [months(12), [float(one) for one in range(12)], list(range(12))])
def test_ordered_groups_are_a_line_with_a_band(values):
    found, _ = shapes(draw_chart([Key("when", True, values)], [measure([float(one) for one in range(12)])], title="x"))
    assert (found["curve"], found["band"], found["dot"]) == (1, 1, 12)
    assert "bar" not in found


def test_a_line_is_broken_where_a_number_is_missing():
    values = [1.0, 2.0, None, 3.0, 4.0]
    found, _ = shapes(draw_chart([Key("when", True, months(5))], [measure(values)], title="x"))
    assert found["curve"] == 2


def test_an_ordered_group_that_is_missing_makes_bars():
    found, texts = shapes(draw_chart([Key("when", True, [1, 2, None])], [measure([1.0, 2.0, 3.0])], title="x"))
    assert found["bar"] == 3
    assert "(none)" in texts


def test_two_groups_and_two_measures_are_panels_of_one_scale():
    keys = [Key("month", True, months(4) * 3), Key("city", False, [one for one in "abc" for _ in range(4)])]
    found, texts = shapes(draw_chart(keys, [measure([1.0] * 12), measure([9.0] * 12, "m")], title="x"))
    assert found["curve"] == 6
    assert {"n, a", "m, c"} <= set(texts)
    both = [Key("city", False, list("aabb")), Key("urgent", False, [True, False] * 2)]
    found, _ = shapes(draw_chart(both, [measure([1.0, 2.0, 3.0, 400.0])], title="x"))
    assert found["bar"] == 4


def test_many_groups_are_cut_and_said_to_be():
    names = [f"group {place}" for place in range(500)]
    drawing = draw_chart([Key("city", False, names)], [measure([1.0] * 500)], title="x")
    found, texts = shapes(drawing)
    assert found["bar"] == MOST_BARS
    assert any("The first 40 groups are drawn" in text for text in texts)
    keys = [Key("a", False, names), Key("b", False, [*"xy"] * 250)]
    found, _ = shapes(draw_chart(keys, [measure([1.0] * 500)], title="x"))
    assert found["bar"] <= MOST_BARS * MOST_PANELS
    three = [Key(name, False, names) for name in "abc"]
    assert shapes(draw_chart(three, [measure([1.0] * 500)], title="x"))[0]["bar"] == MOST_BARS


def test_a_much_longer_error_is_cut_and_marked():
    """An average of a few people does not squeeze all others."""
    keys = [Key("ward", False, list("abcdefg"))]
    values, errors = [649.0, 640.0, 13.0, 610.0, 700.0, 655.0, -50.0], [80, 90, 586, 99, 85, 90, 4000]
    low, high = ([value + sign * error for value, error in zip(values, errors, strict=True)] for sign in (-1, 1))
    drawing = draw_chart(keys, [Measure("cost", values, low, high)], title="x")
    found, texts = shapes(drawing)
    assert (found["bar"], found["cut"], found["whisker"]) == (7, 3, 7 + 5 * 2 + 1)
    assert CUT in texts
    assert "g: -50 (-4,050 to 3,950)" in svg_file(drawing)  # whoever points at the bar reads both ends
    lines = draw_chart([Key("month", True, months(7))], [Measure("cost", values, low, high)], title="x")
    assert shapes(lines)[0]["cut"] == 3


def test_nothing_is_cut_where_it_would_help_little():
    keys = [Key("ward", False, list("abcd"))]
    for values, errors in (
        ([649.0, 640, 655, 50], [80, 90, 70, 60]),
        ([1000.0] * 4, [1, 1, 1, 20]),
        ([5.0] * 4, [9] * 4),
    ):
        low, high = ([value + sign * error for value, error in zip(values, errors, strict=True)] for sign in (-1, 1))
        found, texts = shapes(draw_chart(keys, [Measure("n", values, low, high)], title="x"))
        assert "cut" not in found
        assert CUT not in texts


def test_names_are_text_and_never_markup():
    drawing = draw_chart([Key(BAD, False, [BAD, "&amp;", '"'])], [measure([1.0, 2.0, 3.0], BAD)], title=BAD)
    assert "<script" not in svg_file(drawing)
    _, texts = shapes(drawing)
    assert "&amp;" in texts


def test_phones_get_one_column():
    keys = [Key("city", False, ["a", "b"])]
    drawing = draw_chart(keys, [measure([1.0, 2.0]), measure([1.0, 2.0], "m")], title="x", width=NARROW)
    assert drawing.width == NARROW
    assert shapes(drawing)[0]["bar"] == 4


def test_every_class_has_a_style_in_the_file_and_on_the_page():
    numbers = Measure("n", [1.0, 2.0, -3.0, 4.0], [0.0, 1.0, -4.0, -400.0], [2.0, 3.0, -2.0, 400.0])
    drawing = draw_chart([Key("when", True, months(4))], [numbers], title="x")
    found, _ = shapes(drawing)
    assert "cut" in found
    css = (HERE / "static" / "style.css").read_text()
    for kind in {word for one in found for word in one.split()} - {"svg", "title", "desc", "style", "picture"}:
        assert f".{kind}" in svg_file(drawing), kind
        assert f".picture .{kind}" in css or kind in ("label", "pale"), kind


NUMBERS = st.none() | st.floats(allow_nan=True, allow_infinity=True) | st.integers(-(2**70), 2**70).map(float)
KEYS = st.none() | st.text(max_size=5) | st.dates() | st.datetimes() | st.floats() | st.integers() | st.booleans()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(KEYS, KEYS, NUMBERS, NUMBERS), min_size=1, max_size=12), st.booleans())
def test_any_numbers_and_keys_are_drawn(rows, ordered):
    first, second, values, ends = zip(*rows, strict=True)
    numbers = Measure("n", values, ends, values)
    for keys in ([], [Key("a", ordered, first)], [Key("a", ordered, first), Key("b", False, second)]):
        drawing = draw_chart(keys, [numbers], title="x")
        text = drawing.svg()
        assert "nan" not in text.split("<desc")[0]
        assert "inf" not in "".join(part for part in text.split('"') if part[:1].isdigit())
