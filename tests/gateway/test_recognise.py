"""Connections that come together are looked up together, and each hears of its own."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from earnest.gateway import recognise
from earnest.gateway.recognise import Recogniser


class Looks:
    """Stands in for the look through the machine's processes; holds the first one until it is let go."""

    def __init__(self) -> None:
        self.asked: list[list[object]] = []
        self.go = threading.Event()

    def __call__(self, clients: Sequence[object], listener: object) -> list[Any]:
        self.asked.append(list(clients))
        assert self.go.wait(10)
        if "bad" in clients:
            raise OSError("cannot look")
        return [f"host of {client}" for client in clients]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    made = Looks()
    monkeypatch.setattr(recognise, "hosts_of", made)
    return made


async def test_a_burst_costs_two_looks_and_each_hears_of_its_own(looks: Looks) -> None:
    recogniser = Recogniser()
    tasks = [asyncio.create_task(recogniser.host(n, "listener")) for n in range(50)]
    await asyncio.sleep(0)
    looks.go.set()
    assert await asyncio.gather(*tasks) == [f"host of {n}" for n in range(50)]
    assert looks.asked == [[0], list(range(1, 50))]


async def test_a_look_that_fails_is_told_to_those_who_waited_for_it_and_the_next_goes_on(looks: Looks) -> None:
    recogniser = Recogniser()
    bad, good = asyncio.create_task(recogniser.host("bad", "l")), asyncio.create_task(recogniser.host("good", "l"))
    await asyncio.sleep(0)
    looks.go.set()
    with pytest.raises(OSError, match="cannot look"):
        await bad
    assert await good == "host of good"


async def test_one_who_gives_up_takes_nothing_from_the_others(looks: Looks) -> None:
    recogniser = Recogniser()
    first, other = asyncio.create_task(recogniser.host(1, "l")), asyncio.create_task(recogniser.host(2, "l"))
    await asyncio.sleep(0)
    first.cancel()
    looks.go.set()
    assert await other == "host of 2"
