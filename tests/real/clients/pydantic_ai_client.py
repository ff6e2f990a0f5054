"""A client on pydantic-ai; see README.md. It gives what a model would get, so that is what is told."""

import asyncio
import json
import sys

from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from pydantic_ai.mcp import MCPToolset


async def main(given):
    """Entry point."""
    if "stdio" in given:
        command, *args = given["stdio"]["command"]
        transport = StdioTransport(command, args, env=given["stdio"]["env"], cwd=given["stdio"]["cwd"], keep_alive=False)
    else:
        headers = {"Authorization": f"Bearer {given['http']['token']}"}
        transport = StreamableHttpTransport(given["http"]["url"], headers=headers)
    results = []
    async with MCPToolset(transport, tool_error_behavior="error") as toolset:
        tools = await toolset.list_tools()
        for name, arguments in given["calls"]:
            try:
                said, failed = await toolset.direct_call_tool(name, arguments), False
            except Exception as error:
                said, failed = str(error), True
            text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
            results.append({"content": [{"type": "text", "text": text}], "isError": failed})
    print(json.dumps({"tools": [{"name": tool.name} for tool in tools], "results": results}))


asyncio.run(main(json.loads(sys.argv[1])))
