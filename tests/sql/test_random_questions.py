"""Questions made up by a grammar over the clinic: each is answered or refused in our words; nothing else may happen."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet as dp

ENGINE_WORDS = (
    "Binder Error",
    "Conversion Error",
    "Out of Range",
    "Catalog Error",
    "Parser Error",
    "LINE 1",
    "INTERNAL",
)
NUMBERS = st.one_of(
    st.sampled_from(["cost", "minutes", "discount", "floor", "visit_id"]),
    st.sampled_from(["0", "1", "-1", "2.5", "1e3", "1000000", "9223372036854775807", "NULL", "0.0"]),
)
TEXTS = st.sampled_from(
    ["city", "reason", "note", "'Haifa'", "'x''y'", "''", "NULL", "lower(note)", "concat(city, note)"]
)
DATES = st.sampled_from(["day", "seen_at", "DATE '2024-05-01'", "'2024-05-01'", "date_trunc('month', day)"])


def _numeric(inner):
    two = st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%", "**"]), inner).map(
        lambda t: f"({' '.join(t)})"
    )
    one = st.tuples(st.sampled_from(["abs", "sqrt", "ln", "exp", "floor", "ceil", "round", "sign", "-"]), inner).map(
        lambda t: f"{t[0]}({t[1]})"
    )
    more = st.tuples(st.sampled_from(["coalesce", "nullif", "power"]), inner, inner).map(
        lambda t: f"{t[0]}({t[1]}, {t[2]})"
    )
    cast = st.tuples(inner, st.sampled_from(["INTEGER", "DOUBLE", "BIGINT"])).map(lambda t: f"CAST({t[0]} AS {t[1]})")
    case = st.tuples(_simple(inner), inner, inner).map(lambda t: f"CASE WHEN {t[0]} THEN {t[1]} ELSE {t[2]} END")
    dates = DATES.map(lambda d: f"EXTRACT(month FROM {d})")
    return st.one_of(two, one, more, cast, case, dates, TEXTS.map(lambda t: f"length({t})"))


def _simple(numbers):
    compared = st.tuples(numbers, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), numbers).map(" ".join)
    between = st.tuples(numbers, numbers, numbers).map(lambda t: f"{t[0]} BETWEEN {t[1]} AND {t[2]}")
    listed = st.tuples(numbers, numbers).map(lambda t: f"{t[0]} IN ({t[1]}, 3)")
    texts = st.tuples(TEXTS, st.sampled_from(["= 'flu'", "LIKE '%a%'", "ILIKE 'A_%'", "IS NULL", "IN ('a', 'Haifa')"]))
    dates = st.tuples(DATES, st.sampled_from(["<", ">="]), DATES).map(" ".join)
    return st.one_of(compared, between, listed, texts.map(" ".join), dates, st.just("urgent"))


NUMERIC = st.recursive(NUMBERS, _numeric, max_leaves=5)
CONDITIONS = st.recursive(
    _simple(NUMERIC),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda t: f"({' '.join(t)})"),
        inner.map(lambda c: f"NOT ({c})"),
    ),
    max_leaves=3,
)
VALUES = st.one_of(NUMERIC, NUMERIC.map(lambda n: f"CASE WHEN {n} > 3 THEN 1 ELSE 0 END"), st.just("cost"))
AGGREGATES = st.one_of(
    st.just("COUNT(*)"),
    st.tuples(st.sampled_from(["COUNT({})", "SUM({})", "AVG({})", "STDDEV({})", "VAR_POP({})", "COUNT(DISTINCT {})"]),
              VALUES).map(lambda t: t[0].format(t[1])),
    st.sampled_from(["MEDIAN(minutes)", "QUANTILE_CONT(minutes, 0.9)", "COUNT(DISTINCT person_id)", "MIN(cost)"]),
    CONDITIONS.map(lambda c: f"COUNT(*) FILTER (WHERE {c})"),
)  # fmt: skip
RESULTS = st.one_of(
    AGGREGATES,
    st.tuples(AGGREGATES, st.sampled_from(["+", "-", "*", "/"]), AGGREGATES).map(" ".join),
    AGGREGATES.map(lambda a: f"ROUND({a}, 1)"),
)
KEYS = st.one_of(
    st.sampled_from(["city", "reason", "urgent", "floor", "month(day)", "note", "cost", "day", "person_id"]),
    CONDITIONS,
    CONDITIONS.map(lambda c: f"CASE WHEN {c} THEN 'x' ELSE city END"),
)
SOURCES = st.sampled_from(
    [
        "visits",
        "visits",
        "visits AS v",
        "(SELECT * FROM visits WHERE urgent) AS q",
        "(SELECT *, cost * 2 AS twice FROM visits) AS q",
        "visits JOIN cities USING (city)",
        "visits LEFT JOIN cities USING (city)",
        "visits JOIN prescriptions USING (person_id)",
        "visits JOIN people ON visits.person_id = people.person_id",
        "visits JOIN people USING (city)",
        "people",
        "cities",
        "(SELECT * FROM visits LIMIT 5) AS q",
    ]
)


@st.composite
def questions(draw):
    keys = draw(st.lists(KEYS, max_size=2))
    results = draw(st.lists(RESULTS, min_size=1, max_size=3))
    shown = [f"{key} AS k{n}" for n, key in enumerate(keys)] + [f"{r} AS r{n}" for n, r in enumerate(results)]
    text = f"SELECT {', '.join(shown)} FROM {draw(SOURCES)}"
    if draw(st.booleans()):
        text += f" WHERE {draw(CONDITIONS)}"
    if keys:
        text += f" GROUP BY {', '.join(f'k{n}' for n in range(len(keys)))}"
    if draw(st.integers(0, 3)) == 0:
        text += f" HAVING {draw(AGGREGATES)} > 5"
    if draw(st.integers(0, 3)) == 0:
        text += " ORDER BY r0 DESC LIMIT 3"
    return text


def check(clinic, text):
    """Answered or refused; gives whether it was answered."""
    try:
        answer = clinic.database.sql(text, epsilon=1)
    except dp.DiscreetError as error:
        said = f"{error} {error.args} {error.__cause__}"
        if any(word in said for word in ENGINE_WORDS):
            pytest.fail(f"an engine's words: {said}")
        return False
    assert answer.table.num_columns >= 1
    assert "NOT PRIVATE" not in str(answer)
    return True


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=questions())
def test_every_question_is_answered_or_refused(clinic, text):
    check(clinic, text)


@pytest.mark.slow
@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=questions())
def test_every_one_of_many_questions_is_answered_or_refused(clinic, text):
    check(clinic, text)


@pytest.mark.slow
def test_the_grammar_makes_questions_that_are_answered(clinic):
    """Otherwise the tests above would look at refusals only."""
    answered, tried = [], []

    @settings(max_examples=12, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(text=questions())
    def count(text):
        tried.append(text)
        answered.append(check(clinic, text))

    count()
    assert sum(answered) >= len(tried) / 10
