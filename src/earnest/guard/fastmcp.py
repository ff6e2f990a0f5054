"""A guard in FastMCP: around a client, or as middleware in a server or proxy.

    server.add_middleware(GuardMiddleware(guard))
    async with guarded(fastmcp.Client(url), guard) as client: ...

A call that may not be made ends as FastMCP's tools end, with a `ToolError` that says nothing of the policy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from fastmcp.exceptions import ToolError
from fastmcp.server.middleware import Middleware

from earnest.guard.decided import Refused
from earnest.guard.engine import Guard, joined
from earnest.guard.mcp import GuardedSession


class GuardMiddleware(Middleware):
    """Decides on every call that a server is asked for. `guard`: one conversation for all, or a function from FastMCP's context
    of a call to the guard of its conversation. `server` and `trust` as in `Guard.learn`."""

    def __init__(self, guard: Guard | Callable[[Any], Guard], *, server: str = "", trust: str = "untrusted") -> None:
        self._guard: Callable[[Any], Guard] = (lambda context: guard) if isinstance(guard, Guard) else guard
        self._server = server
        self._trust = trust

    async def on_list_tools(self, context: Any, call_next: Any) -> Any:
        """What is listed is learned."""
        tools = await call_next(context)
        definitions = [tool.to_mcp_tool() for tool in tools]
        self._guard(context).learn(definitions, server=self._server, trust=self._trust)
        return tools

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        """A tool call."""
        return await self._made(context, call_next, context.message.name, context.message.arguments or {})

    async def on_read_resource(self, context: Any, call_next: Any) -> Any:
        """A read of a resource."""
        return await self._made(context, call_next, "resources.read", {"uri": str(context.message.uri)})

    async def on_get_prompt(self, context: Any, call_next: Any) -> Any:
        """A fetch of a prompt."""
        message = context.message
        given = {"name": message.name, **({"arguments": message.arguments} if message.arguments else {})}
        return await self._made(context, call_next, "prompts.get", given)

    async def _made(self, context: Any, call_next: Any, tool: str, arguments: dict[str, Any]) -> Any:
        name = joined(self._server, tool)
        try:
            return await self._guard(context).call(name, arguments, run=lambda: call_next(context))
        except Refused as refused:
            raise ToolError(refused.for_model) from refused


class _GuardedClient(GuardedSession):
    def _refused(self, refused: Refused) -> NoReturn:
        raise ToolError(refused.for_model) from refused


def guarded(client: Any, guard: Guard, *, server: str = "", trust: str = "untrusted") -> GuardedSession:
    """A `fastmcp.Client` whose calls the guard decides first."""
    return _GuardedClient(client, guard, server=server, trust=trust)
