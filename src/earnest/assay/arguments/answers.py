"""Reading an answer: what it holds, and whether it is an error, also one in the clothing of success."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from earnest.assay.model import Answer, Outcome
from earnest.upstream.base import Reply

_LONGEST_ERROR: Final = 600
_ERROR_WORDS: Final = re.compile(
    r"^\W*(?:error|failed|failure|invalid|unknown|cannot|can't|could not|unable|exception|traceback|not found|no such|missing|"
    r"denied|access denied|permission denied|unauthori[sz]ed|forbidden|bad request|fatal|input validation|mcp error|❌|✗|"
    r"validation error|internal error|unsupported|timed? ?out|unexpected)\b"
    r"|\b(?:not found|no such (?:file|table|column|branch|entity|tool)|does(?: not|n't) exist|already exists|is (?:not|n't) "
    r"(?:found|defined|allowed|permitted|available|configured|a valid)|failed to|error(?: code)?:|error occurred|"
    r"status(?: code)? [45]\d\d|HTTP(?:/[\d.]+)? [45]\d\d|ENOENT|EACCES|ECONNREFUSED|outside (?:of )?(?:the )?allowed|"
    r"must be |validation failed|is required|are required|invalid (?:arguments|input|parameter))",
    re.I,
)
_BAD_STATUS: Final = frozenset(
    {"error", "failed", "failure", "fail", "not_found", "invalid", "rejected", "denied", "unauthorized"}
)


def read(reply: Reply, seconds: float) -> Answer:
    """One answer to `tools/call`."""
    if reply.error:
        said = _object(reply.error)
        return Answer("error", said, str(said.get("message", "")), seconds)
    result = _object(reply.result)
    text = "\n".join(
        str(part.get("text", "")) for part in result.get("content") or () if isinstance(part, dict) and "text" in part
    )
    parsed: Any = result.get("structuredContent")
    if parsed is None:
        parsed = _parsed(text)
    elif isinstance(parsed, dict) and set(parsed) == {"result"}:  # how some frameworks wrap a plain value
        inner = parsed["result"]
        parsed = _parsed(inner) if isinstance(inner, str) else inner
    outcome: Outcome = "done"
    if result.get("isError") is True:
        outcome = "error"
    elif dressed(parsed, text):
        outcome = "dressed"
    return Answer(outcome, parsed, text, seconds)


def dressed(parsed: Any, text: str) -> bool:
    """Whether an answer that says nothing of an error is one: by its members, or, if it is short, by its words."""
    if isinstance(parsed, dict):
        error = parsed.get("error", parsed.get("errors"))
        if error and error not in (0, "none", "None"):
            return True
        if any(parsed.get(key) is False for key in ("success", "ok", "succeeded")):
            return True
        status = parsed.get("status", parsed.get("code"))
        if isinstance(status, str) and status.lower() in _BAD_STATUS:
            return True
        if isinstance(status, int) and not isinstance(status, bool) and 400 <= status < 600 and len(parsed) <= 5:
            return True
        message = parsed.get("message")
        return isinstance(message, str) and len(parsed) <= 2 and bool(_ERROR_WORDS.search(message))
    if isinstance(parsed, list):
        return False
    return len(text) <= _LONGEST_ERROR and bool(_ERROR_WORDS.search(text[:_LONGEST_ERROR]))


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(raw)
    except msgspec.MsgspecError:
        return {}
    return value if isinstance(value, dict) else {}


def _parsed(text: str) -> Any:
    stripped = text.strip()
    if stripped[:1] in ("{", "["):
        try:
            return msgspec.json.decode(stripped.encode())
        except msgspec.MsgspecError:
            pass
    return text


def leaves(value: Any, path: tuple[str | int, ...] = (), depth: int = 0) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Plain values of an answer, each with the path that leads to it."""
    if depth > 12:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key), depth + 1)
    elif isinstance(value, list):
        for number, inner in enumerate(value[:50]):
            yield from leaves(inner, (*path, number), depth + 1)
    elif value is not None:
        yield path, value


_MARKED: Final = re.compile(
    r"(?i)\b([a-z][a-z_ ]{0,20}?(?:id|key|name|path|uuid|hash|sha|token|handle|number|#))\b\"?\s*[:=#]?\s*[\"'`(]?"
    r"([A-Za-z0-9][\w./-]{0,120})"
)
_UUID: Final = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")


def spoken(text: str) -> Iterator[tuple[str, str]]:
    """Names and values that prose holds: `id: 17`, `(ID 4f3a)`, a UUID."""
    for found in _UUID.finditer(text[:20_000]):
        yield "id", found.group()
    for found in _MARKED.finditer(text[:20_000]):
        value = found.group(2).rstrip(".")
        if any(char.isdigit() for char in value) or "/" in value:
            yield found.group(1).strip().replace(" ", "_"), value


def at(parsed: Any, path: tuple[str | int, ...]) -> Any:
    """The value at a path of an answer, or None. A path `("~", key, n)` is the n-th value that prose gives for a key."""
    if path and path[0] == "~":
        text = parsed if isinstance(parsed, str) else ""
        found = [value for key, value in spoken(text) if key == path[1]]
        number = path[2]
        return found[number] if isinstance(number, int) and number < len(found) else None
    for part in path:
        try:
            parsed = parsed[part]
        except (KeyError, IndexError, TypeError):
            return None
    return parsed
