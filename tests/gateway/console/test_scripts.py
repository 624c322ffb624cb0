"""The scripts of the console in Node, with a page of a few lines: what they send, show and leave behind."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from discreet.gateway.console import site

STATIC = Path(site.__file__).parent / "static"
STUBS = """
const seen = { fetched: [], html: [], places: [] };
const field = () => ({ value: "", focus() {}, textContent: "" });
const fields = { link: field(), content: field() };
globalThis.FormData = class { constructor(form) { return Object.entries(form); } };
globalThis.trustedTypes = { createPolicy: (name, rules) => rules };
globalThis.document = {
  createElement: () => ({ set innerHTML(html) { seen.html.push(html); this.content = { html }; } }),
  getElementById: (id) => fields[id] ?? null,
  querySelector: () => field(),
};
globalThis.addEventListener = () => {};
globalThis.history = { replaceState: (state, title, place) => seen.places.push(place) };
globalThis.location = { hash: HASH, pathname: "/login", search: "?next=%2Fask" };
globalThis.fetch = async (path, sent) => {
  seen.fetched.push({ path, credentials: sent.credentials, body: String(sent.body) });
  return { ok: OK, redirected: REDIRECTED, text: async () => "<p>plan</p>" };
};
"""


@pytest.fixture(scope="module", autouse=True)
def node(install: Any) -> None:
    install(lambda: shutil.which("node"), "nodejs")


def run(script: str, *, status: bool = True, redirected: bool = False, secret: str = "") -> dict[str, Any]:
    """What is seen of a script."""
    stubs = STUBS.replace("HASH", json.dumps(secret)).replace("OK", json.dumps(status))
    text = stubs.replace("REDIRECTED", json.dumps(redirected)) + script
    text += "\nconsole.log(JSON.stringify({ ...seen, fields, ...(globalThis.found ?? {}) }));"
    command = ["node", "--input-type=module", "--eval", text]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


FRAGMENT = f"""
const {{ postForm }} = await import("{(STATIC / "fragments.js").as_uri()}");
const nodes = await postForm("/ask/plan", {{ sql: "SELECT 1" }});
globalThis.found = {{ nodes: nodes === null ? null : nodes.html }};
"""


def test_a_part_of_a_page_comes_from_the_path_that_was_asked() -> None:
    """A session that ended is redirected to the login: its page is no plan, and is not put into the page."""
    found = run(FRAGMENT)
    assert (found["nodes"], found["html"]) == ("<p>plan</p>", ["<p>plan</p>"])
    assert found["fetched"] == [{"path": "/ask/plan", "credentials": "same-origin", "body": "sql=SELECT+1"}]
    for given in ({"redirected": True}, {"status": False}):
        refused = run(FRAGMENT, **given)
        assert (refused["nodes"], refused["html"]) == (None, [])


@pytest.mark.parametrize(("hash_", "taken"), [("#s3cret", "s3cret"), ("", ""), ("#content", "")])
def test_the_secret_of_a_link_leaves_the_address_bar(hash_: str, taken: str) -> None:
    found = run(f'await import("{(STATIC / "login.js").as_uri()}");', secret=hash_)
    assert found["fields"]["link"]["value"] == taken
    assert found["places"] == (["/login?next=%2Fask"] if taken else [])


def test_no_script_writes_markup_or_keeps_anything() -> None:
    """HTML becomes a part of a page in one place, and nothing of a session is kept in a browser's storage."""
    for file in STATIC.glob("*.js"):
        text = file.read_text("utf-8")
        assert (text.count("innerHTML") > 0) == (file.name == "fragments.js"), file.name
        for word in ("outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "Math.random"):
            assert word not in text, f"{file.name}: {word}"
        for word in ("localStorage", "sessionStorage", "indexedDB", "document.cookie", "http://", "https://"):
            assert word not in text, f"{file.name}: {word}"
