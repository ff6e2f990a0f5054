"""`Mcp-*` headers between real sockets: checked against the body on the way in, made from it on the way up."""

import base64
import json
from typing import Any

import pytest

from gateway.live import Live, Start, names, reader, text_of, tool
from servers.client import HttpClient

SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "deep": {"type": "object", "properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}}},
        "free": {"type": "string"},
    },
}
WITH = {**tool("with"), "inputSchema": SCHEMA}
BAD = {**tool("bad"), "inputSchema": {"type": "object", "properties": {"x": {"type": "array", "x-mcp-header": "X"}}}}
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def b64(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


class Rig:
    def __init__(self, live: Live, record: Any) -> None:
        self.live = live
        self.record = record

    async def call(
        self, arguments: Any, headers: dict[str, str], name: str = "with", path: str = "/s/one/mcp", drop: str = ""
    ) -> tuple[int, Any]:
        """One modern call with these headers beside the standard ones; status and message."""
        params = {"name": name, "arguments": arguments, "_meta": META}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        client = HttpClient(self.live.url + path, self.live.token)
        client.era, client.version = "modern", "2026-07-28"
        whole = {**client.standard_headers(body), **headers}
        whole.pop(drop, None)
        reply = await client.post(json.dumps(body).encode(), whole)
        return reply.status, reply.json()

    def params_sent(self) -> dict[str, str]:
        """The `Mcp-Param-*` of the last call the server got."""
        calls = [event for event in self.record.events("http") if '"tools/call"' in event["body"]]
        return {name: value for name, value in calls[-1]["headers"].items() if name.startswith("mcp-param-")}


@pytest.fixture
async def rig(gateway: Start, scripted_http: Any) -> Rig:
    served = scripted_http({"tools": [WITH, reader("plain"), BAD], "http": {"strict": True}})
    return Rig(await gateway({"one": {"url": served.url}}), served.record)


GOOD = ({"region": "eu", "count": 3}, {"Mcp-Param-Region": "eu", "Mcp-Param-Count": "3"})


@pytest.mark.parametrize(
    "headers,drop",
    [
        ({"Mcp-Method": "tools/list"}, ""),
        ({}, "Mcp-Method"),
        ({"Mcp-Name": "plain"}, ""),
        ({}, "Mcp-Name"),
        ({}, "MCP-Protocol-Version"),
        ({"Mcp-Name": b64("plain")}, ""),
        ({"Mcp-Name": "=?base64?%%?="}, ""),
        ({"Mcp-Param-Region": "us"}, ""),
        ({"Mcp-Param-Count": "4"}, ""),
        ({}, "Mcp-Param-Region"),
        ({"Mcp-Param-Flag": "true"}, ""),
    ],
)
async def test_a_header_that_does_not_repeat_the_body_is_refused(rig, headers, drop):
    status, message = await rig.call(GOOD[0], {**GOOD[1], **headers}, drop=drop)
    assert (status, message["error"]["code"]) == (400, -32020)
    assert not [event for event in rig.record.events("http") if '"tools/call"' in event["body"]]


async def test_declared_headers_are_made_anew_and_unknown_ones_go_on(rig):
    headers = {**GOOD[1], "Mcp-Param-Flag": "true", "Mcp-Param-Other": "kept", "Mcp-Param-Third": b64("ö")}
    arguments = {**GOOD[0], "deep": {"flag": True}}
    for path, name in (("/s/one/mcp", "with"), ("/mcp", "one__with")):
        status, message = await rig.call(arguments, headers, name, path)
        assert (status, json.loads(text_of(message))) == (200, arguments)
        assert rig.params_sent() == {
            "mcp-param-region": "eu", "mcp-param-count": "3", "mcp-param-flag": "true",
            "mcp-param-other": "kept", "mcp-param-third": b64("ö"),
        }  # fmt: skip


@pytest.mark.parametrize("value", ["zwölf", " lead", "trail ", "a\nb", "=?base64?eA==?=", ""])
async def test_values_that_no_header_can_hold_travel_in_base64(rig, value):
    status, message = await rig.call({"region": value}, {"Mcp-Param-Region": b64(value)})
    assert (status, json.loads(text_of(message))) == (200, {"region": value})
    sent = rig.params_sent()["mcp-param-region"]
    assert sent == (b64(value) if value else sent)


async def test_an_integer_is_compared_as_a_number(rig):
    status, _ = await rig.call({"count": 42}, {"Mcp-Param-Count": "42.0"})
    assert status == 200
    assert rig.params_sent() == {"mcp-param-count": "42"}


async def test_a_legacy_client_gets_its_headers_made(gateway, scripted_http):
    served = scripted_http({"era": "modern", "tools": [WITH], "http": {"strict": True}})
    rig = Rig(await gateway({"one": {"url": served.url}}), served.record)
    client = await rig.live.opened("/s/one/mcp", "legacy")
    assert json.loads(text_of(await client.call("with", {"region": "ü", "count": 1}))) == {"region": "ü", "count": 1}
    assert rig.params_sent() == {"mcp-param-region": b64("ü"), "mcp-param-count": "1"}


async def test_a_client_on_a_pipe_gets_its_headers_made(home, scripted_http, stdio_client, earnest_cmd):
    served = scripted_http({"tools": [WITH], "http": {"strict": True}})
    home.config.write_text(f'preset = "observe"\n[servers.one]\nurl = {json.dumps(served.url)}\n')
    client = await stdio_client([*earnest_cmd, "stdio", "one"], home.env)
    await client.open("modern")
    assert json.loads(text_of(await client.call("with", {"region": "eu"}))) == {"region": "eu"}
    (call,) = [event for event in served.record.events("http") if '"tools/call"' in event["body"]]
    assert call["headers"]["mcp-param-region"] == "eu"


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_tool_whose_declaration_is_wrong_is_not_served_over_http(rig, era):
    client = await rig.live.opened("/s/one/mcp", era)
    answer = await client.request("tools/list")
    assert names(answer) == ["with", "plain"]
    assert any("x-mcp-header" in why for why in answer["result"]["_meta"]["dev.earnest/hidden"]["reasons"])
    refused = await client.call("bad", {"x": []})
    assert refused["result"]["isError"]
    assert not [event for event in rig.record.events("http") if '"tools/call"' in event["body"]]


async def test_other_requests_are_checked_as_well(rig):
    client = await rig.live.opened("/s/one/mcp", "modern")
    for method, params in (("tools/list", {}), ("resources/read", {"uri": "a:b"}), ("server/discover", {})):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
        headers = {**client.standard_headers(body), "Mcp-Method": "prompts/list"}
        reply = await client.post(json.dumps(body).encode(), headers)
        assert (reply.status, reply.json()["error"]["code"]) == (400, -32020), method
