"""What every link to a server looks like, whatever carries it.

A `Link` is one protocol session with one server (a process, or an HTTP session, or, in the modern era, no more than an
address). It is opened once, carries many exchanges at once, and is gone for good when it is lost: a new one is opened by
whoever owns it. All calls and callbacks run on the loop's thread; callbacks are plain functions, because the data path
goes through them. Nothing here decides: what may be sent was decided before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from earnest.core.errors import EarnestError
from earnest.protocol.envelope import Message


class Reply(msgspec.Struct, frozen=True):
    """The answer to one request, as raw JSON: exactly one of `result` and `error` is not empty."""

    result: bytes = b""
    error: bytes = b""


def unreadable(name: str) -> EarnestError:
    """The end of a request whose answer came and can be read by nobody, or in two ways."""
    return EarnestError("E1311", f"the answer of server {name!r} cannot be read", "Its author has to mend it.", exit_code=3)


class ExchangeHandler(Protocol):
    """What hears of one request under way. After `reply` or `lost` nothing more comes."""

    def reply(self, reply: Reply) -> None:
        """The server answered."""

    def message(self, message: Message) -> None:
        """A notification of the server that belongs to this request (progress, log), raw ids and tokens as the link's."""

    def request(self, message: Message) -> bool:
        """A request of the server that belongs to this one (legacy era: sampling, elicitation, roots). Returns whether it
        was taken; one that was not is declined by the link. Taken ones are answered by `Link.respond`."""

    def parted(self) -> None:
        """The server closed its stream before the answer, to be asked again (2025-11-25); the link does so by itself."""

    def lost(self, error: EarnestError, sent: bool) -> None:
        """No answer will come. `sent`: bytes of the request may have reached the server, so it may have taken effect."""


class Exchange(Protocol):
    """One request under way."""

    def cancel(self, reason: str = "") -> None:
        """Tell the server that the answer is no longer wanted, in the way of its era. The handler hears nothing more."""


class ServerHello(msgspec.Struct, frozen=True):
    """What a server said of itself when the link was opened, as raw JSON (empty where it said nothing)."""

    modern: bool
    version: str
    capabilities: bytes = b"{}"
    server_info: bytes = b""
    instructions: str = ""
    supported: tuple[str, ...] = ()
    raw: bytes = b"{}"
    """The whole `InitializeResult` or `DiscoverResult`."""


class Link(Protocol):
    """One session with one server."""

    hello: ServerHello
    """Known once `open` has returned."""

    on_notification: Callable[[Message], None]
    """A notification that belongs to no request (`notifications/tools/list_changed`, logs)."""

    on_lost: Callable[[EarnestError], None]
    """The link is gone: exchanges under way were told before."""

    async def open(self) -> ServerHello:
        """Start or connect, settle the era, do the opening of that era. Raises E12xx; then nothing is left running."""

    def reserve(self) -> int:
        """The id that the next `call` given it will use, so that a progress token can be made of it beforehand."""

    def call(
        self,
        method: str,
        params: bytes,
        handler: ExchangeHandler,
        *,
        id: int | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        named: str = "",
    ) -> Exchange:
        """Send a request. `params` is complete for the link's era (`_meta` included) or empty. `headers` are extra HTTP headers
        (`Mcp-Param-*` of the caller), ignored by links without headers; `named` the object that `params` name, where the caller
        has read it. Failures to send arrive through `handler.lost`."""

    async def ask(self, method: str, params: bytes = b"{}", timeout: float = 30.0) -> Reply:
        """Send a request of earnest's own (lists, ping) and wait. Adds what the era wants in `_meta`. Raises E12xx."""

    def notify(self, method: str, params: bytes) -> None:
        """Send a notification."""

    def respond(self, id: bytes, reply: Reply) -> None:
        """Answer a request of the server that a handler took."""

    @property
    def alive(self) -> bool:
        """Whether calls can be sent."""

    async def close(self) -> None:
        """End the session and whatever was started for it. Never raises; returns when nothing is left running."""
