"""The desk for AI agents: an MCP server at /mcp, with a few tools, each of which is one call of the vault.

It keeps nothing: every request brings its token, and the vault checks it. What a program may spend here, and which
questions a person must confirm, is decided and counted by the vault. Here the person is asked.
"""

from __future__ import annotations

import importlib.util
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet._version import __version__
from discreet.errors import DiscreetError
from discreet.extras import need
from discreet.gateway.desk.mcp_tools import (
    INSTRUCTIONS,
    LONGEST_CONFIRMED,
    REFUSED,
    TOOLS,
    Tool,
    confirmation,
    has_text,
    marked,
    reason,
    text_of,
)
from discreet.gateway.desk.rates import digest_of
from discreet.gateway.desk.replies import Refused, Reply, reply_of
from discreet.gateway.frames import Frame

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult

    from discreet.gateway.desk.http import Request

LONGEST_ANSWER = 2**20
"""Bytes of a result, at most: it is meant for a model."""
NAME = "discreet"
_CALLED = "discreet"
"""Where the request and the way to the vault are in the scope of the server."""
_CONFIRM = "confirm"

Call = Callable[..., Awaitable[Frame]]
"""Asks the vault: a verb, the request, and arguments."""


def is_installed() -> bool:
    """Whether the package `mcp` is there."""
    return importlib.util.find_spec("mcp") is not None


class Agents:
    """The MCP server of a desk. It answers between the beginning and the end of `running`."""

    def __init__(self) -> None:
        need("mcp", "mcp", "/mcp of discreet serve")
        from mcp.server.lowlevel import Server
        from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        quiet = logging.getLogger("mcp")
        quiet.handlers, quiet.propagate = [logging.NullHandler()], False  # what it would write might hold a value
        server: Any = Server(
            NAME,
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=_list_tools,
            on_call_tool=_call_tool,
            get_tool_input_schema=lambda name: TOOLS[name].schema if name in TOOLS else None,
        )
        sealed = RequestStateSecurity.ephemeral()
        sealed.bind_principal = lambda context: digest_of(_token_of(context)).hex()
        server.middleware[:] = [RequestStateBoundary(sealed, default_audience=NAME)]  # and no traces of requests
        self._manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests inside this."""
        async with self._manager.run():
            yield

    async def answer(self, request: Request, call: Call) -> Reply:
        """The reply to a request. Its body is read by the rules of the desk."""
        if b"origin" in request.headers:
            raise Refused("A page in a browser cannot use /mcp. Use an MCP client.", code="gateway-origin")
        if request.token is None:
            raise Refused("Send a token: Authorization: Bearer …", code="gateway-login")
        body, sent = await request.body(), False

        async def receive() -> Any:
            nonlocal sent
            if sent:
                return await request.receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        said: dict[str, Any] = {"status": 500, "headers": [], "body": b""}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                said["status"], said["headers"] = message["status"], message["headers"]
            else:
                said["body"] += message.get("body", b"")

        await self._manager.handle_request({**request.scope, _CALLED: (request, call)}, receive, send)
        kinds = [value for name, value in said["headers"] if name.lower() == b"content-type"]
        return Reply(said["status"], kinds[0] if kinds else b"application/json", said["body"])


# --- tools --------------------------------------------------------------------------------------------------


async def _list_tools(context: Any, params: Any) -> Any:
    from mcp_types import ListToolsResult, ToolAnnotations
    from mcp_types import Tool as Listed

    return ListToolsResult(
        tools=[
            Listed(
                name=name,
                title=one.title,
                description=one.about,
                input_schema=one.schema,
                annotations=ToolAnnotations(
                    read_only_hint=one.free, destructive_hint=False, idempotent_hint=True, open_world_hint=False
                ),
            )
            for name, one in TOOLS.items()
        ]
    )


async def _call_tool(
    context: ServerRequestContext[Any, Any], params: CallToolRequestParams
) -> CallToolResult | InputRequiredResult:
    """Call a tool. Whatever goes wrong is a result with a code."""
    try:
        tool, arguments = _read(params)
        if tool.verb == "ask":
            return await _ask(context, params, arguments)
        if tool.verb == "budget":
            arguments = {**arguments, "via": "mcp"}
        return _result(tool, _content(await _vault(context, tool.verb, arguments)))
    except DiscreetError as error:
        return _refusal(error)


def _read(params: CallToolRequestParams) -> tuple[Tool, dict[str, Any]]:
    """The tool, and its arguments: only those that it takes, so that nobody speaks to the vault as the desk does."""
    tool, arguments = TOOLS.get(params.name), dict(params.arguments or {})
    if tool is None:
        raise Refused(f"There is no such tool. There are {', '.join(TOOLS)}.", code="gateway-tool")
    unknown = [name for name in arguments if name not in tool.takes]
    missing = [name for name in tool.needs if not isinstance(arguments.get(name), str) or not arguments[name].strip()]
    if unknown or missing:
        takes = ", ".join(tool.takes) or "nothing"
        needs = f" It needs {' and '.join(tool.needs)}, as text." if tool.needs else ""
        raise Refused(f"{params.name} takes {takes}.{needs}", code="gateway-tool")
    return tool, arguments


async def _ask(
    context: ServerRequestContext[Any, Any], params: CallToolRequestParams, arguments: dict[str, Any]
) -> CallToolResult | InputRequiredResult:
    """Ask the vault. If it wants a person to confirm, ask the person, and then the vault again."""
    can_confirm = _can_confirm(context)
    asked = {**arguments, "via": "mcp", "can_confirm": can_confirm, "confirmed": _confirmed(params)}
    frame = await _vault(context, "ask", asked)
    if frame.header.get("code") == "gateway-confirm" and can_confirm:
        return await _ask_a_person(context, arguments, str(frame.header["more"]["epsilon"]))
    answer = _content(frame)
    tables = await _vault(context, "tables", {}) if has_text(answer) else None
    known = tables if tables is not None and tables.header.get("ok") is True else None
    return _result(TOOLS["ask"], marked(answer, known))


def _confirmed(params: CallToolRequestParams) -> str:
    """The ε that a person has confirmed for these very arguments: the state is sealed together with them."""
    answer = (params.input_responses or {}).get(_CONFIRM)
    if answer is None or params.request_state is None:
        return "0"
    content = getattr(answer, "content", None) or {}
    if getattr(answer, "action", "") != "accept" or content.get(_CONFIRM) is not True:
        raise Refused(
            "A person was asked, and did not confirm this question. Nothing was charged.", code="gateway-declined"
        )
    return params.request_state


async def _ask_a_person(
    context: ServerRequestContext[Any, Any], arguments: dict[str, Any], epsilon: str
) -> InputRequiredResult:
    from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

    if len(arguments["sql"]) + len(arguments["why"]) > LONGEST_CONFIRMED:
        raise Refused(
            f"A person must confirm this question, and nobody reads {LONGEST_CONFIRMED:,} characters. Ask a shorter "
            "one, or one with a smaller epsilon. Nothing was charged.",
            code="gateway-confirm",
        )
    budget = _content(await _vault(context, "budget", {"via": "mcp"}))
    schema = {
        "type": "object",
        "properties": {_CONFIRM: {"type": "boolean", "title": "Ask this question, and pay for it"}},
        "required": [_CONFIRM],
    }
    shown = ElicitRequestFormParams(message=confirmation(arguments, Fraction(epsilon), budget), requested_schema=schema)
    return InputRequiredResult(input_requests={_CONFIRM: ElicitRequest(params=shown)}, request_state=epsilon)


def _can_confirm(context: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client can show a form to a person. Before 2026-07-28, that takes a session, which there is not."""
    from mcp_types.version import is_version_at_least

    said = context.session.client_capabilities
    can = None if said is None else said.elicitation
    shows = can is not None and (can.form is not None or can.url is None)
    return shows and is_version_at_least(context.protocol_version, "2026-07-28")


# --- the vault, and what it says ----------------------------------------------------------------------------


def _token_of(context: ServerRequestContext[Any, Any]) -> str:
    assert context.request is not None
    request, _ = context.request.scope[_CALLED]
    return str(request.token)


async def _vault(context: ServerRequestContext[Any, Any], verb: str, arguments: dict[str, Any]) -> Frame:
    assert context.request is not None
    request, call = context.request.scope[_CALLED]
    frame: Frame = await call(verb, request, arguments)
    return frame


def _content(frame: Frame) -> dict[str, Any]:
    """The object that the vault gave. If it gave none, its refusal."""
    if frame.header.get("ok") is not True:
        problem = json.loads(reply_of(frame).body)
        raise Refused(problem["detail"], code=problem["code"])
    if len(frame.body) > LONGEST_ANSWER:
        raise Refused(
            "The result has more than 1 MiB, which is too much for a model. If it was charged, it stays charged, and "
            "is free with LIMIT or HAVING.",
            code="gateway-answer-too-large",
        )
    found: dict[str, Any] = json.loads(frame.body)
    remains = frame.header.get("remains")
    return found if remains is None else {**found, "remains": remains}


def _result(tool: Tool, content: dict[str, Any]) -> CallToolResult:
    return _said(tool.says, content, is_error=False)


def _refusal(error: DiscreetError) -> CallToolResult:
    return _said(REFUSED, reason(error.code, str(error)), is_error=True)


def _said(says: str, content: dict[str, Any], *, is_error: bool) -> CallToolResult:
    """A fixed sentence, and the object twice: for programs, and as JSON text for clients that show only text."""
    from mcp_types import CallToolResult, TextContent

    texts = [TextContent(text=says), TextContent(text=text_of(content))]
    return CallToolResult(content=list(texts), structured_content=content, is_error=is_error)
