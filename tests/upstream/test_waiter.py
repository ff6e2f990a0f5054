"""A request that is awaited: answered, lost, too late, or given up; its exchange is cancelled where nobody waits any more."""

import asyncio
from typing import Any

import pytest

from earnest.core.errors import EarnestError
from earnest.upstream.base import Reply
from earnest.upstream.waiter import Waiter

LATE = EarnestError("E1206", "too late")


class Exchange:
    def __init__(self) -> None:
        self.cancelled: list[str] = []

    def cancel(self, reason: str = "") -> None:
        self.cancelled.append(reason)


def waiting(timeout: float = 30.0) -> tuple[Waiter, Any, "asyncio.Task[Reply]"]:
    waiter, exchange = Waiter(asyncio.get_running_loop()), Exchange()
    return waiter, exchange, asyncio.ensure_future(waiter.within(exchange, timeout, LATE))


async def test_an_answer_is_given_and_a_loss_raised() -> None:
    waiter, exchange, task = waiting()
    waiter.reply(Reply(result=b"{}"))
    assert (await task).result == b"{}" and exchange.cancelled == []
    waiter, exchange, task = waiting()
    waiter.lost(EarnestError("E1204", "gone"), False)
    with pytest.raises(EarnestError, match="gone"):
        await task
    assert exchange.cancelled == []


async def test_who_waits_no_longer_cancels() -> None:
    _, exchange, task = waiting(0.01)
    with pytest.raises(EarnestError, match="too late"):
        await task
    assert exchange.cancelled == ["timeout"]
    _, exchange, task = waiting()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert exchange.cancelled == [""]
