"""What a server process writes beside its messages: lines for the log, bounded, and its last words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

LINES_A_SECOND: Final = 20
LINE_CHARS: Final = 200
"""Characters that are kept of a line on a server's standard error."""
_LAST: Final = 3
_MAX_LINE: Final = 64 * 1024


class Words:
    """The words of one server. What it writes is taken line by line, so that no secret is cut in two before `scrub` sees it."""

    def __init__(self, name: str, log: Callable[[str], None], scrub: Callable[[str], str], clock: Callable[[], float]) -> None:
        self._name = name
        self._log = log
        self._scrub = scrub
        self._clock = clock
        self._unfinished = bytearray()
        self._second = 0
        self._count = 0
        self.last: list[str] = []
        """The last lines, oldest first."""

    def say(self, text: str) -> None:
        """A line for the log, unless there were too many within this second."""
        second = int(self._clock())
        if second != self._second:
            if self._count > LINES_A_SECOND:
                self._log(f"[{self._name}] {self._count - LINES_A_SECOND} more lines were left out")
            self._second, self._count = second, 0
        self._count += 1
        if self._count <= LINES_A_SECOND:
            self._log(f"[{self._name}] {text}")

    def heard(self, data: bytes) -> None:
        """Bytes from its standard error."""
        unfinished = self._unfinished
        unfinished += data
        end = unfinished.rfind(b"\n") + 1
        lines = bytes(unfinished[:end]).splitlines()
        del unfinished[:end]
        for line in lines:
            self._line(line)
        if len(unfinished) > _MAX_LINE:
            unfinished.clear()
            self.say(f"wrote a line of more than {_MAX_LINE} bytes to its standard error")

    def finish(self) -> None:
        """Nothing more comes: a last line may have no end."""
        rest = bytes(self._unfinished)
        self._unfinished.clear()
        for line in rest.splitlines():
            self._line(line)

    def _line(self, line: bytes) -> None:
        text = self._scrub(line[:_MAX_LINE].decode("utf-8", "replace").rstrip())[:LINE_CHARS]
        if text:
            self.last = [*self.last[1 - _LAST :], text]
            self.say(text)
