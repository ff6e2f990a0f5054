"""Secrets taken out of text before it is written down or shown.

Theory. What is to stay secret is known by value: whatever earnest hands to servers. A program that prints such a value
seldom prints it as it is, so each is looked for as itself and in the forms that programs give to strings: escaped in JSON
(also JSON in JSON), encoded for a URL, escaped for HTML or a shell, and in base64 at any of the three positions that it can
have within a longer text. A secret of several lines is looked for line by line as well. All places are found in the text
as it stood and then taken out together, so that what one secret leaves behind is never a part of another.

This is for text that people read. What a program reads goes on as it came.
"""

from __future__ import annotations

import base64
import html
import json
import re
import urllib.parse
from collections.abc import Iterable, Iterator
from typing import Any, Final

REDACTED: Final = "[redacted]"
SHORTEST: Final = 6
"""Characters. Shorter secrets would take out half of every text and are not looked for."""
_SHORTEST_LINE: Final = 16
_MAX_LINES: Final = 500
_HEX: Final = re.compile("%[0-9A-F]{2}")


class Scrubber:
    """Takes the values it was given out of any text. One for a daemon: it learns new values as servers become known."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self._forms: tuple[str, ...] = ()
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """From now on these values are taken out too; those of fewer than `SHORTEST` characters are passed over."""
        fresh = {value for value in values if len(value.strip()) >= SHORTEST} - self._values
        if fresh:
            self._values |= fresh
            self._forms = tuple({*self._forms, *(form for value in fresh for form in forms(value))})

    def __call__(self, text: str) -> str:
        """`text` with `REDACTED` in place of each secret."""
        return self.counted(text)[0]

    def counted(self, text: str) -> tuple[str, int]:
        """The same, and how many places were taken out."""
        found: list[tuple[int, int]] = []
        for form in self._forms:
            at = text.find(form)
            while at >= 0:
                found.append((at, at + len(form)))
                at = text.find(form, at + 1)
        if not found:
            return text, 0
        pieces: list[str] = []
        count = end = 0
        for start, stop in sorted(found):
            if start >= end:
                pieces += (text[end:start], REDACTED)
                count += 1
            end = max(end, stop)
        return "".join((*pieces, text[end:])), count


def scrubbed(value: Any, scrub: Scrubber) -> Any:
    """Lists and dicts of an answer with the secrets taken out of every text in them; names of members stay."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {name: scrubbed(inner, scrub) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [scrubbed(inner, scrub) for inner in value]
    return value


def forms(secret: str) -> Iterator[str]:
    """What a secret looks like in texts of programs, itself first; some forms may come twice."""
    secret = secret.strip()
    yield from _escaped(secret)
    yield from _base64(secret)
    lines = [line.strip() for line in secret.splitlines()[:_MAX_LINES]]
    if len(lines) > 1:
        for line in lines:
            if len(line) >= _SHORTEST_LINE:
                yield from _escaped(line)


def _escaped(text: str) -> Iterator[str]:
    yield text
    for ascii_only in (True, False):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield once.replace("/", "\\/")
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
    for safe in ("", "/", "/:?&=@+,;"):
        quoted = urllib.parse.quote(text, safe=safe, errors="replace")
        yield quoted
        yield _HEX.sub(lambda found: found[0].lower(), quoted)
    yield urllib.parse.quote_plus(text, errors="replace")
    yield html.escape(text)
    yield text.replace("'", "'\"'\"'")


def _base64(text: str) -> Iterator[str]:
    """The characters that encode nothing but the secret, for each position it can have within three bytes."""
    data = text.encode("utf-8", "replace")
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data).decode().rstrip("=")
        first = (before * 8 + 5) // 6
        last = len(encoded) - ((before + len(data)) % 3 != 0)
        core = encoded[first:last]
        if len(core) >= SHORTEST:
            yield core
            yield core.replace("+", "-").replace("/", "_")
