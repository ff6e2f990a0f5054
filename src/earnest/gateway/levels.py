"""Logs of a legacy server for a modern client: a level of one request there, one level for all here.

A server is told the most talkative level that any request of its link asked for, before the first such request goes out, and
never a quieter one again. What it then says inside a call goes to that call's client alone, if the call asked for lines of that
level; a call that asked for none gets none. A server that serves several clients over one link keeps its own level.

Sources: MCP 2025-11-25, "Logging"; 2026-07-28, `io.modelcontextprotocol/logLevel`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import msgspec

from earnest.core.errors import EarnestError
from earnest.protocol import envelope, eras
from earnest.protocol.envelope import WireError
from earnest.upstream.base import Link

if TYPE_CHECKING:
    from earnest.gateway.relay import Relay

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Most talkative first (RFC 5424)."""
PATIENCE_S: Final = 5.0
"""Seconds that a call waits for a server to take its level; then it goes all the same."""


class _Line(msgspec.Struct):
    level: str = ""


class Levels:
    """The levels that the servers of one gateway were told for modern clients."""

    def __init__(self) -> None:
        self._told: WeakKeyDictionary[Link, int] = WeakKeyDictionary()
        self._telling: WeakKeyDictionary[Link, asyncio.Task[None]] = WeakKeyDictionary()

    def before(self, call: Relay, link: Link) -> bool:
        """Whether the call waits: the server of the older era must hear of its level first, and then it is sent again; or it is
        over, because its level is none."""
        if link.hello.modern or not call.session.modern:
            return False
        try:
            wanted = level_of(call)
        except WireError as error:
            call.finish(envelope.error(call.request_id, error.rpc_code, error.message), "refused", error.message, status=400)
            return True
        if wanted is None or b'"logging"' not in link.hello.capabilities:
            return False
        if call.served is None or call.served.shared:
            return False
        telling = self._telling.get(link)
        told = self._told.get(link)
        if told is not None and told <= wanted:
            if telling is None or telling.done():
                return False
        else:
            self._told[link] = wanted
            telling = self._telling[link] = call.gateway.spawn(_tell(link, wanted))
        telling.add_done_callback(lambda _: call.send())
        return True

    def hears(self, call: Relay, params: bytes) -> bool:
        """Whether a line of a log is for a modern client: of a legacy server only if its call asked for such."""
        if call._link is None or call._link.hello.modern:
            return True
        try:
            wanted = level_of(call)
            level = msgspec.json.decode(params, type=_Line).level
        except (msgspec.MsgspecError, UnicodeDecodeError, WireError):
            return False
        return wanted is not None and level in LEVELS and LEVELS.index(level) >= wanted


def level_of(call: Relay) -> int | None:
    """The level that a modern request asks for, as its place in `LEVELS`; `None` for none. Raises `WireError`."""
    raw = call.meta.get(eras.LOG_LEVEL, b"null")
    if raw == b"null":
        return None
    try:
        return LEVELS.index(msgspec.json.decode(raw, type=str))
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError):
        raise WireError(envelope.INVALID_PARAMS, f"{eras.LOG_LEVEL} must be a log level") from None


async def _tell(link: Link, level: int) -> None:
    try:
        await link.ask("logging/setLevel", b'{"level":"%b"}' % LEVELS[level].encode(), PATIENCE_S)
    except EarnestError:
        pass  # a level is a wish; a server that ignores it is no reason to fail anything
