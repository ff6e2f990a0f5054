"""The four hints of `ToolAnnotations`: what a server says of its own tool.

Theory. The wire has three states for each hint: true, false, absent. Only JSON `true` and `false` count; anything
else (`"true"`, 0, 1) is absent and reported as malformed, except `null`, which is merely absent. The spec gives
every absent hint a default (MCP schema, `ToolAnnotations`, unchanged from 2025-03-26 to 2026-07-28): not
read-only, destructive, not idempotent, open world. `destructive` and `idempotent` mean something only for a tool
that is not read-only, so under a true `read_only` they are moot and take their harmless values.

Raw hints keep the three states and are what pins and lint look at; effective hints have two and are what a reader
of the annotations alone would conclude. Neither says what earnest believes: that is `profile`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

HINTS: Final = ("read_only", "destructive", "idempotent", "open_world")
"""The names used everywhere inside earnest and in its policy language."""

WIRE_NAMES: Final = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
}

RISKY: Final = {"read_only": False, "destructive": True, "idempotent": False, "open_world": True}
"""For each hint its riskier value, which is also its default in the specification."""


class RawHints(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The hints as claimed. `None` is absent. `malformed` holds wire names whose value was neither boolean nor null."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    malformed: tuple[str, ...] = ()

    def get(self, hint: str) -> bool | None:
        """The claim for one name of `HINTS`."""
        value: bool | None = getattr(self, hint)
        return value


class EffectiveHints(msgspec.Struct, frozen=True):
    """The hints after the defaults of the specification, moot ones harmless."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


def raw_from_wire(annotations: object) -> RawHints:
    """Read `Tool.annotations` as decoded from JSON. A value that is not an object claims nothing."""
    if not isinstance(annotations, Mapping):
        return RawHints()
    found: dict[str, bool] = {}
    malformed: list[str] = []
    for wire, name in WIRE_NAMES.items():
        value = annotations.get(wire)
        if value is True or value is False:
            found[name] = value
        elif value is not None:
            malformed.append(wire)
    return RawHints(**found, malformed=tuple(malformed))


def raw_from_object(annotations: Any) -> RawHints:
    """Read an SDK object or mapping, in either spelling: `read_only_hint` (SDK 2.x) and `readOnlyHint` (wire, SDK 1.x).

    Where both spellings are present and differ, the riskier claim counts.
    """
    if annotations is None:
        return RawHints()

    def look(name: str) -> object:
        if isinstance(annotations, Mapping):
            return annotations.get(name)
        return getattr(annotations, name, None)

    found: dict[str, bool] = {}
    malformed: list[str] = []
    for wire, name in WIRE_NAMES.items():
        seen: set[bool] = set()
        for spelling in (wire, f"{name}_hint"):
            value = look(spelling)
            if value is True or value is False:
                seen.add(value)
            elif value is not None and wire not in malformed:
                malformed.append(wire)
        if seen:
            found[name] = RISKY[name] if len(seen) == 2 else seen.pop()
    return RawHints(**found, malformed=tuple(malformed))


def effective(raw: RawHints) -> EffectiveHints:
    """Apply the defaults of the specification and the moot rule."""
    read_only = raw.read_only is True
    return EffectiveHints(
        read_only=read_only,
        destructive=not read_only and raw.destructive is not False,
        idempotent=read_only or raw.idempotent is True,
        open_world=raw.open_world is not False,
    )
