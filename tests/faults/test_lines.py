"""The same texts as lines of a pipe: through the shim and the daemon, to a server on pipes, while another client calls."""

import asyncio
import json

import pytest

from attacks.rig import READ, Rig, refused, tool
from faults.wire.client import Ground
from faults.wire.json_shapes import DENIED, TEXTS, Text
from faults.wire.reading import digest, read
from servers.client import StdioClient

TOOLS = [tool("echo", **READ)]
APART = ("empty", "UTF-16", "NUL behind", "5,000 digits")
LINES = [text for text in TEXTS if b"\n" not in text.body(Ground(0, "", True)) and text.name not in APART]
"""Not among them: an empty line, which is no message, what a line's end cuts in two, a NUL, which ends the client, and a number
that the scripted server cannot read."""


async def said(client: StdioClient, line: bytes) -> dict[str, object]:
    """The message that answers a line."""
    before = len(client.lines)
    await client.send_raw(line + b"\n")
    await client.until(lambda: len(client.lines) > before, 15)
    answer: dict[str, object] = json.loads(client.lines[before])
    return answer


async def hold(client: StdioClient, text: Text, modern: bool) -> int:
    """Hold what one line is answered with; returns how many calls it makes."""
    try:
        answer = await said(client, text.body(Ground(0, "", modern)))
    except TimeoutError as error:
        raise AssertionError(f"no answer to {text.name}") from error
    code, _ = text.due(False)
    if text.name.startswith("name in"):  # no tool of the server's; where policy is enforced nobody is asked about it
        code = DENIED
    error = answer.get("error")
    assert (error["code"] if isinstance(error, dict) else 0) == min(code, 0), (text.name, str(answer)[:300])
    if code >= 0:
        assert refused(answer) == (code == DENIED), (text.name, str(answer)[:300])
    return int(code == 0)


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_lines(rig: Rig, era: str) -> None:
    record = rig.server("up", {"tools": TOOLS}, trust="trusted")
    rig.server("other", {"tools": TOOLS}, trust="trusted")
    client, bystander = await rig.stdio("up", era=era), await rig.stdio("other", client="bystander", era=era)
    going = True

    async def stand_by() -> int:
        count = 0
        while going:
            assert not refused(await bystander.call("echo", {"n": count}))
            count += 1
            await asyncio.sleep(0.02)
        return count

    standing = asyncio.create_task(stand_by())
    expected = 0
    for text in LINES:
        expected += await hold(client, text, era == "modern")
    going = False
    assert await standing > 3
    texts = [event["text"].encode("utf-8", "surrogatepass") for event in record.events("message")]
    calls = [message["params"] for message in map(read, texts) if message.get("method") == "tools/call"]
    assert len(calls) == expected > 20
    receipts = [r for r in rig.receipts(server="up", decision="allow") if r.method == "tools/call"]
    judged = [(r.tool, r.arguments_sha256) for r in receipts]
    assert judged == [(call["name"], digest(call["arguments"])) for call in calls]
    rig.verify()


async def test_a_line_past_the_limit_ends_nothing_but_itself(rig: Rig) -> None:
    record = rig.server("up", {"tools": TOOLS}, trust="trusted")
    client = await rig.stdio("up")
    answer = await said(client, b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x":"' + b" " * (5 << 20) + b'"}}')
    assert "error" in answer
    answer = await said(client, b" " * (10 << 20))
    assert "error" in answer
    assert not refused(await client.call("echo", {"n": 1}))
    assert len(record.calls()) == 1


async def test_a_nul_byte_ends_the_client_in_words_and_runs_nothing(rig: Rig) -> None:
    record = rig.server("up", {"tools": TOOLS}, trust="trusted")
    client, other = await rig.stdio("up"), await rig.stdio("up", client="other")
    await client.send_raw(Ground(0, "", False).body() + b"\0\n")
    assert await client.wait() == 2
    assert b"E1301" in client.stderr and b"NUL" in client.stderr
    assert not refused(await other.call("echo", {"n": 1}))
    assert len(record.calls()) == 1
