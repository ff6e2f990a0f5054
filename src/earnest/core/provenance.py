"""Where values came from: one index per conversation of the user's words, of trusted and of untrusted sources.

Theory. Three origins, and for each its own room, so that much of one never pushes out another:

- **user**: the person's own words, in order, with sentences; looked up as whole values, which are tokens or runs of tokens;
- **trusted**: results of sources that strangers do not write in; looked up likewise;
- **untrusted**: everything else that was read; looked up for explanation and for the negative check, as single tokens and as
passages.

Only the first two ever speak for a value. Nothing is taken out again. A room that is full takes nothing more: a trusted
value that found no room does not count as trusted, and once the untrusted room is full, whatever is not the user's or
trusted counts as
untrusted. So more text, in whatever order, never makes a value look better.

Passages are found by winnowing (Schleimer, Wilkerson and Aiken 2003): hashes of four tokens, the least of three neighbours
is kept, so
that six tokens in a row that were copied are always found, at half a hash a token. Every look-up costs the length of what is
looked
up, not of what was read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from earnest.core.values import Token

LIMIT: Final = 4 * 1024 * 1024
"""Bytes of memory an origin may take in one conversation, as estimated."""
PASSAGE: Final = 6
"""Tokens in a row that are found if they were copied."""
_RUN: Final = 4
_WINDOW: Final = 3
_POSTINGS: Final = 64
_ALIKE: Final = 4
_ALIKE_MOST: Final = 24
_TOKEN_COST: Final = 180
_POSTING_COST: Final = 48
_PASSAGE_COST: Final = 96
_SOURCE_COST: Final = 400


class Origin(StrEnum):
    """Whose a value is."""

    USER = "user"
    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"


class Source(msgspec.Struct, frozen=True):
    """What brought a value: the receipt or step, server, tool, and the path inside its result. Empty tool: the user's
    prompt."""

    receipt: str
    server: str = ""
    tool: str = ""
    path: str = ""

    def words(self) -> str:
        """For a person: `mail/search_emails, receipt 17, at [].body`."""
        if not self.tool:
            return f"what was pasted into the prompt ({self.receipt})"
        called = f"{self.server}/{self.tool}" if self.server else self.tool
        return f"{called}, receipt {self.receipt}" + (f", at {self.path}" if self.path else "")


class _Sources:
    """Sources by a growing position, without one entry a value."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._sources: list[Source] = []

    def add(self, position: int, source: Source) -> int:
        if self._sources and self._sources[-1] == source:
            return 0
        self._starts.append(position)
        self._sources.append(source)
        return _SOURCE_COST + len(source.path)

    def at(self, position: int) -> Source | None:
        found = bisect_right(self._starts, position) - 1
        return self._sources[found] if found >= 0 else None


class Words:
    """Texts of one origin that speak for values: every token in its place."""

    __slots__ = ("_keys", "_postings", "_size", "_sources", "full", "limit")

    def __init__(self, limit: int = LIMIT) -> None:
        self._keys: list[str] = []
        self._postings: dict[str, list[int]] = {}
        self._sources = _Sources()
        self._size = 0
        self.limit = limit
        self.full = False

    def add(
        self, found: Sequence[Token], source: Source, *, skip: frozenset[str] = frozenset(), readings: bool = False
    ) -> None:
        """Take in a text. Keys in `skip` are left out, with a gap, so that nothing reads across them. Without room nothing
        is taken."""
        if self.full or not found:
            return
        cost = sum(_POSTING_COST + (0 if token.key in self._postings else _TOKEN_COST + len(token.key)) for token in found)
        if self._size + cost > self.limit:
            self.full = True
            return
        self._size += cost + self._sources.add(len(self._keys), source)
        for token in found:
            at = len(self._keys)
            if token.key in skip:
                self._keys.append("")
                continue
            self._keys.append(token.key)
            self._post(token.key, at)
            if readings:
                for other in token.readings:
                    self._post(other, at)
        self._keys.append("")

    def _post(self, key: str, at: int) -> None:
        places = self._postings.get(key)
        if places is None:
            self._postings[key] = [at]
        elif len(places) < _POSTINGS:
            places.append(at)

    def places(self, run: Sequence[str]) -> list[int]:
        """Where a run of tokens stands as a whole; at most the first `_POSTINGS` places are looked at."""
        if not run:
            return []
        rarest, offset = None, 0
        for number, key in enumerate(run):
            places = self._postings.get(key)
            if places is None:
                return []
            if rarest is None or len(places) < len(rarest):
                rarest, offset = places, number
        found = []
        for place in rarest or ():
            start = place - offset
            if start >= 0 and self._matches(start, run):
                found.append(start)
        return found

    def _matches(self, start: int, run: Sequence[str]) -> bool:
        here = self._keys[start : start + len(run)]
        if len(here) != len(run):
            return False
        pairs = enumerate(zip(run, here, strict=True))
        return all(key == other or (start + n) in self._postings.get(key, ()) for n, (key, other) in pairs)

    def has(self, key: str) -> bool:
        """Whether a single token occurs."""
        return key in self._postings

    def around(self, place: int, length: int, reach: int) -> list[str]:
        """The keys before and after a run, up to the end of its sentence and text, at most `reach` on each side."""
        before: list[str] = []
        for key in reversed(self._keys[max(0, place - reach) : place]):
            if key in ("", "."):
                break
            before.append(key)
        after: list[str] = []
        for key in self._keys[place + length : place + length + reach]:
            if key in ("", "."):
                break
            after.append(key)
        return before + after

    def whole(self, place: int, length: int) -> bool:
        """Whether a run is all that its text says."""
        before = self._keys[place - 1] if place else ""
        after = self._keys[place + length] if place + length < len(self._keys) else ""
        return not before and not after

    def key(self, place: int) -> str:
        """The key at a place; empty outside and between texts."""
        return self._keys[place] if 0 <= place < len(self._keys) else ""

    def source(self, place: int) -> Source | None:
        """What brought the token at a place."""
        return self._sources.at(place)

    @property
    def empty(self) -> bool:
        """Whether nothing was taken in."""
        return not self._keys


class Seen:
    """Texts of untrusted origin: which tokens and passages occurred, and what brought them first."""

    __slots__ = ("_alike", "_count", "_passages", "_size", "_sources", "_tokens", "full", "limit")

    def __init__(self, limit: int = LIMIT) -> None:
        self._tokens: dict[str, int] = {}
        self._passages: dict[int, int] = {}
        self._alike: dict[str, list[str]] = {}
        self._sources = _Sources()
        self._count = 0
        self._size = 0
        self.limit = limit
        self.full = False

    def add(self, keys: Sequence[str], source: Source, readings: Sequence[str] = ()) -> None:
        """Take in a text. What finds no room makes the index full; what was taken stays."""
        if self.full or not keys:
            return
        self._size += self._sources.add(self._count, source)
        for key in (*keys, *readings):
            if key not in self._tokens:
                self._size += _TOKEN_COST + len(key)
                self._tokens[key] = self._count
                if len(key) > _ALIKE:
                    alike = self._alike.setdefault(key[:_ALIKE], [])
                    if len(alike) < _ALIKE_MOST:
                        alike.append(key)
        for value in winnowed(keys):
            if value not in self._passages:
                self._size += _PASSAGE_COST
                self._passages[value] = self._count
        self._count += 1
        if self._size > self.limit:
            self.full = True

    def token(self, key: str) -> Source | None:
        """What brought a token first, or None if it did not occur in what was taken in."""
        at = self._tokens.get(key)
        return None if at is None else self._sources.at(at)

    def begins(self, start: str) -> list[str] | None:
        """Which tokens begin like this; None if they are too many to tell, or the start is too short."""
        if len(start) < _ALIKE:
            return None
        alike = self._alike.get(start[:_ALIKE], [])
        if self.full or len(alike) >= _ALIKE_MOST:
            return None
        return [key for key in alike if key.startswith(start)]

    def passage(self, keys: Sequence[str]) -> Source | None:
        """What brought a passage of `PASSAGE` tokens or more that stands in this text too."""
        for value in runs(keys):
            at = self._passages.get(value)
            if at is not None:
                return self._sources.at(at)
        return None

    @property
    def empty(self) -> bool:
        """Whether nothing was taken in."""
        return self._count == 0


def runs(keys: Sequence[str]) -> list[int]:
    """The hash of each run of four tokens; ends of sentences do not count."""
    bare = [key for key in keys if key != "."]
    return [hash(tuple(bare[at : at + _RUN])) for at in range(len(bare) - _RUN + 1)]


def winnowed(keys: Sequence[str]) -> Iterable[int]:
    """The hashes that are kept of a text."""
    hashes = runs(keys)
    if len(hashes) < _WINDOW:
        return hashes
    return {min(hashes[at : at + _WINDOW]) for at in range(len(hashes) - _WINDOW + 1)}


class Values:
    """The index of one conversation."""

    __slots__ = ("secrets", "trusted", "untrusted", "user")

    def __init__(self, limit: int = LIMIT) -> None:
        self.user = Words(limit)
        self.trusted = Words(limit)
        self.untrusted = Seen(limit)
        self.secrets = Seen(limit)
