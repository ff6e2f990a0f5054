"""A profile: rules for each tool, and what a server's tools come to under them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from earnest.lint.evidence import Evidence, gather
from earnest.lint.model import Confidence, Finding, Hint, Place, Server, Severity, Tool


class Demand(msgspec.Struct, frozen=True):
    """What a rule says of a tool that does not meet it. Severity error: a store refuses it, a client does not run it."""

    message: str
    fix: str
    hint: Hint | None = None
    severity: Severity = "error"
    confidence: Confidence = "high"


class Source(msgspec.Struct, frozen=True):
    """Where a demand is written: address, its own date (empty: none given), and the day it was read."""

    address: str
    dated: str
    read: str = "2026-11-30"


class Profile(msgspec.Struct, frozen=True):
    """One store or client. `rules` yield what a tool does not meet."""

    id: str
    name: str
    what: str
    sources: tuple[Source, ...]
    rules: Callable[[Tool, Evidence], Iterable[Demand]]


class Verdict(msgspec.Struct, frozen=True):
    """One tool under one profile: it passes if no demand of severity error is open."""

    tool: str
    passed: bool
    findings: tuple[Finding, ...]


def check(server: Server, profile: Profile) -> Sequence[Verdict]:
    """Pass or fail of each tool, with the fixes."""
    verdicts: list[Verdict] = []
    for tool, evidence in gather(server).tools:
        found = tuple(
            Finding(
                f"store:{profile.id}",
                server.name,
                tool.name,
                one.hint,
                one.severity,
                one.confidence,
                f"{profile.name}: {one.message}",
                one.fix,
                place=tool.place or (Place(server.source) if server.source else None),
            )
            for one in profile.rules(tool, evidence)
        )
        verdicts.append(Verdict(tool.name, not any(one.severity == "error" for one in found), found))
    return verdicts


def reads(evidence: Evidence) -> bool:
    """Whether a tool plainly only reads."""
    return evidence.reads in ("high", "medium")
