"""Which results can carry no text of strangers, by the shape their schema pins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_PLAIN_FORMATS: Final = frozenset(("date", "time", "date-time", "duration", "uuid"))
_PLAIN_TYPES: Final = frozenset(("number", "integer", "boolean", "null"))
_CLOSING: Final = ("additionalProperties", "unevaluatedProperties")
_KNOWN: Final = frozenset(
    (
        "$schema", "type", "title", "description", "properties", "required", "items", "enum", "const", "format",
        "additionalProperties", "unevaluatedProperties", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
        "multipleOf", "minItems", "maxItems", "uniqueItems", "default", "examples",
    )
)  # fmt: skip
_DEPTH: Final = 16


def only_plain_values(schema: object, depth: int = 0) -> bool:
    """Whether every value a JSON Schema admits is a number, boolean, null, date, enumerated value or UUID, in closed objects
    and arrays. Anything the reader does not know says no: absent is worst."""
    if depth > _DEPTH or not isinstance(schema, Mapping) or not schema or not _KNOWN.issuperset(schema):
        return False
    if "const" in schema or "enum" in schema:
        return True
    kinds = schema.get("type")
    names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    if not names:
        return False
    for name in names:
        if name in _PLAIN_TYPES:
            continue
        if name == "string" and schema.get("format") in _PLAIN_FORMATS:
            continue
        if name == "object" and _closed(schema, depth):
            continue
        if name == "array" and only_plain_values(schema.get("items"), depth + 1):
            continue
        return False
    return True


def _closed(schema: Mapping[str, object], depth: int) -> bool:
    inner = schema.get("properties")
    if not isinstance(inner, Mapping) or not any(schema.get(word) is False for word in _CLOSING):
        return False
    return all(only_plain_values(value, depth + 1) for value in inner.values())


_FORMAT: Final = {
    "date": re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII),
    "time": re.compile(r"\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?\Z", re.ASCII),
    "date-time": re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?([Zz]|[+-]\d{2}:\d{2})?\Z", re.ASCII),
    "duration": re.compile(r"-?P[0-9YMWDTHS.]{1,40}\Z", re.ASCII),
    "uuid": re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z", re.ASCII),
}


def conforms(value: object, schema: object) -> bool:
    """Whether a value is what a schema of plain values admits. Bounds (minimum and the like) carry no text, so they are passed
    over."""
    if not isinstance(schema, Mapping):
        return False
    if "const" in schema:
        return _same(value, schema["const"])
    if "enum" in schema:
        choices = schema["enum"]
        return isinstance(choices, list) and any(_same(value, choice) for choice in choices)
    kinds = schema.get("type")
    names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    return any(_is_a(value, name, schema) for name in names)


def _is_a(value: object, name: object, schema: Mapping[str, object]) -> bool:
    if name == "null":
        return value is None
    if name == "boolean":
        return isinstance(value, bool)
    if name in ("number", "integer"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if name == "string":
        pattern = _FORMAT.get(str(schema.get("format")))
        return isinstance(value, str) and pattern is not None and pattern.match(value) is not None
    if name == "array":
        return isinstance(value, list) and all(conforms(item, schema.get("items")) for item in value)
    if name == "object":
        inner = schema.get("properties")
        if not isinstance(value, dict) or not isinstance(inner, Mapping):
            return False
        return all(key in inner and conforms(item, inner[key]) for key, item in value.items())
    return False


def _same(a: object, b: object) -> bool:
    return a == b and isinstance(a, bool) == isinstance(b, bool)
