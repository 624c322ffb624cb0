"""Logins with OpenID Connect: which tokens hold, and both steps of a login in a browser."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import shutil
import socket
import subprocess
import threading
import warnings
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey

from discreet.errors import InvalidArgument
from discreet.gateway.oidc import LEEWAY, REFETCH, STALE, Provider, Verifier, is_safe
from discreet.gateway.settings import OidcSettings

from ...refusing import refuses
from .a_desk import Running, desk, refused, said

NOW = 1_800_000_000


@pytest.fixture(scope="module")
def keys() -> dict[str, Any]:
    return {
        "RS256": RSAKey.generate_key(2048, {"kid": "rsa", "use": "sig"}),
        "ES256": ECKey.generate_key("P-256", {"kid": "ec"}),
        "EdDSA": OKPKey.generate_key("Ed25519", {"kid": "ed"}),
    }


class Pretend:
    """A provider that serves what a test says, and counts how often its keys are fetched."""

    def __init__(self, keys: dict[str, Any]) -> None:
        self.keys, self.fetched, self.codes, self.posted = keys, 0, dict[str, str](), list[dict[str, str]]()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/.well-known/openid-configuration":
                    self.reply(200, provider.document)
                elif self.path == "/keys":
                    provider.fetched += 1
                    self.reply(200, KeySet(list(provider.keys.values())).as_dict(private=False))
                else:
                    self.reply(404, {})

            def do_POST(self) -> None:
                sent = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
                provider.posted.append(sent | {"login": self.headers.get("Authorization", "")})
                token = provider.codes.get(sent["code"])
                self.reply(400 if token is None else 200, {"id_token": token} if token else {"error": "invalid_grant"})

            def reply(self, status: int, content: Any) -> None:
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        self.document: Any = {
            "issuer": self.issuer,
            "jwks_uri": f"{self.issuer}/keys",
            "authorization_endpoint": f"{self.issuer}/authorize?tenant=1",
            "token_endpoint": f"{self.issuer}/token",
        }
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    @property
    def settings(self) -> OidcSettings:
        return OidcSettings(issuer=self.issuer, client="discreet", audience="gateway")

    def claims(self, **other: Any) -> dict[str, Any]:
        first = {"iss": self.issuer, "aud": "gateway", "exp": NOW + 600, "nbf": NOW - 5, "email": "alice@example.org"}
        return {name: value for name, value in (first | other).items() if value is not None}

    def token(self, alg: str = "RS256", key: Any = None, kid: str | None = None, **other: Any) -> str:
        key = self.keys[alg] if key is None else key
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return jwt.encode({"alg": alg, "kid": kid or key.kid}, self.claims(**other), key, algorithms=[alg])


@pytest.fixture
def provider(keys: dict[str, Any]) -> Iterator[Pretend]:
    made = Pretend(dict(keys))
    yield made
    made.server.shutdown()
    made.server.server_close()
    made.thread.join()


Read = Callable[..., str | None]


@pytest.fixture
def read(provider: Pretend) -> Read:
    """The account of a token, at a time that is NOW."""
    verifier = Verifier(provider.settings, clock=lambda: NOW)
    return lambda token, nonce=None: asyncio.run(verifier.account(token, nonce=nonce))


@pytest.mark.parametrize("alg", ["RS256", "ES256", "EdDSA"])
def test_a_token_that_holds(alg: str, provider: Pretend, read: Read) -> None:
    assert read(provider.token(alg)) == "alice@example.org"
    assert read(provider.token(alg, aud=["other", "gateway"], email_verified=True)) == "alice@example.org"
    assert read(provider.token(alg, aud="discreet", nonce="n"), "n") == "alice@example.org"
    assert provider.fetched == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"iss": "http://127.0.0.1:1"},
        {"iss": None},
        {"aud": "discreet"},
        {"aud": ["other"]},
        {"aud": None},
        {"exp": NOW - LEEWAY - 1},
        {"exp": None},
        {"exp": "2100-01-01"},
        {"exp": True},
        {"exp": 1e300},
        {"nbf": NOW + LEEWAY + 1},
        {"nbf": "now"},
        {"email": None},
        {"email": ["alice@example.org"]},
        {"email": ""},
        {"email": "a\nb"},
        {"email": 201 * "a"},
        {"email_verified": False},
        {"email_verified": "true"},
    ],
    ids=str,
)
def test_a_token_with_a_wrong_claim_is_nobodys(wrong: dict[str, Any], provider: Pretend, read: Read) -> None:
    assert read(provider.token(**wrong)) is None


@pytest.mark.parametrize(
    ("claims", "nonce"),
    [
        ({"aud": "discreet", "nonce": "n"}, "m"),
        ({"aud": "discreet"}, "n"),
        ({"aud": "discreet", "nonce": ""}, ""),
        ({"aud": "discreet", "nonce": 5}, "5"),
        ({"aud": "gateway", "nonce": "n"}, "n"),
        ({"aud": ["discreet", "other"], "nonce": "n"}, "n"),
        ({"aud": ["discreet", "other"], "nonce": "n", "azp": "other"}, "n"),
    ],
)
def test_an_id_token_is_for_the_login_that_began_here(
    claims: dict[str, Any], nonce: str, provider: Pretend, read: Read
) -> None:
    assert read(provider.token(**claims), nonce) is None


def test_a_signature_by_somebody_else_is_nobodys(provider: Pretend, read: Read) -> None:
    other = RSAKey.generate_key(2048, {"kid": "rsa"})
    assert read(provider.token(key=other)) is None
    head, body, signature = provider.token().split(".")
    changed = _part(json.dumps(provider.claims(email="owner@example.org")).encode())
    assert read(f"{head}.{changed.decode()}.{signature}") is None
    assert read(f"{head}.{body}.") is None
    for text in ("", "a.b.c", "..", 9000 * "a" + "..", "dsc_alice_x", None, 5):
        assert read(text) is None


def _part(text: bytes) -> bytes:
    return base64.urlsafe_b64encode(text).rstrip(b"=")


def test_other_algorithms_are_refused(provider: Pretend, read: Read) -> None:
    """The public key as the secret of HS256, and no signature at all: the classical mistakes."""
    public = provider.keys["RS256"].as_pem(private=False)
    for header in ({"alg": "HS256", "kid": "rsa"}, {"alg": "HS256"}, {"alg": "none"}, {"alg": "None", "kid": "rsa"}):
        text = b".".join(_part(json.dumps(one).encode()) for one in (header, provider.claims()))
        assert read(f"{text.decode()}.{_part(hmac.digest(public, text, 'sha256')).decode()}") is None
        assert read(f"{text.decode()}.") is None
    assert read(provider.token("PS256", key=provider.keys["RS256"])) is None
    assert read(provider.token()) == "alice@example.org"


def test_an_unknown_key_is_looked_for_once_a_minute(provider: Pretend) -> None:
    now = [float(NOW)]
    verifier = Verifier(provider.settings, clock=lambda: now[0])

    async def account(token: str) -> str | None:
        return await verifier.account(token)

    async def play() -> None:
        assert await account(provider.token())
        newer = RSAKey.generate_key(2048, {"kid": "newer"})
        for _ in range(3):
            assert await account(provider.token(key=newer)) is None
        assert provider.fetched == 1
        provider.keys["newer"] = newer
        now[0] += REFETCH
        assert await account(provider.token(key=newer))
        assert provider.fetched == 2
        del provider.keys["RS256"]  # withdrawn: it ends when keys are fetched again
        now[0] += STALE + 1
        assert await account(provider.token(key=newer, exp=NOW + 10_000))
        assert provider.fetched == 3
        old = Pretend.token(provider, key=newer, kid="rsa", exp=NOW + 10_000)
        assert await account(old) is None

    asyncio.run(play())


def test_a_provider_that_is_gone_or_lies(provider: Pretend, read: Read) -> None:
    provider.document = {**provider.document, "issuer": "https://other.example.org"}
    assert read(provider.token()) is None
    provider.document = ["no object"]
    with pytest.raises(LookupError):
        asyncio.run(Provider(provider.issuer).addresses())
    with pytest.raises(LookupError):
        asyncio.run(Provider("http://127.0.0.1:1").addresses())


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://login.example.org", True),
        ("http://127.0.0.1:8080", True),
        ("http://[::1]:8080", True),
        ("http://localhost", True),
        ("http://login.example.org", False),
        ("http://127.0.0.1.example.org", False),
        ("http://localhost.example.org", False),
        ("https://user:password@login.example.org", False),
        ("ftp://127.0.0.1", False),
        ("https://", False),
        ("http://[::1", False),
        ("file:///etc/passwd", False),
    ],
)
def test_which_addresses_are_safe(url: str, safe: bool) -> None:
    assert is_safe(url) == safe
    if not safe:
        with refuses(InvalidArgument, "gateway-issuer"):
            Verifier(OidcSettings(issuer=url, client="a", audience="a"))


# --- in a browser -------------------------------------------------------------------------------------------


@pytest.fixture
def browser(provider: Pretend, tmp_path: Path) -> Iterator[Running]:
    with desk(tmp_path, {"login": said(b'{"token": "dsc_x"}')}, oidc=provider.settings) as running:
        running.client.headers.pop("Authorization")
        yield running


def started(browser: Running) -> dict[str, str]:
    """What the browser is sent to the provider with."""
    reply = browser.client.get("/v1/oidc/start")
    assert reply.status_code == 302
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(reply.headers["set-cookie"].split("; "))
    return {name: values[0] for name, values in parse_qs(urlsplit(reply.headers["location"]).query).items()}


def test_a_login_in_a_browser(browser: Running, provider: Pretend) -> None:
    asked = started(browser)
    assert asked["redirect_uri"] == f"{browser.url}/v1/oidc/return"
    assert (asked["client_id"], asked["response_type"], asked["tenant"]) == ("discreet", "code", "1")
    assert (asked["code_challenge_method"], "openid" in asked["scope"].split()) == ("S256", True)
    provider.codes["c1"] = "the.id.token"
    reply = browser.client.get("/v1/oidc/return", params={"code": "c1", "state": asked["state"]})
    assert (reply.status_code, reply.content) == (200, b'{"token": "dsc_x"}')
    assert browser.frames[-1].arguments == {"id_token": "the.id.token", "nonce": asked["nonce"]}
    assert browser.frames[-1].header["token"] is None
    [posted] = provider.posted
    challenge = _part(hashlib.sha256(posted["code_verifier"].encode()).digest())
    assert challenge.decode() == asked["code_challenge"]
    assert posted["redirect_uri"] == asked["redirect_uri"]
    assert not browser.client.cookies
    assert started(browser)["state"] != asked["state"]


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("case", ["other state", "no state", "no cookie", "bad code", "no code", "refused"])
def test_a_login_that_did_not_begin_here_is_the_vaults_refusal(case: str, browser: Running, provider: Pretend) -> None:
    browser.verbs["login"] = refused("NotAllowed", "gateway-login", "No valid login.")
    asked = started(browser)
    provider.codes["c1"] = "the.id.token"
    sent = {"code": "c1", "state": asked["state"]}
    match case:
        case "other state":
            sent["state"] = asked["nonce"]
        case "no state":
            del sent["state"]
        case "no cookie":
            browser.client.cookies.clear()
        case "bad code":
            sent["code"] = "c2"
        case "no code":
            del sent["code"]
        case "refused":
            sent = {"error": "access_denied", "state": asked["state"]}
    reply = browser.client.get("/v1/oidc/return", params=sent)
    assert (reply.status_code, reply.json()["detail"]) == (401, "No valid login.")
    assert browser.frames[-1].arguments == {"id_token": "", "nonce": ""}
    assert bool(provider.posted) == (case == "bad code")


@pytest.mark.parametrize("place", [None, 5, "http://login.example.org", "https://a.example.org/\r\nX: y"])
def test_a_provider_that_does_not_say_where_it_is(place: Any, browser: Running, provider: Pretend) -> None:
    provider.document["authorization_endpoint"] = place
    reply = browser.client.get("/v1/oidc/start")
    assert (reply.status_code, reply.json()["code"]) == (503, "gateway-provider")
    assert "set-cookie" not in reply.headers


def test_a_strange_host_is_not_where_a_login_returns_to(browser: Running) -> None:
    for host in ("evil.example.org/x", "a b", "a@b"):
        reply = browser.client.get("/v1/oidc/start", headers={"Host": host})
        assert (reply.status_code, reply.json()["code"]) == (400, "gateway-arguments")


# --- a real provider ----------------------------------------------------------------------------------------

PROVIDER = """
import { createServer } from "node:http";
import Provider from "oidc-provider";
const server = createServer().listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: "discreet", client_secret: "a-secret-of-the-client", redirect_uris: [process.argv[2]],
                token_endpoint_auth_method: "client_secret_basic" }],
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email: `${id}@example.org`,
                                                               email_verified: true }) }),
    claims: { openid: ["sub"], email: ["email", "email_verified"] },
    conformIdTokenClaims: false,
    pkce: { required: () => true },
  });
  provider.on("server_error", (_, error) => console.error(error));
  server.on("request", provider.callback());
  console.log(issuer);
});
"""


@pytest.fixture
def node(tmp_path: Path, install) -> Path:
    """A folder in which npm has installed the certified provider."""
    install(lambda: shutil.which("node") and shutil.which("npm"), "nodejs", "npm")
    folder = tmp_path / "node"
    folder.mkdir()
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "provider.js").write_text(PROVIDER)
    command = ["npm", "install", "--no-audit", "--no-fund", "oidc-provider@9"]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return folder


@pytest.mark.slow
def test_a_login_with_a_certified_provider(node: Path, tmp_path: Path) -> None:
    """The whole way: redirect, login and consent at the provider, code, id token, and whose it is."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    returned = f"http://127.0.0.1:{port}/v1/oidc/return"
    command = ["node", "provider.js", returned]
    process = subprocess.Popen(command, cwd=node, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        issuer = process.stdout.readline().strip()
        settings = OidcSettings(issuer=issuer, client="discreet", audience="discreet", secret="a-secret-of-the-client")
        verifier, names = Verifier(settings), list[str | None]()

        async def login(frame: Any) -> Any:
            sent = frame.arguments
            names.append(await verifier.account(sent["id_token"], nonce=sent["nonce"]))
            names.append(await verifier.account(sent["id_token"], nonce="another"))
            return said(b'{"token": "dsc_x"}')

        with desk(tmp_path, {"login": login}, oidc=settings) as running, httpx.Client(trust_env=False) as client:
            client.headers["Host"] = f"127.0.0.1:{port}"
            reply = client.get(f"{running.url}/v1/oidc/start")
            kept = dict(client.cookies)
            place = at_provider(reply.headers["location"])
            assert place.startswith(returned)
            query = urlsplit(place).query
            reply = httpx.get(
                f"{running.url}/v1/oidc/return?{query}",
                headers={"Host": f"127.0.0.1:{port}", "Cookie": "; ".join(f"{a}={b}" for a, b in kept.items())},
                trust_env=False,
            )
            assert reply.content == b'{"token": "dsc_x"}'
        assert names == ["alice@example.org", None]
    finally:
        process.kill()
        process.communicate()


def at_provider(place: str) -> str:
    """Log in as alice and consent, as a browser does. Returns where the provider redirects to in the end."""
    with httpx.Client(trust_env=False) as client:
        for _ in range(12):
            reply = client.get(place)
            while reply.status_code == 200:  # a page of the provider: log in, then consent
                [prompt] = {"login", "consent"} & set(reply.text.split('name="prompt" value="')[1].split('"')[:1])
                form = {"prompt": prompt} | ({"login": "alice", "password": "x"} if prompt == "login" else {})
                reply = client.post(reply.url, data=form)
            place = str(reply.url.join(reply.headers["location"]))
            if "/v1/oidc/return" in place:
                return place
    raise AssertionError("the provider does not redirect back")
