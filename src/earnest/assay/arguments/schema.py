"""JSON Schema 2020-12 as the generator reads it: references followed, `allOf` folded in, alternatives spelled out.

Only references inside the document are followed (RFC 6901 pointers, `$anchor`, `$id` of the document, `$dynamicRef` as a plain
reference); nothing is ever fetched. Validation is that of `protocol/input_schema.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from earnest.protocol.input_schema import pointed, validator

JsonSchema = Mapping[str, Any]
_LIMIT_UP: Final = ("minLength", "minItems", "minProperties", "minimum", "exclusiveMinimum", "minContains")
_LIMIT_DOWN: Final = ("maxLength", "maxItems", "maxProperties", "maximum", "exclusiveMaximum", "maxContains")
_HOPS: Final = 30


class Document:
    """A tool's whole input schema, with which its parts are read."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self._anchors: dict[str, Any] | None = None
        self._parts: dict[bytes, Any] = {}
        self._validator = validator(root)

    @property
    def sound(self) -> bool:
        """Whether the schema can be used to validate."""
        return self._validator is not None

    def valid(self, value: Any) -> bool:
        """Whether a value satisfies the whole schema."""
        try:
            return self._validator is None or bool(self._validator.is_valid(value))
        except Exception:
            return True

    def fits(self, schema: Any, value: Any) -> bool:
        """Whether a value satisfies a part of it that holds no references."""
        if schema is True or schema == {}:
            return True
        if schema is False:
            return False
        try:
            key = msgspec.json.encode(schema)
            if key not in self._parts:
                definitions = {name: self.root[name] for name in ("$defs", "definitions") if name in self.root}
                self._parts[key] = validator({**definitions, **schema})
            part = self._parts[key]
            return part is None or bool(self._parts[key].is_valid(value))
        except Exception:
            return True

    def followed(self, schema: Any, depth: int = 0) -> tuple[JsonSchema, int]:
        """The schema with its references followed and `allOf` folded in, and how many references that took. A schema that
        allows everything is empty; one that allows nothing has `not: {}`."""
        if schema is True or schema is None:
            return {}, 0
        if schema is False or not isinstance(schema, Mapping):
            return {"not": {}}, 0
        hops = 0
        current: dict[str, Any] = dict(schema)
        while hops < _HOPS:
            reference = current.pop("$ref", None) or current.pop("$dynamicRef", None) or current.pop("$recursiveRef", None)
            if not isinstance(reference, str):
                break
            hops += 1
            target = self._at(reference)
            if isinstance(target, Mapping):
                current = merged(target, current)
        parts = current.pop("allOf", None)
        if isinstance(parts, list) and depth < _HOPS:
            for part in parts[:50]:
                inner, more = self.followed(part, depth + 1)
                hops += min(more, 1)
                current = merged(current, inner)
        return current, hops

    def _at(self, reference: str) -> Any:
        base, _, fragment = reference.partition("#")
        if base and base != self.root.get("$id"):
            return None
        if fragment.startswith("/"):
            return pointed(self.root, f"#{fragment}")
        if not fragment:
            return self.root
        if self._anchors is None:
            self._anchors = dict(_anchors(self.root))
        return self._anchors.get(fragment)


def _anchors(value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    if depth > 30:
        return
    if isinstance(value, Mapping):
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(value.get(key), str):
                yield value[key], value
        for inner in value.values():
            yield from _anchors(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _anchors(inner, depth + 1)


def merged(one: JsonSchema, other: JsonSchema) -> dict[str, Any]:
    """Two schemas that both hold, as one, as far as keywords can be joined; where they cannot, the second's counts and the
    validator has the last word."""
    result = dict(one)
    for key, value in other.items():
        old = result.get(key)
        if old is None or old == value:
            result[key] = value
        elif key in ("properties", "$defs", "patternProperties", "dependentSchemas", "dependentRequired"):
            result[key] = _joined(old, value)
        elif key == "required":
            result[key] = list(dict.fromkeys([*old, *value]))
        elif key in _LIMIT_UP:
            result[key] = max(old, value)
        elif key in _LIMIT_DOWN:
            result[key] = min(old, value)
        elif key == "enum":
            result[key] = [item for item in value if item in old]
        elif key == "type":
            both = [kind for kind in types(value) if kind in types(old) or (kind == "integer" and "number" in types(old))]
            result[key] = both or value
        elif key in ("oneOf", "anyOf", "not", "if") and key in result:
            result.setdefault("allOf", [])
            result["allOf"] = [*result["allOf"], {key: value}]
        else:
            result[key] = value
    return result


def _joined(old: Any, value: Any) -> dict[str, Any]:
    found = dict(old)
    for name, inner in value.items():
        if name in found and isinstance(found[name], Mapping) and isinstance(inner, Mapping):
            found[name] = merged(found[name], inner)
        else:
            found[name] = inner
    return found


def types(value: Any) -> list[str]:
    """The `type` keyword as a list."""
    return [value] if isinstance(value, str) else [kind for kind in value or () if isinstance(kind, str)]
