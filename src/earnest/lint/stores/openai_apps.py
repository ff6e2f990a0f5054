"""ChatGPT apps: three hints on every tool, explicitly and truly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from earnest.lint.evidence import Evidence
from earnest.lint.model import WIRE, Hint, Tool
from earnest.lint.stores.profile import Demand, Profile, Source

_ASKED: Final[tuple[Hint, ...]] = ("read_only", "destructive", "open_world")


def _rules(tool: Tool, evidence: Evidence) -> Iterator[Demand]:
    for hint in _ASKED:
        if tool.raw.get(hint) is None:
            yield Demand(f"{WIRE[hint]} must be set on every tool, read-only ones too", f"{WIRE[hint]}: true or false", hint)
    act = evidence.writes[0] if evidence.writes else None
    if tool.raw.read_only is True and act is not None and act.sure == "high":
        yield Demand(
            f"readOnlyHint must be false for a tool that changes or sends something ({act.text!r})",
            "readOnlyHint: false",
            "read_only",
        )
    destroys = evidence.destroys[0] if evidence.destroys else None
    if tool.raw.destructive is False and tool.raw.read_only is not True and destroys is not None and destroys.sure == "high":
        yield Demand(
            f"destructiveHint must be true if any mode deletes or overwrites ({destroys.text!r})",
            "destructiveHint: true",
            "destructive",
        )
    sends = evidence.surest("send")
    if tool.raw.open_world is False and sends is not None and sends.sure == "high":
        yield Demand(
            "openWorldHint must be true for what reaches outside systems, such as mail or posts",
            "openWorldHint: true",
            "open_world",
        )
    if len(tool.name) > 64:
        yield Demand("a name may have 64 characters", "shorten it", severity="warning", confidence="medium")


PROFILE: Final = Profile(
    id="openai-apps",
    name="ChatGPT apps",
    what="Every tool sets readOnlyHint, destructiveHint and openWorldHint explicitly, and the review compares them with "
    "what the tool does. openWorldHint means here: can change what is "
    "publicly visible or in systems of others; a tool that only reads the web may say false, which the specification of "
    "MCP would call true.",
    sources=(
        Source("https://developers.openai.com/apps-sdk/plan/tools", ""),
        Source("https://github.com/openai/plugins, skill mcp-tool-hint-justifications 1.0.0", ""),
        Source("https://github.com/longbridge/longbridge-mcp/pull/81", "2026-06-12"),
        Source("https://github.com/samson-art/transcriptor-mcp/pull/15", "2026-08-29"),
    ),
    rules=_rules,
)
