"""Answers that no row of anybody can change: exact, without a charge, and the same bytes whatever the rows are."""

from __future__ import annotations

import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.guarantees.guarantee import NoLoss
from discreet.sql.reading import free as reading
from discreet.sql.running import free
from discreet.sql.running.free import DECLARED, UNREAD

from ...refusing import refuses
from ..conftest import FIXTURES, fixtures_in

FREE = [text for _, _, text in fixtures_in(FIXTURES / "free.sql")]
FREE = [*FREE[::4], *(text for place, text in enumerate(FREE) if place % 4)]


def shown(database, text: str) -> bytes:
    """All that leaves, as bytes."""
    answer = database.sql(text, epsilon=1)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, answer.table.schema) as stream:
        stream.write_table(answer.table)
    return sink.getvalue().to_pybytes() + f"{answer}{answer!r}{answer.as_json()}".encode()


@pytest.fixture(scope="module")
def neighbors(clinic):
    """The clinic, the clinic with a person of odd values in the place of another, and one without anybody."""
    person = clinic.data["visits"].column("person_id")[0].as_py()
    odd, nobody = dict(clinic.data), dict(clinic.data)
    for name, table in clinic.data.items():
        if "person_id" in table.column_names:
            others = table.filter(pa.array([one != person for one in table.column("person_id").to_pylist()]))
            odd[name], nobody[name] = pa.concat_tables([others, hostile(table)]), table.slice(0, 0)
    opened = [clinic.opened(data) for data in (clinic.data, odd, nobody)]
    yield opened
    for database in opened:
        database.close()


def hostile(table: pa.Table) -> pa.Table:
    """A record of a person who is in no choice and outside all ranges."""
    odd = {
        pa.int64(): -(2**63),
        pa.int32(): 2**31 - 1,
        pa.float64(): float("nan"),
        pa.string(): "'; DROP TABLE visits; --\x00🙂",
    }
    return pa.table({f.name: pa.array([odd.get(f.type)], f.type) for f in table.schema}, schema=table.schema)


@pytest.mark.some_quick(4)
@pytest.mark.parametrize("text", FREE)
def test_neighbors_get_the_same_bytes_and_no_ledger_an_entry(neighbors, capture, monkeypatch, text):
    entries = [len(database.ledger.entries()) for database in neighbors]
    private = [name for table, name in neighbors[0].engine.relations.items() if table != "cities"]
    with testing.frozen() as tape, capture(monkeypatch) as seen:
        assert len({shown(database, text) for database in neighbors}) == 1
    assert not tape.calls
    assert [len(database.ledger.entries()) for database in neighbors] == entries
    assert not any(name in one for one in seen for name in private)


def test_what_has_noise_is_told_apart(neighbors, capture, monkeypatch):
    """What is checked above finds a statement that reads rows."""
    text = "SELECT COUNT(*) AS n FROM visits"
    private = neighbors[0].engine.relations["visits"]
    with testing.no_noise(), capture(monkeypatch) as seen:
        assert len({shown(database, text) for database in neighbors}) == 3
    assert any(private in one for one in seen)


def test_declared_values_say_that_they_are_declared(clinic):
    answer = clinic.database.sql("SELECT DISTINCT city FROM visits")
    assert answer.table.to_pylist() == [{"city": city} for city in ("Acre", "Haifa", "Ljubljana")]
    assert isinstance(answer.guarantee, NoLoss)
    assert answer.receipt is None
    assert not answer.not_private
    for said in (str(answer), repr(answer), answer._repr_html_(), answer.as_json()["free"]):
        assert DECLARED in said
    explained = clinic.database.explain("SELECT DISTINCT city FROM visits")
    assert explained.data == {"questions": [], "free": DECLARED}
    assert DECLARED in explained


def test_the_value_of_others_is_listed():
    table = pa.table({"pid": [1, 2], "city": ["Rome", "Oslo"]})
    columns = {"pid": {"type": "integer"}, "city": {"type": "text", "choices": ["Acre", "Haifa"], "other": "elsewhere"}}
    policy = {
        "ledger": {"path": ":memory:", "epsilon": 1},
        "unit": {"person": "pid"},
        "tables": {"visits": {"source": table, "columns": columns}},
    }
    database = dp.connect(policy)
    answer = database.sql("SELECT DISTINCT city FROM visits")
    assert answer.table.column("city").to_pylist() == ["Acre", "Haifa", "elsewhere"]
    assert not database.ledger.entries()
    database.close()


def test_columns_of_no_row_have_their_names_and_types(clinic):
    answer = clinic.database.sql("SELECT * FROM visits LIMIT 0")
    assert answer.table.num_rows == 0
    types = {"floor": pa.int64()}  # every integer of an answer has 64 bits
    expected = {f.name: types.get(f.name, f.type) for f in clinic.data["visits"].schema}
    assert {f.name: f.type for f in answer.table.schema} == expected
    assert not any(column.noisy or column.error_of for column in answer.columns)
    assert UNREAD in str(answer)


def test_a_probe_of_a_question_has_the_columns_of_its_answer(clinic):
    question = "SELECT city, COUNT(*) AS n, MEDIAN(cost) AS m FROM visits GROUP BY city"
    answered = clinic.database.sql(question, epsilon=1).columns
    for probe in (f"{question} LIMIT 0", f"SELECT * FROM ({question}) AS t WHERE 1 = 0"):
        names = [column.name for column in clinic.database.sql(probe).columns]
        assert names[:3] == ["city", "n", "n_error"]
        assert clinic.database.sql(probe).table.num_rows == 0
    assert clinic.database.sql(f"{question} LIMIT 0").columns == answered
    assert [(one.name, one.noisy, one.error_of) for one in answered] == [
        ("city", False, None),
        ("n", True, None),
        ("n_error", False, "n"),
        ("m", True, None),
        ("m_error", False, "m"),
        ("m_low", False, "m"),
        ("m_high", False, "m"),
    ]


def test_describing_spends_and_draws_nothing(clinic):
    entries = len(clinic.database.ledger.entries())
    with testing.frozen() as tape:
        clinic.database.describe("SELECT note, COUNT(*) AS n FROM visits GROUP BY note")
    assert not tape.calls
    assert len(clinic.database.ledger.entries()) == entries


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT city FROM visits", "sql-not-aggregated"),
        ("SELECT DISTINCT note FROM visits", "sql-not-aggregated"),
        ("SELECT DISTINCT person_id FROM visits", "sql-shows-people"),
        ("SELECT DISTINCT TRUE AS t FROM visits", "sql-not-aggregated"),
        ("SELECT nothing FROM visits LIMIT 0", "sql-unknown-column"),
        ("SELECT nothing(city) FROM visits LIMIT 0", "sql-function"),
        ("SELECT * FROM visits, read_csv('/etc/passwd') LIMIT 0", "sql-source"),
        ("SELECT * FROM information_schema.tables, visits LIMIT 0", "sql-source"),
        ("INSERT INTO visits SELECT * FROM visits LIMIT 0", "sql-not-select"),
    ],
)
def test_the_rest_is_refused_as_before(clinic, text, code):
    for ask in (clinic.database.describe, lambda text: clinic.database.sql(text, epsilon=1)):
        with refuses((dp.NotAllowed, dp.QueryError), code):
            ask(text)


def test_too_many_declared_groups_are_refused(clinic):
    with refuses(dp.NotAllowed, "sql-too-many-groups"):
        clinic.database.sql("SELECT DISTINCT day, minutes, floor, city, reason FROM visits")


def test_mutant_a_limit_anywhere_counts(clinic, monkeypatch):
    """Even then no row is read: the statement runs where tables of people are empty."""
    monkeypatch.setattr(free, "is_unread", lambda *given: True)
    answer = clinic.database.sql("SELECT person_id FROM visits")
    assert answer.table.num_rows == 0


def test_mutant_an_inner_limit_empties_the_whole(clinic, monkeypatch):
    monkeypatch.setattr(reading, "_is_cut", lambda query: query.find(reading.exp.Limit) is not None)
    text = "SELECT COUNT(*) AS n FROM visits WHERE city NOT IN (SELECT city FROM people LIMIT 0)"
    with pytest.raises(AssertionError):
        clinic.check_same(text, ordered=False)
