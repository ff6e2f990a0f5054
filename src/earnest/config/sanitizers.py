"""`[sanitizers.NAME]` of earnest.toml: which fields of a tool's results are left."""

from __future__ import annotations

import re
from typing import Final, cast

import msgspec

from earnest.config.reading import Table
from earnest.config.sections import source_of
from earnest.core.sanitize import TYPES, Field, Sanitizer, Type

_PATH: Final = re.compile(r"[^.\[\]]+(?:\[\])?(?:\.[^.\[\]]+(?:\[\])?)*|\[\](?:\.[^.\[\]]+(?:\[\])?)*")
_SHORTEST: Final = 1
_WORD: Final = re.compile(r"\S{1,64}")


class ToolSanitizer(msgspec.Struct, frozen=True):
    """A sanitizer and the tool that it is for."""

    server: str
    tool: str
    sanitizer: Sanitizer


def sanitizer(name: str, table: Table) -> ToolSanitizer:
    """Read one `[sanitizers.NAME]`. Raises E1003 to E1006."""
    target = table.text("tool")
    server, slash, tool = target.partition("/")
    if not slash or not server or not tool:
        table.fail("tool", "E1006", f'{table.path("tool")}: "{target}" names no tool', 'write tool = "SERVER/TOOL"')
    inner = table.table("fields")
    if inner is None or not inner.node.members:
        table.source.fail(table.node, "E1005", f"{table.name} names no field", 'write fields = { "order.total" = "number" }')
    fields = tuple(_field(inner, member.key) for member in inner.node.members)
    table.finish()
    return ToolSanitizer(server, tool, Sanitizer(name, fields, source_of(table)))


def _field(table: Table, path: str) -> Field:
    if not _PATH.fullmatch(path):
        table.fail(path, "E1005", f'{table.name}: "{path}" is no path', "write it as in order.total or items[].id")
    node = table.node.get(path)
    if node is not None and node.kind == "array":
        values = table.texts(path)
        if len(values) < _SHORTEST or not all(_WORD.fullmatch(word) for word in values):
            table.fail(path, "E1005", f"{table.path(path)} is no list of single words, so it could hold anything")
        return Field(path, "enum", values)
    wanted = tuple(one for one in TYPES if one != "enum")
    return Field(path, cast(Type, table.choice(path, wanted, "")))
