"""Codex: approval is asked by the hints, absent ones at their defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from earnest.core.hints import effective
from earnest.lint.evidence import Evidence
from earnest.lint.model import Tool
from earnest.lint.stores.profile import Demand, Profile, Source, reads


def _rules(tool: Tool, evidence: Evidence) -> Iterator[Demand]:
    raw, taken = tool.raw, effective(tool.raw)
    if raw.read_only is True and raw.destructive is True:
        yield Demand(
            "read-only and explicitly destructive: approval is asked all the same", "drop destructiveHint", "destructive"
        )
    elif raw.read_only is not True and reads(evidence):
        yield Demand(
            "only reads, but approval is asked on every call, and refused where nobody can be asked",
            "readOnlyHint: true",
            "read_only",
            confidence="high" if evidence.reads == "high" else "medium",
        )
    elif raw.read_only is not True and taken.destructive and raw.destructive is None:
        yield Demand(
            "approval is asked by default, not by what was said",
            "destructiveHint: true or false",
            "destructive",
            severity="warning",
            confidence="low",
        )


PROFILE: Final = Profile(
    id="codex",
    name="Codex",
    what="Calls of read-only tools run without approval, unless they are also explicitly destructive; absent hints count "
    "as the specification says: not read-only, destructive, open world.",
    sources=(
        Source("https://github.com/openai/codex/pull/15519", "2026-03-23"),
        Source("https://github.com/openai/codex/pull/12353", "2026-02-20"),
        Source("https://github.com/openai/codex/pull/17843", "2026-04-16"),
        Source("https://github.com/christo-auer/eilmeldung/issues/321", "2026-09-15"),
    ),
    rules=_rules,
)
