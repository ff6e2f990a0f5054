"""What tracks hold on to and stand on beyond one call (`gateway.tracks`): bounded names, what the operator says by the time of
the answer, the clock on the wall, headers that a schema declares in any spelling, and connections that break."""

import asyncio
import gc
import json
from typing import Any

import msgspec
import pytest

from earnest.core.sanitize import Sanitizer
from earnest.net.client import ClientConnection
from earnest.net.tracks import AVAILABLE
from gateway.harness import until
from gateway.test_tracks import META, WARM, Kept, Rig, fine, rig

__all__ = ["rig"]

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="earnest was installed without its compiled piece")


def tool_of(rig: Rig) -> Any:
    (served,) = rig.live.app.gateway.catalogs.served(b"{}")
    return served.server, served.server.tools["look"]


async def test_no_track_is_kept_under_a_name_that_is_large(rig: Rig) -> None:
    large = {**META, "large": "x" * 5000}
    for _ in range(3):
        assert (await rig.around(meta=large))[1]["result"] == fine()
    assert all(len(name) < 5000 for _, name in rig.layer._laid)


async def test_a_sanitizer_that_is_named_while_a_call_is_under_way_cuts_its_answer_down(rig: Rig) -> None:
    server, _ = tool_of(rig)
    rig.server.held = asyncio.Event()
    rig.client.out.write(rig.client.request())
    await until(lambda: rig.layer.busy and len(rig.server.calls) == WARM + 2)
    before = server.words
    server.words = lambda server, tool: msgspec.structs.replace(before(server, tool), sanitizer=Sanitizer("none", (), "test"))
    server.resolve()
    rig.server.held.set()
    assert "fine" not in json.dumps((await rig.client.answer())[1])


@pytest.mark.parametrize("put", [-3600.0, 3600.0])
async def test_the_clock_on_the_wall_may_be_put_to_another_time_while_a_call_is_under_way(rig: Rig, put: float) -> None:
    gateway = rig.live.app.gateway
    rig.server.held = asyncio.Event()
    rig.client.out.write(rig.client.request())
    await until(lambda: rig.layer.busy and len(rig.server.calls) == WARM + 2)
    wall = gateway.wall
    gateway.wall = lambda: wall() + put
    await until(lambda: gateway.relays)
    (relay,) = gateway.relays
    assert gateway.now() < relay.deadline <= gateway.now() + 60
    rig.server.held.set()
    assert (await rig.client.answer())[1]["result"] == fine()


async def test_arguments_that_a_header_must_repeat_are_held_against_it_however_the_schema_spells_that(rig: Rig) -> None:
    schema = '{"type":"object","properties":{"region":{"type":"string","\\u0078-mcp-heade\\u0072":"Region"}}}'
    tool_of(rig)[1].definition = f'{{"name":"look","inputSchema":{schema}}}'.encode()
    other = {**META, "other": 1}
    for _ in range(2):
        await rig.around("{}", meta=other)
    calls = len(rig.server.calls)
    _, answer = await rig.around('{"region":"eu"}', meta=other)
    assert "Mcp-Param-Region" in json.dumps(answer) and len(rig.server.calls) == calls


class Broken:
    """A transport whose writes raise."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def write(self, data: bytes) -> None:
        raise RuntimeError("no writing")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


async def test_a_connection_that_cannot_be_written_to_ends_its_own_call_and_no_other_of_that_moment(rig: Rig) -> None:
    failures: list[object] = []
    loop = asyncio.get_running_loop()
    other = Kept(rig.live)
    await other.open()
    await other.call()
    calls, before = len(rig.server.calls), rig.trips
    (carrier,) = [one for one in gc.get_objects() if type(one) is ClientConnection and not one.dead]
    carrier.transport = Broken(carrier.transport)
    loop.set_exception_handler(lambda loop, context: failures.append(context["exception"]))
    for client in (rig.client, other):
        client.out.write(client.request())
    answers = [(await client.answer())[1]["result"] for client in (rig.client, other)]
    assert [one["isError"] for one in answers] == [True, False] and "may or may not" in json.dumps(answers[0])
    assert rig.trips == before + 2 and len(rig.server.calls) == calls + 1
    assert [str(one) for one in failures] == ["no writing"]
    assert [one.outcome for one in rig.records()[1][-2:]] == ["lost", "ok"]
    await rig.along()
    other.out.close()
