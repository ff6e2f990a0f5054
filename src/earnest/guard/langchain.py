"""A guard around LangChain tools, also those that `langchain-mcp-adapters` makes of a server's.

    agent = create_agent(model, guarded_tools(tools, guard))

A call that may not be made ends as a tool error that the model is told; sync and async.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_core.tools import BaseTool, ToolException

from earnest.guard.decided import Refused
from earnest.guard.engine import Guard, joined


class GuardedTool(BaseTool):
    """A tool whose calls are decided first. `inner` is the tool as it was."""

    inner: BaseTool
    guard: Any
    server: str = ""

    def _run(self, *args: Any, **arguments: Any) -> Any:
        given = self._given(args, arguments)
        try:
            return self._opened(self.guard.call_sync(self._name, given, run=lambda: self.inner.invoke(self._call(given))))
        except Refused as refused:
            raise ToolException(refused.for_model) from refused

    async def _arun(self, *args: Any, **arguments: Any) -> Any:
        given = self._given(args, arguments)
        try:
            return self._opened(await self.guard.call(self._name, given, run=lambda: self.inner.ainvoke(self._call(given))))
        except Refused as refused:
            raise ToolException(refused.for_model) from refused

    @property
    def _name(self) -> str:
        return joined(self.server, self.name)

    def _given(self, args: tuple[Any, ...], arguments: dict[str, Any]) -> dict[str, Any]:
        # A tool of one string is called with it alone.
        return {**dict(zip(self.inner.args, args, strict=False)), **arguments}

    def _call(self, given: dict[str, Any]) -> dict[str, Any]:
        # As a tool call, so that its artifact comes back too.
        return {"type": "tool_call", "id": "guarded", "name": self.inner.name, "args": given}

    def _opened(self, message: Any) -> Any:
        if getattr(message, "status", "") == "error":
            raise ToolException(str(message.content))
        content = getattr(message, "content", message)
        return (content, getattr(message, "artifact", None)) if self.response_format == "content_and_artifact" else content


def guarded_tools(tools: Iterable[BaseTool], guard: Guard, *, server: str = "") -> list[BaseTool]:
    """The same tools, each call of which the guard decides first. Their schemas are learned. `server`: under which name they
    are labelled."""
    found: list[BaseTool] = []
    for tool in tools:
        guard.learn([_listed(tool)], server=server)
        found.append(
            GuardedTool(
                name=tool.name,
                description=tool.description,
                args_schema=tool.args_schema,
                return_direct=tool.return_direct,
                response_format=tool.response_format,
                metadata=tool.metadata,
                tags=tool.tags,
                handle_tool_error=True,
                inner=tool,
                guard=guard,
                server=server,
            )
        )
    return found


def _listed(tool: BaseTool) -> dict[str, Any]:
    schema = tool.args_schema
    if isinstance(schema, dict):
        return {"name": tool.name, "inputSchema": schema}
    make = getattr(tool.tool_call_schema, "model_json_schema", None)
    return {"name": tool.name, **({"inputSchema": make()} if make is not None else {})}
