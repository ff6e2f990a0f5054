"""A client on langchain-mcp-adapters; see README.md. Its tools give a model messages, so these are what is told."""

import asyncio
import json
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main(given):
    """Entry point."""
    if "stdio" in given:
        command, *args = given["stdio"]["command"]
        where = {"env": given["stdio"]["env"], "cwd": given["stdio"]["cwd"]}
        connection = {"transport": "stdio", "command": command, "args": args, **where}
    else:
        headers = {"Authorization": f"Bearer {given['http']['token']}"}
        connection = {"transport": "streamable_http", "url": given["http"]["url"], "headers": headers}
    tools = await MultiServerMCPClient({"one": connection}).get_tools()
    by_name = {tool.name: tool for tool in tools}
    results = []
    for name, arguments in given["calls"]:
        message = await by_name[name].ainvoke({"type": "tool_call", "id": "1", "name": name, "args": arguments})
        content = message.content if isinstance(message.content, list) else [{"type": "text", "text": message.content}]
        results.append({"content": content, "isError": message.status == "error"})
    print(json.dumps({"tools": [{"name": name} for name in by_name], "results": results}))


asyncio.run(main(json.loads(sys.argv[1])))
