"""The TypeScript client: its laws are Python's, what it seals opens, and the bundle is what it claims to be."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

import discreet as dp
from discreet.shuffle.channel import keys, wire

from ..gateway.console.browser import chromium
from ..shuffle.channel.polls import CHOICES, Poll, make_poll, serve, services
from . import packed, vectors
from .conftest import PACKAGE, run

QUICK, MANY = 5_000, 1_000_000
LARGEST = 4000
"""Bytes of the main entry, compressed."""
TESTS = 17
MUTANTS = {
    "a biased coin": ("exact.js", "below(whole) < part", "below(whole) <= part", "a coin has"),
    "modulo bias": ("exact.js", "if (drawn < bound) return drawn;", "return drawn % bound;", "a uniform number"),
    "a bit too few": (
        "exact.js",
        "(bound - 1n).toString(2).length",
        "(bound - 1n).toString(2).length - 1 || 1",
        "a uniform number",
    ),
    "a truncated seed": (
        "suite.js",
        "crypto.getRandomValues(new Uint8Array(count))",
        "new Uint8Array(count).fill(crypto.getRandomValues(new Uint8Array(1))[0])",
        "drawn frequencies",
    ),
    "the messages in order": (
        "polls.js",
        "return shuffled(known(CLIENTS, protocol.kind)(protocol, value, draws), draws);",
        "return known(CLIENTS, protocol.kind)(protocol, value, draws);",
        "every poll",
    ),
    "a shuffle that favors": (
        "exact.js",
        "draws.below(BigInt(last + 1))",
        "draws.below(BigInt(items.length))",
        "every poll",
    ),
    "the truth too often": (
        "oracles.js",
        "[weight * part, weight * part + rest * whole]",
        "[weight * part, weight * part + rest * whole - 1n]",
        "every local report",
    ),
    "no fake but the empty message": (
        "polls.js",
        "draws.coin([part % whole, whole]) ? last : choices",
        "choices",
        "every poll",
    ),
    "a lie that is the truth": (
        "oracles.js",
        "(place + 1n + draws.below(size - 1n)) % size",
        "(place + draws.below(size)) % size",
        "every local report",
    ),
    "a key that the reader is not part of": (
        "hpke.js",
        '"shared_secret", joined(own, reader)',
        '"shared_secret", joined(own, own)',
        "RFC 9180",
    ),
    "a wrong answer is counted as the first choice": (
        "values.js",
        'if (place < 0) throw refused("one of its choices");',
        "if (place < 0) return 0n;",
        "a wrong answer",
    ),
    "another task is not noticed": ("task.js", "pinned !== void 0 &&", "false &&", "a pinned hash"),
    "an answer is drawn anew in every round": ("survey.js", "if (kept === null)", "if (true)", "a repeated survey"),
    "a second report of a device": ("poll.js", 'memory.setItem(state, "sent");', "", "sent once"),
    "two reports of two clicks": ("poll.js", "turn = turn.catch", "turn.catch", "two clicks"),
    "a report of somebody who has opted out": (
        "poll.js",
        'if (memory.getItem(state) === "out")',
        "if (false)",
        "two clicks",
    ),
    "a place that the oracle does not have": (
        "oracles.js",
        "placeBelow(BigInt(oracle.size), place), draws",
        "place, draws",
        "larger entry",
    ),
    "a rounded seed": ("all.js", "!Number.isSafeInteger(seed)", "false", "larger entry"),
    "a report that is sealed again after a failure": ("poll.js", "if (!kept)", "if (true)", "sent once"),
}
"""A file of the package, what stands there, what is wrong, and the name of the test that finds it."""


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the vectors."""
    folder = tmp_path_factory.mktemp("vectors")
    (folder / "vectors.json").write_text(json.dumps(vectors.everything(QUICK)))
    return folder


def check(result: dict[str, Any], folder: Path) -> None:
    """All tests passed, and Python can open what was sealed."""
    assert not result["failed"], "\n".join(result["failed"])
    assert result["passed"] == TESTS
    poll = json.loads((folder / "vectors.json").read_text())["poll"]
    task, client = vectors.poll_task(), bytes.fromhex(poll["token"])[: wire.CLIENT]
    assert len(result["opened"]) == 30
    for sealed in result["opened"]:
        inside = keys.open_seal(bytes.fromhex(sealed["report"]), vectors.SHUFFLER_KEY, wire.outer(task.hash, client))
        width = task.shape.message
        parts = [inside[start : start + width] for start in range(0, len(inside), width)]
        plain = b"".join(keys.open_seal(one, vectors.ANALYZER_KEY, wire.inner(task.hash)) for one in parts)
        assert task.protocol.unpacked(plain).tolist() == sealed["messages"]


def in_node(folder: Path, dist: Path = PACKAGE / "dist", only: str = "") -> dict[str, Any]:
    run("node", "test/node.mjs", str(folder), str(dist), only)
    return json.loads((folder / "node.json").read_text())


def test_the_client_in_node(package: Path, given: Path) -> None:
    check(in_node(given), given)


class _Quiet(SimpleHTTPRequestHandler):
    """The package and the vectors, for a browser on this machine."""

    vectors = b""

    def do_GET(self) -> None:
        if self.path != "/vectors.json":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(self.vectors)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is given for a million draws: a coin that is off by 0.005 is found with a probability above 99% (the test
    file says for what else).
    """
    folder = tmp_path_factory.mktemp("many")
    (folder / "vectors.json").write_text(json.dumps(vectors.everything(MANY)))
    return folder


@pytest.mark.slow
def test_a_million_draws_in_node(package: Path, many: Path) -> None:
    check(in_node(many), many)


@pytest.mark.slow
def test_a_million_draws_in_a_browser(package: Path, many: Path, install) -> None:
    install(lambda: shutil.which("chromium"), "chromium")
    handler = type(
        "Given",
        (_Quiet,),
        {
            "vectors": (many / "vectors.json").read_bytes(),
            "extensions_map": _Quiet.extensions_map | {".mjs": "text/javascript"},
        },
    )
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(package))) as server,
        chromium() as running,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = running.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/test/browser.html")
        page.wait_for_function("window.result", timeout=290_000)
        check(page.evaluate("window.result"), many)
        server.shutdown()


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("name", MUTANTS)
def test_seeded_bugs_are_found(name: str, package: Path, given: Path, tmp_path: Path) -> None:
    file, right, wrong, found_by = MUTANTS[name]
    dist = tmp_path / "dist"
    shutil.copytree(package / "dist", dist)
    source = (dist / "parts" / file).read_text()
    assert source.count(right) == 1, f"{right!r} is {source.count(right)} times in {file}"
    (dist / "parts" / file).write_text(source.replace(right, wrong))
    for entry in ("index", "all"):  # the entries, too, from the changed parts
        (dist / f"{entry}.js").write_text(f'export * from "./parts/{entry}.js";')
    (tmp_path / "vectors.json").write_text((given / "vectors.json").read_text())
    result = in_node(tmp_path, dist, found_by)
    assert (len(result["failed"]), result["passed"]) == (1, 0)


def test_the_bundle_is_small_and_needs_nothing(package: Path) -> None:
    about = json.loads((package / "package.json").read_text())
    assert not about.keys() & {"dependencies", "peerDependencies", "optionalDependencies"}
    for name in ("index", "discreet-reports"):
        text = (package / "dist" / f"{name}.js").read_text()
        assert len(gzip.compress(text.encode(), 9)) <= LARGEST
        assert not re.search(r"\bimport\b|\brequire\b|\beval\b", text)
    for file in (package / "dist").rglob("*.js"):
        assert not re.search(r"Math\s*\.\s*random", file.read_text()), file
    files = json.loads(run("npm", "pack", "--dry-run", "--json"))[0]["files"]
    names = {one["path"] for one in files}
    for entry in about["exports"].values():
        assert {entry["types"].removeprefix("./"), entry["default"].removeprefix("./")} <= names
    assert {"README.md", "package.json", "LICENSE"} <= names
    assert not any("test" in name or "parts" in name for name in names), names


def test_the_packed_script_is_made_from_these_sources() -> None:
    assert (packed.PACKED / packed.SUMS).read_text() == packed.sums(), "run python -m tests.clients.packed"


def test_the_packed_script_is_the_built_one(package: Path) -> None:
    assert (packed.PACKED / packed.SCRIPT).read_bytes() == (package / "dist" / packed.SCRIPT).read_bytes()


def fleet(package: Path, folder: Path, poll: Poll, count: int) -> None:
    """So many clients in JavaScript, through both services: each is counted once, and they all look alike."""
    with services(poll, folder) as (shuffler, _):
        task = poll.task
        clients = [[poll.token(number).hex(), CHOICES[number % 3]] for number in range(count)]
        asked = {
            "task": task.canonical.decode(),
            "shuffler": shuffler.url,
            "hash": task.hash.hex(),
            "clients": clients,
        }
        (folder / "fleet.json").write_text(json.dumps(asked))
        seen = json.loads(run("node", "test/fleet.mjs", str(package / "dist"), str(folder / "fleet.json")))
        assert seen["sent"] == count
        assert seen["codes"] == ["reported-already"] * (count // 50)
        assert seen["lengths"] == [task.shape.report]
        assert len(seen["headers"]) == 1
        with httpx.Client(timeout=60) as http:
            operator = {"Authorization": f"Bearer {poll.issuer.operator.hex()}"}
            assert http.post(f"{shuffler.url}/v1/close", headers=operator).json()["reports"] == count
            for _ in range(600):
                found = http.get(f"{task.analyzer}/v1/result")
                if found.status_code == 200:
                    break
                threading.Event().wait(0.05)
        result = found.json()
        assert result["reports"] == result["heard"] == count
        for (_, counted), place in zip(result["value"], range(3), strict=True):
            assert abs(counted - len(range(place, count, 3))) <= 3 * result["error"]  # far beyond any noise


TOUR = """
import { survey, poll } from "@discreet/reports";
const asked = await (await fetch("SURVEY")).arrayBuffer();
const report = await survey(asked).encode("daily");
const task = await (await fetch("SHUFFLER/v1/task")).arrayBuffer();
await poll(task, { shuffler: "SHUFFLER" }).send("canary-of-Haifa");
console.log(JSON.stringify(report));
"""


@pytest.mark.slow
def test_the_tour_as_an_installed_package_with_an_open_poll(package: Path, tmp_path: Path) -> None:
    """The lines of the tour; only addresses and the names of tasks are filled in."""
    scope = tmp_path / "node_modules" / "@discreet"
    scope.mkdir(parents=True)
    (scope / "reports").symlink_to(package)
    poll = make_poll(tmp_path, minimum=10)
    asked = dp.local.survey(choices=["daily", "weekly", "never"], epsilon=1)
    where = f"data:application/json;base64,{base64.b64encode(dp.local.task(asked)).decode()}"
    shuffler = serve(poll, "shuffler", tmp_path / "shuffler.log", "--open")
    try:
        tour = TOUR.replace("SURVEY", where).replace("SHUFFLER", shuffler.url)
        (tmp_path / "tour.mjs").write_text(tour)
        report = json.loads(run("node", "tour.mjs", folder=tmp_path))
        assert asked.analyze([report]).reports == 1
        operator = {"Authorization": f"Bearer {poll.issuer.operator.hex()}"}
        assert httpx.get(f"{shuffler.url}/v1/state", headers=operator).json()["reports"] == 1
    finally:
        shuffler.stop()


@pytest.mark.slow
def test_a_few_clients_through_the_services(package: Path, tmp_path: Path) -> None:
    fleet(package, tmp_path, make_poll(tmp_path, minimum=50), 50)


@pytest.mark.slow
def test_a_fleet_of_a_thousand_clients(package: Path, tmp_path: Path) -> None:
    fleet(package, tmp_path, make_poll(tmp_path, minimum=1000), 1000)
