"""A client of the official SDK, in front of a mailbox over pipes: its hints are learned, the labels count."""

import asyncio
import sys
import tempfile
from pathlib import Path

from mcp import Client, StdioServerParameters

from earnest.guard import Guard
from earnest.guard.mcp import guarded

MAILBOX = Path(__file__).parents[1] / "servers" / "mailbox.py"
LABELS = {
    "mailbox/list": {"read_only": True, "open_world": False, "reads_private": True, "sees_untrusted": True},
    "mailbox/send": {
        "read_only": False,
        "destructive": False,
        "open_world": True,
        "reads_private": False,
        "sees_untrusted": False,
        "can_exfiltrate": True,
        "arg_roles": {"to": "destination"},
    },
}


async def main() -> None:
    guard = Guard(LABELS)
    guard.user("List my letters, then send one to ann@corp.example with the subject News: all is well.")
    with tempfile.TemporaryDirectory() as folder:
        server = StdioServerParameters(command=sys.executable, args=[str(MAILBOX), folder])
        async with guarded(Client(server), guard, server="mailbox") as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            print("tools:", ", ".join(sorted(names)))
            await client.call_tool("list", {})
            for to in ("ann@corp.example", "max@evil.example"):
                result = await client.call_tool("send", {"to": to, "subject": "News", "body": "all is well"})
                print(to, "refused" if result.is_error else "sent")


asyncio.run(main())
