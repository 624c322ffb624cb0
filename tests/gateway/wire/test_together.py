"""Sessions with the real catalog: statements of clients at connect and browse, next to questions."""

from __future__ import annotations

import pytest

from discreet.gateway.catalog.catalog import Catalog

from .wire_vault import Client, LocalVault, names


@pytest.fixture(scope="module")
def client():
    vault = LocalVault()
    made = Client(vault, catalog=Catalog(vault.database.tables.as_json(), database="clinic"))
    yield made
    made.close()


@pytest.mark.some_quick(4)
@pytest.mark.parametrize(
    ("text", "rows"),
    {
        "SELECT 1": [(1,)],
        "SELECT 'SELECT COUNT(*) FROM visits; -- x' AS a": [("SELECT COUNT(*) FROM visits; -- x",)],
        "SELECT current_schema(), current_database()": [("public", "clinic")],
        "SELECT current_user": [("ana",)],
        "VALUES (1), (2)": [(1,), (2,)],
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname NOT LIKE '%\\_%' ORDER BY 1": [
            ("prices",),
            ("visits",),
        ],
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1": [
            ("prices",),
            ("visits",),
        ],
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'prices' ORDER BY ordinal_position": [
            ("city",),
            ("price",),
        ],
    }.items(),
)
def test_catalog_statements(client, text, rows):
    described, result = client.prepared(text)
    assert described.columns == result.columns
    assert list(result.rows) == rows
    assert client.run(f"COPY ({text}) TO STDOUT").tag == f"COPY {len(rows)}"
    assert client.query(f"DECLARE c CURSOR WITH HOLD FOR {text}; FETCH ALL c; CLOSE c")[1].rows == rows
    assert client.vault.charges == 0


def test_settings_are_seen_by_the_catalog(client):
    client.query("SET application_name = 'tool'")
    assert client.rows("SELECT current_setting('application_name')") == [("tool",)]


def test_parameters_of_catalog_statements(client):
    text = "SELECT column_name FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position"
    described, result = client.prepared(text, "prices")
    assert len(described.parameters) == 1
    assert [row[0] for row in result.rows] == ["city", "price"]
    client.query("PREPARE p (text) AS SELECT $1 AS a")
    assert client.rows("EXECUTE p ('x')") == [("x",)]
    client.query("DEALLOCATE p")


def test_questions_go_to_the_vault(client):
    before = client.vault.charges
    assert names(client.run("SELECT COUNT(*) FROM visits")) == ["count", "count_error"]
    assert client.vault.charges == before + 1
    assert client.run("SELECT city FROM prices ORDER BY 1 LIMIT 1").rows == [("Haifa",)]
    for mixed in (
        "SELECT COUNT(*) FROM visits, pg_catalog.pg_class",
        "SELECT COUNT(*) FROM visits WHERE city IN (SELECT relname FROM pg_catalog.pg_class)",
        "SELECT relname FROM pg_catalog.pg_class WHERE relname IN (SELECT city FROM visits)",
        "WITH pg_class AS (SELECT * FROM visits) SELECT * FROM pg_class",
    ):
        assert client.refused(mixed).state == "0A000", mixed
    assert client.vault.charges == before + 1


@pytest.mark.parametrize(
    "text", ["SELECT * FROM duckdb_tables()", "SELECT * FROM read_csv('/etc/passwd')", "SELECT nothing()", "SELECT 1/0"]
)
def test_the_catalog_refuses_by_itself(client, text):
    refused = client.refused(text)
    assert refused.state != "XX000"
    assert "/etc" not in (refused.hint or "")
