"""The client for browsers: its size next to peers, and how many answers a second it seals in Node and in Chromium."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench import report
from discreet.exact.canonical import canonical
from discreet.shuffle import histogram

PACKAGE = Path(__file__).resolve().parents[2] / "clients" / "js"
SEALS, LARGEST = 500, 4000
"""Goals: seals a second in Node, and bytes of the main entry compressed with gzip."""


def run(*command: str) -> str:
    return subprocess.run(command, cwd=PACKAGE, check=True, capture_output=True, text=True).stdout


def write_task(path: Path) -> None:
    """A poll of three choices, with two messages a report."""
    protocol = histogram(choices=["a", "b", "c"], clients=10_000, epsilon=1, delta=1e-8, honest=0.8)
    facts = {
        "format": "discreet/shuffle/v1",
        "protocol": protocol.described(),
        "length": protocol.length,
        "shuffler": "09" + "00" * 31,
        "analyzer": "09" + "00" * 31,
    }
    path.write_bytes(canonical(facts))


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def in_chromium() -> dict[str, float]:
    from playwright.sync_api import sync_playwright

    handler = type("Given", (_Quiet,), {"extensions_map": _Quiet.extensions_map | {".mjs": "text/javascript"}})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(PACKAGE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/bench/browser.html")
            page.wait_for_function("window.rates", timeout=120_000)
            found: dict[str, float] = page.evaluate("window.rates")
            browser.close()
        server.shutdown()
    return found


def main() -> None:
    run("npm", "ci", "--no-audit", "--no-fund")
    run("npm", "run", "build")
    sizes = json.loads(run("node", "bench/sizes.mjs"))
    task = PACKAGE / "bench" / "task.json"
    write_task(task)
    report.section(
        "Reports from a browser",
        "surveys.clients",
        f"""the TypeScript client `@discreet/reports`; sizes minified by the same tools and compressed with gzip; rates
        of one page or one Node process, eight at once, for three seconds each. {report.machine()}.""",
    )
    report.table("bundle", "bytes, gzip", "direct dependencies")
    about = json.loads((PACKAGE / "package.json").read_text())
    for name, said in (("index", "main entry"), ("all", "everything"), ("noble", "with its own cryptography")):
        size = len(gzip.compress((PACKAGE / "dist" / f"{name}.js").read_bytes(), 9))
        report.line(f"`@discreet/reports`, {said}", f"{size:,}", len(about.get("dependencies", {})))
        if name == "index":
            small = size <= LARGEST
    for name, package, said in (
        ("hpke-js", "@hpke/core", "sealing alone"),
        ("Divvi Up", "@divviup/dap", "Prio3 and sealing"),
    ):
        peer = json.loads((PACKAGE / "node_modules" / package / "package.json").read_text())
        version, needs = peer["version"], len(peer.get("dependencies", {}))
        report.line(f"{name} (`{package}` {version}): {said}", f"{sizes[name]:,}", needs)
    print()
    rates = {"Node": json.loads(run("node", "bench/node.mjs", str(task))), "Chromium": in_chromium()}
    task.unlink()
    report.table("a second", *rates)
    for name in rates["Node"]:
        report.line(name, *(f"{found[name]:,.0f}" for found in rates.values()))
    report.notes(
        """A seal is one X25519 exchange, five HMACs and one AES-GCM, each a call of WebCrypto. A report here is two
        messages: three seals, and the hash of its task.""",
        """libprio's WebAssembly is not published as a package, so Divvi Up's client of the same protocol is beside
        ours. It splits an answer for two servers that add up; ours randomizes and seals.""",
    )
    report.verdict(
        {
            f"at least {SEALS} seals a second in Node": rates["Node"]["seals"] >= SEALS,
            f"the main entry has at most {LARGEST:,} bytes": small,
        }
    )


if __name__ == "__main__":
    main()
