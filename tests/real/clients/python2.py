"""A client on the second generation of the Python SDK; see README.md."""

import asyncio
import json
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def use(transport, calls):
    """List and call."""
    async with Client(transport, cache=None) as client:
        tools = await client.list_tools()
        results = [await client.call_tool(name, arguments) for name, arguments in calls]
    said = {
        "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools.tools],
        "results": [result.model_dump(mode="json", by_alias=True, exclude_none=True) for result in results],
    }
    print(json.dumps(said))


async def main(given):
    """Entry point."""
    if "stdio" in given:
        command, *args = given["stdio"]["command"]
        where = {"env": given["stdio"]["env"], "cwd": given["stdio"]["cwd"]}
        await use(stdio_client(StdioServerParameters(command=command, args=args, **where)), given["calls"])
        return
    headers = {"Authorization": f"Bearer {given['http']['token']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        await use(streamable_http_client(given["http"]["url"], http_client=http), given["calls"])


asyncio.run(main(json.loads(sys.argv[1])))
