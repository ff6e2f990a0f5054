"""Views: which tools a route shows. What a view hides, a call on that route cannot reach.

A view narrows, whatever a request says: `X-MCP-Readonly: true` hides more, `false` shows nothing that the view hides. Views
look at resolved profiles, the same ones that calls are judged by.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final

from earnest.config.policy.lower import condition
from earnest.config.sections import View
from earnest.core.compile import Compiled
from earnest.core.policy import Policy, Rule
from earnest.core.verdict import Verdict
from earnest.core.vocabulary import ToolFacts
from earnest.gateway.client import Route
from earnest.pdp.catalog import Server, Tool

MOST_SHOWN: Final = 8192
"""Answers that are kept, of a view to a tool."""
READ_ONLY: Final = "not read-only, and the request asked for read-only tools"


class Views:
    """All views of the configuration."""

    def __init__(self, views: Mapping[str, View]) -> None:
        """Raises E11xx where a view's condition is none."""
        self._views = views
        self._compiled = {
            name: Compiled(Policy(rules=(Rule("view", condition(view.when), Verdict.ALLOW, when=view.when),)))
            for name, view in views.items()
            if view.when
        }
        self._shown: dict[tuple[str, ToolFacts], bool] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._views

    def servers(self, name: str) -> tuple[str, ...]:
        """The servers a view is limited to; empty for all."""
        view = self._views.get(name)
        return view.servers if view is not None else ()

    def hidden(self, route: Route, server: Server, tool: Tool) -> str:
        """Why a tool is not shown on a route, or empty. Calls of methods that name no tool are judged by policy alone."""
        if tool.is_method:
            return ""
        if route.read_only and not tool.profile.read_only.value:
            return READ_ONLY
        if route.kind != "view":
            return ""
        view = self._views.get(route.name)
        if view is None:
            return f"the view {route.name} is gone"
        if view.servers and server.name not in view.servers:
            return f"outside the view {route.name}"
        if view.tools and not any(fnmatchcase(f"{server.name}/{tool.name}", glob) for glob in view.tools):
            return f"outside the view {route.name}"
        if route.name in self._compiled:
            facts = ToolFacts(server=server.name, name=tool.name, profile=tool.profile, trust=server.trust, title=tool.title)
            if not self._shows(route.name, facts):
                return f"outside the view {route.name}"
        return ""

    def _shows(self, view: str, facts: ToolFacts) -> bool:
        """Whether a view's condition holds, worked out once for the same facts: it reads no arguments and no labels."""
        known = self._shown.get((view, facts))
        if known is None:
            said = self._compiled[view].row(facts).known(0)
            known = said is not None and said.verdict is Verdict.ALLOW
            if len(self._shown) >= MOST_SHOWN:
                self._shown.clear()
            self._shown[view, facts] = known
        return known
