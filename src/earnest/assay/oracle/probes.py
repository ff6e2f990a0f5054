"""State without a file, read back through the server's own readers.

A probe is a call of a reading tool that changes nothing, answers the same twice in a row, and the same after a call that
failed.
Where its answer differs after another tool's call, that call changed what the server knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from earnest.assay.arguments.harvest import words
from earnest.assay.model import Answer, Call, Effect, Step, ToolUnder
from earnest.assay.observe.masks import masked
from earnest.assay.oracle.scout import NOBODY
from earnest.assay.session import Session

MOST: Final = 3
RESOURCES: Final = "the resources"
"""The name of the probe that is no tool: what `resources/list` and `resources/read` tell."""
_READING: Final = frozenset(
    {
        "list",
        "get",
        "read",
        "show",
        "status",
        "count",
        "search",
        "dump",
        "export",
        "query",
        "info",
        "stats",
        "state",
        "view",
        "find",
    }
)


def chosen(tools: Sequence[ToolUnder], calls: Sequence[Call]) -> list[Step]:
    """Calls that could be probes, best first: few arguments, a reader's name or claim."""
    by_name = {tool.name: tool for tool in tools}
    found: dict[str, tuple[float, Step]] = {}
    for call in calls:
        tool = by_name.get(call.step.tool)
        if tool is None or call.answer.outcome != "done" or call.answer.seconds > 1.0:
            continue
        if call.hard and tool.claims.read_only is not True:  # in a shared session a reader may have another's late write
            continue
        if any(effect.external for effect in call.effects):
            continue
        reading = bool(set(words(tool.name)) & _READING) or tool.claims.read_only is True
        if not reading:
            continue
        score = len(call.step.arguments) - min(len(call.answer.text), 400) / 400
        score -= 1.0 if set(words(tool.name)) & {"list", "status", "all", "state", "graph", "dump"} else 0.0
        if tool.name not in found or score < found[tool.name][0]:
            found[tool.name] = (score, Step(tool.name, call.step.arguments))
    return [step for _, step in sorted(found.values(), key=lambda item: item[0])][: MOST * 3]


async def stable(session: Session, steps: Sequence[Step]) -> list[Step]:
    """Those that answer the same twice, and the same after a call that failed. Asked at the front of a session."""
    before = masked(await session.resources())
    first = [await session.quiet(step) for step in steps]
    second = [await session.quiet(step) for step in steps]
    await session.quiet(Step(NOBODY, {}))
    third = [await session.quiet(step) for step in steps]
    session.resourceful = bool(before) and masked(await session.resources()) == before
    kept = [
        step
        for step, a, b, c in zip(steps, first, second, third, strict=True)
        if a.outcome == "done" and said(a) == said(b) == said(c)
    ]
    return kept[:MOST]


async def ask(session: Session, probes: Sequence[Step], besides: str = "") -> dict[str, str]:
    """What the probes answer now; `besides`: a tool that is not asked."""
    found = {step.tool: said(await session.quiet(step)) for step in probes if step.tool != besides}
    if session.resourceful:
        found[RESOURCES] = masked(await session.resources())
    return found


def differing(before: dict[str, str], after: dict[str, str], tool: str) -> list[Effect]:
    """Effects: probes that answer differently."""
    found = []
    for name, old in before.items():
        new = after.get(name, old)
        if new != old:
            lost = _lost(old, new)
            verb = "say" if name == RESOURCES else "answers"
            what = f"{name} {verb} something else after {tool}" + ("; something it told before is gone" if lost else "")
            found.append(Effect("answers", "memory", name, "", what, True, lost))
    return found


def _lost(old: str, new: str) -> bool | None:
    """Whether something is missing from an answer. Counts change without a loss, so only words longer than numbers count."""
    before, after = set(_pieces(old)), set(_pieces(new))
    if before - after:
        # Where something else stands in its place it may only be called otherwise now.
        return None if after - before else True
    return False if after - before else None


def _pieces(text: str) -> list[str]:
    import re

    return [piece for piece in re.findall(r"[A-Za-z_][\w./@-]{2,}", text)]


def said(answer: Answer) -> str:
    """An answer as it is compared: masked, and with its parts in order where it is structured."""
    value: Any = answer.parsed if not isinstance(answer.parsed, str) else answer.text
    return masked(answer.outcome + " " + (value if isinstance(value, str) else repr(value)))
