"""A FastMCP server that decides on what it is asked for, and a FastMCP client that decides before it asks."""

import asyncio

from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError

from earnest.guard import Guard
from earnest.guard.fastmcp import GuardMiddleware, guarded

NOTES = {"plan": "Ask the bank, then call Ann."}
LABELS = {
    "read_note": {
        "read_only": True,
        "open_world": False,
        "reads_private": True,
        "sees_untrusted": False,
        "can_exfiltrate": False,
    },
    "delete_note": {"read_only": False, "destructive": True, "open_world": False, "arg_roles": {"name": "selector"}},
}


def notes() -> FastMCP:
    server = FastMCP("notes")

    @server.tool
    def read_note(name: str) -> str:
        return NOTES.get(name, "there is no such note")

    @server.tool
    def delete_note(name: str) -> str:
        return f"deleted {NOTES.pop(name)}"

    return server


async def tried(what: str, client: Client, tool: str) -> None:
    try:
        await client.call_tool(tool, {"name": "plan"})
        print(f"{what}: {tool} ran")
    except ToolError as error:
        print(f"{what}: {tool} refused" if "was not made" in str(error) else f"{what}: {error}")


async def main() -> None:
    served = notes()
    served.add_middleware(GuardMiddleware(Guard(LABELS)))
    async with Client(served) as client:
        await tried("middleware", client, "read_note")
        await tried("middleware", client, "delete_note")  # nobody asked for it, and nobody is there to agree
    guard = Guard(LABELS, approve=lambda ask: print("asked:", ask.tool) or True)
    async with guarded(Client(notes()), guard) as client:
        await tried("client", client, "delete_note")


asyncio.run(main())
