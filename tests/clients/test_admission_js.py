"""Tickets in TypeScript: the RFC's vectors, and people with vouchers through a real issuer and shuffler."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from discreet.cli.shuffle.options import files_of
from discreet.shuffle.channel import admission

from ..shuffle.channel.polls import CHOICES, make_poll, serve, services, signer
from .conftest import PACKAGE, run

TESTS = 10
MUTANTS = {
    "a message that is not blinded": ("draws.below(modulus)", "1n"),
    "an answer that is not checked": ("power(signature, EXPONENT, modulus) === encoded ?", "true ?"),
    "an answer above the modulus": ("answer < modulus &&", ""),
    "a request that is not remembered": ("memory.setItem(key, JSON.stringify(kept));", ""),
    "two requests at once": ("    kept = remembered();\n", "    kept = null;\n"),
    "a ticket of any task": ("hash, drawn.slice(32)", "new Uint8Array(32), drawn.slice(32)"),
    "a short key": ("{511,1023}", "{0,1023}"),
    "the voucher in the memory": (".slice(0, 16);\n  const key", " + voucher;\n  const key"),
    "another task is not noticed": ("suite, options.hash", "suite"),
}


def outcome(dist: Path) -> subprocess.CompletedProcess[str]:
    command = ("node", "--test", "--test-reporter=tap", "test/admission.test.mjs")
    environment = os.environ | {"DIST": str(dist)}
    return subprocess.run(command, cwd=PACKAGE, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_tickets_in_node(package: Path) -> None:
    done = outcome(package / "dist")
    assert done.returncode == 0, done.stdout[-5000:]
    assert f"# pass {TESTS}\n" in done.stdout


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("name", MUTANTS)
def test_seeded_bugs_of_tickets_are_found(name: str, package: Path, tmp_path: Path) -> None:
    right, wrong = MUTANTS[name]
    dist = tmp_path / "dist"
    shutil.copytree(package / "dist", dist)
    (dist / "package.json").write_text('{"type": "module"}')
    source = (dist / "parts" / "admission.js").read_text()
    assert source.count(right) == 1, f"{right!r} is {source.count(right)} times in admission.js"
    (dist / "parts" / "admission.js").write_text(source.replace(right, wrong))
    (dist / "admission.js").write_text('export * from "./parts/admission.js";')
    done = outcome(dist)
    assert done.returncode != 0
    assert "not ok" in done.stdout


@pytest.mark.slow
def test_people_with_vouchers_through_the_services(package: Path, tmp_path: Path) -> None:
    """Each is counted once. A second ticket, an unknown voucher and a forged ticket are refused."""
    poll = make_poll(tmp_path, minimum=10, admission_by=signer())
    vouchers = [admission.new_voucher() for _ in range(10)]
    (tmp_path / "people.txt").write_text("\n".join(vouchers))
    listed = ("--people", str(tmp_path / "people.txt"))
    store = str(files_of(poll.path).issuer_store)
    with services(poll, tmp_path) as (shuffler, _):
        issuer = serve(replace(poll, analyzer_at=store), "issuer", tmp_path / "issuer.log", *listed)
        try:
            task = poll.task
            people = [[voucher, CHOICES[number % 3]] for number, voucher in enumerate(vouchers)]
            asked = {"task": task.canonical.decode(), "hash": task.hash.hex(), "people": people}
            (tmp_path / "people.json").write_text(json.dumps(asked | {"issuer": issuer.url, "shuffler": shuffler.url}))
            seen = json.loads(run("node", "test/people.mjs", str(package / "dist"), str(tmp_path / "people.json")))
        finally:
            issuer.stop()
        assert seen == {"lengths": [2 * task.shape.token], "codes": ["voucher-used", "not-accepted", "not-accepted"]}
        operator = {"Authorization": f"Bearer {poll.issuer.operator.hex()}"}
        state = httpx.get(f"{shuffler.url}/v1/state", headers=operator).json()
        assert (state["state"], state["reports"]) == ("collecting", 10)
