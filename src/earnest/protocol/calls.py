"""What a call names, read from raw JSON; and edits that leave every other byte alone.

Theory. What is judged is what is forwarded: a call is read through `members`, which refuses duplicate names,
and a name that a lenient parser could take for one that matters (`Arguments`, full-width letters) is refused
as well. What is built again from those members carries each value as the raw slice it came as.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from earnest.core.canonical import build, members
from earnest.core.errors import EarnestError
from earnest.protocol.envelope import INVALID_PARAMS, WireError
from earnest.protocol.methods import Method

_REQUEST_NAMES: Final = frozenset(
    (
        "name",
        "arguments",
        "uri",
        "ref",
        "argument",
        "context",
        "taskId",
        "task",
        "cursor",
        "level",
        "notifications",
        "inputResponses",
        "requestState",
        "_meta",
    )
)
_FOLDED: Final = {name.casefold(): name for name in _REQUEST_NAMES}

_KEPT_METAS: Final = 64
_KEPT_META_BYTES: Final = 4096

_decode_str: Final = msgspec.json.Decoder(str).decode
_encode: Final = msgspec.json.Encoder().encode


class Subject(msgspec.Struct, frozen=True):
    """The object a call names. `kind` is `tool`, `resource`, `prompt` or `task`; `name` its name, URI or
    id."""

    kind: str
    name: str


def read_params(params: bytes) -> dict[str, bytes]:
    """The members of `params`, each a raw slice; none for empty params.

    Raises `WireError` -32602 for a duplicate, or a name that can be mistaken for one with a meaning.
    """
    if not params:
        return {}
    try:
        seen = members(params)
    except EarnestError as reason:
        raise WireError(INVALID_PARAMS, reason.message, code=reason.code) from None
    if not _REQUEST_NAMES.issuperset(seen):
        for name in seen:
            if name not in _REQUEST_NAMES and unicodedata.normalize("NFKC", name).casefold() in _FOLDED:
                raise WireError(INVALID_PARAMS, f"member {name!r} of params can be mistaken for another")
    return seen


def text(seen: Mapping[str, bytes], name: str) -> str:
    """The string under `name`. Raises `WireError` -32602 where it is missing or no string."""
    raw = seen.get(name, b"")
    try:
        return _decode_str(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise WireError(INVALID_PARAMS, f"params need a string {name!r}") from None


def arguments(seen: Mapping[str, bytes]) -> bytes:
    """The arguments of a tool call (its params as `read_params` gave them), raw; `{}` where absent or null.

    Raises `WireError` -32602 where they are no object.
    """
    raw = seen.get("arguments", b"null")
    if raw == b"null":
        return b"{}"
    if raw[:1] != b"{":
        raise WireError(INVALID_PARAMS, "arguments must be an object")
    return raw


def subject(method: Method, seen: Mapping[str, bytes]) -> Subject | None:
    """The object that a message of `method` names in its params (as `read_params` gave them); `None` if it
    names none.

    Raises `WireError` -32602 where the name is missing, no string, or a reference of an unknown type.
    """
    if method.names == "":
        return None
    if method.names == "ref":
        reference = read_object(seen.get("ref", b""), "ref")
        kind = text(reference, "type")
        if kind == "ref/prompt":
            return Subject("prompt", text(reference, "name"))
        if kind == "ref/resource":
            return Subject("resource", text(reference, "uri"))
        raise WireError(INVALID_PARAMS, "ref must be a ref/prompt or a ref/resource")
    named = text(seen, method.names)
    if method.names == "uri":
        return Subject("resource", named)
    if method.names == "taskId":
        return Subject("task", named)
    return Subject("prompt" if method.kind == "prompt" else "tool", named)


class Meta:
    """A request's `_meta` as read. Shared by all requests that carry the same bytes: never changed."""

    __slots__ = ("facts", "members")

    def __init__(self, members: Mapping[str, bytes]) -> None:
        self.members = members
        self.facts: Any = None
        """What `eras.modern_meta` found in it, once it was asked; None where that refused it."""


NO_META: Final = Meta({})


class Metas:
    """Reads `_meta`, the same bytes only once: clients send one with all their requests. Bounded."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, Meta] = {}

    def read(self, members: Mapping[str, bytes]) -> Meta:
        """The `_meta` among the members of params; an absent or null one is empty. Raises `WireError` -32602."""
        raw = members.get("_meta", b"null")
        known = self._known.get(raw)
        if known is not None:
            return known
        if raw == b"null":
            return NO_META
        read = Meta(read_object(raw, "_meta"))
        # One with a progress token is some request's own.
        if len(raw) <= _KEPT_META_BYTES and "progressToken" not in read.members:
            if len(self._known) >= _KEPT_METAS:
                self._known.clear()
            self._known[raw] = read
        return read


def read_object(raw: bytes, what: str) -> dict[str, bytes]:
    """The members of one object inside a message. Raises `WireError` -32602 naming `what`."""
    try:
        return members(raw)
    except EarnestError as reason:
        raise WireError(INVALID_PARAMS, f"{what}: {reason.message}", code=reason.code) from None


def string(value: str) -> bytes:
    """The raw JSON of a string."""
    return _encode(value)


def with_member(raw: bytes, name: str, value: bytes) -> bytes:
    """The object `raw` with one member set; the others keep their bytes and order, a new one comes last."""
    seen = members(raw)
    if name in seen:
        seen[name] = value
        return build(seen)
    # Appending before the last brace leaves all that was there as it stood.
    end = raw.rstrip(b" \t\r\n")[:-1]
    return b"%b%b%b:%b}" % (end, b"," if seen else b"", _encode(name), value)


def with_meta(raw: bytes, key: str, value: bytes) -> bytes:
    """The object `raw` (a result, params, a tool, a content block) with one member of its `_meta` set.

    A `_meta` that is null or no object is replaced, because nothing can be added to it.
    """
    seen = members(raw)
    old = seen.get("_meta", b"null")
    if old[:1] == b"{":
        return with_member(raw, "_meta", with_member(old, key, value))
    return with_member(raw, "_meta", build({key: value}))
