"""The first run with a keyboard alone: from a file to a policy that is served, and a first answer."""

from __future__ import annotations

import pytest

from ..browser import Browser
from ..setup.first_runs import running_first_run, write_visits
from .keyboard import Keyboard
from .test_analyst import ask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("size", "scheme", "scripts"), [("desktop", "light", True), ("phone", "dark", False)])
def test_from_a_file_to_the_first_answer(tmp_path, running_chromium, size, scheme, scripts):
    write_visits(tmp_path)
    with running_first_run(tmp_path, "--new", "visits.parquet") as run:
        browser = Browser(running_chromium, run.url)
        keys = Keyboard(browser.open(size=size, scheme=scheme, scripts=scripts), scripts=scripts)
        keys.log_in(run.link)
        _declare(keys)
        keys.press("Serve this")
        run.wait_until_served()
        keys.page.wait_for_url("**/accounts", timeout=60_000)
        keys.check_walk()
        keys.follow("Ask")
        ask(keys, "SELECT city, COUNT(*) AS n FROM visits GROUP BY city", "0.2")
        assert keys.page.locator("table tbody tr").count() == 2
        browser.close()


def _declare(keys: Keyboard) -> None:
    """All steps up to the policy, and one step back on the way."""
    keys.check_walk()
    keys.choose("What visits has", "rows of people, by patient_id")
    keys.press("Next: columns")
    keys.check_walk()
    keys.write("Rows of one person, at most", "3")
    keys.write("Smallest cost", "100")
    keys.write("Largest cost", "0")
    keys.press("Next")
    keys.page.get_by_role("alert").wait_for()
    keys.check_walk()
    keys.write("Rows of one person, at most", "3")
    keys.write("Choices of city", "Haifa\nKoper")
    keys.write("Smallest cost", "0")
    keys.write("Largest cost", "100")
    keys.press("Next")
    keys.check_walk()
    keys.write("ε", "5")
    keys.write("Every answer leaves after", "0")
    keys.write("Name of your account", "olga")
    keys.press("Next: see the policy")
    keys.check_walk()
    step = keys.page.locator(".steps a").last.inner_text()
    keys.follow(step)
    assert keys.page.input_value("#owner") == "olga"
    keys.press("Next: see the policy")
    assert "patient_id" in keys.page.locator("pre").inner_text()
