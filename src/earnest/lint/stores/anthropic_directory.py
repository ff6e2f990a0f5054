"""Anthropic's directory of connectors: a title and the applicable hints on every tool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from earnest.lint.evidence import Evidence
from earnest.lint.model import Tool
from earnest.lint.stores.profile import Demand, Profile, Source


def _rules(tool: Tool, evidence: Evidence) -> Iterator[Demand]:
    inner = tool.annotations.get("title")
    if not tool.title and not (isinstance(inner, str) and inner):
        yield Demand("every tool needs a title for people", "title: what the tool does, in words")
    if tool.raw.read_only is None:
        yield Demand("readOnlyHint must be set", "readOnlyHint: true or false", "read_only")
    if tool.raw.read_only is not True and tool.raw.destructive is None:
        yield Demand(
            "destructiveHint must be set on a tool that is not read-only", "destructiveHint: true or false", "destructive"
        )
    act = evidence.writes[0] if evidence.writes else None
    if tool.raw.read_only is True and act is not None and act.sure == "high":
        yield Demand(f"hints and description must match what the tool does ({act.text!r})", "readOnlyHint: false", "read_only")
    if len(tool.name) > 64:
        yield Demand("a name may have 64 characters", "shorten it", confidence="medium")
    pay = evidence.surest("pay")
    if pay is not None and pay.sure == "high":
        yield Demand(
            "tools that move money or execute financial transactions are not taken",
            "leave it out of this listing",
            severity="warning",
            confidence="medium",
        )


PROFILE: Final = Profile(
    id="anthropic-directory",
    name="Anthropic directory",
    what="Servers provide all applicable annotations, in particular readOnlyHint, destructiveHint and title; "
    "descriptions say narrowly and truly what a tool does.",
    sources=(
        Source("https://support.claude.com/en/articles/11697096-anthropic-mcp-directory-policy", ""),
        Source("https://github.com/apify/apify-mcp-server/issues/327", ""),
    ),
    rules=_rules,
)
