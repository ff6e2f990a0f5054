"""Every wrong or odd answer of a server that docs/faults.md lists: what the client is told, the receipt, the connection."""

import asyncio
import json

import pytest

from faults.wire.answer_shapes import LIES, Lie
from faults.wire.client import Wire
from faults.wire.field import Field
from faults.wire.header_shapes import MISMATCHES, PASSES, Mismatch

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def hold(field: Field, lie: Lie) -> None:
    """Make the server misbehave and hold what comes of it."""
    upstream, ground = field.upstream, field.ground
    upstream.bad[lie.name] = lie.act
    arguments = {"lie": lie.name}
    wire = await Wire.open(ground.port)
    try:
        body = ground.body(json.dumps(arguments).encode(), name=b'"bad"', id=json.dumps(lie.name).encode())
        await wire.send(ground.request(body, change={"Mcp-Name": "bad"} if ground.modern else {}))
        answer = await wire.answer()
        assert answer is not None and answer.status == 200, (lie.name, answer)
        message = answer.message
        assert message["id"] == lie.name
        assert [call.arguments for call in field.reached_by(lie.name)] == [arguments], message
        _, outcome = await field.receipt(arguments)
        result = message.get("result", {})
        said = result["content"][0]["text"] if "content" in result else message["error"]["message"]
        assert outcome.outcome == lie.outcome, (lie.name, outcome.outcome, outcome.detail, said)
        if lie.outcome == "ok":
            assert said == "hello" and not result.get("isError")
        else:
            assert "error" in message or result["isError"]
            assert "hello" not in said
        turn = upstream.turns[lie.name]
        if not lie.kept:
            await asyncio.wait_for(turn.gone.wait(), 20)
        assert await field.serves(wire)
        assert turn.gone.is_set() != lie.kept, lie.name
    finally:
        wire.close()


@pytest.mark.parametrize("lie", [lie for lie in LIES if not lie.slow], ids=lambda lie: lie.name)
async def test_an_answer(field: Field, lie: Lie) -> None:
    await hold(field, lie)
    await field.undisturbed()


async def test_answers_that_do_not_come_in_time(field: Field) -> None:
    await asyncio.gather(*(hold(field, lie) for lie in LIES if lie.slow))
    await field.undisturbed()


@pytest.mark.parametrize("row", [row for row in MISMATCHES if PASSES in (row.modern, row.legacy)], ids=lambda row: row.name)
async def test_fields_never_reach_a_server_of_the_other_era(field: Field, row: Mismatch) -> None:
    ground = type(field.ground)(field.ground.port, field.ground.token, field.ground.modern, "/s/cross/mcp")
    await ground.enter()
    before = len(field.cross.calls)
    wire = await Wire.open(ground.port)
    try:
        await wire.send(ground.request(ground.body(), *row.lines, change=row.change, drop=row.drop))
        answer = await wire.answer()
        due = row.modern if ground.modern else row.legacy
        assert answer is not None and answer.status == due[0], answer
        reached = field.cross.calls[before:]
        assert len(reached) == (due == PASSES)
        for call in reached:
            ours = {name: value for name, value in call.headers.items() if name.startswith("mcp-")}
            body = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "echo"}
            assert ours == (body if field.cross.modern else {"mcp-protocol-version": "2025-11-25"})
    finally:
        wire.close()
