"""Every wrong or odd request that docs/faults.md lists: its answer, its connection, what reached the server, a bystander."""

import asyncio

import pytest

from faults.wire.client import Wire
from faults.wire.field import Field
from faults.wire.header_shapes import MISMATCHES, PASSES, Mismatch
from faults.wire.http_shapes import SHAPES, Part, Shape
from faults.wire.json_shapes import DENIED, TEXTS, Text
from faults.wire.upstream import LEGACY, MODERN

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def play(wire: Wire, parts: list[Part]) -> None:
    """Send the parts of a shape."""
    for part in parts:
        if isinstance(part, bytes):
            await wire.send(part)
        elif part == "half close":
            wire.half_close()
        elif part == "reset":
            wire.reset()
        else:
            assert await wire.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"


async def hold(field: Field, shape: Shape) -> None:
    """Send a shape and hold its answers and its connection's fate."""
    wire = await Wire.open(field.ground.port)
    try:
        await play(wire, shape.send(field.ground))
        for due in shape.answers:
            status, code = due if isinstance(due, tuple) else (due, None)
            answer = await wire.answer()
            assert answer is not None, f"{shape.name}: no answer; {status} was due"
            assert (answer.status, answer.code) == (status, code), (shape.name, answer.body[:300])
        await field.what_was_judged_is_what_was_forwarded(calls=shape.calls)
        assert await (field.serves(wire) if shape.fate == "kept" else wire.ended()), shape.name
    finally:
        wire.close()


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if not shape.slow], ids=lambda shape: shape.name)
async def test_a_request(field: Field, shape: Shape) -> None:
    field.reached()
    await hold(field, shape)
    await field.undisturbed()


async def test_requests_that_do_not_arrive_in_time(field: Field) -> None:
    field.reached()
    await asyncio.gather(*(hold(field, shape) for shape in SHAPES if shape.slow))
    await field.undisturbed()


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.name[:60])
async def test_a_body(field: Field, text: Text) -> None:
    field.reached()
    wire = await Wire.open(field.ground.port)
    try:
        await wire.send(field.ground.request(text.body(field.ground)))
        answer = await wire.answer()
        assert answer is not None
        code, status = text.due(field.ground.modern)
        assert (answer.status, answer.code) == (status, code if code < 0 else None), answer.body[:300]
        assert code < 0 or bool(answer.message["result"].get("isError")) == (code == DENIED)
        await field.what_was_judged_is_what_was_forwarded(calls=0 if code else 1)
        assert await field.serves(wire)
        await field.undisturbed()
    finally:
        wire.close()


@pytest.mark.parametrize("row", MISMATCHES, ids=lambda row: row.name)
async def test_fields_that_contradict_the_body(field: Field, row: Mismatch) -> None:
    ground = field.ground
    field.reached()
    due = row.modern if ground.modern else row.legacy
    change = {name: value.replace("OTHER", LEGACY if ground.modern else MODERN) for name, value in row.change.items()}
    wire = await Wire.open(ground.port)
    try:
        await wire.send(ground.request(ground.body(), *row.lines, change=change, drop=row.drop))
        answer = await wire.answer()
        assert answer is not None and (answer.status, answer.code or 0) == due, answer
        reached = await field.what_was_judged_is_what_was_forwarded(calls=int(due == PASSES))
        assert all(call.name == "echo" for call in reached)
        if row.lines:
            assert await wire.ended()
        else:
            assert await field.serves(wire)
        await field.undisturbed()
    finally:
        wire.close()
