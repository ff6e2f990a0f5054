"""A `chatgpt-app-submission.json` beside the server it speaks of.

The form (schema version 1) carries for each tool the three hints and a justification for each; the store compares it with
what the server lists. Either may have moved on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from earnest.core.errors import EarnestError
from earnest.lint.model import WIRE, Confidence, Finding, Hint, Place, Server, Severity

AUDIT: Final = "store:openai-submission"
_ASKED: Final[dict[Hint, str]] = {
    "read_only": "read_only_justification",
    "destructive": "destructive_justification",
    "open_world": "open_world_justification",
}
_SHORT: Final = 15


def load(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """The tools of a form by name. Raises E1024 for what is no such form."""
    try:
        form = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise EarnestError("E1024", f"{path}: {error.strerror}") from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise EarnestError("E1024", f"{path} is not JSON: {error}") from None
    tools = form.get("tools") if isinstance(form, dict) else None
    if isinstance(tools, list):  # seen in hand-written forms
        tools = {one["name"]: one for one in tools if isinstance(one, dict) and isinstance(one.get("name"), str)}
    if not isinstance(tools, dict) or not all(isinstance(one, dict) for one in tools.values()):
        raise EarnestError("E1024", f"{path} is no submission: it has no object `tools`")
    return tools


def check(server: Server, form: Mapping[str, Mapping[str, Any]], path: str) -> Iterator[Finding]:
    """Where form and server differ, and what the form leaves out."""
    place = Place(path)
    listed = {tool.name: tool for tool in server.tools}

    def found(
        tool: str,
        message: str,
        fix: str,
        hint: Hint | None = None,
        severity: Severity = "error",
        confidence: Confidence = "high",
    ) -> Finding:
        return Finding(AUDIT, server.name, tool, hint, severity, confidence, message, fix, place=place)

    for name in sorted(listed.keys() - form.keys()):
        yield found(name, "is listed by the server and not in the form", "add it to the form")
    for name in sorted(form.keys() - listed.keys()):
        yield found(name, "is in the form and not listed by the server", "take it out of the form")
    for name, entry in form.items():
        tool = listed.get(name)
        if tool is None:
            continue
        said = entry.get("annotations")
        reasons = entry.get("justifications")
        said = said if isinstance(said, Mapping) else {}
        reasons = reasons if isinstance(reasons, Mapping) else {}
        for hint, key in _ASKED.items():
            wire, own = WIRE[hint], tool.raw.get(hint)
            value = said.get(wire)
            if not isinstance(value, bool):
                yield found(name, f"the form says nothing of {wire}", f"{wire}: true or false", hint)
            elif own is None:
                yield found(
                    name,
                    f"the form says {wire} {str(value).lower()}, the server says nothing",
                    f"set {wire} in the server",
                    hint,
                )
            elif own is not value:
                yield found(
                    name,
                    f"the form says {wire} {str(value).lower()}, the server {str(own).lower()}",
                    "correct the one that is wrong",
                    hint,
                )
            reason = reasons.get(key)
            if not isinstance(reason, str) or len(reason.strip()) < _SHORT:
                yield found(name, f"the form does not justify {wire}", f"fill in {key}", hint, "warning")
