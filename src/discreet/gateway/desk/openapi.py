"""The description of the HTTP interface, for clients and their makers: GET /openapi.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from discreet._version import __version__
from discreet.gateway.desk.paths import LONGEST_PART
from discreet.gateway.desk.routes import Route
from discreet.gateway.formats import TYPES

ABOUT = """\
Ask questions about people in SQL, and get answers with noise that expose no one of them.

- A charged answer has a cost ε. `GET /v1/budget` says what remains, and `POST /v1/plan` what a question would cost.
- The same question is free the second time. Send an `Idempotency-Key` to be sure that a request that is sent again is
  charged once.
- Every error is an `application/problem+json` object with a `code`. The message says what to write instead.
"""
PROBLEM = {
    "type": "object",
    "description": "What is wrong, and what to write instead.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string", "description": "The name of the status."},
        "status": {"type": "integer"},
        "kind": {"type": "string", "description": "The class of the error in the Python library."},
        "code": {"type": "string", "description": "What went wrong. It stays the same between versions."},
        "detail": {"type": "string", "description": "The message for people."},
        "more": {"type": "object", "description": "Details for programs, such as the number of a request."},
    },
    "required": ["type", "title", "status", "code", "detail"],
}
_ERRORS = {
    400: "The request cannot be read, or an argument is out of its domain.",
    401: "No token, or one that does not hold.",
    403: "The role does not allow it, or it waits for an approval.",
    404: "Unknown, or not yours.",
    413: "The body is larger than 1 MiB.",
    422: "The question cannot be answered privately.",
    429: "Too many requests. Try again after Retry-After seconds.",
    503: "The gateway is starting, stopping or stopped by its owner.",
}
_ASKED = {
    402: "It does not fit the budget. Nothing was charged.",
    406: "None of the accepted forms is available.",
    504: "No answer in time. The charge stays, and the same question can be asked again.",
}


def description(routes: Sequence[Route], *, browser_login: bool = False) -> bytes:
    """All routes in the words of OpenAPI 3.1, as JSON."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    if browser_login:
        for path, about in (
            ("/v1/oidc/start", "Log in with the provider: redirects to it"),
            ("/v1/oidc/return", "Where the provider redirects to: gives a session token"),
        ):
            replies = {"302" if path.endswith("start") else "200": {"description": about}, **_problems([401, 429])}
            paths[path] = {"get": {"operationId": path.rpartition("/")[2], "summary": about, "responses": replies}}
    content = {
        "openapi": "3.1.0",
        "info": {"title": "discreet gateway", "version": __version__, "description": ABOUT},
        "paths": paths,
        "components": {
            "schemas": {"Problem": PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "A token or a JWT."}},
        },
    }
    return json.dumps(content, ensure_ascii=False).encode()


def _operation(route: Route) -> dict[str, Any]:
    said: dict[str, Any] = {"operationId": route.verb, "summary": route.about}
    if route.more:
        said["description"] = route.more
    if route.token:
        said["security"] = [{"token": []}]
    path = [_parameter(name, "path", {"type": "string", "maxLength": LONGEST_PART}) for name in route.names]
    asked = [_parameter(name, "query", schema) for name, schema in route.asks.items()]
    key = {"type": "string", "minLength": 1, "maxLength": 200}
    keys = [_parameter("Idempotency-Key", "header", key)] if route.verb == "ask" else []
    if parameters := [*path, *asked, *keys]:
        said["parameters"] = parameters
    if route.takes:
        schema = _schema(route.takes, route.needs) | {"additionalProperties": False}
        said["requestBody"] = {"required": bool(route.needs), "content": {"application/json": {"schema": schema}}}
    content: dict[str, Any] = {"application/json": {"schema": _schema(route.gives)}}
    if route.formats:
        content |= {TYPES[form].partition(";")[0]: {"schema": {"type": "string"}} for form in ("csv", "arrow")}
    if route.verb == "metrics":
        content = {"text/plain": {"schema": {"type": "string"}}}
    errors = [*_ERRORS, *(_ASKED if route.formats else ())]
    said["responses"] = {"200": {"description": route.about, "content": content}, **_problems(errors)}
    return said


def _schema(properties: Any, needs: Sequence[str] = ()) -> dict[str, Any]:
    needed = {"required": list(needs)} if needs else {}
    return {"type": "object", "properties": dict(properties), **needed}


def _parameter(name: str, where: str, schema: Any) -> dict[str, Any]:
    return {"name": name, "in": where, "required": where == "path", "schema": schema}


def _problems(statuses: Sequence[int]) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    about = _ERRORS | _ASKED
    return {str(one): {"description": about.get(one, HTTPStatus(one).phrase), "content": content} for one in statuses}
