"""Identifiers of receipts and approvals: sortable by time, unguessable enough not to collide, short enough to type."""

from __future__ import annotations

from collections.abc import Callable


class Ids:
    """Makes identifiers. Clock and randomness are handed in."""

    def __init__(self, clock: Callable[[], float], random: Callable[[int], bytes]) -> None:
        """`clock`: seconds since the epoch. `random`: that many random bytes."""
        self._clock = clock
        self._random = random
        self._last = 0
        self._stem = ""
        self._count = 0

    def new(self, prefix: str) -> str:
        """`PREFIX-` and 19 characters: milliseconds in hex, four random, four of a counter."""
        now = int(self._clock() * 1000)
        if now > self._last:
            self._last = now
            self._stem = f"{now:011x}{self._random(2).hex()}"
            self._count = 0
        self._count += 1
        return f"{prefix}-{self._stem}{self._count:04x}"
