"""The log of a legacy server for a modern client: told its level before the call, heard by the call that asked."""

from collections.abc import Callable
from typing import Any

import pytest

from gateway.live import Start, reader, text_of

LOG = "io.modelcontextprotocol/logLevel"
ALL = '[[policy.rule]]\nname = "all"\nwhen = "true"\nthen = "allow"\nflow = "accept"\n'


def line(level: str) -> dict[str, Any]:
    return {"notify": {"method": "notifications/message", "params": {"level": level, "data": f"a line of {level}"}}}


SCRIPT = {
    "era": "legacy",
    "tools": [reader("say")],
    "calls": {"say": [line("debug"), line("warning"), line("loud"), {"text": "said"}]},
    "capabilities": {"tools": {}, "logging": {}},
    "http": {"answer": "sse"},
}


@pytest.mark.parametrize("over", ["stdio", "http"])
async def test_the_level_of_a_request_reaches_the_server_first_and_lines_the_request(
    gateway: Start, scripted: Callable[..., Any], scripted_http: Callable[..., Any], over: str
) -> None:
    if over == "stdio":
        command, record = scripted(SCRIPT)
        live = await gateway({"one": {"command": command}}, preset="balanced", more=ALL)
    else:
        served = scripted_http(SCRIPT)
        record = served.record
        live = await gateway({"one": {"url": served.url}}, preset="balanced", more=ALL)
    client = await live.opened("/s/one/mcp", "modern")
    assert "logging" in client.opened["result"]["capabilities"]
    await client.call("say")
    assert client.notifications == [] and record.messages("logging/setLevel") == []
    for level, told, heard in (("warning", ["warning"], 1), ("error", ["warning"], 1), ("debug", ["warning", "debug"], 3)):
        assert text_of(await client.call("say", meta={LOG: level})) == "said"
        assert [one["params"]["level"] for one in record.messages("logging/setLevel")] == told
        assert len(client.notifications) == heard
    methods = [one["method"] for one in record.messages() if one["method"] in ("logging/setLevel", "tools/call")]
    assert methods == ["tools/call", "logging/setLevel", "tools/call", "tools/call", "logging/setLevel", "tools/call"]
    assert [one["params"]["data"] for one in client.notifications] == [
        "a line of warning",
        "a line of debug",
        "a line of warning",
    ]


async def test_what_is_no_level_ends_the_call_before_it_is_sent(gateway: Start, scripted: Callable[..., Any]) -> None:
    command, record = scripted(SCRIPT)
    live = await gateway({"one": {"command": command}}, preset="balanced", more=ALL)
    client = await live.opened("/s/one/mcp", "modern")
    for wrong in ("loud", 7):
        assert (await client.call("say", meta={LOG: wrong}))["error"]["code"] == -32602
    assert record.messages("tools/call") == []


async def test_a_call_goes_out_once_the_server_has_taken_its_level(gateway: Start, scripted: Callable[..., Any]) -> None:
    command, record = scripted({**SCRIPT, "methods": {"logging/setLevel": [{"sleep": 0.3}, {"result": {}}]}})
    live = await gateway({"one": {"command": command}}, preset="balanced", more=ALL)
    client = await live.opened("/s/one/mcp", "modern")
    await client.call("say", meta={LOG: "info"})
    told = next(one["at"] for one in record.events("message") if "logging/setLevel" in one["text"])
    assert record.events("call")[0]["at"] - told >= 0.3
