"""Whatever a tool of a program returns, as JSON data that a ledger can read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import msgspec

_DEPTH: Final = 64


def plain(value: Any, depth: int = _DEPTH) -> Any:
    """JSON data of a value: pydantic models and MCP results by their names on the wire, data classes and structs by their
    fields, bytes as text, anything else as what `str` says. Deeper than 64 levels `str` speaks too."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if depth <= 0:
        return str(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return plain(dump(mode="json", by_alias=True, exclude_none=True), depth - 1)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return plain(fields, depth - 1)
    if isinstance(value, msgspec.Struct):
        return plain(msgspec.structs.asdict(value), depth - 1)
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item, depth - 1) for item in value]
    return str(value)
