"""Takes the pictures of docs/console.md and the README from a real gateway in a real browser: the synthetic clinic of
`discreet demo gateway`, in Debian's Chromium. `python docs/make/console.py` needs the extra `browser`.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from discreet.demo.data import make_clinic
from discreet.demo.gateway import GATEWAY
from discreet.gateway.books.offices import Office
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.books.tokens import COMMAND_LINE
from discreet.gateway.serve import Supervisor
from discreet.gateway.settings import load_settings
from discreet.gateway.vault.verbs import VERBS
from discreet.ledger import Ledger

PICTURES = Path(__file__).parents[1] / "images" / "console"
SHOWN = "Cost of a visit by city"
WIDE, PHONE = {"width": 1180, "height": 860}, {"width": 390, "height": 844}
QUESTIONS = {
    "Patients by city": ("SELECT city, COUNT(*) AS patients FROM people GROUP BY city", "0.2"),
    "Cost of a visit by city": (
        "SELECT city, COUNT(*) AS visits, AVG(cost) AS cost FROM visits JOIN people USING (patient_id) GROUP BY city",
        "0.5",
    ),
    "All visits": ("SELECT COUNT(*) AS visits FROM visits", "0.1"),
}


def main() -> None:
    """Serve the clinic, use its pages as people would, and take pictures of them."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        policy = make_clinic(Path(folder))
        with policy.open("a", encoding="utf-8") as file:
            file.write(GATEWAY.format(port=0, answer_after="0"))
        supervisor = Supervisor(policy, isolated=False)
        with supervisor.running(), sync_playwright() as playwright:
            url, links = supervisor.addresses()["http"], links_for(policy)
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])

            def enter(name: str, **given: Any) -> Page:
                given = {"viewport": WIDE, "color_scheme": "light", **given}
                page = browser.new_context(base_url=url, **given).new_page()
                page.goto(f"{url}/login#{links[name].partition('#')[2]}")
                page.get_by_role("button", name="Log in").click()
                page.get_by_role("button", name="Log out").wait_for()
                return page

            by_alice(enter("alice"))
            by_owner(enter("olga"))
            by_viewer(enter("vera", viewport=PHONE, color_scheme="dark", device_scale_factor=2))
            browser.close()


def links_for(policy: Path) -> dict[str, str]:
    """A login link for an owner, an analyst and a viewer."""
    known, settings = load_settings(policy)
    ledger = Ledger.open(known.ledger, protects=known.unit, limit=known.limit, rule=known.rule)
    with closing(ledger), GatewayStore(settings.store) as store:
        office = Office(store=store, ledger=ledger, settings=settings, now=time.time)
        wanted = (
            {"name": "olga", "role": "owner"},
            {"name": "alice", "epsilon": 3},
            {"name": "vera", "role": "viewer"},
        )
        return {one["name"]: VERBS["open"](office, COMMAND_LINE, one)["link"] for one in wanted}


def take(page: Page, name: str, *, whole: bool = False) -> None:
    """Pictures of what the browser shows, in the light and in the dark."""
    page.wait_for_load_state("networkidle")
    for scheme, ending in (("dark", "-dark"), ("light", "")):
        page.emulate_media(color_scheme=scheme)
        page.screenshot(path=PICTURES / f"{name}{ending}.png", full_page=whole)


def by_alice(page: Page) -> None:
    """She asks, looks at an answer, and puts three on a dashboard."""
    receipts = {}
    for title, (sql, epsilon) in QUESTIONS.items():
        page.goto("/ask")
        page.get_by_label("Question in SQL").fill(sql)
        page.locator("#epsilon").fill(epsilon)
        if title == "Patients by city":
            page.get_by_text("Expected error").wait_for()
            take(page, "ask")
        page.get_by_role("button", name="Ask", exact=True).click()
        page.wait_for_url("**/answers/*")
        if title == SHOWN:
            take(page, "answer", whole=True)
        receipts[title] = page.url.rpartition("/")[2]
    page.goto("/dashboards")
    page.get_by_label("Title").fill("The clinic this month")
    page.get_by_role("button", name="Make it").click()
    for title, receipt in receipts.items():
        page.get_by_label("Title", exact=True).first.fill(title)
        page.get_by_label("receipt", exact=False).last.fill(receipt)
        page.get_by_role("button", name="Add it").click()
    page.goto("/dashboards/1")
    page.get_by_role("button", name="Ask to publish it").click()


def by_owner(page: Page) -> None:
    """The owner publishes the dashboard, and looks at the accounts."""
    page.goto("/dashboards/1")
    page.get_by_role("button", name="Publish").click()
    take(page, "dashboard")
    page.goto("/accounts")
    take(page, "accounts")


def by_viewer(page: Page) -> None:
    """A viewer looks at the dashboards on a phone."""
    page.goto("/dashboards/1")
    page.wait_for_load_state("networkidle")
    page.screenshot(path=PICTURES / "phone.png")


if __name__ == "__main__":
    main()
