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
is kept, so that six tokens in a row that were copied are always found, at half a hash a token. Every look-up costs the
length of what is looked up, not of what was read.

Memory is bounded for all rooms together. What was read first is kept as it is, with what brought it; what comes later is kept
in a Bloom filter, which forgets nothing and at worst takes a value for one that was read. When that is used up the room is
full.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from earnest.core.values import Token

LIMIT: Final = 4 * 1024 * 1024
"""Bytes of memory that the values of one conversation may take, all rooms together."""
PASSAGE: Final = 6
"""Tokens in a row that are found if they were copied."""
_RUN: Final = 4
_WINDOW: Final = 3
_POSTINGS: Final = 64
_ALIKE: Final = 4
_ALIKE_MOST: Final = 24
_PLACED_COST: Final = 270
_POSTING_COST: Final = 14
_TOKEN_COST: Final = 190
_PASSAGE_COST: Final = 100
_SOURCE_COST: Final = 420
_BITS_EACH: Final = 24
"""Bits of the filter a value takes: about one look-up in 100,000 is mistaken when it is used up."""
_HASHES: Final = 6
_WORD: Final = (1 << 64) - 1


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
        if not self.receipt:
            return "one of the many results that were read"
        if not self.tool:
            return f"what was pasted into the prompt ({self.receipt})"
        called = f"{self.server}/{self.tool}" if self.server else self.tool
        return f"{called}, receipt {self.receipt}" + (f", at {self.path}" if self.path else "")


MANY: Final = Source("")
"""What brought a value is not kept any more."""


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

    __slots__ = ("_ids", "_keys", "_names", "_postings", "_size", "_sources", "full", "limit")

    def __init__(self, limit: int = LIMIT) -> None:
        self._ids: dict[str, int] = {"": 0}
        self._names: list[str] = [""]
        self._keys = array("I")
        self._postings: list[array[int]] = [array("I")]
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
        fresh = {token.key for token in found if token.key not in self._ids}
        if readings:
            fresh.update(other for token in found for other in token.readings if other not in self._ids)
        if not self.pay(_POSTING_COST * (len(found) + 1) + sum(_PLACED_COST + len(key) for key in fresh)):
            return
        self._size += self._sources.add(len(self._keys), source)
        for token in found:
            at = len(self._keys)
            if token.key in skip:
                self._keys.append(0)
                continue
            self._keys.append(self._post(token.key, at))
            if readings:
                for other in token.readings:
                    self._post(other, at)
        self._keys.append(0)

    def pay(self, cost: int) -> bool:
        """Whether there is room for this many bytes more, which are then taken; else the room is full."""
        if self._size + cost > self.limit:
            self.full = True
            return False
        self._size += cost
        return True

    def _post(self, key: str, at: int) -> int:
        number = self._ids.get(key)
        if number is None:
            number = self._ids[key] = len(self._names)
            self._names.append(key)
            self._postings.append(array("I", (at,)))
        elif len(self._postings[number]) < _POSTINGS:
            self._postings[number].append(at)
        return number

    def places(self, run: Sequence[str]) -> list[int]:
        """Where a run of tokens stands as a whole; at most the first `_POSTINGS` places are looked at."""
        if not run:
            return []
        rarest, offset = None, 0
        for number, key in enumerate(run):
            known = self._ids.get(key)
            if not known:
                return []
            places = self._postings[known]
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
        for number, key in enumerate(run):
            known = self._ids[key]
            if here[number] != known and (start + number) not in self._postings[known]:
                return False
        return True

    def has(self, key: str) -> bool:
        """Whether a single token occurs."""
        return bool(key) and key in self._ids

    def around(self, place: int, length: int, reach: int) -> list[str]:
        """The keys before and after a run, up to the end of its sentence and text, at most `reach` on each side."""
        before: list[str] = []
        for number in reversed(self._keys[max(0, place - reach) : place]):
            if self._names[number] in ("", "."):
                break
            before.append(self._names[number])
        after: list[str] = []
        for number in self._keys[place + length : place + length + reach]:
            if self._names[number] in ("", "."):
                break
            after.append(self._names[number])
        return before + after

    def whole(self, place: int, length: int) -> bool:
        """Whether a run is all that its text says."""
        return not self.key(place - 1) and not self.key(place + length)

    def key(self, place: int) -> str:
        """The key at a place; empty outside and between texts."""
        return self._names[self._keys[place]] if 0 <= place < len(self._keys) else ""

    def source(self, place: int) -> Source | None:
        """What brought the token at a place."""
        return self._sources.at(place)

    @property
    def empty(self) -> bool:
        """Whether nothing was taken in."""
        return not self._keys


class _Filter:
    """A Bloom filter of hashes (Bloom 1970)."""

    __slots__ = ("_bits", "_left", "_size")

    def __init__(self, size: int) -> None:
        self._bits = bytearray(size)
        self._size = size * 8
        self._left = size * 8 // _BITS_EACH

    def add(self, value: int) -> bool:
        """Take in a hash. False if the filter is used up."""
        if value in self:
            return True
        at, step = self._start(value)
        for _ in range(_HASHES):
            at %= self._size
            self._bits[at >> 3] |= 1 << (at & 7)
            at += step
        self._left -= 1
        return self._left > 0

    def __contains__(self, value: int) -> bool:
        bits, size = self._bits, self._size
        at, step = self._start(value)
        for _ in range(_HASHES):
            at %= size
            if not bits[at >> 3] & (1 << (at & 7)):
                return False
            at += step
        return True

    @staticmethod
    def _start(value: int) -> tuple[int, int]:
        first = value * 0x9E3779B97F4A7C15 & _WORD
        return first & 0xFFFFFFFF, (first >> 32) | 1


class Seen:
    """Texts of untrusted origin: which tokens and passages occurred, and what brought them first."""

    __slots__ = ("_alike", "_count", "_later", "_passages", "_size", "_sources", "_tokens", "full", "limit")

    def __init__(self, limit: int = LIMIT) -> None:
        self._tokens: dict[str, int] = {}
        self._passages: dict[int, int] = {}
        self._alike: dict[str, list[str]] = {}
        self._sources = _Sources()
        self._later: _Filter | None = None
        self._count = 0
        self._size = 0
        self.limit = limit
        self.full = False

    def add(self, keys: Sequence[str], source: Source, readings: Sequence[str] = ()) -> None:
        """Take in a text. What finds no room makes the index full; what was taken stays."""
        if self.full or not keys:
            return
        if self._later is None:
            self._size += self._sources.add(self._count, source)
        for key in (*keys, *readings):
            if key not in self._tokens and (self._later is None or not self._filed(hash(key))):
                self._size += _TOKEN_COST + len(key)
                self._tokens[key] = self._count
                if len(key) > _ALIKE:
                    alike = self._alike.setdefault(key[:_ALIKE], [])
                    if len(alike) < _ALIKE_MOST:
                        alike.append(key)
                self._turn()
        for value in winnowed(keys):
            if value not in self._passages and (self._later is None or not self._filed(value)):
                self._size += _PASSAGE_COST
                self._passages[value] = self._count
                self._turn()
        self._count += 1

    def _turn(self) -> None:
        """From half of the room on, what comes is kept in a filter that takes the other half."""
        if self._later is None and self._size > self.limit // 2:
            self._later = _Filter(max(1, self.limit // 2))

    def _filed(self, value: int) -> bool:
        if self._later is not None and not self._later.add(value):
            self.full = True
        return True

    def token(self, key: str) -> Source | None:
        """What brought a token first, or None if it did not occur in what was taken in."""
        at = self._tokens.get(key)
        if at is not None:
            return self._sources.at(at)
        return MANY if self._later is not None and hash(key) in self._later else None

    def begins(self, start: str) -> list[str] | None:
        """Which tokens begin like this; None if they are too many to tell, or the start is too short."""
        if len(start) < _ALIKE or self._later is not None:
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
            if self._later is not None and value in self._later:
                return MANY
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
    """The index of one conversation. Each room has its share of the memory, so that none can take another's."""

    __slots__ = ("secrets", "trusted", "untrusted", "user")

    def __init__(self, limit: int = LIMIT) -> None:
        part = limit // 32
        self.user = Words(part * 4)
        self.trusted = Words(part * 8)
        self.untrusted = Seen(part * 15)
        self.secrets = Seen(part)


def records_share(limit: int) -> int:
    """What of the memory is for records."""
    return limit // 32 * 4
