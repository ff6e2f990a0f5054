"""Microsoft 365 Copilot, federated connectors: tools without readOnlyHint are dropped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from earnest.lint.evidence import Evidence
from earnest.lint.model import Tool
from earnest.lint.stores.profile import Demand, Profile, Source, reads


def _rules(tool: Tool, evidence: Evidence) -> Iterator[Demand]:
    if tool.raw.read_only is True:
        act = evidence.writes[0] if evidence.writes else None
        if act is not None and act.sure == "high":
            yield Demand(
                f"only tools that really read may say so ({act.text!r})", "readOnlyHint: false, and leave it out", "read_only"
            )
    elif tool.raw.read_only is None:
        fix = (
            "readOnlyHint: true"
            if reads(evidence)
            else "readOnlyHint: true if it only reads; a tool that writes is not taken by a connector"
        )
        yield Demand("a tool without readOnlyHint is dropped", fix, "read_only")
    else:
        yield Demand(
            "a connector takes read-only tools alone; this one is for an agent's actions",
            "readOnlyHint: true, if it only reads",
            "read_only",
            severity="error" if reads(evidence) else "note",
            confidence="high" if reads(evidence) else "medium",
        )


PROFILE: Final = Profile(
    id="m365-copilot",
    name="Microsoft 365 Copilot",
    what="A federated connector rejects or silently drops tools whose readOnlyHint is not there. No public page of the "
    "vendor that was found names the rule; it is known from producers whose tools were dropped.",
    sources=(
        Source("https://github.com/Azure/data-api-builder/issues/3798", "2026-09-02"),
        Source("https://github.com/Azure/data-api-builder/pull/3799", "2026-09-02"),
        Source("https://learn.microsoft.com/microsoft-365/copilot/extensibility/plugin-mcp-apps", ""),
    ),
    rules=_rules,
)
