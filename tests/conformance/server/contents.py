"""What the suite's scenarios read: tools that answer with each kind of content, resources, prompts, completion.

Names, URIs and the texts that a scenario compares are the suite's; what it does not look at is our own.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from base64 import b64encode
from struct import pack
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts.base import Message, UserMessage
from mcp.server.mcpserver.tools import Tool
from mcp_types import (
    AudioContent,
    Completion,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from pydantic import Field

PAUSE_S = 0.05


def _chunk(kind: bytes, data: bytes) -> bytes:
    return pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))


PNG = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    + _chunk(b"IDAT", zlib.compress(b"\0\x80"))
    + _chunk(b"IEND", b"")
)
"""One grey point."""
WAV = b"RIFF" + pack("<I", 38) + b"WAVEfmt " + pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16) + b"data" + pack("<Ih", 2, 0)
"""One sample of silence."""

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
"""Keywords of JSON Schema 2020-12 that must reach a client as they are (SEP-1613, SEP-2106)."""


def _text(uri: str, text: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


def _image() -> ImageContent:
    return ImageContent(type="image", data=b64encode(PNG).decode(), mime_type="image/png")


def add(server: MCPServer, *, changes: bool = True) -> None:
    """Give a server all of it. `changes`: also what says that a list changed."""
    _tools(server)
    _watched(server)
    if changes:
        _changes(server)
    _resources(server)
    _prompts(server)


def _tools(server: MCPServer) -> None:
    @server.tool()
    def test_simple_text() -> str:
        """Answers with one text."""
        return "This is a simple text response for testing."

    @server.tool()
    def test_image_content() -> list[ImageContent]:
        """Answers with one image."""
        return [_image()]

    @server.tool()
    def test_audio_content() -> list[AudioContent]:
        """Answers with one sound."""
        return [AudioContent(type="audio", data=b64encode(WAV).decode(), mime_type="audio/wav")]

    @server.tool()
    def test_embedded_resource() -> list[EmbeddedResource]:
        """Answers with one embedded resource."""
        return [_text("test://embedded-resource", "This is an embedded resource content.")]

    @server.tool()
    def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
        """Answers with a text, an image and a resource."""
        resource = _text("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
        return [TextContent(type="text", text="Multiple content types test:"), _image(), resource]

    @server.tool()
    def test_error_handling() -> str:
        """Fails."""
        raise ValueError("This tool intentionally returns an error for testing")

    @server.tool()
    async def test_tool_with_logging(ctx: Context[Any, Any]) -> str:
        """Logs three lines while it works."""
        for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await ctx.info(line)
            await asyncio.sleep(PAUSE_S)
        return "Tool with logging executed successfully"

    @server.tool()
    async def test_logging_tool(ctx: Context[Any, Any]) -> str:
        """Logs one line, which the SDK withholds from a request that asked for no level."""
        await ctx.info("a line of log")
        return "logged"

    @server.tool()
    async def test_tool_with_progress(ctx: Context[Any, Any]) -> str:
        """Says three times how far it is."""
        for done in (0, 50, 100):
            await ctx.report_progress(done, 100, f"Completed step {done} of 100")
            await asyncio.sleep(PAUSE_S)
        return "Tool with progress executed successfully"

    @server.tool()
    async def test_reconnection(ctx: Context[Any, Any]) -> str:
        """Closes the stream of its answer and goes on: the client has to come back for it (SEP-1699)."""
        await ctx.info("before the stream closes")
        await ctx.close_sse_stream()
        await asyncio.sleep(4 * PAUSE_S)
        await ctx.info("after the stream closed")
        return "Reconnection test completed"

    @server.tool()
    def test_custom_headers(message: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Message"})]) -> str:
        """Has an argument that a header repeats (SEP-2243)."""
        return f"message: {message}"

    def json_schema_2020_12_tool(name: str = "", address: Any = None) -> str:
        """Has a schema with keywords of 2020-12."""
        return f"name: {name}, address: {address}"

    made = Tool.from_function(json_schema_2020_12_tool)
    server._tool_manager._tools[made.name] = made.model_copy(update={"parameters": SCHEMA})


def _changes(server: MCPServer) -> None:
    def added() -> str:
        """Came later."""
        return "added"

    @server.tool()
    async def test_trigger_tool_change(ctx: Context[Any, Any]) -> str:
        """Adds a tool, or takes it away again, and says that the list changed."""
        name = "test_added_tool"
        if name in {tool.name for tool in await server.list_tools()}:
            server.remove_tool(name)
        else:
            server.add_tool(added, name=name)
        await ctx.notify_tools_changed()
        return "the list of tools changed"

    @server.tool()
    async def test_trigger_prompt_change(ctx: Context[Any, Any]) -> str:
        """Says that the list of prompts changed."""
        await ctx.notify_prompts_changed()
        return "the list of prompts changed"


def _watched(server: MCPServer) -> None:
    @server.tool()
    async def test_update_watched_resource(ctx: Context[Any, Any]) -> str:
        """Says that a resource changed, to whoever subscribed to it in either era."""
        await ctx.notify_resource_updated("test://watched-resource")
        await ctx.session.send_resource_updated("test://watched-resource")
        return "the resource changed"


def _resources(server: MCPServer) -> None:
    @server.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        """A text that stays."""
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        """An image that stays."""
        return PNG

    @server.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> str:
        """What a template's parameter says."""
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})

    @server.resource("test://watched-resource", mime_type="text/plain")
    def watched() -> str:
        """A resource to subscribe to."""
        return "Watched resource content"

    async def subscribed(ctx: Any, params: SubscribeRequestParams) -> EmptyResult:
        return EmptyResult()

    async def unsubscribed(ctx: Any, params: UnsubscribeRequestParams) -> EmptyResult:
        return EmptyResult()

    async def leveled(ctx: Any, params: SetLevelRequestParams) -> EmptyResult:
        return EmptyResult()

    # The SDK's comfortable server has no way of its own to answer these three.
    low = server._lowlevel_server
    low.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribed)
    low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, unsubscribed)
    low.add_request_handler("logging/setLevel", SetLevelRequestParams, leveled)


def _prompts(server: MCPServer) -> None:
    @server.prompt()
    def test_simple_prompt() -> str:
        """A prompt without arguments."""
        return "This is a simple prompt for testing."

    @server.prompt()
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        """A prompt with two arguments."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt()
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:
        """A prompt with a resource in it."""
        embedded = _text(resourceUri, "Embedded resource content for testing.")
        return [UserMessage(content=embedded), UserMessage("Please process the embedded resource above.")]

    @server.prompt()
    def test_prompt_with_image() -> list[Message]:
        """A prompt with an image in it."""
        return [UserMessage(content=_image()), UserMessage("Please analyze the image above.")]

    @server.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> Completion:
        known = ("paris", "park", "party")
        values = [word for word in known if word.startswith(argument.value)]
        return Completion(values=values, total=len(values), has_more=False)
