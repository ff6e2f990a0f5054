"""Handlers of HTTP answers that nobody waits for: notifications, answers to a server, the end of a session."""

from __future__ import annotations

import asyncio
from typing import Protocol

from earnest.core.errors import EarnestError


class QuietOwner(Protocol):
    """What these handlers need of their link."""

    def report(self, text: str) -> None: ...
    def error(self, code: str, what: str) -> EarnestError: ...
    def session_lost(self, error: EarnestError) -> None: ...
    @property
    def in_session(self) -> bool: ...


class Quiet:
    """Hears of a notification's POST: nothing to do but to notice that the session is gone, and to report."""

    def __init__(self, link: QuietOwner, done: asyncio.Future[None] | None = None) -> None:
        self._link = link
        self._done = done
        self._status = 0

    def head(self, status: int, headers: object) -> None:
        self._status = status

    def data(self, chunk: bytes) -> None:
        pass

    def end(self) -> None:
        if self._status == 404 and self._link.in_session:
            self._link.session_lost(self._link.error("E1232", "does not know this session any more"))
        elif self._status >= 400:
            self._link.report(f"answered HTTP {self._status} to a notification")
        self._finish()

    def lost(self, error: EarnestError, sent: bool) -> None:
        self._link.report(f"a notification was lost: {error.message}")
        self._finish()

    def _finish(self) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(None)


class Farewell:
    """Hears of the DELETE of a session, whose outcome changes nothing."""

    def __init__(self, done: asyncio.Future[None]) -> None:
        self._done = done

    def head(self, status: int, headers: object) -> None:
        pass

    def data(self, chunk: bytes) -> None:
        pass

    def end(self) -> None:
        if not self._done.done():
            self._done.set_result(None)

    def lost(self, error: EarnestError, sent: bool) -> None:
        self.end()
