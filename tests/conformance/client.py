"""What the suite starts for a scenario of its client side: earnest, with the scenario's server behind it, made to use it.

    python tests/conformance/client.py URL        with MCP_CONFORMANCE_SCENARIO, _PROTOCOL_VERSION and perhaps _CONTEXT

The official SDK's client in front says what the scenario wants said, over HTTP and in the same era; whatever reaches the
scenario's server is earnest's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestFormParams, ElicitResult

from conformance import legs

LIMIT_S = 45.0

Script = Callable[[Client], Awaitable[None]]


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


async def _look(client: Client) -> None:
    await client.list_tools()


async def _call_all(client: Client) -> None:
    """Every tool that is listed, with the arguments that a scenario gives for it."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    given = {call["name"]: call["arguments"] for call in context.get("toolCalls", ())}
    for tool in (await client.list_tools()).tools:
        arguments = given.get(tool.name, {"a": 5, "b": 3} if tool.name == "add_numbers" else None)
        if arguments is None:
            wanted = tool.input_schema.get("properties", {})
            arguments = {name: "us-west1" for name, schema in wanted.items() if schema.get("type") == "string"}
        with contextlib.suppress(MCPError):
            await client.call_tool(tool.name, arguments)


async def _use_everything(client: Client) -> None:
    await _call_all(client)
    for resource in (await client.list_resources()).resources:
        await client.read_resource(str(resource.uri))
    for prompt in (await client.list_prompts()).prompts:
        await client.get_prompt(prompt.name, {})


async def _echo_schema(client: Client) -> None:
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


async def main() -> None:
    """Entry point."""
    url, scenario = sys.argv[1], os.environ["MCP_CONFORMANCE_SCENARIO"]
    version = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
    with tempfile.TemporaryDirectory() as folder:
        async with legs.gateway(Path(folder), {"suite": f"url = {json.dumps(url)}"}) as gateway:
            headers = {"Authorization": f"Bearer {gateway.token}"}
            async with httpx2.AsyncClient(headers=headers, timeout=LIMIT_S) as http:
                transport = streamable_http_client(f"http://127.0.0.1:{gateway.port}/s/suite/mcp", http_client=http)
                mode = version if version >= "2026-07-28" else "legacy"
                async with Client(
                    transport, mode=mode, cache=None, elicitation_callback=_answer, read_timeout_seconds=LIMIT_S
                ) as client:
                    await SCRIPTS.get(scenario, _call_all)(client)
        log = next(Path(folder).glob("state/*/daemon.log"), None)
        if log is not None:
            print(log.read_text(), file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main())
