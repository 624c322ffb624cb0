"""Apache Superset: a database, a dataset, a chart, a dashboard that is refreshed, and SQL Lab.

It runs in an environment of its own: `python in_superset.py`, with the task as JSON on its input. It prints what
Superset saw, as JSON, in its last line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CONFIG = """\
SECRET_KEY = "only for this test"
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/superset.db"
WTF_CSRF_ENABLED = False
TALISMAN_ENABLED = False
RATELIMIT_ENABLED = False
FAB_ADD_SECURITY_API = True
"""


class Superset:
    """Superset's own application, reached by its REST interface."""

    def __init__(self, folder: Path) -> None:
        config = folder / "superset_config.py"
        config.write_text(CONFIG.format(folder=folder))
        os.environ |= {"SUPERSET_CONFIG_PATH": str(config), "SUPERSET_HOME": str(folder), "FLASK_APP": "superset"}
        for words in (
            ["db", "upgrade"],
            [
                "fab",
                "create-admin",
                *_named(username="admin", firstname="A", lastname="B", email="a@b.c", password="pw"),
            ],
            ["init"],
        ):
            command = [str(Path(sys.executable).with_name("superset")), *words]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[-2000:]
        from superset.app import create_app

        self.app = create_app()
        self.client = self.app.test_client()
        login = {"username": "admin", "password": "pw", "provider": "db", "refresh": True}
        token = self.send("post", "security/login", login)["access_token"]
        self.client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {token}"

    def send(self, method: str, path: str, body: Any = None, *, fails: bool = False) -> Any:
        """The JSON of a reply."""
        reply = getattr(self.client, method)(f"/api/v1/{path}", json=body)
        assert fails or reply.status_code < 300, f"{path}: {reply.status_code} {reply.get_data(as_text=True)[:3000]}"
        return reply.get_json()


def _named(**given: str) -> list[str]:
    return [word for name, value in given.items() for word in (f"--{name}", value)]


def main() -> None:
    task = json.load(sys.stdin)
    url = f"postgresql+psycopg2://{task['user']}:{task['password']}@{task['host']}:{task['port']}/{task['database']}"
    with tempfile.TemporaryDirectory() as folder:
        superset, saw = Superset(Path(folder)), dict[str, Any]()
        database = {"database_name": "clinic", "sqlalchemy_uri": url}
        saw["tested"] = superset.send("post", "database/test_connection/", database)["message"]
        number = superset.send("post", "database/", {**database, "expose_in_sqllab": True})["id"]
        schemas = superset.send("get", f"database/{number}/schemas/")["result"]
        saw["schemas"] = [name for name in schemas if not name.startswith("pg_") and name != "information_schema"]
        tables = superset.send("get", f"database/{number}/tables/?q=(schema_name:public,force:!f)")["result"]
        saw["tables"] = sorted(one["value"] for one in tables)
        dataset = superset.send("post", "dataset/", {"database": number, "schema": "public", "table_name": "visits"})[
            "id"
        ]
        columns = superset.send("get", f"dataset/{dataset}")["result"]["columns"]
        saw["columns"] = {one["column_name"]: one["type"] for one in columns}
        metric = {"expressionType": "SQL", "sqlExpression": "COUNT(*)", "label": "n"}
        query = {"columns": ["city"], "metrics": [metric], "orderby": [], "row_limit": 100}
        form = {"viz_type": "table", "groupby": ["city"], "metrics": [metric], "row_limit": 100}
        data = {"datasource": {"id": dataset, "type": "table"}, "queries": [query], "form_data": form, "force": True}
        stored = {"params": json.dumps(form), "query_context": json.dumps(data)}
        named = {
            "slice_name": "visits by city",
            "viz_type": "table",
            "datasource_id": dataset,
            "datasource_type": "table",
        }
        chart = superset.send("post", "chart/", {**named, **stored})["id"]
        page = superset.send("post", "dashboard/", {"dashboard_title": "clinic"})["id"]
        superset.send("put", f"chart/{chart}", {"dashboards": [page]})
        refreshed = [superset.send("post", "chart/data", data)["result"][0] for _ in range(4)]
        saw["chart"] = [[row["city"], row["n"]] for row in refreshed[0]["data"]]
        saw["refreshed"] = [[[row["city"], row["n"]] for row in one["data"]] for one in refreshed]
        saw["on the dashboard"] = [one["id"] for one in superset.send("get", f"dashboard/{page}/charts")["result"]] == [
            chart
        ]
        lab = {"database_id": number, "schema": "public", "runAsync": False, "queryLimit": 1000, "expand_data": True}
        asked = superset.send("post", "sqllab/execute/", {**lab, "sql": task["ask"], "client_id": "a1"})
        saw["rows"] = [list(row.values()) for row in asked["data"]]
        scan = superset.send("post", "sqllab/execute/", {**lab, "sql": task["scan"], "client_id": "a2"}, fails=True)
        saw["scan"] = json.dumps(scan)
        print(json.dumps(saw))


if __name__ == "__main__":
    main()
