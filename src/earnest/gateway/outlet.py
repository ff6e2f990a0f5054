"""Where what belongs to one request of a client goes back to: a pipe, or the HTTP response of that request."""

from __future__ import annotations

from typing import Protocol


class Outlet(Protocol):
    """The way back for one request. Exactly one `finish`; before it any number of `send`."""

    def send(self, message: bytes) -> None:
        """A message that belongs to the request and is not its answer (progress, log, a server's request)."""

    def part(self) -> None:
        """The rest comes later: a client that can come back for it may be let go until then."""

    def finish(self, message: bytes, status: int = 200) -> None:
        """The answer. Nothing can be sent after it. `status`: of an HTTP response that was not begun yet."""

    def abandon(self) -> None:
        """There will be no answer (the client cancelled): let go of what the request holds."""


class Transport(Protocol):
    """The client's side of a session, for what belongs to no request."""

    def notify(self, message: bytes) -> None:
        """A notification outside any request; dropped where the transport has no place for it."""

    def begin(self, id: bytes) -> None:
        """A request was read and will be worked on: remember that its answer is owed."""
