"""What came back from a call: error or not, of which type, under which labels.

Theory. A result is read where labels can stand: its own `_meta`, that of every content block, and that of
every embedded resource, prompt message and inlined task result. A restricting label anywhere restricts the
whole. A relaxing one counts for the whole only where it stands on the whole, or on every single part of it:
one unlabelled block, or structured content (which has no place for a label of its own), and it says nothing.
What cannot be read is worst, and never an exception: a server must not be able to make labels vanish by
answering garbage.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any, Final

import msgspec

from earnest.core.canonical import members
from earnest.core.errors import EarnestError
from earnest.protocol.labels import NOT_PRIVATE, NOT_UNTRUSTED, WORST, Facts, meta_bits, settle

_NAMES: Final = (
    "_meta",
    "content",
    "contents",
    "messages",
    "structuredContent",
    "isError",
    "resultType",
    "inputRequests",
    "requestState",
    "taskId",
    "task",
    "status",
    "result",
    "error",
)
_RESULT_NAMES: Final = frozenset(_NAMES)
_FOLDED: Final = frozenset(name.casefold() for name in _RESULT_NAMES)
_RELAXING: Final = NOT_PRIVATE | NOT_UNTRUSTED


class Outcome(msgspec.Struct, frozen=True):
    """A result as read. `result_type` is `complete` where the server said nothing, and `""` where it cannot
    be read.

    `structured` is raw `structuredContent` or `b""`; `task_id` the id of a task that was created or is
    reported; `input_requests` and `request_state` the raw members of an `input_required` result; `members`
    all of its members as raw slices (empty where malformed).
    """

    is_error: bool
    result_type: str
    restrict: Facts
    relax: Facts
    malformed: bool = False
    structured: bytes = b""
    task_id: str = ""
    status: str = ""
    input_requests: bytes = b""
    request_state: bytes = b""
    members: dict[str, bytes] = {}


class _Resource(msgspec.Struct):
    meta: Any = msgspec.field(default=None, name="_meta")


class _Block(msgspec.Struct):
    meta: Any = msgspec.field(default=None, name="_meta")
    resource: _Resource | None = None


class _Message(msgspec.Struct):
    content: _Block | list[_Block] | None = None
    meta: Any = msgspec.field(default=None, name="_meta")


_blocks: Final = msgspec.json.Decoder(list[_Block] | _Block | None).decode
_messages: Final = msgspec.json.Decoder(list[_Message]).decode
_top: Final[Callable[[bytes], dict[str, bytes]]] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode  # type: ignore[assignment]
_any: Final = msgspec.json.Decoder().decode

_MALFORMED: Final = settle(WORST)


def outcome(result: bytes) -> Outcome:
    """Read a result. Never raises."""
    try:
        return _read(result, nested=False)
    except (msgspec.MsgspecError, EarnestError, RecursionError, UnicodeError, ValueError):
        return Outcome(True, "", _MALFORMED.restrict, _MALFORMED.relax, malformed=True)


def _read(result: bytes, *, nested: bool) -> Outcome:
    seen = _members(result)
    bits = _part_bits(seen)
    if "_meta" in seen:
        bits |= meta_bits(_any(seen["_meta"]))

    status = _string(seen, "status") if "status" in seen else ""
    task_id = _string(seen, "taskId") if "taskId" in seen else ""
    is_error = False
    if "isError" in seen:
        is_error = seen["isError"] not in (b"false", b"null")
    if "task" in seen and seen["task"][:1] == b"{":  # 2025-11-25: CreateTaskResult
        task = members(seen["task"])
        task_id, status = _string(task, "taskId"), _string(task, "status")
    if not nested and seen.get("result", b"")[:1] == b"{" and task_id:  # a finished task carries its result
        inner = _read(seen["result"], nested=True)
        is_error = is_error or inner.is_error
        bits |= _bits(inner)
    result_type = "complete"
    if seen.get("resultType", b"null") not in (b"null", b'"complete"'):
        result_type = msgspec.json.decode(seen["resultType"], type=str)
    if result_type == "complete" and "task" in seen and task_id and "content" not in seen:
        result_type = "task"
    found = settle(bits)
    return Outcome(
        is_error,
        result_type,
        found.restrict,
        found.relax,
        structured=seen.get("structuredContent", b""),
        task_id=task_id,
        status=status,
        input_requests=seen.get("inputRequests", b""),
        request_state=seen.get("requestState", b""),
        members=seen,
    )


def _members(result: bytes) -> dict[str, bytes]:
    """The members with a meaning, as raw slices. Raises `ValueError` or `EarnestError` where they are
    ambiguous."""
    seen = _top(result)
    length = 1
    for name, raw in seen.items():
        seen[name] = value = bytes(raw)
        length += len(name) + len(value) + 4  # two quotes, a colon, and a comma or the closing brace
    # As in the envelope: equal lengths leave no room for a member that was overwritten.
    if length == len(result) and _RESULT_NAMES.issuperset(seen):
        return seen
    seen = members(result)
    for name in seen:
        # A client that folds case would read another result than this one.
        if name not in _RESULT_NAMES and unicodedata.normalize("NFKC", name).casefold() in _FOLDED:
            raise ValueError(name)
    return seen


def _part_bits(seen: dict[str, bytes]) -> int:
    """Facts on the parts of a result; those that relax only where every part has them."""
    parts: list[int] = []
    for name in ("content", "contents"):
        if name in seen:
            blocks = _blocks(seen[name])
            for block in blocks if isinstance(blocks, list) else [blocks] if blocks else []:
                parts.append(0 if block.meta is None and block.resource is None else _block_bits(block))
    if "messages" in seen:
        for message in _messages(seen["messages"]):
            content = message.content
            mine = meta_bits(message.meta)
            if content is None:
                parts.append(mine)
            for block in content if isinstance(content, list) else [content] if content else []:
                parts.append(mine | _block_bits(block))
    if seen.get("structuredContent", b"null") != b"null":
        parts.append(0)
    union, common = 0, _RELAXING
    for bits in parts:
        union |= bits
        common &= bits
    return (union & ~_RELAXING) | (common if parts else 0)


def _block_bits(block: _Block) -> int:
    bits = meta_bits(block.meta)
    if block.resource is not None:
        bits |= meta_bits(block.resource.meta)
    return bits


def _bits(read: Outcome) -> int:
    """Only what restricts leaves an inlined result: around it stands more that it does not speak for."""
    return (1 if read.restrict.private else 0) | (2 if read.restrict.untrusted else 0)


def _string(seen: dict[str, bytes], name: str) -> str:
    """A string, `""` where there is none: tools put members of their own beside the content."""
    raw = seen.get(name, b"")
    return msgspec.json.decode(raw, type=str) if raw[:1] == b'"' else ""
