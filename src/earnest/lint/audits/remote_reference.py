"""A schema that points to the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen

_DEEP: Final = 12


def _check(seen: Seen) -> Iterator[Note]:
    for tool in seen.server.tools:
        for member in ("inputSchema", "outputSchema"):
            found = _remote(tool.definition.get(member), _DEEP)
            if found:
                yield Note(f"its {member} refers to {found}", tool, fix="copy what is referred to into $defs")


def _remote(value: Any, left: int) -> str:
    if not left:
        return ""
    if isinstance(value, Mapping):
        reference = value.get("$ref", value.get("$dynamicRef"))
        if isinstance(reference, str) and not reference.startswith("#"):
            return reference
        for key, inner in value.items():
            if key not in ("enum", "const", "default", "examples", "description") and (found := _remote(inner, left - 1)):
                return found
    elif isinstance(value, list):
        for inner in value:
            if found := _remote(inner, left - 1):
                return found
    return ""


AUDIT = Audit(
    id="remote-reference",
    severity="warning",
    confidence="high",
    what="A `$ref` in a schema that leaves the schema.",
    why="Who follows it asks an address that the server chose, and what comes back can change without the definition "
    "changing. Clients do not follow it, so the parameter is not described.",
    how="Copy the definition into `$defs`.",
    example="Schemas generated from an OpenAPI document whose components were not copied along.",
    check=_check,
)
