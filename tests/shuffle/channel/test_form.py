"""The form for phones: what the page holds, what its script sends and says, and what the command refuses."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

import discreet as dp
from discreet.cli import main
from discreet.errors import InvalidArgument
from discreet.shuffle.channel.form import page as page_module
from discreet.shuffle.channel.form.page import KINDS, draw_form
from discreet.shuffle.channel.form.texts import known_texts, read_texts
from discreet.shuffle.channel.task import Task

from ...gateway.console.browser import Browser, check_accessible, check_fits, chromium, save_picture
from ...gateway.console.conftest import axe  # noqa: F401
from ...refusing import refuses
from .. import every_poll
from .polls import CHOICES, make_poll, services, signer

QUESTION = "How often do you feel lonely?"
HOSTILE = "</script></title><script>alert(1)</script><img src=x onerror='alert(2)'> \"quoted\" &amp; <!--"
EMPTY = {"meta", "link", "input"}
TOKEN = "5f" * 48
ANSWERED = ("bit", "response", "fakes")


class Page(HTMLParser):
    """What a browser reads in a page, and whether its tags are balanced."""

    def __init__(self, page: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(page.decode())
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in EMPTY:
            self._open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in set(self._open):
            self.texts[tag][-1] += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def shape(self) -> list[tuple[str, list[str]]]:
        """The tags with the names of their attributes."""
        return [(tag, sorted(attributes)) for tag, attributes in self.tags]

    @property
    def policy(self) -> dict[str, str]:
        [said] = [one["content"] for one in self.all("meta") if "http-equiv" in one]
        return dict(part.strip().split(" ", 1) for part in said.split(";"))


@cache
def task_of(name: str = "fakes", choices: tuple[Any, ...] = CHOICES) -> Task:
    made = every_poll.poll(name, clients=100, epsilon=8, delta=0.01, choices=choices)
    key = bytes(range(32))
    return Task(description=made.described(), epsilon=8, delta=0.01, shuffler_key=key, analyzer_key=key)


# --- the page ---------------------------------------------------------------------------------------------------


def test_the_page_asks_and_promises_what_the_task_does() -> None:
    task = task_of()
    page = Page(draw_form(task, f"  {QUESTION}\n"))
    assert page.texts["h1"] == page.texts["title"] == [QUESTION]
    assert page.texts["label"] == list(CHOICES)
    assert [one["value"] for one in page.all("input")] == ["0", "1", "2"]
    assert task.promise in page.texts["p"]
    [main_] = page.all("main")
    assert hashlib.sha256(main_["data-task"].encode()).digest() == task.hash
    assert (main_["data-hash"], main_["data-shuffler"]) == (task.hash.hex(), task.shuffler)
    assert Page(draw_form(task_of("bit"), QUESTION)).texts["label"] == ["Yes", "No"]


def test_the_page_runs_and_asks_nothing_but_its_own() -> None:
    page = Page(draw_form(replace(task_of(), shuffler="https://shuffler.example/poll"), QUESTION))
    [script], [style] = page.texts["script"], page.texts["style"]
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    assert page.policy == {
        "default-src": "'none'",
        "script-src": f"'sha256-{digests[0]}'",
        "style-src": f"'sha256-{digests[1]}'",
        "img-src": "data:",
        "connect-src": "https://shuffler.example/poll/v1/",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
    }
    names = {name for _, attributes in page.tags for name in attributes}
    assert not [name for name in names if name == "src" or name == "style" or name.startswith("on")]
    assert [one.get("href") for _, one in page.tags if "href" in one] == ["data:,"]
    assert "form" not in page.texts  # nothing that a browser could send without the script
    assert not any(word in script + style for word in ("innerHTML", "url(", "@import", "http://", "https://", "eval("))


def test_what_others_wrote_stays_text() -> None:
    choices = (HOSTILE, "b", 3)
    page = Page(draw_form(task_of(choices=choices), HOSTILE))
    assert page.texts["h1"] == page.texts["title"] == [HOSTILE]
    assert page.texts["label"] == [HOSTILE, "b", "3"]
    assert page.shape == Page(draw_form(task_of(choices=("a", "b", 3)), QUESTION)).shape
    [main_] = page.all("main")
    assert json.loads(main_["data-task"])["protocol"]["choices"] == list(choices)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (lambda: replace(task_of(), issuer_key=signer().modulus), "entry @discreet/reports/admission"),
        (lambda: task_of("two messages"), "entry @discreet/reports/all"),
        (lambda: task_of("hashed"), "entry @discreet/reports/all"),
        (lambda: task_of("split and mix"), "entry @discreet/reports/all"),
        (lambda: task_of(choices=(("a", "b"), "c")), "must be texts"),
        (lambda: task_of(choices=(2**53, 1)), "must be texts"),
        *(
            (lambda address=address: replace(task_of(), shuffler=address), "[services] in the task file")
            for address in (
                "http://shuffler.example",
                "http://127.0.0.1.example",
                "https://shuffler.example; script-src *",
                "https://me@shuffler.example",
                "https://shuffler.example *",
                "https://bücher.example",
                "wss://shuffler.example",
                "*",
            )
        ),
    ],
)
def test_a_task_that_the_page_cannot_answer_is_refused(task: Any, words: str) -> None:
    with refuses(InvalidArgument, "shuffle-no-form") as caught:
        draw_form(task(), QUESTION)
    assert words in str(caught.value)


GERMAN = {
    "language": "de",
    "send": "Senden",
    "yes": "Ja",
    "explained": "Das Rauschen schützt Sie.",
    "closed": "Zu spät.",
}


def test_a_page_in_another_language() -> None:
    page = Page(draw_form(task_of("bit"), "Sind Sie einsam?", GERMAN))
    assert page.all("html") == [{"lang": "de"}]
    assert page.texts["label"] == ["Ja", "No"]  # what is not translated stays English
    assert page.texts["button"] == ["Senden", "I do not want to take part"]
    assert GERMAN["explained"] in page.texts["p"]
    assert task_of("bit").promise in page.texts["p"]  # in English, whatever else is said
    assert json.loads(page.all("main")[0]["data-texts"])["closed"] == "Zu spät."


def test_texts_stay_texts_and_change_neither_the_script_nor_the_policy() -> None:
    usual = Page(draw_form(task_of(), QUESTION, {"explained": "a"}))
    page = Page(draw_form(task_of(), QUESTION, dict.fromkeys(known_texts(), HOSTILE) | {"language": "de"}))
    assert (page.shape, page.policy, page.texts["script"]) == (usual.shape, usual.policy, usual.texts["script"])


def test_everything_that_the_script_says_has_a_text() -> None:
    script = Path(page_module.__file__).with_name("page.js").read_text()
    ends = script.split("ENDS = ")[1].split("]")[0]
    said = {*re.findall(r"TEXTS\.([a-z]+)", script), *re.findall(r'"([a-z-]+)"', ends), "sent"}
    assert len(said) == 13
    assert said <= set(known_texts())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('greeting = "Hi"', "'greeting' is not the name of a text"),
        ("send = 3", "The text send must be words"),
        ('send = " "', "The text send must be words"),
        (f'send = "{"a" * 1001}"', "The text send must be words"),
        ('language = "de\\" onload=\\"x"', "The language must be a code"),
        ("send = ", "is not a file of texts"),
        ("[send]", "The text send must be words"),
    ],
)
def test_other_texts_are_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "texts.toml").write_text(text)
    with refuses(InvalidArgument, "shuffle-form-texts") as caught:
        read_texts(tmp_path / "texts.toml")
    assert words in str(caught.value)


# --- the command ------------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    poll = make_poll(tmp_path)

    def run(*given: str, question: str = QUESTION) -> tuple[Any, str]:
        with pytest.raises(SystemExit) as ended:
            main(["shuffle", "form", "poll.toml", *given, "--question", question])
        said = capsys.readouterr()
        return ended.value.code, said.out + said.err

    status, said = run("form.html")
    assert not status
    assert (tmp_path / "form.html").read_bytes() == draw_form(poll.task, QUESTION)
    here = (tmp_path / "form.html").resolve().as_uri()
    assert f"discreet shuffle tokens poll.toml 10000 | sed 's|^|{here}#|' > links.txt" in said
    assert "is on this machine" in said
    poll.path.write_text(poll.path.read_text().replace("http://127.0.0.1:7002", "https://shuffler.example"))
    assert run("form.html", question="Another?")[1].startswith("error [file-exists]: ")
    assert QUESTION in (tmp_path / "form.html").read_text()
    status, said = run("form.html", "--force", question="Another?")
    assert (not status, "is on this machine" in said) == (True, False)
    assert "discreet shuffle tokens poll.toml 10000 | sed 's|^|https://polls.example/form.html#|' > links.txt" in said
    assert "who can change the page can read what they answer" in said
    assert "--open" in said
    assert "Another?" in (tmp_path / "form.html").read_text()
    for name in ("poll.toml", "nowhere/form.html", "."):
        assert run(name, "--force")[1].startswith("error [file-not-writable]: ")
    assert run("other.html", question=" ")[1].startswith("error [shuffle-no-question]: ")
    assert not (tmp_path / "other.html").exists()
    assert "Translate what stands in quotes" in run("other.html", "--texts", "german.toml")[1]
    assert read_texts(tmp_path / "german.toml") == known_texts()
    assert not (tmp_path / "other.html").exists()
    (tmp_path / "german.toml").write_text('language = "de"\nsend = "Senden"')
    assert not run("other.html", "--texts", "german.toml")[0]
    assert ">Senden</button>" in (tmp_path / "other.html").read_text()
    assert run("other.html", "--texts", "german.txt")[1].startswith("error [file-not-writable]: ")


# --- the script in Node -----------------------------------------------------------------------------------------

STUBS = """
const { script, poll, visits } = JSON.parse(require("fs").readFileSync(0, "utf-8"));
globalThis.setTimeout = (call) => setImmediate(call); // nobody waits for a service that does not answer
const kept = new Map();
const memory = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => void kept.set(key, value) };
Object.defineProperty(globalThis, "localStorage", { value: memory, configurable: true });
let now; // the present visit
globalThis.fetch = async (url, { headers, body, credentials }) => {
  const bytes = Buffer.from(body ?? []).toString("hex");
  now.sent.push({ url, token: headers.Authorization ?? "", bytes, credentials });
  const status = now.statuses.shift() ?? 200;
  if (!status) throw new TypeError("no network");
  const token = new Uint8Array(48).fill(7);
  return { status, ok: status === 200, arrayBuffer: async () => token.buffer };
};
const { subtle } = crypto;
const generateKey = subtle.generateKey.bind(subtle);
subtle.generateKey = async (...given) => {
  if (now.old) throw new DOMException("X25519", "NotSupportedError");
  return generateKey(...given);
};
globalThis.confirm = () => now.sure;
globalThis.addEventListener = () => {};
globalThis.history = { replaceState: (state, title, place) => { now.place = place; } };
const until = async (is) => { while (!is()) await new Promise((done) => setImmediate(done)); };
(async () => {
  for (now of visits) {
    if (now.new) kept.clear(); // another device
    Object.assign(now, { sent: [], place: null, statuses: now.statuses ?? [] });
    const element = () => ({ disabled: true, textContent: "", focus() {}, remove() { this.removed = true; },
      addEventListener(name, call) { this.click = call; } });
    const fields = { poll: { dataset: { ...poll, ...now.changed } } };
    for (const id of ["ask", "answers", "send", "decline", "said"]) fields[id] = element();
    globalThis.document = {
      getElementById: (id) => fields[id],
      querySelector: (words) => (words === "input:checked" && now.chosen ? { value: now.chosen } : null),
    };
    globalThis.isSecureContext = !now.insecure;
    globalThis.location = { hash: now.token ? "#" + now.token : "", pathname: "/form.html", search: "?a=1" };
    (0, eval)(script);
    await until(() => !fields.send.disabled || fields.said.textContent);
    for (const name of now.clicks ?? []) if (!fields.ask.removed) await fields[name].click();
    now.said = fields.said.textContent;
    now.asks = !fields.ask.removed;
    now.choosing = !fields.answers.disabled;
  }
  console.log(JSON.stringify(visits));
})();
"""
THANKS, ALREADY = "Thank you. Your report was taken.", "A report was already taken"


@pytest.fixture(scope="module")
def node(install: Any) -> None:
    install(lambda: shutil.which("node"), "nodejs")


def visit(task: Task, *visits: dict[str, Any]) -> list[dict[str, Any]]:
    """What happens when somebody opens the page on one device, again and again."""
    page = Page(draw_form(task, QUESTION))
    poll = {name.removeprefix("data-"): value for name, value in page.all("main")[0].items()}
    given = json.dumps({"script": page.texts["script"][0], "poll": poll, "visits": visits})
    done = subprocess.run(["node", "--eval", STUBS], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


@pytest.mark.parametrize("name", ANSWERED)
def test_an_answer_is_sent_once_and_nothing_stays_of_it(node: None, name: str) -> None:
    task = task_of(name)
    none, one, again = visit(
        task,
        {"token": TOKEN, "clicks": ["send"]},
        {"token": TOKEN, "chosen": "1", "clicks": ["send"]},
        {"token": TOKEN, "chosen": "0", "clicks": ["send"]},
    )
    assert (none["said"], none["sent"], none["asks"]) == ("Choose an answer first.", [], True)
    [sent] = one["sent"]
    assert (sent["url"], sent["token"]) == (f"{task.shuffler}/v1/report", f"Bearer {TOKEN}")
    assert (len(sent["bytes"]), sent["credentials"]) == (2 * task.shape.report, "omit")
    assert THANKS in one["said"]
    assert (one["asks"], one["place"]) == (False, "/form.html?a=1")  # neither the choice nor the token is left
    assert (ALREADY in again["said"], again["sent"], again["asks"]) == (True, [], False)


def test_every_kind_that_has_a_form_is_answered() -> None:
    assert {task_of(name).protocol.kind for name in ANSWERED} == set(KINDS)


def test_an_open_poll_needs_no_token(node: None) -> None:
    task = task_of()
    [one] = visit(task, {"chosen": "0", "clicks": ["send"]})
    assert [(sent["url"], sent["token"]) for sent in one["sent"]] == [
        (f"{task.shuffler}/v1/token", ""),
        (f"{task.shuffler}/v1/report", f"Bearer {'07' * 48}"),
    ]
    assert THANKS in one["said"]


def test_whoever_does_not_take_part_sends_nothing(node: None) -> None:
    unsure, out, later = visit(
        task_of(),
        {"token": TOKEN, "chosen": "0", "clicks": ["decline"], "sure": False},
        {"token": TOKEN, "chosen": "0", "clicks": ["decline"], "sure": True},
        {"token": TOKEN, "chosen": "0", "clicks": ["send"]},
    )
    assert (unsure["asks"], unsure["said"]) == (True, "")
    for one in (out, later):
        assert (one["asks"], one["sent"], one["said"].startswith("You do not take part.")) == (False, [], True)


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"statuses": [409]}, 1, ALREADY),
    ({"statuses": [410]}, 1, "This poll is closed."),
    ({"statuses": [400]}, 1, "not one of this poll's"),
    ({"token": TOKEN[:20]}, 0, "not one of this poll's"),
    ({"token": "", "statuses": [400]}, 1, "This link is not complete."),
    ({"changed": {"task": "{}"}}, 0, "This page was changed"),
    ({"insecure": True}, 0, "must be opened with https"),
]
"""What is different, how many requests are made, and what is said."""


def test_what_cannot_be_sent_is_told(node: None) -> None:
    usual = {"token": TOKEN, "chosen": "1", "clicks": ["send"], "new": True}
    for one, (given, requests, words) in zip(
        visit(task_of(), *(usual | given for given, _, _ in REFUSED)), REFUSED, strict=True
    ):
        assert words in one["said"], given
        assert (len(one["sent"]), one["asks"]) == (requests, False), given


def test_after_a_failure_the_same_bytes_are_sent_again(node: None) -> None:
    down = {"token": TOKEN, "chosen": "1", "statuses": [0] * 5}
    lost, again = visit(task_of(), down | {"clicks": ["send"]}, down | {"clicks": ["send", "send"], "new": True})
    assert lost["said"].startswith("The poll cannot be reached.")
    assert (lost["asks"], lost["choosing"], len(lost["sent"])) == (True, False, 5)
    assert len(again["sent"]) == 6
    assert len({sent["bytes"] for sent in again["sent"]}) == 1
    assert THANKS in again["said"]


def test_a_browser_that_cannot_seal_sends_nothing_and_says_so(node: None) -> None:
    [one] = visit(task_of(), {"token": TOKEN, "chosen": "1", "clicks": ["send"], "old": True})
    assert (one["said"].startswith("This browser cannot seal"), one["sent"], one["choosing"]) == (True, [], True)


# --- in a browser -----------------------------------------------------------------------------------------------


@contextmanager
def served(page: Path) -> Iterator[tuple[str, list[str]]]:
    """A server of one page, and everything that it was told."""
    told: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.append(f"{self.path} {self.headers}")
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.read_bytes())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/form.html", told
        server.shutdown()


@pytest.mark.slow
def test_two_people_answer_on_phones(tmp_path: Path, install: Any, axe: str) -> None:  # noqa: F811
    install(lambda: shutil.which("chromium"), "chromium")
    choices = ("never", HOSTILE, "daily")
    made = dp.shuffle.histogram(choices=choices, clients=12, minimum=10, epsilon=8, delta=0.05)
    poll = make_poll(tmp_path, description=made.described())
    form = tmp_path / "form.html"

    def reports(shuffler: Any) -> int:
        operator = {"Authorization": f"Bearer {poll.issuer.operator.hex()}"}
        return int(httpx.get(f"{shuffler.url}/v1/state", headers=operator).json()["reports"])

    with services(poll, tmp_path) as (shuffler, _), served(form) as (url, told), chromium() as running:
        form.write_bytes(draw_form(poll.task, HOSTILE))
        browser = Browser(running, url)
        tokens = [poll.token(number).hex() for number in range(2)]

        phone = browser.open(size="phone")
        phone.set_viewport_size({"width": 360, "height": 640})
        phone.goto(f"{url}#{tokens[0]}")
        phone.get_by_role("radio", name=HOSTILE).wait_for()
        assert phone.get_by_role("heading", level=1).inner_text() == HOSTILE
        assert phone.locator("img, script:not(:last-child)").count() == 0
        phone.get_by_role("button", name="Send", disabled=False).wait_for()
        check_fits(phone)
        check_accessible(phone, axe)
        save_picture(phone, "form")
        phone.keyboard.press("Tab")
        phone.keyboard.press("Space")
        phone.keyboard.press("ArrowDown")
        phone.keyboard.press("Tab")
        phone.keyboard.press("Enter")
        phone.get_by_text(THANKS).wait_for()
        assert (phone.url, reports(shuffler)) == (url, 1)
        check_accessible(phone, axe)
        for page in (phone, browser.open(size="phone")):  # the same device, and another one with the same link
            page.goto("about:blank")
            page.goto(f"{url}#{tokens[0]}")
            if page is not phone:
                page.get_by_text("daily").click()
                page.get_by_role("button", name="Send").click()
            page.get_by_text(ALREADY).wait_for()
        assert reports(shuffler) == 1

        other = browser.open(size="phone", scheme="dark")
        other.goto(f"{url}#{tokens[1]}")
        other.get_by_role("button", name="Send", disabled=False).wait_for()
        check_accessible(other, axe)
        other.get_by_text("never").click()
        other.get_by_role("button", name="Send").click()
        other.get_by_text(THANKS).wait_for()
        assert reports(shuffler) == 2

        out = browser.open(size="phone")
        out.on("dialog", lambda dialog: dialog.accept())
        out.goto(f"{url}#{poll.token(2).hex()}")
        out.get_by_role("button", name="I do not want to take part").click()
        out.get_by_text("You do not take part.").wait_for()
        assert reports(shuffler) == 2
        browser.close()  # fails on anything that the browser complained about
    assert told
    assert not any(token in one for one in told for token in tokens)
