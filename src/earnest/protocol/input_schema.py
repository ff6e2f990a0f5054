"""Whether arguments fit a tool's `inputSchema`: the whole of JSON Schema, and never more work than was meant.

`jsonschema-rs` judges: it knows the drafts 4 to 2020-12 (the latter where `$schema` names none, as MCP says since SEP-1613),
fetches nothing here, and matches patterns in linear time. A schema is a server's own text, though, and references can make one
of a few lines take hours: references that branch and meet again. So its size with all references written out is bounded. One
that is larger, or refers to itself, is held to what its top level requires and to the types it gives there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

import jsonschema_rs

MOST_STEPS: Final = 20_000_000
"""Size of the schema, written out, times the length of the arguments in bytes: about a second in the worst case."""
_REFERS: Final = frozenset(("$ref", "$dynamicRef", "$recursiveRef"))
_RENAMES: Final = frozenset(("$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"))
_PATTERN: Final = 200
"""What a pattern counts for: the slowest took 5 µs a character, comparing takes a hundredth."""
_DEPTH: Final = 100


class _Unbounded(Exception):
    """A schema whose size with its references written out cannot be told."""


def validator(schema: Mapping[str, Any]) -> Any:
    """A validator that fetches nothing, or `None` for a schema that is none."""
    linear = jsonschema_rs.RegexOptions()
    try:
        return jsonschema_rs.validator_for(dict(schema), pattern_options=linear, retriever=_refused, validate_formats=False)
    except Exception:  # whatever is wrong with it, it is the server's
        return None


def complaint(schema: object, arguments: object, length: int) -> str:
    """What is wrong with arguments, of `length` bytes as JSON, by a tool's input schema; empty where nothing is, or where the
    schema is none."""
    if not isinstance(schema, Mapping):
        return ""
    try:
        bounded = size(schema) * length <= MOST_STEPS
    except _Unbounded:
        bounded = False
    found = (validator(schema) if bounded else None) or validator(_shallow(schema))
    if found is None:
        return ""
    try:
        found.validate(arguments)  # ends at the first error; to list all can take memory without bound
        return ""
    except jsonschema_rs.ValidationError as wrong:
        error = wrong
    except ValueError:  # deeper than it reads
        return ""
    where = "/".join(str(part) for part in error.instance_path)
    return f"{where[:200]}: {error.message[:300]}" if where else str(error.message[:300])


def size(schema: Mapping[str, Any]) -> int:
    """How many values a schema has with its references written out. Raises `_Unbounded` where one leads back to itself, out of
    the document, or by a name."""
    known: dict[str, int] = {}

    def of(value: object, depth: int, root: bool = False) -> int:
        if depth > _DEPTH:
            raise _Unbounded
        if isinstance(value, list):
            return 1 + sum(of(one, depth + 1) for one in value)
        if not isinstance(value, Mapping):
            return 1
        patterns = value.get("patternProperties")
        total = 1 + _PATTERN * (("pattern" in value) + (len(patterns) if isinstance(patterns, Mapping) else 0))
        for key, inner in value.items():
            if key in _REFERS and isinstance(inner, str):
                total += at(inner, depth)
            elif key in _RENAMES and isinstance(inner, str) and not root:
                raise _Unbounded
            total += of(inner, depth + 1)
        return total

    def at(reference: str, depth: int) -> int:
        if reference not in known:
            if not reference.startswith("#/"):
                raise _Unbounded
            known[reference] = -1
            known[reference] = of(pointed(schema, reference), depth + 1)
        if known[reference] < 0:
            raise _Unbounded
        return known[reference]

    return of(schema, 0, root=True)


def pointed(root: object, reference: str) -> Any:
    """What a reference `#/…` (RFC 6901, percent-encoded) means in a document; `None` where there is nothing."""
    found = root
    for token in unquote(reference)[2:].split("/"):
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found


def _shallow(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    types = {
        name: {"type": one["type"]}
        for name, one in (properties.items() if isinstance(properties, Mapping) else ())
        if isinstance(one, Mapping) and "type" in one
    }
    required = schema.get("required")
    return {"properties": types, **({"required": required} if isinstance(required, list) else {})}


def _refused(address: str) -> Any:
    raise ValueError(f"{address} is not fetched")
