"""Whatever a tool of a program takes and returns, as JSON data that the rules can read.

Theory. What cannot be read must not count as read. A value that is no data (a generator, an open file, an object that does not
show what it holds) goes to `unread`, which says what stands in its place: a caller that decides keeps it, so that it speaks
against the call; one that observes takes note that more came back than it could see. Nothing here raises: a result that
cannot be turned into data was returned all the same.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
from collections.abc import Awaitable, Callable, Iterator, Mapping, Set
from typing import Any, Final

import msgspec

_DEPTH: Final = 64
_MOST: Final = 1_000_000
"""Values that are looked at; past them the rest is unread."""
_SCALAR: Final = 8
"""What a number, a truth value or nothing counts for, in bytes."""


class TooMuch(Exception):
    """A value holds more than was asked for."""


class Unread:
    """What stands among arguments for a value that cannot be read. It is no JSON, so nothing speaks for it."""

    __slots__ = ("_type",)

    def __init__(self, value: Any) -> None:
        self._type = type(value).__name__

    def __str__(self) -> str:
        return f"<{self._type}>"

    __repr__ = __str__


def opaque(value: Any) -> str:
    """What stands for a value that cannot be read: its type."""
    return str(Unread(value))


def plain(value: Any, unread: Callable[[Any], Any] = opaque, most: int | None = None) -> Any:
    """JSON data of a value: pydantic models and MCP results by their names on the wire, other objects by their fields, dates
    and enumerations as usual in JSON, bytes as text, anything else as what its own `__str__` says. Deeper than 64 levels, and
    where there is nothing to read, `unread` speaks. The answer shares no container with the value. `most`: characters of all
    values and names; raises `TooMuch` as soon as there are more."""
    return _Plain(unread, most).of(value, _DEPTH)


class _Plain:
    __slots__ = ("_left", "_most", "_unread")

    def __init__(self, unread: Callable[[Any], Any], most: int | None) -> None:
        self._unread, self._left, self._most = unread, _MOST, most

    def of(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if value is None or type(value) in (str, bool, int, float):
            return self._counted(value)
        if depth <= 0 or self._left < 0 or isinstance(value, type):
            return self._unread(value)
        try:
            return self._of(value, depth - 1)
        except TooMuch:
            raise
        except Exception:
            return self._unread(value)

    def _counted(self, value: Any) -> Any:
        if self._most is not None:
            self._most -= len(value) if type(value) is str else _SCALAR
            if self._most < 0:
                raise TooMuch
        return value

    def _of(self, value: Any, depth: int) -> Any:
        if isinstance(value, enum.Enum):
            return self.of(value.value, depth)
        if isinstance(value, str | int | float):
            return self._counted(next(kind(value) for kind in (str, int, float) if isinstance(value, kind)))
        if isinstance(value, bytes | bytearray | memoryview):
            return self._counted(bytes(value).decode("utf-8", "replace"))
        if isinstance(value, Mapping):
            return {self._name(key): self.of(item, depth) for key, item in value.items()}
        if isinstance(value, list | tuple | Set):
            return [self.of(item, depth) for item in value]
        if isinstance(value, datetime.date | datetime.time):
            return value.isoformat()
        if isinstance(value, Iterator | Awaitable) or hasattr(value, "__aiter__"):
            return self._unread(value)
        fields = self._fields(value)
        if fields is not None:
            return {self._name(key): self.of(item, depth) for key, item in fields.items()}
        kind: Any = type(value)
        silent = kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__
        return self._unread(value) if silent else self._counted(str(value))

    def _name(self, key: Any) -> str:
        return self._counted(key) if type(key) is str else str(self.of(key, 1))

    @staticmethod
    def _fields(value: Any) -> Mapping[str, Any] | None:
        dump = getattr(value, "model_dump", None)
        if callable(dump):
            try:
                return dict(dump(mode="json", by_alias=True, exclude_none=True))
            except Exception:  # a field that is no JSON: the others can be read
                return dict(vars(value))
        if dataclasses.is_dataclass(value):
            return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if isinstance(value, msgspec.Struct):
            return {name: getattr(value, name) for name in value.__struct_fields__}
        kind: Any = type(value)
        return getattr(value, "__dict__", None) or None if kind.__str__ is object.__str__ else None
