"""Reading a checked table: every wrong key or type is an error with its line, its column and the nearest
known name.

A `Table` is asked for each key it may hold, by type; `finish` then refuses whatever was never asked for. So
the code that reads a section is also the list of what the section knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import msgspec

from earnest.config.document import Node, nearest, place
from earnest.config.variables import Template, parse
from earnest.core.errors import EarnestError


class Source(msgspec.Struct, frozen=True):
    """A file's path and bytes, for places in messages."""

    path: str
    data: bytes

    def fail(self, node: Node, code: str, message: str, remedy: str = "") -> NoReturn:
        """Raise `EarnestError` at a node's place."""
        raise EarnestError(code, f"{place(self.path, self.data, node.start)}: {message}", remedy)


_WORDS = {
    "object": "a table",
    "array": "a list",
    "string": "text in quotes",
}


def kind_of(node: Node) -> str:
    """What a value is, in words."""
    if node.kind != "other":
        return _WORDS[node.kind]
    if isinstance(node.value, bool):
        return str(node.value).lower()
    return f"{node.value}"


class Table:
    """One table under reading. `name`: its dotted name, for messages (`servers.github`; empty at the top)."""

    def __init__(self, source: Source, node: Node, name: str) -> None:
        self.source, self.node, self.name = source, node, name
        self._known: list[str] = []
        if node.kind != "object":
            source.fail(node, "E1004", f"{name} must be a table, but is {kind_of(node)}", f"write [{name}]")

    def path(self, key: str) -> str:
        """The dotted name of a key in this table."""
        return f"{self.name}.{key}" if self.name else key

    def fail(self, key: str, code: str, message: str, remedy: str = "") -> NoReturn:
        """Raise at the value of a key, or at the table where the key is missing."""
        self.source.fail(self.node.get(key) or self.node, code, message, remedy)

    def take(self, key: str) -> Node | None:
        """The value of a key as it stands; the key counts as known."""
        self._known.append(key)
        return self.node.get(key)

    def has(self, key: str) -> bool:
        """Whether the key is written here."""
        return self.node.get(key) is not None

    def finish(self) -> None:
        """Refuse keys nobody asked for: E1003 with the nearest known one."""
        for member in self.node.members:
            if member.key not in self._known:
                line = place(self.source.path, self.source.data, member.start)
                raise EarnestError(
                    "E1003",
                    f"{line}: unknown key {self.path(member.key)}",
                    nearest(member.key, sorted(set(self._known))),
                )

    def _wrong(self, key: str, node: Node, wanted: str) -> NoReturn:
        self.source.fail(node, "E1004", f"{self.path(key)} must be {wanted}, but is {kind_of(node)}")

    def text(self, key: str, default: str = "") -> str:
        """Text; may be empty."""
        node = self.take(key)
        if node is None:
            return default
        if not isinstance(node.value, str):
            self._wrong(key, node, "text in quotes")
        return node.value

    def choice(self, key: str, words: Sequence[str], default: str) -> str:
        """One of some words. Raises E1005 with the nearest."""
        node = self.take(key)
        if node is None:
            return default
        if not isinstance(node.value, str):
            self._wrong(key, node, "one of " + ", ".join(f'"{word}"' for word in words if word))
        if node.value not in words:
            self.source.fail(
                node,
                "E1005",
                f'{self.path(key)} = "{node.value}" is not one of ' + ", ".join(f'"{word}"' for word in words if word),
                nearest(node.value, [word for word in words if word]),
            )
        return node.value

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        value = self.maybe(key)
        return default if value is None else value

    def maybe(self, key: str) -> bool | None:
        """true, false, or None where the key is missing."""
        node = self.take(key)
        if node is None:
            return None
        if not isinstance(node.value, bool):
            self._wrong(key, node, "true or false")
        return node.value

    def number(self, key: str, default: float, *, least: float = 0, most: float = float("inf")) -> float:
        """A finite number within bounds, whole or not."""
        node = self.take(key)
        if node is None:
            return default
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            self._wrong(key, node, "a number")
        if not least <= node.value <= most or node.value == float("inf"):
            bounds = f"at least {least:g}" if most == float("inf") else f"from {least:g} to {most:g}"
            self.source.fail(node, "E1005", f"{self.path(key)} = {node.value:g} must be {bounds}")
        return float(node.value)

    def whole(self, key: str, default: int, *, least: int = 0, most: int = 2**31) -> int:
        """A whole number within bounds."""
        node = self.node.get(key)
        if node is not None and isinstance(node.value, float):
            self._wrong(key, node, "a whole number")
        return int(self.number(key, default, least=least, most=most))

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of text; empty where the key is missing."""
        return tuple(item for item, _ in self._texts(key))

    def templates(self, key: str) -> tuple[Template, ...]:
        """A list of text that may hold references."""
        return tuple(
            self._parse(item, node, f"{self.path(key)}[{index}]") for index, (item, node) in enumerate(self._texts(key))
        )

    def _texts(self, key: str) -> list[tuple[str, Node]]:
        node = self.take(key)
        if node is None:
            return []
        if node.kind != "array":
            self._wrong(key, node, "a list of text")
        found = []
        for index, item in enumerate(node.items):
            if not isinstance(item.value, str):
                self.source.fail(item, "E1004", f"{self.path(key)}[{index}] must be text in quotes, but is {kind_of(item)}")
            found.append((item.value, item))
        return found

    def template(self, key: str) -> Template | None:
        """Text that may hold references; None where the key is missing."""
        node = self.node.get(key)
        text = self.text(key)
        return None if node is None else self._parse(text, node, self.path(key))

    def template_map(self, key: str) -> dict[str, Template]:
        """A table of text that may hold references."""
        table = self.table(key)
        return (
            {}
            if table is None
            else {
                member.key: self._parse(table.text(member.key), member.node, table.path(member.key))
                for member in table.node.members
            }
        )

    def _parse(self, text: str, node: Node, field: str) -> Template:
        if "\0" in text:
            self.source.fail(node, "E1005", f"{field} holds a NUL, which no process or header can carry")
        try:
            return parse(text, field)
        except EarnestError as error:
            self.source.fail(node, error.code, error.message, error.remedy)

    def table(self, key: str) -> Table | None:
        """A table within, or None."""
        node = self.take(key)
        return None if node is None else Table(self.source, node, self.path(key))

    def tables(self, key: str) -> list[Table]:
        """The tables of an array of tables."""
        node = self.take(key)
        if node is None:
            return []
        if node.kind != "array":
            self._wrong(key, node, "a list of tables")
        return [Table(self.source, item, f"{self.path(key)}[{index}]") for index, item in enumerate(node.items)]

    def named(self, key: str) -> list[tuple[str, Table]]:
        """The tables of a table of tables, with their names (`[servers.x]`, `[servers.y]`)."""
        table = self.table(key)
        if table is None:
            return []
        return [
            (
                m.key,
                Table(self.source, m.node, f"{self.name + '.' if self.name else ''}{key}.{_quoted(m.key)}"),
            )
            for m in table.node.members
        ]


def _quoted(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() else f'"{key}"'
