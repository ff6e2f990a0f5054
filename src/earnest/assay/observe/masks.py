"""Values that differ each time and mean nothing by it: moments, durations, random names."""

from __future__ import annotations

import re
from typing import Any, Final

_MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [A-Za-z0-9 ]{5,12} \d\d:\d\d:\d\d(?: [A-Z+0-9-]{1,6})?(?: \d{4})?"
    r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"
)
_EPOCH: Final = re.compile(r"(?<![\d.])(?:1[6-9]\d{8}|2[0-4]\d{8})(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?(?![\d])")
_RANDOM: Final = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b"
)
_LASTED: Final = re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|µs|us|ns|s|sec|secs|seconds|milliseconds)\b")
_NAMED: Final = re.compile(r"[0-9a-fA-F]{12,}|(?<=[-_.])[A-Za-z0-9]*\d[A-Za-z0-9]{5,}(?=[-_.]|$)|\d{3,}")


def masked(text: str) -> str:
    """A text with moments, durations and UUIDs replaced by what kind they are."""
    text = _RANDOM.sub("<id>", text)
    text = _MOMENT.sub("<time>", text)
    text = _EPOCH.sub("<time>", text)
    return _LASTED.sub("<duration>", text)


def masked_value(value: Any) -> Any:
    """The same for one JSON or SQL value; numbers that are moments become a word, everything else stays."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and _EPOCH.fullmatch(repr(value)):
        return "<time>"
    return value


def masked_path(path: str) -> str:
    """A path in which random parts of names are replaced, so that the same file of two sessions has one name."""
    return "/".join(_NAMED.sub("*", _RANDOM.sub("*", part)) for part in path.split("/"))
