"""Claude Code in plan mode: only tools that say they read run without a question."""

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
            f"would run unasked while planning, though it changes something ({act.text!r})", "readOnlyHint: false", "read_only"
        )
    elif tool.raw.read_only is not True and reads(evidence):
        yield Demand(
            "only reads, but is asked about, or refused, on every call in plan mode; no allow list helps",
            "readOnlyHint: true",
            "read_only",
            confidence="high" if evidence.reads == "high" else "medium",
        )


PROFILE: Final = Profile(
    id="claude-code-plan-mode",
    name="Claude Code plan mode",
    what="In plan mode a tool without `readOnlyHint: true` prompts on each call, whatever the allow list says, and is "
    "refused where nobody can be asked. A tool that writes is meant to be: it passes.",
    sources=(
        Source("https://github.com/anthropics/claude-code/issues/76238", "2026-08-15"),
        Source("https://github.com/anthropics/claude-code/issues/90058", "2026-08-27"),
        Source("https://github.com/slynch8/10x/issues/3905", "2026-07-17"),
    ),
    rules=_rules,
)
