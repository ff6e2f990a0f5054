"""A server of one era alone: it refuses the other one, and what it asks it asks in its own era's words, whoever may be behind.

The tools keep the names that the suite's scenarios of the other era call, so that those run against it through a bridge.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    INVALID_PARAMS,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)
from questions import CHOICES, DEFAULTS, STRING, Schema, ask, object_of, sample, sampled
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

MODERN = "2026-07-28"


def one_era(app: ASGIApp, only: str) -> ASGIApp:
    """The application, deaf to the other era: to `initialize`, or to requests that name the newer version."""

    async def gate(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        modern = dict(scope["headers"]).get(b"mcp-protocol-version", b"").decode() == MODERN
        if modern is (only == "modern"):
            await app(scope, receive, send)
        elif only == "modern":
            await _refuse(-32022, "unsupported protocol version", receive, scope, send, {"supported": [MODERN]})
        else:
            await _refuse(-32600, "Bad Request: unsupported protocol version", receive, scope, send, None)

    return gate


async def _refuse(code: int, text: str, receive: Receive, scope: Scope, send: Send, data: Any) -> None:
    body, more = b"", scope["method"] == "POST"
    while more:
        part = await receive()
        body, more = body + part.get("body", b""), part.get("more_body", False)
    try:
        id = json.loads(body).get("id")
    except (ValueError, AttributeError):
        id = None
    error = {"code": code, "message": text, **({"data": {**data, "requested": "other"}} if data else {})}
    await JSONResponse({"jsonrpc": "2.0", "id": id, "error": error}, 400)(scope, receive, send)


def add(server: MCPServer, only: str) -> None:
    """Give a server of one era what the other era's scenarios call."""
    (_as_results if only == "modern" else _inside_calls)(server)


def _as_results(server: MCPServer) -> None:
    """What a server of 2025-11-25 asks inside a call, asked in the result."""

    def elicits(name: str, schema: Schema, said: str) -> None:
        async def tool(ctx: Context[Any, Any], message: str = "Please look") -> InputRequiredResult | str:
            answer = (ctx.input_responses or {}).get("it")
            if not isinstance(answer, ElicitResult):
                return InputRequiredResult(input_requests={"it": ask(message, **schema["properties"])})
            return f"{said}: action={answer.action}, content={answer.content}"

        server.add_tool(tool, name=name, description="Asks the client's user.")

    elicits("test_elicitation", object_of(username=STRING, email=STRING), "User response")
    elicits("test_elicitation_sep1034_defaults", DEFAULTS, "Elicitation completed")
    elicits("test_elicitation_sep1330_enums", CHOICES, "Elicitation completed")

    @server.tool()
    async def test_sampling(prompt: str, ctx: Context[Any, Any]) -> InputRequiredResult | str:
        """Asks the client's model."""
        answer = (ctx.input_responses or {}).get("it")
        if answer is None:
            return InputRequiredResult(input_requests={"it": sample(prompt)})
        return f"LLM response: {sampled(answer)}"


def _inside_calls(server: MCPServer) -> None:
    """What a server of 2026-07-28 asks in its result, asked inside the call."""

    low = server._lowlevel_server
    bare = low.create_initialization_options
    low.create_initialization_options = lambda *_, **more: bare(NotificationOptions(True, True, True), **more)  # type: ignore[method-assign]

    @server.tool()
    async def test_trigger_tool_change(ctx: Context[Any, Any]) -> str:
        """Adds a tool, or takes it away again, and says that the list changed."""
        if "test_added_tool" in {tool.name for tool in await server.list_tools()}:
            server.remove_tool("test_added_tool")
        else:
            server.add_tool(lambda: "added", name="test_added_tool", description="Came later.")
        await ctx.session.send_tool_list_changed()
        return "the list of tools changed"

    @server.tool()
    async def test_trigger_prompt_change(ctx: Context[Any, Any]) -> str:
        """Says that the list of prompts changed."""
        await ctx.session.send_prompt_list_changed()
        return "the list of prompts changed"

    async def name_of(ctx: Context[Any, Any], text: str, field: str = "name") -> str:
        answer = await ctx.session.elicit(text, object_of(**{field: STRING}), related_request_id=ctx.request_id)
        if answer.action != "accept":
            raise MCPError(INVALID_PARAMS, "nothing was said")
        return str((answer.content or {}).get(field, ""))

    async def model_of(ctx: Context[Any, Any], text: str) -> str:
        message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
        answer = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_id)
        return sampled(answer)

    async def roots_of(ctx: Context[Any, Any]) -> str:
        # Not `list_roots`: what does not say which request it belongs to can only belong to the one that is in flight.
        of_this = ServerMessageMetadata(related_request_id=ctx.request_id)
        answer = await ctx.session.send_request(ListRootsRequest(), ListRootsResult, metadata=of_this)
        return ", ".join(str(root.uri) for root in answer.roots)

    def tool(name: str, body: Callable[[Context[Any, Any]], Any]) -> None:
        async def run(ctx: Context[Any, Any]) -> str:
            return str(await body(ctx))

        server.add_tool(run, name=f"test_{name}", description="Asks inside its call.")

    async def greeting(ctx: Context[Any, Any]) -> str:
        return f"Hello, {await name_of(ctx, 'What is your name?')}!"

    async def capital(ctx: Context[Any, Any]) -> str:
        return f"The model said: {await model_of(ctx, 'What is the capital of France?')}"

    async def roots(ctx: Context[Any, Any]) -> str:
        return f"Roots: {await roots_of(ctx)}"

    async def confirmed(ctx: Context[Any, Any]) -> str:
        answer = await ctx.session.elicit(
            "Please confirm", object_of(ok={"type": "boolean"}), related_request_id=ctx.request_id
        )
        return f"state-ok: it came back, {answer.action}"

    async def several(ctx: Context[Any, Any]) -> str:
        said, name, _ = await asyncio.gather(model_of(ctx, "Generate a greeting"), name_of(ctx, "Your name?"), roots_of(ctx))
        return f"{said}, {name}"

    async def rounds(ctx: Context[Any, Any]) -> str:
        name = await name_of(ctx, "Step 1: What is your name?")
        color = await name_of(ctx, "Step 2: What is your favorite color?", "color")
        return f"{name} likes {color}"

    async def able(ctx: Context[Any, Any]) -> str:
        declared = ctx.client_capabilities
        done = []
        if declared is not None and declared.sampling is not None:
            done.append(await model_of(ctx, "What is the capital of France?"))
        if declared is not None and declared.elicitation is not None:
            done.append(await name_of(ctx, "What is your name?"))
        if declared is not None and declared.roots is not None:
            done.append(await roots_of(ctx))
        return f"{len(done)} answers" if done else "the client can do none of it"

    tool("input_required_result_elicitation", greeting)
    tool("input_required_result_sampling", capital)
    tool("input_required_result_list_roots", roots)
    tool("input_required_result_request_state", confirmed)
    tool("input_required_result_tampered_state", confirmed)
    tool("input_required_result_multiple_inputs", several)
    tool("input_required_result_multi_round", rounds)
    tool("input_required_result_capabilities", able)
    tool("streaming_elicitation", confirmed)

    @server.tool()
    async def test_missing_capability(ctx: Context[Any, Any]) -> str:
        """Needs a client that can sample; says so in words, since this era has no error for it."""
        declared = ctx.client_capabilities
        if declared is None or declared.sampling is None:
            raise MCPError(INVALID_PARAMS, "this tool needs sampling")
        return "the client can sample"

    @server.prompt()
    async def test_input_required_result_prompt(ctx: Context[Any, Any]) -> str:
        """A prompt that needs a word of the user first."""
        return f"Prompt with context: {await name_of(ctx, 'Which context?', 'context')}"
