"""A client on the first generation of the Python SDK; see README.md."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def main(given):
    """Entry point."""
    if "stdio" in given:
        command, *args = given["stdio"]["command"]
        opening = stdio_client(
            StdioServerParameters(command=command, args=args, env=given["stdio"]["env"], cwd=given["stdio"]["cwd"])
        )
    else:
        opening = streamablehttp_client(given["http"]["url"], {"Authorization": f"Bearer {given['http']['token']}"})
    async with opening as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        tools = await session.list_tools()
        results = [await session.call_tool(name, arguments) for name, arguments in given["calls"]]
    said = {
        "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools.tools],
        "results": [result.model_dump(mode="json", by_alias=True, exclude_none=True) for result in results],
    }
    print(json.dumps(said))


asyncio.run(main(json.loads(sys.argv[1])))
