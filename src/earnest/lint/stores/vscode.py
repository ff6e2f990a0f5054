"""VS Code: read-only tools skip the confirmation, titles are shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from earnest.lint.evidence import Evidence
from earnest.lint.model import Tool
from earnest.lint.stores.profile import Demand, Profile, Source, reads


def _rules(tool: Tool, evidence: Evidence) -> Iterator[Demand]:
    act = evidence.writes[0] if evidence.writes else None
    if tool.raw.read_only is True and act is not None and act.sure == "high":
        yield Demand(
            f"would skip the confirmation, though it changes something ({act.text!r})", "readOnlyHint: false", "read_only"
        )
    elif tool.raw.read_only is not True and reads(evidence):
        yield Demand(
            "only reads, but every call is confirmed",
            "readOnlyHint: true",
            "read_only",
            confidence="high" if evidence.reads == "high" else "medium",
        )
    inner = tool.annotations.get("title")
    if not tool.title and not (isinstance(inner, str) and inner):
        yield Demand("has no title to show", "title: what the tool does, in words", severity="warning")


PROFILE: Final = Profile(
    id="vscode",
    name="VS Code",
    what="`readOnlyHint: true` lets a call pass without confirmation; `title` is what the list of tools and the "
    "confirmation show.",
    sources=(
        Source("https://github.com/github/github-mcp-server/issues/306", ""),
        Source("https://code.visualstudio.com/api/extension-guides/ai/mcp", ""),
    ),
    rules=_rules,
)
