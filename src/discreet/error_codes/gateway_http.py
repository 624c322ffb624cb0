"""Codes of the gateway over HTTP, and of its Python client."""

from __future__ import annotations

from discreet.error_codes.row import Explained

GATEWAY_HTTP = {
    "gateway-unknown-path": Explained(
        "`GET /v1/visits`",
        "The gateway has no such address.",
        "one of the addresses in `/openapi.json`",
    ),
    "gateway-method": Explained(
        "`PUT /v1/questions`",
        "Each address has its methods, and none of them changes data.",
        "a method that the header `Allow` names",
    ),
    "gateway-body-not-json": Explained(
        "a body that is no JSON object, or has another content type than `application/json`",
        "Questions are sent as JSON objects.",
        '`{"sql": "SELECT COUNT(*) FROM visits", "epsilon": 0.1}`',
    ),
    "gateway-body-too-large": Explained(
        "a body of more than 1 MiB",
        "The limit keeps the memory of the gateway bounded.",
        "a shorter question",
    ),
    "gateway-too-slow": Explained(
        "a request whose body takes more than 10 seconds to arrive",
        "Slow requests would keep others from being answered.",
        "the whole request at once",
    ),
    "gateway-origin": Explained(
        "a request to `/mcp` from a page in a browser, or a form of the console from a page of another session",
        "A page of somebody else must not use what runs on this machine, or what you may do.",
        "an MCP client that is no page; in the console, the form of a page that was just loaded",
    ),
    "gateway-form": Explained(
        "a form of the console with a text where a number belongs, or in another encoding",
        "A form is read only as its page sends it.",
        "the form as its page has it, with numbers such as 0.5",
    ),
    "gateway-answer-too-large": Explained(
        "a result of more than 1 MiB over MCP",
        "It is meant for a model, which cannot read that much.",
        "the same question with LIMIT or HAVING, which is free",
    ),
    "gateway-tool": Explained(
        "a tool that `/mcp` does not have, or an argument that the tool does not take",
        "A misspelled argument must not become a missing one.",
        "one of the tools and arguments in the list: `tools/list`",
    ),
    "gateway-arguments": Explained(
        "`GET /v1/history?first=1&first=2`, or a body that repeats a name of the path",
        "It would not be clear which of the two is meant.",
        "each argument once",
    ),
    "gateway-key": Explained(
        "an `Idempotency-Key` of more than 200 characters, or another `key` in the body",
        "A request has one key, by which a retry is recognized.",
        "an id of the request, such as a UUID",
    ),
    "gateway-format": Explained(
        "`Accept: text/html`",
        "Answers are available as JSON, CSV and Arrow.",
        "`Accept: application/json`, `text/csv` or `application/vnd.apache.arrow.stream`",
    ),
    "gateway-too-fast": Explained(
        "many requests in a short time, or many failed logins",
        "Each address and each token has its share, so that nobody keeps others waiting or guesses tokens.",
        "the same request after the seconds in `Retry-After`",
    ),
    "gateway-provider": Explained(
        "a login while the provider in `[gateway.oidc]` cannot be reached",
        "The provider is asked who somebody is.",
        "a login later, or with a link of the owner",
    ),
    "gateway-issuer": Explained(
        '`issuer = "http://login.example.org"` in `[gateway.oidc]`',
        "Without TLS, somebody on the way could say who people are.",
        '`issuer = "https://login.example.org"`',
    ),
    "gateway-certificate": Explained(
        "a certificate or key of `[gateway]` that cannot be read, or two that do not belong together",
        "Without them there is no TLS, and a token could be read on the way.",
        "two PEM files that the desk's user can read",
    ),
    "remote-address": Explained(
        '`dp.remote("http://gateway.example.org", token=…)`',
        "Without TLS, the token and the answers could be read on the way.",
        '`dp.remote("https://gateway.example.org", token=…)`; `http://` on this machine only',
    ),
    "remote-token": Explained(
        "`dp.remote(url, token=None)`",
        "A gateway answers only accounts that it knows.",
        "the token that `discreet account … token` printed",
    ),
    "remote-unreachable": Explained(
        "`dp.remote(url, token=…).tables` where nothing responds",
        "The connection failed several times.",
        "the right address; the same question with the same `key=`, which is charged once",
    ),
    "remote-not-a-gateway": Explained(
        "`dp.remote(url, token=…)` with the address of another service",
        "The reply is not one that a gateway of this version sends.",
        "the address that `discreet serve` prints",
    ),
    "remote-number": Explained(
        "`remote.sql(question, epsilon=Fraction(1, 3))`",
        "Numbers are sent as decimals, and this one has no short one.",
        "`epsilon=0.33`",
    ),
    "remote-confidence": Explained(
        "`remote.sql(question, epsilon=1).with_errors(0.99)`",
        "Errors are computed by the gateway, for the confidence that was asked for.",
        "`remote.sql(question, epsilon=1, confidence=0.99)`, which is free the second time",
    ),
}
