"""Sanitizers: what is left of a result when only named fields of fixed types are taken out of it.

Theory. A stranger's text can carry an instruction; a number, a date, a word from a list that the operator wrote and an id
cannot. So a tool whose results are cut down to such fields sets no untrusted label. Values keep their origin all the same: a
number that a stranger chose is a stranger's number. Nothing here searches for what is bad; what is not of its type is left
out. An id is what counts or names records (`7`, `AB-12`, a UUID, a hash), never words with hyphens between them.

Only the fields that are found are written, in the operator's order, each as it was read but for numbers in quotes, which
become numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

Type = Literal["number", "date", "enum", "id"]
TYPES: Final = ("number", "date", "enum", "id")
MOST: Final = 1000
"""Values that one field with `[]` in its path may have; more are left out."""
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?")
_DATE: Final = re.compile(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    r"(?:[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?(?:Z|[+-][0-2][0-9]:?[0-5][0-9])?)?"
)
_ID: Final = re.compile(
    r"[0-9]{1,20}|[0-9A-Fa-f]{7,64}|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[A-Za-z]{1,6}[-_#]?[0-9]{1,12}"
)
_LARGEST: Final = 10**18


class Field(msgspec.Struct, frozen=True):
    """One field: its path in the result (`order.total`, `items[].id`), its type, and the words of an enumeration."""

    path: str
    type: Type
    values: tuple[str, ...] = ()


class Sanitizer(msgspec.Struct, frozen=True):
    """What the operator named: the fields that may be left of a tool's results. `source`: where that is written."""

    name: str
    fields: tuple[Field, ...]
    source: str = ""


def extract(sanitizer: Sanitizer, result: Any) -> dict[str, Any]:
    """The fields of a decoded result that are there and of their type, by path; a field with `[]` is a list."""
    found: dict[str, Any] = {}
    for field in sanitizer.fields:
        many = "[]" in field.path
        values = [kept for value in _at(result, field.path) if (kept := _typed(field, value)) is not None]
        if many:
            found[field.path] = values
        elif len(values) == 1:
            found[field.path] = values[0]
    return found


def _at(value: Any, path: str) -> Sequence[Any]:
    """The values at a path; none where it leads nowhere."""
    level: list[Any] = [value]
    for part in path.split("."):
        name, each = part.removesuffix("[]"), part.endswith("[]")
        after: list[Any] = []
        for item in level:
            inner = item.get(name) if isinstance(item, Mapping) and name else item if not name else None
            if each:
                after.extend(inner[: MOST + 1] if isinstance(inner, list) else ())
            elif inner is not None:
                after.append(inner)
        level = after[:MOST]
    return level


def _typed(field: Field, value: Any) -> Any:
    """The value if it is of the field's type, None if not."""
    if field.type == "number":
        if isinstance(value, bool):
            return None
        if isinstance(value, int | float):
            return value if -_LARGEST <= value <= _LARGEST else None
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            return float(value) if "." in value else int(value)
        return None
    if field.type == "id" and isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value < 10**20 else None
    if not isinstance(value, str):
        return None
    if field.type == "enum":
        return value if value in field.values else None
    pattern = _DATE if field.type == "date" else _ID
    return value if pattern.fullmatch(value) else None
