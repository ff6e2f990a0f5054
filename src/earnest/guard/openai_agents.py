"""A guard around function tools of the OpenAI Agents SDK, also those that it makes of a server's.

    agent = Agent(name="assistant", tools=guarded_tools([send_mail, read_inbox], guard))

A call that may not be made gives the model a text that says so. Tools that run elsewhere (hosted ones) cannot be guarded and
are refused.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Any

from agents import FunctionTool

from earnest.core.errors import EarnestError
from earnest.guard.decided import Refused
from earnest.guard.engine import Guard, joined


def guarded_tools(tools: Iterable[Any], guard: Guard, *, server: str = "") -> list[FunctionTool]:
    """The same tools, each call of which the guard decides first. Their schemas are learned. `server`: under which name they
    are labelled. Raises E1004 for a tool that is no function of this program."""
    return [_guarded(tool, guard, server) for tool in tools]


def _guarded(tool: Any, guard: Guard, server: str) -> FunctionTool:
    if not isinstance(tool, FunctionTool):
        name = getattr(tool, "name", type(tool).__name__)
        raise EarnestError("E1004", f"{name} does not run in this program, so no guard can stop it", "Leave it out.")
    name = joined(server, tool.name)
    guard.learn([{"name": tool.name, "inputSchema": tool.params_json_schema}], server=server)

    async def invoke(context: Any, given: str) -> Any:
        try:
            arguments = json.loads(given) if given else {}
        except ValueError:
            arguments = None
        if not isinstance(arguments, dict):
            return f"{tool.name} was not called: its arguments are not a JSON object."
        try:
            # What was judged is what is passed.
            return await guard.call(name, arguments, run=lambda: tool.on_invoke_tool(context, json.dumps(arguments)))
        except Refused as refused:
            return refused.for_model

    return dataclasses.replace(tool, on_invoke_tool=invoke)
