"""The built site: a strict build, pages that fit a phone, nothing from another host, charts that follow the dark."""

from __future__ import annotations

import importlib.util
import io
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
WIDTHS = (360, 390, 768, 1280)
CHARTS = ("index", "architecture", "risk", "benchmarks/sql", "reproduce-course")
"""Pages with charts: those of matplotlib, and drawings of our own."""
BEYOND = """() => {
    const width = document.documentElement.clientWidth
    const held = part => {
        for (let at = part.parentElement; at !== document.body; at = at.parentElement) {
            const overflow = getComputedStyle(at).overflowX
            if (overflow !== 'visible') return overflow === 'auto' || overflow === 'scroll'
        }
        return false
    }
    const wide = [...document.querySelectorAll('article *')].filter(part => {
        const box = part.getBoundingClientRect()
        const right = Math.max(box.right, box.left + part.scrollWidth)
        const scrolls = ['auto', 'scroll'].includes(getComputedStyle(part).overflowX)
        return box.width > 1 && right > width + 1 && !scrolls && !held(part)
    })
    const page = document.documentElement.scrollWidth > innerWidth ? ['the page'] : []
    return page.concat(wide.map(part => part.outerHTML.slice(0, 80)))
}"""
"""What is wider than the window, and does not scroll in a box of its own."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does it. Stories are not run: their pages have no output."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("stories"))
    shutil.copytree(ROOT / "src", folder / "src")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    spec = importlib.util.spec_from_file_location("make_notebooks", ROOT / "docs" / "make" / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    (folder / "docs" / "stories").mkdir()
    for story in maker.stories():
        notebook = maker.notebook_of(story.read_text("utf-8"))
        (folder / "docs" / "stories" / f"{story.stem}.md").write_text(maker.page_of(notebook, story.stem)[0], "utf-8")
        (folder / "docs" / "stories" / f"{story.stem}.ipynb").write_text("{}", "utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def browser(install: Any) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    install(lambda: shutil.which("chromium"), "chromium")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield running
        running.close()


@pytest.mark.slow
def test_every_page_fits_every_window_and_fetches_nothing_from_another_host(site: Path, browser: Any) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 130
    tab, wide, fetched = browser.new_page(), {}, list[str]()
    tab.on("request", lambda request: request.url.startswith("file:") or fetched.append(request.url))
    for page in pages:
        tab.goto(page.as_uri())
        for width in WIDTHS:
            tab.set_viewport_size({"width": width, "height": 800})
            if beyond := tab.evaluate(BEYOND):
                wide[page.name, width] = beyond[:3]
    assert wide == {}
    assert fetched == []


@pytest.mark.slow
def test_what_is_too_wide_is_noticed(site: Path, browser: Any) -> None:
    tab = browser.new_context(viewport={"width": 360, "height": 800}).new_page()
    tab.goto((site / "tutorial.html").as_uri())
    assert tab.evaluate(BEYOND) == []
    tab.evaluate("document.querySelector('article p').style.whiteSpace = 'nowrap'")
    assert tab.evaluate(BEYOND)
    tab.evaluate("document.querySelector('article').style.overflowX = 'hidden'")
    assert tab.evaluate(BEYOND)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_have_the_paper_of_the_page(site: Path, browser: Any, scheme: str) -> None:
    image = pytest.importorskip("PIL.Image", reason='needs pip install "discreet[plot]"')
    tab = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme).new_page()
    for name in CHARTS:
        tab.goto((site / f"{name}.html").as_uri())
        chart = tab.locator("article img").first
        chart.scroll_into_view_if_needed()
        corner = image.open(io.BytesIO(chart.screenshot())).convert("L").getpixel((2, 2))
        assert corner > 240 if scheme == "light" else corner < 30, name
