"""A scenario of the suite's client side: earnest, with the scenario's server behind it, made to use it.

The official SDK's client in front says what the scenario wants said, over HTTP and in the same era; whatever reaches the
scenario's server is earnest's. The suite starts a command for each scenario (`knock.py`); that only says so here, where the
client is loaded already.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import sys
import tempfile
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestFormParams, ElicitResult

from conformance import legs

LIMIT_S = 45.0

KNOCK = Path(__file__).with_name("knock.py")

Script = Callable[[Client, Mapping[str, Any]], Awaitable[None]]


async def _answer(context: Any, params: Any) -> ElicitResult:
    """A user who says yes, gives what the form proposes, and ticks what it leaves open."""
    content: dict[str, Any] = {}
    if isinstance(params, ElicitRequestFormParams):
        for name, schema in params.requested_schema.get("properties", {}).items():
            if "default" in schema:
                content[name] = schema["default"]
            elif schema.get("type") == "boolean":
                content[name] = True
    return ElicitResult(action="accept", content=content)


async def _look(client: Client, context: Mapping[str, Any]) -> None:
    await client.list_tools()


async def _call_all(client: Client, context: Mapping[str, Any]) -> None:
    """Every tool that is listed, with the arguments that a scenario gives for it."""
    given = {call["name"]: call["arguments"] for call in context.get("toolCalls", ())}
    for tool in (await client.list_tools()).tools:
        arguments = given.get(tool.name, {"a": 5, "b": 3} if tool.name == "add_numbers" else None)
        if arguments is None:
            wanted = tool.input_schema.get("properties", {})
            arguments = {name: "us-west1" for name, schema in wanted.items() if schema.get("type") == "string"}
        with contextlib.suppress(MCPError):
            await client.call_tool(tool.name, arguments)


async def _use_everything(client: Client, context: Mapping[str, Any]) -> None:
    await _call_all(client, context)
    for resource in (await client.list_resources()).resources:
        await client.read_resource(str(resource.uri))
    for prompt in (await client.list_prompts()).prompts:
        await client.get_prompt(prompt.name, {})


async def _echo_schema(client: Client, context: Mapping[str, Any]) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    await client.call_tool("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})


SCRIPTS: dict[str, Script] = {
    "initialize": _look,
    "request-metadata": _look,
    "json-schema-ref-no-deref": _look,
    "json-schema-2020-12-preservation": _echo_schema,
    "http-standard-headers": _use_everything,
}
"""What is done in a scenario; in all others every tool is called."""


@contextlib.asynccontextmanager
async def waiting() -> AsyncIterator[str]:
    """The command to give to the suite, while scenarios are played here."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told = json.loads(await reader.readline())
        try:
            said = {"code": 0, "log": await scenario(told["url"], told["env"])}
        except Exception:
            said = {"code": 1, "log": traceback.format_exc()}
        writer.write(json.dumps(said).encode() + b"\n")
        await writer.drain()
        writer.close()

    with tempfile.TemporaryDirectory(dir="/tmp") as short:  # paths of sockets are
        path = str(Path(short) / "s")
        async with await asyncio.start_unix_server(play, path):
            yield shlex.join([sys.executable, "-I", "-S", str(KNOCK), path])


async def scenario(url: str, env: Mapping[str, str]) -> str:
    """Play one with the server at `url`. `env`: what the suite says of it. Returns the daemon's log."""
    version = env.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
    context = json.loads(env.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with tempfile.TemporaryDirectory() as folder:
        async with legs.gateway(Path(folder), {"suite": f"url = {json.dumps(url)}"}) as gateway:
            headers = {"Authorization": f"Bearer {gateway.token}"}
            async with httpx2.AsyncClient(headers=headers, timeout=LIMIT_S) as http:
                transport = streamable_http_client(f"http://127.0.0.1:{gateway.port}/s/suite/mcp", http_client=http)
                mode = version if version >= "2026-07-28" else "legacy"
                async with Client(
                    transport, mode=mode, cache=None, elicitation_callback=_answer, read_timeout_seconds=LIMIT_S
                ) as client:
                    await SCRIPTS.get(env["MCP_CONFORMANCE_SCENARIO"], _call_all)(client, context)
        log = next(Path(folder).glob("state/*/daemon.log"), None)
        return log.read_text() if log is not None else ""
