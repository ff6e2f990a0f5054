"""A guard around a client of the official Python SDK: an `mcp.Client`, or a `ClientSession` of either generation.

    async with guarded(Client(server), guard, server="mail") as client:
        await client.call_tool("send_mail", {"to": "ann@example.org", "body": "…"})

Calls of tools, reads of resources and fetches of prompts go through the guard; one that may not be made comes back as a tool
error for the model (`isError`), or raises `Refused` where there is no tool result. What a server lists is learned. Whatever
else a session can do and could carry data out is not reachable through the wrapper.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

from mcp import types

from earnest.guard.decided import Refused
from earnest.guard.engine import Guard, joined

_PLAIN: Final = frozenset(
    (
        "initialize", "discover", "list_resources", "list_resource_templates", "list_prompts", "send_ping", "set_logging_level",
        "protocol_version", "server_info", "server_capabilities", "get_server_capabilities", "instructions",
    )
)  # fmt: skip
"""What passes: it carries nothing that a model chose."""


class GuardedSession:
    """A session whose calls are decided first."""

    def __init__(self, session: Any, guard: Guard, *, server: str = "", trust: str = "untrusted") -> None:
        """`server`: under which name its tools are labelled; `trust`: how far its own hints count (`Guard.learn`)."""
        self._session = session
        self._guard = guard
        self._server = server
        self._trust = trust
        self._listed = False

    async def __aenter__(self) -> Self:
        await self._session.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._session.__aexit__(*error)

    def __getattr__(self, name: str) -> Any:
        if name in _PLAIN:
            return getattr(self._session, name)
        raise AttributeError(f"{name} does not go through a guard, so a guarded session does not have it")

    async def list_tools(self, *args: Any, **options: Any) -> Any:
        """One page of tools; what they say of themselves is learned."""
        page = await self._session.list_tools(*args, **options)
        self._guard.learn(getattr(page, "tools", page), server=self._server, trust=self._trust)
        return page

    async def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None, *args: Any, **options: Any) -> Any:
        """Call a tool; a result that says `isError` where the call was not made."""
        # What is judged is what is sent: whoever still has the arguments may change them while a person is asked.
        given = None if arguments is None else copy.deepcopy(dict(arguments))
        await self._learned()
        try:
            return await self._made(name, given or {}, lambda: self._session.call_tool(name, given, *args, **options))
        except Refused as refused:
            return self._refused(refused)

    async def read_resource(self, uri: Any, *args: Any, **options: Any) -> Any:
        """Read a resource. Raises `Refused`."""
        return await self._made("resources.read", {"uri": str(uri)}, lambda: self._session.read_resource(uri, *args, **options))

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None, *args: Any, **options: Any) -> Any:
        """Fetch a prompt. Raises `Refused`."""
        given = {"name": name, **({"arguments": arguments} if arguments else {})}
        return await self._made("prompts.get", given, lambda: self._session.get_prompt(name, arguments, *args, **options))

    async def _made(self, tool: str, arguments: Mapping[str, Any], run: Callable[[], Any]) -> Any:
        name = joined(self._server, tool)
        return await self._guard.call(name, arguments, run=run)

    async def _learned(self) -> None:
        """Look at the server's list once, all pages, before the first call: it has the schemas."""
        if self._listed:
            return
        self._listed = True
        options: dict[str, Any] = {}
        for _ in range(100):
            page = await self.list_tools(**options)
            cursor = getattr(page, "next_cursor", None) or getattr(page, "nextCursor", None)
            if not cursor:
                return
            options = {"cursor": cursor}

    def _refused(self, refused: Refused) -> Any:
        content = [{"type": "text", "text": refused.for_model}]
        return types.CallToolResult.model_validate({"content": content, "isError": True})


def guarded(session: Any, guard: Guard, *, server: str = "", trust: str = "untrusted") -> GuardedSession:
    """A client or session whose calls the guard decides first."""
    return GuardedSession(session, guard, server=server, trust=trust)
