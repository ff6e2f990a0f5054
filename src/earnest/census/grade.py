"""A server's grade: a published sum, no opinion. 100 points in three parts; the worst lies cap the letter.

Coverage (40). For each tool the hints that mean something: `readOnlyHint` and `openWorldHint`, and, unless it claims to be
read-only, `destructiveHint` and `idempotentHint`. 40 times the share of them that is set, over all tools.

Honesty (40). c is the number of tools with a claim that their own definition contradicts, by findings of `earnest lint` on a
hint that is set: 1 for one of high confidence where the claim is the safer side, 1/2 where it is of medium confidence or where
the claim is the riskier side. 40 times (1 - 5c / tools), never less than 0: at one tool in five nothing is left. A server that
claims nothing earns here what it earns in coverage, and no more: silence is not honesty.

Care (20). Minus 10 for hidden characters, instructions to the model or secrets in definitions; minus 5 for a list that differs
between two starts; minus 3 for names or schemas against the rules; minus 2 for a version that identifies nothing.

A from 90, B from 75, C from 60, D from 40, else E. A server with a tool that claims to read only and says that it writes (high
confidence) gets C at best: such a tool runs unasked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from earnest.census.risk import OVERSTATED, UNDERSTATED
from earnest.core.hints import RawHints
from earnest.lint.model import Finding, Tool

STEPS: Final = ((90.0, "A"), (75.0, "B"), (60.0, "C"), (40.0, "D"), (0.0, "E"))
CAP: Final = "C"
_CAPPING: Final = "read-only-but-writes"
_RULES: Final = ("name-rule", "colliding-names", "schema-type", "remote-reference", "malformed-hint", "foreign-annotation")
CARE: Final[tuple[tuple[float, frozenset[str]], ...]] = (
    (10.0, frozenset(("hidden-characters", "model-instructions", "secret-default"))),
    (5.0, frozenset(("unstable-list",))),
    (3.0, frozenset(_RULES)),
    (2.0, frozenset(("version-identity",))),
)
"""Points, and the audits that cost them."""
WORDS: Final = {
    "hidden-characters": "hidden characters in its definitions",
    "model-instructions": "instructions to the model in descriptions",
    "secret-default": "what looks like a secret in a schema",
    "unstable-list": "a list that differs between two starts",
    "name-rule": "names outside the rule",
    "colliding-names": "names that collide",
    "schema-type": "schemas without a type",
    "remote-reference": "schemas that refer to the network",
    "malformed-hint": "hints that are no boolean",
    "foreign-annotation": "annotations that are none",
    "version-identity": "a version that identifies nothing",
}


class Grade(msgspec.Struct, frozen=True):
    """Points and letter; `reasons` are what was taken off, in words."""

    letter: str
    score: float
    coverage: float
    honesty: float
    care: float
    reasons: tuple[str, ...] = ()


def grade(tools: Sequence[Tool], findings: Sequence[Finding]) -> Grade | None:
    """The grade of a server; None for one without tools."""
    if not tools:
        return None
    share = sum(_said(tool.raw) for tool in tools) / len(tools)
    against = _contradictions(tools, findings)
    coverage = 40.0 * share
    honesty = min(40.0 * max(0.0, 1 - 5 * sum(against.values()) / len(tools)), coverage if not _claims(tools) else 40.0)
    reasons = [f"{1 - share:.0%} of the hints that mean something are not set"] if share < 1 else []
    if against:
        reasons.append(f"{len(against)} of {len(tools)} tools contradict a claim of theirs")
    found = {one.audit for one in findings if one.confidence != "low" and one.severity != "note"} | {
        one.audit for one in findings if one.audit == "version-identity"
    }
    care = 20.0
    for points, audits in CARE:
        if audits & found:
            care -= points
            reasons += [WORDS[name] for name in sorted(audits & found)]
    score = round(coverage, 1) + round(honesty, 1) + round(care, 1)
    letter = next(letter for least, letter in STEPS if score >= least)
    if letter < CAP and any(one.audit == _CAPPING and one.confidence == "high" for one in findings):
        letter = CAP
        reasons.append("a tool that claims to read only says that it writes: C at best")
    return Grade(letter, round(score, 1), round(coverage, 1), round(honesty, 1), round(care, 1), tuple(reasons))


def _said(raw: RawHints) -> float:
    names = ("read_only", "open_world") if raw.read_only else ("read_only", "destructive", "idempotent", "open_world")
    return sum(raw.get(name) is not None for name in names) / len(names)


def _claims(tools: Sequence[Tool]) -> bool:
    return any(tool.raw.get(name) is not None for tool in tools for name in ("read_only", "destructive", "open_world"))


def _contradictions(tools: Sequence[Tool], findings: Sequence[Finding]) -> dict[str, float]:
    raws = {tool.name: tool.raw for tool in tools}
    weights: dict[str, float] = {}
    for one in findings:
        if one.tool is None or one.hint is None or one.confidence == "low" or one.audit not in UNDERSTATED | OVERSTATED:
            continue
        raw = raws.get(one.tool)
        if raw is None or raw.get(one.hint) is None:
            continue
        full = one.audit in UNDERSTATED and one.confidence == "high"
        weights[one.tool] = max(weights.get(one.tool, 0.0), 1.0 if full else 0.5)
    return weights
