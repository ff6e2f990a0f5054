"""What lint looks at and what it says: servers with their tools, findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from earnest.core.hints import RawHints, raw_from_wire

Severity: TypeAlias = Literal["error", "warning", "note"]
Confidence: TypeAlias = Literal["high", "medium", "low"]
Persona: TypeAlias = Literal["regular", "pedantic"]
Hint: TypeAlias = Literal["read_only", "destructive", "idempotent", "open_world"]

SEVERITIES: Final[tuple[Severity, ...]] = ("note", "warning", "error")
CONFIDENCES: Final[tuple[Confidence, ...]] = ("low", "medium", "high")
UNREADABLE: Final = "<not a literal>"
"""What stands for a hint that is set in source by something that is no literal: it is there, and nobody knows what it says."""
WIRE: Final[dict[Hint, str]] = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}


class Place(msgspec.Struct, frozen=True):
    """Where a tool is defined: a file, and a line counted from 1 (0 where lines mean nothing)."""

    path: str
    line: int = 0


class Unread(msgspec.Struct, frozen=True):
    """A source file that could define tools and cannot be read: why, and where. `ignored`: as of a tool."""

    place: Place
    why: str
    ignored: frozenset[str] = frozenset()


class Tool(msgspec.Struct, frozen=True):
    """A tool as its server lists it, decoded. `ignored`: audits that a comment beside its source switches off ('*' for all)."""

    name: str
    definition: Mapping[str, Any]
    raw: RawHints
    place: Place | None = None
    ignored: frozenset[str] = frozenset()

    @property
    def description(self) -> str:
        """Its description; empty where it has none."""
        return _text(self.definition.get("description"))

    @property
    def title(self) -> str:
        """Its `title` (the one of the tool, not the one in its annotations)."""
        return _text(self.definition.get("title"))

    @property
    def annotations(self) -> Mapping[str, Any]:
        """Its annotations object; empty where it has none, or something else in its place."""
        return _object(self.definition.get("annotations"))

    @property
    def meta(self) -> Mapping[str, Any]:
        """Its `_meta`."""
        return _object(self.definition.get("_meta"))

    @property
    def schema(self) -> Mapping[str, Any]:
        """Its input schema."""
        return _object(self.definition.get("inputSchema"))

    @property
    def properties(self) -> Mapping[str, Any]:
        """The properties of its input schema."""
        return _object(self.schema.get("properties"))


class Server(msgspec.Struct, frozen=True):
    """One answer to `tools/list`, with what is known around it. `earlier`: an older answer of the same server. `unread`: source
    that could have defined more."""

    name: str
    tools: tuple[Tool, ...]
    info: Mapping[str, Any] = {}
    protocol: str = ""
    package: str = ""
    instructions: str = ""
    source: str = ""
    live: bool = False
    earlier: tuple[Tool, ...] | None = None
    modern: bool | None = None
    unread: tuple[Unread, ...] = ()


class Finding(msgspec.Struct, frozen=True):
    """One thing an audit says. `tool` is None for a whole server; `fix` may be empty."""

    audit: str
    server: str
    tool: str | None
    hint: Hint | None
    severity: Severity
    confidence: Confidence
    message: str
    fix: str = ""
    persona: Persona = "regular"
    place: Place | None = None


def tool_of(definition: Mapping[str, Any], place: Place | None = None, ignored: frozenset[str] = frozenset()) -> Tool:
    """A tool from its decoded definition."""
    name = definition.get("name")
    return Tool(name if isinstance(name, str) else "", definition, raw_from_wire(definition.get("annotations")), place, ignored)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
