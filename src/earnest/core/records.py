"""Records of structured results, kept as they came: what the user's words may single out among them.

Theory. A record is one object of a result that is data by its form. A stranger writes into its fields, but not which fields it
has, nor whose it is: sender, channel and amount of a message or a payment are the server's word. So a record may tell which
link a named person posted, or how much a named payer paid. A record counts only for its own server, and only beside the call
that brought it (`called`). What no longer finds room is lost for good (`lost`), and then no record tells anything: one that
would have spoken against another may be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from earnest.core.results import scalar_key
from earnest.core.values import fold, leaves, tokens

LIMIT: Final = 512 * 1024
"""Bytes of memory that records may take in one conversation, as estimated."""
_SHORT: Final = 120
_LONG: Final = 4000
_FIELDS: Final = 40
_RECORD_COST: Final = 700
_FIELD_COST: Final = 160
_MEMBER: Final = 40


class Record(msgspec.Struct, frozen=True, eq=False):
    """One record. `fields`: its short scalars, by name in lower case; `texts`: its strings as they are compared; `called`: the
    arguments of the call that brought it; `group`: which call that was;
    `trusted`: its source is one that strangers do not write in."""

    server: str
    called: tuple[str, ...]
    fields: Mapping[str, str]
    texts: tuple[str, ...]
    group: int
    trusted: bool = False


class Records:
    """The records of one conversation. Mutable, bounded, nothing is taken out again."""

    __slots__ = ("_groups", "_linked", "_members", "_size", "all", "limit", "lost")

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.lost = False
        self.all: list[Record] = []
        self._size = 0
        self._linked: dict[str, list[Record]] = {}
        self._groups: list[dict[str, set[str]]] = []
        self._members: set[tuple[str, str]] = set()

    def took(self, data: Any, server: str, arguments: Any, *, trusted: bool = False) -> None:
        """Take in what of a result is data by its form."""
        called = tuple(
            key
            for _, value in leaves(arguments)
            if not isinstance(value, bool) and len(str(value)) <= _SHORT
            if (key := scalar_key(value))
        )
        if not isinstance(data, Mapping | list | tuple) or self.lost:
            return
        self._groups.append({})
        stack: list[Any] = [data]
        while stack and not self.lost:
            item = stack.pop()
            if isinstance(item, Mapping):
                self._record(item, server, called, trusted)
                stack.extend(item.values())
            elif isinstance(item, list | tuple):
                stack.extend(item)

    def _record(self, item: Mapping[str, Any], server: str, called: tuple[str, ...], trusted: bool) -> None:
        fields: dict[str, str] = {}
        texts: list[str] = []
        cost = _RECORD_COST
        for name, value in item.items():
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                continue
            if len(fields) >= _FIELDS:
                self.lost = True  # what is left out could speak against what is kept
                return
            text = str(value)
            if isinstance(value, str):
                texts.append(fold(text[:_LONG]))
            cost += _FIELD_COST + len(text[:_LONG])
            if len(text) <= _SHORT and (key := scalar_key(value)):
                fields[str(name).casefold().rstrip("_")] = key
        if not fields or not self.pay(cost):
            return
        record = Record(server, called, fields, tuple(texts), len(self._groups) - 1, trusted)
        self.all.append(record)
        group = self._groups[-1]
        for name, key in fields.items():
            group.setdefault(name, set()).add(key)
            if len(key) <= _MEMBER and all(part[0] == "w" for part in key.split(" ")):
                self._members.add((server, key))
        for text in texts:
            if "." in text:
                for token in tokens(text):
                    if token.key[0] == "u":
                        self._linked.setdefault(token.key, []).append(record)

    def pay(self, cost: int) -> bool:
        """Whether there is room for this many bytes more; if not, records are lost from now on."""
        self._size += cost
        if self._size > self.limit:
            self.lost = True
        return not self.lost

    def linking(self, key: str) -> list[Record]:
        """The records in which a link stands."""
        return [] if self.lost else self._linked.get(key, [])

    def links(self, group: int) -> list[str]:
        """All links in the records of one call."""
        return [key for key, found in self._linked.items() if any(record.group == group for record in found)]

    def values(self, group: int) -> Iterable[tuple[str, set[str]]]:
        """What the records of one call hold, by field."""
        return self._groups[group].items()

    def member(self, server: str, key: str) -> bool:
        """Whether a short name is all that some field of a record of this server holds."""
        return not self.lost and (server, key) in self._members
