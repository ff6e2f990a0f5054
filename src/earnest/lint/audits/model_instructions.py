"""Descriptions that give the model orders beyond the tool."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen
from earnest.lint.model import Confidence, Severity

_RULES: Final[tuple[tuple[re.Pattern[str], str, Severity, Confidence], ...]] = (
    (
        re.compile(
            r"\b(?:do not|don't|never) (?:tell|inform|mention (?:this )?to|show|reveal (?:this )?to|notify) (?:the )?users?\b",
            re.I,
        ),
        "hides something from the person",
        "error",
        "high",
    ),
    (
        re.compile(
            r"\bignore (?:all |any |the )?(?:previous|prior|other|earlier|above) (?:instructions?|tools?|rules?|prompts?)", re.I
        ),
        "overrides other instructions",
        "error",
        "high",
    ),
    (re.compile(r"<(?:important|system|instructions?|secret)>", re.I), "carries a block of instructions", "error", "medium"),
    (
        re.compile(r"\byou (?:did not have|had no) internet access|\bwere advised to refuse\b", re.I),
        "argues against what the model was told",
        "warning",
        "high",
    ),
    (
        re.compile(r"\b(?:stop|wait)[ ,!.]+(?:and )?use it now\b|\bhave you used the\b", re.I),
        "orders another tool to be used",
        "warning",
        "high",
    ),
    (
        re.compile(
            r"\b(?:always|must) (?:use|call|prefer|run|invoke) (?:this|the) (?:\w+ ){0,2}(?:tool|function)? ?(?:first|"
            r"before (?:any|all|every|using|calling)|instead of|whenever)",
            re.I,
        ),
        "wants to be called before or instead of others",
        "warning",
        "medium",
    ),
    (
        re.compile(r"\bcall this (?:tool |immediately )?(?:first|immediately|before (?:any|all|every))", re.I),
        "wants to be called unasked",
        "warning",
        "medium",
    ),
    (
        re.compile(
            r"\b(?:send|include|pass|add) (?:the |all |your )?(?:full |entire |whole )?(?:conversation|chat history|"
            r"system prompt|message history)\b",
            re.I,
        ),
        "asks for the conversation",
        "error",
        "medium",
    ),
    (
        re.compile(
            r"\bdo not (?:ask|wait for|request) (?:the )?user(?:'s)? (?:for )?(?:confirmation|permission|approval)", re.I
        ),
        "asks to act without confirmation",
        "error",
        "high",
    ),
    (
        re.compile(r"\byou (?:\*)?must(?:\*)? (?:call|use|always|first)\b|\bmust be called (?:first|before)\b", re.I),
        "orders the model to call it",
        "note",
        "medium",
    ),
)


def _check(seen: Seen) -> Iterator[Note]:
    # A server's instructions are meant for the model: only what works against the person counts there.
    for pattern, what, severity, confidence in _RULES:
        found = pattern.search(seen.server.instructions) if severity == "error" else None
        if found:
            text = " ".join(found.group().split())
            yield Note(f"its instructions contain a sentence that {what}: {text!r}", severity=severity, confidence=confidence)
            break
    for tool in seen.server.tools:
        text = tool.description
        for pattern, what, severity, confidence in _RULES:
            found = pattern.search(text)
            if found:
                yield Note(
                    f"its description {what}: {' '.join(found.group().split())!r}",
                    tool,
                    fix="say what the tool does and returns, and leave to the host when it is used",
                    severity=severity,
                    confidence=confidence,
                    persona="pedantic" if severity == "note" else "regular",
                )
                break


AUDIT = Audit(
    id="model-instructions",
    severity="warning",
    confidence="medium",
    what="Sentences in a description that command the model: hide things from the person, ignore other instructions, "
    "call this tool first or unasked, hand over the conversation, act without confirmation.",
    why="A description is read by the model as if the host had written it. Orders in it work on every conversation in "
    "which the tool is merely listed. Stores refuse them.",
    how="Describe what the tool does, takes and returns.",
    example="`fetch` of the reference fetch server tells the model that it was “advised to refuse” and now need not.",
    check=_check,
)
