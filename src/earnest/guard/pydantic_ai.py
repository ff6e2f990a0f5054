"""A guard around a toolset of Pydantic AI: functions, an MCP server, whatever it holds.

    agent = Agent(model, toolsets=[GuardedToolset(toolset, guard)])

A call that may not be made ends as a failure that the model is told and is not asked to try again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import WrapperToolset

from earnest.guard.decided import Refused
from earnest.guard.engine import Guard, joined


@dataclass
class GuardedToolset(WrapperToolset[Any]):
    """A toolset whose calls are decided first. `server`: under which name its tools are labelled."""

    guard: Guard
    server: str = ""

    async def get_tools(self, ctx: Any) -> Any:
        """The tools; their schemas are learned."""
        tools = await self.wrapped.get_tools(ctx)
        definitions = [{"name": name, "inputSchema": tool.tool_def.parameters_json_schema} for name, tool in tools.items()]
        self.guard.learn(definitions, server=self.server)
        return tools

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        """Call a tool, if it may be called."""
        known = joined(self.server, name)
        try:
            return await self.guard.call(known, tool_args, run=lambda: self.wrapped.call_tool(name, tool_args, ctx, tool))
        except Refused as refused:
            raise ToolFailed(refused.for_model) from refused
