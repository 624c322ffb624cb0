"""The console in a real browser: how many bytes each page has, and how long it takes to load."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from bench import report
from bench.gateway import gateways
from bench.gateway.timing import write_visits

ROUNDS = 15
PAGES = {
    "ask": "/ask",
    "ask, with a plan": "/ask?sql=SELECT+city,+COUNT(*)+AS+n+FROM+visits+GROUP+BY+city&epsilon=0.1",
    "guided": "/guided",
    "history": "/history",
    "budget": "/budget",
    "what ε means": "/risk",
    "dashboards": "/dashboards",
    "accounts": "/accounts",
    "policy": "/policy",
    "record": "/record",
    "audit": "/audit",
    "health": "/health",
}
LARGEST = 60_000
LONGEST = 0.5
TIMES = """() => { const [one] = performance.getEntriesByType("navigation");
  return [one.decodedBodySize, one.responseEnd - one.requestStart, one.loadEventEnd] }"""
"""Bytes of the page, milliseconds until it has arrived, and until it is loaded with all that belongs to it."""


def login_secret(policy: Path) -> str:
    """What stands in the login link of a new owner, after its address."""
    words = [*gateways.DISCREET, "account", str(policy), "open", "olga", "--role", "owner"]
    said = subprocess.run(words, check=True, capture_output=True, text=True, env=gateways.environment()).stdout
    return said.partition("/login#")[2].split()[0]


def visits(page: Any, path: str) -> tuple[float, float, float]:
    """The bytes of a page, and the medians of both times."""
    found = []
    for _ in range(ROUNDS):
        page.goto(path)
        found.append(page.evaluate(TIMES))
    sizes, arrived, loaded = zip(*found, strict=True)
    return max(sizes), statistics.median(arrived), statistics.median(loaded)


def main() -> None:
    from playwright.sync_api import sync_playwright

    report.section(
        "The console",
        "gateway.console",
        f"""Pages for an owner in Chromium on this machine, after they were seen once: median of {ROUNDS} visits.
        {report.machine()}.""",
    )
    report.table("page", "bytes", "arrived after", "loaded after")
    largest = longest = 0.0
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        write_visits(folder / "visits.parquet", person=False, rows=1000)
        with gateways.gateway(folder, folder / "visits.parquet", "answer_after = 0") as desk:
            client = desk.connect(desk.token("ada"))
            for limit in range(60):
                client.ask(f"SELECT city, COUNT(*) AS n FROM visits WHERE cost <= {limit} GROUP BY city", epsilon=0.1)
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = browser.new_context(base_url=desk.url).new_page()
            page.goto(f"/login#{login_secret(desk.policy)}")
            page.get_by_role("button", name="Log in").click()
            page.get_by_role("button", name="Log out").wait_for()
            for said, path in PAGES.items():
                size, arrived, loaded = visits(page, path)
                report.line(said, f"{size:,}", f"{arrived:.1f} ms", f"{loaded:.0f} ms")
                largest, longest = max(largest, size), max(longest, loaded)
            browser.close()
    report.verdict(
        {
            f"pages of at most {LARGEST:,} bytes": largest <= LARGEST,
            f"loaded in {LONGEST:g} s": longest <= 1000 * LONGEST,
        }
    )


if __name__ == "__main__":
    main()
