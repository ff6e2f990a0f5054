"""Texts by format, by regular expression and by length.

Strings for a `pattern` come from `rstr`, which walks the parsed expression; what could make it write without end (large or
nested counts) is not asked of it.
"""

from __future__ import annotations

import random
import re
from typing import Any, Final

import rstr

_FORMATS: Final = {
    "date-time": ["2026-03-14T09:30:00Z", "2026-03-14T09:30:00+01:00"],
    "date": ["2026-03-14"],
    "time": ["09:30:00Z"],
    "duration": ["PT1H", "P1D"],
    "email": ["ada@example.com"],
    "idn-email": ["ada@example.com"],
    "hostname": ["example.com"],
    "idn-hostname": ["example.com"],
    "ipv4": ["192.0.2.10"],
    "ipv6": ["2001:db8::10"],
    "uri": ["https://example.com/notes.html", "https://example.com/data.json"],
    "url": ["https://example.com/notes.html"],
    "uri-reference": ["/notes.html"],
    "iri": ["https://example.com/notes.html"],
    "uuid": ["7d2c3f1e-8a4b-4c5d-9e6f-0a1b2c3d4e5f"],
    "json-pointer": ["/name"],
    "relative-json-pointer": ["0/name"],
    "regex": ["a.*"],
    "uri-template": ["https://example.com/{id}"],
    "byte": ["c2FtcGxl"],
    "base64": ["c2FtcGxl"],
    "binary": ["sample"],
    "color": ["#336699"],
}
_COUNTS: Final = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_MOST_WRITTEN: Final = 20_000


def by_format(name: str) -> list[str]:
    """Texts of a `format`; none for one that is not known."""
    return list(_FORMATS.get(name, ()))


def by_pattern(pattern: str, dice: random.Random) -> str | None:
    """A text that a regular expression matches somewhere, or None where it cannot be had with reason."""
    written = 1
    for low, high in _COUNTS.findall(pattern):
        written *= max(int(high or low or 1), 1)
    if len(pattern) > 500 or written > _MOST_WRITTEN or pattern.count("(?=") + pattern.count("(?!") > 4:
        return None
    translated = pattern.replace(r"\p{L}", "[A-Za-z]").replace(r"\p{N}", "[0-9]").replace(r"\/", "/").replace("(?<", "(?P<")
    translated = translated.replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")
    maker = rstr.Rstr(dice)
    try:
        for _ in range(20):
            text = str(maker.xeger(translated))
            text = "".join(char for char in text if char.isprintable() or char == " ")
            if len(text) <= _MOST_WRITTEN and re.search(translated, text):
                return text
    except (re.error, ValueError, RecursionError, OverflowError, KeyError, TypeError, NotImplementedError):
        return None
    return None


def of_length(least: Any, most: Any) -> list[str]:
    """Plain words between two lengths."""
    low = least if isinstance(least, int) and least > 0 else 0
    high = most if isinstance(most, int) else None
    words = ["sample", "alpha", "note about alpha"]
    if low > 100_000:
        return ["a" * 100_000]
    made = [(word * (low // len(word) + 1))[: max(low, len(word))] for word in words]
    return [text[:high] if high is not None else text for text in made] or ["a"]
