"""An owner, a steward and an analyst at real browsers: accounts, approvals, the policy, and the first run."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from ...served import COMMAND, ENVIRONMENT
from ..browser import Browser, check_accessible, check_fits, check_small, save_picture
from ..conftest import serving
from ..setup.first_runs import running_first_run, write_visits

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A gateway where questions above ε = 0.5 need a second person."""
    with serving(tmp_path_factory.mktemp("site"), "[gateway.limits]\napprove_above = 0.5") as made:
        yield made


def check_page(page, axe, name):
    check_accessible(page, axe)
    check_fits(page)
    check_small(page)
    save_picture(page, name)


def test_an_owner_opens_an_account_and_its_link_works_elsewhere(site, browser):
    page = browser.open(site.login_link("olga"))
    page.goto("/accounts")
    page.get_by_label("Name", exact=True).fill("lee")
    page.get_by_label("Limit ε").fill("2")
    page.get_by_role("button", name="Open the account").click()
    link = page.get_by_label("Link", exact=True).input_value()
    assert link.partition("#")[2] not in page.url
    save_picture(page, "secret")
    page.get_by_role("button", name="Copy").click()
    page.get_by_text("Copied.").or_(page.get_by_text("Press Ctrl-C")).wait_for()
    other = browser.open(f"{site.url}/login#{link.partition('#')[2]}")  # its port is 0 in the settings
    assert other.get_by_role("link", name="lee").is_visible()
    page.get_by_role("link", name="Done").click()
    page.get_by_role("button", name="Suspend this account").click()
    page.get_by_text("The account is suspended.").wait_for()
    other.goto("/policy")
    assert other.get_by_text("gateway-suspended").is_visible()


def test_a_steward_approves_what_an_analyst_filed(site, browser):
    sql = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
    asked = site.post(site.token("alice"), sql, json={"sql": sql, "epsilon": 0.9})
    assert asked.json()["code"] == "gateway-approval"
    page = browser.open(site.login_link("stefan"), scripts=False)
    page.goto("/requests")
    page.get_by_role("rowheader").get_by_role("link").first.click()
    save_picture(page, "request")
    page.get_by_label("Why").fill("For the yearly report.")
    page.get_by_role("button", name="Approve").click()
    page.get_by_text("The question is approved.").wait_for()
    assert site.post(site.token("alice"), sql, json={"sql": sql, "epsilon": 0.9}).status_code == 200


def test_a_proposal_is_seen_as_a_difference(site, browser, axe):
    page = browser.open(site.login_link("alice"))
    page.goto("/policy")
    page.get_by_role("link", name="Propose a change").click()
    text = page.get_by_label("Text")
    text.fill(text.input_value().replace('"Koper"', '"Izola",\n"Koper"').replace(": 3", ": 5"))
    page.get_by_label("Why").fill("One more city.")
    page.get_by_role("button", name="Propose").click()
    page.get_by_text("Your proposal is stored.").wait_for()
    place = page.url.partition("?")[0]
    steward = browser.open(site.login_link("stefan"), scheme="dark")
    steward.goto(place)
    added = steward.locator("ins").all_inner_texts()
    assert any("Izola" in one and one.startswith("+") for one in added)
    assert all(one.startswith("−") for one in steward.locator("del").all_inner_texts())
    check_page(steward, axe, "proposal-dark")
    steward.get_by_role("button", name="Accept").click()
    steward.get_by_text("The proposal is accepted.").wait_for()


PATHS = (
    "/accounts",
    "/accounts/alice",
    "/tokens",
    "/requests",
    "/policy",
    "/policy/propose",
    "/record",
    "/audit",
    "/health",
)


@pytest.mark.parametrize("size", ["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_clear(site, browser, axe, size, scheme):
    page = browser.open(site.login_link("olga"), size=size, scheme=scheme)
    for path in PATHS:
        page.goto(path)
        check_page(page, axe, f"{path.strip('/').replace('/', '-')}-{size}-{scheme}")
    page.goto("/record")
    page.get_by_role("button", name="Verify the records").click()
    page.get_by_text("Everything is whole.").wait_for()
    check_page(page, axe, f"verified-{size}-{scheme}")


def test_with_the_keyboard_alone(site, browser):
    page = browser.open(site.login_link("olga"))
    page.goto("/accounts")
    page.get_by_label("Name", exact=True).focus()
    page.keyboard.type("keys")
    page.keyboard.press("Tab")
    page.keyboard.type("view")  # the role
    for _ in ("ε", "δ", "the button"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Login link for keys").wait_for()
    assert "/login#" in page.get_by_label("Link", exact=True).input_value()


def test_other_roles_see_what_is_theirs(site, browser, axe):
    for name, first in (("stefan", "/requests"), ("aude", "/record")):
        page = browser.open(site.login_link(name))
        assert page.url.endswith(first)
        check_page(page, axe, f"first-{name}")
        assert page.get_by_role("button", name="Open the account").count() == 0


# --- the first run ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scripts", [True, False])
def test_from_a_file_to_the_first_answer(tmp_path, running_chromium, axe, scripts):
    write_visits(tmp_path)
    with running_first_run(tmp_path, "--new", "visits.parquet") as run:
        browser = Browser(running_chromium, run.url)
        page = browser.open(run.link, scripts=scripts, size="desktop" if scripts else "phone")
        look = (
            check_page if scripts else lambda page, axe, name: (check_fits(page), save_picture(page, f"{name}-phone"))
        )
        page.get_by_label("What visits has").select_option("people:patient_id")
        look(page, axe, "setup-tables")
        page.get_by_role("button", name="Next: columns").click()
        page.get_by_label("Rows of one person").fill("3")
        page.get_by_label("Smallest cost").fill("0")
        page.get_by_label("Largest cost").fill("100")
        page.get_by_label("Choices of city").fill("Haifa\nKoper")
        look(page, axe, "setup-columns")
        page.get_by_role("button", name="Next").click()
        page.get_by_label("Every answer leaves after").fill("0")
        page.get_by_label("Name of your account").fill("olga")
        look(page, axe, "setup-limits")
        page.get_by_role("button", name="Next: see the policy").click()
        look(page, axe, "setup-policy")
        page.get_by_role("button", name="Serve this").click()
        run.wait_until_served()
        page.wait_for_url("**/accounts", timeout=60_000)
        look(page, axe, "setup-done")
        page.goto("/tokens")
        page.get_by_role("button", name="Make the token").click()
        token = page.get_by_label("Token", exact=True).input_value()
        browser.close()
        sent = {"sql": "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"}
        head = {"Authorization": f"Bearer {token}"}
        reply = httpx.post(f"{run.url}/v1/questions", json=sent, headers=head, trust_env=False, timeout=60)
        assert [row[0] for row in reply.json()["rows"]] == ["Haifa", "Koper"], reply.text
        assert httpx.post(f"{run.url}/login", data={"link": run.link}, trust_env=False).status_code == 401
        secret = run.link.partition("#")[2]
        assert secret not in run.errors
    assert stat.S_IMODE((tmp_path / "visits.toml").stat().st_mode) == 0o600
    again = subprocess.run(
        [sys.executable, *COMMAND, "serve", "--new", "visits.parquet"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode != 0
    assert "file-exists" in again.stderr


def test_from_a_database_to_the_first_answer(tmp_path: Path, postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS first_run CASCADE")
        connection.execute("CREATE SCHEMA first_run")
        connection.execute("CREATE TABLE first_run.visits (patient_id int, city text, cost float8)")
        connection.execute(
            "INSERT INTO first_run.visits SELECT i / 3, 'Haifa', i % 100 FROM generate_series(1, 3000) i"
        )
        connection.execute("CREATE VIEW first_run.glimpse AS SELECT * FROM first_run.visits")
    try:
        with running_first_run(tmp_path, "--new", postgres, "clinic.toml") as run:
            _set_up_database(run, postgres)
    finally:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute("DROP SCHEMA first_run CASCADE")


def _set_up_database(run, postgres):
    from ..test_login import log_in, secret_of

    with httpx.Client(base_url=run.url, trust_env=False, timeout=60) as client:
        log_in(client, run.link)
        page = client.get("/setup").text
        form = {"form": secret_of(page)}
        names = [line.split("<")[0] for line in page.split('<th scope="row">')[1:]]
        assert "glimpse" not in names  # a view is not offered, and its owner hears why
        assert "first_run.glimpse" in page.partition("<h2>Not available</h2>")[2]
        uses = {f"use.{number}": "left out" for number in range(len(names))}
        uses[f"use.{names.index('visits')}"] = "people:patient_id"
        assert client.post("/setup", data=form | uses).headers["location"] == "/setup/columns/1"
        told = {"rows_per_person": "3", "choices.1": "Haifa", "low.2": "0", "high.2": "100", "choices.2": ""}
        assert client.post("/setup/columns/1", data=form | told).headers["location"] == "/setup/limits"
        limits = {"epsilon": "5", "delta": "1e-6", "answer_after": "0", "default": "0.1", "most": "1", "owner": "olga"}
        assert client.post("/setup/limits", data=form | limits).status_code == 303
        assert "patient_id" in client.get("/setup/policy").text
        assert client.post("/setup/policy", data=form).status_code == 303
        run.wait_until_served()
        form = {"form": secret_of(client.get("/tokens").text)}
        token = client.post("/tokens", data=form).text.split('aria-describedby="secret-hint">')[1].split("<")[0]
        head = {"Authorization": f"Bearer {token}"}
        sent = {"sql": "SELECT COUNT(*) AS n FROM visits"}
        answered = client.post(
            "/v1/questions", content=json.dumps(sent), headers=head | {"Content-Type": "application/json"}
        )
        assert answered.status_code == 200, answered.text
        assert client.get("/v1/status", headers=head).status_code in (200, 403)
