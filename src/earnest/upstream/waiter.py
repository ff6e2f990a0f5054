"""The handler of a request that is awaited: openings, lists, probes."""

from __future__ import annotations

import asyncio

from earnest.core.errors import EarnestError
from earnest.protocol.envelope import Message
from earnest.upstream.base import Exchange, Reply


class Waiter:
    """An `ExchangeHandler` whose `future` is the answer. What else comes of the request is not taken."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[Reply] = loop.create_future()
        # Nobody may be waiting any more when an error comes; that is no defect to report.
        self.future.add_done_callback(lambda future: future.cancelled() or future.exception())

    def reply(self, reply: Reply) -> None:
        if not self.future.done():
            self.future.set_result(reply)

    def message(self, message: Message) -> None:
        pass

    def request(self, message: Message) -> bool:
        return False

    def parted(self) -> None:
        pass

    def lost(self, error: EarnestError, sent: bool) -> None:
        if not self.future.done():
            self.future.set_exception(error)

    async def within(self, exchange: Exchange, timeout: float, late: EarnestError) -> Reply:
        """The answer to `exchange`. Raises `late` after `timeout` seconds, and what it was lost by; whoever stops waiting
        cancels it."""
        try:
            return await asyncio.wait_for(self.future, timeout)
        except TimeoutError:
            exchange.cancel("timeout")
            raise late from None
        except asyncio.CancelledError:
            exchange.cancel()
            raise
