"""A client on fastmcp; see README.md."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


async def main(given):
    """Entry point."""
    if "stdio" in given:
        command, *args = given["stdio"]["command"]
        transport = StdioTransport(command, args, env=given["stdio"]["env"], cwd=given["stdio"]["cwd"], keep_alive=False)
    else:
        headers = {"Authorization": f"Bearer {given['http']['token']}"}
        transport = StreamableHttpTransport(given["http"]["url"], headers=headers)
    async with Client(transport) as client:
        tools = await client.list_tools()
        results = [await client.call_tool_mcp(name, arguments) for name, arguments in given["calls"]]
    said = {
        "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools],
        "results": [result.model_dump(mode="json", by_alias=True, exclude_none=True) for result in results],
    }
    print(json.dumps(said))


asyncio.run(main(json.loads(sys.argv[1])))
