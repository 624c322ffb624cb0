"""The first run: from data to a policy that answers, without showing a row, and only with the printed link."""

from __future__ import annotations

import datetime
import html
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.datasets.drafts import ledger_lines
from discreet.datasets.limits import warnings_on_limit
from discreet.datasets.sources import Source, read_source
from discreet.engines.postgres.catalog import ForeignKey
from discreet.gateway.books.tokens import digest_of
from discreet.gateway.console.pages.every_page import SETUP
from discreet.gateway.console.site import Console
from discreet.gateway.first_run import FirstRun as Starter
from discreet.gateway.frames import serve_frames
from discreet.gateway.settings import Settings, load_settings
from discreet.gateway.setup import draft as drafts
from discreet.gateway.setup import office
from discreet.gateway.setup.office import FirstRun, shown_url

from ....refusing import refuses
from ..an_office import Desk, Person, secret_of
from .first_runs import running_first_run

CANARY, SECRET = "canary-7c1e", "the secret of the printed link"
HOSTILE = '<script>alert(1)</script>"]\n[unit]'
VISITS = {
    "visit_id": [7_654_321, 2, 3] * 100,
    "patient_id": [8_765_432 + one // 3 for one in range(300)],
    "cost": [1234.5, 2.5, 3.5] * 100,
    "city": [CANARY, "Haifa", "Haifa"] * 100,
    "day": [datetime.date(1987, 6, 5)] * 300,
    HOSTILE: [1, 2, 3] * 100,
}
VALUES = (CANARY, "7654321", "8765432", "1234", "1987")


def write_data(folder: Path) -> list[str]:
    pyarrow.parquet.write_table(pa.table(VISITS), folder / "visits.parquet")
    pyarrow.parquet.write_table(pa.table({"visit_id": [2], "drug": ["none"]}), folder / "drugs.parquet")
    pyarrow.csv.write_csv(pa.table({"city": ["Haifa"], "population": [285_316]}), folder / "cities.csv")
    return [str(folder / name) for name in ("visits.parquet", "drugs.parquet", "cities.csv")]


class Running:
    """A first run without processes."""

    def __init__(self, desk: Desk, first_run: FirstRun, begun: list[bool]) -> None:
        self.desk, self.first_run, self.begun = desk, first_run, begun

    def person(self) -> Person:
        owner = Person(self.desk)
        assert owner.post("/login", link=f"http://127.0.0.1:8080/login#{SECRET}").status_code == 303
        owner.secret = secret_of(owner.get("/setup").text)
        return owner


@contextmanager
def first_run(folder: Path, source: Source) -> Iterator[Running]:
    begun: list[bool] = []
    made = FirstRun(
        source=source,
        policy=folder / "clinic.toml",
        gateway={"http": "127.0.0.1:8080"},
        link=digest_of(SECRET),
        begin=lambda: begun.append(True),
    )
    with ExitStack() as stack:
        desk = Desk(folder / "vault", Console(Settings(name="clinic"), SETUP))
        stack.callback(desk.close)
        server = desk.run(serve_frames(folder / "vault", made.handle, {os.getuid()}))

        async def end() -> None:
            server.close()

        stack.callback(lambda: desk.run(end()))
        yield Running(desk, made, begun)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with first_run(tmp_path, read_source(write_data(tmp_path), tmp_path / "clinic.toml")) as one:
        yield one


CHOSEN = {"use.0": "people:patient_id", "use.1": "through:visits.visit_id", "use.2": "public"}
COLUMNS = {"rows_per_person": "3", "low.2": "0", "high.2": "500", "choices.2": "", "choices.3": "Haifa\r\nKoper"}
LIMITS = {"epsilon": "5", "delta": "1e-6", "answer_after": "0", "default": "0.1", "most": "1", "owner": "olga"}


def decide(owner: Person, **columns: str) -> None:
    """All steps up to the policy."""
    assert owner.post("/setup", **CHOSEN).headers["location"] == "/setup/columns/1"
    assert owner.post("/setup/columns/1", **{**COLUMNS, **columns}).headers["location"] == "/setup/columns/2"
    assert owner.post("/setup/columns/2").headers["location"] == "/setup/limits"
    assert owner.post("/setup/limits", **LIMITS).headers["location"] == "/setup/policy"


@pytest.mark.slow
def test_from_data_to_a_policy_that_answers(running: Running, tmp_path: Path) -> None:
    owner = running.person()
    decide(owner)
    shown = html.unescape(re.search(r"<pre[^>]*>(.*)</pre>", owner.get("/setup/policy").text, re.S)[1])
    assert not (tmp_path / "clinic.toml").exists()
    reply = owner.post("/setup/policy")
    assert (reply.status_code, reply.headers["location"], running.begun) == (303, "/setup/starting", [True])
    assert "set-cookie" in reply.headers
    file = tmp_path / "clinic.toml"
    assert file.read_text("utf-8") == shown
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    words = tomllib.loads(shown)
    assert words["unit"] == {"person": "patient_id"}
    assert words["tables"]["visits"]["columns"] == {
        "city": {"choices": ["Haifa", "Koper"]},
        "cost": {"between": [0, 500]},
    }
    assert words["tables"]["drugs"]["through"] == "visits.visit_id"
    assert words["tables"]["cities"]["public"] is True
    assert words["gateway"]["question"] == {"default": 0.1, "most": 1.0}
    _, settings = load_settings(file)
    assert settings.http.is_local
    clinic = dp.connect(file)
    assert len(clinic.sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=0.5).table) == 2
    clinic.ledger.close()
    waiting = owner.get("/setup/starting")  # as the owner of the new gateway, whose session it is
    assert (waiting.status_code, waiting.headers["refresh"]) == (200, "1; url=/")
    assert owner.get("/").headers["location"] == "/setup/starting"
    assert owner.post("/setup/policy").status_code in (400, 403)  # once


def test_the_owner_alone_sees_how_many_values_do_not_fit_their_types(tmp_path: Path) -> None:
    """The same counts as on a terminal, and not in the policy."""
    rows = (f"{n // 3};{CANARY if n < 9 else f'{1 + n % 8}.234,50'};0{1 + n % 3}/04/2024\n" for n in range(300))
    (tmp_path / "costs.csv").write_text("patient_id;cost;day\n" + "".join(rows) + f"{CANARY};1,5;01/04/2024\n")
    source = read_source([str(tmp_path / "costs.csv")], tmp_path / "clinic.toml", header=True)
    counted = "9 of 301 values are not numbers such as 1.234,50; they will be NULL"
    with first_run(tmp_path, source) as running:
        stranger, owner = Person(running.desk), running.person()
        owner.post("/setup", **{"use.0": "people:patient_id"})
        assert counted not in stranger.get("/setup/columns/1").text
        shown = owner.get("/setup/columns/1").text
        assert counted in shown
        assert "days and months of day cannot be told apart" in shown
        assert "1 of 301" not in shown  # ids stay text, and all of them fit
        assert CANARY not in shown
        refused = owner.post("/setup/columns/1", **{"type.2": "text", "low.2": "2024-01-01", "high.2": "2024-12-31"})
        assert "day is text and has no range" in refused.text
        owner.post("/setup/columns/1", **{"type.1": "text", "type.2": "text"})
        shown = owner.get("/setup/columns/1").text
        assert shown.count("<option selected>text</option>") == 2
        assert counted not in shown
        owner.post("/setup/columns/1", **{"type.1": "number", "type.2": "text"})
        owner.post("/setup/limits", **LIMITS)
        written = html.unescape(owner.get("/setup/policy").text)
    assert 'cost = {type = "number"}' in written
    assert "day = {" not in written
    assert 'thousands = "."' in written
    assert "decide: days and months of day" in written
    assert "301" not in written


def test_foreign_keys_of_a_database_lead_to_people(tmp_path: Path) -> None:
    wide = {f"column_{n}": "integer" for n in range(30)}
    tables = {
        "labs": {"id": "integer", "visit": "integer"},
        "patients": {"id": "integer", "boss": "integer"},
        "visits": {**wide, "id": "integer", "whose": "integer"},
        "wards": {"id": "integer"},
    }
    keys = [ForeignKey(name, "id", name, "id") for name in tables]
    keys += [ForeignKey("labs", "visit", "visits", "id"), ForeignKey("visits", "whose", "patients", "id")]
    keys.append(ForeignKey("patients", "boss", "patients", "id"))
    places = {name: f"public.{name}" for name in tables}
    source = Source(places=places, tables=tables, url="postgresql://h/d", foreign_keys=keys)
    made = drafts.first_draft(source)
    words = tomllib.loads(drafts.policy_text(made, source, "clinic", {}))
    assert words["unit"] == {"person": "id"}
    assert {name: one.get("through", one.get("person", "id")) for name, one in words["tables"].items()} == {
        "labs": "visit -> visits.id",
        "patients": "id",
        "visits": "whose",
    }
    assert list(drafts.keys_to(source, "wards")) == []  # ids of other things
    assert drafts.with_uses(made, source, {name: f"{t.use}:{t.leads}" for name, t in made.tables.items()}) == made
    with first_run(tmp_path, source) as running:
        shown = running.person().get("/setup").text
    for chosen in ("through:visit -&gt; visits.id", "people:id", "people:whose", "left out"):
        assert f'<option value="{chosen}" selected>' in shown
    assert "Its rows may be about more people: boss." in shown


def test_the_first_run_says_what_epsilon_means_and_how_psql_is_let_in(running: Running) -> None:
    owner = running.person()
    decide(owner)
    assert "73.1% if ε is 1," in owner.get("/setup/limits").text
    shown = html.unescape(re.search(r"<pre[^>]*>(.*)</pre>", owner.get("/setup/policy").text, re.S)[1])
    assert "postgres" not in tomllib.loads(shown)["gateway"]
    switched_on = tomllib.loads(shown.replace("# postgres", "postgres"))
    assert switched_on["gateway"]["postgres"] == "127.0.0.1:5433"


def test_a_limit_that_protects_hardly_anybody_is_confirmed(running: Running, tmp_path: Path) -> None:
    owner = running.person()
    decide(owner)
    assert "sure" not in owner.get("/setup/policy").text
    owner.post("/setup/limits", **{**LIMITS, "epsilon": "1000", "delta": "0.1"})
    said = html.unescape(owner.get("/setup/policy").text)
    assert re.findall(r'class="note">(.*)</p>', said) == warnings_on_limit(1000, 0.1)
    sure = re.search(r'name="sure" value="([^"]+)" required', said)[1]
    reply = owner.post("/setup/policy")
    assert (reply.status_code, running.begun) == (400, [])
    assert "setup-choice" in reply.text
    owner.post("/setup/limits", **{**LIMITS, "epsilon": "2000", "delta": "0.1"})  # in another tab
    assert owner.post("/setup/policy", sure=sure).status_code == 400
    assert not (tmp_path / "clinic.toml").exists()
    owner.post("/setup/limits", **{**LIMITS, "epsilon": "1000", "delta": "0.1"})
    assert owner.post("/setup/policy", sure=sure).status_code == 303
    assert tomllib.loads((tmp_path / "clinic.toml").read_text("utf-8"))["ledger"]["epsilon"] == 1000


def test_the_first_run_proposes_the_limit_of_init(running: Running) -> None:
    proposed = tomllib.loads("\n".join(ledger_lines("clinic")))["ledger"]
    draft = running.first_run.draft
    assert (draft.epsilon, draft.delta) == (proposed["epsilon"], proposed["delta"])
    assert draft.question_most < draft.epsilon


@pytest.mark.slow
def test_no_value_is_shown_anywhere(running: Running) -> None:
    owner = running.person()
    pages = [owner.get("/setup").text]
    decide(owner)
    pages += [
        owner.get(path).text for path in ("/setup/columns/1", "/setup/columns/2", "/setup/limits", "/setup/policy")
    ]
    for value in (*VALUES, "285316"):
        assert value not in "".join(pages), value
    assert "<script>alert" not in "".join(pages)
    assert "patient_id" in pages[0]
    assert all(len(page) < 60_000 for page in pages)


def test_without_the_link_nothing_is_shown(running: Running) -> None:
    stranger = Person(running.desk)
    for path in ("/", "/setup", "/setup/columns/1", "/setup/limits", "/setup/policy", "/setup/starting", "/me"):
        reply = stranger.get(path)
        assert reply.headers["location"].startswith("/login"), path
    assert stranger.post("/login", link="wrong").status_code == 401
    assert stranger.post("/setup", **CHOSEN).headers["location"].startswith("/login")
    owner = running.person()
    assert stranger.post("/login", link=SECRET).status_code == 401  # it was used
    assert owner.post("/logout").status_code == 303
    assert owner.get("/setup").headers["location"].startswith("/login")


def test_a_form_without_its_secret_decides_nothing(running: Running, tmp_path: Path) -> None:
    owner = running.person()
    decide(owner)
    before = running.first_run.draft
    for path in ("/setup", "/setup/columns/1", "/setup/limits", "/setup/policy"):
        assert owner.post(path, form="", epsilon="9").status_code == 403
        assert owner.post(path, headers={"Origin": "https://elsewhere.example"}).status_code == 403
    assert running.first_run.draft is before
    assert not (tmp_path / "clinic.toml").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["clinic.toml", "clinic.ledger", "clinic.gateway"])
def test_nothing_that_exists_is_changed(running: Running, tmp_path: Path, name: str) -> None:
    owner = running.person()
    decide(owner)
    (tmp_path / name).write_text("mine")
    reply = owner.post("/setup/policy")
    assert (reply.status_code, running.begun) == (400, [])
    assert "file-exists" in reply.text
    assert (tmp_path / name).read_text() == "mine"
    with refuses(dp.InvalidArgument, "file-exists"):
        Starter([str(tmp_path / "visits.parquet")], tmp_path / "clinic.toml", isolated=False)


WRONG: list[tuple[str, dict[str, str], str | None]] = [
    ("/setup", {"use.0": "left out", "use.2": "public"}, "setup-people"),
    ("/setup", {"use.0": "people:cost"}, "setup-choice"),
    ("/setup", {"use.0": "nonsense"}, "setup-choice"),
    ("/setup", {"use.0": "people:patient_id", "use.1": "through:visits.cost"}, "setup-choice"),
    ("/setup/columns/1", {"low.2": "0", "high.2": "", "choices.2": ""}, "wrong-shape"),
    ("/setup/columns/1", {"low.2": "9", "high.2": "0", "choices.2": ""}, "ends-out-of-order"),
    ("/setup/columns/1", {"low.2": "0", "high.2": "9", "choices.2": "1"}, "setup-choice"),
    ("/setup/columns/1", {"choices.3": "Haifa\r\nHaifa"}, "column-choices"),
    ("/setup/columns/1", {"choices.0": "x"}, "column-choices-type"),
    ("/setup/columns/1", {"rows_per_person": "some"}, "out-of-range"),
    ("/setup/columns/1", {"rows_per_person": "0"}, None),
    ("/setup/columns/9", {}, "gateway-not-found"),
    ("/setup/limits", {**LIMITS, "epsilon": "-1"}, None),
    ("/setup/limits", {**LIMITS, "epsilon": ""}, "setup-choice"),
    ("/setup/limits", {**LIMITS, "answer_after": "soon"}, "gateway-duration"),
    ("/setup/limits", {**LIMITS, "owner": HOSTILE}, "gateway-account-name"),
    ("/setup/limits", {**LIMITS, "most": "much"}, "gateway-form"),
]


def test_a_wrong_step_is_refused_on_its_page(running: Running) -> None:
    owner, before = running.person(), running.first_run.draft
    for path, fields, code in WRONG:
        reply = owner.post(path, **fields)
        assert reply.status_code in (400, 404), (path, fields)
        assert code is None or code in reply.text, (path, fields)
        assert "<script>alert" not in reply.text
        assert running.first_run.draft == before, (path, fields)


def test_columns_that_fill_several_pages(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(
        pa.table({"user_id": [1], **{f"c{n}": [n] for n in range(90)}}), tmp_path / "wide.parquet"
    )
    with first_run(tmp_path, read_source([str(tmp_path / "wide.parquet")], tmp_path / "clinic.toml")) as running:
        owner = running.person()
        owner.post("/setup", **{"use.0": "people:user_id"})
        assert len(owner.get("/setup/columns/1").content) < 60_000
        first = owner.post(
            "/setup/columns/1", page="1", rows_per_person="7", **{"low.1": "0", "high.1": "9", "choices.1": ""}
        )
        assert first.headers["location"] == "/setup/columns/1?page=2"
        hidden = re.search(r'name="rows_per_person" value="(\d*)"', owner.get("/setup/columns/1", page=2).text)[1]
        second = {"low.41": "1", "high.41": "5", "choices.41": "", "rows_per_person": hidden}
        owner.post("/setup/columns/1", page="2", **second)
        table = running.first_run.draft.tables["wide"]
        assert table.rows_per_person == 7
        assert table.columns == {"c0": {"between": [0, 9]}, "c40": {"between": [1, 5]}}


@pytest.mark.slow
def test_many_tables_fit_on_a_page(tmp_path: Path) -> None:
    columns = {f"a_column_with_a_long_name_{number}": "integer" for number in range(100)} | {"patient_id": "integer"}
    tables = {f"table_{number}": columns for number in range(30)}
    with first_run(tmp_path, Source(places=dict.fromkeys(tables, "x.parquet"), tables=tables)) as running:
        owner = running.person()
        for number in range(1, 4):
            page = owner.get("/setup", page=number)
            assert len(page.content) < 60_000
            assert 'value="people:patient_id" selected' in page.text
            left = {f"use.{one}": "left out" for one in range(10 * (number - 1), 10 * number) if one != 29}
            sent = owner.post("/setup", page=str(number), **left)
            assert sent.headers["location"] == (f"/setup?page={number + 1}" if number < 3 else "/setup/columns/1")
        assert running.first_run.draft.named("people") == ["table_29"]


@pytest.mark.slow
def test_a_button_that_is_pressed_twice_keeps_its_owner(running: Running) -> None:
    owner = running.person()
    decide(owner)
    before = dict(owner.cookies)
    first = owner.post("/setup/policy")
    owner.cookies.clear()
    owner.cookies.update(before)  # the second press was on its way before the first reply came
    again = owner.post("/setup/policy")
    assert (first.status_code, again.status_code) == (303, 303)
    assert first.headers["location"] == again.headers["location"] == "/setup/starting"
    assert first.headers["set-cookie"].partition(";")[0] == again.headers["set-cookie"].partition(";")[0]
    assert running.begun == [True]
    owner.secret = secret_of(owner.get("/me").text)
    assert owner.post("/logout").status_code == 303
    for cookies in (before, {}):
        owner.cookies.clear()
        owner.cookies.update(cookies)
        assert owner.get("/setup").headers["location"].startswith("/login")


@pytest.mark.parametrize("url", ["postgresql:///clinic?host=/run&password=a@hunter2", "postgresql://u:a?b@hunter2?c"])
def test_nothing_that_may_be_a_password_is_shown(url: str) -> None:
    assert shown_url(url) == "postgresql://…"


def test_a_fault_is_explained_to_the_owner_alone(
    running: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    owner = running.person()
    decide(owner)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(office, "write_new", full)
    reply = owner.post("/setup/policy")
    assert "gateway-failed" in reply.text
    assert "No space" not in reply.text
    assert "No space left on device" in capsys.readouterr().err


def test_several_files_are_several_options(tmp_path: Path) -> None:
    """The second one would be the name of the policy."""
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id,cost\n1,2\n")
    with refuses(dp.InvalidArgument, "file-exists") as caught:
        Starter([str(tmp_path / "a.csv")], tmp_path / "b.csv")
    assert "--new a.csv --new b.csv" in str(caught.value)
    assert "discreet serve b.csv" not in str(caught.value)


def test_files_without_types_have_them_written_down(tmp_path: Path) -> None:
    pyarrow.csv.write_csv(pa.table({"user_id": [1, 2], "age": [30, 40]}), tmp_path / "people.csv")
    with first_run(tmp_path, read_source([str(tmp_path / "people.csv")], tmp_path / "clinic.toml")) as running:
        owner = running.person()
        owner.post("/setup", **{"use.0": "people:user_id"})
        owner.post("/setup/columns/1", **{"low.1": "0", "high.1": "120", "choices.1": ""})
        text = html.unescape(owner.get("/setup/policy").text)
        assert 'age = {type = "integer", between = [0, 120]}' in text
        owner.post("/setup/limits", **LIMITS)
        assert owner.post("/setup/policy").status_code == 303
    assert dp.connect(tmp_path / "clinic.toml").schema.tables["people"].columns["age"].type == "integer"


def test_what_cannot_be_read_is_refused_before_anything_is_served(tmp_path: Path) -> None:
    with refuses(dp.InvalidArgument, "file-not-found"):
        read_source([str(tmp_path / "nothing.parquet")], tmp_path / "clinic.toml")
    (tmp_path / "rows.csv").write_text("ada,bob\ncara,dan\n")
    with refuses(dp.InvalidArgument, "command-header"):
        read_source([str(tmp_path / "rows.csv")], tmp_path / "clinic.toml")
    with refuses(dp.InvalidArgument, "setup-source"):
        read_source(["postgresql://host/a", "b.parquet"], tmp_path / "clinic.toml")


@pytest.mark.parametrize(
    "url", ["postgresql://ada:hunter2@host:5432/clinic?password=hunter2", "postgresql://ada:hunter2@x@host:5432/clinic"]
)
def test_a_password_is_not_shown(url: str) -> None:
    assert shown_url(url) == "postgresql://host:5432/clinic"
    source: Any = Source(places={}, tables={}, url=url)
    assert "hunter2" not in repr(source)


@pytest.mark.slow
def test_a_copy_in_utf_8_goes_with_a_first_run_that_ends_without_a_policy(tmp_path: Path) -> None:
    (tmp_path / "costs.csv").write_bytes("patient_id;city;cost\n1;Köln;1,5\n2;Münster;2,5\n".encode("cp1252"))
    copy = tmp_path / "costs.utf8.csv"
    with running_first_run(tmp_path, "--new", "costs.csv", "--encoding", "windows-1252") as made:
        assert "Köln" in copy.read_text("utf-8")
        assert "Nothing was written" not in made.errors
    assert not copy.exists()
    assert "Nothing was written" in made.errors
