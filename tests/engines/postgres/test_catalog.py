"""`discreet init postgresql://…`: the catalog tells tables, types and keys, no row is read, and the policy works."""

from __future__ import annotations

import tomllib
from pathlib import Path

import discreet as dp
from discreet.cli import init as init_command
from discreet.engines.postgres import catalog
from discreet.engines.postgres.catalog import ForeignKey

from ..conftest import Server


def test_a_database_becomes_a_policy_that_can_be_asked(server: Server, tmp_path: Path) -> None:
    name = f"init_{id(server)}"
    server.connection.execute(f"CREATE DATABASE {name}")
    url = server.url.rpartition("/")[0] + f"/{name}"
    import psycopg

    try:
        with psycopg.connect(url, autocommit=True) as made:
            made.execute("""
                CREATE TABLE patients (id int8 PRIMARY KEY, born date);
                CREATE TABLE visits (id int8 PRIMARY KEY, patient_id int8 REFERENCES patients, cost float8);
                CREATE TABLE labs (visit int8 REFERENCES visits, value float8);
                CREATE TABLE cities (name text);
                CREATE VIEW seen AS SELECT * FROM visits;
                INSERT INTO patients SELECT n, DATE '1980-01-01' FROM generate_series(1, 400) AS n;
                INSERT INTO visits SELECT n, 1 + n % 400, 5 FROM generate_series(1, 400) AS n;
                INSERT INTO labs SELECT n, 1 FROM generate_series(1, 400) AS n;
            """)
            read = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables"
            made.execute("SELECT pg_stat_force_next_flush()") if made.info.server_version >= 150_000 else None
            before = made.execute(read).fetchone()
            init_command.main([url], tmp_path / "clinic.toml")
            assert made.execute(read).fetchone() == before
        tables = tomllib.loads((tmp_path / "clinic.toml").read_text("utf-8"))["tables"]
        assert tables == {
            "labs": {"source": "public.labs", "through": "visit -> visits.id"},
            "patients": {"source": "public.patients", "person": "id"},
            "visits": {"source": "public.visits"},
        }
        found = catalog.read_catalog(url)
        assert ForeignKey("labs", "visit", "visits", "id") in found.foreign_keys
        assert list(found.left_out) == ["public.seen"]
        assert "CREATE MATERIALIZED VIEW" in found.left_out["public.seen"]
        clinic = dp.connect(tmp_path / "clinic.toml")
        answer = clinic.sql("SELECT COUNT(*) AS n FROM labs", epsilon=0.9).table
        assert abs(answer["n"][0].as_py() - 400) < 400
        del clinic
    finally:
        server.connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
